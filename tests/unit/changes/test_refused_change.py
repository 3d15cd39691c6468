"""A refused change: every field from → to with its line, in every form that a plan has."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from formats import load_validator
from shorthand import cluster, topic

from reconciler.api.planning import build_plan, load_estate
from reconciler.api.rendering import PlanFormat, render_plan
from reconciler.cli.app import run
from reconciler.errors import PlanFileError
from reconciler.fleet.outcome import describe_changes
from reconciler.fleet.page.contents import describe_change_row
from reconciler.model.cluster import ClusterState
from reconciler.model.plan import Plan
from reconciler.model.steps import steps_of
from reconciler.planfile.codec import decode_plan, encode_plan, fingerprint_plan
from reconciler.show.github import render_github
from reconciler.show.markdown.page import render_markdown
from reconciler.show.text import render_text
from reconciler.show.view import view_plan

LIVE = cluster(
    topic("1,2 2,3 3,1", "orders", config={"retention.ms": "604800000", "segment.ms": "90000"}),
    *(topic("1", f"other{n}") for n in range(9)),
)
ORDERS = """\
topic: orders
partitions: 5
replication_factor: 2
config:
  retention.ms: 1d
"""
FIELDS = [
    ("retention.ms", "7d (604800000) → 1d (86400000)", "topics/orders.yaml:5"),
    ("segment.ms", "90s (90000) → unset", "topics/orders.yaml:1"),
    ("partitions", "3 → 5", "topics/orders.yaml:2"),
]
RULE = """\
policy:
  rules:
    keep-size:
      on: change
      check: change.partitions_added == 0
      message: Ask first.
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")


def make_plan(
    text: str = ORDERS, policy: str = "", prod: str = "{}", state: ClusterState = LIVE
) -> Plan:
    """Plan an estate of one file."""
    Path("topics").mkdir(exist_ok=True)
    Path("topics/clusters.yaml").write_text(f"version: 1\n{policy}clusters:\n  prod: {prod}\n")
    Path("topics/orders.yaml").write_text(text)
    return build_plan(load_estate("topics"), "prod", state)


def refuse_risk() -> Plan:
    return make_plan()


def refuse_by_policy() -> Plan:
    return make_plan(ORDERS + "acknowledge: [data-loss]\n", RULE)


def refuse_impossible() -> Plan:
    nodes = (replace(LIVE.brokers[0], alive=False), *LIVE.brokers[1:-1])
    return make_plan(ORDERS + "acknowledge: [data-loss]\n", state=replace(LIVE, brokers=nodes))


def refuse_whole() -> Plan:
    prod = "{guards: {max_changed: 0%}}"
    return make_plan(ORDERS + "acknowledge: [data-loss]\n", prod=prod)


REFUSALS = {
    refuse_risk: "risk-not-acknowledged",
    refuse_by_policy: "policy-rule",
    refuse_impossible: "rf-le-brokers",
    refuse_whole: "guard-max-changed",
}
every_refusal = pytest.mark.parametrize("refuse", REFUSALS, ids=lambda refuse: refuse.__name__)


def orders(made: Plan) -> dict[str, Any]:
    """Return the JSON of the one topic."""
    document = json.loads(encode_plan(made))
    (found,) = document["resource_changes"]
    return dict(found)


def text_line(name: str, says: str, place: str) -> str:
    return f"            {name:<32} {says:<30} {place}"


@every_refusal
def test_the_text_shows_every_field_with_its_line(refuse: Any) -> None:
    lines = render_text(refuse()).splitlines()
    assert any(f"[{REFUSALS[refuse]}]" in line for line in lines)
    assert [line for line in lines if " → " in line and "topics/" in line and "~" not in line] == [
        text_line(*field) for field in FIELDS
    ]


@every_refusal
def test_the_comment_shows_every_field_with_its_line(refuse: Any) -> None:
    text = render_markdown(refuse())
    assert f"`{REFUSALS[refuse]}`" in text
    if refuse is refuse_whole:  # the topics are in the table of changes, their fields below it
        said = "\n".join(f"{name} {says} ({place})" for name, says, place in FIELDS)
        assert f"```text\n{said}\n```" in text
    else:
        said = "<br>".join(f"`{name}` {says} `{place}`" for name, says, place in FIELDS)
        assert f"| `orders` | {said} | " in text


@every_refusal
def test_annotations_show_every_field_with_its_line(refuse: Any) -> None:
    said = "".join(f"%0A{name} {says} ({place})" for name, says, place in FIELDS)
    lines = [
        line
        for line in render_github(refuse()).splitlines()
        if f"title={REFUSALS[refuse]}::orders: " in line
    ]
    assert lines
    assert all(line.endswith(said) for line in lines)


@every_refusal
def test_json_has_the_refused_change_in_a_field_of_its_own(refuse: Any) -> None:
    found = orders(refuse())
    assert [(f["path"], f["before"], f["after"], f["where"]["line"]) for f in found[CHANGE]] == [
        ("config.retention.ms", "604800000", "86400000", 5),
        ("config.segment.ms", "90000", None, 1),
        ("partitions", 3, 5, 2),
    ]
    assert {f["where"]["file"] for f in found[CHANGE]} == {"topics/orders.yaml"}
    load_validator("plan").validate(json.loads(encode_plan(refuse())))


CHANGE = "refused_change"


