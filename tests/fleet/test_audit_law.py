"""Law: what an audit counts in SQL is what reconciler.placement.measure counts in Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import chain
from math import ceil
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from shorthand import cluster
from small_fleets import make_specs, make_state
from worlds import broker_lists, live_topics, rows_on

from reconciler.fleet.audit.audit import audit_fleet
from reconciler.fleet.audit.next_leaders import NEXT_LEADERS
from reconciler.fleet.audit.topics import EXPECTATIONS
from reconciler.model.cluster import Assignment, Broker, ClusterState, TopicState
from reconciler.placement.measure import measure_quality
from reconciler.placement.next_leaders import NextLeaders
from reconciler.placement.problem import Problem

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

pytestmark = pytest.mark.fleet
NAMES = ("a", "b", "c")
SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large)


@st.composite
def states(draw: st.DrawFn) -> ClusterState:
    """Draw a cluster; some replicas are on a broker that it no longer names."""
    nodes = draw(broker_lists())
    ids = [*sorted(node.id for node in nodes), 98]
    offsets = TopicState("__consumer_offsets", "own", draw(rows_on(ids, 1)), internal=True)
    return cluster(*(draw(live_topics(name, ids)) for name in NAMES), offsets, nodes=nodes)


def draw_states(count: int) -> dict[str, ClusterState]:
    """Draw so many clusters at once, always the same: a Spark job for each would take long."""
    drawn: list[ClusterState] = []

    @seed(6)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=SLOW,
    )
    @given(states())
    def keep(state: ClusterState) -> None:
        drawn.append(state)

    keep()
    return {f"c{number}": state for number, state in enumerate(drawn)}


def measure(assignments: Iterable[Assignment], nodes: Iterable[Broker]) -> tuple[int, ...]:
    quality = measure_quality(list(assignments), list(nodes))
    leaders, replicas = quality.balance.leaders, quality.balance.replicas
    skews = (leaders.least, leaders.most, replicas.least, replicas.most)
    return (*skews, quality.misplaced, quality.rack_violations)


def read(row: Row) -> tuple[int, ...]:
    skews = (f"{name}_{end}" for name in ("leaders", "replicas") for end in ("least", "most"))
    return tuple(row[name] for name in (*skews, "misplaced", "rack_violations"))


def count_next(state: ClusterState) -> tuple[int, int, int, int]:
    """Return the most that one broker takes over, and the least possible, by broker and by rack."""
    able = tuple(sorted(b for b in state.brokers if b.alive and not b.cordoned))
    others = tuple(topic.assignment for topic in state.user_topics.values())
    idle = tuple(b for b in state.brokers if b.alive and b.cordoned)
    table = NextLeaders.count(Problem(able, {}, {}, (), others=others, also_alive=idle))
    size = Counter(broker.rack for broker in able)
    home = {broker.id: broker.rack for broker in state.brokers if broker.alive}
    apart: Counter[int] = Counter()
    for row in chain.from_iterable(others):
        leader, *followers = [b for b in row if b in home] or [-1]
        racks = [home[b] for b in followers]
        if followers and followers[0] in {b.id for b in able} and home[leader] not in racks:
            apart[leader] += 1
    bounds = [
        max(
            ceil(sum(line) / max(len(able) - 1, 1)),
            ceil(apart[broker.id] / max(len(able) - size[broker.rack], 1)),
        )
        for broker, line in zip(able, table.after, strict=True)
    ]
    racks = sorted(rack for rack in size if rack is not None)
    outside = [max(len(able) - size[rack], 1) for rack in racks]
    rack_bounds = [ceil(sum(m) / n) for m, n in zip(table.beyond, outside, strict=False)]
    return (
        max(chain.from_iterable(table.after), default=0),
        max(bounds, default=0),
        max(chain.from_iterable(table.beyond), default=0),
        max(rack_bounds, default=0),
    )


@pytest.mark.parametrize("count", [60, pytest.param(300, marks=pytest.mark.slow)])
def test_an_audit_counts_what_the_measure_counts(spark: SparkSession, count: int) -> None:
    drawn = draw_states(count)
    nothing = spark.createDataFrame([], EXPECTATIONS)
    audit = audit_fleet(make_state(spark, drawn), make_specs(spark, {}), nothing)
    rows = audit.balance.where("kind in ('topic', 'cluster')").collect()
    found = {(row["cluster"], row["kind"], row["subject"]): read(row) for row in rows}
    expected = {}
    for name, state in drawn.items():
        each = {topic: [of.assignment] for topic, of in state.user_topics.items()}
        for topic, assignment in each.items():
            expected[name, "topic", topic] = measure(assignment, state.brokers)
        together = chain.from_iterable(each.values())
        expected[name, "cluster", name] = measure(together, state.brokers)
    assert found == expected
    followed = {
        row["cluster"]: tuple(row[name] for name in NEXT_LEADERS)
        for row in rows
        if row["kind"] == "cluster"
    }
    assert followed == {name: count_next(state) for name, state in drawn.items()}
    assert all(m >= b and r >= c for m, b, r, c in followed.values())
    for number in range(4):
        assert len({counts[number] for counts in followed.values()}) > 2
    assert {key for key, counts in found.items() if counts[-1]}  # some racks are violated
