"""Services that create topics otherwise than asked, without an error: real brokers, behind proxies.

Each stand-in behaves as the quoted sentence says; what reconciler knows of a service plays no part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from command import run_here
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType
from proxy import FailingNetwork, failing_network

from reconciler.api.planning import load_estate
from reconciler.errors import SpecError
from reconciler.sandbox.cluster import Cluster

if TYPE_CHECKING:
    from command import Ran


@dataclass(frozen=True)
class Replacement:
    """What a service makes of a topic, and where it says so."""

    service: str
    page: str
    date: str
    sentence: str
    replicas: int
    asked: int
    configs: dict[str, str] = field(default_factory=dict)


EXPRESS = Replacement(
    "msk-express",
    "https://docs.aws.amazon.com/msk/latest/developerguide/"
    "msk-configuration-express-read-write.html",
    "November 2026",
    "replication factor of 3, whatever is asked: another factor is created as 3 without an error",
    replicas=3,
    asked=2,
)
AUTOMQ = Replacement(
    "automq",
    "https://github.com/AutoMQ/automq at f1ce98e, ReplicationControlManager.java",
    "November 2026",
    "when a topic is created, its replication factor and its min.insync.replicas become 1",
    replicas=1,
    asked=3,
    configs={"min.insync.replicas": "1"},
)


@pytest.fixture(params=[EXPRESS, AUTOMQ], ids=lambda each: each.service)
def replacement(request: pytest.FixtureRequest) -> Replacement:
    assert isinstance(request.param, Replacement)
    return request.param


@pytest.fixture
def network(cluster3: Cluster, replacement: Replacement) -> Iterator[FailingNetwork]:
    with failing_network(cluster3) as network:
        network.replace(replacement.replicas, replacement.configs)
        yield network


class Estate:
    """One topic of an estate, on a cluster that is reached through the network."""

    def __init__(self, directory: Path, network: FailingNetwork, name: str, service: str) -> None:
        self._directory, self._servers, self._name = directory, network.bootstrap_servers, name
        (directory / "topics").mkdir(exist_ok=True)
        clusters = f"version: 1\nclusters: {{lab: {{service: {service}}}}}\n"
        (directory / "topics" / "clusters.yaml").write_text(clusters)

    def write(self, replication: int, more: str = "") -> None:
        (self._directory / "topics" / "t.yaml").write_text(
            f"topic: {self._name}\npartitions: 2\nreplication_factor: {replication}\n{more}"
        )

    def run(self, *arguments: str) -> Ran:
        return run_here(self._directory, self._servers, *arguments)


def read_topic(cluster: Cluster, name: str) -> tuple[list[int], Mapping[str, str]]:
    """Return the replicas of each partition and the configs that are set on a topic."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    found = admin.list_topics(name, 20).topics[name].partitions
    resource = ConfigResource(ResourceType.TOPIC, name)
    (configs,) = [each.result(20) for each in admin.describe_configs([resource]).values()]
    own = {key: entry.value for key, entry in configs.items() if entry.source == 1}
    return [len(found[number].replicas) for number in sorted(found)], own


def test_without_the_service_the_apply_and_every_plan_after_it_name_the_difference(
    network: FailingNetwork,
    replacement: Replacement,
    cluster3: Cluster,
    topic_prefix: str,
    tmp_path: Path,
) -> None:
    name = f"{topic_prefix}t"
    estate = Estate(tmp_path, network, name, "apache")
    estate.write(replacement.asked)
    applied = estate.run("apply", "--cluster", "lab", "--auto-approve")
    assert read_topic(cluster3, name)[0] == [replacement.replicas] * 2
    assert applied.code == 1
    made = f"{replacement.replicas} replica{'s' * (replacement.replicas > 1)}"
    assert f"{name}: partition 0 has {made}, not {replacement.asked}" in applied.out
    # Nothing tries to reach the spec by a deletion: the plan is refused, and says what to write.
    planned = estate.run("plan", "--cluster", "lab", "--detailed-exitcode")
    assert planned.code == 1
    assert f"replication_factor {replacement.replicas} → {replacement.asked}" in planned.out
    assert f"Put {replacement.replicas} back" in planned.out


def test_with_the_service_it_is_refused_offline_and_what_fits_is_done_once(
    network: FailingNetwork,
    replacement: Replacement,
    cluster3: Cluster,
    topic_prefix: str,
    tmp_path: Path,
) -> None:
    name = f"{topic_prefix}t"
    estate = Estate(tmp_path, network, name, replacement.service)
    estate.write(replacement.asked)
    with pytest.raises(SpecError) as refused:
        load_estate(tmp_path / "topics")
    (finding,) = refused.value.findings
    assert finding.rule == "service-replication"
    assert f"replication_factor: {replacement.replicas}" in finding.way_out
    estate.write(replacement.replicas)
    applied = estate.run("apply", "--cluster", "lab", "--auto-approve")
    assert (applied.code, "Applied: 1 done" in applied.out) == (0, True), applied
    assert read_topic(cluster3, name) == ([replacement.replicas] * 2, replacement.configs)
    # What the service has set itself is not unset, and no plan asks for it.
    again = estate.run("plan", "--cluster", "lab", "--detailed-exitcode")
    assert again.code == 0, again
