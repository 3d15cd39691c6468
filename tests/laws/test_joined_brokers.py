"""Brokers that joined a cluster that Kafka filled: what they take, and who leads then.

The bounds are computed here: an even share by division, and preferred leaders by maximum flow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from math import ceil, floor

import pytest
from ortools.graph.python import max_flow
from shorthand import cluster, may_move, topic

from reconciler.errors import Location
from reconciler.model.cluster import Assignment, Broker, ClusterState
from reconciler.model.plan import Plan
from reconciler.moves.rebalance import plan_rebalance
from reconciler.placement.kafka_placement import place_like_kafka
from reconciler.placement.problem import Problem, Wish
from reconciler.spec.entry import ClusterEntry

ENTRY = ClusterEntry("prod", Location("topics/clusters.yaml", 2), moves=may_move())
JOINED = 3


@pytest.mark.parametrize(
    ("racks", "replicas", "leaders", "moved"),
    [
        (0, ((0, 91), (39, 69)), ((0, 31), (17, 20)), 174),
        (3, ((0, 71), (44, 61)), ((0, 34), (19, 20)), 174),
    ],
)
def test_three_brokers_join_sixty(racks: int, replicas: tuple, leaders: tuple, moved: int) -> None:
    state = fill_cluster(60, topics=200, partitions=6, racks=racks)
    plan = rebalance(state, 60)
    check_joined(state, plan, 60)
    live, after = rows_of(state), rows_after(state, plan)
    assert (spread(replicas_of(live), 63), spread(replicas_of(after), 63)) == replicas
    assert (spread(leaders_of(live), 63), spread(leaders_of(after), 63)) == leaders
    assert plan.moves is not None
    assert plan.moves.replicas == moved
    (note,) = [note.what for note in plan.notes if note.rule == "rebalance-uneven"]
    above = sum(n > 58 for n in replicas_of(after).values())
    assert f"this stays uneven: {above} brokers above the even share (broker" in note


@pytest.mark.slow
def test_three_brokers_join_five_hundred() -> None:
    state = fill_cluster(500, topics=1_000, partitions=100, racks=0)
    check_joined(state, rebalance(state, 500), 500)


def test_a_broker_of_twice_the_capacity_takes_twice_the_share() -> None:
    state = fill_cluster(12, topics=320, partitions=1, racks=0)
    entry = ClusterEntry("prod", ENTRY.location, moves=may_move(), capacity={12: 2})
    held = replicas_of(rows_after(state, rebalance(state, 12, entry)))
    share = 320 * 3 // 16
    assert [held[b] for b in range(12, 15)] == [2 * share, share, share]


def check_joined(state: ClusterState, plan: Plan, old: int) -> None:
    """Check replicas and preferred leaders against bounds that do not come from the solver."""
    live, after = rows_of(state), rows_after(state, plan)
    held, before = replicas_of(after), replicas_of(live)
    share = sum(before.values()) / (old + JOINED)
    taken = [held[b] for b in range(old, old + JOINED)]
    assert floor(share) <= min(taken) <= max(taken) <= ceil(share)
    assert all(held[b] <= before[b] for b in range(old))
    assert plan.moves is not None
    # Even is at least what three empty brokers take from the others; nothing else is copied.
    assert plan.moves.replicas == sum(taken)
    assert spread(leaders_of(after), old + JOINED) == bound_leaders(after, old + JOINED)


def bound_leaders(after: Mapping[str, Assignment], brokers: int) -> tuple[int, int]:
    """Return the fewest and the most preferred leaders of a broker, as even as orders can be.

    No broker leads two partitions of a topic: the topics of these tests need not. So each maximum
    flow hands partitions to brokers of their rows, through one arc of a topic to each broker.
    """
    partitions = sum(map(len, after.values()))
    most = ceil(partitions / brokers)
    while lead_up_to(after, brokers, most) < partitions:
        most += 1
    least = partitions // brokers
    while lead_up_to(after, brokers, least) < least * brokers:
        least -= 1
    return least, most


def lead_up_to(after: Mapping[str, Assignment], brokers: int, most: int) -> int:
    """Return how many partitions have a leader if no broker leads more than `most`."""
    flow = max_flow.SimpleMaxFlow()
    source, sink, node = brokers, brokers + 1, brokers + 2
    for broker in range(brokers):
        flow.add_arc_with_capacity(broker, sink, most)
    for rows in after.values():
        mine: dict[int, int] = {}
        for row in rows:
            partition, node = node, node + 1
            flow.add_arc_with_capacity(source, partition, 1)
            for broker in row:
                if broker not in mine:
                    mine[broker], node = node, node + 1
                    flow.add_arc_with_capacity(mine[broker], broker, 1)
                flow.add_arc_with_capacity(partition, mine[broker], 1)
    assert flow.solve(source, sink) == flow.OPTIMAL
    return flow.optimal_flow()


def fill_cluster(old: int, *, topics: int, partitions: int, racks: int) -> ClusterState:
    """Return brokers whose topics Kafka placed, and three that joined and are empty."""
    nodes = [Broker(b, f"rack-{b % racks}" if racks else None) for b in range(old + JOINED)]
    wishes = tuple(Wish(f"topic-{t:05}", (), partitions, 3) for t in range(topics))
    rows = place_like_kafka(Problem(tuple(nodes[:old]), {}, {}, wishes), seed=1)
    found = (topic(assignment, name=name) for name, assignment in rows.items())
    return cluster(*found, nodes=nodes)


def rebalance(state: ClusterState, old: int, entry: ClusterEntry = ENTRY) -> Plan:
    return plan_rebalance(entry, (), state, brokers=range(old, old + JOINED))


def rows_of(state: ClusterState) -> dict[str, Assignment]:
    return {name: found.assignment for name, found in state.topics.items()}


def rows_after(state: ClusterState, plan: Plan) -> dict[str, Assignment]:
    return rows_of(state) | {t.name: t.after.assignment for t in plan.topics if t.after}


def replicas_of(rows: Mapping[str, Assignment]) -> Counter[int]:
    return Counter(broker for each in rows.values() for row in each for broker in row)


def leaders_of(rows: Mapping[str, Assignment]) -> Counter[int]:
    return Counter(row[0] for each in rows.values() for row in each)


def spread(counts: Mapping[int, int], brokers: int) -> tuple[int, int]:
    held: Collection[int] = [counts[broker] for broker in range(brokers)]
    return min(held), max(held)
