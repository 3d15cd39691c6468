"""The law of the fleet: its plans are those of the single clusters, byte for byte."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from fleets import NOTE, Fleet, draw_moves, draw_worlds, frame

from reconciler.api.planning import build_moves, build_plan
from reconciler.fleet import tables
from reconciler.fleet.outcome import describe_changes, describe_move_plan
from reconciler.fleet.planning import (
    join_tables,
    plan_fleet,
    split_changes,
    split_moves,
    take_move_plans,
)
from reconciler.fleet.rows import make_table
from reconciler.model.plan import Commit, Plan
from reconciler.model.steps import steps_of
from reconciler.planfile.codec import decode_plan, encode_plan, fingerprint_plan
from reconciler.show.view import view_plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.fleet

CLUSTERS = 120
MOVING = 40
COMMIT = Commit("0123456789abcdef0123456789abcdef01234567", dirty=True)


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    """Draw many clusters: a job costs half a second, however many there are."""
    worlds = enumerate([*draw_worlds(CLUSTERS), *draw_moves(MOVING)])
    return Fleet({f"c-{number:03}": world for number, world in worlds}, findings=(NOTE,))


@pytest.fixture(scope="module")
def expected(fleet: Fleet) -> Mapping[str, Plan]:
    """Plan cluster by cluster, without Spark. Who uses a topic is not in the lake."""
    return {
        name: build_plan(fleet, name, replace(world.state, usage={}), commit=COMMIT)
        for name, world in fleet.worlds.items()
    }


@pytest.fixture(
    scope="module", params=[(1, 1), pytest.param((2, 3), marks=pytest.mark.slow), (3, 7)], ids=str
)
def answers(request: Any, spark: SparkSession, fleet: Fleet) -> DataFrame:
    """Plan the fleet with its rows in another order, in so many partitions."""
    from pyspark.sql import functions as F  # noqa: N812

    order, partitions = request.param
    state = {t.name: frame(spark, t, fleet.facts()[t.name]) for t in tables.STATE}
    facts = join_tables(state).orderBy(F.rand(order)).repartition(partitions)
    specs = frame(spark, tables.SPECS, fleet.specs()).orderBy(F.rand(order)).coalesce(partitions)
    return plan_fleet(facts, specs, fleet, COMMIT).persist()  # the tests ask twice


def test_every_plan_is_the_single_clusters(
    answers: DataFrame, expected: Mapping[str, Plan]
) -> None:
    found = {row["cluster"]: row for row in answers.select(*tables.PLANS.columns).collect()}
    assert {name: row["error"] for name, row in found.items() if row["error"]} == {}
    assert found.keys() == expected.keys()
    for name, plan in expected.items():
        assert found[name]["plan"] == encode_plan(plan), name
        assert found[name]["fingerprint"] == fingerprint_plan(decode_plan(found[name]["plan"]))
        assert found[name]["refused"] == sum(bool(topic.refusals) for topic in plan.topics)
        assert found[name]["refusals"] == [str(refusal) for refusal in plan.refusals]


def test_every_change_is_the_single_clusters(
    answers: DataFrame, expected: Mapping[str, Plan]
) -> None:
    rows = split_changes(answers).toArrow().to_pylist()
    found = {(row.pop("cluster"), row["topic"]): row for row in rows}
    wanted = {
        (name, row["topic"]): row for name, plan in expected.items() for row in plan_rows(plan)
    }
    assert found == wanted


@pytest.fixture(scope="module")
def expected_moves(fleet: Fleet) -> Mapping[str, Plan]:
    """Plan the moves of each cluster that allows them, without Spark."""
    return {
        name: build_moves(fleet, name, replace(world.state, usage={}), commit=COMMIT)
        for name, world in fleet.worlds.items()
        if world.moves is not None
    }


def test_every_plan_of_moves_is_the_single_clusters(
    answers: DataFrame, expected_moves: Mapping[str, Plan]
) -> None:
    found = {row["cluster"]: row for row in take_move_plans(answers).collect()}
    assert {name: row["error"] for name, row in found.items() if row["error"]} == {}
    assert found.keys() == expected_moves.keys()
    for name, plan in expected_moves.items():
        assert found[name]["plan"] == encode_plan(plan), name
        assert found[name]["fingerprint"] == fingerprint_plan(decode_plan(found[name]["plan"]))
        assert found[name].asDict() == describe_move_plan(plan) | {"error": None}


def test_every_move_is_the_single_clusters(
    answers: DataFrame, expected_moves: Mapping[str, Plan]
) -> None:
    rows = split_moves(answers).toArrow().to_pylist()
    found = {(row["cluster"], row["topic"], row["partition"]): row for row in rows}
    assert len(found) == len(rows)
    altered = {
        (name, topic.name, number): (old, new)
        for name, plan in expected_moves.items()
        for topic in plan.topics
        if topic.before and topic.after
        for number, (old, new) in enumerate(
            zip(topic.before.assignment, topic.after.assignment, strict=True)
        )
        if old != new
    }
    rows_of = {key: (tuple(row["before"]), tuple(row["after"])) for key, row in found.items()}
    assert rows_of == altered
    for (name, topic, number), row in found.items():
        sizes = fleet_sizes(expected_moves[name], topic)
        assert row["step"] == ("move" if {*row["before"]} != {*row["after"]} else "reorder")
        assert row["size_bytes"] == (sizes[number] if sizes and sizes[number] >= 0 else None)


def fleet_sizes(plan: Plan, topic: str) -> tuple[int, ...]:
    assert plan.moves is not None
    assert plan.moves.forecast is not None
    return plan.moves.forecast.sizes[topic]


def test_the_fleet_holds_moves_of_every_kind(expected_moves: Mapping[str, Plan]) -> None:
    """The law says little of a fleet in which nothing moves."""
    verbs: Counter[str] = Counter()
    drains = refusals = 0
    for plan in expected_moves.values():
        verbs.update(str(step.verb) for topic in plan.topics for step in steps_of(topic))
        assert plan.moves is not None
        drains += any(drain.replicas for drain in plan.moves.drains)
        refusals += bool(plan.refusals) + sum(bool(topic.refusals) for topic in plan.topics)
    assert min(verbs["move"], verbs["reorder"], drains, refusals) >= 5


def plan_rows(plan: Plan) -> list[dict[str, Any]]:
    """Return the change rows of a plan as they come out of Arrow."""
    rows = make_table(
        tables.CHANGES, columns_of([*describe_changes(plan, view_plan(plan))])
    ).to_pylist()
    for row in rows:
        del row["cluster"]
    return rows


def columns_of(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}


def test_the_fleet_holds_changes_of_every_kind(expected: Mapping[str, Plan]) -> None:
    """The law says little of a fleet in which nothing happens."""
    rows = [row for plan in expected.values() for row in describe_changes(plan, view_plan(plan))]
    actions = Counter(row["action"] for row in rows)
    assert min(actions[action] for action in ("create", "update", "refuse")) >= 10
    assert any(plan.refusals for plan in expected.values())


def test_a_deletion_is_refused_as_unseen(expected: Mapping[str, Plan]) -> None:
    """Nobody has looked who uses the topic, so nothing is deleted by a plan of the fleet."""
    rows = [row for plan in expected.values() for row in describe_changes(plan, view_plan(plan))]
    assert "delete" not in {row["action"] for row in rows}
    assert "deletion-unseen" in {rule for row in rows for rule in row["refusals"]}
