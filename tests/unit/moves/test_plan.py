"""Plans of moves: whose rows change and how, what is in flight, what is refused or only noted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from shorthand import HERE, brokers, cluster, may_move, rows, said, spec, topic

from reconciler.changes.plan import plan_cluster
from reconciler.diff.refusals import BY_SERVICE
from reconciler.errors import Finding, Location, Severity, UsageError
from reconciler.model.cluster import (
    AcceptedChange,
    Broker,
    LogDirectory,
    Place,
    Reassignment,
    Replicas,
    Risk,
    TopicSpec,
    TopicState,
)
from reconciler.model.moves import MIN_INSYNC, MovePolicy
from reconciler.model.plan import Plan, PlannedTopic, RiskNote
from reconciler.model.requests import KafkaRequest
from reconciler.model.steps import MoveReplicas, ReorderReplicas, steps_of
from reconciler.moves.plan import assemble_moves, plan_moves
from reconciler.moves.reassignments import plan_rows
from reconciler.moves.rebalance import plan_rebalance
from reconciler.policy.policy import Policy, PolicyRule, Subject
from reconciler.show.text import render_text
from reconciler.spec.changes import Changes, ClusterThen
from reconciler.spec.entry import ClusterEntry

FOUR = brokers(None, None, None, None)
ENTRY = ClusterEntry("prod", Location("topics/clusters.yaml", 2), moves=may_move())
AT = "topics/shop.yaml:3:1: "


def move(wished: TopicSpec, *found: TopicState, entry: ClusterEntry = ENTRY, **state: Any) -> Plan:
    """Plan the moves of one spec on four brokers, unless `state` says otherwise."""
    nodes = state.pop("nodes", FOUR)
    live = replace(cluster(*found, nodes=nodes), **state)
    return assemble_moves(entry, [wished], live)


def read_rows(*partitions: tuple[str, int, list[int]]) -> dict[Place, Replicas]:
    return {(name, number): tuple(row) for name, number, row in partitions}


def only(plan: Plan) -> PlannedTopic:
    (planned,) = plan.topics
    return planned


def rows_after(plan: Plan) -> tuple[tuple[int, ...], ...]:
    after = only(plan).after
    assert after is not None
    return after.assignment


def in_flight(
    current: str, adding: str = "", removing: str = "", partition: int = 0, **more: Any
) -> Reassignment:
    """Return a reassignment; `current` is the row without what is added."""
    ((*row,),) = rows(current)
    ((*added,),) = rows(adding) if adding else ((),)
    ((*removed,),) = rows(removing) if removing else ((),)
    kept = [broker for broker in row if broker not in removed]
    name = more.pop("name", "shop.orders")
    return Reassignment(name, partition, (*kept, *added, *removed), tuple(added), tuple(removed))


# What moves.


def test_a_topic_that_is_to_grow_keeps_its_replicas_and_gets_others() -> None:
    made = move(spec(replication_factor=3), topic("1,2 2,3 3,1"))
    assert all(
        set(old) < set(new) for old, new in zip(rows("1,2 2,3 3,1"), rows_after(made), strict=True)
    )
    assert made.moves is not None
    assert (made.moves.replicas, made.moves.least_replicas) == (3, 3)
    (step,) = steps_of(only(made))
    assert isinstance(step, MoveReplicas)


def test_a_topic_that_is_to_shrink_copies_nothing() -> None:
    made = move(spec(replication_factor=1), topic("1,2 2,3 3,1"))
    assert sorted(rows_after(made)) == [(1,), (2,), (3,)]
    assert made.moves is not None
    assert (made.moves.replicas, made.moves.least_replicas) == (0, 0)


def test_fewer_replicas_keep_the_leader_of_every_row() -> None:
    made = move(spec(replication_factor=2), topic("1,2,3 1,3,2 2,1,3 1,2,3"))
    assert [row[0] for row in rows_after(made)] == [1, 1, 2, 1]
    assert made.moves is not None
    assert made.moves.leader_changes == 0


def test_a_leader_that_is_dead_or_out_of_sync_does_not_stay() -> None:
    nodes = (*FOUR[:3], Broker(4, alive=False))
    found = topic("4,1,2 3,1,2", in_sync=rows("1,2 1,2"))
    made = move(spec(replication_factor=2), found, nodes=nodes)
    assert [set(row) for row in rows_after(made)] == [{1, 2}, {1, 2}]


def test_manual_rows_are_taken_as_they_are() -> None:
    made = move(spec(assignment=rows("2,1 3,4 3,1")), topic("1,2 2,3 3,1"))
    assert rows_after(made) == rows("2,1 3,4 3,1")
    assert steps_of(only(made)) == (
        ReorderReplicas("shop.orders", {0: (2, 1)}),
        MoveReplicas("shop.orders", {1: (3, 4)}),
    )
    assert made.moves is not None
    assert (made.moves.replicas, made.moves.least_replicas, made.moves.leader_changes) == (1, 1, 2)


def test_manual_rows_count_as_load_for_other_topics() -> None:
    """Broker 4 is empty now, and full once the manual rows are there."""
    wished = [spec("a", replication_factor=2), spec("b", assignment=rows("4 4 4 4"))]
    state = cluster(topic("1", "a"), topic("2 2 3 3", "b"), nodes=FOUR)
    made = {t.name: t for t in assemble_moves(ENTRY, wished, state).topics}
    assert made["a"].after is not None
    assert made["a"].after.assignment[0][1] in (2, 3)


def test_new_partitions_do_not_concern_a_plan_of_moves() -> None:
    made = move(spec(partitions=5, replication_factor=2), topic("1 2 3"))
    assert len(rows_after(made)) == 3
    assert move(spec(partitions=5), topic("1 2 3")).topics == ()


@pytest.mark.parametrize(
    "found",
    [topic("1,2 2,3"), topic("1 2", "other")],
    ids=["as wished", "not there"],
)
def test_other_topics_are_not_in_the_plan(found: TopicState) -> None:
    made = move(spec(replication_factor=2), found)
    assert made.topics == ()
    assert made.moves is not None
    assert made.moves.replicas == 0


def test_a_topic_that_is_to_go_is_not_moved() -> None:
    assert move(spec(replication_factor=2, absent=True), topic("1 2")).topics == ()


def test_a_glob_chooses_topics() -> None:
    state = cluster(topic("1", "a"), topic("1", "b"))
    wished = [spec(name, replication_factor=2) for name in ("a", "b")]
    made = assemble_moves(ENTRY, wished, state, topics="b")
    assert ([t.name for t in made.topics], made.scope.topics) == (["b"], "b")


def test_replicas_go_only_to_brokers_that_take_them() -> None:
    nodes = (*FOUR, Broker(5, alive=False), Broker(6, cordoned=True))
    entry = replace(ENTRY, exclude_brokers=frozenset({4}))
    made = move(spec(replication_factor=3), topic("1,2 2,1"), entry=entry, nodes=nodes)
    assert {b for row in rows_after(made) for b in row} == {1, 2, 3}
    assert made.excluded == (4,)


def test_capacity_counts() -> None:
    entry = replace(ENTRY, capacity={4: 100})
    wished = [spec(name, replication_factor=2) for name in "abc"]
    state = cluster(*(topic(str(n), name) for n, name in enumerate("abc", 1)), nodes=FOUR)
    for given, most in ((entry, 3), (ENTRY, 1)):
        images = [planned.after for planned in assemble_moves(given, wished, state).topics]
        assert sum(4 in image.assignment[0] for image in images if image) == most


def test_a_cluster_without_moves_has_no_plan_of_moves() -> None:
    with pytest.raises(UsageError) as refused:
        move(spec(), topic(), entry=replace(ENTRY, moves=None))
    assert str(refused.value) == (
        "prod allows no moves; write moves: {allow: [replication], rate: 30MiB} below "
        "clusters.prod in clusters.yaml"
    )


# Topics internal to Kafka.


WHERE = Location("topics/clusters.yaml", 5)
RAISES = replace(
    ENTRY, internal_replication_factor=3, fields={"internal_replication_factor": WHERE}
)
OFFSETS, STATE = "__consumer_offsets", "__transaction_state"


def internal(assignment: str, name: str = OFFSETS) -> TopicState:
    return topic(assignment, name, internal=True)


def test_internal_topics_get_the_replicas_that_a_key_asks_for() -> None:
    live = (internal("1 2 3"), internal("1,2 2,3", STATE), topic("1 2", "unmanaged"))
    made = move(spec(replication_factor=3), *live, entry=RAISES)
    assert [planned.name for planned in made.topics] == [OFFSETS, STATE]
    for planned, state in zip(made.topics, live, strict=False):
        assert planned.after is not None
        assert planned.location == WHERE
        for old, new in zip(state.assignment, planned.after.assignment, strict=True):
            assert set(old) < set(new)
            assert len(new) == 3
    assert plan_cluster(RAISES, [], cluster(*live, nodes=FOUR)).topics == ()


def test_no_internal_topic_loses_a_replica() -> None:
    live = (internal("1,2,3,4 1"), internal("1,2,3,4", STATE))
    made = move(spec(), *live, entry=RAISES)
    assert rows_after(made)[0] == (1, 2, 3, 4)
    assert len(rows_after(made)[1]) == 4


def test_internal_topics_in_flight_to_what_the_key_asks_for_are_part_of_the_plan() -> None:
    moving = (in_flight("1", "3,4", name=OFFSETS),)
    made = move(spec(), internal("1,3,4 2"), entry=RAISES, reassignments=moving)
    assert rows_after(made)[0] == (1, 3, 4)
    assert len(rows_after(made)[1]) == 3


def test_more_replicas_of_internal_topics_than_brokers_are_refused_at_the_key() -> None:
    entry = replace(RAISES, internal_replication_factor=5)
    (refusal,) = only(move(spec(), internal("1 2"), entry=entry)).refusals
    assert (refusal.rule, refusal.where) == ("rf-le-brokers", WHERE)


def test_an_internal_topic_leaves_a_drained_broker_and_grows_in_one_move() -> None:
    drained = frozenset({4})
    entry = replace(RAISES, drain_brokers=drained, exclude_brokers=drained)
    assert set(rows_after(move(spec(), internal("4"), entry=entry))[0]) == {1, 2, 3}


def test_a_request_raises_internal_topics_only_if_it_changes_the_key() -> None:
    live = cluster(internal("1 2"), topic("1 2"), nodes=FOUR)
    for before, moved in ((ENTRY, [OFFSETS]), (RAISES, [])):
        changes = Changes("main", "base", {"prod": ClusterThen(before, {})})
        made = plan_moves(RAISES, [], live, changes=changes)
        assert [planned.name for planned in made.topics] == moved


def test_plans_of_changes_and_of_balance_say_what_is_pending_for_internal_topics() -> None:
    state = cluster(internal("1 2"), internal("1,2,3", STATE), topic("1,2,3"), nodes=FOUR)
    for made in (plan_cluster(RAISES, [], state), plan_rebalance(RAISES, [], state)):
        (note,) = said(n for n in made.notes if n.rule == "moves-pending")
        assert note == (
            "topics/clusters.yaml:5:1: internal_replication_factor 3 is pending for "
            "__consumer_offsets; plan it with reconciler plan --moves [moves-pending]"
        )


def test_internal_topics_are_not_called_pending_where_nothing_can_move_them() -> None:
    state = cluster(internal("1 2"), topic("1,2,3"), nodes=FOUR)
    lacking = frozenset({KafkaRequest.ALTER_REASSIGNMENTS})
    made = plan_cluster(RAISES, [], replace(state, unoffered=lacking))
    (note,) = said(n for n in made.notes if n.rule in ("moves-pending", "request-unoffered"))
    assert note == (
        "topics/clusters.yaml:5:1: internal_replication_factor 3 is not made for "
        "__consumer_offsets: the brokers do not offer AlterPartitionReassignments, so replicas "
        "cannot be moved through Kafka; do it with the tools of the service, then plan again "
        "[request-unoffered]"
    )
    thin = plan_cluster(ENTRY, [], replace(state, unoffered=lacking))
    assert [n.way_out for n in thin.notes if n.rule == "internal-replication"] == [BY_SERVICE]


@pytest.mark.parametrize(
    ("entry", "way_out"),
    [
        (ENTRY, ""),
        (
            replace(ENTRY, moves=may_move("drain", "rebalance")),
            ", add replication to moves.allow of this cluster in clusters.yaml",
        ),
    ],
    ids=["allowed", "not allowed"],
)
def test_every_plan_names_internal_topics_with_fewer_replicas_than_the_others(
    entry: ClusterEntry, way_out: str
) -> None:
    found = (topic("1,2,3"), topic("1,2,3", "b"), topic("1", "c"))
    state = cluster(internal("1 2"), internal("1,2 2,3", STATE), *found, nodes=FOUR)
    for make in (plan_cluster, plan_moves, plan_rebalance):
        notes = make(entry, [], state).notes
        assert [note for note in said(notes) if "internal" in note] == [
            "topics/clusters.yaml:2:1: internal topics have fewer replicas than most topics, which "
            "have 3: __consumer_offsets has 1, __transaction_state has 2; write "
            f"internal_replication_factor: 3 below this cluster in clusters.yaml{way_out}, and "
            "plan it with reconciler plan --moves [internal-replication]"
        ]


@pytest.mark.parametrize("usual", ["1", "1,2"])
def test_internal_topics_with_as_many_replicas_as_most_others_are_not_named(usual: str) -> None:
    state = cluster(internal("1,2"), topic(usual), topic(usual, "b"), topic("1,2,3", "c"))
    assert "internal-replication" not in {
        note.rule for note in plan_cluster(ENTRY, [], state).notes
    }


# A failed disk.


def failed(*brokers: int) -> dict[int, tuple[LogDirectory, ...]]:
    """Return two log directories of four brokers; the second one of some has failed."""
    good, bad = (
        LogDirectory("/a", 10**9, 9 * 10**8, 0),
        LogDirectory("/b", None, None, online=False),
    )
    return {n: (good, bad if n in brokers else replace(good, path="/b")) for n in range(1, 5)}


@pytest.mark.parametrize(
    ("found", "factor"),
    [
        (topic("3,1", in_sync=rows("1"), leaders=(1,)), 3),
        (topic("3,1 2", in_sync=rows("1 2"), leaders=(1, 2)), 2),
    ],
    ids=["a row that grows", "a row that keeps its replicas"],
)
def test_a_replica_on_a_failed_log_directory_is_not_the_preferred_leader(
    found: TopicState, factor: int
) -> None:
    wished = spec(replication_factor=factor)
    row, *_ = rows_after(move(wished, found, directories=failed(3)))
    assert 3 in row[1:]
    row, *_ = rows_after(move(wished, found, directories=failed()))
    assert row[0] == 3


def test_a_failed_log_directory_is_named_with_what_it_held() -> None:
    found = topic("3,1 1,3 3,2", in_sync=rows("1 1 3,2"), leaders=(1, 1, 3))
    state = replace(cluster(found, nodes=FOUR), directories=failed(3))
    asked = read_rows(("shop.orders", 0, [2, 1]))
    for made in (
        plan_cluster(ENTRY, [], state),
        plan_moves(ENTRY, [], state),
        plan_rebalance(ENTRY, [], state),
        plan_rows(ENTRY, {}, state, asked, "rows.json"),
    ):
        assert [text for text in said(made.notes) if text.endswith("[directory-offline]")] == [
            "topics/clusters.yaml:2:1: log directory /b of broker 3 is offline, and 2 replicas "
            "there are not in sync; replace the disk and restart the broker; or move these "
            "replicas to other brokers: reconciler rebalance --offline-replicas "
            "[directory-offline]"
        ]


def test_a_file_of_rows_moves_a_replica_off_a_failed_log_directory() -> None:
    found = topic("3,1", in_sync=rows("1"), leaders=(1,), size_bytes=(10,))
    state = replace(cluster(found, nodes=FOUR), directories=failed(3))
    made = plan_rows(ENTRY, {}, state, read_rows(("shop.orders", 0, [2, 1])), "rows.json")
    assert (made.refusals, only(made).refusals) == ((), ())
    assert rows_after(made) == rows("2,1")


# What is in flight.


def test_a_move_to_what_the_spec_asks_for_is_part_of_the_plan() -> None:
    moving = (in_flight("1", "4"),)
    made = move(spec(replication_factor=2), topic("1,4 2 3"), reassignments=moving)
    image = only(made).before
    assert image is not None
    assert image.assignment == rows("1 2 3")
    assert rows_after(made)[0] == (1, 4)
    assert made.moves is not None
    assert (made.moves.replicas, made.moves.least_replicas) == (3, 3)


def test_rows_in_flight_count_in_the_balance_of_their_topic() -> None:
    moving = (in_flight("1", "4"), in_flight("2", "4", partition=1))
    nodes = brokers(None, None, None, None, None)
    made = move(spec(replication_factor=2), topic("1,4 2,4 3"), nodes=nodes, reassignments=moving)
    assert 5 in rows_after(made)[2]


def test_a_manual_row_in_flight_is_part_of_the_plan() -> None:
    moving = (in_flight("2,3,1", "4", "1"),)
    made = move(spec(assignment=rows("2,3,4")), topic("2,3,4"), reassignments=moving)
    assert steps_of(only(made)) == (MoveReplicas("shop.orders", {0: (2, 3, 4)}),)


@pytest.mark.parametrize(
    ("wished", "flight"),
    [
        (spec(replication_factor=3), in_flight("1", "4")),
        (spec(replication_factor=2), in_flight("1,2", "4", "2")),
        (spec(assignment=rows("3,1 2 3")), in_flight("1", "3")),
    ],
    ids=["another size", "the size that it has", "another row"],
)
def test_a_topic_that_another_tool_moves_elsewhere_is_left_alone(
    wished: TopicSpec, flight: Reassignment
) -> None:
    found = topic((flight.target, (2,), (3,)))
    planned = only(move(wished, found, reassignments=(flight,)))
    assert (steps_of(planned), planned.refusals) == ((), ())
    assert said(planned.notes) == [
        f"{AT}partition 0 is being reassigned, to other brokers than this plan needs, so the topic "
        "is left as it is; wait until that has ended, or cancel it, and plan again: reconciler "
        "moves status shows it [moves-foreign]"
    ]


def test_a_topic_in_flight_in_a_snapshot_is_left_alone() -> None:
    found = topic("1 2", reassigning=frozenset({1}))
    planned = only(move(spec(replication_factor=2), found))
    assert (steps_of(planned), [note.rule for note in planned.notes]) == ((), ["moves-foreign"])


def test_a_plan_that_cannot_know_what_is_in_flight_is_refused() -> None:
    blind = Finding("reassignments-unseen", "no one answers", "ask again", None, Severity.WARNING)
    state = replace(cluster(topic("1 2"), nodes=FOUR), notes=(blind,))
    made = plan_moves(ENTRY, [spec(replication_factor=2)], state)
    assert [finding.rule for finding in made.refusals] == ["reassignments-unseen", "moves-disk"]
    assert made.refusals[0].severity is Severity.ERROR
    assert "reassignments-unseen" not in {note.rule for note in made.notes}


def test_other_topics_in_flight_are_named() -> None:
    moving = tuple(in_flight("1", "2", name=f"t{n}") for n in range(7))
    made = move(spec(replication_factor=2), topic("1"), reassignments=moving)
    (note,) = made.notes
    assert note.what == "other topics are being reassigned: t0, t1, t2, t3, t4 and 2 more"


# Refusals.


def refuse(wished: TopicSpec, *found: TopicState, **more: Any) -> list[str]:
    planned = only(move(wished, *found, **more))
    assert planned.after == planned.before
    return [text.removeprefix(AT) for text in said(planned.refusals)]


def test_what_the_cluster_does_not_allow_is_refused_with_its_fields() -> None:
    entry = replace(ENTRY, moves=may_move("assignment"))
    planned = only(move(spec(replication_factor=2), topic("1"), entry=entry))
    assert [finding.rule for finding in planned.refusals] == ["replication-stays"]
    assert [field.path for field in planned.refused_change] == ["replication_factor"]


def test_more_replicas_than_brokers_are_refused() -> None:
    (refusal,) = refuse(spec(replication_factor=5), topic("1"))
    assert refusal.startswith("replication_factor 5 exceeds the 4 brokers that can take replicas; ")


def test_fewer_replicas_need_no_eligible_broker() -> None:
    entry = replace(ENTRY, exclude_brokers=frozenset({1, 2, 3, 4}))
    made = move(spec(replication_factor=2), topic("1,2,3"), entry=entry)
    assert len(rows_after(made)[0]) == 2


def test_unknown_racks_are_refused() -> None:
    nodes = (Broker(1, "a"), Broker(2, "b"), Broker(3))
    (refusal,) = refuse(spec(replication_factor=2), topic("1"), nodes=nodes)
    assert refusal.endswith("[racks-known]")


def test_a_manual_row_gets_no_replica_on_a_broker_that_takes_none() -> None:
    nodes = (*FOUR, Broker(5, alive=False))
    entry = replace(ENTRY, exclude_brokers=frozenset({1}))
    found = refuse(spec(assignment=rows("1,5 1,2")), topic("1,2 2,3"), nodes=nodes, entry=entry)
    assert [text.partition(";")[0] for text in found] == [
        "partition 0 is assigned to broker 5, which is not alive",
        "partition 1 is assigned to broker 1, which exclude_brokers or drain_brokers keeps out",
    ]


def test_fewer_manual_rows_than_partitions_are_refused() -> None:
    (refusal,) = refuse(spec(assignment=rows("2 1")), topic("1 2 3"))
    assert refusal.startswith("3 → 2 partitions: Kafka cannot remove partitions")


def test_a_row_that_keeps_a_cordoned_broker_is_refused() -> None:
    nodes = (*FOUR[:3], Broker(4, cordoned=True))
    said = "a replica on broker 4, whose log directories are all cordoned; brokers refuse to "
    end = "change such a row; uncordon broker 4 first [broker-cordoned]"
    assert refuse(spec(replication_factor=2), topic("4 1 4"), nodes=nodes) == [
        f"partitions 0, 2 keep {said}{end}"
    ]
    wished = spec(assignment=rows("1,4 2,1"))
    assert refuse(wished, topic("4,1 4,2"), nodes=nodes) == [f"partition 0 keeps {said}{end}"]


def test_a_row_of_the_right_length_on_a_cordoned_broker_stays_in_its_order() -> None:
    nodes = (*FOUR[:3], Broker(4, cordoned=True))
    made = move(spec(replication_factor=2), topic("4,1 4,2 4,3 1"), nodes=nodes)
    assert rows_after(made)[:3] == rows("4,1 4,2 4,3")


def test_a_partition_without_a_leader_is_refused() -> None:
    nodes = (*FOUR[:3], Broker(4, alive=False))
    end = "no leader, so there is nothing to copy from; start broker 4 and plan again "
    found = topic("4 1 4", leaders=(-1, 1, -1), in_sync=rows("4 1 4"))
    assert refuse(spec(replication_factor=2), found, nodes=nodes) == [
        f"partitions 0, 2 have {end}[moves-unhealthy]"
    ]
    assert refuse(spec(replication_factor=2), topic("1 4"), nodes=nodes) == [
        f"partition 1 has {end}[moves-unhealthy]"
    ]


def test_a_partition_of_the_right_length_without_a_leader_stays_as_it_is() -> None:
    nodes = (*FOUR[:2], Broker(3, alive=False), Broker(4, alive=False))
    made = move(spec(replication_factor=2), topic("4,3 1"), nodes=nodes)
    assert (rows_after(made)[0], only(made).refusals) == ((4, 3), ())


def test_the_only_replica_in_sync_is_not_dropped_by_hand() -> None:
    found = topic("1,2", in_sync=rows("1"))
    assert refuse(spec(assignment=rows("2")), found) == [
        "partition 0 keeps no replica that is alive and in sync; wait until the replicas that stay "
        "are in sync and plan again [moves-unhealthy]"
    ]
    assert rows_after(move(spec(assignment=rows("2,3")), found)) == rows("2,3")


def test_replicas_that_writes_need_are_not_dropped_by_hand() -> None:
    found = topic("1,2,3 2,1,3", in_sync=rows("1,2 1,2"), config={MIN_INSYNC: "2"})
    end = f"fewer in-sync replicas than {MIN_INSYNC} 2, so every acks=all write would fail; wait "
    assert refuse(spec(assignment=rows("1,3 2,1")), found) == [
        f"partition 0 keeps {end}until the replicas that stay are in sync and plan again "
        "[moves-unhealthy]"
    ]
    assert rows_after(move(spec(replication_factor=2), found)) == rows("1,2 2,1")
    unwritable = replace(found, in_sync=rows("1 1"))
    assert rows_after(move(spec(assignment=rows("1,3 2,1")), unwritable)) == rows("1,3 2,1")


def test_a_refused_topic_takes_no_room_and_does_not_refuse_others() -> None:
    wished = [spec("a", replication_factor=9), spec("b", replication_factor=2)]
    state = cluster(topic("1", "a"), topic("1 2", "b"), nodes=FOUR)
    planned = {t.name: t for t in assemble_moves(ENTRY, wished, state).topics}
    assert [bool(planned[name].refusals) for name in "ab"] == [True, False]
    alone = assemble_moves(ENTRY, wished[1:], state)
    assert planned["b"] == only(alone)


def test_a_rule_of_the_team_refuses_moves() -> None:
    rule = PolicyRule(
        "calm", "!('move' in change.actions)", "no moves this week", HERE, subject=Subject.CHANGE
    )
    entry = replace(ENTRY, policy=Policy(rules={"calm": rule}))
    (refusal,) = refuse(spec(replication_factor=2), topic("1"), entry=entry)
    assert "no moves this week" in refusal
    reordered = move(spec(assignment=rows("2,1")), topic("1,2"), entry=entry)
    assert only(reordered).refusals == ()


# Risks, and min.insync.replicas.


def test_copies_are_traffic_and_fewer_replicas_cost_durability() -> None:
    grown = move(spec(replication_factor=2, acknowledge=frozenset({"traffic"})), topic("1 2"))
    assert only(grown).risks == (RiskNote(Risk.TRAFFIC, "2 replicas are copied", True),)
    shrunk = move(spec(replication_factor=1), topic("1,2 2,3"))
    text = "a partition has 1 replica, where it had 2"
    field = "replication_factor"
    assert only(shrunk).risks == (RiskNote(Risk.DURABILITY, text, field=field),)


UNCLEAN = {"unclean.leader.election.enable": "true"}


@pytest.mark.parametrize(
    ("live", "state"),
    [({"config": UNCLEAN}, {}), ({}, {"config_defaults": UNCLEAN})],
    ids=["of the topic", "default of the brokers"],
)
def test_a_copy_that_may_be_elected_before_it_is_complete_is_a_risk(
    live: dict[str, Any], state: dict[str, Any]
) -> None:
    _, loss = only(move(spec(replication_factor=2), topic("1 2", **live), **state)).risks
    assert loss == RiskNote(
        Risk.DATA_LOSS,
        "unclean.leader.election.enable is true: if the replicas in sync fail, a copy that is not "
        "complete may become leader, and what it lacks is lost",
        field="config.unclean.leader.election.enable",
    )
    shrunk = move(spec(replication_factor=1), topic("1,2 2,3", **live), **state)
    assert [note.risk for note in only(shrunk).risks] == [Risk.DURABILITY]


@pytest.mark.parametrize(("before", "acknowledged"), [("2", True), ("3", False)])
def test_fewer_replicas_are_acknowledged_as_one_change(before: str, acknowledged: bool) -> None:
    one = AcceptedChange("durability", "replication_factor", before, "1", HERE)
    shrunk = move(spec(replication_factor=1, accepts=(one,)), topic("1,2 2,3"))
    assert [note.acknowledged for note in only(shrunk).risks] == [acknowledged]


def lowered(wished: TopicSpec, *found: TopicState, **state: Any) -> dict[str, int]:
    made = move(wished, *found, **state)
    assert made.moves is not None
    return dict(made.moves.min_insync)


def test_min_insync_is_lowered_to_what_is_in_sync_and_put_back() -> None:
    found = topic("1 2", config={MIN_INSYNC: "2", "retention.ms": "1"})
    made = move(spec(replication_factor=3), found)
    planned = only(made)
    assert made.moves is not None
    assert made.moves.min_insync == {"shop.orders": 1}
    assert planned.before is not None
    assert planned.after is not None
    assert planned.before.config == planned.after.config == {MIN_INSYNC: "2"}
    assert said(planned.notes) == [
        f"{AT}{MIN_INSYNC} is 1 while replicas are copied, and 2 again afterwards; otherwise every "
        "acks=all write would fail until the first copy is in sync [moves-min-insync]"
    ]


def test_a_default_is_lowered_by_an_override_and_unset_afterwards() -> None:
    found = topic("1 2")
    assert lowered(spec(replication_factor=3), found, config_defaults={MIN_INSYNC: "2"}) == {
        "shop.orders": 1
    }
    planned = only(move(spec(replication_factor=3), found, config_defaults={MIN_INSYNC: "2"}))
    assert planned.before is not None
    assert planned.before.config == {}


@pytest.mark.parametrize(
    ("found", "replication", "value"),
    [
        (topic("1,2 2,3", config={MIN_INSYNC: "2"}), 3, None),
        (topic("1,2,3 2,3,4", config={MIN_INSYNC: "2"}), 1, None),
        (topic("1,2 2,3", config={MIN_INSYNC: "2"}, in_sync=rows("1 2,3")), 3, None),
        (topic("1,2 2,3", config={MIN_INSYNC: "3"}), 4, 2),
        (topic("1,2 2,3", config={MIN_INSYNC: "all"}), 3, None),
        (topic("1 2,3", config={MIN_INSYNC: "3"}), 3, 1),
    ],
    ids=["enough in sync", "shrinks", "fails already", "two of two", "no number", "the fewest"],
)
def test_min_insync_is_lowered_only_where_writes_would_begin_to_fail(
    found: TopicState, replication: int, value: int | None
) -> None:
    expected = {} if value is None else {"shop.orders": value}
    assert lowered(spec(replication_factor=replication), found) == expected


def test_a_replica_that_moves_counts_twice_meanwhile() -> None:
    """[1] to [2] has two replicas during the copy, one of them in sync."""
    wished, found = spec(assignment=rows("2")), topic("1")
    assert lowered(wished, found, config_defaults={MIN_INSYNC: "2"}) == {"shop.orders": 1}


# The whole plan.


def test_limits_that_the_cluster_declares_are_in_the_plan() -> None:
    policy = MovePolicy(frozenset(may_move().allow), None, 8, 2, 0, 5)
    made = move(spec(), topic(), entry=replace(ENTRY, moves=policy))
    assert made.moves is not None
    assert made.moves.policy == policy


def test_images_hold_no_config_and_the_rest_of_the_plan_says_what_others_say() -> None:
    found = [topic("1 2", config={"retention.ms": "1"}), topic("1", "other")]
    made = move(spec(replication_factor=2, owner="shop"), *found)
    planned = only(made)
    assert planned.before is not None
    assert (planned.before.topic_id, planned.before.config) == ("id-shop.orders", {})
    assert (planned.location, planned.owner) == (HERE, "shop")
    assert (made.cluster, made.cluster_id, made.live_topics, made.files) == (
        "prod",
        "cluster-1",
        2,
        1,
    )
    assert made.balance_before != made.balance_after


def test_a_plan_whose_cost_is_unknown_is_refused_as_a_whole() -> None:
    state = cluster(topic("1 2"), nodes=FOUR)
    made = plan_moves(ENTRY, [spec(replication_factor=2)], state)
    assert [finding.rule for finding in made.refusals] == ["moves-disk"]
    assert "moves-disk" in render_text(made)


def test_a_plan_has_its_forecast() -> None:
    """Two partitions of 1 MiB go to brokers with one directory each."""
    state = cluster(topic("1 2", size_bytes=(2**20, 2**20)), nodes=FOUR)
    disks = {broker.id: (LogDirectory("/data", 2**30, 2**29),) for broker in FOUR}
    made = plan_moves(ENTRY, [spec(replication_factor=2)], replace(state, directories=disks))
    assert made.refusals == ()
    assert made.moves is not None
    assert made.moves.forecast is not None
    assert made.moves.forecast.copied_bytes == 2 * 2**20
