"""Each broker's own view: what one of them does not know yet is not hidden by the others."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING

import pytest
from breakable import freeze_node, kill_node, thaw_node
from confluent_kafka import KafkaException, Node
from lab import connect_to, create, wait_for

from reconciler.kafka.metadata import ClientForAll, ClientPerBroker, read_metadata
from reconciler.kafka.reader import KafkaReader
from reconciler.kafka.second_client import translate_settings
from reconciler.kafka.views import Views
from reconciler.model.cluster import TopicState
from reconciler.model.steps import CreateTopic
from reconciler.sandbox.cluster import Cluster, start_cluster

if TYPE_CHECKING:
    from reconciler.kafka.metadata import BrokerClient


class TestViews:
    def test_every_living_broker_has_one(self, cluster6: Cluster, topic_prefix: str) -> None:
        name = topic_prefix + "seen"
        connection = connect_to(cluster6)
        create(connection, CreateTopic(name, ((1, 2), (3, 4)), {"retention.ms": "5000"}))
        views = KafkaReader(connection).read_views([name, topic_prefix + "missing"])
        assert sorted(views) == [1, 2, 3, 4, 5, 6]
        assert {view[name].assignment for view in views.values()} == {((1, 2), (3, 4))}
        assert {tuple(view) for view in views.values()} == {(name,)}
        assert {tuple(view[name].config) for view in views.values()} == {()}

    def test_configs_are_filled_where_asked_for(self, cluster3: Cluster, topic_prefix: str) -> None:
        one, two = topic_prefix + "one", topic_prefix + "two"
        connection = connect_to(cluster3)
        config = {"retention.ms": "5000"}
        create(connection, CreateTopic(one, ((1,),), config), CreateTopic(two, ((1,),), config))
        views = KafkaReader(connection).read_views([one, two], with_config=[one])
        assert [view[one].config for view in views.values()] == [config] * 3
        assert [view[two].config for view in views.values()] == [{}] * 3

    def test_a_missing_topic_is_omitted_although_its_config_is_asked_for(
        self, cluster3: Cluster, topic_prefix: str
    ) -> None:
        missing = topic_prefix + "missing"
        views = KafkaReader(connect_to(cluster3)).read_views([missing], with_config=[missing])
        assert views == {1: {}, 2: {}, 3: {}}

    def test_threads_do_not_grow_with_the_square_of_the_brokers(self, cluster6: Cluster) -> None:
        """A client of librdkafka has nine threads here; one for each broker had 54."""
        done = subprocess.run(
            [sys.executable, "-c", COUNT_THREADS, cluster6.bootstrap_servers],
            capture_output=True,
            text=True,
            check=True,
        )
        before, after = map(int, done.stdout.split())
        assert after - before <= 2

    def test_the_client_ends_with_its_last_reference(self, cluster3: Cluster) -> None:
        views = Views(connect_to(cluster3))
        views.read((), ())
        assert isinstance(views._client, ClientForAll)
        manager = views._client._manager
        del views
        wait_for(lambda: manager.closed)

    def test_asking_for_a_topic_does_not_create_it(self) -> None:
        properties = {"auto.create.topics.enable": "true"}
        with start_cluster(brokers=1, properties=properties) as cluster:
            connection = connect_to(cluster)
            for _ in range(2):
                assert KafkaReader(connection).read_views(["missing"]) == {1: {}}
            assert "missing" not in read_metadata(connection.client()).topics


COUNT_THREADS = """
import os, sys
from reconciler.errors import Location
from reconciler.kafka.reader import KafkaReader
from reconciler.kafka.connection import connect
from reconciler.spec.entry import ClusterEntry

