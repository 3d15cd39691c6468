"""What a cluster needs that changes by itself: which need comes first, and what leaves it alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from shorthand import brokers, cluster, may_move, spec, topic

from reconciler.errors import Finding, Location, PlanFileError, Severity
from reconciler.model.cluster import LogDirectory, Reassignment
from reconciler.model.moves import AskedRebalance, LoadAim, LoadKind
from reconciler.moves.needs import Need, NeedKind, find_need
from reconciler.planfile.need import decode_need, encode_need
from reconciler.spec.entry import ClusterEntry

ENTRY = ClusterEntry("prod", Location("topics/clusters.yaml", 2), moves=may_move())
FOUR = brokers(None, None, None, None)
EVEN = topic("1,2 2,3 3,4 4,1")
JOINED = topic("1,2 2,3 3,1 1,2 2,3 3,1")
"""Broker 4 holds nothing."""
LEFT = topic("1,2 1,2 1,3 1,2 1,3 4,1", name="shop.left")
"""Broker 1 has every partition."""


def live(*found: Any, nodes: Any = FOUR, **state: Any) -> Any:
    sized = [replace(each, size_bytes=(10,) * len(each.assignment)) for each in found]
    disks = {b.id: (LogDirectory("/data", 10**9, 9 * 10**8, 0),) for b in nodes}
    read = replace(cluster(*sized, nodes=nodes), directories=disks, read_on="2026-12-01")
    return replace(read, **state)


def find(state: Any, *specs: Any, entry: ClusterEntry = ENTRY) -> Need:
    need, plan = find_need(entry, specs, state)
    assert (plan is not None) == need.is_asked
    return need


def test_a_cluster_inside_its_band_needs_nothing() -> None:
    need = find(live(EVEN))
    assert (need.kind, need.why) == (NeedKind.NOTHING, "every broker is inside its band")
    assert find(live()).why == "it has no topics"


def test_brokers_that_hold_nothing_have_joined() -> None:
    need = find(live(JOINED))
    assert (need.kind, need.brokers, need.key) == (NeedKind.JOINED, (4,), "rebalance")
    assert need.why == "Broker 4 holds no replica of any topic."
    assert need.costs.startswith("3 replicas copied, 30 B, ")


@pytest.mark.parametrize(
    "other",
    [
        {"entry": replace(ENTRY, exclude_brokers=frozenset({4}))},
        {"nodes": (*FOUR[:3], replace(FOUR[3], alive=False))},
    ],
)
def test_a_broker_that_takes_no_replicas_has_not_joined(other: Any) -> None:
    entry = other.pop("entry", ENTRY)
    assert find(live(JOINED, **other), entry=entry).kind is NeedKind.NOTHING


def test_a_broker_outside_its_band_is_named_with_the_aim() -> None:
    need = find(live(LEFT))
    assert (need.kind, need.brokers) == (NeedKind.BAND, ())
    assert need.why.startswith("Brokers 1, ")
    assert need.why.endswith("left the band of 10 % around the share of count.")
    # Another order of its rows is enough for leaders.
    wide = find(live(LEFT), entry=replace(ENTRY, balance=LoadAim(within_percent=100)))
    assert (wide.kind, wide.costs.partition(",")[0]) == (NeedKind.BAND, "0 replicas copied")


def test_internal_topics_with_too_few_replicas_come_first() -> None:
    thin = topic("1", name="__consumer_offsets", internal=True)
    need = find(live(JOINED, thin))
    assert (need.kind, need.factor) == (NeedKind.INTERNAL, 2)
    assert need.key == "internal_replication_factor"
    assert need.why.endswith("__consumer_offsets has 1.")
    # Without the right to add replicas, and where a key is there already, it is not asked for.
    only = replace(ENTRY, moves=may_move("rebalance"))
    assert find(live(JOINED, thin), entry=only).kind is NeedKind.JOINED
    # What the key asks for is to be made first.
    asked = replace(ENTRY, internal_replication_factor=2)
    assert find(live(JOINED, thin), entry=asked).kind is NeedKind.UNKNOWN


def test_a_rebalance_that_is_asked_for_already_is_not_asked_for_again() -> None:
    asked = replace(ENTRY, rebalance=AskedRebalance(LoadAim(), "2026-12-02"))
    need = find(live(JOINED), entry=asked)
    assert need.kind is NeedKind.NOTHING
    assert need.why == "clusters.yaml already asks for a rebalance until 2026-12-02"
    over = replace(ENTRY, rebalance=AskedRebalance(LoadAim(), "2026-12-01"))
    assert find(live(JOINED), entry=over).kind is NeedKind.JOINED


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"reassignments": (Reassignment("x", 0, (1, 2), (), ()),)}, "replicas are being moved"),
        (
            {"notes": (Finding("cluster-rights", "hidden", severity=Severity.NOTE),)},
            "topics are hidden from the account",
        ),
        ({"specs": [spec(replication_factor=3)]}, "the estate asks for other moves"),
        (
            {"entry": replace(ENTRY, balance=LoadAim((LoadKind.WRITE,)))},
            "no plan can be made: no write_bytes_per_s is known",
        ),
        ({"entry": replace(ENTRY, moves=may_move(max_bytes=1))}, "max_bytes allows 1B"),
    ],
)
def test_what_cannot_be_judged_now_is_not_known(more: dict[str, Any], why: str) -> None:
    entry, specs = more.pop("entry", ENTRY), more.pop("specs", ())
    need = find(live(JOINED, **more), *specs, entry=entry)
    assert need.kind is NeedKind.UNKNOWN
    assert why in need.why


def test_a_cluster_that_allows_no_rebalance_is_asked_nothing() -> None:
    for moves in (None, may_move("drain")):
        need = find(live(JOINED), entry=replace(ENTRY, moves=moves))
        assert (need.kind, need.why) == (NeedKind.NOTHING, "moves.allow has no rebalance")


def test_a_need_is_the_same_after_it_was_saved() -> None:
    need = replace(find(live(JOINED)), fingerprint="a" * 64)
    assert decode_need(encode_need(need), "need.json") == need
    with pytest.raises(PlanFileError, match=r"need.json does not say what a cluster needs"):
        decode_need('{"cluster": "prod"}', "need.json")
