"""Thousands of new topics at once, with a certificate that decides whether the result is used.

Counts come first here too: totals of each group of topics (`topic_groups`), then rows that have
them (`bulk_rows`), then leaders (`bulk_leaders`), then next leaders (`bulk_next_leaders`,
`bulk_exchange`). If the cluster meets its lower bounds, nothing better exists; otherwise the search
of `joint` starts from this result. Imported only if it pays: the import of numpy takes longer than
the placement of a hundred topics.

Steps and certificate: docs/explanation/placement-proofs.md, "Thousands of new topics".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from reconciler.model.cluster import Assignment
from reconciler.model.plan import LevelResult
from reconciler.placement.bounds import bound_next_leaders, cluster_bounds
from reconciler.placement.bulk_exchange import Block, exchange_followers
from reconciler.placement.bulk_leaders import (
    count_leads,
    even_cluster,
    even_topics,
)
from reconciler.placement.bulk_next_leaders import change_partners, order_followers
from reconciler.placement.bulk_rows import wrap_rows
from reconciler.placement.counts import ClusterLoad, Counts, Demand
from reconciler.placement.flow import place_topic
from reconciler.placement.joint import JointTopics, has_one_weight, improve, place_jointly
from reconciler.placement.levels import measure_levels
from reconciler.placement.next_leaders import NextLeaders
from reconciler.placement.row_search import place_rows
from reconciler.placement.topic_groups import TopicGroup, best_leaders, group_topics, total_replicas

Ints = NDArray[np.int64]

_IMPROVED_TOPICS = 2_000
"""Limit of topics for the exact search if only level 4 could improve."""

_FEW_TOPICS = 256
"""Where a group has fewer topics, their orders alone do not bring enough brokers together."""


def place_in_bulk(
    demands: Sequence[Demand], before: ClusterLoad, table: NextLeaders
) -> tuple[dict[str, Assignment], tuple[LevelResult, ...]]:
    """Place expansions exactly, and all new topics on top of them in bulk."""
    grown = place_jointly([demand for demand in demands if demand.wish.existing], before)
    load = grown.load.copy()
    grouped = place_groups([demand for demand in demands if not demand.wish.existing], load)
    exact = [*zip(grown.demands, grown.placed, strict=True), *_place_stuck(grouped, load)]
    topics = grown.samples() + [
        (one.group.demand, one.group.sample, one.group.topics) for one in grouped
    ]
    bounds = cluster_bounds(topics, before)
    # How many levels must meet their bound. With many topics, level 4 is not worth the search, and
    # with unequal weights neither is level 3: then no bound has to be met.
    levels = 2 if len(demands) <= _IMPROVED_TOPICS else int(has_one_weight(demands))
    changed = exact
    if load.price()[:levels] != bounds[:levels]:
        known = {demand.wish.topic: counts for one in grouped for demand, counts in one.counts()}
        known |= {demand.wish.topic: counts for demand, counts in exact}
        placed = [known[demand.wish.topic].copy() for demand in demands]
        estate = improve(JointTopics(demands, placed, before, bounds))
        # Rows exist for grouped topics; others, and those that changed since, need new ones.
        alone = {demand.wish.topic for demand, _ in exact}
        changed = [
            (demand, counts)
            for demand, counts in zip(estate.demands, estate.placed, strict=True)
            if demand.wish.topic in alone or counts != known[demand.wish.topic]
        ]
        load, topics = estate.load, estate.samples()
    results = measure_levels(topics, bounds, load)
    next_bounds = bound_next_leaders(topics, table)
    names = {demand.wish.topic for demand, _ in changed}
    kept = [part for one in grouped for part in one.without(names)]
    existing = table.copy()
    order_followers([one.rows for one in kept], table)
    rows = place_rows(changed, load, table, next_bounds)
    if table.squares()[0] > next_bounds.brokers:
        blocks = [Block(one.group.demands, one.rows) for one in kept]
        blocks += [_restate(demand, rows[demand.wish.topic]) for demand, _ in changed]
        exchange_followers(blocks, np.array(table.after), next_bounds.brokers)
        table = existing
        order_followers([block.rows for block in blocks], table, afresh=False)
        single = zip(changed, blocks[len(kept) :], strict=True)
        rows = {d.wish.topic: _name(block.rows, d.ids) for (d, _), block in single}
    rows |= {demand.wish.topic: row for one in kept for demand, row in one.assignments()}
    return rows, results + table.measure(next_bounds)


def _restate(demand: Demand, rows: Assignment) -> Block:
    """Return the rows of one topic as indices."""
    return Block([demand], np.searchsorted(np.array(demand.ids), np.array(rows)))


def _name(rows: Ints, ids: Sequence[int]) -> Assignment:
    """Return rows of indices as rows of broker ids."""
    named = np.array(ids)[rows]
    return tuple(zip(*(column.tolist() for column in named.T), strict=True))


@dataclass(slots=True)
class GroupRows:
    """One group with its rows; `stuck` numbers the topics whose leaders are not even."""

    group: TopicGroup
    rows: Ints
    stuck: frozenset[int] = frozenset()

    def without(self, topics: Collection[str]) -> Iterator[GroupRows]:
        """Yield the rows of all other topics, if there are any."""
        kept = [demand.wish.topic not in topics for demand in self.group.demands]
        if all(kept):
            yield self
        elif any(kept):
            group = replace(self.group, demands=list(compress(self.group.demands, kept)))
            yield GroupRows(group, self.rows[np.repeat(kept, group.demand.count)])

    def assignments(self) -> Iterator[tuple[Demand, Assignment]]:
        """Yield each topic's rows of broker ids."""
        rows = _name(self.rows, self.group.demand.ids)
        count = self.group.demand.count
        for t, demand in enumerate(self.group.demands):
            yield demand, rows[t * count : (t + 1) * count]

    def counts(self) -> Iterator[tuple[Demand, Counts]]:
        """Yield each topic's counts."""
        group, brokers = self.group, len(self.group.demand.ids)
        leads = count_leads(group, self.rows)
        width = group.demand.count * group.demand.wish.replication
        topic = np.repeat(np.arange(group.topics) * brokers, width)
        held = np.bincount(topic + self.rows.ravel(), minlength=leads.size).reshape(leads.shape)
        for t, demand in enumerate(group.demands):
            yield demand, Counts(leads[t].tolist(), held[t].tolist())


