"""Services that make another topic than they are asked for, without an error: what a run says.

The stand-ins are a proxy in front of real brokers, which rewrites CreateTopics.

- Amazon MSK with Express brokers: "If you try to create a topic with a replication factor value
  other than `3`, Amazon MSK will create the topic with a replication factor of `3` by default."
  https://docs.aws.amazon.com/msk/latest/developerguide/msk-configuration-express-read-write.html,
  "Topic-level configurations on Express Brokers", looked up in November 2026.
- AutoMQ: "MIN_IN_SYNC_REPLICAS should be forced to 1 since replication factor is 1" and "we force
  replication factor to 1 here", comments in `createTopics` of ReplicationControlManager.java,
  https://github.com/AutoMQ/automq at f1ce98e (November 2026). An assignment is not replaced there:
  ElasticCreateTopicPolicy.java refuses a row with "can only have exactly one replica", and
  `createTopic` refuses every assignment where default.replication.factor is not 1, as the factor in
  the request has become 1 then: "replication factor was not set to -1".
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from answers import CREATE_TOPICS
from command import run_here
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType
from proxy import EVERY, NO_REQUEST, FailingNetwork, failing_network

from reconciler.cli.app import run
from reconciler.sandbox.cluster import Cluster

if TYPE_CHECKING:
    from command import Ran

MIN_INSYNC = "min.insync.replicas"
NAME_IT = (
    "if they always do, write the values that they set into the spec, and name the service below "
    "this cluster in clusters.yaml (service)"
)


class Estate:
    """One topic of an estate, on a cluster behind a stand-in, and what other clients see of it."""

    def __init__(self, cluster: Cluster, network: FailingNetwork, root: Path, name: str) -> None:
        self._servers, self._root, self.name = network.bootstrap_servers, root, name
        self._others = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
        self.network = network
        (root / "topics").mkdir()

    def write(self, settings: str, replicas: int, more: str = "", partitions: int = 2) -> None:
        clusters = f"version: 1\nclusters: {{lab: {{{settings}}}}}\n"
        (self._root / "topics" / "clusters.yaml").write_text(clusters)
        (self._root / "topics" / "t.yaml").write_text(
            f"topic: {self.name}\npartitions: {partitions}\nreplication_factor: {replicas}\n"
            f"acknowledge: [ordering]\n{more}"
        )

    def plan(self) -> Ran:
        chosen = ("--cluster", "lab", "--detailed-exitcode")
        return run_here(self._root, self._servers, "plan", *chosen)

    def apply(self) -> Ran:
        return run_here(self._root, self._servers, "apply", "--cluster", "lab", "--auto-approve")

    def validate(self) -> int:
        """Check the files alone: nothing is asked of a cluster."""
        return run(["validate", str(self._root / "topics")])

    def replicas(self) -> list[int]:
        """Return the number of replicas of each partition, none if there is no topic."""
        found = self._others.list_topics(timeout=20).topics
        partitions = found[self.name].partitions if self.name in found else {}
        return [len(partitions[number].replicas) for number in sorted(partitions)]

    def min_insync(self) -> tuple[str, bool]:
        """Return the value in force, and whether it is set on the topic."""
        resource = ConfigResource(ResourceType.TOPIC, self.name)
        entry = self._others.describe_configs([resource])[resource].result(20)[MIN_INSYNC]
        return entry.value, entry.source == 1


@pytest.fixture
def network(cluster3: Cluster) -> Iterator[FailingNetwork]:
    with failing_network(cluster3) as network:
        yield network


@pytest.fixture
def express(
    cluster3: Cluster, network: FailingNetwork, tmp_path: Path, topic_prefix: str
) -> Estate:
    network.replace_wishes(3)
    return Estate(cluster3, network, tmp_path, f"{topic_prefix}t")


@pytest.fixture
def automq(cluster3: Cluster, network: FailingNetwork, tmp_path: Path, topic_prefix: str) -> Estate:
    network.replace_wishes(1, {MIN_INSYNC: "1"})
    network.refuse_replicas(2)
    return Estate(cluster3, network, tmp_path, f"{topic_prefix}t")


@pytest.mark.parametrize("settings", ["", "placement: broker"])
def test_where_no_service_is_named_a_run_says_what_was_made_instead(
    express: Estate, settings: str
) -> None:
    express.write(settings, 2)
    applied = express.apply()
    assert applied.code == 1, applied
    said = "created, but the brokers made it otherwise: partition 0 has 3 replicas, not 2"
    assert f"half done     {express.name}  {said}; {NAME_IT}" in applied.out
    assert "Applied: 1 half done" in applied.out
    assert express.replicas() == [3, 3]
    # The next plan refuses it with both ways out, and apply plans nothing again and again.
    again = express.plan()
    assert (again.code, "[replication-stays]" in again.out) == (1, True), again
    assert "Put 3 back" in again.out
    assert express.apply().code == 1
    express.write(settings, 3)
    assert express.plan().code == 0


def test_where_moves_are_allowed_the_number_is_pending_and_not_a_change(express: Estate) -> None:
    express.write("moves: {allow: [replication], rate: unlimited}", 2)
    assert "half done" in express.apply().out
    again = express.plan()
    assert (again.code, "replication_factor 3 → 2 is pending" in again.out) == (0, True), again


def test_express_is_refused_offline_and_the_right_factor_works(
    express: Estate, capsys: pytest.CaptureFixture[str]
) -> None:
    express.write("service: msk-express", 2)
    assert express.validate() == 1
    said = capsys.readouterr().out
    assert "gives every topic replication_factor 3, not 2" in said
    assert "{replication_factor: 3}" in said
    assert express.plan().code == 1
    assert express.replicas() == []
    for partitions in (2, 4):
        express.write("service: msk-express", 3, "config: {retention.ms: 1d}\n", partitions)
        applied = express.apply()
        assert (applied.code, "Applied: 1 done" in applied.out) == (0, True), applied
        assert express.plan().code == 0
        assert express.replicas() == [3] * partitions


def test_automq_refuses_rows_of_several_replicas_before_anything_is_made(automq: Estate) -> None:
    automq.write("", 2)
    applied = automq.apply()
    assert applied.code == 1, applied
    assert f"failed        {automq.name}  the brokers refuse it: " in applied.out
    assert automq.replicas() == []


def test_automq_makes_one_replica_of_a_count_and_the_run_says_so(automq: Estate) -> None:
    automq.write("placement: broker", 3, f"config: {{{MIN_INSYNC}: 2}}\n")
    applied = automq.apply()
    assert applied.code == 1, applied
    said = "created, but the brokers made it otherwise: partition 0 has 1 replica, not 3"
    assert f"half done     {automq.name}  {said}; {NAME_IT}" in applied.out
    assert (automq.replicas(), automq.min_insync()) == ([1, 1], ("1", True))
    again = automq.plan()
    assert (again.code, "[replication-stays]" in again.out) == (1, True), again


@pytest.mark.parametrize("wrong", [(3, ""), (1, f"config: {{{MIN_INSYNC}: 2}}\n")])
def test_automq_is_refused_offline(
    automq: Estate, wrong: tuple[int, str], capsys: pytest.CaptureFixture[str]
) -> None:
    automq.write("service: automq", *wrong)
    assert automq.validate() == 1
    assert "[service-" in capsys.readouterr().out
    assert automq.plan().code == 1
    assert automq.replicas() == []


@pytest.mark.parametrize("placed", ["", ", placement: broker"])
@pytest.mark.parametrize("config", ["", f"config: {{{MIN_INSYNC}: 1}}\n"])
def test_one_replica_on_automq_leaves_nothing_to_do(
    automq: Estate, placed: str, config: str
) -> None:
    """The service sets min.insync.replicas on every topic: the next plan does not unset it."""
    automq.write(f"service: automq{placed}", 1, config)
    applied = automq.apply()
    assert (applied.code, "Applied: 1 done" in applied.out) == (0, True), applied
    assert (automq.replicas(), automq.min_insync()) == ([1, 1], ("1", True))
    again = automq.plan()
    assert again.code == 0, again


def test_automq_with_another_default_factor_takes_no_rows_and_counts_work(automq: Estate) -> None:
    automq.network.answer(CREATE_TOPICS, NO_REQUEST, times=EVERY, done=False)
    automq.write("service: automq", 1)
    applied = automq.apply()
    assert applied.code == 1, applied
    assert "if they take no assignment at all, write placement: broker below this" in applied.out
    automq.network.heal()
    automq.write("service: automq, placement: broker", 1)
    assert automq.apply().code == 0
    assert automq.plan().code == 0
