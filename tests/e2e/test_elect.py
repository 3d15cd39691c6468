"""Elections on real brokers: a broker was away, and its partitions stay where they went."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from command import run_here
from confluent_kafka.admin import AdminClient
from lab import wait_for

from reconciler.sandbox.cluster import Cluster, start_cluster

if TYPE_CHECKING:
    from command import Ran

AWAY = 2


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Three brokers of its own, on which nobody but us elects."""
    calm = {"auto.leader.rebalance.enable": "false"}
    with start_cluster(brokers=3, broker_properties=dict.fromkeys((1, 2, 3), calm)) as cluster:
        yield cluster


def count_leaders(cluster: Cluster, topic: str) -> dict[int, int]:
    """Count by broker what it leads."""
    client = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    counts = dict.fromkeys((1, 2, 3), 0)
    for partition in client.list_topics(topic, timeout=15).topics[topic].partitions.values():
        counts[partition.leader] = counts.get(partition.leader, 0) + 1
    return counts


@pytest.mark.cluster
def test_preferred_leaders_lead_again_after_a_failover(cluster: Cluster, tmp_path: Path) -> None:
    def reconciler(*arguments: str) -> Ran:
        return run_here(tmp_path, cluster.bootstrap_servers, *arguments)

    (tmp_path / "topics").mkdir()
    (tmp_path / "topics/clusters.yaml").write_text("version: 1\nclusters: {lab: {}}\n")
    (tmp_path / "topics/orders.yaml").write_text(
        "topic: orders\npartitions: 6\nreplication_factor: 3\n"
    )
    assert reconciler("apply", "--cluster", "lab", "--auto-approve").code == 0
    elect = ("elect", "--cluster", "lab", "--out", "elect.json")
    assert "Nothing to elect." in reconciler(*elect).out
    cluster.stop_broker(AWAY)
    wait_for(lambda: count_leaders(cluster, "orders")[AWAY] == 0)
    refused = reconciler(*elect)
    assert "Nothing to elect." in refused.out
    assert "orders: broker 2 is dead, so it cannot lead 2 partitions" in refused.out
    cluster.start_broker(AWAY)

    def plans_both() -> bool:
        above, found, _ = reconciler(*elect).out.partition("1 to elect")
        return bool(found) and "2 partitions" in above  # none of them waits to be in sync

    wait_for(plans_both)
    assert count_leaders(cluster, "orders")[AWAY] == 0
    applied = reconciler("apply", "elect.json", "--auto-approve")
    assert (applied.code, applied.out.splitlines()[-1]) == (0, "Applied: 1 done"), applied.err
    assert count_leaders(cluster, "orders") == {1: 2, 2: 2, 3: 2}
    again = reconciler("apply", "elect.json", "--auto-approve")
    assert (again.code, again.out.splitlines()[-1]) == (0, "Applied: 1 already done")
