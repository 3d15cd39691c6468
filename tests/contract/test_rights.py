"""What an account may do, on a broker with an authorizer: the smallest grants, and what lacks.

docs/reference/permissions.md promises these grants; PLAN and APPLY are what it lists.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from kafka.admin import KafkaAdminClient
from kafka.protocol.admin import DescribeLogDirsRequest
from lab import HERE, wait_for

from reconciler.api.applying import check_apply
from reconciler.api.move_control import control_moves
from reconciler.api.moves import read_moves
from reconciler.api.planning import load_estate
from reconciler.errors import ClusterError, LockHeldError, Severity
from reconciler.kafka.audit import read_audit_topic
from reconciler.kafka.connection import Connection, connect
from reconciler.kafka.lock import WITHOUT, Holder, hold_lock
from reconciler.kafka.mover import KafkaMover
from reconciler.kafka.reader import KafkaReader
from reconciler.kafka.writer import KafkaWriter, check_audit_topic, write_audit_record
from reconciler.model.cluster import ClusterState, ThrottleSide, TopicState
from reconciler.model.moves import LoadKind
from reconciler.model.outcomes import AnswerKind
from reconciler.model.rights import GROUP, MOVES_GROUP
from reconciler.model.steps import (
    ConfigureTopic,
    CreateTopic,
    DeleteTopic,
    ElectLeaders,
    ExpandTopic,
)
from reconciler.spec.entry import ClusterEntry

if TYPE_CHECKING:
    from security import Secured

pytestmark = pytest.mark.cluster

PLAN = {"topic": {"DESCRIBE", "DESCRIBE_CONFIGS"}, "cluster": {"DESCRIBE"}}
APPLY = {"topic": {"CREATE", "ALTER", "ALTER_CONFIGS"}, "cluster": {"DESCRIBE"}}
LOCK = {"topic": set(), "cluster": set(), "group": {"READ"}}
MOVE = {
    "topic": {"DESCRIBE", "ALTER_CONFIGS"},
    "cluster": {"ALTER", "ALTER_CONFIGS"},
    "group": {"READ"},
    "moves_group": {"READ"},
}
ELECTIONS = {"topic": {"DESCRIBE"}, "cluster": {"ALTER"}}
AUDIT = {"topic": {"WRITE"}, "cluster": set()}
HISTORY = {"topic": {"READ"}, "cluster": set()}
ALL = {"topic": PLAN["topic"] | APPLY["topic"], "cluster": {"DESCRIBE"}}
CLUSTER_NAME = "kafka-cluster"
HOLDER = Holder("ana", "desk", 7, "2026-03-01T12:00:00Z")


class Grants:
    """Gives one account rights, and takes them all again."""

    def __init__(self, secured: Secured, account: str) -> None:
        self.account = account
        self._secured = secured
        self._client = AdminClient({"bootstrap.servers": secured.address("PLAINTEXT")})

    def give(self, rights: dict[str, set[str]], topics: str = "*", groups: str = "*") -> None:
        """Give rights on the cluster, and on topics and groups: all, or those with a prefix."""
        bindings = [self._bind(ResourceType.BROKER, CLUSTER_NAME, r) for r in rights["cluster"]]
        bindings += [self._bind(ResourceType.TOPIC, topics, r) for r in rights["topic"]]
        bindings += [self._bind(ResourceType.GROUP, GROUP, r) for r in rights.get("group", ())]
        bindings += [
            self._bind(ResourceType.GROUP, MOVES_GROUP, r) for r in rights.get("moves_group", ())
        ]
        bindings += [self._bind(ResourceType.GROUP, groups, r) for r in rights.get("groups", ())]
        for answer in self._client.create_acls(bindings).values():
            answer.result(15)

    def take_all(self) -> None:
        every = AclBindingFilter(
            ResourceType.ANY,
            None,
            ResourcePatternType.ANY,
            f"User:{self.account}",
            None,
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        for answer in self._client.delete_acls([every]).values():
            answer.result(15)

    def connect(self) -> Connection:
        client = {
            "bootstrap.servers": self._secured.address("SASLPLAIN"),
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": self.account,
            "sasl.password": "${env:PASSWORD}",
        }
        environment = {"PASSWORD": f"{self.account}-secret"}
        return connect(ClusterEntry("lab", HERE, client=client), environment=environment)

    def _bind(self, kind: ResourceType, name: str, right: str) -> AclBinding:
        exact = name in ("*", CLUSTER_NAME, GROUP, MOVES_GROUP)
        pattern = ResourcePatternType.LITERAL if exact else ResourcePatternType.PREFIXED
        operation, permission = AclOperation[right], AclPermissionType.ALLOW
        return AclBinding(kind, name, pattern, f"User:{self.account}", "*", operation, permission)


@pytest.fixture
def planner(secured: Secured) -> Iterator[Grants]:
    grants = Grants(secured, "planner")
    yield grants
    grants.take_all()


@pytest.fixture
def topic(secured: Secured, topic_prefix: str) -> str:
    """Return a topic that exists."""
    name = topic_prefix + "existing"
    entry = ClusterEntry("lab", HERE)
    connection = connect(entry, bootstrap_servers=secured.address("PLAINTEXT"))
    step = CreateTopic(name, ((1,),), {"retention.ms": "5000"})
    KafkaWriter(connection).send([step])
    wait_for(lambda: name in KafkaReader(connection).read_cluster([name]).topics)
    return name


def read(grants: Grants, name: str) -> TopicState | None:
    return KafkaReader(grants.connect()).read_cluster([name]).topics.get(name)


def refusal(grants: Grants, *names: str, for_apply: bool = False) -> list[str]:
    """Read and check as a run does; return what it says."""
    reader = KafkaReader(grants.connect())
    with pytest.raises(ClusterError) as refused:  # noqa: PT012 - a plan reads, then checks
        if not for_apply:
            reader.read_cluster(names)
        reader.check_rights(names, for_apply=for_apply)
    assert {finding.rule for finding in refused.value.findings} == {"cluster-rights"}
    return [str(finding).removesuffix(" [cluster-rights]") for finding in refused.value.findings]


GRANT = "grant it: kafka-acls --add --allow-principal User:planner --operation"
OR_ALTER = "or for apply Alter, which brings Describe"
OR_ALTER_CONFIGS = "or for apply AlterConfigs, which brings DescribeConfigs"


class TestPlan:
    def test_the_smallest_grants_suffice(self, planner: Grants, topic: str) -> None:
        planner.give(PLAN)
        wait_for(lambda: can_read(planner, topic))
        reader = KafkaReader(planner.connect())
        state = reader.read_cluster([topic, topic + "-missing"])
        reader.check_rights([topic, topic + "-missing"], for_apply=False)
        assert state.topics[topic].config == {"retention.ms": "5000"}
        assert [broker.id for broker in state.brokers] == [1]
        assert state.notes == ()

    def test_no_rights_are_no_empty_cluster(self, planner: Grants, topic: str) -> None:
        missing = topic + "-missing"
        assert refusal(planner, topic, missing) == [
            f"the account lacks Describe on {topic}, {missing} of lab; "
            f"{GRANT} Describe --topic {topic}, {OR_ALTER}",
            f"the account lacks DescribeConfigs on {topic}, {missing} of lab; "
            f"{GRANT} DescribeConfigs --topic {topic}, {OR_ALTER_CONFIGS}",
        ]

    def test_no_rights_are_no_empty_snapshot(self, planner: Grants) -> None:
        with pytest.raises(ClusterError, match="lacks Describe on all topics of lab"):
            KafkaReader(planner.connect()).read_cluster()

    def test_missing_describe_configs_is_named(self, planner: Grants, topic: str) -> None:
        planner.give({"topic": {"DESCRIBE"}, "cluster": {"DESCRIBE"}})
        wait_for(lambda: "DescribeConfigs" in refusal(planner, topic)[0])
        assert refusal(planner, topic) == [
            f"the account lacks DescribeConfigs on {topic} of lab; "
            f"{GRANT} DescribeConfigs --topic {topic}, {OR_ALTER_CONFIGS}"
        ]

    def test_missing_describe_on_the_cluster_is_named(self, planner: Grants, topic: str) -> None:
        planner.give({"topic": PLAN["topic"], "cluster": set()})
        wait_for(lambda: "cluster" in refusal(planner, topic)[0])
        assert refusal(planner, topic) == [
            f"the account lacks Describe on the cluster lab; {GRANT} Describe --cluster"
        ]

    def test_an_account_for_a_prefix_sees_its_own(self, planner: Grants, topic: str) -> None:
        planner.give({"topic": PLAN["topic"], "cluster": {"DESCRIBE"}}, topics=topic)
        wait_for(lambda: can_read(planner, topic))
        state = KafkaReader(planner.connect()).read_cluster([topic])
        assert list(state.topics) == [topic]
        (note,) = state.notes
        assert (note.severity, note.rule) == (Severity.NOTE, "cluster-rights")
        assert note.what == "the account may see only some topics of lab"

    def test_many_topics_are_named_in_few_words(self, planner: Grants, topic: str) -> None:
        names = [f"{topic}-{n}" for n in range(9)]
        for right, said in zip(
            ("Describe", "DescribeConfigs"), refusal(planner, *names), strict=True
        ):
            assert said.startswith(
                f"the account lacks {right} on {names[0]}, {names[1]}, {names[2]} and 6 more of lab"
            )


def can_read(grants: Grants, name: str) -> bool:
    try:
        return read(grants, name) is not None
    except ClusterError:
        return False


def refuse_apply(grants: Grants, name: str) -> list[str]:
    """Check as the apply of a saved plan does, which reads nothing before; return what it says."""
    try:
        KafkaReader(grants.connect()).check_rights([name], for_apply=True)
    except ClusterError as error:
        return [str(finding).removesuffix(" [cluster-rights]") for finding in error.findings]
    return []


class TestApply:
    def test_the_smallest_grants_suffice(self, planner: Grants, topic: str) -> None:
        planner.give(APPLY, topics=topic)
        wait_for(lambda: can_read(planner, topic))
        connection = planner.connect()
        created = topic + "-created"
        KafkaReader(connection).check_rights([topic, created], for_apply=True)
        writer = KafkaWriter(connection)
        answers = [
            writer.send([CreateTopic(created, ((1,),), {})])[created],
            writer.send([ExpandTopic(topic, 1, ((1,),))])[topic],
            writer.send([ConfigureTopic(topic, {"retention.ms": "6000"}, frozenset())])[topic],
        ]
        assert {answer.kind for answer in answers} == {AnswerKind.ACCEPTED}, answers

    @pytest.mark.parametrize(
        ("right", "name"),
        [("ALTER", "Alter"), ("ALTER_CONFIGS", "AlterConfigs")],
    )
    def test_each_right_is_needed_and_named(
        self, planner: Grants, topic: str, right: str, name: str
    ) -> None:
        planner.give({"topic": ALL["topic"] - {right}, "cluster": {"DESCRIBE"}})
        said = [f"the account lacks {name} on {topic} of lab; {GRANT} {name} --topic {topic}"]
        wait_for(lambda: refusal(planner, topic, for_apply=True) == said)

    def test_the_right_that_lacks_is_named_also_where_it_hides_the_topic(
        self, planner: Grants, topic: str
    ) -> None:
        """Without Alter, which brings Describe, brokers do not show the topic."""
        planner.give({"topic": APPLY["topic"] - {"ALTER"}, "cluster": {"DESCRIBE"}})
        said = [f"the account lacks Alter on {topic} of lab; {GRANT} Alter --topic {topic}"]
        wait_for(lambda: refuse_apply(planner, topic) == said)
        planner.give({"topic": {"ALTER"}, "cluster": set()})
        wait_for(lambda: refuse_apply(planner, topic) == [])

    def test_an_account_without_rights_hears_of_all_that_it_needs(
        self, planner: Grants, topic: str
    ) -> None:
        planner.give({"topic": set(), "cluster": {"DESCRIBE"}})
        said = [
            f"the account lacks {right} on {topic} of lab; {GRANT} {right} --topic {topic}"
            for right in ("Alter", "AlterConfigs")
        ]
        wait_for(lambda: refuse_apply(planner, topic) == said)

    def test_no_right_is_demanded_that_another_one_brings(
        self, planner: Grants, topic: str
    ) -> None:
        planner.give({"topic": {"CREATE", "ALTER"}, "cluster": {"DESCRIBE"}})
        right = "AlterConfigs"
        said = [f"the account lacks {right} on {topic} of lab; {GRANT} {right} --topic {topic}"]
        wait_for(lambda: refuse_apply(planner, topic) == said)

    def test_the_right_to_create_is_asked_for_what_is_missing(
        self, planner: Grants, topic: str
    ) -> None:
        planner.give({"topic": ALL["topic"] - {"CREATE"}, "cluster": {"DESCRIBE"}})
        missing = topic + "-missing"
        said = [f"the account lacks Create on {missing} of lab; {GRANT} Create --topic {missing}"]
        wait_for(lambda: refusal(planner, topic, missing, for_apply=True) == said)

    def test_asking_creates_nothing(self, planner: Grants, topic: str) -> None:
        planner.give(APPLY)
        wait_for(lambda: can_read(planner, topic))
        reader = KafkaReader(planner.connect())
        reader.check_rights([topic + "-missing"], for_apply=True)
        assert topic + "-missing" not in reader.read_cluster([topic + "-missing"]).topics


DELETION = {"topic": {"DESCRIBE", "DELETE"}, "cluster": {"DESCRIBE"}, "groups": {"DESCRIBE"}}


class TestDeletion:
    @pytest.fixture
    def reader_group(self, secured: Secured, topic: str) -> Iterator[str]:
        """Return a group that reads the topic."""
        group = topic + "-readers"
        servers = secured.address("PLAINTEXT")
        consumer = Consumer({"bootstrap.servers": servers, "group.id": group, "log_level": 0})
        consumer.subscribe([topic])
        wait_for(lambda: consumer.poll(0.1) is None and bool(consumer.assignment()))
        yield group
        consumer.close()

    def test_the_smallest_grants_suffice(
        self, planner: Grants, topic: str, reader_group: str
    ) -> None:
        planner.give(DELETION)
        wait_for(lambda: can_use(planner, topic))
        connection = planner.connect()
        reader = KafkaReader(connection)
        reader.check_rights([], for_apply=True, deleted=[topic, topic + "-gone"])
        usage = reader.read_usage([topic])[topic]
        assert (usage.unseen, usage.groups) == ("", (reader_group,))
        step = DeleteTopic(topic, reader.read_topic_ids([topic])[topic])
        answer = KafkaWriter(connection).send([step])[topic]
        assert answer.kind is AnswerKind.ACCEPTED

    def test_the_right_to_delete_is_needed_and_named(self, planner: Grants, topic: str) -> None:
        planner.give({"topic": ALL["topic"], "cluster": {"DESCRIBE"}})
        wait_for(lambda: can_read(planner, topic))
        connection = planner.connect()
        reader = KafkaReader(connection)
        with pytest.raises(ClusterError) as refused:
            reader.check_rights([], for_apply=True, deleted=[topic])
        assert str(refused.value) == (
            f"the account lacks Delete on {topic} of lab; {GRANT} Delete --topic {topic} "
            "[cluster-rights]"
        )
        step = DeleteTopic(topic, reader.read_topic_ids([topic])[topic])
        answer = KafkaWriter(connection).send([step])[topic]
        assert (answer.kind, answer.error) == (
            AnswerKind.REFUSED,
            "TOPIC_AUTHORIZATION_FAILED",
        )

    def test_a_topic_that_is_hidden_is_not_taken_for_deleted(
        self, planner: Grants, topic: str
    ) -> None:
        planner.give({"topic": set(), "cluster": {"DESCRIBE"}})
        with pytest.raises(ClusterError, match=f"lacks Delete on {topic} of lab"):
            KafkaReader(planner.connect()).check_rights([], for_apply=True, deleted=[topic])

    def test_a_group_that_is_hidden_is_no_missing_group(
        self, planner: Grants, topic: str, reader_group: str
    ) -> None:
        planner.give({"topic": DELETION["topic"], "cluster": {"DESCRIBE"}})
        wait_for(lambda: can_use(planner, topic))
        usage = KafkaReader(planner.connect()).read_usage([topic])[topic]
        assert usage.unseen == (
            f"the account lacks Describe on the active consumer group {reader_group}"
        )
        assert usage.way_out == f"{GRANT} Describe --group {reader_group}"

    @pytest.mark.usefixtures("reader_group")
    def test_groups_are_all_hidden_without_describe_on_the_cluster(
        self, planner: Grants, topic: str
    ) -> None:
        planner.give({"topic": DELETION["topic"], "cluster": set()})
        wait_for(lambda: can_use(planner, topic))
        usage = KafkaReader(planner.connect()).read_usage([topic])[topic]
        assert usage.groups == ()
        assert usage.unseen.endswith("the account lacks Describe on the cluster")
        assert usage.way_out == f"{GRANT} Describe --cluster"


READS = {"topic": {"DESCRIBE", "DESCRIBE_CONFIGS"}, "cluster": {"DESCRIBE"}}
OF_GROUPS: dict[str, set[str]] = {"topic": set(), "cluster": set(), "groups": {"DESCRIBE"}}


class TestRatesOfReads:
    """Reads are measured by what groups commit; nothing else of a snapshot needs the right."""

    @pytest.fixture
    def groups(self, secured: Secured, topic: str) -> Iterator[tuple[str, str]]:
        """Return two groups that committed an offset on the topic."""
        names = (f"{topic}-one", f"{topic}-two")
        client = AdminClient({"bootstrap.servers": secured.address("PLAINTEXT")})
        for name in names:
            place = ConsumerGroupTopicPartitions(name, [TopicPartition(topic, 0, 7)])
            wait_for(lambda place=place: can_commit(client, place))
        yield names
        for answer in client.delete_consumer_groups(list(names)).values():
            answer.result(15)

    def test_the_smallest_grants_show_what_every_group_commits(
        self, planner: Grants, topic: str, groups: tuple[str, str]
    ) -> None:
        planner.give(READS)
        planner.give(OF_GROUPS)
        wait_for(lambda: read_traffic(planner).committed_offsets is not None)
        found = read_traffic(planner)
        assert found.committed_offsets == {name: {topic: (7,)} for name in groups}
        assert found.notes == ()

    def test_a_hidden_group_is_left_out_and_named(
        self, planner: Grants, topic: str, groups: tuple[str, str]
    ) -> None:
        planner.give(READS)
        planner.give(OF_GROUPS, groups=groups[0])
        wait_for(lambda: read_traffic(planner).committed_offsets is not None)
        found = read_traffic(planner)
        assert found.committed_offsets == {groups[0]: {topic: (7,)}}
        (note,) = found.notes
        assert (note.rule, note.severity) == ("groups-unseen", Severity.NOTE)
        # Groups of other tests may be there as well.
        assert note.what.startswith("rates of reads leave out group ")
        assert "(its offsets cannot be read: GROUP_AUTHORIZATION_FAILED)" in note.what
        assert note.way_out == f"{GRANT} Describe --group '*'"

    @pytest.mark.usefixtures("groups")
    def test_without_the_right_there_are_none_and_the_rest_is_read(
        self, planner: Grants, topic: str
    ) -> None:
        planner.give(READS)
        wait_for(lambda: bool(read_traffic(planner).topics[topic].logs))
        found = read_traffic(planner)
        assert found.committed_offsets is None
        (note,) = found.notes
        assert note.what.startswith("rates of reads are unknown: group ")
        assert note.severity is Severity.NOTE


def read_traffic(grants: Grants) -> ClusterState:
    reader = KafkaReader(grants.connect())
    return reader.read_traffic(reader.read_cluster(), [LoadKind.READ])


def can_commit(client: AdminClient, offsets: ConsumerGroupTopicPartitions) -> bool:
    """Commit offsets, unless the coordinator is not there yet."""
    (answer,) = client.alter_consumer_group_offsets([offsets]).values()
    try:
        answer.result(15)
    except KafkaException:
        return False
    return True


def can_use(grants: Grants, name: str) -> bool:
    return name in KafkaReader(grants.connect()).read_usage([name])


class TestLock:
    def test_the_right_to_it_is_named(self, planner: Grants) -> None:
        with pytest.raises(ClusterError) as refused, hold_lock(planner.connect(), HOLDER):
            pass
        assert str(refused.value) == (
            f"the account lacks Read on the group {GROUP} of lab; {GRANT} Read --group {GROUP}; "
            f"or {WITHOUT[GROUP]} [cluster-rights]"
        )

    def test_the_smallest_grant_suffices(self, planner: Grants) -> None:
        planner.give(LOCK)
        wait_for(lambda: can_lock(planner))
        with (
            hold_lock(planner.connect(), HOLDER) as lease,
            pytest.raises(LockHeldError, match="locked by this run itself"),
            hold_lock(planner.connect(), HOLDER),
        ):
            lease.check()

    def test_the_right_to_the_lock_of_moves_is_another(self, planner: Grants) -> None:
        planner.give(LOCK)
        wait_for(lambda: can_lock(planner))
        with (
            pytest.raises(ClusterError) as refused,
            hold_lock(planner.connect(), HOLDER, group=MOVES_GROUP),
        ):
            pass
        assert str(refused.value) == (
            f"the account lacks Read on the group {MOVES_GROUP} of lab; {GRANT} Read --group "
            f"{MOVES_GROUP}; or {WITHOUT[MOVES_GROUP]} [cluster-rights]"
        )


def can_lock(grants: Grants, group: str = GROUP) -> bool:
    try:
        with hold_lock(grants.connect(), HOLDER, group=group):
            return True
    except ClusterError:
        return False


class TestElections:
    def test_the_right_to_elect_is_named(self, planner: Grants, topic: str) -> None:
        planner.give(APPLY, topics=topic)
        wait_for(lambda: can_read(planner, topic))
        with pytest.raises(ClusterError) as refused:
            KafkaReader(planner.connect()).check_rights([], for_apply=True, elects=True)
        assert str(refused.value) == (
            f"the account lacks Alter on the cluster lab; {GRANT} Alter --cluster [cluster-rights]"
        )

    def test_the_smallest_grants_suffice(self, planner: Grants, topic: str) -> None:
        planner.give(ELECTIONS, topics=topic)
        wait_for(lambda: can_elect(planner))
        elect = ElectLeaders(topic, {0: 1})
        answer = KafkaWriter(planner.connect()).send([elect])[topic]
        assert answer.kind is AnswerKind.ACCEPTED, answer

    def test_a_topic_that_is_gone_is_refused_alone(self, planner: Grants, topic: str) -> None:
        planner.give(ELECTIONS, topics=topic)
        wait_for(lambda: can_elect(planner))
        steps = [ElectLeaders(topic, {0: 1}), ElectLeaders(topic + "-gone", {0: 1})]
        answers = KafkaWriter(planner.connect()).send(steps)
        assert answers[topic].kind is AnswerKind.ACCEPTED
        assert answers[topic + "-gone"].error == "UNKNOWN_TOPIC_OR_PARTITION"


def can_elect(grants: Grants) -> bool:
    try:
        KafkaReader(grants.connect()).check_rights([], for_apply=True, elects=True)
    except ClusterError:
        return False
    return True


class TestAudit:
    def test_the_right_to_write_is_named(self, planner: Grants, topic: str) -> None:
        planner.give(PLAN)
        wait_for(lambda: can_read(planner, topic))
        with pytest.raises(ClusterError) as refused:
            check_audit_topic(planner.connect(), topic, planned=False)
        assert str(refused.value) == (
            f"the account lacks Write on {topic} of lab; {GRANT} Write --topic {topic} "
            "[cluster-rights]"
        )

    def test_the_smallest_grant_suffices(self, planner: Grants, topic: str) -> None:
        planner.give(AUDIT, topics=topic)
        wait_for(lambda: can_write(planner, topic))
        write_audit_record(planner.connect(), topic, "lab", "{}")


class TestHistory:
    """`history` reads the audit topic with Read on it alone: it joins no group."""

    def read(self, grants: Grants, topic: str) -> list[bytes]:
        connection = grants.connect()
        entry = replace(connection.entry, audit_topic=topic)
        return list(read_audit_topic(Connection(entry, connection.settings)))

    def test_the_right_to_read_is_named(self, planner: Grants, topic: str) -> None:
        planner.give(PLAN)
        wait_for(lambda: can_read(planner, topic))
        with pytest.raises(ClusterError) as refused:
            self.read(planner, topic)
        assert str(refused.value) == (
            f"the account lacks Read on {topic} of lab; {GRANT} Read --topic {topic} "
            "[cluster-rights]"
        )

    def test_the_smallest_grant_suffices(
        self, secured: Secured, planner: Grants, topic: str
    ) -> None:
        planner.give(HISTORY, topics=topic)
        producer = Producer({"bootstrap.servers": secured.address("PLAINTEXT"), "log_level": 0})
        producer.produce(topic, b"a record")
        assert producer.flush(15) == 0
        wait_for(lambda: can_read_history(self, planner, topic))
        assert self.read(planner, topic) == [b"a record"]


def can_read_history(test: TestHistory, grants: Grants, topic: str) -> bool:
    try:
        return bool(test.read(grants, topic))
    except ClusterError:
        return False


class TestCheck:
    """`apply --check`: what lacks is known before there is anything to apply."""

    def check(
        self,
        grants: Grants,
        directory: Path,
        topic: str,
        monkeypatch: Any,
        *,
        lock: bool = True,
    ) -> list[str]:
        """Check an estate of one topic, which has an audit topic. Returns: what lacks."""
        monkeypatch.setenv("PASSWORD", f"{grants.account}-secret")
        client = grants.connect().entry.client
        clusters = {"lab": {"client": dict(client), "audit_topic": topic}}
        (directory / "clusters.yaml").write_text(json.dumps({"version": 1, "clusters": clusters}))
        (directory / "topics.yaml").write_text(json.dumps({"topic": topic, "partitions": 1}))
        try:
            check_apply(load_estate(directory), "lab", lock=lock)
        except ClusterError as error:
            return [found.what.removeprefix("the account lacks ") for found in error.findings]
        return []

    def test_everything_that_lacks_is_named_at_once(
        self, planner: Grants, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        planner.give(PLAN)
        wait_for(lambda: can_read(planner, topic))
        lacking = self.check(planner, tmp_path, topic, monkeypatch)
        group = f"Read on the group {GROUP} of lab"
        assert lacking == [
            f"Alter on {topic} of lab",
            f"AlterConfigs on {topic} of lab",
            group,
            f"Write on {topic} of lab",
        ]
        unlocked = self.check(planner, tmp_path, topic, monkeypatch, lock=False)
        assert unlocked == [each for each in lacking if each != group]
        assert read_topic_config(planner, topic) == {"retention.ms": "5000"}

    def test_the_grants_of_apply_suffice_while_another_run_holds_the_lock(
        self, planner: Grants, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for rights in (APPLY, LOCK, AUDIT):
            planner.give(rights)
        wait_for(lambda: self.check(planner, tmp_path, topic, monkeypatch) == [])
        with hold_lock(planner.connect(), HOLDER):
            assert self.check(planner, tmp_path, topic, monkeypatch) == []
        with hold_lock(planner.connect(), HOLDER):  # it is not kept
            pass


def read_topic_config(grants: Grants, topic: str) -> Mapping[str, str | None]:
    return KafkaReader(grants.connect()).read_cluster([topic]).topics[topic].config


def can_write(grants: Grants, topic: str) -> bool:
    try:
        check_audit_topic(grants.connect(), topic, planned=False)
    except ClusterError:
        return False
    return True


def test_the_docs_list_these_grants() -> None:
    text = (Path(__file__).parents[2] / "docs/reference/permissions.md").read_text()
    plan, _, rest = text.partition("## Apply")
    apply, _, deletion = rest.partition("## Deletion")
    further = {**APPLY, "cluster": APPLY["cluster"] | LOCK["group"] | AUDIT["topic"]}
    for section, rights in ((plan, PLAN), (apply, further)):
        for right in rights["topic"] | rights["cluster"]:
            assert f"--operation {right.title().replace('_', '')} " in section
    elections = text.partition("## Elections")[2].partition("## ")[0]
    assert "--operation Alter --cluster" in elections
    for kind, names in DELETION.items():
        for right in names:
            assert f"--operation {right.title()} --{kind.removesuffix('s')}" in deletion


def refuse_moves(grants: Grants, *names: str) -> list[str]:
    """Check as a run of moves does; return what it says."""
    try:
        KafkaReader(grants.connect()).check_rights([], for_apply=True, moved=names)
    except ClusterError as error:
        return [str(finding).removesuffix(" [cluster-rights]") for finding in error.findings]
    return []


class TestRunsOfMoves:
    """What a run of moves needs; MOVE is what docs/reference/permissions.md lists."""

    def test_the_smallest_grants_suffice(self, planner: Grants, topic: str) -> None:
        planner.give(MOVE, topics=topic)
        wait_for(lambda: refuse_moves(planner, topic) == [])
        wait_for(lambda: can_lock(planner) and can_lock(planner, MOVES_GROUP))
        mover = KafkaMover(planner.connect())
        key = ThrottleSide.LEADER.list_key
        answers = [
            mover.set_rate(1_000_000),
            mover.configure({topic: {key: "0:1"}})[topic],
            mover.reassign({(topic, 0): (1,)})[topic, 0],
            mover.elect([(topic, 0)])[topic, 0],
            mover.configure({topic: {key: None}})[topic],
            mover.set_rate(None),
        ]
        assert {answer.kind for answer in answers} == {AnswerKind.ACCEPTED}, answers
        reading = mover.read([topic])
        mover.close()
        assert len(reading.partitions[topic]) == len(reading.sizes[1]) == 1
        assert reading.directories[1]

    @pytest.mark.parametrize(
        ("kind", "right", "named"),
        [
            ("cluster", "ALTER", "Alter on the cluster lab; {grant} Alter --cluster"),
            (
                "cluster",
                "ALTER_CONFIGS",
                "AlterConfigs on the cluster lab; {grant} AlterConfigs --cluster",
            ),
            (
                "topic",
                "ALTER_CONFIGS",
                "AlterConfigs on {topic} of lab; {grant} AlterConfigs --topic {topic}",
            ),
            (
                "topic",
                "DESCRIBE",
                "Describe on {topic} of lab; {grant} Describe --topic {topic}, {or_alter}",
            ),
        ],
    )
    def test_each_right_is_needed_and_named(
        self, planner: Grants, topic: str, kind: str, right: str, named: str
    ) -> None:
        planner.give({**MOVE, kind: MOVE[kind] - {right}})
        said = "the account lacks " + named.format(topic=topic, grant=GRANT, or_alter=OR_ALTER)
        wait_for(lambda: refuse_moves(planner, topic) == [said])

    def test_an_account_without_rights_hears_of_all_that_it_needs(
        self, planner: Grants, topic: str
    ) -> None:
        assert refuse_moves(planner, topic) == [
            f"the account lacks Alter on the cluster lab; {GRANT} Alter --cluster",
            f"the account lacks AlterConfigs on {topic} of lab; {GRANT} AlterConfigs "
            f"--topic {topic}",
            f"the account lacks AlterConfigs on the cluster lab; {GRANT} AlterConfigs --cluster",
            f"the account lacks Describe on {topic} of lab; {GRANT} Describe --topic {topic}, "
            f"{OR_ALTER}",
        ]

    def test_a_rate_needs_the_rights_on_the_cluster_alone(self, planner: Grants) -> None:
        planner.give({"topic": set(), "cluster": {"ALTER"}})
        said = f"the account lacks AlterConfigs on the cluster lab; {GRANT} AlterConfigs --cluster"
        wait_for(lambda: refuse_moves(planner) == [said])
        planner.give({"topic": set(), "cluster": MOVE["cluster"]})
        wait_for(lambda: refuse_moves(planner) == [])
        with control_moves(planner.connect()) as control:
            assert control.set_rate(1_000)[1]
        mover = KafkaMover(planner.connect())
        assert mover.set_rate(None).kind is AnswerKind.ACCEPTED
        mover.close()

    def test_rights_on_topics_do_not_allow_moves(self, planner: Grants, topic: str) -> None:
        """Kafka asks for Alter on the cluster, and the brokers say no more than that."""
        planner.give({"topic": APPLY["topic"], "cluster": {"DESCRIBE", "DESCRIBE_CONFIGS"}})
        wait_for(lambda: can_read(planner, topic))
        mover = KafkaMover(planner.connect())
        told = [
            mover.reassign({(topic, 0): (1,)})[topic, 0],
            mover.elect([(topic, 0)])[topic, 0],
            mover.set_rate(1),
        ]
        mover.close()
        assert {(each.kind, each.error) for each in told} == {
            (AnswerKind.REFUSED, "CLUSTER_AUTHORIZATION_FAILED")
        }


def test_the_docs_list_what_a_run_of_moves_needs() -> None:
    text = (Path(__file__).parents[2] / "docs/reference/permissions.md").read_text()
    section = text.partition("## Runs of moves")[2]
    for kind in ("topic", "cluster"):
        for right in MOVE[kind]:
            assert f"--operation {right.title().replace('_', '')} --{kind}" in section
    for group in (GROUP, MOVES_GROUP):
        assert f"--operation Read --group {group}\n" in section


MOVES = {"topic": {"DESCRIBE", "DESCRIBE_CONFIGS"}, "cluster": {"DESCRIBE", "DESCRIBE_CONFIGS"}}


class TestMoves:
    """What `moves status` shows; MOVES is what docs/reference/permissions.md lists."""

    @pytest.mark.usefixtures("topic")
    def test_the_smallest_grants_show_everything(self, planner: Grants) -> None:
        planner.give(MOVES)
        wait_for(lambda: not read_moves(planner.connect()).reading.notes)

    def test_without_describe_on_the_cluster_the_list_is_refused(self, planner: Grants) -> None:
        planner.give({"topic": MOVES["topic"], "cluster": set()})
        with pytest.raises(ClusterError) as caught:
            read_moves(planner.connect())
        assert str(caught.value) == (
            "the account lacks Describe on the cluster lab; grant it: kafka-acls --add "
            "--allow-principal User:planner --operation Describe --cluster [cluster-rights]"
        )

    def test_without_describe_on_the_cluster_log_directories_are_an_empty_list(
        self, secured: Secured, planner: Grants
    ) -> None:
        """Why the right is asked for by name: kafka-python shows no error."""
        client = KafkaAdminClient(
            bootstrap_servers=secured.address("SASLPLAIN"),
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="PLAIN",
            sasl_plain_username="planner",
            sasl_plain_password="planner-secret",
        )
        try:
            assert client.describe_log_dirs(brokers=[1]) == [{"broker": 1, "log_dirs": []}]
            request = DescribeLogDirsRequest(topics=None)
            answer = client._manager.run(client._manager.send, request, 1)
            assert (answer.error_code, answer.results) == (31, [])
            planner.give({"topic": set(), "cluster": {"DESCRIBE"}})
            wait_for(lambda: client.describe_log_dirs(brokers=[1])[0]["log_dirs"] != [])
        finally:
            client.close()

    def test_without_describe_on_the_cluster_sizes_are_unknown_and_a_note_says_so(
        self, planner: Grants, topic: str
    ) -> None:
        planner.give({"topic": {"DESCRIBE"}, "cluster": set()})
        state = ClusterState("id", (), {topic: TopicState(topic, None, ((1,),))})
        found = KafkaReader(planner.connect()).read_sizes(state)
        assert (found.topics, found.directories) == (state.topics, {})
        (note,) = found.notes
        assert (note.rule, note.severity) == ("sizes-unseen", Severity.NOTE)
        assert note.what == (
            "the sizes of partitions are unknown: the account lacks Describe on the cluster lab"
        )

    @pytest.mark.usefixtures("topic")
    def test_rights_that_hide_throttles_are_named(self, planner: Grants) -> None:
        planner.give({"topic": {"DESCRIBE"}, "cluster": {"DESCRIBE"}})
        wait_for(lambda: bool(read_moves(planner.connect()).reading.notes))
        rates, replicas = read_moves(planner.connect()).reading.notes
        grant = "kafka-acls --add --allow-principal User:planner --operation DescribeConfigs"
        assert rates.what == (
            "throttle rates are not visible: the account lacks DescribeConfigs on the cluster lab"
        )
        assert rates.way_out == f"grant it: {grant} --cluster"
        assert replicas.what.startswith(
            "throttled replicas are not visible: the account lacks DescribeConfigs on "
        )
        assert {rates.severity, replicas.severity} == {Severity.WARNING}

    def test_topics_that_may_be_hidden_are_named(self, planner: Grants) -> None:
        planner.give({**MOVES, "topic": set()})
        wait_for(lambda: bool(read_moves(planner.connect()).reading.notes))
        (note,) = read_moves(planner.connect()).reading.notes
        assert note.what == (
            "throttled replicas of some topics may not be visible: the account lacks Describe on "
            "all topics of lab"
        )
