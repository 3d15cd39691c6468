"""`watch` on real brokers: one that stops and starts again, and the end of the command."""

from __future__ import annotations

import re
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from command import RECONCILER
from lab import connect_to
from test_metrics_cli import read_metrics

from reconciler.kafka.reader import KafkaReader
from reconciler.sandbox.cluster import Cluster, start_cluster

pytestmark = pytest.mark.cluster
WAIT_S = 90
Samples = dict[tuple[str, ...], float]


@pytest.fixture(scope="module")
def brokers() -> Iterator[Cluster]:
    with start_cluster(brokers=3, racks=3) as cluster:
        yield cluster


@contextmanager
def watching(directory: Path, servers: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Watch `live`, which is a cluster, and `down`, which is none. Yields the process, a URL."""
    (directory / "topics").mkdir()
    (directory / "topics" / "clusters.yaml").write_text(
        f"version: 1\nclusters:\n  live: {{client: {{bootstrap.servers: '{servers}'}}}}\n"
        "  down: {client: {bootstrap.servers: '127.0.0.1:1'}}\n"
    )
    (directory / "topics" / "t.yaml").write_text(
        "topic: watched\npartitions: 3\nreplication_factor: 3\n"
    )
    options = ("--all-clusters", "--every", "1s", "--listen", "127.0.0.1:0")
    process = subprocess.Popen(
        [*RECONCILER, "watch", *options],
        cwd=directory,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        found = re.search(r"serving (\S+);", process.stderr.readline())
        assert found
        yield process, found[1]
    finally:
        process.kill()
        process.communicate()


def await_sample(url: str, key: tuple[str, ...], value: float) -> Samples:
    """Read the metrics until a sample has this value. Errors: AssertionError with the last ones."""
    until = time.monotonic() + WAIT_S
    found: Samples = {}
    while time.monotonic() < until:
        with urllib.request.urlopen(url, timeout=WAIT_S) as answer:
            found = read_metrics(answer.read().decode())
        if found.get(key) == value:
            return found
        time.sleep(0.2)
    raise AssertionError(found)


def test_a_broker_that_stops_is_seen_and_so_is_its_return(brokers: Cluster, tmp_path: Path) -> None:
    with watching(tmp_path, brokers.bootstrap_servers) as (process, url):
        found = await_sample(url, ("reconciler_drifted_topics", "live", "create"), 1)
        assert found["reconciler_healthy", "live"] == 1
        assert found["reconciler_failure", "down", "connect-refused", "read"] == 1
        since = found["reconciler_drift_since_timestamp_seconds", "live"]
        apply = [*RECONCILER, "apply", "--cluster", "live", "--auto-approve"]
        subprocess.run(apply, cwd=tmp_path, check=True, capture_output=True)
        found = await_sample(url, ("reconciler_drifted_topics", "live", "create"), 0)
        assert ("reconciler_drift_since_timestamp_seconds", "live") not in found
        assert found["reconciler_plan_last_success_timestamp_seconds", "live"] > since
        # Kafka's own topics count, too: each partition has a replica on each of the three brokers.
        topics = KafkaReader(connect_to(brokers)).read_cluster().topics
        partitions = sum(len(topic.assignment) for topic in topics.values())
        brokers.stop_broker(3)
        lagging = ("reconciler_health_problems", "live", "under_replicated")
        found = await_sample(url, lagging, partitions)
        assert found["reconciler_healthy", "live"] == 0
        await_sample(url, ("reconciler_health_problems", "live", "brokers_down"), 1)
        brokers.start_broker(3)
        await_sample(url, ("reconciler_healthy", "live"), 1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_S) == 0


def test_broken_specs_are_a_metric_and_ctrl_c_ends_it(brokers: Cluster, tmp_path: Path) -> None:
    with watching(tmp_path, brokers.bootstrap_servers) as (process, url):
        await_sample(url, ("reconciler_specs_valid",), 1)
        spec = tmp_path / "topics" / "t.yaml"
        spec.write_text("topic: watched\npartitions: none\n")
        found = await_sample(url, ("reconciler_specs_valid",), 0)
        assert found["reconciler_plan_success", "live"] == 1
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT_S) == 130
