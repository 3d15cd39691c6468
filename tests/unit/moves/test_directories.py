"""Moves between the log directories of brokers: what moves, what stays, and what is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from shorthand import brokers, cluster, may_move, topic

from reconciler.errors import Location, UsageError
from reconciler.model.cluster import (
    ClusterState,
    LogDirectory,
    Place,
    Reassignment,
    StoredReplica,
)
from reconciler.model.moves import DirectoryAim, PlannedDirectories
from reconciler.model.plan import Plan
from reconciler.model.requests import KafkaRequest
from reconciler.model.steps import Verb, steps_of
from reconciler.moves.directories import plan_directories
from reconciler.planfile.codec import decode_plan, encode_plan, fingerprint_plan
from reconciler.policy.policy import Policy, PolicyRule, Subject
from reconciler.show.moves import say_moves
from reconciler.spec.entry import ClusterEntry

ENTRY = ClusterEntry("prod", Location("topics/clusters.yaml", 2), moves=may_move())
DISKS = DirectoryAim(evens=True)
GIB = 2**30


def directory(path: str, held: int = 0, total: int = 100 * GIB) -> LogDirectory:
    return LogDirectory(path, total, total - held, 0)


def live(
    held: Mapping[str, Mapping[int, int]],
    *,
    totals: Mapping[str, int] | None = None,
    targets: Mapping[int, str] | None = None,
    **found: Any,
) -> ClusterState:
    """Return broker 1 and its directories: bytes by path, then by partition of the topic t."""
    totals, targets = totals or {}, targets or {}
    stored = {
        ("t", number): StoredReplica(path, size, targets.get(number, ""))
        for path, sizes in held.items()
        for number, size in sizes.items()
    }
    rows = ((1, 2),) * (1 + max(number for _, number in stored))
    directories = tuple(
        directory(path, sum(sizes.values()), totals.get(path, 100 * GIB))
        for path, sizes in held.items()
    )
    state = cluster(topic(rows, "t", **found), nodes=brokers(None, None))
    return replace(
        state,
        directories={1: directories, 2: (directory("/only"),)},
        stored={1: stored},
    )


def move(state: ClusterState, aim: DirectoryAim = DISKS, **asked: Any) -> Plan:
    return plan_directories(asked.pop("entry", ENTRY), (), state, aim, **asked)


def directories_of(plan: Plan) -> PlannedDirectories:
    assert plan.moves is not None
    assert plan.moves.directories is not None
    return plan.moves.directories


def list_moves(plan: Plan) -> dict[int, tuple[str, str]]:
    return {copy.partition: (copy.source, copy.target) for copy in directories_of(plan).copies}


def take_effect(plan: Plan, state: ClusterState) -> ClusterState:
    """Return a state after a plan."""
    stored: dict[Place, StoredReplica] = dict(state.stored[1])
    for copy in directories_of(plan).copies:
        place = copy.topic, copy.partition
        stored[place] = stored[place]._replace(path=copy.target)
    return replace(state, stored={1: stored})


def measure(state: ClusterState) -> Counter[str]:
    held: Counter[str] = Counter()
    for each in state.stored[1].values():
        held[each.path] += each.size_bytes
    return held


UNEVEN = {"/a": dict.fromkeys(range(8), GIB), "/b": {8: GIB, 9: GIB}, "/c": {10: GIB, 11: GIB}}


def test_directories_come_near_their_share_with_the_fewest_bytes() -> None:
    state = live(UNEVEN)
    made = move(state)
    after = take_effect(made, state)
    assert measure(after) == {"/a": 4 * GIB, "/b": 4 * GIB, "/c": 4 * GIB}
    planned = directories_of(made)
    assert (planned.unreached, planned.examined) == (False, 1)
    # The band may be reached from below: half of 10 % of each share.
    assert planned.least_bytes == pytest.approx(2 * 0.95 * 2 * GIB, rel=0.001)
    assert sum(copy.size_bytes for copy in planned.copies) == 4 * GIB
    assert made.topics[0].before is not None
    assert made.topics[0].after is not None
    assert made.topics[0].before.assignment == made.topics[0].after.assignment
    again = move(after)
    assert (again.topics, directories_of(again).copies) == ((), ())


def test_a_directory_twice_as_large_has_twice_the_share() -> None:
    totals = {"/a": 100 * GIB, "/b": 200 * GIB}
    state = live({"/a": dict.fromkeys(range(6), GIB), "/b": {}}, totals=totals)
    assert measure(take_effect(move(state), state)) == {"/a": 2 * GIB, "/b": 4 * GIB}


def test_without_totals_directories_have_equal_shares() -> None:
    state = live({"/a": dict.fromkeys(range(4), GIB), "/b": {}})
    unknown = tuple(replace(each, total_bytes=None) for each in state.directories[1])
    state = replace(state, directories={**state.directories, 1: unknown})
    entry = replace(ENTRY, moves=may_move(keep_free_percent=0))
    made = move(state, entry=entry)
    assert measure(take_effect(made, state)) == {"/a": 2 * GIB, "/b": 2 * GIB}
    assert made.refusals == ()
    (refused,) = move(state).refusals
    assert refused.rule == "moves-disk"
    assert "the disks of broker 1 are unknown" in refused.what


def test_what_is_inside_the_band_does_not_move() -> None:
    state = live({"/a": dict.fromkeys(range(11), GIB), "/b": dict.fromkeys(range(11, 20), GIB)})
    assert move(state).topics == ()
    assert list_moves(move(state, DirectoryAim(evens=True, within_percent=5.0)))


def test_the_plan_is_a_step_of_its_topic_and_its_file_keeps_it() -> None:
    state = live(UNEVEN)
    made = move(state)
    (planned,) = made.topics
    assert [step.verb for step in steps_of(planned)] == [Verb.RELOCATE]
    assert decode_plan(encode_plan(made)) == made
    elsewhere = move(live({**UNEVEN, "/d": {}}))
    assert fingerprint_plan(made) != fingerprint_plan(elsewhere)


def test_a_directory_is_emptied_and_the_others_only_take() -> None:
    state = live({"/a": {0: 5 * GIB}, "/b": {1: GIB}, "/c": {2: GIB, 3: GIB, 4: 0}})
    made = move(state, DirectoryAim(evens=False, emptied=frozenset({(1, "/c")})))
    assert list_moves(made) == {2: ("/c", "/b"), 3: ("/c", "/b"), 4: ("/c", "/b")}
    planned = directories_of(made)
    assert (planned.least_bytes, planned.emptied) == (2 * GIB, ((1, "/c"),))
    assert made.refusals == ()
    assert made.moves is not None
    assert made.moves.made_by == "rebalance --empty-dir 1:/c"


@pytest.mark.parametrize("spare", [0, 7])
def test_out_of_reach_a_few_bytes_nearer_are_not_worth_many_copied(spare: int) -> None:
    """Two large ones could change places with a middle one, and be nearer by four bytes."""
    state = live(
        {
            "/a": {0: 4 * GIB + 11 * spare, 1: 4 * GIB + 13 * spare, 2: GIB},
            "/b": {3: 2 * GIB + spare, 4: 2 * GIB + spare, 5: 2 * GIB},
        }
    )
    made = move(state)
    assert list_moves(made) == {2: ("/a", "/b")}
    assert directories_of(made).unreached
    assert move(take_effect(made, state)).topics == ()


def test_an_emptied_directory_keeps_nothing_although_others_leave_their_bands() -> None:
    state = live({"/a": {0: 7 * GIB}, "/b": {1: 7 * GIB}, "/c": {2: 5 * GIB}})
    aim = DirectoryAim(evens=True, emptied=frozenset({(1, "/c")}))
    made = move(state, aim)
    assert measure(take_effect(made, state))["/c"] == 0
    assert directories_of(made).unreached


def test_what_nobody_manages_leaves_an_emptied_directory_and_stays_otherwise() -> None:
    entry = replace(ENTRY, ignore=("t",))
    state = live(UNEVEN)
    assert move(state, entry=entry).topics == ()
    aim = DirectoryAim(evens=False, emptied=frozenset({(1, "/b")}))
    assert sorted(list_moves(move(state, aim, entry=entry))) == [8, 9]


def test_a_directory_without_room_for_it_is_not_emptied() -> None:
    state = live({"/a": {0: 80 * GIB}, "/b": {1: 30 * GIB}})
    made = move(state, DirectoryAim(evens=False, emptied=frozenset({(1, "/b")})))
    (refused,) = made.refusals
    assert str(refused.rule) == "moves-disk"
    assert "/b of broker 1 cannot be emptied" in refused.what
    assert "no room for 30.0 GiB with keep_free: 15%" in refused.what


@pytest.mark.parametrize(
    ("emptied", "said"),
    [
        ((1, "/z"), "broker 1 has no log directory /z; it has /a, /b, /c"),
        ((9, "/a"), "there is no broker 9; brokers: 1, 2"),
        ((2, "/only"), "no log directory besides those that are to be emptied"),
    ],
)
def test_a_directory_that_cannot_be_emptied_is_no_plan(emptied: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        move(live(UNEVEN), DirectoryAim(evens=False, emptied=frozenset({emptied})))


def test_nothing_is_emptied_on_a_broker_that_does_not_answer() -> None:
    state = live(UNEVEN)
    state = replace(state, directories={1: state.directories[1]})
    with pytest.raises(UsageError, match="broker 2 does not say which log directories it has"):
        move(state, DirectoryAim(evens=False, emptied=frozenset({(2, "/only")})))


def test_a_broker_with_a_failed_directory_is_left_to_offline_replicas() -> None:
    state = live(UNEVEN)
    failed = LogDirectory("/d", None, None, online=False)
    state = replace(state, directories={**state.directories, 1: (*state.directories[1], failed)})
    made = move(state)
    assert made.topics == ()
    (note,) = (note for note in made.notes if note.rule == "directories-left")
    assert note.what.startswith("left as they are (a log directory has failed; see --offline-rep")
    with pytest.raises(UsageError, match="/d of broker 1 has failed"):
        move(state, DirectoryAim(evens=False, emptied=frozenset({(1, "/a")})))


def test_a_cluster_of_single_directories_has_nothing_to_move() -> None:
    state = replace(cluster(topic("1,2", "t")), directories={1: (directory("/a"),)})
    made = move(state)
    assert made.topics == ()
    (note,) = (note for note in made.notes if note.rule == "directories-left")
    assert note.what == "left as they are (they have one log directory): all brokers"


def test_what_is_in_flight_counts_where_it_will_be_and_stays() -> None:
    state = live(UNEVEN, targets={0: "/b", 1: "/b"})
    assert sorted(path for _, path in list_moves(move(state)).values()) == ["/c", "/c"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"in_sync": ((2,),) * 12}, "not in sync"),
        ({"reassigning": frozenset(range(12))}, "being reassigned"),
    ],
)
def test_a_replica_that_is_not_at_rest_stays(change: Any, why: str) -> None:
    made = move(live(UNEVEN, **change))
    assert made.topics == ()
    (note,) = (note for note in made.notes if note.rule == "directories-left")
    assert f"({why}): t partition 0 on broker 1, " in note.what
    assert note.what.endswith(" and 7 more")


def test_a_partition_in_flight_stays() -> None:
    moving = tuple(Reassignment("t", n, (1, 2, 3), (3,), (2,)) for n in range(12))
    assert move(replace(live(UNEVEN), reassignments=moving)).topics == ()


def test_bytes_are_limited_and_only_named_topics_and_brokers_move() -> None:
    state = live(UNEVEN)
    limited = move(state, replace(DISKS, max_bytes=5 * GIB // 2))
    assert sum(copy.size_bytes for copy in directories_of(limited).copies) == 2 * GIB
    assert move(state, replace(DISKS, brokers=frozenset({2}))).topics == ()
    with pytest.raises(UsageError, match="no live topic of prod matches"):
        move(state, topics="x*")
    with pytest.raises(UsageError, match="there is no broker 7; brokers: 1, 2"):
        move(state, replace(DISKS, brokers=frozenset({7})))


def test_the_cluster_must_allow_it_and_its_brokers_offer_it() -> None:
    with pytest.raises(UsageError, match="does not allow rebalance"):
        move(live(UNEVEN), entry=replace(ENTRY, moves=may_move("replication")))
    lacking = frozenset({KafkaRequest.ALTER_LOG_DIRS})
    (refused,) = move(replace(live(UNEVEN), unoffered=lacking)).refusals
    assert refused.what == (
        "the brokers of prod do not offer AlterReplicaLogDirs, so replicas cannot be moved between "
        "log directories"
    )


def test_a_rule_of_the_team_refuses_a_topic() -> None:
    rule = PolicyRule(
        "calm",
        "!('relocate' in change.actions)",
        "Ask the platform team.",
        Location("topics/clusters.yaml", 9),
        subject=Subject.CHANGE,
    )
    made = move(live(UNEVEN), entry=replace(ENTRY, policy=Policy(rules={"calm": rule})))
    (refused,) = made.topics
    assert [str(finding.rule) for finding in refused.refusals] == ["policy-rule"]
    assert (steps_of(refused), directories_of(made).copies) == ((), ())


def test_the_plan_says_what_it_costs() -> None:
    entry = replace(ENTRY, moves=may_move(rate=GIB))
    assert dict(say_moves(move(live(UNEVEN, write_bytes_per_s=(7,) * 12), entry=entry))) == {
        "log directories": "1 broker with several · 3 are more than 10 % off the share · all "
        "within 5 % afterwards",
        "broker 1": "██████▓▓▓▓▓▓|··········· 2.0 GiB (-50 %) → 4.0 GiB (+0 %) · /c",
        "moves": "4 replicas are copied between log directories of 1 broker, 4.0 GiB · at most "
        "5.3 % above the fewest bytes possible",
        "time": "about 4 s at 1.0 GiB/s per broker · needs at least 42 B/s to end",
        "limits": "at most 50 replicas at once, 5 per broker, 15 % of each log directory stay free",
        "disks": "fullest is /b of broker 1: 2 → 4 % (limit 85 %)",
    }


def test_a_rate_below_the_writes_never_ends() -> None:
    entry = replace(ENTRY, moves=may_move(rate=10))
    (refused,) = move(live(UNEVEN, write_bytes_per_s=(7,) * 12), entry=entry).refusals
    assert refused.rule == "moves-rate-below-writes"
