"""The reader on real brokers: state in bulk, and what is being reassigned."""

from __future__ import annotations

import base64
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import ResourceType
from kafka.admin import KafkaAdminClient
from lab import connect_to, create, reassign, set_config, wait_for

from reconciler.errors import ClusterError
from reconciler.kafka.configs import read_configs
from reconciler.kafka.connection import REQUEST_S
from reconciler.kafka.reader import KafkaReader, _read
from reconciler.model.cluster import Broker, ClusterState
from reconciler.model.steps import CreateTopic
from reconciler.sandbox.cluster import Cluster, start_cluster


class TestState:
    def test_brokers_carry_their_racks(self, cluster6: Cluster) -> None:
        state = KafkaReader(connect_to(cluster6)).read_cluster(config_of=())
        assert state.cluster_id == cluster6.cluster_id
        assert state.brokers == tuple(Broker(n, f"rack{(n - 1) % 3}") for n in range(1, 7))

    def test_replicas_come_in_order_preferred_leader_first(
        self, cluster3: Cluster, topic_prefix: str
    ) -> None:
        name = topic_prefix + "rows"
        connection = connect_to(cluster3)
        create(connection, CreateTopic(name, ((3, 1), (1, 2), (2, 3)), {}))
        topic = KafkaReader(connection).read_cluster([name]).topics[name]
        assert topic.assignment == ((3, 1), (1, 2), (2, 3))
        assert {frozenset(row) for row in topic.in_sync} == {
            frozenset({3, 1}),
            frozenset({1, 2}),
            frozenset({2, 3}),
        }
        assert not topic.reassigning
        assert not topic.internal

    def test_only_overrides_are_configs_of_a_topic(
        self, cluster3: Cluster, topic_prefix: str
    ) -> None:
        plain, tuned = topic_prefix + "plain", topic_prefix + "tuned"
        connection = connect_to(cluster3)
        # An override equal to the default is still an override.
        config = {"retention.ms": "604800000", "cleanup.policy": "compact , delete"}
        create(connection, CreateTopic(plain, ((1,),), {}), CreateTopic(tuned, ((1,),), config))
        state = KafkaReader(connection).read_cluster([plain, tuned])
        assert state.topics[plain].config == {}
        assert state.topics[tuned].config == {
            "retention.ms": "604800000",
            "cleanup.policy": "compact,delete",
        }
        assert state.config_defaults["retention.ms"] == "604800000"

    def test_configs_are_read_for_the_named_topics_only(
        self, cluster3: Cluster, topic_prefix: str
    ) -> None:
        one, two = topic_prefix + "one", topic_prefix + "two"
        connection = connect_to(cluster3)
        config = {"retention.ms": "5000"}
        create(connection, CreateTopic(one, ((1,),), config), CreateTopic(two, ((1,),), config))
        reader = KafkaReader(connection)
        named = reader.read_cluster([one]).topics
        assert (named[one].config, named[two].config) == (config, {})
        everything = reader.read_cluster().topics
        assert (everything[one].config, everything[two].config) == (config, config)

    def test_defaults_are_known_before_any_named_topic_exists(
        self, cluster3: Cluster, topic_prefix: str
    ) -> None:
        connection = connect_to(cluster3)
        create(connection, CreateTopic(topic_prefix + "any", ((1,),), {}))
        state = KafkaReader(connection).read_cluster([topic_prefix + "missing"])
        assert state.config_defaults["compression.type"] == "producer"
        assert topic_prefix + "missing" not in state.topics

    @pytest.mark.slow
    def test_defaults_on_which_brokers_disagree_are_left_out(self) -> None:
        with start_cluster(
            brokers=2, broker_properties={1: {"log.retention.hours": "24"}}
        ) as cluster:
            connection = connect_to(cluster)
            names = [f"t{n:03}" for n in range(150)]  # two batches, one for each broker
            create(connection, *(CreateTopic(name, ((1,),), {}) for name in names))
            state = KafkaReader(connection).read_cluster(names)
        assert "retention.ms" not in state.config_defaults
        assert state.config_defaults["segment.bytes"] == "1073741824"

    def test_a_key_that_brokers_do_not_know_has_no_value(
        self, cluster3: Cluster, topic_prefix: str
    ) -> None:
        """Set on the cluster default, it shows on every topic; it is no override of the topic."""
        name = topic_prefix + "plain"
        connection = connect_to(cluster3)
        create(connection, CreateTopic(name, ((1,),), {}))
        set_config(cluster3, ResourceType.BROKER, "1", no_such_key="1")
        assert KafkaReader(connection).read_cluster([name]).topics[name].config == {}

    def test_ids_are_spelt_as_kafka_does(self, cluster3: Cluster, topic_prefix: str) -> None:
        names = [f"{topic_prefix}{n}" for n in range(40)]  # - and _ stand in most of 40 ids
        connection = connect_to(cluster3)
        create(connection, *(CreateTopic(name, ((1,),), {}) for name in names))
        other = KafkaAdminClient(bootstrap_servers=cluster3.bootstrap_servers.split(","))
        told = {t["name"]: t["topic_id"] for t in other.describe_topics(names)}
        other.close()
        ids = KafkaReader(connection).read_topic_ids([*names, topic_prefix + "missing"])
        assert ids == {name: _spell(told[name]) for name in names}


