"""Plans of moves as files: what comes back, what people approve, and who refuses to read them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from formats import load_validator
from shorthand import HERE, brokers, rows

from reconciler.errors import PlanFileError
from reconciler.model.moves import (
    BrokerTraffic,
    DirectoryPeak,
    Forecast,
    MoveKind,
    MovePolicy,
    PlannedMoves,
)
from reconciler.model.plan import Plan, PlannedTopic, TopicImage
from reconciler.planfile.codec import decode_plan, encode_plan, fingerprint_plan

MIB = 1 << 20
POLICY = MovePolicy(
    frozenset({MoveKind.REPLICATION, MoveKind.ASSIGNMENT}), 30 * MIB, 50, 5, 15, 2 << 40
)
FORECAST = Forecast(
    copied_bytes=200,
    sizes={"orders": (100, 100, -1)},
    unknown=1,
    seconds=None,
    least_rate=11 * MIB,
    traffic=(BrokerTraffic(1, 0, 200), BrokerTraffic(3, 200, 0)),
    peaks=(DirectoryPeak(3, "/data1", 1000, 100, 300),),
)
MOVES = PlannedMoves(POLICY, 3, 3, 1, {"orders": 1}, FORECAST)
CONFIG = {"min.insync.replicas": "2"}
TOPIC = PlannedTopic(
    "orders",
    HERE,
    TopicImage("id-orders", rows("1,2 2,1 1,2"), CONFIG),
    TopicImage("id-orders", rows("1,3 3,1 1,2,3"), CONFIG),
)
PLAN = Plan("prod", "id", brokers("a", "b", "c"), (TOPIC,), live_topics=1, moves=MOVES)


def document(plan: Plan = PLAN) -> dict[str, Any]:
    return dict(json.loads(encode_plan(plan)))


def test_a_plan_of_moves_comes_back_as_it_was() -> None:
    assert decode_plan(encode_plan(PLAN)) == PLAN


def test_moves_without_a_forecast_or_limits_come_back() -> None:
    bare = PlannedMoves(MovePolicy(frozenset({MoveKind.ASSIGNMENT}), None), 0, 0, 0)
    plan = replace(PLAN, moves=bare)
    assert decode_plan(encode_plan(plan)) == plan


def test_it_validates_against_the_published_schema() -> None:
    load_validator("plan").validate(document())


def test_the_block_is_plain_json() -> None:
    found = document()["moves"]
    assert found["policy"] == {
        "allow": ["assignment", "replication"],
        "rate_bytes_per_s": 30 * MIB,
        "at_once_cluster": 50,
        "at_once_broker": 5,
        "keep_free_percent": 15,
        "max_bytes": 2 << 40,
    }
    assert found["min_insync"] == {"orders": 1}
    assert found["forecast"]["sizes"] == {"orders": [100, 100, -1]}
    assert found["forecast"]["peaks"] == [
        {"broker": 3, "path": "/data1", "total_bytes": 1000, "used_bytes": 100, "peak_bytes": 300}
    ]


def test_a_plan_without_moves_has_no_block() -> None:
    assert "moves" not in document(replace(PLAN, moves=None))


@pytest.mark.parametrize(
    "moves",
    [
        replace(MOVES, policy=replace(POLICY, allow=frozenset({MoveKind.REPLICATION}))),
        replace(MOVES, policy=replace(POLICY, rate_bytes_per_s=31 * MIB)),
        replace(MOVES, policy=replace(POLICY, rate_bytes_per_s=None)),
        replace(MOVES, policy=replace(POLICY, at_once_cluster=51)),
        replace(MOVES, policy=replace(POLICY, at_once_broker=6)),
        replace(MOVES, policy=replace(POLICY, keep_free_percent=14)),
        replace(MOVES, policy=replace(POLICY, max_bytes=None)),
        replace(MOVES, min_insync={}),
        replace(MOVES, min_insync={"orders": 2}),
        None,
    ],
)
def test_an_approval_covers_every_limit(moves: PlannedMoves | None) -> None:
    assert fingerprint_plan(replace(PLAN, moves=moves)) != fingerprint_plan(PLAN)


@pytest.mark.parametrize(
    "moves",
    [
        replace(MOVES, forecast=None),
        replace(MOVES, forecast=replace(FORECAST, copied_bytes=1, seconds=9)),
        replace(MOVES, least_replicas=2),
    ],
)
def test_an_approval_survives_sizes_that_change(moves: PlannedMoves) -> None:
    assert fingerprint_plan(replace(PLAN, moves=moves)) == fingerprint_plan(PLAN)


def test_a_limit_that_was_changed_by_hand_is_seen() -> None:
    found = document()
    found["moves"]["policy"]["rate_bytes_per_s"] = 1 << 40
    with pytest.raises(PlanFileError, match="does not match its own fingerprint"):
        decode_plan(json.dumps(found))


def test_a_cost_that_was_changed_by_hand_is_seen() -> None:
    found = document()
    found["moves"]["forecast"]["copied_bytes"] = 1
    with pytest.raises(PlanFileError, match="does not match its own seal"):
        decode_plan(json.dumps(found))


def test_an_older_reader_sees_another_fingerprint() -> None:
    """It ignores the block of moves, so a plan that it can read must not look approved."""
    elected = replace(TOPIC.before, leaders=(1, 2, 1)) if TOPIC.before else None
    assert elected is not None
    topic = replace(TOPIC, before=elected, after=replace(elected, leaders=(2, 2, 1)))
    plan = replace(PLAN, topics=(topic,))
    without = {key: value for key, value in document(plan).items() if key != "moves"}
    with pytest.raises(PlanFileError, match="does not match its own fingerprint"):
        decode_plan(json.dumps(without))


def test_an_unknown_reason_for_moves_is_no_plan() -> None:
    found = document()
    found["moves"]["policy"]["allow"] = ["whim"]
    with pytest.raises(PlanFileError, match=r"moves\.policy\.allow\.0"):
        decode_plan(json.dumps(found))
