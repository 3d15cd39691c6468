"""The writer on real brokers: what is accepted, refused and lost, for every item of a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from kafka.admin import KafkaAdminClient
from kafka.protocol.admin import AlterClientQuotasRequest
from lab import HERE, connect_to, create, wait_for

from reconciler.kafka.connection import connect
from reconciler.kafka.reader import KafkaReader
from reconciler.kafka.writer import KafkaWriter
from reconciler.model.cluster import TopicState
from reconciler.model.outcomes import Answer, AnswerKind
from reconciler.model.steps import ConfigureTopic, CreateTopic, ExpandTopic
from reconciler.sandbox.cluster import Cluster
from reconciler.spec.entry import ClusterEntry

if TYPE_CHECKING:
    from reconciler.kafka.connection import Connection

ACCEPTED = Answer(AnswerKind.ACCEPTED)


def read(connection: Connection, name: str) -> TopicState | None:
    return KafkaReader(connection).read_cluster([name]).topics.get(name)


class TestCreate:
    def test_each_topic_has_its_own_answer(self, cluster3: Cluster, topic_prefix: str) -> None:
        good, bad = topic_prefix + "good", topic_prefix + "bad"
        connection = connect_to(cluster3)
        answers = KafkaWriter(connection).send(
            [CreateTopic(good, ((1, 2),), {}), CreateTopic(bad, ((1, 9),), {})]
        )
        assert answers == {
            good: ACCEPTED,
            bad: Answer(
                AnswerKind.REFUSED,
                "INVALID_REPLICA_ASSIGNMENT",
                "The manual partition assignment includes broker 9, but no such broker is "
                "registered.",
            ),
        }
        wait_for(lambda: read(connection, good) is not None)

    def test_validation_creates_nothing(self, cluster3: Cluster, topic_prefix: str) -> None:
        name = topic_prefix + "maybe"
        connection = connect_to(cluster3)
        writer = KafkaWriter(connection)
        step = CreateTopic(name, ((1, 2),), {"retention.ms": "5000"})
        assert writer.send([step], validate_only=True) == {name: ACCEPTED}
        assert writer.send([step]) == {name: ACCEPTED}  # it was not there yet

    def test_a_bad_config_is_refused_in_the_brokers_words(
        self, cluster3: Cluster, topic_prefix: str
    ) -> None:
        name = topic_prefix + "bad"
        step = CreateTopic(name, ((1,),), {"retention.ms": "soon"})
        answer = KafkaWriter(connect_to(cluster3)).send([step], validate_only=True)[name]
        assert answer == Answer(
            AnswerKind.REFUSED,
            "INVALID_CONFIG",
            "Invalid value soon for configuration retention.ms: Not a number of type LONG",
        )

    def test_what_exists_is_said_by_kafkas_name(self, cluster3: Cluster, topic_prefix: str) -> None:
        step = CreateTopic(topic_prefix + "twice", ((1,),), {})
        connection = connect_to(cluster3)
        create(connection, step)
        answer = KafkaWriter(connection).send([step])[step.topic]
        assert (answer.kind, answer.error) == (AnswerKind.REFUSED, "TOPIC_ALREADY_EXISTS")

    def test_no_steps_are_no_request(self, cluster3: Cluster) -> None:
        writer = KafkaWriter(connect_to(cluster3))
        assert writer.send([]) == {}


class TestExpand:
    def test_new_rows_follow_the_existing_ones(self, cluster3: Cluster, topic_prefix: str) -> None:
        name = topic_prefix + "grows"
        connection = connect_to(cluster3)
        create(connection, CreateTopic(name, ((1, 2),), {}))
        writer = KafkaWriter(connection)
        step = ExpandTopic(name, 1, ((2, 3), (3, 1)))
        assert writer.send([step], validate_only=True) == {name: ACCEPTED}
        assert writer.send([step]) == {name: ACCEPTED}
        wait_for(
            lambda: (
                (topic := read(connection, name)) is not None
                and topic.assignment == ((1, 2), (2, 3), (3, 1))
            )
        )

    def test_a_missing_topic_and_a_count_that_is_there_are_refused(
        self, cluster3: Cluster, topic_prefix: str
    ) -> None:
        name, missing = topic_prefix + "full", topic_prefix + "missing"
        connection = connect_to(cluster3)
        create(connection, CreateTopic(name, ((1,), (2,)), {}))
        answers = KafkaWriter(connection).send(
            [ExpandTopic(name, 1, ((2,),)), ExpandTopic(missing, 1, ((2,),))]
        )
        assert answers[name] == Answer(
            AnswerKind.REFUSED, "INVALID_PARTITIONS", "Topic already has 2 partition(s)."
        )
        assert answers[missing].error == "UNKNOWN_TOPIC_OR_PARTITION"


class TestConfigs:
    def test_keys_are_set_and_unset_together(self, cluster3: Cluster, topic_prefix: str) -> None:
        name = topic_prefix + "tuned"
        connection = connect_to(cluster3)
        create(connection, CreateTopic(name, ((1,),), {"retention.ms": "5000"}))
        writer = KafkaWriter(connection)
        step = ConfigureTopic(name, {"retention.bytes": "100"}, frozenset({"retention.ms"}))
        assert writer.send([step], validate_only=True) == {name: ACCEPTED}
        topic = read(connection, name)
        assert topic is not None
        assert topic.config == {"retention.ms": "5000"}
        assert writer.send([step]) == {name: ACCEPTED}
        wait_for(
            lambda: (
                (topic := read(connection, name)) is not None
                and topic.config == {"retention.bytes": "100"}
            )
        )

    def test_one_bad_key_leaves_the_others_as_they_were(
        self, cluster3: Cluster, topic_prefix: str
    ) -> None:
        name = topic_prefix + "tuned"
        connection = connect_to(cluster3)
        create(connection, CreateTopic(name, ((1,),), {}))
        step = ConfigureTopic(name, {"retention.ms": "1000", "no.such": "1"}, frozenset())
        answer = KafkaWriter(connection).send([step])[name]
        assert answer == Answer(
            AnswerKind.REFUSED, "INVALID_CONFIG", "Unknown topic config name: no.such"
        )
        topic = read(connection, name)
        assert topic is not None
        assert topic.config == {}


class TestLost:
    def test_without_a_connection_nothing_is_done(self) -> None:
        connection = connect(ClusterEntry("lab", HERE), bootstrap_servers="127.0.0.1:9")
        answer = KafkaWriter(connection).send([CreateTopic("t", ((1,),), {})])["t"]
        assert answer.kind is AnswerKind.NOT_DONE
        assert "127.0.0.1:9 refuses the connection" in answer.text

    def test_a_value_that_cannot_travel_cuts_the_connection(
        self, cluster3: Cluster, topic_prefix: str
    ) -> None:
        """The broker hangs up on more than 32,767 bytes; specs cannot hold them."""
        name = topic_prefix + "long"
        connection = connect_to(cluster3)
        create(connection, CreateTopic(name, ((1,),), {}))
        value = ",".join(["0:1"] * 20_000)
        writer = KafkaWriter(connection)
        step = ConfigureTopic(name, {"leader.replication.throttled.replicas": value}, frozenset())
        assert writer.send([step])[name].kind is AnswerKind.LOST
        again = ConfigureTopic(name, {"retention.ms": "1000"}, frozenset())
        assert writer.send([again]) == {name: ACCEPTED}  # by a fresh client

    def test_what_the_broker_decided_is_not_lost(
        self, cluster3: Cluster, topic_prefix: str
    ) -> None:
        """Over the controller's record limit, the whole request is refused."""
        names = [topic_prefix + "a", topic_prefix + "b"]
        steps = [CreateTopic(name, ((1,),) * 6_000, {}) for name in names]
        answers = KafkaWriter(connect_to(cluster3)).send(steps, validate_only=True)
        assert {a.kind for a in answers.values()} == {AnswerKind.REFUSED}
        assert {a.error for a in answers.values()} == {"POLICY_VIOLATION"}


