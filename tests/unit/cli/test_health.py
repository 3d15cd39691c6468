"""`reconciler health` on snapshots: what it prints, and how it exits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from reconciler.cli.app import run
from reconciler.cli.schema import render_schema

HEALTHY: Mapping[str, Any] = {
    "cluster_id": "c1",
    "brokers": [{"id": 1}, {"id": 2}],
    "config_defaults": {"min.insync.replicas": "1"},
    "topics": [{"name": "a", "partitions": [[1, 2]], "in_sync": [[1, 2]]}],
}
LAGS = {"topics": [{"name": "a", "partitions": [[1, 2]], "in_sync": [[1]]}]}
CORDONED = {"brokers": [{"id": 1}, {"id": 2, "cordoned": True}]}
UNSEEN = {
    "notes": [{"rule": "reassignments-unseen", "what": "x", "way_out": "y", "severity": "warning"}]
}


def judge(
    work: Path, change: Mapping[str, Any], *options: str, entry: str = "{}"
) -> tuple[int, str, str]:
    """Run the command on a snapshot. Returns: its exit code, and what it printed."""
    (work / "topics").mkdir(exist_ok=True)
    clusters = f"version: 1\nclusters: {{prod: {entry}}}\n"
    (work / "topics" / "clusters.yaml").write_text(clusters)
    (work / "s.json").write_text(json.dumps({**HEALTHY, **change}))
    command = ["health", "--cluster", "prod", "--against", "s.json", *options]
    with chdir(work), redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        code = run(command)
    return code, out.getvalue(), err.getvalue()


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        ({}, 0, "Healthy: no data and no availability at risk."),
        (CORDONED, 0, "broker 2 is cordoned"),
        (LAGS, 2, "At risk: 1 partition under-replicated"),
        (UNSEEN, 1, "Not everything could be read"),
        (LAGS | UNSEEN, 2, "At risk: 1 partition under-replicated"),
    ],
)
def test_the_exit_code_says_whether_something_is_at_risk(
    change: Mapping[str, Any], code: int, said: str, tmp_path: Path
) -> None:
    found, out, _ = judge(tmp_path, change)
    assert (found, said in out) == (code, True)
    found, out, _ = judge(tmp_path, change, "--format", "json")
    document = json.loads(out)
    assert (found, document["at_risk"], document["partial"]) == (
        code,
        code == 2,
        "notes" in change,
    )
    Draft202012Validator(json.loads(render_schema("health"))).validate(document)


def test_a_report_says_what_a_snapshot_does_not_hold(tmp_path: Path) -> None:
    _, out, _ = judge(tmp_path, {})
    assert "a snapshot does not say who leads" in out
    assert "[snapshot-assumed]" in out


def test_json_names_every_partition_and_what_it_lacks(tmp_path: Path) -> None:
    _, out, _ = judge(tmp_path, LAGS, "--format", "json")
    document = json.loads(out)
    assert document["counts"]["under_replicated"] == 1
    assert document["partitions"] == [
        {
            "topic": "a",
            "partition": 0,
            "replicas": [1, 2],
            "in_sync": [1],
            "leader": None,
            "min_insync": 1,
            "faults": ["under_replicated"],
            "lacking": [2],
        }
    ]


def test_a_cluster_decides_from_when_on_its_directories_fill(tmp_path: Path) -> None:
    disk = {"path": "/d", "total_bytes": 100, "usable_bytes": 25}
    change = {"brokers": [{"id": 1, "log_directories": [disk]}, {"id": 2}]}
    moves = "{moves: {allow: [drain], rate: 30MiB, keep_free: 30%}}"
    assert "fills" not in judge(tmp_path, change)[1]
    assert "1 log directory fills" in judge(tmp_path, change, entry=moves)[1]


def test_a_snapshot_of_another_cluster_is_refused(tmp_path: Path) -> None:
    code, out, err = judge(tmp_path, {}, entry="{cluster_id: c2}")
    assert (code, out, "[cluster-id]" in err) == (1, "", True)


def test_a_snapshot_has_no_address(tmp_path: Path) -> None:
    code, _, err = judge(tmp_path, {}, "--bootstrap-servers", "127.0.0.1:1")
    assert (code, "--against reads a file" in err) == (64, True)