def place_groups(demands: Sequence[Demand], load: ClusterLoad) -> list[GroupRows]:
    """Place new topics on top of `load`, which is brought up to date."""
    groups = group_topics(demands)
    total_replicas(groups, load)
    grouped = []
    for group in groups:
        rows = wrap_rows(group)
        stuck = frozenset(even_topics(group, rows).tolist())
        _recount(group, rows, load)
        grouped.append(GroupRows(group, rows, stuck))
    # Each group is levelled against all others, so one pass may open a gain for an earlier group.
    before = None
    while load.price()[0] != before:
        before = load.price()[0]
        for one in grouped:
            even_cluster(one.group, one.rows, np.array(best_leaders(one.group, load)))
            _recount(one.group, one.rows, load)
    for one in grouped:
        if one.group.topics < _FEW_TOPICS:
            change_partners(one.group, one.rows)
    return grouped


def _recount(group: TopicGroup, rows: Ints, load: ClusterLoad) -> None:
    """Bring a group's totals of leaders up to date, and the load with them."""
    old = group.leaders
    group.leaders = np.bincount(rows[:, 0], minlength=len(old)).tolist()
    changes = zip(load.leaders, old, group.leaders, strict=True)
    load.leaders = [y + group.demand.leader_weight * (new - before) for y, before, new in changes]


def _place_stuck(grouped: Sequence[GroupRows], load: ClusterLoad) -> list[tuple[Demand, Counts]]:
    """Place the topics that are stuck anew, exactly and one by one."""
    loose = []
    for one in grouped:
        if not one.stuck:
            continue
        for t, (demand, counts) in enumerate(one.counts()):
            if t in one.stuck:
                load.add(demand, counts, -1)
                better = place_topic(demand, load)
                load.add(demand, better)
                loose.append((demand, better))
    return loose
