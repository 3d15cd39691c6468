"""How findings are shown: as text for people, as JSON, as GitHub annotations, as SARIF."""

from __future__ import annotations

import json
from itertools import groupby
from typing import TYPE_CHECKING, Any
from urllib.parse import quote as quote_uri

import click

from reconciler.errors import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from reconciler.errors import Finding

ANNOTATIONS_SHOWN = 10
"""GitHub shows that many annotations of a kind and drops the others."""

_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}
_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def render_text(findings: Sequence[Finding]) -> str:
    """Show findings for a person: place and what, then the way out, a blank line between files."""
    files = groupby(findings, key=lambda finding: finding.where.file if finding.where else "")
    return "\n\n".join("\n".join(map(_render_finding, group)) for _, group in files)


def _render_finding(finding: Finding) -> str:
    place = f"{click.style(str(finding.where), bold=True)}: " if finding.where else ""
    label = click.style(str(finding.severity), fg=_COLOURS[finding.severity])
    rule = f"[{finding.rule}]"
    if not finding.way_out:
        return f"{place}{label}: {finding.what} {rule}"
    return f"{place}{label}: {finding.what}\n    {finding.way_out} {rule}"


def count_findings(findings: Sequence[Finding]) -> str:
    """Return the counts by severity, the worst first: `2 errors and 1 note in 2 files`."""
    counts = [
        count(sum(finding.severity is severity for finding in findings), severity)
        for severity in Severity
        if any(finding.severity is severity for finding in findings)
    ]
    files = len({finding.where.file for finding in findings if finding.where})
    return f"{' and '.join(counts)} in {count(files, 'file')}"


def count(number: int, noun: str) -> str:
    """Return a number with its noun: 1 file, 2 files."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def list_findings(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Return findings as JSON has them."""
    return [
        {
            "rule": finding.rule,
            "severity": str(finding.severity),
            "what": finding.what,
            "way_out": finding.way_out,
            "file": finding.where.file if finding.where else None,
            "line": finding.where.line if finding.where else None,
            "column": finding.where.column if finding.where else None,
        }
        for finding in findings
    ]


def render_github(findings: Sequence[Finding]) -> str:
    """Show findings as GitHub annotations; those beyond its limit follow as plain text."""
    lines: list[str] = []
    beyond: list[Finding] = []
    shown = dict.fromkeys(Severity, 0)
    for finding in findings:
        shown[finding.severity] += 1
        if shown[finding.severity] > ANNOTATIONS_SHOWN:
            beyond.append(finding)
        else:
            lines.append(_annotate(finding))
    if beyond:
        lines.extend(str(finding) for finding in beyond)
        lines.append(f"{len(beyond):,} more not shown as annotations: GitHub takes 10 of a kind")
    return "\n".join(lines)


def _annotate(finding: Finding) -> str:
    properties = {"title": finding.rule}
    if finding.where:
        file, line, column = finding.where.file, finding.where.line, finding.where.column
        properties = {"file": file, "line": str(line), "col": str(column)} | properties
    written = ",".join(f"{name}={_escape_property(text)}" for name, text in properties.items())
    message = f"{finding.what}; {finding.way_out}" if finding.way_out else finding.what
    return f"::{_COMMANDS[finding.severity]} {written}::{_escape(message)}"


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape(text).replace(":", "%3A").replace(",", "%2C")


def render_sarif(findings: Sequence[Finding]) -> str:
    """Show findings as SARIF 2.1.0, which code scanning reads."""
    from importlib.metadata import version

    from reconciler.rulebook import RULES

    rules = sorted({finding.rule for finding in findings})
    driver = {
        "name": "reconciler",
        "version": version("reconciler"),
        "rules": [{"id": rule, "shortDescription": {"text": RULES[rule].says}} for rule in rules],
    }
    run = {"tool": {"driver": driver}, "results": [_result(finding) for finding in findings]}
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [run],
    }
    return json.dumps(log, indent=2)


def _result(finding: Finding) -> dict[str, Any]:
    message = f"{finding.what}; {finding.way_out}" if finding.way_out else finding.what
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "level": str(finding.severity),
        "message": {"text": message},
    }
    if finding.where:
        region = {"startLine": finding.where.line, "startColumn": finding.where.column}
        artifact = {"uri": quote_uri(finding.where.file)}
        location = {"artifactLocation": artifact, "region": region}
        result["locations"] = [{"physicalLocation": location}]
    return result
