"""What a plan of changes leaves to a plan of moves, and what it holds back until then."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from shorthand import brokers, cluster, diff, may_move, rows, said, spec, topic

from reconciler.diff.fields import FieldChange
from reconciler.model.cluster import Broker, TopicState
from reconciler.model.moves import MIN_INSYNC, MovePolicy
from reconciler.model.requests import MOVING, KafkaRequest

AT = "topics/shop.yaml:3:1: "
PLAN_IT = "plan it with reconciler plan --moves [moves-pending]"
ALL = may_move()
LIVE = brokers(None, None, None)


def changed(
    found: TopicState, moves: MovePolicy | None = ALL, /, **wished: Any
) -> tuple[list[str], list[str], list[str]]:
    """Return the paths that change now, the notes, and the refusals."""
    made = diff(spec(**wished), cluster(found), moves=moves)
    notes, refusals = ([t.removeprefix(AT) for t in said(f)] for f in (made.notes, made.refusals))
    return [change.path for change in made.changes], notes, refusals


@pytest.mark.parametrize("wished", [1, 3])
def test_another_replication_factor_is_pending(wished: int) -> None:
    assert changed(topic("1,2 2,3"), replication_factor=wished) == (
        [],
        [f"replication_factor 2 → {wished} is pending; {PLAN_IT}"],
        [],
    )


def test_other_rows_are_pending_with_their_order() -> None:
    found = topic("1,2 2,3 3,1")
    assert changed(found, assignment=rows("2,1 2,3 3,2")) == (
        [],
        [f"the assignment of 2 partitions is pending; {PLAN_IT}"],
        [],
    )


@pytest.mark.parametrize("lacking", MOVING)
def test_nothing_is_called_pending_that_no_plan_can_move(lacking: KafkaRequest) -> None:
    state = replace(cluster(topic("1,2 3")), unoffered=frozenset({lacking}))
    made = diff(spec(partitions=3, replication_factor=2), state, moves=ALL)
    assert said(made.notes) == [
        f"{AT}replication_factor 1 → 2 is not made, and partitions 2 → 3 waits for that: the "
        f"brokers do not offer {lacking}, so replicas cannot be moved through Kafka; do it with "
        "the tools of the service, then plan again [request-unoffered]"
    ]


def test_rows_of_another_length_need_both_kinds() -> None:
    found, wished = topic("1 2"), rows("1,2 2,3")
    said = "replication_factor 1 → 2 and the assignment of 2 partitions are pending"
    assert changed(found, assignment=wished) == ([], [f"{said}; {PLAN_IT}"], [])
    _, _, refusals = changed(found, may_move("replication"), assignment=wished)
    way_out = "or add assignment to moves.allow of this cluster in clusters.yaml [replicas-stay]"
    assert [text.rpartition(", ")[2] for text in refusals] == [way_out, way_out]
    _, _, (refusal,) = changed(found, may_move("assignment"), assignment=wished)
    assert refusal.endswith(
        "or add replication to moves.allow of this cluster in clusters.yaml [replication-stays]"
    )


def test_without_moves_the_way_out_shows_all_that_is_to_be_written() -> None:
    _, notes, refusals = changed(topic("1"), None, assignment=rows("1,2"))
    block = "moves: {allow: [replication, assignment], rate: 30MiB}"
    assert notes == []
    assert [f"write {block} below this cluster in clusters.yaml" in text for text in refusals] == [
        True,
        True,
    ]


def test_a_topic_that_is_refused_has_nothing_pending() -> None:
    made = diff(spec(assignment=rows("2,1")), cluster(topic("1")), moves=may_move("replication"))
    assert (made.pending, made.notes) == ((), ())
    assert [change.path for change in made.changes] == ["assignment.0", "replication_factor"]


def test_other_changes_of_the_topic_are_made_now() -> None:
    paths, notes, refusals = changed(
        topic("1,2 2,3"), replication_factor=3, config={"retention.ms": "1"}
    )
    assert (paths, len(notes), refusals) == (["config.retention.ms"], 1, [])


# Partitions and replicas together.


def test_new_partitions_get_the_replicas_that_the_topic_has_now() -> None:
    made = diff(spec(partitions=4, replication_factor=3), cluster(topic("1,2 2,3")), moves=ALL)
    assert (made.new_partitions, made.replication_factor) == (2, 2)
    assert [change.path for change in made.changes] == ["partitions"]
    assert made.pending == (FieldChange("replication_factor", 2, 3),)


def test_new_manual_rows_of_another_length_wait_for_the_moves() -> None:
    found = topic("1 2")
    made = diff(spec(assignment=rows("1,2 2,3 3,1")), cluster(found), moves=ALL)
    assert (made.new_partitions, made.given, made.changes) == (0, None, ())
    assert said(made.notes) == [
        f"{AT}replication_factor 1 → 2 and the assignment of 2 partitions are pending, and "
        f"partitions 2 → 3 waits for that; {PLAN_IT}"
    ]


def test_new_manual_rows_of_the_same_length_do_not_wait() -> None:
    made = diff(spec(assignment=rows("2 2 3")), cluster(topic("1 2")), moves=ALL)
    assert (made.new_partitions, made.given) == (1, rows("3"))
    assert [change.path for change in made.pending] == ["assignment.0"]


def test_new_partitions_wait_until_the_existing_ones_have_the_same_number_of_replicas() -> None:
    paths, notes, refusals = changed(topic("1,2 3"), partitions=3, replication_factor=2)
    assert (paths, refusals) == ([], [])
    assert notes == [
        f"replication_factor 1 → 2 is pending, and partitions 2 → 3 waits for that; {PLAN_IT}"
    ]


# min.insync.replicas.

HELD = (
    f"{MIN_INSYNC} {{}} → {{}} is pending: a partition has {{}} in sync, so every acks=all write "
    "would fail; plan again once the moves have ended [moves-pending]"
)


def test_min_insync_is_not_raised_above_what_is_in_sync_before_the_moves() -> None:
    found = topic("1 2", config={MIN_INSYNC: "1"})
    paths, notes, refusals = changed(found, replication_factor=3, config={MIN_INSYNC: "2"})
    assert (paths, refusals) == ([], [])
    assert notes[1] == HELD.format(1, 2, "1 replica")


def test_a_held_value_stays_as_it_is() -> None:
    wished = spec(replication_factor=3, config={MIN_INSYNC: "2", "retention.ms": "1"})
    made = diff(wished, cluster(topic("1 2")), moves=ALL)
    assert made.config == {"retention.ms": "1"}
    made = diff(wished, cluster(topic("1 2", config={MIN_INSYNC: "1"})), moves=ALL)
    assert made.config == {MIN_INSYNC: "1", "retention.ms": "1"}


def test_an_override_is_not_unset_where_the_default_is_too_high() -> None:
    found = cluster(topic("1 2", config={MIN_INSYNC: "1"}), defaults={MIN_INSYNC: "2"})
    made = diff(spec(replication_factor=2), found, moves=ALL)
    assert (made.config, made.changes) == ({MIN_INSYNC: "1"}, ())


def test_min_insync_is_set_now_where_enough_replicas_are_in_sync() -> None:
    found = topic("1,2 2,3", config={MIN_INSYNC: "1"}, in_sync=rows("1,2 2,3"))
    paths, notes, _ = changed(found, replication_factor=3, config={MIN_INSYNC: "2"})
    assert (paths, len(notes)) == ([f"config.{MIN_INSYNC}"], 1)


def test_min_insync_stays_low_while_replicas_are_copied() -> None:
    found = topic(
        "1,2,3 2,3,1", config={MIN_INSYNC: "1"}, in_sync=rows("1 2,3,1"), reassigning=frozenset({0})
    )
    paths, notes, _ = changed(found, replication_factor=3, config={MIN_INSYNC: "2"})
    assert (paths, notes) == ([], [HELD.format(1, 2, "1 replica")])


def test_min_insync_is_lowered_at_once() -> None:
    found = topic("1,2,3 2,3,1", config={MIN_INSYNC: "2"}, in_sync=rows("1 2,3,1"))
    paths, _, refusals = changed(found, replication_factor=1, config={MIN_INSYNC: "1"})
    assert (paths, refusals) == ([f"config.{MIN_INSYNC}"], [])


# What is in sync now.

UNSYNCED = (
    f"so every acks=all write to {{}} would fail with {MIN_INSYNC} {{}}; plan again once the "
    "replicas on {} are in sync"
)


def raising(
    found: TopicState, value: int, /, nodes: tuple[Broker, ...] = LIVE, default: int | None = None
) -> list[str]:
    """Return what is refused where a spec raises the value."""
    defaults = {} if default is None else {MIN_INSYNC: str(default)}
    made = diff(
        spec(config={MIN_INSYNC: str(value)}), cluster(found, nodes=nodes, defaults=defaults)
    )
    return [text.removeprefix(AT) for text in said(made.refusals)]


def test_min_insync_is_not_raised_above_what_is_in_sync() -> None:
    found = topic("1,2,3 2,3,1 3,1,2", config={MIN_INSYNC: "2"}, in_sync=rows("1,2 2,3,1 1,2"))
    assert raising(found, 3) == [
        "partitions 0, 2 have fewer than 3 replicas in sync, "
        f"{UNSYNCED.format('them', 3, 'broker 3')}, or keep {MIN_INSYNC} 2 until then "
        "[min-insync-le-in-sync]"
    ]


def test_a_partition_that_cannot_be_written_to_counts_too() -> None:
    """It would take longer until it can be again."""
    found = topic("1,2,3", config={MIN_INSYNC: "2"}, in_sync=rows("1"))
    assert raising(found, 3) == [
        "partition 0 has fewer than 3 replicas in sync, "
        f"{UNSYNCED.format('it', 3, 'brokers 2, 3')}, or keep {MIN_INSYNC} 2 until then "
        "[min-insync-le-in-sync]"
    ]


def test_an_unset_value_counts_as_that_of_the_brokers() -> None:
    lagging = topic("1,2,3", in_sync=rows("1,2"))
    assert raising(lagging, 2, default=1) == []
    (raised,) = raising(lagging, 3, default=1)
    assert raised.endswith(f", or keep {MIN_INSYNC} 1 until then [min-insync-le-in-sync]")
    (unknown,) = raising(lagging, 3)
    assert unknown.endswith("on broker 3 are in sync [min-insync-le-in-sync]")


def test_an_override_that_is_unset_may_raise_it_to_the_default() -> None:
    found = topic("1,2,3", config={MIN_INSYNC: "1"}, in_sync=rows("1"))
    made = diff(spec(), cluster(found, defaults={MIN_INSYNC: "2"}))
    assert [refusal.rule for refusal in made.refusals] == ["min-insync-le-in-sync"]


def test_a_value_that_is_only_lowered_needs_no_replica_in_sync() -> None:
    assert raising(topic("1,2,3", config={MIN_INSYNC: "3"}, in_sync=rows("1")), 2) == []


def test_other_changes_do_not_depend_on_what_is_in_sync() -> None:
    found = topic("1,2,3", config={MIN_INSYNC: "3"}, in_sync=rows("1"))
    wished = spec(config={MIN_INSYNC: "3", "retention.ms": "1"})
    assert diff(wished, cluster(found)).refusals == ()


def test_kafka_requires_at_most_all_replicas() -> None:
    found = topic("1 2,3", config={MIN_INSYNC: "1"}, in_sync=rows("1 2,3"))
    assert [r.rule for r in diff(spec(config={MIN_INSYNC: "2"}), cluster(found)).refusals] == [
        "min-insync-le-replication"
    ]


def test_replicas_on_dead_brokers_are_out_of_sync_where_a_snapshot_does_not_say() -> None:
    found = topic("1,2,3", config={MIN_INSYNC: "2"})
    assert raising(found, 3) == []
    nodes = (*LIVE[:2], Broker(3, alive=False))
    assert [text.rpartition(" ")[2] for text in raising(found, 3, nodes)] == [
        "[min-insync-le-in-sync]"
    ]


def test_replicas_that_a_reassignment_removes_are_in_sync_until_then() -> None:
    found = topic(
        "4,2,3", config={MIN_INSYNC: "2"}, in_sync=rows("1,2,3"), reassigning=frozenset({0})
    )
    assert raising(found, 3) == []
