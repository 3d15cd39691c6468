"""Health of clusters: what counts as a fault, and how bad a cluster is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from shorthand import brokers, cluster, topic
from small_fleets import make_state

from reconciler.fleet.health import Health, count_health, find_unhealthy_topics, judge_health
from reconciler.model.cluster import LogDirectory
from reconciler.model.health import PROBLEMS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.fleet

NODES = brokers("a", "b", "c")
LESS = tuple(replace(broker, alive=broker.id != 3) for broker in NODES)
FULL, ONE_LESS = (1, 2, 3), (1, 2)
FAILED = LogDirectory("/data", None, None, online=False)


def two(name: str, in_sync: tuple[tuple[int, ...], ...], **found: object) -> object:
    """Return a topic of two partitions of three replicas."""
    return topic("1,2,3 2,3,1", name, **{"in_sync": in_sync, "leaders": (1, 2), **found})


STATES = {
    "calm": cluster(two("fine", (FULL, FULL)), nodes=NODES),
    "down": "connection refused",
    # Fully in sync, and still degraded: a broker is down.
    "less": cluster(two("fine", (FULL, FULL)), nodes=LESS),
    # Fully in sync, and still degraded: a disk has failed.
    "disk": replace(cluster(two("fine", (FULL, FULL)), nodes=NODES), directories={1: (FAILED,)}),
    "lags": cluster(two("lags", (FULL, ONE_LESS)), nodes=NODES),
    # The cluster asks for 3 replicas in sync, the topic `own` for 2.
    "short": cluster(
        two("default", (ONE_LESS, FULL)),
        two("own", (ONE_LESS, FULL), config={"min.insync.replicas": "2"}),
        nodes=NODES,
        defaults={"min.insync.replicas": "3"},
    ),
    # No leader: offline, and not below min.insync.replicas too. New replicas that copy are no
    # fault, unless so few others are in sync that writes fail meanwhile.
    "worst": cluster(
        two("dark", ((), ONE_LESS), leaders=(-1, 2)),
        two("moves", (ONE_LESS, FULL), reassigning=frozenset({0})),
        two(
            "starved",
            ((1,), FULL),
            reassigning=frozenset({0}),
            config={"min.insync.replicas": "2"},
        ),
        two("unknown", (), leaders=()),
        nodes=NODES,
    ),
}


@pytest.fixture(scope="module")
def state(spark: SparkSession) -> dict[str, DataFrame]:
    return make_state(spark, STATES)


def test_faults_are_counted_by_cluster_and_one_is_enough(state: dict[str, DataFrame]) -> None:
    rows = {row["cluster"]: row.asDict() for row in count_health(state).collect()}
    found = {name: tuple(row[count] for count in PROBLEMS) for name, row in rows.items()}
    assert found == {
        "calm": (0, 0, 0, 0, 0),
        "down": (None,) * 5,
        "less": (0, 0, 0, 1, 0),
        "disk": (0, 0, 0, 0, 1),
        "lags": (0, 0, 1, 0, 0),
        "short": (0, 1, 2, 0, 0),
        "worst": (1, 1, 2, 0, 0),
    }
    assert {name: judge_health(row) for name, row in rows.items()} == {
        "calm": Health.HEALTHY,
        "down": Health.UNREAD,
        "less": Health.DEGRADED,
        "disk": Health.DEGRADED,
        "lags": Health.DEGRADED,
        "short": Health.UNWRITABLE,
        "worst": Health.OFFLINE,
    }


def test_unhealthy_topics_have_the_faults_of_their_partitions(state: dict[str, DataFrame]) -> None:
    found = sorted(tuple(row) for row in find_unhealthy_topics(state).collect())
    assert found == [
        ("lags", "lags", 0, 0, 1, [3]),
        ("short", "default", 0, 1, 1, [3]),
        ("short", "own", 0, 0, 1, [3]),
        ("worst", "dark", 1, 0, 2, [1, 2, 3]),
        ("worst", "starved", 0, 1, 0, [2, 3]),
    ]


@pytest.mark.parametrize("count", PROBLEMS)
def test_a_cluster_with_any_fault_is_not_healthy(count: str) -> None:
    row = dict.fromkeys(PROBLEMS, 0)
    assert judge_health({"status": "read", **row}) is Health.HEALTHY
    assert judge_health({"status": "read", **row, count: 1}) is not Health.HEALTHY
