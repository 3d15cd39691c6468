"""Why a topic could not be spread more evenly, in sentences with the numbers.

A spread is optimal if no new replica can move to a broker that holds at least two fewer: then the
sum of squares is minimal, because the feasible counts are an M-convex set. So a sentence names the
fullest and the emptiest broker, and the constraint between them. This module shares no code with
placement, so that it can find a mistake there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from reconciler.model.cluster import Assignment, Broker
from reconciler.placement.problem import count_load
from reconciler.units import count

NAMED = 5
"""The number of brokers that a sentence names; it counts the rest."""


@dataclass(frozen=True)
class Growth:
    """New partitions of one topic next to the existing ones, on the eligible brokers."""

    brokers: tuple[Broker, ...]
    existing: Assignment
    new: Assignment
    rack_aware: bool = True

    @cached_property
    def ids(self) -> tuple[int, ...]:
        """The brokers' ids."""
        return tuple(sorted(broker.id for broker in self.brokers))

    @cached_property
    def rack_of(self) -> Mapping[int, str]:
        """The rack of each broker; one rack for all brokers if the topic ignores racks."""
        return {b.id: (b.rack or "") if self.rack_aware else "" for b in self.brokers}

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        """The number of brokers per rack."""
        return Counter(self.rack_of.values())

    @cached_property
    def added(self) -> tuple[Counter[int], Counter[int]]:
        """New leaders and new replicas by broker."""
        return count_load([self.new])

    @cached_property
    def totals(self) -> tuple[Counter[int], Counter[int]]:
        """Leaders and replicas by broker, existing ones included."""
        return count_load([self.existing, self.new])

    @cached_property
    def share(self) -> Mapping[str, tuple[int, int]]:
        """The least and the most replicas of one new partition that each rack may hold."""
        least = dict.fromkeys(self.sizes, 0)
        left = len(self.new[0]) if self.new else 0
        while roomy := [rack for rack, size in self.sizes.items() if least[rack] < size]:
            if len(roomy) > left:
                break
            least |= {rack: least[rack] + 1 for rack in roomy}
            left -= len(roomy)
        more = {rack: int(left > 0 and least[rack] < size) for rack, size in self.sizes.items()}
        return {rack: (least[rack], least[rack] + more[rack]) for rack in self.sizes}

    def in_rack(self, rack: str) -> int:
        """Count the new replicas in a rack."""
        return sum(n for broker, n in self.added[1].items() if self.rack_of.get(broker) == rack)


def give_reasons(growth: Growth) -> Iterator[str]:
    """State that leaders and replicas are optimal, or which constraint prevents it."""
    if not growth.ids or not (growth.existing or growth.new):
        return
    leaders, replicas = ({b: total[b] for b in growth.ids} for total in growth.totals)
    if not growth.rack_aware:
        yield "The spec says rack_aware: false, so racks are not looked at."
    if not growth.new:
        yield "Nothing new is placed, and existing replicas stay where they are."
        return
    if _skew(leaders) <= 1 and _skew(replicas) <= 1:
        counts = f"{count(sum(leaders.values()), 'leader')} and {sum(replicas.values()):,} replicas"
        brokers = count(len(growth.ids), "broker")
        yield f"As even as {counts} on {brokers} can be."
        return
    if _skew(leaders) > 1:
        yield f"Leaders {_range(leaders)} per broker: {_why_leaders(growth, leaders)}."
    if _skew(replicas) > 1:
        yield f"Replicas {_range(replicas)} per broker: {_why_replicas(growth, replicas)}."


def _why_leaders(growth: Growth, totals: Mapping[int, int]) -> str:
    new = growth.added[0]
    least = min(totals.values())
    movable = [broker for broker in growth.ids if new[broker] and totals[broker] - least > 1]
    if movable:
        return _not_forced(max(movable, key=lambda b: totals[b]), _emptiest(totals))
    return _existing_stay(totals, new, "led")


