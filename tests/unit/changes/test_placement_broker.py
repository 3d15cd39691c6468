"""Placement by the brokers: counts are planned and no broker is, also in a file and back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from shorthand import brokers, cluster, diff, plan, said, spec, topic

from reconciler.changes.plan import plan_cluster
from reconciler.errors import Location
from reconciler.model.cluster import BY_BROKERS, ClusterState, TopicSpec, leave_to_brokers
from reconciler.model.moves import LoadKind
from reconciler.model.steps import CreateTopic, ExpandTopic, brokers_of, steps_of
from reconciler.planfile.codec import decode_plan, encode_plan, fingerprint_plan
from reconciler.show.explain.matrix import build_matrix
from reconciler.show.text import render_text
from reconciler.spec.entry import ClusterEntry
from reconciler.spec.services import Placement

BROKER = Placement.BROKER
LIVE = cluster(topic("1,2 2,3"), topic("1", "other"))


def new(**wished: Any) -> TopicSpec:
    return spec("new", **{"partitions": 3, "replication_factor": 2, **wished})


def grown(**wished: Any) -> TopicSpec:
    return spec(partitions=5, acknowledge=frozenset({"ordering"}), **wished)


def test_a_new_topic_is_planned_by_its_counts() -> None:
    (planned,) = plan([new()], LIVE, placement=BROKER).topics
    assert steps_of(planned) == (CreateTopic("new", leave_to_brokers(3, 2), {}),)
    assert brokers_of(steps_of(planned)[0]) == frozenset()


def test_new_partitions_have_as_many_replicas_as_the_live_ones() -> None:
    (planned,) = plan([grown()], LIVE, placement=BROKER).topics
    assert steps_of(planned) == (ExpandTopic("shop.orders", 2, leave_to_brokers(3, 2)),)
    assert planned.after is not None
    assert planned.after.assignment[:2] == ((1, 2), (2, 3))


@pytest.mark.parametrize(
    "state",
    [
        cluster(),
        cluster(nodes=brokers("a", None)),  # racks of which reconciler could promise nothing
    ],
)
def test_how_many_brokers_there_are_is_not_asked(state: ClusterState) -> None:
    """A service may show one address for all of its brokers."""
    assert diff(new(replication_factor=9), state, placement=BROKER).refusals == ()
    assert diff(new(replication_factor=9), state).refusals != ()


def test_the_balance_after_the_plan_is_not_known() -> None:
    made = plan([new(), grown()], LIVE, placement=BROKER)
    assert made.balance_before is not None
    assert made.balance_after is None
    assert made.levels == ()
    assert [topic.balance_after for topic in made.topics] == [None, None]
    assert "cluster: leaders 0..2, replicas 1..2 per broker now; the brokers place" in render_text(
        made
    )


def test_a_plan_that_places_nothing_has_a_balance() -> None:
    made = plan([spec(config={"flush.ms": "1"})], LIVE, placement=BROKER)
    assert made.balance_before == made.balance_after


def test_a_refused_topic_leaves_the_balance_known() -> None:
    made = plan([new(config={"min.insync.replicas": "3"})], LIVE, placement=BROKER)
    assert made.topics[0].refusals
    assert made.balance_after is not None


def test_replicas_that_exist_are_refused_without_an_edit_that_moves_them() -> None:
    (refusal,) = said(diff(spec(replication_factor=3), LIVE, placement=BROKER).refusals)
    assert "put 2 back, or change it with the service's own tools" in refusal


def test_proposed_rows_are_not_used_and_not_missed() -> None:
    """An approved plan that has none of its own comes back with the plan that is made again."""
    rows = {"new": leave_to_brokers(3, 2)}
    made = plan([new()], LIVE, placement=BROKER, proposed=rows)
    assert made.notes == ()
    assert made == plan([new()], LIVE, placement=BROKER)


def test_rows_of_the_brokers_are_refused_where_reconciler_places() -> None:
    made = plan([new()], LIVE, proposed={"new": leave_to_brokers(3, 2)})
    assert [note.rule for note in made.notes] == ["approved-rows"]
    assert made.topics == plan([new()], LIVE).topics


def test_a_plan_file_keeps_it() -> None:
    made = plan([new(), grown()], LIVE, placement=BROKER)
    text = encode_plan(made)
    assert f"[[{BY_BROKERS},{BY_BROKERS}]" in text
    assert '"partitions":3,"replication_factor":2' in text
    assert decode_plan(text) == made
    assert encode_plan(decode_plan(text)) == text


def test_who_places_is_part_of_what_is_approved() -> None:
    theirs, ours = (plan([new()], LIVE, placement=each) for each in (BROKER, Placement.RECONCILER))
    assert fingerprint_plan(theirs) != fingerprint_plan(ours)


def test_the_racks_of_brokers_are_not_part_of_what_is_approved() -> None:
    moved = cluster(*LIVE.topics.values(), nodes=brokers("a", "b", "c"))
    marks = {fingerprint_plan(plan([new()], each, placement=BROKER)) for each in (LIVE, moved)}
    assert len(marks) == 1


def test_the_explanation_shows_what_is_there_now() -> None:
    made = plan([grown()], LIVE, placement=BROKER)
    matrix = build_matrix("shop.orders", made, LIVE)
    assert matrix.rows == LIVE.topics["shop.orders"].assignment
    assert matrix.odds is None
    assert {column.broker for column in matrix.columns} == {1, 2, 3}
    assert matrix.reasons[0] == (
        "The brokers place 3 new partitions × 2 replicas. Shown is what is there now; "
        "explain again after apply."
    )


def test_a_new_topic_is_explained_without_rows() -> None:
    matrix = build_matrix("new", plan([new()], LIVE, placement=BROKER), LIVE)
    assert matrix.rows == ()
    assert matrix.reasons[0].startswith("The brokers place 3 new partitions × 2 replicas.")


def test_weights_have_no_effect_and_need_not_be_known() -> None:
    entry = ClusterEntry("prod", Location("topics/clusters.yaml", 2), placement=BROKER)
    made = plan_cluster(entry, [new()], LIVE, by=LoadKind.DISK)
    assert said(note for note in made.notes if note.rule == "placement-keys") == [
        "--by disk has no effect, since the brokers of prod place replicas (placement: broker "
        "in clusters.yaml); leave it out [placement-keys]"
    ]
    counted = plan_cluster(entry, [new()], LIVE)
    assert replace(made, notes=()) == replace(counted, notes=())
