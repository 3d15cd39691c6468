"""Totals of a group of topics become rows: McNaughton's wrap-around rule, twice.

Over topics: each broker's extra replicas are written in a line, rack by rack, and dealt to the
topics in turn, so a topic gets no broker twice and every rack within its bounds. Over partitions: a
topic's replicas are written in a line, rack by rack, and cut into as many lines as a row has
replicas; the columns are the partitions, whose brokers differ and obey the rack rule.

Without more, all topics share a few replica sets. So hashes of names shuffle the topics for each
rack, and racks and brokers for each topic; counts do not change.

Proof of both: docs/explanation/placement-proofs.md, "Thousands of new topics".
"""

from __future__ import annotations

from hashlib import blake2b
from math import gcd

import numpy as np
from numpy.typing import NDArray

from reconciler.placement.topic_groups import TopicGroup

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

_ORDERS = 512
"""How many orders of racks and brokers the topics of a group share at most."""


def wrap_rows(group: TopicGroup) -> Ints:
    """Return rows of broker indices, leaders first: one line a partition, topic after topic."""
    topics, (count, replication) = group.topics, (group.demand.count, group.demand.wish.replication)
    names = (demand.wish.topic.encode() for demand in group.demands)
    digests = b"".join(blake2b(name, digest_size=8).digest() for name in names)
    seeds = np.frombuffer(digests, dtype=">u8").astype(np.uint64)
    # Each topic has an order of its own as long as there are enough.
    own = np.arange(topics)
    if topics > _ORDERS:
        own = (mix(seeds, 1) % np.uint64(_ORDERS)).astype(np.int64)
    order = _orders(group)[own]
    times = np.take_along_axis(_deal_extras(group, seeds), order, axis=1)
    lines = np.repeat(order.ravel(), times.ravel())
    columns = lines.reshape(topics, replication, count).transpose(0, 2, 1)
    # Every `replication`-th place of a line leads, so leads are evenly spaced along it. Place p of
    # line k is place k * count + p of all lines end to end. If some k makes this a multiple of
    # `replication` for every p, line k leads p: leads are even over the ends of lines too.
    places = np.arange(count)
    coprime = gcd(count, replication) == 1
    leading = -places * pow(count, -1, replication) if coprime else places
    turn = leading[None, :] + np.arange(topics)[:, None]
    pick = (turn[:, :, None] + np.arange(replication)) % replication
    return np.take_along_axis(columns, pick, axis=2).reshape(topics * count, replication)


def mix(words: Words, salt: int) -> Words:
    """Hash words once more (the finaliser of SplitMix64; Steele, Lea, Flood, OOPSLA 2014)."""
    words = words + np.uint64((salt * 0x9E3779B97F4A7C15) % 2**64)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def _deal_extras(group: TopicGroup, seeds: Words) -> Ints:
    """Return replicas by topic and broker: the sure ones, and the extra ones dealt in turn."""
    topics, sure = group.topics, np.array(group.slack.sure)
    replicas = np.tile(sure, (topics, 1))
    extra = np.array(group.replicas) - topics * sure
    start = 0
    for j, rack in enumerate(group.demand.rule.racks):
        members = np.array(sorted(rack, key=lambda b: (group.demand.ranks[b], b)))
        units = np.repeat(members, extra[members])
        # Topics with one unit more change places among themselves, so totals per topic stay.
        longer = (start + np.arange(len(units) % topics)) % topics
        keys = mix(seeds, 6 + j)
        turns = np.arange(topics)
        for part in (longer, np.setdiff1d(turns, longer)):
            turns[part] = part[np.argsort(keys[part], kind="stable")]
        replicas[turns[(start + np.arange(len(units))) % topics], units] += 1
        start += len(units)
    return replicas


def _orders(group: TopicGroup) -> Ints:
    """Return orders of all brokers, racks kept together."""
    rack_of = np.array(group.demand.rule.rack_of)
    drawn = mix(_numbers(min(_ORDERS, group.topics)) + np.uint64(group.demand.ranks[0]), 3)[:, None]
    racks = mix(drawn + _numbers(int(rack_of.max()) + 1), 4)
    brokers = mix(drawn + _numbers(len(rack_of)), 5)
    places = np.argsort(np.argsort(racks, axis=1, kind="stable"), axis=1).astype(np.uint64)
    # One key to sort by: the place of the rack in the upper 24 bits, the broker's hash below.
    keys = (places[:, rack_of] << np.uint64(40)) | (brokers >> np.uint64(24))
    return np.argsort(keys, axis=1, kind="stable")


def _numbers(count: int) -> Words:
    return np.arange(count).astype(np.uint64)
