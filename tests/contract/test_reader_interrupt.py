"""Ctrl-C while a broker is frozen: reading ends, and nothing holds up the end of the program."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from breakable import freeze_node, thaw_node
from lab import connect_to

from reconciler.kafka.connection import REQUEST_S
from reconciler.kafka.reader import KafkaReader
from reconciler.sandbox.cluster import Cluster, start_cluster
from reconciler.side_by_side import GRACE_S

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

# Tells when it has begun, and when the views of a healthy cluster were read.
READING = """
import sys
from reconciler.errors import Location
from reconciler.kafka.reader import KafkaReader
from reconciler.kafka.connection import connect
from reconciler.spec.entry import ClusterEntry

entry = ClusterEntry("lab", Location("clusters.yaml", 3))
reader = KafkaReader(connect(entry, bootstrap_servers=sys.argv[1]))
print(sorted(reader.read_views(())), flush=True)
input()
print("asking", flush=True)
reader.read_views(())
"""


@pytest.fixture
def frozen() -> Iterator[tuple[Cluster, subprocess.Popen[str]]]:
    """Return three brokers, the second frozen while another process reads their views."""
    with start_cluster(brokers=3, isolate=True) as cluster:
        KafkaReader(connect_to(cluster)).read_cluster(())
        command = [sys.executable, "-c", READING, cluster.bootstrap_servers]
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            yield cluster, process
            process.kill()


def test_an_interrupt_does_not_wait_for_a_frozen_broker(
    frozen: tuple[Cluster, subprocess.Popen[str]],
) -> None:
    cluster, process = frozen
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == "[1, 2, 3]\n"
    freeze_node(cluster, 2)
    try:
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "asking\n"
        time.sleep(1)  # the others have answered by now
        started = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        took = time.monotonic() - started
    finally:
        thaw_node(cluster, 2)
    assert "KeyboardInterrupt" in errors
    assert took < min(GRACE_S + 2, REQUEST_S - 1)
