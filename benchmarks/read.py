"""An empty plan beside the smallest script, on real brokers. `make bench-read` runs it.

And the plan of a change to 1 % of the topics, and `get topics` with and without specs. If topicctl
is installed, `topicctl get topics` is timed, too. Replication 1 and a process a broker, so that the
limit of open files holds 10,000 topics. `python benchmarks/read.py [topics …]`
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from timing import HEAP, LIMIT, RECONCILER, SIZES, describe, ratio, time_process, write_estate

from reconciler.sandbox.cluster import start_cluster

ROUNDS = 5


def settle(servers: str, count: int) -> None:
    """Wait until every leader answers: brokers show new topics before they have made their logs."""
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    names = [f"bench.topic-{number:05}" for number in range(count)]
    partitions = [TopicPartition(name, number) for name in names for number in range(4)]
    for start in range(0, len(partitions), 1_000):  # one request for 40,000 takes minutes
        asked = dict.fromkeys(partitions[start : start + 1_000], OffsetSpec.latest())
        while any(
            told.exception() for told in admin.list_offsets(asked, request_timeout=60).values()
        ):
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
        read = [*LIMIT, "read", servers]
        get = [*RECONCILER, "get", "topics"]
        gets = [
            [*get, "--bootstrap-servers", servers],
            [*get, d, "--cluster", "sandbox", "--bootstrap-servers", servers],
            [*LIMIT, "list", servers],
        ]
        if topicctl := shutil.which("topicctl"):
            gets.append([topicctl, "get", "topics", "--broker-addr", servers.partition(",")[0]])
        empty = [*plan, "--detailed-exitcode"]  # fails if there is anything to do
        rounds = [[time_process(empty), time_process(read)] for _ in range(ROUNDS + 1)][1:]
        listed = [[time_process(each) for each in gets] for _ in range(ROUNDS + 1)][1:]
        write_estate(Path(d), count, changed=max(1, count // 100))
        changes = [[time_process(plan), time_process(read)] for _ in range(ROUNDS + 1)][1:]
    print(f"{count:,} topics, 3 brokers")
    alone, specs, script, *peers = zip(*listed, strict=True)
    print(describe("smallest script, list", script))
    for what, ours in (("an address", alone), ("an estate", specs)):
        print(describe(f"get topics of {what}", ours))
        print(f"  ratio {ratio(ours, script)}", flush=True)
    for peer in peers:
        print(describe("topicctl get topics", peer))
        print(f"  get topics of an address: ratio {ratio(alone, peer)}", flush=True)
    for what, pairs in (("empty", rounds), ("1 % of the topics", changes)):
        ours, limit = zip(*pairs, strict=True)
        print(describe("smallest script", limit))
        print(describe(f"reconciler plan, {what}", ours))
        print(f"  ratio {ratio(ours, limit)}", flush=True)


if __name__ == "__main__":
    for topics in map(int, sys.argv[1:] or SIZES):
        compare(topics)
