"""Plans of moves on a real cluster: its sizes, its disks, and what another tool has in flight."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from moving import BROKER, SIZE, TOPIC, Moving

from reconciler.api.planning import build_moves, load_estate, read_cluster
from reconciler.cli.app import run
from reconciler.model.cluster import ThrottleSide
from reconciler.model.plan import Plan
from reconciler.model.steps import MoveReplicas, steps_of

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("brief_rates")]

ALLOW = "{allow: [replication, assignment], rate: 30MiB, keep_free: 0%}"


@pytest.fixture
def topic(moving: Moving, topic_prefix: str) -> Iterator[str]:
    """Return a topic whose partition 0 moves from broker 1 to 4, throttled by name."""
    with moving.move(f"{topic_prefix}planned") as topic:
        yield topic


def write_estate(root: Path, moving: Moving, topic: str, wished: str) -> Path:
    estate = root / "topics"
    estate.mkdir(exist_ok=True)
    (estate / "clusters.yaml").write_text(
        f"version: 1\nclusters:\n  lab:\n    cluster_id: {moving.cluster.cluster_id}\n"
        f"    client: {{bootstrap.servers: '{moving.cluster.bootstrap_servers}'}}\n"
        f"    moves: {ALLOW}\n"
    )
    (estate / "topics.yaml").write_text(f"topic: {topic}\n{wished}\n")
    return estate


def plan(root: Path, moving: Moving, topic: str, wished: str) -> Plan:
    estate = load_estate(write_estate(root, moving, topic, wished))
    make = partial(build_moves, estate, "lab")
    return make(read_cluster(estate, "lab", with_moves=True, plan=make))


def test_what_is_in_flight_to_the_spec_is_planned_with_its_cost(
    moving: Moving, topic: str, tmp_path: Path
) -> None:
    made = plan(tmp_path, moving, topic, "assignment: [[4, 2, 3], [2, 3, 1]]")
    assert made.refusals == ()
    (planned,) = made.topics
    assert planned.before is not None
    # Kafka does not keep the original order, 1, 2, 3.
    assert planned.before.assignment == ((2, 3, 1), (2, 3, 1))
    assert planned.before.topic_id is not None
    assert steps_of(planned) == (MoveReplicas(topic, {0: (4, 2, 3)}),)
    assert made.moves is not None
    assert (made.moves.replicas, made.moves.least_replicas) == (1, 1)
    forecast = made.moves.forecast
    assert forecast is not None
    assert SIZE <= forecast.copied_bytes < 2 * SIZE
    assert forecast.least_rate is not None
    assert 4 in {peak.broker for peak in forecast.peaks}


def test_what_is_in_flight_elsewhere_is_left_alone(
    moving: Moving, topic: str, tmp_path: Path
) -> None:
    made = plan(tmp_path, moving, topic, "assignment: [[3, 2, 4], [2, 3, 1]]")
    (planned,) = made.topics
    assert steps_of(planned) == ()
    assert [note.rule for note in planned.notes] == ["moves-foreign"]


def test_a_plan_of_changes_notes_what_is_pending_and_does_the_rest(
    moving: Moving, topic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wished = "partitions: 2\nreplication_factor: 4\nconfig: {retention.ms: 30d}"
    estate = write_estate(tmp_path, moving, topic, wished)
    assert run(["plan", str(estate), "--cluster", "lab", "--format", "json"]) == 0
    (change,) = json.loads(capsys.readouterr().out)["resource_changes"]
    assert change["steps"] == ["configure"]
    assert "replication_factor 3 → 4 is pending" in {note["what"] for note in change["notes"]}


def test_a_plan_of_moves_is_saved_and_exits_as_asked(
    moving: Moving, topic_prefix: str, tmp_path: Path
) -> None:
    topic = f"{topic_prefix}grown"
    moving.fill(topic, ((1, 2), (2, 3)))
    estate = write_estate(tmp_path, moving, topic, "replication_factor: 3")
    out = tmp_path / "moves.json"
    arguments = ["plan", str(estate), "--cluster", "lab", "--moves", "--out", str(out)]
    assert run([*arguments, "--detailed-exitcode"]) == 2
    saved = json.loads(out.read_text())
    assert saved["summary"]["move"] == 1
    estate = write_estate(tmp_path, moving, topic, "replication_factor: 2")
    assert run([*arguments, "--detailed-exitcode"]) == 0

    # Nothing is copied, so nobody waits for write rates.
    loaded = load_estate(estate)
    make = partial(build_moves, loaded, "lab")
    state = read_cluster(loaded, "lab", with_moves=True, plan=make)
    assert state.topics[topic].size_bytes[0] >= SIZE
    assert not any(live.write_bytes_per_s for live in state.topics.values())


def test_throttles_that_somebody_else_left_are_named(
    moving: Moving, topic_prefix: str, tmp_path: Path
) -> None:
    mine, other = f"{topic_prefix}mine", f"{topic_prefix}other"
    for name in (mine, other):
        moving.fill(name, ((1, 2),))
    wished = "replication_factor: 3"
    key = ThrottleSide.LEADER.list_key
    moving.set(TOPIC, other, key, "*")
    (refusal,) = plan(tmp_path, moving, mine, wished).refusals
    moving.set(TOPIC, other, key, None)
    assert refusal.rule == "moves-throttle-left"
    assert f"reconciler moves unthrottle --topic {other} --cluster lab" in refusal.way_out

    for side in ThrottleSide:
        moving.set(BROKER, "", side.rate_key, str(20 << 20))
    made = plan(tmp_path, moving, mine, wished)
    moving.set_rate(None)
    assert made.refusals == ()
    assert "moves-rate-taken" in {note.rule for note in made.notes}
    assert made.moves is not None
    assert made.moves.forecast is not None
    assert made.moves.forecast.default_rate == 20 << 20