def _spell(topic_id: object) -> str:
    return base64.urlsafe_b64encode(uuid.UUID(str(topic_id)).bytes).decode().rstrip("=")


class TestLagging:
    """Brokers answer before the others know: what one does not show is asked of the others."""

    def test_a_topic_that_the_first_broker_does_not_show_is_read_from_one_that_does(
        self, cluster3: Cluster, topic_prefix: str
    ) -> None:
        name = topic_prefix + "late"
        connection = connect_to(cluster3)
        create(connection, CreateTopic(name, ((1, 2),), {"retention.ms": "5000"}))
        found = _read(connection.client(), [name])
        del found.topics[name]
        found.late = {name: 3}
        late = KafkaReader(connection)._read_late(found)
        assert late[name].assignment == ((1, 2),)
        assert late[name].config == {"retention.ms": "5000"}

    def test_every_broker_is_asked_before_a_topic_is_unknown(
        self, cluster3: Cluster, topic_prefix: str
    ) -> None:
        known, missing = topic_prefix + "known", topic_prefix + "missing"
        connection = connect_to(cluster3)
        create(connection, CreateTopic(known, ((1,),), {}))
        found = read_configs(connection.client(), [known, missing], (1, 2, 3))
        assert list(found.known_by) == [known]
        assert (found.denied, list(found.overrides)) == (set(), [known])

    @pytest.mark.slow
    def test_a_broker_that_is_gone_is_not_waited_for_twice(self, cluster3: Cluster) -> None:
        """Its batch goes to the next broker; only where all are gone is the answer lost."""
        client = connect_to(cluster3).client()
        started = time.monotonic()
        found = read_configs(client, ["reconciler"], (99, 1))
        assert not found.known_by
        assert time.monotonic() - started < 2 * REQUEST_S
        with pytest.raises(KafkaException):
            read_configs(client, ["reconciler"], (99,))


class TestIdentity:
    def test_another_cluster_is_refused(self, cluster3: Cluster) -> None:
        with pytest.raises(ClusterError) as refused:
            KafkaReader(connect_to(cluster3, "5L6g3nShT-eMCtK--X86sw")).read_cluster(())
        assert str(refused.value) == (
            f"clusters.yaml:3:1: this is cluster {cluster3.cluster_id}, and lab is expected to be "
            "5L6g3nShT-eMCtK--X86sw; check bootstrap.servers, or correct cluster_id in "
            "clusters.yaml [cluster-id]"
        )

    def test_the_expected_cluster_is_read(self, cluster3: Cluster) -> None:
        state = KafkaReader(connect_to(cluster3, cluster3.cluster_id)).read_cluster(())
        assert state.cluster_id == cluster3.cluster_id


@pytest.fixture(scope="module")
def cluster4() -> Iterator[Cluster]:
    """Return a cluster of one's own: brokers are stopped, cordoned and throttled."""
    with start_cluster(brokers=4, racks=2, log_directories=2) as cluster:
        yield cluster


