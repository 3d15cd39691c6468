"""Findings as text for people, as SARIF, and as JUnit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from reconciler.errors import Finding, Location, Severity, escape_unprintable
from reconciler.units import count

if TYPE_CHECKING:
    from importlib.metadata import Distribution
    from xml.etree.ElementTree import Element

    from reconciler.styling import Paint

RESULTS_TAKEN = 25_000
"""The limit of results per run in GitHub's code scanning."""

SEVERITY_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}


def render_findings(findings: Sequence[Finding], paint: Paint) -> str:
    """Render findings as text: location and message, then the way out; a blank line per file."""
    files = groupby(findings, key=lambda finding: finding.where.file if finding.where else "")
    return "\n\n".join("\n".join(_render(one, paint) for one in group) for _, group in files)


def _render(finding: Finding, paint: Paint) -> str:
    place = f"{paint('bold', str(finding.where))}: " if finding.where else ""
    label = paint(SEVERITY_COLOURS[finding.severity], finding.severity)
    rule = f"[{finding.rule}]"
    if not finding.way_out:
        return f"{place}{label}: {finding.what} {rule}"
    return f"{place}{label}: {finding.what}\n    {finding.way_out} {rule}"


def count_findings(findings: Sequence[Finding]) -> str:
    """Return the counts by severity, most severe first: `2 errors and 1 note in 2 files`."""
    counts = [
        count(sum(finding.severity is severity for finding in findings), severity)
        for severity in Severity
        if any(finding.severity is severity for finding in findings)
    ]
    files = len({finding.where.file for finding in findings if finding.where})
    return f"{' and '.join(counts)} in {count(files, 'file')}"


def render_sarif(findings: Sequence[Finding]) -> str:
    """Render findings as SARIF 2.1.0, for code scanning."""
    from importlib.metadata import distribution

    package = distribution("kafka-reconciler")
    rules = sorted({finding.rule for finding in findings})
    driver = {
        "name": "reconciler",
        "version": package.version,
        "rules": [_describe_rule(rule) for rule in rules],
    }
    if home := _find_home(package):
        driver["informationUri"] = home
    # Code scanning rejects a longer list of results: what is left out must be the least severe.
    worst_first = sorted(findings, key=lambda finding: list(Severity).index(finding.severity))
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding) for finding in worst_first[:RESULTS_TAKEN]],
    }
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [run],
    }
    return json.dumps(log, indent=2)


def _find_home(package: Distribution) -> str | None:
    """Return the web address of the tool: that of the package, or what pip installed it from.

    A clone has no address, and pip records one only for `pip install git+https://…` (PEP 610).
    """
    from urllib.parse import urlsplit

    named = [line.partition(", ")[2] for line in package.metadata.get_all("Project-URL") or ()]
    origin: str = json.loads(package.read_text("direct_url.json") or "{}").get("url", "")
    for address in (*named, origin):
        parts = urlsplit(address)
        if parts.scheme in {"http", "https"} and parts.hostname:
            # The address may hold the token that pip used.
            return str(parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl())
    return None


def _describe_rule(rule: str) -> dict[str, Any]:
    """Return what code scanning shows of a rule: in lists, above a result, and as help."""
    from reconciler.rulebook import RULES, spell_page

    says = {"text": RULES[rule].says}
    way = "The message of each result says what is wrong and how to fix it."
    help_text = {
        "text": f"{RULES[rule].says} {way}",
        "markdown": f"{RULES[rule].says}\n\n{way}",
    }
    return {
        "id": rule,
        "shortDescription": says,
        "fullDescription": says,
        "help": help_text,
        "helpUri": spell_page("reference/rules", rule),
    }


def _result(finding: Finding) -> dict[str, Any]:
    message = f"{finding.what}; {finding.way_out}" if finding.way_out else finding.what
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "level": str(finding.severity),
        "message": {"text": message},
    }
    if finding.where:
        from urllib.parse import quote as quote_uri

        region = {"startLine": finding.where.line, "startColumn": finding.where.column}
        artifact = {"uri": quote_uri(finding.where.file)}
        location = {"artifactLocation": artifact, "region": region}
        result["locations"] = [{"physicalLocation": location}]
    return result


def render_junit(findings: Sequence[Finding], topics: Sequence[str]) -> str:
    """Render findings as JUnit: a failed case for each error, a passed case for each valid topic.

    Warnings and notes are in the output of the suite, because they fail no case.
    """
    from xml.etree import ElementTree

    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    told = [str(finding) for finding in findings if finding.severity is not Severity.ERROR]
    counts = {"tests": str(len(topics) + len(errors)), "failures": str(len(errors)), "errors": "0"}
    suites = ElementTree.Element("testsuites", counts)
    suite = ElementTree.SubElement(suites, "testsuite", {"name": "reconciler validate", **counts})
    for topic in topics:
        _case(suite, topic, None)
    for error in errors:
        case = _case(suite, error.rule, error.where)
        failure = ElementTree.SubElement(case, "failure", type=error.rule, message=error.what)
        failure.text = str(error)
    if told:
        ElementTree.SubElement(suite, "system-out").text = "\n".join(told)
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode")


def _case(suite: Element, name: str, place: Location | None) -> Element:
    from xml.etree import ElementTree

    properties = {"name": name, "classname": "topics"}
    if place:
        file = escape_unprintable(place.file)
        name = f"{name} ({file}:{place.line})"
        properties = {"name": name, "classname": file, "file": file, "line": str(place.line)}
    return ElementTree.SubElement(suite, "testcase", properties)
