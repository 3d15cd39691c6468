"""Thousands of new topics at once, with a certificate that decides whether the result is used.

Counts come first here too: totals of each kind of topic (`kinds`), then rows that have them
(`weave`), then leaders (`crown`), then failover targets (`heirs`). If the cluster meets its lower
bounds, nothing better exists; otherwise the search of `joint` starts from this result. Imported
only if it pays: the import of numpy takes longer than the placement of a hundred topics.

Steps and certificate: docs/placement.md, "Thousands of new topics".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from reconciler.placement.bounds import cluster_bounds
from reconciler.placement.counts import Counts
from reconciler.placement.crown import count_leads, even_cluster, even_topics
from reconciler.placement.flow import place_topic
from reconciler.placement.heirs import scatter_heirs
from reconciler.placement.joint import JointTopics, has_one_weight, improve, place_jointly
from reconciler.placement.kinds import best_leaders, sort_kinds, total_replicas
from reconciler.placement.levels import measure_levels
from reconciler.placement.realise import realise_all
from reconciler.placement.weave import weave

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from reconciler.model import Assignment, LevelResult
    from reconciler.placement.counts import Ask, ClusterLoad
    from reconciler.placement.kinds import TopicKind

    Ints = NDArray[np.int64]

_IMPROVED_TOPICS = 2_000
"""Up to how many topics the exact way is also gone for the sake of the last level alone."""


def place_in_bulk(
    asks: Sequence[Ask], before: ClusterLoad
) -> tuple[dict[str, Assignment], tuple[LevelResult, ...]]:
    """Place expansions exactly, and all new topics on top of them in bulk."""
    grown = place_jointly([ask for ask in asks if ask.wish.existing], before)
    load = grown.load.copy()
    woven = weave_all([ask for ask in asks if not ask.wish.existing], load)
    exact = [*zip(grown.asks, grown.placed, strict=True), *_place_stuck(woven, load)]
    topics = grown.samples() + [(one.kind.ask, one.kind.sample, one.kind.topics) for one in woven]
    bounds = cluster_bounds(topics, before)
    rows = {ask.wish.topic: row for one in woven for ask, row in one.assignments()}
    # How many levels must meet their bound. With many topics, level 4 is not worth the search, and
    # with unequal weights neither is level 3: then no bound has to be met.
    levels = 2 if len(asks) <= _IMPROVED_TOPICS else int(has_one_weight(asks))
    if load.price()[:levels] == bounds[:levels]:
        return rows | realise_all(exact), measure_levels(topics, bounds, load)
    known = {ask.wish.topic: counts for one in woven for ask, counts in one.counts()}
    known |= {ask.wish.topic: counts for ask, counts in exact}
    placed = [known[ask.wish.topic].copy() for ask in asks]
    estate = improve(JointTopics(asks, placed, before, bounds))
    # Rows exist for woven topics; what is not woven, or was changed since, needs new ones.
    unwoven = {ask.wish.topic for ask, _ in exact}
    changed = [
        (ask, counts)
        for ask, counts in zip(estate.asks, estate.placed, strict=True)
        if ask.wish.topic in unwoven or counts != known[ask.wish.topic]
    ]
    return rows | realise_all(changed), measure_levels(estate.samples(), bounds, estate.load)


@dataclass(slots=True)
class Woven:
    """One kind with its rows; `stuck` numbers the topics whose leaders are not even."""

    kind: TopicKind
    rows: Ints
    stuck: frozenset[int]

    def assignments(self) -> Iterator[tuple[Ask, Assignment]]:
        """Yield each topic's rows of broker ids."""
        ids = np.array(self.kind.ask.ids)[self.rows]
        rows = list(zip(*(column.tolist() for column in ids.T), strict=True))
        count = self.kind.ask.count
        for t, ask in enumerate(self.kind.asks):
            yield ask, tuple(rows[t * count : (t + 1) * count])

    def counts(self) -> Iterator[tuple[Ask, Counts]]:
        """Yield each topic's counts."""
        kind, brokers = self.kind, len(self.kind.ask.ids)
        leads = count_leads(kind, self.rows)
        width = kind.ask.count * kind.ask.wish.replication
        topic = np.repeat(np.arange(kind.topics) * brokers, width)
        held = np.bincount(topic + self.rows.ravel(), minlength=leads.size).reshape(leads.shape)
        for t, ask in enumerate(kind.asks):
            yield ask, Counts(leads[t].tolist(), held[t].tolist())


def weave_all(asks: Sequence[Ask], load: ClusterLoad) -> list[Woven]:
    """Place new topics on top of `load`, which is brought up to date."""
    kinds = sort_kinds(asks)
    total_replicas(kinds, load)
    woven = []
    for kind in kinds:
        rows = weave(kind)
        stuck = frozenset(even_topics(kind, rows).tolist())
        _recount(kind, rows, load)
        woven.append(Woven(kind, rows, stuck))
    # Each kind is levelled against all others, so one pass may open a gain for an earlier kind.
    before = None
    while load.price()[0] != before:
        before = load.price()[0]
        for one in woven:
            even_cluster(one.kind, one.rows, np.array(best_leaders(one.kind, load)))
            _recount(one.kind, one.rows, load)
    for one in woven:
        scatter_heirs(one.kind, one.rows)
    return woven


def _recount(kind: TopicKind, rows: Ints, load: ClusterLoad) -> None:
    """Bring a kind's totals of leaders up to date, and the load with them."""
    old = kind.leaders
    kind.leaders = np.bincount(rows[:, 0], minlength=len(old)).tolist()
    changes = zip(load.leaders, old, kind.leaders, strict=True)
    load.leaders = [y + kind.ask.weight * (new - before) for y, before, new in changes]


def _place_stuck(woven: Sequence[Woven], load: ClusterLoad) -> list[tuple[Ask, Counts]]:
    """Place the topics that are stuck anew, exactly and one by one."""
    loose = []
    for one in woven:
        if not one.stuck:
            continue
        for t, (ask, counts) in enumerate(one.counts()):
            if t in one.stuck:
                load.add(ask, counts, -1)
                better = place_topic(ask, load)
                load.add(ask, better)
                loose.append((ask, better))
    return loose
