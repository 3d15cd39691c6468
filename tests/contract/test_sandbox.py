"""What every engine of the sandbox keeps to, on real brokers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from breakable import freeze_node, kill_node, thaw_node
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic
from kafka_image import find_image
from lab import wait_for

from reconciler.errors import SandboxError
from reconciler.model.cluster import Broker
from reconciler.sandbox.cluster import Cluster, start_cluster
from reconciler.sandbox.jars import known_releases
from reconciler.sandbox.request import BrokerState

pytestmark = pytest.mark.cluster

SHAPE = (Broker(7, "eu-1a"), Broker(11, "eu-1b"), Broker(30, None))
FENCED_WITHIN_S = 30


@pytest.fixture(scope="module", params=["embedded", "container"])
def engine(request: pytest.FixtureRequest) -> Mapping[str, Any]:
    """Return how to ask for an engine; skip the container engine where it cannot run."""
    if request.param == "embedded":
        return {"engine": "embedded"}
    return {"engine": "container", "image": find_image()}


@pytest.fixture(scope="module")
def cluster(engine: Mapping[str, Any]) -> Iterator[Cluster]:
    """A cluster whose brokers may be stopped, killed and frozen; each test leaves them running."""
    with start_cluster(shape=SHAPE, isolate=True, **engine) as cluster:
        yield cluster


def admin_of(cluster: Cluster) -> AdminClient:
    return AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})


def state_of(cluster: Cluster, broker_id: int) -> BrokerState:
    return next(status.state for status in cluster.statuses() if status.id == broker_id)


def brokers_seen(cluster: Cluster, by: int) -> set[int]:
    client = AdminClient({"bootstrap.servers": cluster.addresses()[by], "log_level": 0})
    return set(client.list_topics(timeout=10).brokers)


def wait_until(fact: Callable[[], bool], within_s: float) -> None:
    deadline = time.monotonic() + within_s
    while not fact():
        assert time.monotonic() < deadline, "it has not come true in time"
        time.sleep(0.1)


def test_ids_and_racks_are_those_asked_for(cluster: Cluster) -> None:
    admin = admin_of(cluster)
    described = admin.describe_cluster().result(30)
    assert described.cluster_id == cluster.cluster_id
    racks = {node.id: node.rack for node in described.nodes}
    assert racks == {7: "eu-1a", 11: "eu-1b", 30: None}


def test_every_broker_is_reachable_on_loopback_only(cluster: Cluster) -> None:
    addresses = cluster.addresses()
    assert list(addresses) == [7, 11, 30]
    assert {address.split(":")[0] for address in addresses.values()} == {"127.0.0.1"}
    assert cluster.bootstrap_servers == ",".join(addresses.values())


def test_a_topic_is_created_on_the_brokers_asked_for(cluster: Cluster, topic_prefix: str) -> None:
    admin = admin_of(cluster)
    name = f"{topic_prefix}placed"
    topic = NewTopic(name, 2, replica_assignment=[[30, 7], [11, 30]])
    admin.create_topics([topic])[name].result(30)
    # Asked right after the answer, another broker may not have heard of the topic yet.
    wait_for(lambda: len(admin.list_topics(name, timeout=10).topics[name].partitions) == 2)
    partitions = admin.list_topics(name, timeout=10).topics[name].partitions
    assert [partitions[n].replicas for n in (0, 1)] == [[30, 7], [11, 30]]


def test_topics_do_not_appear_by_being_asked_for(cluster: Cluster, topic_prefix: str) -> None:
    admin = admin_of(cluster)
    assert (
        admin.list_topics(f"{topic_prefix}nobody", timeout=10).topics[f"{topic_prefix}nobody"].error
    )
    assert f"{topic_prefix}nobody" not in admin.list_topics(timeout=10).topics


def test_a_stopped_broker_is_missed_and_comes_back_at_its_address(cluster: Cluster) -> None:
    address = cluster.addresses()[11]
    cluster.stop_broker(11)
    assert state_of(cluster, 11) is BrokerState.STOPPED
    assert brokers_seen(cluster, by=7) == {7, 30}
    cluster.start_broker(11)
    assert state_of(cluster, 11) is BrokerState.RUNNING
    assert cluster.addresses()[11] == address
    assert brokers_seen(cluster, by=7) == brokers_seen(cluster, by=11) == {7, 11, 30}


@pytest.mark.slow
def test_a_topic_outlives_the_restart_of_its_only_replica(
    cluster: Cluster, topic_prefix: str
) -> None:
    name = f"{topic_prefix}kept"
    admin = admin_of(cluster)
    admin.create_topics([NewTopic(name, 1, replica_assignment=[[30]])])[name].result(30)
    cluster.stop_broker(30)
    cluster.start_broker(30)
    partition = admin_of(cluster).list_topics(name, timeout=10).topics[name].partitions[0]
    assert (partition.replicas, partition.leader) == ([30], 30)


def test_a_killed_broker_is_dead_with_a_reason_and_can_start_again(cluster: Cluster) -> None:
    kill_node(cluster, 7)
    status = cluster.statuses()[0]
    assert status.state is BrokerState.DEAD
    assert "SIGKILL" in status.reason
    wait_until(lambda: brokers_seen(cluster, by=30) == {11, 30}, FENCED_WITHIN_S)
    cluster.start_broker(7)
    assert brokers_seen(cluster, by=7) == {7, 11, 30}


@pytest.mark.slow
def test_a_frozen_broker_is_missed_and_comes_back(cluster: Cluster) -> None:
    freeze_node(cluster, 30)
    assert state_of(cluster, 30) is BrokerState.FROZEN
    wait_until(lambda: brokers_seen(cluster, by=7) == {7, 11}, FENCED_WITHIN_S)
    thaw_node(cluster, 30)
    assert state_of(cluster, 30) is BrokerState.RUNNING
    wait_until(lambda: brokers_seen(cluster, by=7) == {7, 11, 30}, FENCED_WITHIN_S)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda c: c.stop_broker(8), "the sandbox has no broker 8; it has 7, 11, 30"),
        (lambda c: c.start_broker(7), "broker 7 is running already"),
    ],
)
def test_what_makes_no_sense_is_refused(
    cluster: Cluster, act: Callable[[Cluster], None], message: str
) -> None:
    with pytest.raises(SandboxError) as refusal:
        act(cluster)
    assert str(refusal.value) == message


def test_a_wrong_property_is_reported_in_the_brokers_words(engine: Mapping[str, Any]) -> None:
    with (
        pytest.raises(SandboxError, match=r"Invalid value many for configuration num\.io\.threads"),
        start_cluster(brokers=1, properties={"num.io.threads": "many"}, **engine),
    ):
        pytest.fail("it started")


@pytest.mark.slow
def test_further_listeners_are_served(engine: Mapping[str, Any]) -> None:
    properties = {
        "listener.name.door.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.door.plain.sasl.jaas.config": (
            "org.apache.kafka.common.security.plain.PlainLoginModule required"
            ' user_alice="wonder land";'
        ),
    }
    listeners = {"DOOR": "SASL_PLAINTEXT"}
    with start_cluster(brokers=1, listeners=listeners, properties=properties, **engine) as cluster:
        refuse_wrong_password(cluster.addresses("DOOR")[1], "PLAIN")


@pytest.mark.slow
def test_scram_users_can_be_there_from_the_start() -> None:
    properties = {
        "listener.name.door.sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.door.scram-sha-512.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        ),
    }
    with start_cluster(
        brokers=1,
        listeners={"DOOR": "SASL_PLAINTEXT"},
        properties=properties,
        scram_users=["SCRAM-SHA-512=[name=alice,password=wonder land]"],
    ) as cluster:
        refuse_wrong_password(cluster.addresses("DOOR")[1], "SCRAM-SHA-512")


def refuse_wrong_password(address: str, mechanism: str) -> None:
    """See that alice comes in with her password and with no other."""
    client = {
        "bootstrap.servers": address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": "alice",
        "log_level": 0,
    }
    admin = AdminClient({**client, "sasl.password": "wonder land"})
    assert set(admin.list_topics(timeout=30).brokers) == {1}
    stranger = AdminClient({**client, "sasl.password": "guess"})
    with pytest.raises(KafkaException):
        stranger.list_topics(timeout=3)


@pytest.mark.slow
def test_several_log_directories_are_used(engine: Mapping[str, Any], topic_prefix: str) -> None:
    with start_cluster(brokers=1, log_directories=2, **engine) as cluster:
        resource = ConfigResource(ConfigResource.Type.BROKER, "1")
        admin = admin_of(cluster)
        configs = admin.describe_configs([resource])[resource].result(30)
        assert len(configs["log.dirs"].value.split(",")) == 2


@pytest.mark.slow
@pytest.mark.parametrize("kafka_version", known_releases())
def test_every_release_runs(kafka_version: str) -> None:
    with start_cluster(brokers=1, kafka_version=kafka_version) as cluster:
        assert cluster.kafka_version == kafka_version
        cluster.stop_broker(1)
        cluster.start_broker(1)
        assert brokers_seen(cluster, by=1) == {1}
