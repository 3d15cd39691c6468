"""A rehearsal as text for a terminal: the topics, failures first; what was found; the rest."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.model.outcomes import Outcome, OutcomeKind
from reconciler.rehearse.rehearsal import Rehearsal
from reconciler.show.text import paint_outcome
from reconciler.show.view import view_plan
from reconciler.show.wording import describe_shift
from reconciler.styling import Paint, pad, set_columns
from reconciler.units import count

LABELS = max(map(len, OutcomeKind))
"""The width of the labels in front of topics."""


def render_rehearsal(rehearsal: Rehearsal, *, colour: bool = False) -> str:
    """Render a rehearsal for a terminal. Returns lines ending in a newline."""
    paint = Paint(colour)
    differs = pad(paint("red", "differs"), LABELS)
    differences = [
        f"{differs} {name}: {difference}"
        for name, found in rehearsal.differences.items()
        for difference in found
    ]
    changes = {topic.name: topic.words for topic in view_plan(rehearsal.plan).topics}
    rows = []
    for one in sort_outcomes(rehearsal):
        reason = f"{one.text} [{one.rule}]" if one.rule else one.text
        label = paint_outcome(one.kind, paint)
        rows.append((label, one.topic, changes.get(one.topic, ""), reason))
    outcomes = list(set_columns(rows, between=" ", least=(LABELS, 34, 30)))
    blocks = [[paint("bold", describe_setup(rehearsal))], outcomes]
    blocks.append([*differences, *describe_findings(rehearsal), *describe_measures(rehearsal)])
    blocks.append([paint("dim", f"note: {note.what}; {note.way_out}") for note in rehearsal.notes])
    tone = "green" if rehearsal.succeeded else "red"
    blocks.append([paint(tone, summarise_rehearsal(rehearsal))])
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def sort_outcomes(rehearsal: Rehearsal) -> list[Outcome]:
    """Return the outcome of every topic, failures first."""
    return sorted(rehearsal.outcomes, key=lambda outcome: outcome.kind.is_done)


def describe_setup(rehearsal: Rehearsal) -> str:
    """Return one line about the content of the throwaway cluster."""
    setup = rehearsal.setup
    racks = {broker.rack for broker in setup.brokers if broker.rack is not None}
    brokers = count(len(setup.brokers), "broker")
    where = f"{brokers} in {count(len(racks), 'rack')}" if racks else brokers
    topics = f"{count(len(setup.topics), 'topic')} of {count(setup.replicas, 'replica')} set up"
    said = [f"rehearsal of {rehearsal.plan.cluster}", f"Kafka {rehearsal.kafka_version}", where]
    for kind, ids in (("stopped", setup.dead), ("cordoned", setup.cordoned)):
        if ids:
            said.append(f"{', '.join(map(str, ids))} {kind}")
    return " · ".join([*said, topics])


def describe_findings(rehearsal: Rehearsal) -> Iterator[str]:
    """Return the checks after the run, and the effect of the same run again."""
    if rehearsal.interrupted:
        return
    if not rehearsal.differences:
        beside = rehearsal.untouched
        stayed = f"; {count(beside, 'topic')} next to it unchanged" if beside else ""
        yield f"All replicas and overrides of the applied topics are as planned{stayed}."
    yield _describe_pending(rehearsal)
    told = {outcome.topic for outcome in rehearsal.outcomes}
    for name, why in rehearsal.setup.left_out.items():
        if name not in told:
            yield f"{name} could not be set up: {why}."


def _describe_pending(rehearsal: Rehearsal) -> str:
    """Return the effect of the same run again: with a new plan, or with this one."""
    again = "A second plan" if rehearsal.planned_again else "The plan applied again"
    if rehearsal.unexpected:
        return f"{again} would still change {', '.join(rehearsal.unexpected)}."
    failed = len(rehearsal.pending) > len(rehearsal.continued)
    if rehearsal.continued:
        tried = ", and retries what failed" if failed else ", and changes nothing else"
        return f"{again} continues {', '.join(rehearsal.continued)}{tried}."
    if failed:
        return f"{again} retries what failed, and changes nothing else."
    return f"{again} changes nothing."


def describe_measures(rehearsal: Rehearsal) -> Iterator[str]:
    """Return the balance before and after, and the duration of each stage."""
    before, after = rehearsal.balance_before, rehearsal.balance_after
    if before and after:
        yield f"Measured on the brokers: {describe_shift(before, after)}."
    stages = ", ".join(f"{took:.1f} s to {stage}" for stage, took in rehearsal.seconds.items())
    yield f"It took {stages}."


def summarise_rehearsal(rehearsal: Rehearsal) -> str:
    """Return one sentence with the result."""
    how = "Interrupted" if rehearsal.interrupted else "Rehearsed"
    counts = rehearsal.count_outcomes() or "nothing to do"
    return f"{how}: {counts}. The throwaway cluster was removed."
