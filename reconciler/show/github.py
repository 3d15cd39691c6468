"""A plan, or findings, in the formats of GitHub Actions: annotations and outputs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from reconciler.errors import Finding, Location, Severity, escape_commands, escape_unprintable
from reconciler.model.plan import Plan
from reconciler.show.view import PlanView, TopicView, view_plan

SHOWN = 10
"""The number of annotations per kind and step that GitHub shows; it drops the others."""

SUMMARY_LIMIT = 1 << 20
"""GitHub drops a step summary that is longer. Units: bytes."""

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


class Annotation(NamedTuple):
    """A text that GitHub shows on a line of a file, or next to the run if there is none."""

    severity: Severity
    title: str
    text: str
    where: Location | None = None

    def __str__(self) -> str:
        """Format it as a workflow command for the runner."""
        properties = {"title": self.title}
        if self.where:
            place = {"file": self.where.file, "line": self.where.line, "col": self.where.column}
            properties = {name: str(value) for name, value in place.items()} | properties
        written = ",".join(f"{name}={_escape_property(v)}" for name, v in properties.items())
        return f"::{_COMMANDS[self.severity]} {written}::{_escape(self.text)}"


def render_github(*plans: Plan) -> str:
    """Render plans as annotations on the specs' own lines, at most as many as GitHub shows.

    Returns lines ending in a newline: one for each plan comes last.
    """
    views = [view_plan(plan) for plan in plans]
    annotations = []
    for view in views:
        cluster = f"{view.cluster}: " if len(views) > 1 else ""
        annotations += [a._replace(text=f"{cluster}{a.text}") for a in annotate_plan(view)]
    lines = [str(annotation) for annotation in shown(annotations)]
    if hidden := len(annotations) - len(lines):
        lines.append(count_hidden(hidden))
    for view in views:
        counts = ", ".join(filter(None, [*(view.to_do or ["no changes"]), view.unchanged_words]))
        said = " · ".join([counts, *view.asides])
        lines.append(escape_commands(f"{escape_unprintable(view.cluster)}: {said}"))
    return "".join(f"{line}\n" for line in lines)


def annotate_plan(plan: PlanView) -> Iterator[Annotation]:
    """Yield alerts, refusals as errors, risks as warnings, or notices if acknowledged, then notes.

    A refusal lists every field of its change. A deletion is always a warning, because a reviewer
    must see it first.
    """
    # The order matters: GitHub shows only the first ten of a kind.
    yield from map(annotate, plan.alerts)
    yield from map(annotate, plan.refusals)
    for topic in plan.topics:
        for refusal in topic.refusals:
            annotation = annotate(refusal, topic)
            yield annotation._replace(text=_list_fields(annotation.text, topic))
    for topic in plan.topics:
        for note in topic.risks:
            quiet = note.acknowledged and not topic.is_deletion
            severity = Severity.NOTE if quiet else Severity.WARNING
            state = f" ({note.consent})" if note.acknowledged else ""
            text = f"{topic.name}: {note.consequence}{state}"
            yield Annotation(severity, str(note.risk), text, topic.location)
    if plan.moves:
        text = "\n".join(f"{label}: {words}" for label, words in plan.moves)
        yield Annotation(Severity.NOTE, "moves", text)
    for topic in plan.topics if plan.refusals else ():
        if topic.refused_change and not topic.refusals:
            text = _list_fields(f"{topic.name}: refused with the entire plan", topic)
            yield Annotation(Severity.NOTE, plan.refusals[0].rule, text, topic.location)
    for topic in plan.topics:
        yield from (annotate(note, topic) for note in topic.notes)
    yield from map(annotate, plan.notes)


def _list_fields(text: str, topic: TopicView) -> str:
    """Put each field of a refused change on a separate line below a text."""
    fields = (f"{field.name} {field.words} ({field.place})" for field in topic.refused_change)
    return "\n".join([text, *fields])


def annotate(finding: Finding, topic: TopicView | None = None) -> Annotation:
    """Turn a finding into an annotation, on its own line or on the line of its topic."""
    text = f"{finding.what}; {finding.way_out}" if finding.way_out else finding.what
    if topic is None:
        return Annotation(finding.severity, finding.rule, text, finding.where)
    where = finding.where or topic.location
    return Annotation(finding.severity, finding.rule, f"{topic.name}: {text}", where)


def shown(annotations: Iterable[Annotation]) -> Iterator[Annotation]:
    """Yield as many annotations of each kind as GitHub would show."""
    seen = dict.fromkeys(Severity, 0)
    for annotation in annotations:
        seen[annotation.severity] += 1
        if seen[annotation.severity] <= SHOWN:
            yield annotation


def count_hidden(number: int) -> str:
    """Return the number of annotations that were omitted."""
    return f"{number:,} more not shown as annotations: GitHub takes {SHOWN} of a kind"


def annotate_findings(findings: Iterable[Finding]) -> str:
    """Render findings as annotations; those beyond the limit follow as plain text."""
    seen = dict.fromkeys(Severity, 0)
    lines, beyond = [], []
    for finding in findings:
        seen[finding.severity] += 1
        if seen[finding.severity] > SHOWN:
            beyond.append(escape_commands(str(finding)))
        else:
            lines.append(str(annotate(finding)))
    closing = [count_hidden(len(beyond))] if beyond else []
    return "\n".join([*lines, *beyond, *closing])


def list_outputs(*plans: Plan) -> dict[str, str]:
    """Return the outputs for later steps of a workflow: sums, and fingerprints by cluster.

    A plan that is refused as a whole counts as one more refusal. `fingerprint` is there for a
    single plan only.
    """
    views = [view_plan(plan) for plan in plans]
    fingerprints = {view.cluster: view.fingerprint for view in views}
    outputs = {
        "changes": str(sum(len(view.changed) for view in views)),
        "refused": str(sum(len(view.refusals) + len(view.refused) for view in views)),
        "unmanaged": str(sum(len(view.unmanaged) for view in views)),
        "fingerprints": json.dumps(fingerprints, sort_keys=True),
    }
    if len(plans) == 1:
        outputs["fingerprint"] = next(iter(fingerprints.values()))
    return outputs


def _escape(text: str) -> str:
    """Escape text for a workflow command: a line break would end it, and begin another.

    Where the runner is told to stop reading commands, it still reads those of its older form, which
    can be anywhere in a line.
    """
    return escape_commands(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape(text).replace(":", "%3A").replace(",", "%2C")