@pytest.mark.cluster
class TestOnTheMove:
    def read(self, cluster: Cluster, *names: str) -> ClusterState:
        return KafkaReader(connect_to(cluster)).read_cluster(names)

    def test_cordoned_brokers_are_recognised(self, cluster4: Cluster) -> None:
        broker = ResourceType.BROKER
        set_config(cluster4, broker, "2", cordoned_log_dirs="*")
        wait_for(lambda: self.read(cluster4).brokers[1].cordoned)
        assert [b.id for b in self.read(cluster4).brokers if b.cordoned] == [2]
        set_config(cluster4, broker, "2", cordoned_log_dirs="")
        wait_for(lambda: not any(b.cordoned for b in self.read(cluster4).brokers))

    def test_a_throttled_reassignment_shows_its_target(self, cluster4: Cluster) -> None:
        create(
            connect_to(cluster4),
            CreateTopic("throttled", ((1,), (2,)), {"leader.replication.throttled.replicas": "*"}),
        )
        set_config(cluster4, ResourceType.BROKER, "1", leader_replication_throttled_rate="1")
        producer = Producer({"bootstrap.servers": cluster4.bootstrap_servers})
        for _ in range(300):
            producer.produce("throttled", value=b"x" * 10_000, partition=0)
        assert producer.flush(20) == 0
        reassign(cluster4, "throttled", {0: [3, 4]})
        topic = self.read(cluster4, "throttled").topics["throttled"]
        assert topic.assignment == ((3, 4), (2,))
        assert topic.reassigning == {0}
        set_config(
            cluster4, ResourceType.BROKER, "1", leader_replication_throttled_rate="100000000"
        )
        wait_for(lambda: not self.read(cluster4, "throttled").topics["throttled"].reassigning)

    def test_a_stuck_reassignment_shows_its_target(self, cluster4: Cluster) -> None:
        create(connect_to(cluster4), CreateTopic("stuck", ((1, 2), (2, 3)), {}))
        cluster4.stop_broker(4)
        try:
            reassign(cluster4, "stuck", {1: [4, 3]})
            state = self.read(cluster4, "stuck")
        finally:
            reassign(cluster4, "stuck", {1: None})
            cluster4.start_broker(4)
        assert state.topics["stuck"].assignment == ((1, 2), (4, 3))
        assert state.topics["stuck"].reassigning == {1}
        assert state.notes == ()

    def test_registered_brokers_that_are_not_alive_are_read_on_request(
        self, cluster4: Cluster
    ) -> None:
        reader = KafkaReader(connect_to(cluster4))
        cluster4.stop_broker(4)
        try:
            state = reader.read_cluster([])
            living = tuple(broker for broker in state.brokers if broker.alive)
            told = reader.read_fenced(replace(state, brokers=living), {1, 4, 99})
        finally:
            cluster4.start_broker(4)
        assert not state.lists_fenced
        assert told.lists_fenced
        assert [(b.id, b.alive) for b in told.brokers] == [
            (1, True),
            (2, True),
            (3, True),
            (4, False),
        ]

    @pytest.mark.slow
    def test_dead_brokers_are_those_that_only_replica_lists_name(self, cluster4: Cluster) -> None:
        create(connect_to(cluster4), CreateTopic("bereft", ((1, 4),), {}))
        cluster4.stop_broker(4)
        try:
            state = self.read(cluster4, "bereft")
        finally:
            cluster4.start_broker(4)
        assert Broker(4, alive=False) in state.brokers
        assert state.topics["bereft"].assignment == ((1, 4),)
        assert state.topics["bereft"].in_sync == ((1,),)
        assert state.topics["bereft"].reassigning == frozenset()

    def test_nothing_is_asked_of_the_second_client_while_all_is_in_sync_and_even(
        self, cluster4: Cluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if "throttled" in self.read(cluster4).topics:
            reassign(cluster4, "throttled", {0: [3]})  # what a test before left uneven
        wait_for(lambda: all(b.alive for b in self.read(cluster4).brokers))
        wait_for(lambda: _all_in_sync(self.read(cluster4)))
        monkeypatch.setattr("reconciler.kafka.second_look._list_all", None)
        assert self.read(cluster4).notes == ()


def _all_in_sync(state: ClusterState) -> bool:
    return all(
        set(row) == set(synced)
        for topic in state.topics.values()
        for row, synced in zip(topic.assignment, topic.in_sync, strict=True)
    )
