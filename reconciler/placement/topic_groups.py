"""Levels 2 to 4 of thousands of new topics: totals by groups of alike topics, by water-filling.

Topics with equal partitions, replication, racks and weight are exchangeable. A new topic holds
nothing yet, so all topics of a group have the same optimal counts up to ties: every broker gets a
sure share, and `units` brokers of those with room get one more. The cluster only sees the totals.

Argument, and why a new topic's leaders and replicas do not conflict:
docs/explanation/placement-proofs.md, "Thousands of new topics".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from reconciler.placement.bounds import Slack, evenest_replicas, free_slack
from reconciler.placement.counts import ClusterLoad, Counts, Demand
from reconciler.placement.level_fill import Basin, Region, fill

_CELLS = 4_000_000
"""Topics times brokers that one group may span at most, so that arrays stay in memory."""


@dataclass(slots=True)
class TopicGroup:
    """Exchangeable new topics, and what they have together on each broker.

    `sample` holds the counts of one such topic that is optimal by itself.
    """

    demands: Sequence[Demand]
    sample: Counts
    slack: Slack
    replicas: list[int] = field(default_factory=list)
    leaders: list[int] = field(default_factory=list)

    @property
    def demand(self) -> Demand:
        """One of them, to stand for all."""
        return self.demands[0]

    @property
    def topics(self) -> int:
        """How many there are."""
        return len(self.demands)

    @property
    def leads(self) -> tuple[int, int]:
        """Fewest and most leaders of one topic on any broker."""
        return min(self.sample.leaders), max(self.sample.leaders)

    def extra_bounds(self) -> list[Region]:
        """Return how many of one topic's extra replicas each rack takes, fewest and most."""
        regions = []
        for rack, (low, high) in zip(self.demand.rule.racks, self.demand.rack_bounds, strict=True):
            sure = sum(self.slack.sure[b] for b in rack)
            room = sum(self.slack.room[b] for b in rack)
            regions.append(Region(rack, max(low - sure, 0), min(high - sure, room)))
        return regions


def group_topics(demands: Sequence[Demand]) -> list[TopicGroup]:
    """Divide new topics into groups, groups and their topics in the order of their names."""
    alike: dict[tuple[int, int, bool, tuple[int, int]], list[Demand]] = defaultdict(list)
    for demand in demands:
        alike[demand.kind].append(demand)
    groups = []
    for topics in alike.values():
        replicas = evenest_replicas(topics[0])
        least, more = divmod(topics[0].count, len(replicas))
        sample = Counts([least + (b < more) for b in range(len(replicas))], replicas)
        slack = free_slack(topics[0], replicas)
        most = max(1, _CELLS // len(topics[0].ids))
        groups += [
            TopicGroup(topics[i : i + most], sample, slack) for i in range(0, len(topics), most)
        ]
    return groups


def total_replicas(groups: Sequence[TopicGroup], load: ClusterLoad) -> None:
    """Set the groups' totals of replicas, and add them to the load.

    Each group in turn is poured on top of all others, until that gains nothing.
    """
    for group in groups:
        group.replicas = [0] * len(load.replicas)
        group.leaders = [0] * len(load.leaders)
        _pour_replicas(group, load)
    before = None
    while before is None or load.price() < before:
        before = load.price()
        for group in groups:
            _pour_replicas(group, load)


def _pour_replicas(group: TopicGroup, load: ClusterLoad) -> None:
    """Set a group's totals anew. Single replicas all lead: the leaders' level decides for them."""
    topics, (lead, hold) = group.topics, group.demand.weights
    alone = group.demand.wish.replication == 1
    if alone:
        load.leaders = _shift(load.leaders, group.replicas, -lead)
    load.replicas = _shift(load.replicas, group.replicas, -hold)
    sure = [topics * n for n in group.slack.sure]
    # Heights count replicas of this weight, rounded down: exact if all loads are multiples of it.
    rest, weight = (load.leaders, lead) if alone else (load.replicas, hold)
    heights = [y // weight + n for y, n in zip(rest, sure, strict=True)]
    regions = [Region(r.members, topics * r.low, topics * r.high) for r in group.extra_bounds()]
    ranks = list(zip(load.replicas, group.demand.ranks, strict=True))
    basin = Basin(heights, [topics * n for n in group.slack.room], ranks, load.scales)
    group.replicas = _shift(sure, fill(basin, regions, topics * group.slack.units), 1)
    load.replicas = _shift(load.replicas, group.replicas, hold)
    if alone:
        load.leaders = _shift(load.leaders, group.replicas, lead)
        group.leaders = group.replicas


def _shift(loads: Sequence[int], counts: Sequence[int], weight: int) -> list[int]:
    return [y + weight * n for y, n in zip(loads, counts, strict=True)]


def best_leaders(group: TopicGroup, load: ClusterLoad) -> list[int]:
    """Return the totals of leaders a group should have, `load` including what it has now.

    Ties go to those who have most now, so that little is to be changed.
    """
    weight, topics, (fewest, most) = group.demand.leader_weight, group.topics, group.leads
    n = len(load.leaders)
    rest = _shift(load.leaders, group.leaders, -weight)
    heights = [y // weight + topics * fewest for y in rest]
    basin = Basin(heights, [topics * (most - fewest)] * n, [-n for n in group.leaders], load.scales)
    units = topics * (group.demand.count - n * fewest)
    extra = fill(basin, [Region(range(n), 0, units)], units)
    return [topics * fewest + more for more in extra]