def _why_replicas(growth: Growth, totals: Mapping[int, int]) -> str:
    pair = next(_improvements(growth, totals), None)
    if pair:
        return _not_forced(*pair)
    fullest = max(growth.ids, key=lambda broker: (totals[broker], -broker))
    emptiest = _emptiest(totals)
    leaders, replicas = growth.added
    if not replicas[fullest]:
        return _existing_stay(totals, replicas, "held")
    if replicas[emptiest] == len(growth.new):
        held = totals[emptiest] - replicas[emptiest]
        return (
            f"broker {emptiest} held {held} and takes one replica of every new partition, "
            "which is all that a broker can"
        )
    if not _racks_let(growth, fullest, emptiest):
        return _why_racks(growth, fullest, emptiest)
    few = f"all {leaders[fullest]} new replicas on broker {fullest} are leaders"
    if leaders[fullest] == 1:
        few = f"the new replica on broker {fullest} is a leader"
    return f"{few}, and even leaders go before even replicas"


def _improvements(growth: Growth, totals: Mapping[int, int]) -> Iterator[tuple[int, int]]:
    """Yield pairs of brokers: moving a new follower from the first to the second is better."""
    leaders, replicas = growth.added
    givers = [b for b in growth.ids if replicas[b] > leaders[b]]
    takers = [b for b in growth.ids if replicas[b] < len(growth.new)]
    for giver in sorted(givers, key=lambda b: (-totals[b], b)):
        for taker in sorted(takers, key=lambda b: (totals[b], b)):
            if totals[giver] - totals[taker] < 2:
                break
            if _racks_let(growth, giver, taker):
                yield giver, taker


def _racks_let(growth: Growth, giver: int, taker: int) -> bool:
    """Return whether the rack rule still holds after a replica moves from `giver` to `taker`."""
    given, taken = growth.rack_of[giver], growth.rack_of[taker]
    if given == taken:
        return True
    partitions = len(growth.new)
    above = growth.in_rack(given) > growth.share[given][0] * partitions
    return above and growth.in_rack(taken) < growth.share[taken][1] * partitions


def _why_racks(growth: Growth, fullest: int, emptiest: int) -> str:
    """Name the rack that the rule limits, of the two brokers' racks, and the size of both."""
    full, empty = growth.rack_of[fullest], growth.rack_of[emptiest]
    must, may = growth.share[full][0], growth.share[empty][1]
    bound, says, other = empty, f"may hold at most {count(may, 'replica')}", full
    if must and growth.in_rack(full) == must * len(growth.new):
        bound, says, other = full, f"has to hold {count(must, 'replica')}", empty
    here, there = (
        f"{growth.in_rack(rack):,} on {count(growth.sizes[rack], 'broker')}"
        for rack in (bound, other)
    )
    return (
        f"{_rack(bound)} {says} of each of {count(len(growth.new), 'new partition')}, {here}; "
        f"{_rack(other)} has {there}. An even spread over racks has priority over an even "
        "spread over brokers"
    )


def _rack(name: str) -> str:
    return name if name.lower().startswith("rack") else f"rack {name}"


def _existing_stay(totals: Mapping[int, int], new: Mapping[int, int], verb: str) -> str:
    """Name the brokers that held more than the others before, and so got no new replicas."""
    least = min(totals.values())
    above = {b: total for b, total in totals.items() if not new.get(b) and total > least + 1}
    named = ", ".join(str(broker) for broker in list(above)[:NAMED])
    more = f" and {len(above) - NAMED} more" if len(above) > NAMED else ""
    which = "broker" if len(above) == 1 else "brokers"
    added = sum(new.values())
    went = "the new one went" if added == 1 else f"all {added:,} new ones went"
    return (
        f"{which} {named}{more} {verb} {_range(above)} before, and existing replicas stay; "
        f"{went} to others"
    )


def _not_forced(giver: int, taker: int) -> str:
    return f"nothing forces that; broker {giver} could hand one to broker {taker}"


def _emptiest(totals: Mapping[int, int]) -> int:
    return min(totals, key=lambda broker: (totals[broker], broker))


def _skew(counts: Mapping[int, int]) -> int:
    return max(counts.values()) - min(counts.values())


def _range(counts: Mapping[int, int]) -> str:
    least, most = min(counts.values()), max(counts.values())
    return f"{least:,}" if least == most else f"{least:,}..{most:,}"
