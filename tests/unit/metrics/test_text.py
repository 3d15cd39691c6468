"""The text of metrics: two dialects read it, and Prometheus' own tools accept it."""

from __future__ import annotations

import re
import shutil
import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_open
from prometheus_client.parser import text_string_to_metric_families as read_classic

from reconciler.metrics.catalogue import METRICS, Sample
from reconciler.metrics.figures import ClusterFigures, list_samples
from reconciler.metrics.text import render_metrics

PROMTOOL = shutil.which("promtool")
DOCS = Path(__file__).resolve().parents[3] / "docs"
HOSTILE = 'a "b"\\ \n c'
"""A label value that only an escaped form can hold."""

FULL = ClusterFigures(
    HOSTILE,
    cluster_id="id-1",
    read=True,
    planned=False,
    read_at=1.5e9,
    planned_at=1.6e9 + 0.25,
    failures={"plan": "cluster-id"},
    problems={"offline": 1},
    brokers=3,
    topics=4,
    partitions=5,
    moving=6,
    move_replicas=7,
    move_bytes=2**40,
    skews={("leaders", "before"): 2},
    drift={"create": 1},
    drift_since=1.4e9,
    unmanaged=8,
    refusals={"partitions-never-shrink": 1},
    plan_findings={("moves-pending", "note"): 1},
    audit_findings={("broker-gone", "warning"): 2},
)
OVERALL = (
    Sample("reconciler_collection_timestamp_seconds", 1.5e9),
    Sample("reconciler_audit_timestamp_seconds", 1.5e9),
)
TEXT = render_metrics([*list_samples(FULL), *OVERALL])


def test_both_dialects_read_the_same_samples() -> None:
    found = [
        {(s.name, *sorted(s.labels.items()), s.value) for f in read(TEXT) for s in f.samples}
        for read in (read_open, read_classic)
    ]
    assert found[0] == found[1]
    wanted = {*list_samples(FULL), *OVERALL}
    release = ("reconciler_build_info", ("version", version("kafka-reconciler")), 1)
    assert found[0] == {release} | {
        (s.metric, *sorted(zip(METRICS[s.metric].labels, s.labels, strict=True)), s.value)
        for s in wanted
    }


def test_a_file_has_every_metric_but_those_of_watch() -> None:
    """And gauges only: a counter is spelled differently in the two dialects."""
    shown = set(re.findall(r"^# TYPE (\S+) gauge$", TEXT, re.MULTILINE))
    of_files = {m.name for m in METRICS.values() if m.sources != ("watch",)}
    assert shown == of_files
    assert TEXT.count("# TYPE") == len(shown)
    assert TEXT.endswith("# EOF\n")


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed")
def test_promtool_accepts_the_text() -> None:
    assert PROMTOOL is not None
    done = subprocess.run(
        [PROMTOOL, "check", "metrics"], input=TEXT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_names_follow_the_conventions() -> None:
    for metric in METRICS.values():
        assert re.fullmatch(r"reconciler_[a-z_]+", metric.name)
        assert (metric.kind == "counter") == metric.name.endswith("_total")
        assert not metric.name.endswith(("_ms", "_milliseconds", "_kilobytes"))


def test_every_metric_is_documented_as_it_is() -> None:
    found = re.findall(
        r"^\| `(\w+)` \| (\w+) \| (.*?) \| (.*?) \| (.*?) \|$",
        (DOCS / "reference" / "metrics.md").read_text(),
        re.MULTILINE,
    )
    assert found == [
        (
            m.name,
            m.kind,
            ", ".join(f"`{label}`" for label in m.labels) or "–",
            ", ".join(f"`{source}`" for source in m.sources),
            m.means,
        )
        for m in METRICS.values()
    ]
