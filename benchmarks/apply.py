"""Creating topics beside the smallest script. `make bench-apply` runs it.

Both wait until every broker shows every topic. reconciler also plans, takes the lock, and asks the
brokers first. A fresh cluster for every run, a process a broker.
`python benchmarks/apply.py [topics …]`
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from timing import (
    HEAP,
    LIMIT,
    RECONCILER,
    SIZES,
    Timing,
    describe,
    ratio,
    time_process,
    write_estate,
)

from reconciler.sandbox.cluster import start_cluster

ROUNDS = 3


def compare(count: int) -> None:
    """Time both, in turn, each on a cluster of its own."""
    pairs = [(_time_ours(count), _time_limit(count)) for _ in range(ROUNDS)]
    ours, limit = zip(*pairs, strict=True)
    print(f"create {count:,} topics of 4 partitions, 3 brokers, until each broker shows them")
    print(describe("smallest script", limit))
    print(describe("reconciler apply", ours))
    print(f"  ratio {ratio(ours, limit)}", flush=True)


def _time_limit(count: int) -> Timing:
    with start_cluster(brokers=3, racks=3, isolate=True, jvm_options=HEAP) as cluster:
        return time_process([*LIMIT, "create", cluster.bootstrap_servers, str(count)])


def _time_ours(count: int) -> Timing:
    with (
        start_cluster(brokers=3, racks=3, isolate=True, jvm_options=HEAP) as cluster,
        tempfile.TemporaryDirectory() as d,
    ):
        write_estate(Path(d), count)
        servers = ["--bootstrap-servers", cluster.bootstrap_servers]
        apply = [*RECONCILER, "apply", d, "--cluster", "sandbox", *servers, "--auto-approve"]
        return time_process(apply)


if __name__ == "__main__":
    for topics in map(int, sys.argv[1:] or SIZES):
        compare(topics)
