"""Drains in a plan of moves: what leaves a broker, what stays on it and why, and what is said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from shorthand import HERE, brokers, cluster, may_move, rows, said, spec, topic

from reconciler.changes.plan import plan_cluster
from reconciler.errors import Location, Severity
from reconciler.model.cluster import (
    Broker,
    ClusterState,
    LogDirectory,
    Reassignment,
    TopicSpec,
    TopicState,
)
from reconciler.model.moves import MoveKind, MovePolicy, PlannedDrain
from reconciler.model.plan import Plan, PlannedTopic
from reconciler.model.requests import MOVING
from reconciler.model.steps import has_steps, steps_of
from reconciler.moves.plan import assemble_moves, plan_moves
from reconciler.moves.reassignments import plan_rows
from reconciler.moves.rebalance import plan_rebalance
from reconciler.planfile.codec import decode_plan, encode_plan, fingerprint_plan
from reconciler.policy.policy import Policy, PolicyRule, Subject
from reconciler.show.markdown.page import render_markdown
from reconciler.show.text import render_text
from reconciler.spec.changes import Changes, ClusterThen
from reconciler.spec.entry import ClusterEntry
from reconciler.styling import strip_colours

CLUSTERS = Location("topics/clusters.yaml", 2)
WHERE = Location("topics/clusters.yaml", 5)
AT = "topics/clusters.yaml:5:1: "
FOUR = brokers(None, None, None, None)


def entry(*drained: int, **more: Any) -> ClusterEntry:
    """Return a cluster that is to drain some brokers, broker 4 by default."""
    found = frozenset(drained or (4,))
    return ClusterEntry(
        "prod",
        CLUSTERS,
        exclude_brokers=found | more.pop("exclude_brokers", frozenset()),
        drain_brokers=found,
        moves=more.pop("moves", may_move()),
        fields={"drain_brokers": WHERE},
        **more,
    )


def live(*found: TopicState, **more: Any) -> ClusterState:
    """Return four brokers without racks that know cordons and show their log directories."""
    nodes = more.pop("nodes", FOUR)
    directories = {b.id: (LogDirectory("/data", 2**40, 2**39, 0),) for b in nodes if b.alive}
    state = {"can_cordon": True, "directories": directories, **more}
    return replace(cluster(*found, nodes=nodes), **state)


def drain(*specs: TopicSpec, state: ClusterState, of: ClusterEntry | None = None) -> Plan:
    return plan_moves(of or entry(), specs, state)


def drains(plan: Plan) -> tuple[PlannedDrain, ...]:
    assert plan.moves is not None
    return plan.moves.drains


def only(plan: Plan) -> PlannedTopic:
    (planned,) = plan.topics
    return planned


def rows_after(plan: Plan, name: str = "shop.orders") -> tuple[tuple[int, ...], ...]:
    (after,) = [topic.after for topic in plan.topics if topic.name == name]
    assert after is not None
    return after.assignment


def notes(plan: Plan, rule: str) -> list[str]:
    found = (note for note in plan.notes if note.rule == rule)
    return [text.removeprefix(AT) for text in said(found)]


# What leaves.


def test_replicas_of_files_of_no_file_ignored_and_internal_topics_leave() -> None:
    names = ("shop.orders", "unmanaged", "ignored", "__consumer_offsets")
    found = [topic("4,1 1,2", name, internal=name.startswith("__")) for name in names]
    made = drain(spec(replication_factor=2), state=live(*found), of=entry(ignore=("ignored",)))
    for name in names:
        first, _ = rows_after(made, name)
        assert 4 not in first
        assert 1 in first
    (planned,) = drains(made)
    assert (planned.broker, planned.topics, planned.replicas) == (4, 4, 4)
    assert planned.unnamed == ("__consumer_offsets", "ignored", "unmanaged")
    assert planned.stays == {}
    assert made.moves is not None
    assert (made.moves.replicas, made.moves.least_replicas) == (4, 4)


def test_a_topic_of_no_file_keeps_all_rows_that_are_not_on_the_broker() -> None:
    """Four rows are led by broker 1: a topic of a file would get other leaders."""
    found = topic("1,2 1,2 1,3 1,4", "unmanaged")
    assert rows_after(drain(state=live(found)), "unmanaged")[:3] == rows("1,2 1,2 1,3")
    managed = drain(spec("unmanaged", replication_factor=2), state=live(found))
    assert len({row[0] for row in rows_after(managed, "unmanaged")}) == 3


def test_rows_of_mixed_length_keep_their_lengths() -> None:
    found = topic("4 4,1 4,1,2 1", "unmanaged")
    assert list(map(len, rows_after(drain(state=live(found)), "unmanaged"))) == [1, 2, 3, 1]


def test_a_topic_may_grow_and_leave_the_broker_in_one_move() -> None:
    made = drain(spec(replication_factor=3), state=live(topic("4,1 1,2")))
    assert [set(row) for row in rows_after(made)] == [{1, 2, 3}, {1, 2, 3}]
    assert made.moves is not None
    assert (made.moves.replicas, made.moves.least_replicas) == (3, 3)


def test_a_topic_that_shrinks_drops_its_replica_on_the_broker() -> None:
    made = drain(spec(replication_factor=2), state=live(topic("4,1,2 1,2,4")))
    assert [set(row) for row in rows_after(made)] == [{1, 2}, {1, 2}]
    assert made.moves is not None
    assert made.moves.replicas == 0


def test_two_brokers_are_drained_together() -> None:
    made = drain(state=live(topic("3,4 4,1")), of=entry(3, 4))
    assert [set(row) for row in rows_after(made)] == [{1, 2}, {1, 2}]
    assert [(each.broker, each.replicas) for each in drains(made)] == [(3, 1), (4, 2)]


def test_without_brokers_to_drain_a_plan_of_moves_has_no_drain() -> None:
    of = ClusterEntry("prod", CLUSTERS, moves=may_move())
    made = drain(state=live(topic("4,1")), of=of)
    assert (made.topics, drains(made)) == ((), ())


# What is in flight.


def moving(current: str, adding: int, removing: int) -> Reassignment:
    ((*row,),) = rows(current)
    kept = [broker for broker in row if broker != removing]
    gone = (removing,) if removing in row else ()
    return Reassignment("shop.orders", 0, (*kept, adding, *gone), (adding,), gone)


def test_a_row_in_flight_off_the_broker_is_part_of_the_plan() -> None:
    flight = moving("4,1", 3, 4)
    made = drain(state=live(topic("1,3"), reassignments=(flight,)))
    assert rows_after(made) == rows("1,3")
    (planned,) = drains(made)
    assert (planned.replicas, planned.stays) == (1, {})


def test_a_row_that_another_tool_moves_to_the_broker_is_said_to_stay() -> None:
    flight = moving("1,2", 4, 2)
    made = drain(state=live(topic("1,4"), reassignments=(flight,)))
    assert steps_of(only(made)) == ()
    assert [note.rule for note in only(made).notes] == ["moves-foreign"]
    assert notes(made, "drain-incomplete") == [
        "broker 4 keeps replicas of 1 topic: shop.orders (being reassigned by another tool or "
        "run); plan "
        "again once these can move; the broker is not empty before that [drain-incomplete]"
    ]


# Refusals.


def refusals(plan: Plan) -> list[str]:
    planned = only(plan)
    assert planned.after == planned.before
    return said(planned.refusals)


def test_manual_rows_that_name_the_broker_are_refused() -> None:
    wished = spec(assignment=rows("4,1 1,2"))
    made = drain(wished, state=live(topic("4,1 1,2")))
    assert refusals(made) == [
        "topics/shop.yaml:3:1: partition 0 is assigned to broker 4, which drain_brokers empties; "
        "assign it to other brokers, or remove 4 from drain_brokers [broker-drained]"
    ]
    assert [why.partition(":")[0] for why in drains(made)[0].stays.values()] == ["refused"]


def test_manual_rows_without_the_broker_are_taken() -> None:
    wished = spec(assignment=rows("3,1 1,2"))
    assert rows_after(drain(wished, state=live(topic("4,1 1,2")))) == rows("3,1 1,2")


def test_too_few_other_brokers_refuse_the_topic_and_not_others() -> None:
    state = live(topic("4,1,2 1,2,3", "a"), topic("4,1", "b"))
    made = drain(state=state, of=entry(3, 4))
    planned = {each.name: each for each in made.topics}
    assert said(planned["a"].refusals) == [
        f"{AT}partitions 0, 1 need 3 brokers, and 2 can hold them without broker 3, 4; add "
        "brokers, or remove 3, 4 from drain_brokers [drain-impossible]"
    ]
    assert planned["b"].refusals == ()
    assert set(rows_after(made, "b")[0]) == {1, 2}


def test_a_single_row_without_enough_brokers_is_named_as_one() -> None:
    made = drain(state=live(topic("4,1,2,3")))
    assert refusals(made) == [
        f"{AT}partition 0 needs 4 brokers, and 3 can hold it without broker 4; add brokers, or "
        "remove 4 from drain_brokers [drain-impossible]"
    ]


def test_unknown_racks_refuse_a_drain() -> None:
    nodes = (Broker(1, "a"), Broker(2, "b"), Broker(3), Broker(4, "c"))
    made = drain(state=live(topic("4,1"), nodes=nodes))
    assert [finding.rule for finding in only(made).refusals] == ["racks-known"]


def test_a_drain_that_the_cluster_does_not_combine_with_other_moves_refuses_these() -> None:
    of = entry(moves=may_move("drain"))
    made = drain(spec(replication_factor=3), state=live(topic("4,1")), of=of)
    assert [finding.rule for finding in only(made).refusals] == ["replication-stays"]
    assert drains(made)[0].replicas == 0


def test_a_rule_of_the_team_keeps_a_topic_on_the_broker() -> None:
    rule = PolicyRule(
        "calm", "!('move' in change.actions)", "no moves this week", HERE, subject=Subject.CHANGE
    )
    of = entry(policy=Policy(rules={"calm": rule}))
    made = drain(state=live(topic("4,1", "unmanaged")), of=of)
    (why,) = drains(made)[0].stays.values()
    assert why.startswith("refused: ")
    assert "no moves this week" in why


# What stays.


def test_a_topic_to_be_deleted_stays_and_is_named() -> None:
    made = drain(spec(absent=True), state=live(topic("4,1")))
    assert made.topics == ()
    assert drains(made)[0].stays == {"shop.orders": "it will be deleted"}
    (warning,) = [note for note in made.notes if note.rule == "drain-incomplete"]
    assert warning.severity is Severity.WARNING


def test_a_glob_leaves_topics_on_the_broker() -> None:
    state = live(topic("4,1", "a"), topic("4,1", "b"))
    made = plan_moves(entry(), [spec("a")], state, topics="a")
    assert [each.name for each in made.topics] == ["a"]
    assert drains(made)[0].stays == {"b": "this plan leaves it out"}


def test_many_topics_that_stay_are_counted() -> None:
    state = live(*(topic("4,1", f"t{n}") for n in range(7)))
    (note,) = notes(plan_moves(entry(), [], state, topics="x"), "drain-incomplete")
    assert note.startswith("broker 4 keeps replicas of 7 topics: t0 (this plan leaves it out), ")
    assert "t4 (this plan leaves it out) and 2 more; " in note


# A request that changes some files.


def test_a_request_that_changes_clusters_yaml_drains_every_topic() -> None:
    state = live(topic("4,1", "a"), topic("4,1", "b"))
    written = spec("a", assignment=rows("3,1"))
    before = ClusterThen(replace(entry(), drain_brokers=frozenset()), {"a": written})
    changes = Changes("main", "base", {"prod": before})
    made = plan_moves(entry(), [written], state, changes=changes)
    assert [each.name for each in made.topics] == ["a", "b"]
    assert rows_after(made, "a") == rows("3,1")
    assert said(note for note in made.notes if note.rule == "plan-scope") == [
        "only specs that changed since main (base) are planned: 0 of 1 topics, and 2 others that "
        "move because clusters.yaml changed [plan-scope]"
    ]


def test_a_request_that_changes_a_topic_drains_only_the_rows_that_it_moves() -> None:
    nodes = (*FOUR[:3], replace(FOUR[3], cordoned=True))
    state = live(topic("4,1", "a"), topic("4,1", "b"), topic("4,1", "c"), nodes=nodes)
    written = [spec("a", replication_factor=3), spec("b", replication_factor=2)]
    then = {each.name: replace(each, replication_factor=2) for each in written}
    changes = Changes("main", "base", {"prod": ClusterThen(entry(), then)})
    made = plan_moves(entry(), written, state, changes=changes)
    assert only(made).refusals == ()
    assert set(rows_after(made, "a")[0]) == {1, 2, 3}
    assert drains(made) == ()
    assert notes(made, "drain-incomplete") == []


@pytest.mark.parametrize(
    ("before", "moved"),
    [
        (None, ["a", "b"]),
        (may_move(MoveKind.ASSIGNMENT), ["a", "b"]),
        (replace(may_move(), rate_bytes_per_s=7), ["b"]),
    ],
)
def test_a_request_that_allows_more_moves_covers_the_topics_that_wait_for_them(
    before: MovePolicy | None, moved: list[str]
) -> None:
    """Topic b is another one in the request, and another rate allows no other move."""
    now = ClusterEntry("prod", CLUSTERS, moves=may_move())
    written = {name: spec(name, replication_factor=3) for name in ("a", "b")}
    then = written | {"b": spec("b", replication_factor=2)}
    changes = Changes("main", "base", {"prod": ClusterThen(replace(now, moves=before), then)})
    state = live(topic("1,2", "a"), topic("1,2", "b"))
    made = plan_moves(now, written.values(), state, changes=changes)
    assert [each.name for each in made.topics] == moved


# Cordons.


@pytest.mark.parametrize(
    ("node", "more", "cordons"),
    [
        (Broker(4), {}, True),
        (Broker(4), {"can_cordon": False}, False),
        (Broker(4, cordoned=True), {}, False),
        (Broker(4, alive=False), {}, False),
    ],
    ids=["living", "before 4.3", "cordoned already", "dead"],
)
def test_only_a_living_broker_is_cordoned_and_once(
    node: Broker, more: dict[str, bool], cordons: bool
) -> None:
    made = drain(state=live(topic("3,1"), nodes=(*FOUR[:3], node), **more))
    assert [each.cordon for each in drains(made)] == [cordons]
    assert made.moves is not None
    assert made.moves.cordons == (frozenset({4}) if cordons else frozenset())


def test_rows_leave_a_broker_that_is_cordoned_already() -> None:
    nodes = (*FOUR[:3], Broker(4, cordoned=True))
    made = drain(state=live(topic("4,1"), nodes=nodes))
    assert only(made).refusals == ()
    assert 4 not in rows_after(made)[0]


def test_a_dead_broker_is_drained_by_its_other_replicas() -> None:
    nodes = (*FOUR[:3], Broker(4, alive=False))
    found = topic("4,1 1,4", in_sync=rows("1 1"), leaders=(1, 1))
    made = drain(state=live(found, nodes=nodes))
    assert all(4 not in row for row in rows_after(made))
    assert drains(made)[0].replicas == 2


def test_the_only_replica_on_a_dead_broker_cannot_leave_it() -> None:
    nodes = (*FOUR[:3], Broker(4, alive=False))
    made = drain(state=live(topic("4", in_sync=rows("4"), leaders=(-1,)), nodes=nodes))
    assert [finding.rule for finding in only(made).refusals] == ["moves-unhealthy"]


def test_the_fingerprint_covers_the_drains_and_their_cordons() -> None:
    made = drain(state=live(topic("4,1")))
    assert made.moves is not None
    (planned,) = drains(made)
    others = (
        (),
        (replace(planned, cordon=False),),
        (replace(planned, broker=3),),
        (planned, PlannedDrain(3)),
    )
    prints = {
        fingerprint_plan(replace(made, moves=replace(made.moves, drains=each))) for each in others
    }
    assert len(prints | {fingerprint_plan(made)}) == 5
    counted = replace(planned, replicas=9, topics=9, unnamed=(), stays={"a": "why"})
    alike = replace(made, moves=replace(made.moves, drains=(counted,)))
    assert fingerprint_plan(alike) == fingerprint_plan(made)


def test_drains_survive_a_saved_plan() -> None:
    state = live(topic("4,1", "a"), topic("4,1", "b"))
    made = plan_moves(entry(), [spec("a")], state, topics="a")
    assert decode_plan(encode_plan(made)) == made


# A plan that only cordons.


def cordon_only() -> Plan:
    return drain(state=live(topic("1,2")))


def test_a_plan_that_only_cordons_has_something_to_do() -> None:
    made = cordon_only()
    assert (made.topics, made.refusals) == ((), ())
    assert has_steps(made)
    done = drain(state=live(topic("1,2"), nodes=(*FOUR[:3], Broker(4, cordoned=True))))
    assert not has_steps(done)


def test_a_plan_that_only_cordons_is_shown_and_can_be_applied() -> None:
    shown = strip_colours(render_text(cordon_only()))
    assert "1 to cordon" in shown
    assert "drain 4" in shown
    assert "no replica is on it · cordoned first" in shown
    assert "reconciler apply moves.json" in render_markdown(cordon_only(), saved="moves.json")


# What is said of brokers that are empty, and of racks.


def test_an_empty_broker_may_go_and_the_steps_are_named() -> None:
    made = drain(state=live(topic("1,2")))
    assert notes(made, "drain-done") == [
        "broker 4 stores nothing; stop it, then unregister it with kafka-cluster unregister --id "
        "4, then remove 4 from drain_brokers [drain-done]"
    ]


def test_an_empty_broker_that_votes_leaves_the_quorum_first() -> None:
    (note,) = notes(drain(state=live(topic("1,2"), voters=frozenset({4, 5}))), "drain-done")
    assert "; remove it from the controllers' quorum if it votes there, then stop it, then " in note


def test_a_broker_that_does_not_live_need_not_be_stopped() -> None:
    nodes = (*FOUR[:3], Broker(4, alive=False))
    assert notes(drain(state=live(topic("1,2"), nodes=nodes)), "drain-done") == [
        "no replica is on broker 4; unregister it with kafka-cluster unregister --id 4, then "
        "remove 4 from drain_brokers [drain-done]"
    ]


def test_an_empty_broker_with_a_failed_log_directory_may_go() -> None:
    held = (LogDirectory("/a", 2**40, 2**39, 0), LogDirectory("/b", None, None, online=False))
    directories = dict.fromkeys(range(1, 5), held)
    (note,) = notes(drain(state=live(topic("1,2"), directories=directories)), "drain-done")
    assert note.startswith("broker 4 stores nothing; stop it, ")


@pytest.mark.parametrize(
    ("drained", "more", "way_out"),
    [((99,), {}, "remove the line"), ((4, 99), {}, "remove 99 from drain_brokers")],
)
def test_an_id_without_a_broker_is_drained_by_removing_it(
    drained: tuple[int, ...], more: dict[str, Any], way_out: str
) -> None:
    made = drain(state=live(topic("1,2"), lists_fenced=True, **more), of=entry(*drained))
    assert notes(made, "broker-not-registered") == [
        f"no broker 99 is registered: removed already, or a typo; {way_out} [broker-not-registered]"
    ]
    assert 99 not in [each.broker for each in drains(made)]
    assert not any("99" in note for note in notes(made, "drain-done"))


def test_an_id_is_perhaps_registered_where_brokers_do_not_tell() -> None:
    """Before Kafka 4.0 a registered broker that is stopped and empty is not shown."""
    made = drain(state=live(topic("1,2")), of=entry(98, 99))
    assert notes(made, "broker-not-registered") == [
        "no brokers 98, 99 are alive or have replicas: stopped, removed already, or a typo; "
        "remove the line, unless such a broker will join [broker-not-registered]"
    ]
    assert drains(made) == ()


def test_every_plan_and_key_names_ids_without_a_broker() -> None:
    of = entry(4, exclude_brokers=frozenset({77}), capacity={1: 2, 88: 3})
    state = live(topic("1,2"), lists_fenced=True)
    for made in (
        plan_cluster(of, [], state),
        plan_moves(of, [], state),
        plan_rebalance(of, [], state),
        plan_rows(of, {}, state, {("shop.orders", 0): (2, 1)}, "rows.json"),
    ):
        found = [note for note in made.notes if note.rule == "broker-not-registered"]
        assert [(note.what.split()[2], note.severity) for note in found] == [
            ("88", Severity.NOTE),
            ("77", Severity.NOTE),
        ]
        assert [note.way_out for note in found] == ["remove 88 from capacity", "remove the line"]


@pytest.mark.parametrize(
    ("directories", "what"),
    [
        ((LogDirectory("/data", 9, 9, 2),), "but its log directories hold 2 replicas"),
        ((LogDirectory("/data", 9, 9),), "but it does not show what its log directories store"),
        ((), "but it does not show what its log directories store"),
    ],
    ids=["stored", "not counted", "not shown"],
)
def test_a_broker_that_may_store_replicas_is_not_called_empty(
    directories: tuple[LogDirectory, ...], what: str
) -> None:
    made = drain(state=live(topic("1,2"), directories={4: directories}))
    assert notes(made, "drain-done") == []
    (note,) = notes(made, "drain-incomplete")
    assert what in note


def test_a_rack_that_loses_its_last_able_broker_is_named() -> None:
    nodes = brokers("a", "b", "c", "c")
    lost = drain(state=live(topic("4,1"), nodes=nodes), of=entry(3, 4))
    assert notes(lost, "drain-last-of-rack") == [
        "no other broker of rack c can take replicas, so rows are spread over the other racks "
        "only; add brokers to that rack first, unless you retire the rack [drain-last-of-rack]"
    ]
    kept = drain(state=live(topic("4,1"), nodes=nodes))
    assert notes(kept, "drain-last-of-rack") == []


def test_topics_of_no_file_are_named() -> None:
    one = drain(state=live(topic("4,1", "a")))
    assert notes(one, "drain-unnamed") == [
        "1 topic on broker 4 is unmanaged: a; a drain moves it as well [drain-unnamed]"
    ]
    many = drain(state=live(*(topic("4,1", f"t{n}") for n in range(7))))
    assert notes(many, "drain-unnamed") == [
        "7 topics on broker 4 are unmanaged: t0, t1, t2, t3, t4 and 2 more; a drain moves them as "
        "well [drain-unnamed]"
    ]


def test_a_plan_of_changes_says_that_a_drain_is_pending() -> None:
    made = plan_cluster(entry(), [], live(topic("4,1 1,2", "a"), topic("4,1", "b")))
    assert notes(made, "moves-pending") == [
        "broker 4 will be drained, and holds 2 replicas of 2 topics; plan it with reconciler plan "
        "--moves [moves-pending]"
    ]
    assert notes(plan_cluster(entry(), [], live(topic("1,2"))), "moves-pending") == []


def test_a_plan_of_changes_does_not_advise_moves_that_cannot_be_made() -> None:
    state = replace(live(topic("4,1", "a")), unoffered=frozenset(MOVING))
    made = plan_cluster(entry(), [], state)
    assert notes(made, "moves-pending") == []
    assert notes(made, "request-unoffered") == [
        "broker 4 will be drained, and holds 1 replica of 1 topic: the brokers do not offer "
        "ListPartitionReassignments and AlterPartitionReassignments, so replicas cannot be moved "
        "through Kafka; do it with the tools of the service, then plan again [request-unoffered]"
    ]


def test_the_same_plan_comes_of_the_rows_after_it() -> None:
    """What a drain leads to is drained: the second plan moves nothing."""
    state = live(topic("4,1 2,4", "a"), topic("4 3,4,1", "b"))
    made = assemble_moves(entry(), [spec("a", replication_factor=2)], state)
    after = {
        each.name: replace(state.topics[each.name], assignment=each.after.assignment)
        for each in made.topics
        if each.after
    }
    again = assemble_moves(entry(), [spec("a", replication_factor=2)], replace(state, topics=after))
    assert not any(map(steps_of, again.topics))
