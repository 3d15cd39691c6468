"""`plan --metrics` on real brokers, and its file in a real node_exporter."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from reconciler.cli.app import run
from reconciler.sandbox.cluster import Cluster

EXPORTER = shutil.which("prometheus-node-exporter") or shutil.which("node_exporter")
WAIT_S = 30


def read_metrics(text: str) -> dict[tuple[str, ...], float]:
    """Return the value of each sample by its metric, its cluster and its other labels by name."""
    found: dict[tuple[str, ...], float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            names = sorted(sample.labels, key=_cluster_first)
            found[(sample.name, *(sample.labels[name] for name in names))] = sample.value
    return found


def _cluster_first(label: str) -> tuple[bool, str]:
    return label != "cluster", label


@pytest.fixture
def nobody() -> Iterator[str]:
    """Return an address at which nobody listens, and that nobody else gets."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


@pytest.fixture
def file(
    cluster3: Cluster,
    nobody: str,
    topic_prefix: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """Return a file for the metrics of an estate of two clusters, of which one is down."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "topics").mkdir()
    (tmp_path / "topics" / "clusters.yaml").write_text(
        f"version: 1\nowns: ['{topic_prefix}*']\nclusters:\n"
        f"  live: {{client: {{bootstrap.servers: '{cluster3.bootstrap_servers}'}}}}\n"
        f"  down: {{client: {{bootstrap.servers: '{nobody}'}}}}\n"
    )
    (tmp_path / "topics" / "t.yaml").write_text(
        f"topic: {topic_prefix}new\npartitions: 2\nreplication_factor: 2\n"
    )
    (tmp_path / "out").mkdir()
    return tmp_path / "out" / "kafka.prom"


def test_the_file_has_both_clusters(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = time.time()
    assert run(["plan", "--all-clusters", "--metrics", str(file)]) == 1
    assert "1 of 2 clusters planned" in capsys.readouterr().err
    found = read_metrics(file.read_text())
    assert found["reconciler_read_success", "live"] == 1
    assert found["reconciler_brokers", "live"] == 3
    assert found["reconciler_healthy", "live"] == 1
    assert found["reconciler_drifted_topics", "live", "create"] == 1
    assert before <= found["reconciler_plan_last_success_timestamp_seconds", "live"]
    assert found["reconciler_healthy", "down"] == 0
    assert found["reconciler_failure", "down", "connect-refused", "read"] == 1
    assert ("reconciler_read_last_success_timestamp_seconds", "down") not in found
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_one_cluster_that_is_down_is_an_error_and_a_metric(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["plan", "--cluster", "down", "--metrics", str(file)]) == 1
    assert "[connect-refused]" in capsys.readouterr().err
    assert read_metrics(file.read_text())["reconciler_read_success", "down"] == 0


@pytest.mark.skipif(EXPORTER is None, reason="node_exporter is not installed")
def test_node_exporter_shows_the_file(file: Path) -> None:
    assert run(["plan", "--cluster", "live", "--metrics", str(file)]) == 0
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    words = ["collector.disable-defaults", "collector.textfile", f"web.listen-address={address}"]
    options = [f"--{word}" for word in (*words, f"collector.textfile.directory={file.parent}")]
    process = subprocess.Popen([str(EXPORTER), *options], stderr=subprocess.DEVNULL)
    try:
        shown = fetch(f"http://{address}/metrics")
    finally:
        process.terminate()
        process.wait(WAIT_S)
    assert re.search(r"^node_textfile_scrape_error 0$", shown, re.MULTILINE)
    of_file = read_metrics(file.read_text()).items()
    assert of_file <= read_metrics(shown).items()


def fetch(url: str) -> str:
    """Return a page of a server that is just starting."""
    until = time.monotonic() + WAIT_S
    while True:
        try:
            with urllib.request.urlopen(url, timeout=WAIT_S) as answer:
                return str(answer.read().decode())
        except urllib.error.URLError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
