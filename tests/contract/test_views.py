"""Each broker's own view: what one of them does not know yet is not hidden by the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from lab import connect_to, create, wait_for

from reconciler.kafka import KafkaReader
from reconciler.kafka.views import Views
from reconciler.model import CreateTopic
from reconciler.sandbox import start_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reconciler.sandbox import Cluster


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

    def test_each_answer_is_the_brokers_own(self, cluster6: Cluster) -> None:
        """A client that starts at one address soon asks any broker; a pinned one does not."""
        views = Views(connect_to(cluster6))
        for _ in range(10):
            for node in views.list_brokers():
                assert views.read_metadata(node).orig_broker_id == node.id

    def test_clients_are_kept_between_polls(self, cluster3: Cluster) -> None:
        views = Views(connect_to(cluster3))
        views.read((), ())
        kept = dict(views._clients)
        views.read((), ())
        assert views._clients == kept
        assert sorted(kept) == [1, 2, 3]


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
        isolated.freeze_broker(2)
        try:
            assert sorted(reader.read_views(())) == [1, 3]
            assert len(reader.read_cluster(()).topics) == len(reader.read_cluster().topics)
        finally:
            isolated.thaw_broker(2)
        wait_for(lambda: sorted(reader.read_views(())) == [1, 2, 3], 30)

    def test_reading_survives_the_loss_of_any_broker(self, isolated: Cluster) -> None:
        """Whichever broker the client took for the controller, a fresh one finds another."""
        connection = connect_to(isolated)
        create(connection, CreateTopic("survivor", ((1, 2, 3),), {}))
        readers = [KafkaReader(connect_to(isolated)) for _ in range(4)]
        for reader in readers:
            reader.read_cluster(["survivor"])
        isolated.kill_broker(3)
        try:
            for reader in readers:
                assert "survivor" in reader.read_cluster(["survivor"]).topics
        finally:
            isolated.start_broker(3)

    def test_a_fresh_connection_gets_past_a_frozen_broker(self, isolated: Cluster) -> None:
        isolated.freeze_broker(1)
        try:
            for _ in range(3):
                KafkaReader(connect_to(isolated)).read_cluster(())
        finally:
            isolated.thaw_broker(1)