connection = connect(ClusterEntry("lab", Location("lab", 1)), bootstrap_servers=sys.argv[1])
reader = KafkaReader(connection)
reader.read_cluster(())
before = len(os.listdir("/proc/self/task"))
assert sorted(reader.read_views(["some"])) == [1, 2, 3, 4, 5, 6]
print(before, len(os.listdir("/proc/self/task")))
"""


@pytest.fixture(params=["one client for all", "a client per broker"])
def client(request: pytest.FixtureRequest, cluster3: Cluster) -> BrokerClient:
    settings = connect_to(cluster3).settings
    if request.param == "a client per broker":
        return ClientPerBroker(settings)
    return ClientForAll(translate_settings(settings, ()))


class TestBrokerClients:
    """Both ways to ask one broker show the same."""

    def test_a_topic_is_read_in_full(
        self, cluster3: Cluster, topic_prefix: str, client: BrokerClient
    ) -> None:
        name, missing = topic_prefix + "one", topic_prefix + "missing"
        connection = connect_to(cluster3)
        create(connection, CreateTopic(name, ((1, 2), (3, 1)), {"retention.ms": "5000"}))
        for node in Views(connection).list_brokers():
            wait_for(lambda: client.read_topics(node, [name])[name].leaders == (1, 3))  # noqa: B023
            assert client.read_topics(node, [missing, name]) == {
                name: TopicState(
                    name=name,
                    topic_id=None,
                    assignment=((1, 2), (3, 1)),
                    config={},
                    in_sync=((1, 2), (3, 1)),
                    leaders=(1, 3),
                )
            }

    def test_many_topics_are_asked_for_in_several_requests(
        self,
        cluster3: Cluster,
        topic_prefix: str,
        client: BrokerClient,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr("reconciler.kafka.metadata.BATCH", 2)
        names = [f"{topic_prefix}{number}" for number in range(5)]
        connection = connect_to(cluster3)
        create(connection, *(CreateTopic(name, ((1,),), {}) for name in names))
        for node in Views(connection).list_brokers():
            assert sorted(client.read_topics(node, names)) == names

    def test_no_other_broker_answers_for_one_that_does_not(
        self,
        cluster3: Cluster,
        client: BrokerClient,
        broken: int,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        first, *others = Views(connect_to(cluster3)).list_brokers()
        with monkeypatch.context() as patch:
            patch.setattr("reconciler.kafka.configs.REQUEST_S", 1.0)  # it tries for as long
            with pytest.raises(KafkaException):
                client.read_topics(Node(first.id, first.host, broken), ())
        for node in (first, *others):  # at once, the first one as well
            assert client.read_topics(node, ()) == {}


@pytest.fixture
def broken() -> Iterator[int]:
    """Return a port that ends every connection. (kafka-python leaks sockets that are refused.)"""

    def hang_up() -> None:
        with suppress(OSError):
            while True:
                server.accept()[0].close()

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = Thread(target=hang_up)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.fixture(scope="module")
def isolated() -> Iterator[Cluster]:
    """Three brokers, a process each: they can hang and die."""
    with start_cluster(brokers=3, isolate=True) as cluster:
        yield cluster


@pytest.mark.cluster
@pytest.mark.slow
class TestFaults:
    def test_a_frozen_broker_is_left_out(self, isolated: Cluster) -> None:
        """Until it is fenced, the others still count it as living."""
        reader = KafkaReader(connect_to(isolated))
        assert sorted(reader.read_views(())) == [1, 2, 3]
        freeze_node(isolated, 2)
        try:
            assert sorted(reader.read_views(())) == [1, 3]
            assert len(reader.read_cluster(()).topics) == len(reader.read_cluster().topics)
        finally:
            thaw_node(isolated, 2)
        wait_for(lambda: sorted(reader.read_views(())) == [1, 2, 3], 30)

    def test_reading_survives_the_loss_of_any_broker(self, isolated: Cluster) -> None:
        """Whichever broker the client took for the controller, a fresh one finds another."""
        connection = connect_to(isolated)
        create(connection, CreateTopic("survivor", ((1, 2, 3),), {}))
        readers = [KafkaReader(connect_to(isolated)) for _ in range(4)]
        for reader in readers:
            reader.read_cluster(["survivor"])
        kill_node(isolated, 3)
        try:
            for reader in readers:
                assert "survivor" in reader.read_cluster(["survivor"]).topics
        finally:
            isolated.start_broker(3)

    def test_a_fresh_connection_gets_past_a_frozen_broker(self, isolated: Cluster) -> None:
        freeze_node(isolated, 1)
        try:
            for _ in range(3):
                KafkaReader(connect_to(isolated)).read_cluster(())
        finally:
            thaw_node(isolated, 1)
