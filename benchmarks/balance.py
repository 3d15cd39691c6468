"""How balanced topics are after they grew: placed by Kafka, and placed by reconciler.

Both on the same real brokers, read back from metadata. `make bench-balance` runs it.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean

from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

import reconciler
from reconciler.sandbox.cluster import Cluster, start_cluster

Rows = list[list[int]]


def grow_by_kafka(
    cluster: Cluster, names: Sequence[str], counts: Sequence[int], replication: int
) -> dict[str, Rows]:
    """Create topics and grow them through `counts`, every replica placed by the controller."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    created = admin.create_topics([NewTopic(name, counts[0], replication) for name in names])
    _wait(created.values())
    for count in counts[1:]:
        _wait(admin.create_partitions([NewPartitions(name, count) for name in names]).values())
    return _read_back(admin, names, counts[-1])


def grow_by_reconciler(
    cluster: Cluster, names: Sequence[str], counts: Sequence[int], replication: int
) -> dict[str, Rows]:
    """Create and grow the same through plan and apply, one estate after the other."""
    servers = cluster.bootstrap_servers
    with tempfile.TemporaryDirectory() as directory:
        for count in counts:
            _write_estate(Path(directory), names, count, replication)
            estate = reconciler.load_estate(directory)
            state = reconciler.read_cluster(estate, "sandbox", bootstrap_servers=servers)
            plan = reconciler.build_plan(estate, "sandbox", state)
            applied = reconciler.apply_plan(plan, estate, bootstrap_servers=servers)
            if not applied.succeeded:
                raise SystemExit(str(applied.outcomes))
    admin = AdminClient({"bootstrap.servers": servers})
    return _read_back(admin, names, counts[-1])


def _write_estate(directory: Path, names: Iterable[str], count: int, replication: int) -> None:
    documents = (
        f"topic: {name}\npartitions: {count}\nreplication_factor: {replication}\n" for name in names
    )
    (directory / "topics.yaml").write_text("---\n".join(documents))


def _wait(futures: Iterable[object]) -> None:
    for future in futures:
        future.result()  # type: ignore[attr-defined]


def _read_back(admin: AdminClient, names: Sequence[str], count: int) -> dict[str, Rows]:
    while True:
        topics = admin.list_topics(timeout=30).topics
        if all(name in topics and len(topics[name].partitions) == count for name in names):
            return {
                name: [topics[name].partitions[p].replicas for p in range(count)] for name in names
            }


def skews(rows: Rows, brokers: Sequence[int]) -> tuple[int, int]:
    """Return leader and replica max minus min over `brokers`, by preferred leader."""
    leaders = Counter(row[0] for row in rows)
    replicas = Counter(broker for row in rows for broker in row)
    return tuple(  # type: ignore[return-value]
        max(c[b] for b in brokers) - min(c[b] for b in brokers) for c in (leaders, replicas)
    )


def _compare_small() -> None:
    names = [f"t{number:02}" for number in range(60)]
    print("60 topics of 2 partitions, replication 1, on 3 brokers, grown to 3 partitions")
    with start_cluster(brokers=3, racks=3) as cluster:
        for placer, grow in (("Kafka", grow_by_kafka), ("reconciler", grow_by_reconciler)):
            placed = grow(cluster, [f"{placer}-{name}" for name in names], (2, 3), 1)
            idle = sum(len({row[0] for row in rows}) < 3 for rows in placed.values())
            print(f"  {placer:<12} {idle:>2} of 60 leave a broker without a leader")


def _compare_steps() -> None:
    names = [f"t{number:02}" for number in range(20)]
    brokers = range(1, 7)
    print("20 topics, replication 3, on 6 brokers in 3 racks, grown from 6 to 24 one at a time")
    with start_cluster(brokers=6, racks=3) as cluster:
        for placer, grow in (("Kafka", grow_by_kafka), ("reconciler", grow_by_reconciler)):
            placed = grow(cluster, [f"{placer}-{name}" for name in names], range(6, 25), 3)
            each = [skews(rows, brokers) for rows in placed.values()]
            for what, values in zip(("leader", "replica"), zip(*each, strict=True), strict=True):
                spread = f"mean {mean(values):.2f}, {min(values)}..{max(values)}"
                print(f"  {placer:<12} {what} max − min: {spread}")


if __name__ == "__main__":
    _compare_small()
    _compare_steps()
