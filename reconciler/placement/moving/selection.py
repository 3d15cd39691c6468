"""Choose brokers for many rows at once, exactly: three levels, one after the other.

The squares of the units of each topic, then of the cluster, are as small as they can be. The prices
of the rows come either first, so that every row has its cheapest brokers, or last.

The start is greedy. Why the result is optimal: docs/explanation/placement-moves.md, "Replicas that
move".
"""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.placement.moving.cluster import Cluster
from reconciler.placement.moving.graph import list_bits
from reconciler.placement.moving.levelling import Load, level_topic
from reconciler.placement.moving.offers import Offers
from reconciler.placement.moving.topic import Row, Topic

Ties = Sequence[int]


def choose_brokers(
    rows: Sequence[Row],
    topics: Sequence[list[int]],
    load: Load,
    ties: Sequence[Ties],
    *,
    prices_first: bool,
) -> list[int]:
    """Return the brokers of every row, as masks: of each row, the cheapest brokers first or last.

    `topics` holds the units that each topic has on each broker without these rows, and `load` those
    of the cluster. `ties` orders brokers of equal price at the start, by topic. If prices come
    last, rows have two classes.
    """
    choices = [
        Topic(number, units, keeps_classes=prices_first) for number, units in enumerate(topics)
    ]
    places = [(0, 0)] * len(rows)
    free = []
    for index, row in enumerate(rows):
        if is_base(row, row.classes[0]):
            places[index] = _add(choices[row.topic], row, row.classes[0], load)
        else:
            free.append(index)
    for index in free:
        row = rows[index]
        chosen = fill(row, choices[row.topic].units, load.next, ties[row.topic])
        places[index] = _add(choices[row.topic], row, chosen, load)
    for topic in choices:
        topic.offer()
        level_topic(topic, load)
    _level_cluster(choices, load).cheapen()
    return [choices[topic].chosen[number] for topic, number in places]


def _level_cluster(topics: Sequence[Topic], load: Load) -> Cluster:
    """Level the cluster. What is above its most gets dearer for all topics until it is not."""
    while True:
        offers = [Offers(topic) for topic in topics]
        for each in offers:
            each.cheapen(load)
        cluster = Cluster(offers, load)
        cluster.level()
        full = cluster.find_full()
        slacks = [slack for topic in topics if (slack := topic.find_slack(full)) is not None]
        if not slacks:
            return cluster
        for topic in topics:
            topic.make_dearer(full, min(slacks))
        load.fill(full)


def _add(topic: Topic, row: Row, chosen: int, load: Load) -> tuple[int, int]:
    """Add a row to its topic and to the load; return its place there."""
    topic.add(row, chosen)
    for b in list_bits(chosen):
        load.add(b, 1)
    return topic.number, len(topic.rows) - 1


def is_base(row: Row, chosen: int) -> bool:
    """Return whether a row may have a choice."""
    return chosen.bit_count() == row.count and all(
        low <= (chosen & mask).bit_count() <= high for mask, low, high in row.racks
    )


def fill(row: Row, units: Sequence[int], prices: Sequence[int], ties: Ties) -> int:
    """Choose the cheapest brokers as of now: first what the racks demand, then the rest."""

    def choose(brokers: int) -> int:
        cheapest = next(one & brokers for one in row.classes if one & brokers)
        if not cheapest & (cheapest - 1):
            return cheapest
        return 1 << min(list_bits(cheapest), key=lambda b: (units[b], prices[b], ties[b]))

    chosen = 0
    for mask, low, _ in row.racks:
        for _ in range(low):
            chosen |= choose(mask & ~chosen)
    while chosen.bit_count() < row.count:
        full = chosen
        for mask, _, high in row.racks:
            if (chosen & mask).bit_count() >= high:
                full |= mask
        chosen |= choose(~full)
    return chosen
