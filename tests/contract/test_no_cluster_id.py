"""Clusters that report no id, as Amazon MSK Serverless: their address identifies them.

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
from confluent_kafka.admin import AdminClient
from kafka.protocol.consumer import JoinGroupRequest
from lab import connect_to
from proxy import FailingNetwork, failing_network
from workbench import ENTRY

from reconciler.cli.app import run
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


def list_names(cluster: Cluster) -> set[str]:
    client = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    return set(client.list_topics(timeout=15).topics)


def test_it_is_read_as_any_other_cluster(nameless: Nameless, cluster3: Cluster) -> None:
    """confluent-kafka itself ends the process: its description of a cluster copies no id."""
    through = connect(ENTRY, bootstrap_servers=nameless.first.bootstrap_servers)
    found, real = KafkaReader(through), KafkaReader(connect_to(cluster3))
    state, shown = found.read_cluster(()), real.read_cluster(())
    assert state.cluster_id == nameless.identity
    assert state.brokers == shown.brokers  # also their racks
    found.check_rights((), for_apply=True, elects=True, moved=())
    assert not through.has_id


def test_a_plan_is_bound_to_the_address_and_says_so(nameless: Nameless) -> None:
    address = nameless.identity.removeprefix("bootstrap:")
    planned = nameless.plan("--out", "plan.json")
    said = f"no cluster id: bound to its address {address} · "
    assert (planned.code, planned.out.startswith(f"lab · {said}")) == (0, True), planned
    assert said in nameless.plan("--format", "markdown").out
    saved = json.loads((nameless.root / "plan.json").read_text())
    assert saved["cluster"]["cluster_id"] == nameless.identity
    made = nameless.run("apply", "plan.json", "--auto-approve")
    assert (made.code, "Applied: 1 done" in made.out) == (0, True), made


def test_a_plan_of_one_is_not_applied_to_another(nameless: Nameless, cluster6: Cluster) -> None:
    assert nameless.plan("--out", "plan.json").code == 0
    refused = nameless.run("apply", "plan.json", "--auto-approve", at=nameless.second)
    assert nameless.topic not in list_names(cluster6)
    assert refused.code == 1
    ours = ",".join(sorted(nameless.first.bootstrap_servers.split(",")))
    theirs = ",".join(sorted(nameless.second.bootstrap_servers.split(",")))
    assert refused.err.startswith(
        f"error: the plan is for the cluster without an id at {ours}, and this is the cluster "
        f"without an id at {theirs}; apply it to lab at that address, or plan for this cluster "
        "[plan-cluster]"
    ), refused


class TestExpected:
    def test_an_id_that_no_broker_reports_is_refused_with_what_to_write(
        self, nameless: Nameless
    ) -> None:
        nameless.expect("5L6g3nShT-eMCtK--X86sw")
        address = nameless.identity.removeprefix("bootstrap:")
        refused = nameless.plan()
        assert refused.code == 1
        assert (
            f"this is the cluster without an id at {address}, and lab is expected to be "
            "5L6g3nShT-eMCtK--X86sw; check bootstrap.servers, or write cluster_id: "
            f"{nameless.identity} in clusters.yaml [cluster-id]"
        ) in refused.err, refused

    def test_its_address_may_be_demanded(self, nameless: Nameless) -> None:
        nameless.expect(nameless.identity)
        assert nameless.plan().code == 0
        refused = nameless.plan(at=nameless.second)
        assert (refused.code, "[cluster-id]" in refused.err) == (1, True), refused

    def test_a_cluster_with_an_id_is_not_the_one_at_an_address(
        self, nameless: Nameless, cluster3: Cluster
    ) -> None:
        nameless.expect(nameless.identity)
        nameless.first.has_id = True
        refused = nameless.plan()
        assert refused.code == 1
        assert f"this is cluster {cluster3.cluster_id}, and lab is expected" in refused.err, refused


@pytest.mark.parametrize(
    "command",
    [
        ("plan", "--format", "json"),
        ("health",),
        ("moves", "status"),
        ("get", "groups"),
        ("describe", "broker", "1"),
        ("snapshot", "--out", "state.json"),
        ("grants", "--check"),
    ],
    ids=" ".join,
)
def test_no_command_needs_an_id_or_says_none(nameless: Nameless, command: tuple[str, ...]) -> None:
    ran = nameless.run(*command, "--cluster", "lab")
    assert (ran.code, "None" in ran.out + ran.err) == (0, False), ran
    snapshot = nameless.root / "state.json"
    if snapshot.exists():
        assert json.loads(snapshot.read_text())["cluster_id"] == nameless.identity


def test_doctor_says_what_to_write_and_that_there_is_no_lock(
    nameless: Nameless, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = nameless.first.bootstrap_servers
    document = {"version": 1, "clusters": {"lab": {"client": {"bootstrap.servers": servers}}}}
    (nameless.root / "topics" / "clusters.yaml").write_text(json.dumps(document))
    nameless.first.offer(JoinGroupRequest.API_KEY)
    monkeypatch.chdir(nameless.root)
    run(["doctor"])
    said = capsys.readouterr().out
    assert f"write cluster_id: {nameless.identity} below lab" in said
    assert "lock of apply: the lock of lab cannot be taken: the brokers of lab do not offer" in (
        " ".join(said.split())
    )
