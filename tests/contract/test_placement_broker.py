"""Brokers that place replicas themselves: real ones, behind proxies that refuse an assignment."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from command import run_here
from confluent_kafka.admin import AdminClient, NewTopic
from proxy import FailingNetwork, failing_network

from reconciler.sandbox.cluster import Cluster

if TYPE_CHECKING:
    from command import Ran


@pytest.fixture
def network(cluster3: Cluster) -> Iterator[FailingNetwork]:
    """A network before the shared brokers that refuses every assignment."""
    with failing_network(cluster3) as network:
        network.refuse_assignments()
        yield network


class Estate:
    """One topic of an estate, on a cluster that is reached through the network."""

    def __init__(self, directory: Path, network: FailingNetwork, name: str, placement: str) -> None:
        self._directory, self._servers, self._name = directory, network.bootstrap_servers, name
        (directory / "topics").mkdir(exist_ok=True)
        clusters = f"version: 1\nclusters: {{lab: {{placement: {placement}}}}}\n"
        (directory / "topics" / "clusters.yaml").write_text(clusters)

    def write(self, partitions: int, more: str = "") -> None:
        (self._directory / "topics" / "t.yaml").write_text(
            f"topic: {self._name}\npartitions: {partitions}\nreplication_factor: 2\n"
            f"acknowledge: [ordering]\n{more}"
        )

    def run(self, *arguments: str) -> Ran:
        return run_here(self._directory, self._servers, *arguments)

    def plan(self, *more: str) -> Ran:
        return self.run("plan", "--cluster", "lab", *more)

    def apply(self) -> Ran:
        return self.run("apply", "--cluster", "lab", "--auto-approve")


def read_rows(cluster: Cluster, name: str) -> list[list[int]]:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    found = admin.list_topics(name, 20).topics[name].partitions
    return [found[number].replicas for number in sorted(found)]


def test_topics_are_created_and_expanded_by_their_counts(
    network: FailingNetwork, cluster3: Cluster, topic_prefix: str, tmp_path: Path
) -> None:
    name = f"{topic_prefix}t"
    estate = Estate(tmp_path, network, name, "broker")
    estate.write(3, "config: {retention.ms: 2d}\n")
    planned = estate.plan("--out", "plan.json")
    assert planned.code == 0, planned
    assert "placement                        by the brokers: 3 partitions × 2 replicas" in (
        planned.out
    )
    applied = estate.run("apply", "plan.json", "--auto-approve")
    assert (applied.code, "Applied: 1 done" in applied.out) == (0, True), applied
    again = estate.run("apply", "plan.json", "--auto-approve")
    assert "Applied: 1 already done" in again.out, again
    assert estate.plan("--detailed-exitcode").code == 0
    first = read_rows(cluster3, name)
    assert [len(row) for row in first] == [2, 2, 2]

    estate.write(5, "config: {retention.ms: 3d}\n")
    assert "3 → 5 partitions" in estate.plan().out
    applied = estate.apply()
    assert (applied.code, "Applied: 1 done" in applied.out) == (0, True), applied
    assert estate.plan("--detailed-exitcode").code == 0
    grown = read_rows(cluster3, name)
    assert grown[:3] == first
    assert [len(row) for row in grown] == [2] * 5


def test_where_reconciler_places_the_refusal_is_reported(
    network: FailingNetwork, topic_prefix: str, tmp_path: Path
) -> None:
    """The network refuses what it says it refuses, before anything is done."""
    estate = Estate(tmp_path, network, f"{topic_prefix}t", "reconciler")
    estate.write(3)
    applied = estate.apply()
    assert applied.code == 1, applied
    assert "failed" in applied.out
    assert "the brokers refuse it: Broker: Invalid replica assignment; if they take no" in (
        applied.out
    )
    assert estate.plan("--detailed-exitcode").code == 2


def test_what_brokers_place_otherwise_is_done_and_named(
    network: FailingNetwork, cluster3: Cluster, topic_prefix: str, tmp_path: Path
) -> None:
    network.heal()
    network.ignore_assignments()
    name = f"{topic_prefix}t"
    estate = Estate(tmp_path, network, name, "reconciler")
    # By chance, 20 partitions would be where they are planned once in 6 to the power of 20.
    for partitions, done in ((20, "created"), (40, "expanded")):
        estate.write(partitions, f"config: {{retention.ms: {partitions}d}}\n")
        applied = estate.apply()
        assert applied.code == 0, applied
        assert f"done          {name}  {done}, but the brokers placed it otherwise: " in applied.out
        assert "Applied: 1 done" in applied.out
        assert estate.plan("--detailed-exitcode").code == 0
        assert [len(row) for row in read_rows(cluster3, name)] == [2] * partitions


def test_a_number_of_replicas_that_brokers_do_not_have_is_refused_before_anything(
    network: FailingNetwork, cluster3: Cluster, topic_prefix: str, tmp_path: Path
) -> None:
    name = f"{topic_prefix}t"
    estate = Estate(tmp_path, network, name, "broker")
    (tmp_path / "topics" / "t.yaml").write_text(
        f"topic: {name}\npartitions: 1\nreplication_factor: 4\n"
    )
    assert estate.plan().code == 0  # a service may have more brokers than it shows
    applied = estate.apply()
    assert applied.code == 1, applied
    assert "only 3 broker(s) are registered" in applied.out


def test_another_number_of_replicas_is_named_as_that(
    network: FailingNetwork, cluster3: Cluster, topic_prefix: str, tmp_path: Path
) -> None:
    """Somebody creates the topic with three replicas after the plan."""
    name = f"{topic_prefix}t"
    estate = Estate(tmp_path, network, name, "broker")
    estate.write(1)
    assert estate.plan("--out", "plan.json").code == 0
    admin = AdminClient({"bootstrap.servers": cluster3.bootstrap_servers, "log_level": 0})
    admin.create_topics([NewTopic(name, 1, 3)])[name].result(20)
    applied = estate.run("apply", "plan.json", "--auto-approve")
    assert applied.code == 1, applied
    assert f"{name}: partition 0 has 3 replicas, not 2" in applied.err
