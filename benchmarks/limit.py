"""The smallest script that does the same with confluent-kafka alone: what nobody can be far below.

limit.py list SERVERS             list, describe brokers, print every topic
limit.py read SERVERS             list, describe brokers, describe every topic's configs
limit.py create SERVERS COUNT     create in batches of 1,800, placed round robin, until every broker
                                  shows them all
"""

import sys
import time

from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

PARTITIONS = 4
BATCH = 1_800  # the controller takes 10,000 records at once: one a topic, one a partition


def list_topics(admin: AdminClient) -> None:
    """Print what `get topics` prints: partitions, replicas and health of each topic."""
    shown = admin.list_topics(timeout=60).topics
    admin.describe_cluster().result()
    for name, topic in sorted(shown.items()):
        rows = topic.partitions.values()
        behind = sum(len(row.isrs) < len(row.replicas) for row in rows)
        print(name, len(rows), {len(row.replicas) for row in rows}, behind)


def read(admin: AdminClient) -> None:
    """Read what an empty plan needs."""
    names = list(admin.list_topics(timeout=60).topics)
    admin.describe_cluster().result()
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    for future in admin.describe_configs(resources, request_timeout=60).values():
        future.result()


def create(admin: AdminClient, count: int) -> None:
    """Create topics of four partitions and wait until every broker shows them all."""
    brokers = sorted(admin.list_topics(timeout=60).brokers)
    names = [f"bench.topic-{number:05}" for number in range(count)]
    new = [
        NewTopic(
            name,
            num_partitions=PARTITIONS,
            replica_assignment=[[brokers[(n + p) % len(brokers)]] for p in range(PARTITIONS)],
        )
        for n, name in enumerate(names)
    ]
    for start in range(0, count, BATCH):
        topics = new[start : start + BATCH]
        for future in admin.create_topics(topics, request_timeout=120).values():
            future.result()
    for broker in admin.list_topics(timeout=60).brokers.values():
        wait(AdminClient({"bootstrap.servers": f"{broker.host}:{broker.port}"}), broker.id, names)


def wait(admin: AdminClient, broker: int, names: list[str]) -> None:
    """Wait until one broker shows all topics, by a client that is connected to it alone."""
    probe = [ConfigResource(ResourceType.TOPIC, "none")]
    for future in admin.describe_configs(probe, request_timeout=60, broker=broker).values():
        future.exception()
    while True:
        found = admin.list_topics(timeout=60)
        if found.orig_broker_id != broker:
            raise SystemExit("another broker answered")
        seen = found.topics
        if all(name in seen and len(seen[name].partitions) == PARTITIONS for name in names):
            return
        time.sleep(0.05)


if __name__ == "__main__":
    client = AdminClient({"bootstrap.servers": sys.argv[2]})
    if sys.argv[1] == "read":
        read(client)
    elif sys.argv[1] == "list":
        list_topics(client)
    else:
        create(client, int(sys.argv[3]))
