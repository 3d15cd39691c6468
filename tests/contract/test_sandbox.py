"""What every engine of the sandbox keeps to, on real brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka.admin import AdminClient, NewTopic

if TYPE_CHECKING:
    from reconciler.sandbox import Cluster


def test_brokers_and_racks_are_those_asked_for(cluster6: Cluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster6.bootstrap_servers})
    described = admin.describe_cluster().result(30)
    assert described.cluster_id == cluster6.cluster_id
    assert {node.id: node.rack for node in described.nodes} == {
        1: "rack0",
        2: "rack1",
        3: "rack2",
        4: "rack0",
        5: "rack1",
        6: "rack2",
    }


def test_a_topic_spreads_over_the_racks(cluster3: Cluster, topic_prefix: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster3.bootstrap_servers})
    name = f"{topic_prefix}spread"
    admin.create_topics([NewTopic(name, 1, 3)])[name].result(30)
    partition = admin.list_topics(name, timeout=10).topics[name].partitions[0]
    assert sorted(partition.replicas) == [1, 2, 3]
