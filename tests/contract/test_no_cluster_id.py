"""Clusters that report no id, as Amazon MSK Serverless.

The stand-in is a proxy in front of real brokers, which leaves the id out of the answers to Metadata
and DescribeCluster.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from command import run_here
from lab import connect_to
from proxy import FailingNetwork, failing_network
from workbench import ENTRY

from reconciler.kafka.connection import connect
from reconciler.kafka.reader import KafkaReader
from reconciler.sandbox.cluster import Cluster

if TYPE_CHECKING:
    from command import Ran


@dataclass(frozen=True, slots=True)
class Nameless:
    """Two clusters that report no id, and an estate whose only cluster could be either."""

    root: Path
    first: FailingNetwork
    second: FailingNetwork
    topic: str

    @property
    def identity(self) -> str:
        """What identifies the first cluster."""
        return "bootstrap:" + ",".join(sorted(self.first.bootstrap_servers.split(",")))

    def plan(self, *arguments: str, at: FailingNetwork | None = None) -> Ran:
        chosen = ("--cluster", "lab", "--topic", self.topic)
        return self.run("plan", *chosen, *arguments, at=at)

    def run(self, *arguments: str, at: FailingNetwork | None = None) -> Ran:
        """Run a command before the first cluster, or another one."""
        return run_here(self.root, (at or self.first).bootstrap_servers, *arguments)

    def expect(self, cluster_id: str | None) -> None:
        """Write `cluster_id` into clusters.yaml."""
        lab = {"cluster_id": cluster_id} if cluster_id else {}
        document = {"version": 1, "clusters": {"lab": lab}}
        (self.root / "topics" / "clusters.yaml").write_text(json.dumps(document))


@pytest.fixture
def nameless(
    cluster3: Cluster, cluster6: Cluster, topic_prefix: str, tmp_path: Path
) -> Iterator[Nameless]:
    (tmp_path / "topics").mkdir()
    wished = {"topic": f"{topic_prefix}new", "partitions": 1, "replication_factor": 2}
    (tmp_path / "topics" / "new.yaml").write_text(json.dumps(wished))
    with failing_network(cluster3) as first, failing_network(cluster6) as second:
        first.hide_cluster_id()
        second.hide_cluster_id()
        made = Nameless(tmp_path, first, second, f"{topic_prefix}new")
        made.expect(None)
        yield made


def test_it_is_read_as_any_other_cluster(nameless: Nameless, cluster3: Cluster) -> None:
    """confluent-kafka itself ends the process: its description of a cluster copies no id."""
    through = connect(ENTRY, bootstrap_servers=nameless.first.bootstrap_servers)
    found, real = KafkaReader(through), KafkaReader(connect_to(cluster3))
    state, shown = found.read_cluster(()), real.read_cluster(())
    assert state.brokers == shown.brokers  # also their racks
    found.check_rights((), for_apply=True, elects=True, moved=())
    assert not through.has_id
