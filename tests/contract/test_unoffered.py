"""Services that lack requests: each is named before anything is planned on it, and the rest works.

The stand-in is a proxy in front of real brokers: it leaves requests out of the answer to
ApiVersions, and ends a connection on which one comes all the same. What a service lacks is taken
from its own documentation, such as docs.warpstream.com, "Protocol and feature support": its list of
supported APIs lacks IncrementalAlterConfigs; ElectLeaders, AlterPartitionReassignments and
ListPartitionReassignments "have no meaning" there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from command import run_here
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from lab import connect_to, wait_for
from proxy import FailingNetwork, failing_network
from workbench import ENTRY

from reconciler.errors import ClusterError
from reconciler.kafka.connection import connect
from reconciler.kafka.mover import KafkaMover
from reconciler.kafka.offered import OLDEST
from reconciler.kafka.reader import KafkaReader
from reconciler.kafka.writer import write_audit_record
from reconciler.model.requests import LOCK, KafkaRequest
from reconciler.sandbox.cluster import Cluster

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet
    from command import Ran

METADATA, OFFSET_FETCH, LIST_GROUPS = 3, 9, 16
WARPSTREAM = (
    KafkaRequest.ALTER_CONFIGS,
    KafkaRequest.ELECT_LEADERS,
    KafkaRequest.ALTER_REASSIGNMENTS,
    KafkaRequest.LIST_REASSIGNMENTS,
)
CLUSTERS = """\
version: 1
clusters:
  lab:
    moves: {rate: RATE, allow: [replication]}
    guards: {max_deletes: 1, unused_for: 0s}
