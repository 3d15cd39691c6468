"""An empty plan beside the smallest script, on real brokers. `make bench-read` runs it.

Replication 1 and a process a broker, so that the limit of open files holds 5,000 topics.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from confluent_kafka.admin import AdminClient
from timing import HEAP, LIMIT, RECONCILER, describe, ratio, time_process, write_estate

from reconciler.sandbox import start_cluster

ROUNDS = 5


def settle(servers: str, count: int) -> None:
    """Wait until every broker shows every topic: after bulk work they lag for a while."""
    for server in servers.split(","):
        admin = AdminClient({"bootstrap.servers": server})
        while len(admin.list_topics(timeout=60).topics) < count:
            time.sleep(1)


def compare(count: int) -> None:
    """Time both, in turn, on one cluster that holds `count` topics."""
    with (
        start_cluster(brokers=3, racks=3, isolate=True, jvm_options=HEAP) as cluster,
        tempfile.TemporaryDirectory() as d,
    ):
        servers = cluster.bootstrap_servers
        write_estate(Path(d), count)
        time_process([*LIMIT, "create", servers, str(count)])
        settle(servers, count)
        plan = [*RECONCILER, "plan", d, "--cluster", "sandbox", "--bootstrap-servers", servers]
        plan.append("--detailed-exitcode")
        read = [*LIMIT, "read", servers]
        time_process(plan), time_process(read)
        pairs = [(time_process(plan), time_process(read)) for _ in range(ROUNDS)]
    ours, limit = zip(*pairs, strict=True)
    print(f"empty plan of {count:,} topics, 3 brokers")
    print(describe("smallest script", limit))
    print(describe("reconciler plan", ours))
    print(f"  ratio {ratio(ours, limit):.2f}")


if __name__ == "__main__":
    for topics in (10, 1_000, 5_000):
        compare(topics)
