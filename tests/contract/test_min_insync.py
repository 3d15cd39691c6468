"""More min.insync.replicas than replicas, or than are in sync, on real brokers.

Kafka takes such a topic, and counts at most as many replicas as there are (KAFKA-21110, since 3.7).
The reason of `min-insync-le-replication` rests on that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import ResourceType
from holding import accept
from lab import connect_to, create, reassign, set_config, wait_for
from shorthand import spec
from workbench import Workbench, outcomes, texts

from reconciler.errors import StalePlanError
from reconciler.kafka.mover import KafkaMover
from reconciler.kafka.reader import KafkaReader
from reconciler.model.cluster import ThrottleSide, TopicState
from reconciler.model.steps import CreateTopic
from reconciler.run.events import StepAnswered
from reconciler.sandbox.cluster import Cluster, start_cluster

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

pytestmark = pytest.mark.cluster


class Writer:
    """Writes to a topic with acks=all, and does not try again."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self.cluster, self.topic = cluster, topic
        servers = {"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0}
        self.producer = Producer({**servers, "acks": "all", "retries": 0})

    def write(self, value: bytes = b"x") -> str | None:
        """Return the error of one write, None where it was accepted."""
        answers: list[KafkaError | None] = []
        self.producer.produce(self.topic, value, on_delivery=lambda err, _: answers.append(err))
        assert self.producer.flush(20) == 0
        return answers[0].name() if answers[0] else None

    def look(self) -> TopicState:
        return KafkaReader(connect_to(self.cluster)).read_cluster([self.topic]).topics[self.topic]


def test_a_write_succeeds_with_fewer_copies_than_asked_for(
    cluster3: Cluster, topic_prefix: str
) -> None:
    name = topic_prefix + "thin"
    create(connect_to(cluster3), CreateTopic(name, ((1,),), {"min.insync.replicas": "2"}))
    assert Writer(cluster3, name).write() is None


def test_every_write_fails_while_replication_grows(cluster3: Cluster, topic_prefix: str) -> None:
    name = topic_prefix + "growing"
    config = {"min.insync.replicas": "2", "leader.replication.throttled.replicas": "*"}
    create(connect_to(cluster3), CreateTopic(name, ((1,),), config))
    writer = Writer(cluster3, name)
    # The rate comes before the writes, so that the leader has it when the copy begins.
    set_config(cluster3, ResourceType.BROKER, "1", leader_replication_throttled_rate="1")
    try:
        assert [writer.write(b"x" * 10_000) for _ in range(300)] == [None] * 300
        reassign(cluster3, name, {0: [1, 2, 3]})
        # The controller answers before the leader knows: a write just after it may succeed.
        wait_for(lambda: writer.write() == "NOT_ENOUGH_REPLICAS")
        assert [writer.write() for _ in range(20)] == ["NOT_ENOUGH_REPLICAS"] * 20
        assert writer.look().reassigning == {0}
    finally:
        set_config(cluster3, ResourceType.BROKER, "1", leader_replication_throttled_rate="99999999")
    wait_for(lambda: set(writer.look().in_sync[0]) == {1, 2, 3} and not writer.look().reassigning)
    assert writer.write() is None
    # Others use this cluster, too, and ask whether it is throttled.
    mover = KafkaMover(connect_to(cluster3))
    accept({1: mover.unset_rates(1)})
    accept(mover.configure({name: {ThrottleSide.LEADER.list_key: None}}))
    mover.close()


def test_it_does_not_rise_while_a_broker_is_down(topic_prefix: str) -> None:
    """Every write would fail from then on, although one broker more is down than planned for."""
    name = topic_prefix + "orders"
    low, high = (
        spec(name, assignment=((1, 2, 3),), config={"min.insync.replicas": n}) for n in "23"
    )
    new = spec(topic_prefix + "new", assignment=((1,),))
    refused = (
        f"{name}: partition 0 has fewer than 3 replicas in sync, so every acks=all write to it "
        "would fail with min.insync.replicas 3"
    )
    with start_cluster(brokers=3) as cluster:
        bench, writer = Workbench(cluster), Writer(cluster, name)
        bench.bring(low)
        wait_for(lambda: len(writer.look().in_sync[0]) == 3)
        made, both = bench.plan(high), bench.plan(high, new)

        cluster.stop_broker(3)
        wait_for(lambda: len(writer.look().in_sync[0]) == 2)
        with pytest.raises(StalePlanError) as caught:
            bench.apply(made)
        assert [found.what for found in caught.value.findings] == [refused]
        assert [r.rule for topic in bench.plan(high).topics for r in topic.refusals] == [
            "min-insync-le-in-sync"
        ]
        assert (writer.look().config["min.insync.replicas"], writer.write()) == ("2", None)

        cluster.start_broker(3)
        wait_for(lambda: len(writer.look().in_sync[0]) == 3)

        def stop(answered: StepAnswered) -> None:
            if answered.phase == "create":
                cluster.stop_broker(3)
                wait_for(lambda: len(writer.look().in_sync[0]) == 2)

        applied = bench.apply(both, observe=stop)
        assert outcomes(applied) == {new.name: "done", name: "failed"}
        assert texts(applied)[name] == refused.replace(f"{name}:", "it was not carried out:")
        assert (writer.look().config["min.insync.replicas"], writer.write()) == ("2", None)

        cluster.start_broker(3)
        wait_for(lambda: len(writer.look().in_sync[0]) == 3)
        assert outcomes(bench.apply(made)) == {name: "done"}


def test_it_is_judged_by_the_brokers_default(topic_prefix: str) -> None:
    """What is in force on a topic without an override counts, before and after the change."""
    kept, freed = topic_prefix + "kept", topic_prefix + "freed"
    rows = ((2, 3),)
    with start_cluster(brokers=3, properties={"min.insync.replicas": "2"}) as cluster:
        bench, writer = Workbench(cluster), Writer(cluster, freed)
        bench.bring(
            spec(kept, assignment=rows),
            spec(freed, assignment=rows, config={"min.insync.replicas": "1"}),
        )
        explicit = bench.plan(spec(kept, assignment=rows, config={"min.insync.replicas": "2"}))
        removed = bench.plan(spec(freed, assignment=rows))
        assert explicit.topics[0].explicit == ("min.insync.replicas",)

        cluster.stop_broker(3)
        wait_for(lambda: writer.look().in_sync[0] == (2,))
        assert outcomes(bench.apply(explicit)) == {kept: "done"}
        with pytest.raises(StalePlanError) as caught:
            bench.apply(removed)
        assert [found.what for found in caught.value.findings] == [
            f"{freed}: partition 0 has fewer than 2 replicas in sync, so every acks=all write to "
            "it would fail with min.insync.replicas 2"
        ]
        assert writer.write() is None
