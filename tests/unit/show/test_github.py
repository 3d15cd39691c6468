"""Annotations: on the specs' own lines, escaped, ten of a kind, the rest counted."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from shorthand import HERE, cluster, plan, spec, topic

from reconciler.errors import Finding, Location, Severity
from reconciler.model.plan import Plan, PlannedTopic, TopicImage
from reconciler.planfile.codec import fingerprint_plan
from reconciler.show.github import annotate, annotate_findings, list_outputs, render_github

NOTED = Finding("not-managed", "a: 100%, b", "see c", Location("a,b:c.yaml", 7, 3))


def test_properties_and_text_are_escaped_each_in_its_way() -> None:
    finding = replace(NOTED, severity=Severity.NOTE)
    assert str(annotate(finding)) == (
        "::notice file=a%2Cb%3Ac.yaml,line=7,col=3,title=not-managed::a: 100%25, b; see c"
    )


def test_no_text_can_begin_a_line_of_its_own() -> None:
    image = TopicImage(None, ((1,),), {})
    named = PlannedTopic("a\n::stop-commands::x", HERE, image, image, notes=(NOTED,))
    text = render_github(Plan("prod\r\n::warning::x", None, (), (named,)))
    assert [line[:9] for line in text.splitlines()] == ["::error f", "prod\\r\\n:"]


@pytest.mark.parametrize(
    ("severity", "command"),
    [(Severity.ERROR, "error"), (Severity.WARNING, "warning"), (Severity.NOTE, "notice")],
)
def test_a_severity_is_a_command(severity: Severity, command: str) -> None:
    finding = replace(NOTED, where=None, severity=severity)
    assert str(annotate(finding)).startswith(f"::{command} title=not-managed::")


def test_findings_beyond_ten_follow_as_text() -> None:
    findings = [replace(NOTED, where=Location("a.yaml", n)) for n in range(1, 13)]
    lines = annotate_findings(findings).splitlines()
    assert lines[10] == "a.yaml:11:1: a: 100%, b; see c [not-managed]"
    assert lines[12:] == ["2 more not shown as annotations: GitHub takes 10 of a kind"]


def test_no_findings_are_no_text() -> None:
    assert annotate_findings([]) == ""


def test_outputs() -> None:
    made = plan([spec("a", partitions=1, replication_factor=1), spec("b")], cluster())
    assert list_outputs(made) == {
        "changes": "1",
        "refused": "1",
        "unmanaged": "0",
        "fingerprint": fingerprint_plan(made),
        "fingerprints": json.dumps({"prod": fingerprint_plan(made)}),
    }


def several() -> tuple[Plan, Plan]:
    """Return the plans of two clusters that refuse the same twelve topics."""
    live = [topic("1 2 3", f"t{n}") for n in range(12)]
    made = plan([spec(f"t{n}", partitions=1) for n in range(12)], cluster(*live))
    return made, replace(made, cluster="other")


def test_outputs_of_several_clusters_are_sums_and_fingerprints_by_name() -> None:
    first, second = several()
    outputs = list_outputs(first, second)
    assert (outputs["changes"], outputs["refused"], outputs["unmanaged"]) == ("0", "24", "0")
    assert json.loads(outputs["fingerprints"]) == {
        "prod": fingerprint_plan(first),
        "other": fingerprint_plan(second),
    }
    assert "fingerprint" not in outputs


def test_several_clusters_share_the_annotations_of_a_step() -> None:
    lines = render_github(*several()).splitlines()
    assert sum(line.startswith("::error ") for line in lines) == 10
    assert "::prod: t0: " in lines[0]
    assert lines[10:] == [
        "14 more not shown as annotations: GitHub takes 10 of a kind",
        "prod: 12 refused",
        "other: 12 refused",
    ]
