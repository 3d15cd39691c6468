"""`reconciler validate`: check every spec, without a cluster."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.cli.findings import (
    count_findings,
    render_findings,
    render_junit,
    render_sarif,
)
from reconciler.cli.options import Command, estate_argument
from reconciler.cli.terminal import choose_paint, paint, print_annotations, print_note
from reconciler.errors import Finding, SpecError, show_path
from reconciler.units import count

if TYPE_CHECKING:
    from reconciler.spec.estate import Estate


@click.command(cls=Command)
@estate_argument
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "github", "sarif", "junit"]),
    default="text",
    show_default=True,
    help="How findings are shown.",
)
@click.option(
    "--write-baseline",
    "writes",
    is_flag=True,
    help="First exempt current violations of the policy in policy-baseline.yaml; reasons are kept.",
)
def command(estate: Path, form: str, writes: bool) -> int:
    """Check every spec of ESTATE, a directory, without a cluster.

    Shows all errors at once, each with its place and how to fix it. If clusters.yaml has an error,
    checks that depend on a cluster are skipped. Exits 1 if there is an error. ESTATE defaults to
    topics.
    """
    from reconciler.api.planning import load_estate

    loaded: Estate | None = None
    about: Mapping[Finding, str]
    try:
        if writes:
            _write_baseline(estate)
        loaded = load_estate(estate)
        findings, about = loaded.findings, loaded.about
    except SpecError as error:
        findings, about = error.findings, error.about
    if form == "github" and findings:
        from reconciler.show.github import annotate_findings

        print_annotations(annotate_findings(findings))
    click.echo(_render(form, findings, loaded, about), color=True)
    return 0 if loaded else 1


def _write_baseline(estate: Path) -> None:
    """Write the baseline, and say what changed in it. Errors: SpecError, with nothing written."""
    from reconciler.api.baseline import write_baseline
    from reconciler.spec.baseline import BASELINE_FILE

    try:
        drafted = write_baseline(estate)
    except SpecError:
        print_note("no baseline was written: first fix these errors, which are not policy errors")
        raise
    file = show_path(str(estate), BASELINE_FILE)
    changed = f"{drafted.added:,} added, {drafted.removed:,} removed"
    print_note(f"{file}: {count(drafted.entries, 'exemption')}, {changed}")


def _render(
    form: str,
    findings: Sequence[Finding],
    estate: Estate | None,
    about: Mapping[Finding, str],
) -> str:
    """Render findings. `about` names the topic of each that is about one."""
    match form:
        case "json":
            from reconciler.planfile.validation import ValidationDocument, describe_findings

            answer = ValidationDocument(
                valid=estate is not None,
                topics=len(estate.topics) if estate else None,
                files=estate.files if estate else None,
                clusters=estate.declared if estate else None,
                findings=describe_findings(findings, about),
            )
            return json.dumps(answer.dump(), indent=2)
        case "sarif":
            return render_sarif(findings)
        case "github":
            return _conclude(findings, estate)
        case "junit":
            return render_junit(findings, estate.topics if estate else ())
        case _:
            shown = render_findings(findings, choose_paint(sys.stdout))
            return "\n\n".join(filter(None, [shown, _conclude(findings, estate)]))


def _conclude(findings: Sequence[Finding], estate: Estate | None) -> str:
    """Return the last line: the number of findings, or that all specs are valid."""
    if estate is None:
        return f"{count_findings(findings)}; no cluster was touched"
    if not estate.topics:
        return "no topics: nothing to do"
    topics, files = count(len(estate.topics), "topic"), count(estate.files, "file")
    clusters = count(len(estate.declared), "cluster") if estate.declared else "the sandbox alone"
    return f"{topics} in {files}, {clusters}: {paint('green', 'all good')}"
