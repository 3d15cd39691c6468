"""The rows of an approved rebalance: taken while they hold, and what is said if they do not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from shorthand import brokers, cluster, may_move, topic

from reconciler.errors import Location
from reconciler.model.cluster import ClusterState, LogDirectory
from reconciler.model.moves import AskedRebalance, LoadAim, LoadKind
from reconciler.model.plan import Plan
from reconciler.moves.asked import plan_asked
from reconciler.moves.needs import NeedKind, find_need
from reconciler.moves.rebalance import plan_rebalance
from reconciler.planfile.approval import Approval, keep_moved, list_moved_rows
from reconciler.planfile.codec import fingerprint_plan
from reconciler.spec.entry import ClusterEntry

DISK = LoadAim((LoadKind.DISK,))
ENTRY = ClusterEntry(
    "prod", Location("topics/clusters.yaml", 2), moves=may_move(), balance=DISK,
    rebalance=AskedRebalance(DISK, "2026-12-15"),
)  # fmt: skip
FOUR = brokers(None, None, None, None)


def live(*grown: str, by: float = 1.02, nodes: Any = FOUR, **found: Any) -> ClusterState:
    """Return four topics, most of which is on broker 1. Some have grown."""
    each = [
        topic("1,2 1,3 1,4 1,2", name=f"shop.t{n}", size_bytes=(100 + n, 110 + n, 90 + n, 95))
        for n in range(4)
    ]
    sized = [
        replace(one, size_bytes=tuple(round(size * by) for size in one.size_bytes))
        if one.name in grown
        else one
        for one in each
    ]
    disks = {b.id: (LogDirectory("/data", 10**6, 9 * 10**5, 0),) for b in nodes}
    state = replace(cluster(*sized, nodes=nodes), directories=disks, read_on="2026-12-01")
    return replace(state, **found)


def alter(state: ClusterState, name: str, **fields: Any) -> ClusterState:
    return replace(state, topics=dict(state.topics) | {name: replace(state.topics[name], **fields)})


def ask(state: ClusterState, entry: ClusterEntry = ENTRY, **options: Any) -> Plan:
    return plan_asked(entry, (), state, **options)


MADE = ask(live())
APPROVED = Approval(fingerprint_plan(MADE), moved=list_moved_rows(MADE))
FIRST = ("shop.t0", 1)
USED = "the approved rows are used: they bring the same brokers inside their bands as new rows"


def keep(state: ClusterState, entry: ClusterEntry = ENTRY, to: Approval = APPROVED) -> Plan:
    return keep_moved(to, lambda approved: ask(state, entry, approved=approved))


def notes_of(plan: Plan) -> list[str]:
    return [note.what for note in plan.notes if note.rule == "approved-rows"]


@pytest.mark.parametrize("by", [1.02, 1.1, 1.3])
def test_approved_rows_are_taken_while_topics_grow(by: float) -> None:
    state = live("shop.t0", by=by)
    fresh = ask(state)
    assert fingerprint_plan(fresh) != APPROVED.fingerprint
    made = keep(state)
    assert fingerprint_plan(made) == APPROVED.fingerprint
    assert list_moved_rows(made) == APPROVED.moved
    assert notes_of(made) == [USED]
    # What is shown are the sizes of today, and the bands at whose ends a balance acts.
    assert made.moves is not None
    assert made.moves.balance is not None
    band = made.moves.balance.bands[0]
    assert not made.moves.balance.unreached
    assert all(broker.low <= broker.after <= broker.high for broker in band.brokers)
    size = sum(2 * sum(each.size_bytes) for each in state.topics.values())
    assert sum(broker.after for broker in band.brokers) == size


def test_the_same_sizes_give_the_same_plan_without_a_note() -> None:
    assert notes_of(keep(live())) == []
    assert notes_of(ask(live(), approved=APPROVED.moved)) == []


def test_rows_of_a_rebalance_alone_are_kept() -> None:
    assert list_moved_rows(replace(MADE, moves=None)) == {}
    assert MADE.moves is not None
    assert list_moved_rows(replace(MADE, moves=replace(MADE.moves, balance=None))) == {}
    assert APPROVED.moved[FIRST] == ((1, 3), (3, 1))
    assert ("shop.t0", 0) not in APPROVED.moved


THREE = (*FOUR[:3], replace(FOUR[3], alive=False))


@pytest.mark.parametrize(
    ("state", "entry", "why"),
    [
        (live("shop.t0", by=3), ENTRY,
         "brokers 1, 4 stay outside the band of disk with them"),
        (alter(live("shop.t1"), "shop.t0", assignment=((1, 2), (1, 4), (1, 4), (1, 2))), ENTRY,
         "shop.t0 partition 1 is on 1, 4 by now"),
        (alter(live("shop.t1"), "shop.t0", assignment=((1, 2),), size_bytes=(100,)), ENTRY,
         "shop.t0 has no partition 1 any more; shop.t0 has no partition 2 any more"),
        (live("shop.t0"), replace(ENTRY, exclude_brokers=frozenset({4})),
         "shop.t1 partition 0 may not move to broker 4 now; shop.t2 partition 3 may not move to "
         "broker 4 now; shop.t3 partition 0 may not move to broker 4 now; and 1 more"),
        (live("shop.t0", nodes=brokers("a", "b", "b", "b")), ENTRY,
         "they break a rule: of racks, of the spread of a topic, or of free space"),
        (live("shop.t0", directories={
            **live().directories, 4: (LogDirectory("/data", 10**6, 150_050, 0),)}), ENTRY,
         "they break a rule: of racks, of the spread of a topic, or of free space"),
        (alter(live("shop.t1"), "shop.t0", in_sync=((1, 2), (1,), (1, 4), (1, 2))), ENTRY,
         "shop.t0 partition 1 may not move now"),
    ],
)  # fmt: skip
def test_rows_that_do_not_hold_leave_the_new_plan_and_say_why(
    state: ClusterState, entry: ClusterEntry, why: str
) -> None:
    fresh, made = ask(state, entry), keep(state, entry)
    assert notes_of(made) == [f"the approved rows are not used: {why}"]
    assert made.topics == fresh.topics


def test_nothing_moves_once_every_broker_is_inside_its_band() -> None:
    even = live()
    for n in range(4):
        even = alter(even, f"shop.t{n}", assignment=((1, 2), (2, 3), (3, 4), (4, 1)))
    wide = replace(ENTRY, rebalance=AskedRebalance(replace(DISK, within_percent=20), "2026-12-15"))
    made = keep(even, wide)
    assert made.topics == ()
    assert notes_of(made) == ["the approved rows are not used: a new plan moves nothing"]


def test_leaders_alone_take_no_rows_that_copy() -> None:
    aim = LoadAim(leaders_only=True)
    made = plan_rebalance(ENTRY, (), live(), aim=aim, approved=APPROVED.moved)
    (note,) = notes_of(made)
    assert "may not move to broker 4 now" in note


def test_what_else_changed_is_said() -> None:
    slower = replace(ENTRY, moves=replace(may_move(), at_once_broker=1))
    made = keep(live("shop.t0"), slower)
    assert notes_of(made) == ["the new plan is not the approved one, even with the approved rows"]
    unknown = keep(live("shop.t0"), to=Approval(APPROVED.fingerprint))
    assert notes_of(unknown) == ["the new plan is not the approved one, whose rows are unknown"]


def test_a_night_keeps_the_plan_that_its_request_shows() -> None:
    asks = replace(ENTRY, rebalance=None)
    need, plan = find_need(asks, (), live("shop.t0"), APPROVED.moved)
    assert need.kind is NeedKind.BAND
    assert plan is not None
    assert fingerprint_plan(plan) == APPROVED.fingerprint
    _, other = find_need(asks, (), live("shop.t0", by=3), APPROVED.moved)
    assert other is not None
    assert fingerprint_plan(other) != APPROVED.fingerprint
