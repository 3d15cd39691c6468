"""The alerts and the dashboard in docs/monitoring: Prometheus' and Grafana's own judgement."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from reconciler.metrics.catalogue import METRICS
from reconciler.model.health import PROBLEMS

HERE = Path(__file__).resolve().parents[3] / "docs" / "monitoring"
ALERTS, DASHBOARD = HERE / "reconciler-alerts.yml", HERE / "reconciler-dashboard.json"
PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed")


def run_promtool(*words: str) -> subprocess.CompletedProcess[str]:
    assert PROMTOOL is not None
    return subprocess.run([PROMTOOL, *words], cwd=HERE, capture_output=True, text=True, check=False)


@needs_promtool
def test_alerts_fire_as_their_tests_say() -> None:
    done = run_promtool("test", "rules", "reconciler-alerts.test.yml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_is_tested_to_fire() -> None:
    rules = [
        rule["alert"] for g in yaml.safe_load(ALERTS.read_text())["groups"] for rule in g["rules"]
    ]
    cases = yaml.safe_load((HERE / "reconciler-alerts.test.yml").read_text())["tests"]
    fired = {
        case["alertname"]
        for test in cases
        for case in test["alert_rule_test"]
        if "exp_alerts" in case
    }
    assert fired == set(rules)


def read_dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(DASHBOARD.read_text())
    return found


def test_grafanas_types_know_every_key_of_the_dashboard() -> None:
    """They drop a key that they do not know, so the dashboard would come back without it."""
    ours = read_dashboard()
    theirs = json.loads(JSONEncoder().encode(Dashboard.from_json(ours)))
    assert list(find_missing(ours, theirs)) == []


def test_a_misspelled_key_is_found() -> None:
    ours = read_dashboard()
    ours["panels"][0]["gridpos"] = ours["panels"][0].pop("gridPos")
    theirs = json.loads(JSONEncoder().encode(Dashboard.from_json(ours)))
    assert ".panels.0.gridpos" in list(find_missing(ours, theirs))


def find_missing(ours: Any, theirs: Any, path: str = "") -> Any:
    """Yield the path of every value of ours that is missing or another one in theirs."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key, value in ours.items():
            yield from find_missing(value, theirs.get(key), f"{path}.{key}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from find_missing(one, other, f"{path}.{number}")
    elif ours != theirs:
        yield path


def test_panels_have_ids_of_their_own_and_do_not_overlap() -> None:
    panels = read_dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(taken)) == len(taken)
    assert max(x for x, _ in taken) < 24


def list_expressions() -> list[str]:
    """List what the alerts and the dashboard ask for."""
    groups = yaml.safe_load(ALERTS.read_text())["groups"]
    dashboard = read_dashboard()
    return [
        *(rule["expr"] for group in groups for rule in group["rules"]),
        *(target["expr"] for panel in dashboard["panels"] for target in panel["targets"]),
        *(variable["query"] for variable in dashboard["templating"]["list"]),
    ]


def test_they_use_metrics_labels_and_problems_that_exist() -> None:
    found = [
        (name, given or "")
        for text in list_expressions()
        for name, given in re.findall(r"(reconciler_\w+)(?:\{([^}]*)\})?", text)
    ]
    assert len(found) > 20
    for name, given in found:
        for label in re.findall(r"(\w+)=~?\"", given):
            assert label in METRICS[name].labels, f"{name}{{{label}}}"
        for problems in re.findall(r'problem=~?"([^"]*)"', given):
            assert set(problems.split("|")) <= set(PROBLEMS)


@needs_promtool
def test_every_query_of_the_dashboard_parses(tmp_path: Path) -> None:
    """As rules: promtool has no other check of an expression without a server."""
    asked = [
        t["expr"].replace("$cluster", ".*")
        for p in read_dashboard()["panels"]
        for t in p["targets"]
    ]
    rules = [{"record": f"query:{number}", "expr": text} for number, text in enumerate(asked)]
    file = tmp_path / "queries.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}))
    done = run_promtool("check", "rules", "--lint=none", str(file))
    assert done.returncode == 0, done.stdout + done.stderr