@pytest.mark.parametrize("refuse", [refuse_risk, refuse_by_policy, refuse_impossible])
def test_nobody_applies_a_refused_change(refuse: Any) -> None:
    made = refuse()
    found = orders(made)
    assert (found["change"]["actions"], found["steps"]) == (["no-op"], [])
    assert found["change"]["before"] == found["change"]["after"]
    assert [steps_of(planned) for planned in decode_plan(encode_plan(made)).topics] == [()]


@every_refusal
@pytest.mark.parametrize("form", ["text", "markdown", "github", "json"])
def test_a_saved_plan_shows_the_same(
    refuse: Any, form: PlanFormat, capsys: pytest.CaptureFixture[str]
) -> None:
    made = refuse()
    Path("plan.json").write_text(encode_plan(made))
    assert run(["show", "plan.json", "--format", form]) == 0
    shown = capsys.readouterr().out.rstrip("\n")
    assert shown == render_plan(made, form, saved="plan.json").rstrip("\n")
    assert CHANGE in shown if form == "json" else "7d (604800000) → 1d (86400000)" in shown


@every_refusal
def test_the_rows_of_a_fleet_hold_the_refused_change(refuse: Any) -> None:
    (row,) = describe_changes(made := refuse(), view_plan(made))
    assert row[CHANGE][2] == {
        "path": "partitions",
        "before": "3",
        "after": "5",
        "file": "topics/orders.yaml",
        "line": 2,
    }
    assert describe_change_row(row) == (
        "retention.ms 7d (604800000) → 1d (86400000) (topics/orders.yaml:5), "
        "segment.ms 90s (90000) → unset (topics/orders.yaml:1), "
        "partitions 3 → 5 (topics/orders.yaml:2)"
    )


def test_a_change_that_is_not_refused_has_none() -> None:
    made = make_plan(ORDERS + "acknowledge: [data-loss]\n")
    assert orders(made)["steps"] == ["expand", "configure"]
    assert orders(made)[CHANGE] == []


def test_a_new_topic_shows_all_that_it_would_be() -> None:
    text = "topic: new\npartitions: 2\nreplication_factor: 4\nconfig: {flush.ms: 5}\n"
    lines = render_text(make_plan(text)).splitlines()
    assert lines[2].split() == ["x", "refuse", "new", "new", "topic", "topics/orders.yaml:1"]
    assert lines[3:6] == [
        text_line("partitions", "not set → 2", "topics/orders.yaml:2"),
        text_line("replication_factor", "not set → 4", "topics/orders.yaml:3"),
        text_line("flush.ms", "not set → 5", "topics/orders.yaml:4"),
    ]


def test_a_count_that_nobody_wrote_is_not_listed() -> None:
    made = make_plan("topic: new\npartitions: 2\n")
    assert [field.path for field in made.topics[0].refused_change] == ["partitions"]


def test_a_deletion_shows_the_line_that_asks_for_it_and_what_would_go() -> None:
    lines = render_text(make_plan("topic: orders\nstate: absent\n")).splitlines()
    assert "3 partitions, 6 replicas" in lines[2]
    assert lines[3] == text_line("state", "present → absent", "topics/orders.yaml:2")


def test_rows_written_by_hand_are_listed_by_partition() -> None:
    rows = "topic: orders\nassignment:\n  0: [2, 1]\n  1: [2, 3]\n  2: [3, 1]\n  3: [1, 9]\n"
    lines = render_text(make_plan(rows)).splitlines()
    shown = [line.split(None, 4)[-1] for line in lines if "assignment of partition " in line]
    assert shown[:2] == [
        "[1, 2] → [2, 1]                topics/orders.yaml:3",
        "not set → [1, 9]               topics/orders.yaml:6",
    ]


def test_a_default_is_shown_where_it_is_written() -> None:
    policy = "defaults:\n  config:\n    retention.ms: 1d\n    segment.ms: 90s\n"
    (made,) = make_plan("topic: orders\nconfig:\n  segment.ms: null\n", policy).topics
    assert [(f.path, str(f.where)) for f in made.refused_change] == [
        ("config.retention.ms", "topics/clusters.yaml:4:19"),
        ("config.segment.ms", "topics/orders.yaml:3:15"),
    ]


def test_values_are_shown_in_full_and_escaped() -> None:
    odd = {"retention.ms": "604800000", "compression.type": "a|\x1b[31m" * 9}
    live = topic("1,2 2,3 3,1", "orders", config=odd)
    made = make_plan(state=cluster(live))
    assert "config.compression.type" in [f.path for f in made.topics[0].refused_change]
    for shown in (render_text(made), render_markdown(made), render_github(made)):
        assert "\x1b" not in shown
    assert "a|\\x1b[31m" * 9 in render_text(made)
    assert "a&#124;&#92;x1b" in render_markdown(made)


def test_the_fingerprint_leaves_the_refused_change_out_and_the_seal_covers_it() -> None:
    made = refuse_risk()
    other = replace(made, topics=tuple(replace(t, refused_change=()) for t in made.topics))
    assert fingerprint_plan(made) == fingerprint_plan(other)
    document = json.loads(encode_plan(made))
    document["resource_changes"][0][CHANGE][0]["after"] = "1"
    with pytest.raises(PlanFileError, match="own seal"):
        decode_plan(json.dumps(document))
