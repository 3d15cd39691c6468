"""The demonstration: specs become topics on a real Kafka of six brokers in three racks.

At the end, one of the brokers is emptied while a producer writes.
`make demo` runs it. It works in a directory of its own, on a sandbox of its own, and leaves
neither behind, whether it ends, is interrupted or is killed.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from stage import Stage, open_stage

import reconciler
from reconciler.sandbox.cluster import Cluster
from reconciler.sandbox.record import own_sandbox, write_record
from reconciler.sandbox.request import EngineName, describe_shape, spread_brokers
from reconciler.sandbox.supervisor import describe_sandbox

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

HISTORY = (
    NewTopic(
        "payments.captured",  # its spec has grown to 9 partitions since
        num_partitions=6,
        replication_factor=3,
        config={
            "compression.type": "zstd",
            "min.insync.replicas": "2",
            "retention.ms": "3024000000",
            "unclean.leader.election.enable": "false",
        },
    ),
    NewTopic(
        "orders.events",  # somebody has turned its configs by hand
        num_partitions=12,
        replication_factor=3,
        config={
            "compression.type": "zstd",
            "min.insync.replicas": "1",
            "retention.ms": "604800000",
            "flush.ms": "1000",
        },
    ),
    NewTopic("legacy.clickstream", num_partitions=4, replication_factor=3),  # unmanaged
    NewTopic(
        "shop.prices",  # its spec asks for 6 partitions, and Kafka cannot take two away
        num_partitions=8,
        replication_factor=3,
        config={
            "cleanup.policy": "compact",
            "max.compaction.lag.ms": "3600000",
            "min.cleanable.dirty.ratio": "0.2",
            "min.insync.replicas": "2",
        },
    ),
)

DRAIN = """\
  sandbox:
    drain_brokers: [6]
    moves:
      allow: [drain]
      rate: 30MiB
      at_once: {cluster: 100, broker: 50}
      keep_free: 0%       # all brokers of a sandbox share one disk
"""


def play(stage: Stage) -> None:
    """Play the demonstration from the first act to the last."""
    stage.say("A real Kafka cluster: six brokers in three racks, on this machine only")
    shape = spread_brokers(brokers=6, racks=3)
    cluster = stage.start(shape)
    write_record(describe_sandbox(cluster, EngineName.EMBEDDED, control=""))
    print(
        f"Kafka {cluster.kafka_version} · {describe_shape(shape)}; it goes with this demonstration"
    )
    print("`reconciler sandbox up --brokers 6 --racks 3` starts one that stays", flush=True)

    stage.say("It has a history: a topic too small, one changed by hand, one unmanaged, …")
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    for future in admin.create_topics(list(HISTORY)).values():
        future.result()
    before = _count_leaders(stage, cluster)

    stage.say("The specs of a shop, checked without any cluster")
    stage.run("validate", "topics")
    stage.say("One spec asks for the impossible, so a plan of it exits 1")
    stage.run("plan", "topics", "--cluster", "sandbox", "--topic", "shop.prices", expect=1)

    stage.say("The plan says the way out: topics/shop.yaml puts 8 partitions back")
    _put_partitions_back(stage.directory / "topics" / "shop.yaml")
    stage.say("What would change now? apply shows the plan, and does that and nothing else")
    stage.run("apply", "topics", "--cluster", "sandbox", "--auto-approve")
    stage.say("And again: there is nothing left to do")
    stage.run("plan", "topics", "--cluster", "sandbox", "--detailed-exitcode")

    stage.say("Preferred leaders on each broker, before and after")
    _draw(before, _count_leaders(stage, cluster))
    _drain(stage, cluster)


def _drain(stage: Stage, cluster: Cluster) -> None:
    """Empty a broker while a producer writes, and count what the producer wrote."""
    stage.say("Broker 6 is to be retired: clusters.yaml says so, and how fast replicas move")
    with (stage.directory / "topics" / "clusters.yaml").open("a") as clusters:
        clusters.write(f"\n{DRAIN}")
    print(DRAIN, end="", flush=True)
    stage.say("A producer writes to orders.events all the time. What would move? (… is cut)")
    with Writer(cluster.bootstrap_servers, "orders.events") as writer:
        plan = ("plan", "topics", "--cluster", "sandbox", "--moves", "--out", "moves.json")
        stage.run(*plan, only="orders.events")
        stage.say("apply moves them, throttled, and looks whether broker 6 is empty")
        stage.run("apply", "moves.json", "--auto-approve", only="orders.events")
    stage.say("And the producer?")
    print(
        f"{writer.written:,} records acknowledged, {writer.failed} failed; "
        f"orders.events holds {writer.count_stored():,}",
        flush=True,
    )


class Writer:
    """A producer of a hundred records per second, until its block ends."""

    def __init__(self, servers: str, topic: str) -> None:
        self.written = self.failed = 0
        self._servers, self._topic = servers, topic
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()

    def count_stored(self) -> int:
        """Ask the brokers how many records the topic holds."""
        settings = {"bootstrap.servers": self._servers, "group.id": "demo", "log_level": 0}
        consumer = Consumer(settings)
        partitions = consumer.list_topics(self._topic).topics[self._topic].partitions
        places = [TopicPartition(self._topic, number) for number in partitions]
        offsets = [consumer.get_watermark_offsets(place) for place in places]
        consumer.close()
        return sum(end - start for start, end in offsets)

    def _write(self) -> None:
        settings = {"bootstrap.servers": self._servers, "acks": "all", "log_level": 0}
        producer = Producer(settings | {"enable.idempotence": True})
        while not self._ends.wait(0.01):
            producer.produce(self._topic, os.urandom(1000), on_delivery=self._count)
            producer.poll(0)
        self.failed += producer.flush(30)

    def _count(self, error: KafkaError | None, _: Message) -> None:
        self.failed += error is not None
        self.written += error is None


def _count_leaders(stage: Stage, cluster: Cluster) -> Mapping[int, int]:
    """Count preferred leaders by broker, as plans do: without Kafka's own topics."""
    estate = reconciler.load_estate(stage.directory / "topics")
    servers = cluster.bootstrap_servers
    state = reconciler.read_cluster(estate, "sandbox", bootstrap_servers=servers)
    leaders = Counter(row[0] for topic in state.user_topics.values() for row in topic.assignment)
    return {broker.id: leaders[broker.id] for broker in state.brokers}


def _put_partitions_back(file: Path) -> None:
    head, found, tail = file.read_text().partition("topic: shop.prices\n")
    file.write_text(head + found + tail.replace("partitions: 6", "partitions: 8", 1))


def _draw(before: Mapping[int, int], after: Mapping[int, int]) -> None:
    for broker, leaders in after.items():
        had = before.get(broker, 0)
        print(f"  broker {broker}  {'█' * had:<12} {had:>2}   →   {'█' * leaders} {leaders}")


def main() -> None:
    """Play, with a state of its own: `sandbox` is this cluster, whatever else is up."""
    with open_stage() as stage:
        os.environ["XDG_STATE_HOME"] = str(stage.directory / "state")
        with own_sandbox():
            play(stage)


if __name__ == "__main__":
    main()