class TestHeldBack:
    """A controller over its controller_mutation_rate answers, and holds up the connection."""

    @pytest.mark.slow
    def test_an_answer_says_how_long_to_wait_and_nothing_else_waits(
        self, cluster3: Cluster, topic_prefix: str
    ) -> None:
        connection = connect_to(cluster3)
        writer = KafkaWriter(connection)
        set_mutation_rate(cluster3, 2.0)  # its bucket holds eleven seconds' worth
        try:
            for n in range(10):  # the quota reaches the controller after its answer
                step = CreateTopic(f"{topic_prefix}{n}", ((1,),) * 30, {})
                client = connection.client()
                answer = writer.send([step])[step.topic]
                assert answer.kind is AnswerKind.ACCEPTED
                if answer.wait_s > 1:
                    assert connection.client() is not client
                    return
        finally:
            set_mutation_rate(cluster3, None)
        pytest.fail("nothing was held back")


def set_mutation_rate(cluster: Cluster, per_s: float | None) -> None:
    """Set the quota of reconciler's client id, which has no method in either client."""
    request = AlterClientQuotasRequest
    entry = request.EntryData
    entity = entry.EntityData(entity_type="client-id", entity_name="reconciler")
    change = entry.OpData(key="controller_mutation_rate", value=per_s or 0.0, remove=per_s is None)
    client = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers.split(","))
    entries = [entry(entity=[entity], ops=[change])]
    try:
        message = request(entries=entries, validate_only=False)
        client._manager.run(client._manager.send, message)
    finally:
        client.close()
