"""Levels 1 and 3 of thousands of new topics: rows are reordered until leaders are even.

A reordered row moves no replica. With regular racks a suitable order exists: each replica could
carry an equal fraction of its row's lead, and a flow rounds the fractions to integers that are even
in the topic and in the cluster. The code looks for it in rounds of many rows at a time, from
brokers that lead too often to followers that lead too rarely. If it gets stuck, the topic is placed
by `flow`, or the certificate of `bulk` fails and `joint` continues.

Proof that the order exists: docs/explanation/placement-proofs.md, "Thousands of new topics".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reconciler.placement.topic_groups import TopicGroup

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

_ROUNDS = 64


def even_topics(group: TopicGroup, rows: Ints) -> Ints:
    """Reorder rows in place until leaders are even in every topic.

    Returns the topics where it got stuck, by their number within the group.
    """
    brokers, (fewest, most) = len(group.demand.ids), group.leads
    for _ in range(_ROUNDS if rows.shape[1] > 1 else 0):
        leads = count_leads(group, rows)
        stuck = np.flatnonzero(((leads > most) | (leads < fewest)).any(axis=1))
        if not len(stuck):
            break
        mine = (stuck[:, None] * group.demand.count + np.arange(group.demand.count)).ravel()
        topic = mine // group.demand.count * brokers
        flat = leads.ravel()
        moved = 0
        # First from brokers above `most`; if nothing moves, to brokers below `fewest`.
        for border in (most, fewest):
            gives = np.maximum(flat - border, 0)
            takes = np.maximum(border - flat, 0)
            moved = _swap(rows, mine, topic, gives, takes)
            if moved:
                break
        if not moved:
            break
    leads = count_leads(group, rows)
    return np.flatnonzero(((leads > most) | (leads < fewest)).any(axis=1))


def even_cluster(group: TopicGroup, rows: Ints, wanted: Ints) -> None:
    """Reorder rows in place towards the wanted totals of leaders, topics staying even."""
    fewest, most = group.leads
    brokers = len(group.demand.ids)
    if fewest == most or rows.shape[1] == 1:
        return
    for _ in range(_ROUNDS):
        excess = np.bincount(rows[:, 0], minlength=brokers) - wanted
        if not (excess > 0).any():
            return
        neutral = _Neutral(group, rows)
        # Direct hand-overs first; ways over other brokers are only measured if there are none.
        nearest = np.where(excess < 0, 0, 1)
        moved = neutral.hand_over(excess, nearest)
        if not moved and not neutral.hand_over(excess, neutral.distances(excess)):
            return


def count_leads(group: TopicGroup, rows: Ints) -> Ints:
    """Return leaders by topic and broker."""
    brokers = len(group.demand.ids)
    topic = np.repeat(np.arange(group.topics) * brokers, group.demand.count)
    leads = np.bincount(topic + rows[:, 0], minlength=group.topics * brokers)
    return leads.reshape(group.topics, brokers)


def _swap(rows: Ints, mine: Ints, topic: Ints, gives: Ints, takes: Ints) -> int:
    """Within topics, hand leads from those that give to those that take; return how many.

    `gives` and `takes` are quotas by topic and broker.
    """
    part = rows[mine]
    open_slots = (takes[topic[:, None] + part[:, 1:]] > 0) & (gives[topic + part[:, 0]] > 0)[
        :, None
    ]
    hit = np.flatnonzero(open_slots.any(axis=1))
    slot = 1 + open_slots[hit].argmax(axis=1)
    giver, taker = topic[hit] + part[hit, 0], topic[hit] + part[hit, slot]
    kept = first_in_line(giver, gives)
    kept = kept[first_in_line(taker[kept], takes)]
    _exchange(rows, mine[hit[kept]], slot[kept])
    return len(kept)


class _Neutral:
    """The reorderings of rows that leave every topic as even as it is.

    The leader has one lead more than some broker of its topic, the follower is such a broker.
    """

    def __init__(self, group: TopicGroup, rows: Ints) -> None:
        fewest, most = group.leads
        self._brokers = len(group.demand.ids)
        self._rows = rows
        leads = count_leads(group, rows).ravel()
        self._free = leads == fewest
        self._topic = np.arange(len(rows)) // group.demand.count * self._brokers
        self._able = leads[self._topic + rows[:, 0]] == most

    def hand_over(self, excess: Ints, distance: Ints) -> int:
        """Hand leads from brokers in excess to nearer ones, and return how many.

        Each broker gives and takes one lead a topic at most, so that all of it fits together.
        """
        mine = np.flatnonzero(self._able & (excess > 0)[self._rows[:, 0]])
        part, topic = self._rows[mine], self._topic[mine]
        open_slots = self._free[topic[:, None] + part[:, 1:]]
        open_slots &= distance[part[:, 1:]] < distance[part[:, :1]]
        hit = np.flatnonzero(open_slots.any(axis=1))
        slot = 1 + open_slots[hit].argmax(axis=1)
        giver, taker, topic = part[hit, 0], part[hit, slot], topic[hit]
        once = np.ones(len(self._free), dtype=np.int64)
        kept = first_in_line(topic + giver, once)
        kept = kept[first_in_line((topic + taker)[kept], once)]
        kept = kept[first_in_line(giver[kept], np.maximum(excess, 0))]
        # A broker between may take one at a time, to hand it on in the next round.
        kept = kept[first_in_line(taker[kept], np.maximum(-excess, 1))]
        _exchange(self._rows, mine[hit[kept]], slot[kept])
        return len(kept)

    def distances(self, excess: Ints) -> Ints:
        """Return how many hand-overs each broker is away from one that leads too rarely."""
        followers = self._rows[self._able, 1:]
        pairs = self._rows[self._able, :1] * self._brokers + followers
        possible = self._free[self._topic[self._able][:, None] + followers]
        reach = np.bincount(pairs[possible], minlength=self._brokers**2) > 0
        reach = reach.reshape(self._brokers, self._brokers)
        distance = np.where(excess < 0, 0, self._brokers)
        for step in range(1, self._brokers):
            near = (distance == self._brokers) & reach[:, distance == step - 1].any(axis=1)
            if not near.any():
                break
            distance[near] = step
        return distance


def first_in_line(keys: Ints, quota: Ints) -> Ints:
    """Return the places of the first `quota[key]` of each key, in their order.

    Sorted by key, `fresh` holds where each key starts, and `number` counts from there.
    """
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    fresh = np.flatnonzero(np.diff(ordered, prepend=-1))
    number = np.arange(len(keys)) - np.repeat(fresh, np.diff(fresh, append=len(keys)))
    kept: Ints = np.sort(order[number < quota[ordered]])
    return kept


def _exchange(rows: Ints, lines: Ints, slots: Ints) -> None:
    leaders = rows[lines, 0]
    rows[lines, 0] = rows[lines, slots]
    rows[lines, slots] = leaders