"""
NOT_ALWAYS = (
    "lacks Describe",
    "brokers with __consumer_offsets",
    "UNSUPPORTED",
    "Traceback",
    "ValueError",
)
"""What no answer may say: it would send somebody to look for another cause."""


class Service:
    """Real brokers behind a proxy that leaves requests out, and a directory with an estate."""

    def __init__(self, cluster: Cluster, network: FailingNetwork, root: Path, prefix: str) -> None:
        self.cluster = cluster
        self.network = network
        self.root = root
        self.prefix = prefix
        (root / "topics").mkdir()
        self.allow()
        self.others = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})

    def allow(self, rate: str = "unlimited") -> None:
        (self.root / "topics" / "clusters.yaml").write_text(CLUSTERS.replace("RATE", rate))

    def lack(self, *requests: KafkaRequest) -> None:
        """Leave requests out, each from the version on that reconciler needs."""
        for request in requests:
            key, oldest = OLDEST[request]
            self.network.offer(key, oldest - 1)

    def name(self, name: str) -> str:
        return self.prefix + name

    def create(self, name: str, partitions: int = 2, replicas: int = 2) -> str:
        """Create a topic with a retention of a day, seen by every broker."""
        topic = NewTopic(self.name(name), partitions, replicas, config={"retention.ms": "86400000"})
        self.others.create_topics([topic])[topic.topic].result(20)
        reader = KafkaReader(connect_to(self.cluster))
        wait_for(lambda: all(topic.topic in v for v in reader.read_views([topic.topic]).values()))
        return topic.topic

    def want(self, name: str, days: int = 1, partitions: int = 2, replicas: int = 2) -> str:
        """Write the spec of a topic."""
        wished = {
            "topic": self.name(name),
            "partitions": partitions,
            "replication_factor": replicas,
            "config": {"retention.ms": f"{days}d"},
        }
        self._write(name, wished)
        return self.name(name)

    def unwant(self, name: str) -> str:
        self._write(
            name, {"topic": self.name(name), "state": "absent", "acknowledge": ["data-loss"]}
        )
        return self.name(name)

    def run(self, *arguments: str) -> Ran:
        """Run a command before the proxies; no answer may name a cause that is none."""
        ran = run_here(self.root, self.network.bootstrap_servers, *arguments)
        assert not [words for words in NOT_ALWAYS if words in ran.out + ran.err], ran
        return ran

    def plan(self, *arguments: str) -> Ran:
        return self.run("plan", "--cluster", "lab", "--topic", f"{self.prefix}*", *arguments)

    def apply(self, *arguments: str) -> Ran:
        chosen = ("--cluster", "lab", "--topic", f"{self.prefix}*")
        return self.run("apply", "--auto-approve", *(arguments or chosen))

    def _write(self, name: str, document: dict[str, object]) -> None:
        (self.root / "topics" / f"{name}.yaml").write_text(json.dumps(document))


@pytest.fixture
def service(cluster3: Cluster, topic_prefix: str, tmp_path: Path) -> Iterator[Service]:
    with failing_network(cluster3) as network:
        yield Service(cluster3, network, tmp_path, topic_prefix)


def test_brokers_offer_everything_and_a_stand_in_what_it_does_not_leave_out(
    service: Service,
) -> None:
    assert KafkaReader(connect_to(service.cluster)).read_unoffered() == frozenset()
    service.lack(*KafkaRequest)
    through = connect(ENTRY, bootstrap_servers=service.network.bootstrap_servers)
    assert KafkaReader(through).read_unoffered() == frozenset(KafkaRequest)


def grow(service: Service, name: str) -> str:
    return service.want(name, partitions=3)


def configure(service: Service, name: str) -> str:
    return service.want(name, days=2)


def slow(*values: object) -> ParameterSet:
    """Leave a case out of the gate, which runs one of its family."""
    return pytest.param(*values, marks=pytest.mark.slow)


CHANGES: dict[str, tuple[KafkaRequest, Callable[[Service, str], str], str]] = {
    "configs": (
        KafkaRequest.ALTER_CONFIGS,
        configure,
        "the brokers do not offer IncrementalAlterConfigs, so configs of existing topics cannot be "
        "changed through Kafka",
    ),
    "partitions": (
        KafkaRequest.CREATE_PARTITIONS,
        grow,
        "the brokers do not offer CreatePartitions, so partitions cannot be added through Kafka",
    ),
    "ids to delete by": (
        KafkaRequest.DELETE_TOPICS,
        Service.unwant,
        "the brokers do not offer DeleteTopics v6, so topics cannot be deleted by their ids, and "
        "a deletion by name could delete another topic",
    ),
    "ids of topics": (
        KafkaRequest.TOPIC_IDS,
        Service.unwant,
        "the brokers do not offer Metadata v10, so topics cannot be deleted by their ids, and a "
        "deletion by name could delete another topic",
    ),
}


@pytest.mark.parametrize(
    "case", [CHANGES["configs"], *(slow(case) for n, case in CHANGES.items() if n != "configs")]
)
def test_a_change_that_needs_it_is_refused_in_the_plan_and_others_are_made(
    service: Service, case: tuple[KafkaRequest, Callable[[Service, str], str], str]
) -> None:
    request, change, said = case
    service.create("old")
    service.lack(request)
    old, new = change(service, "old"), service.want("new")
    way_out = "do it with the tools of the service, then plan again [request-unoffered]"
    planned = service.plan()
    assert planned.code == 1
    refused = service.apply()
    assert (refused.code, f"{old}: {said}; {way_out}" in refused.err) == (1, True), refused
    assert new not in service.others.list_topics(timeout=15).topics
    made = service.apply("--cluster", "lab", "--topic", f"{service.prefix}*", "--skip-refused")
    assert f"refused       {old}  {said}" in made.out, made
    assert f"done          {new}" in made.out, made


def test_no_topic_is_created_where_nobody_can(service: Service) -> None:
    service.create("old")
    service.lack(KafkaRequest.CREATE_TOPICS)
    new = service.want("new")
    service.want("old", days=2)
    refused = service.apply()
    said = "the brokers do not offer CreateTopics, so topics cannot be created through Kafka; "
    assert (refused.code, f"{new}: {said}" in refused.err) == (1, True), refused
    made = service.apply("--cluster", "lab", "--topic", f"{service.prefix}*", "--skip-refused")
    assert f"done          {service.name('old')}" in made.out, made


def test_a_service_without_half_of_them_still_gets_its_topics(service: Service) -> None:
    """WarpStream, by its documentation."""
    service.lack(*WARPSTREAM)
    service.create("old")
    new = service.want("new")
    service.want("old", partitions=4)
    made = service.apply()
    assert made.code == 0, made
    assert "Applied: 2 done" in made.out
    assert len(service.others.list_topics(new, timeout=15).topics[new].partitions) == 2
    assert service.plan("--detailed-exitcode").code == 0
    health = service.run("health", "--cluster", "lab")
    assert "do not offer ListPartitionReassignments" in health.out, health
    shown = service.run("get", "topics", "--cluster", "lab")
    assert shown.code == 0, shown


@pytest.mark.slow
def test_no_record_is_written_without_an_id_of_its_producer(service: Service) -> None:
    """Why a plan of a cluster with an audit topic is refused there."""
    topic = service.create("audit")
    service.lack(KafkaRequest.INIT_PRODUCER_ID)
    through = connect(ENTRY, bootstrap_servers=service.network.bootstrap_servers)
    with pytest.raises(ClusterError) as lost:
        write_audit_record(through, topic, "lab", "{}")
    assert [found.rule for found in lost.value.findings] == ["audit-lost"]


@pytest.mark.usefixtures("brief_rates")
class TestMoves:
    @pytest.mark.parametrize(
        ("lacking", "named"),
        [
            slow([KafkaRequest.ALTER_REASSIGNMENTS], "AlterPartitionReassignments"),
            slow([KafkaRequest.LIST_REASSIGNMENTS], "ListPartitionReassignments"),
            (WARPSTREAM, "AlterPartitionReassignments and ListPartitionReassignments"),
        ],
    )
    def test_a_plan_of_moves_is_refused(
        self, service: Service, lacking: list[KafkaRequest], named: str
    ) -> None:
        service.create("old")
        service.want("old", replicas=3)
        saved = ("--moves", "--out", "moves.json")
        assert service.plan(*saved).code == 0
        service.lack(*lacking)
        service.network.heal()  # it forgets which requests came so far
        refused = service.plan("--moves", "--format", "json")
        found = json.loads(refused.out)["refusals"]
        what = f"the brokers of lab do not offer {named}, so replicas cannot be moved through Kafka"
        assert [each["what"] for each in found] == [what], refused
        # A plan that was made before, such as on a snapshot, writes nothing either.
        late = service.apply("moves.json")
        assert (late.code, f"{what}; " in late.err) == (1, True), late
        assert service.network.kinds.isdisjoint({OLDEST[each][0] for each in lacking})
        # A plan of changes does not advise it, and what moves no replica is planned and made.
        changes = service.plan()
        assert ("moves-pending" in changes.out, "is not made: the brokers" in changes.out) == (
            False,
            True,
        ), changes
        service.want("new")
        assert "Applied: 1 done" in service.apply().out

    def test_what_is_in_flight_is_said_to_be_unknown_to_everybody(self, service: Service) -> None:
        service.lack(KafkaRequest.LIST_REASSIGNMENTS)
        ran = service.run("moves", "status", "--cluster", "lab")
        assert ran.code == 1
        assert ran.err == (
            "error: the brokers of lab do not offer ListPartitionReassignments, so moves of "
            "replicas can be neither seen nor made through Kafka; see what is in flight with the "
            "tools of the service [request-unoffered]\n"
        )

    def test_a_throttle_needs_configs(self, service: Service) -> None:
        service.allow(rate="30MiB")
        service.create("old")
        service.want("old", replicas=3)
        service.lack(KafkaRequest.ALTER_CONFIGS)
        refused = service.plan("--moves")
        assert refused.code == 1
        assert "Write rate: unlimited, or do it with the tools of the service" in refused.out
        service.allow()
        assert service.plan("--moves").code == 0

    def test_sizes_are_unknown_in_one_note(self, service: Service) -> None:
        service.create("old")
        service.want("old", replicas=3)
        service.lack(KafkaRequest.DESCRIBE_LOG_DIRS)
        unsized = (
            "note: the brokers of lab do not offer DescribeLogDirs, so the sizes of partitions and "
            "the free space of disks are unknown [sizes-unseen]\n"
        )
        refused = service.plan("--moves")
        assert (refused.code, refused.out.count("note: the brokers")) == (1, 1), refused
        assert "            Write keep_free: 0%. [moves-disk]\n" in refused.out
        for command in (("health",), ("moves", "status"), ("get", "brokers")):
            ran = service.run(*command, "--cluster", "lab")
            assert (ran.code, (ran.out + ran.err).count(unsized)) == (0, 1), ran

    def test_leaders_stay_where_nobody_elects(self, service: Service) -> None:
        name = service.create("led", partitions=1, replicas=2)
        row = KafkaReader(connect_to(service.cluster)).read_cluster([]).topics[name].assignment[0]
        mover = KafkaMover(connect_to(service.cluster))
        mover.reassign({(name, 0): tuple(reversed(row))})  # another preferred leader, which waits
        mover.close()
        elect = ("elect", "--cluster", "lab", "--topic", name)
        wait_for(lambda: "1 to elect" in service.run(*elect).out)
        assert service.run(*elect, "--out", "elect.json").code == 0
        service.lack(KafkaRequest.ELECT_LEADERS)
        said = (
            "brokers of lab do not offer ElectLeaders, so leaders cannot be elected through Kafka"
        )
        refused = service.run(*elect)
        assert (refused.code, f"The {said}." in refused.out) == (1, True), refused
        late = service.apply("elect.json")
        assert (late.code, f"error: the {said}; " in late.err) == (1, True), late


class TestGroups:
    # A run joins before it syncs: it would find out after its first request.
    @pytest.mark.parametrize(
        "request_",
        [KafkaRequest.SYNC_GROUP, *(slow(r) for r in LOCK if r is not KafkaRequest.SYNC_GROUP)],
    )
    def test_a_lock_that_cannot_be_taken_is_not_blamed_on_health(
        self, service: Service, request_: KafkaRequest
    ) -> None:
        service.want("new")
        assert service.plan("--out", "plan.json").code == 0
        service.lack(request_)
        # A plan that was made before brings no refusal of its own.
        late = service.apply("plan.json")
        assert late.code == 1
        assert f"the brokers of lab do not offer {request_}; pass --no-lock if a" in late.err
        made = service.apply("plan.json", "--no-lock")
        assert (made.code, "Applied: 1 done" in made.out) == (0, True), made
        assert made.err.startswith("note: without a lock, nothing prevents a second apply; ")
        assert "note: without" not in late.err

    def test_what_reads_a_topic_is_unknown_and_keeps_it(self, service: Service) -> None:
        name = service.create("read")
        service.unwant("read")
        service.network.offer(LIST_GROUPS)
        refused = service.plan()
        assert refused.code == 1
        assert "the brokers do not offer ListGroups" in refused.out, refused
        assert "Delete it with the tools of the service." in refused.out, refused
        listed = service.run("get", "groups", "--cluster", "lab")
        assert (
            "cannot be listed: the brokers do not offer ListGroups; the tools of the" in listed.err
        )
        assert name in service.others.list_topics(timeout=15).topics

    def test_offsets_that_nobody_can_read_are_said_of_the_group(self, service: Service) -> None:
        name = service.create("read")
        group = service.name("group")
        settings = {"bootstrap.servers": service.cluster.bootstrap_servers, "group.id": group}
        reader = Consumer({**settings, "enable.auto.commit": False, "log_level": 0})
        reader.commit(offsets=[TopicPartition(name, 0, 0)], asynchronous=False)
        reader.close()
        service.network.offer(OFFSET_FETCH)
        listed = service.run("get", "groups", "--cluster", "lab", "--format", "json")
        found = {each["group"]: each for each in json.loads(listed.out)["groups"]}
        assert found[group]["unseen"] == (
            "its offsets cannot be read: the brokers do not offer OffsetFetch"
        )


def test_rights_that_brokers_do_not_show_are_not_called_missing(service: Service) -> None:
    """Metadata shows rights from version 8 on (KIP-430)."""
    service.network.offer(METADATA, 7)
    service.create("old")
    service.want("new")
    service.want("old", days=2)
    made = service.apply()
    assert (made.code, "Applied: 2 done" in made.out) == (0, True), made
    assert service.run("health", "--cluster", "lab").code == 0
    checked = service.run("grants", "--cluster", "lab", "--check")
    assert checked.code == 0
    why = "not known, as the brokers do not offer Metadata v8, which shows rights"
    assert f"Alter on all topics: {why}" in checked.out.replace("\n ", " "), checked
