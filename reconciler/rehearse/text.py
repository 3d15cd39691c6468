"""A rehearsal as text for a terminal: each topic's outcome, then what was found, then the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.plan.text import Paint, describe_shift
from reconciler.rehearse.rehearsal import describe_change
from reconciler.units import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reconciler.model import Outcome
    from reconciler.rehearse.rehearsal import Rehearsal
    from reconciler.rehearse.scene import Scene

NAME_WIDTH, CHANGE_WIDTH = 34, 30
_TONES = {"done": "green", "already done": "green", "half done": "yellow", "failed": "red"}


def render_text(rehearsal: Rehearsal, *, colour: bool = False) -> str:
    """Render a rehearsal for a terminal. Returns lines ending in a newline."""
    paint = Paint(colour)
    blocks = [[paint("bold", describe_scene(rehearsal))], list(_outcomes(rehearsal, paint))]
    blocks.append([*_findings(rehearsal, paint), *describe_measures(rehearsal)])
    blocks.append([paint("dim", f"note: {note.what}; {note.way_out}") for note in rehearsal.notes])
    tone = "green" if rehearsal.succeeded else "red"
    blocks.append([paint(tone, conclude(rehearsal))])
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def describe_scene(rehearsal: Rehearsal) -> str:
    """Say in a line what stood on the throwaway cluster."""
    scene = rehearsal.scene
    racks = {broker.rack for broker in scene.brokers if broker.rack is not None}
    brokers = count(len(scene.brokers), "broker")
    where = f"{brokers} in {count(len(racks), 'rack')}" if racks else brokers
    topics = f"{count(len(scene.topics), 'topic')} of {count(scene.replicas, 'replica')} set up"
    said = [f"rehearsal of {rehearsal.plan.cluster}", f"Kafka {rehearsal.kafka_version}", where]
    return " · ".join([*said, *_idle(scene), topics])


def _idle(scene: Scene) -> Iterator[str]:
    for kind, ids in (("stopped", scene.dead), ("cordoned", scene.cordoned)):
        if ids:
            yield f"{', '.join(map(str, ids))} {kind}"


def _outcomes(rehearsal: Rehearsal, paint: Paint) -> Iterator[str]:
    changes = {topic.name: describe_change(topic) for topic in rehearsal.plan.topics}
    for outcome in rehearsal.outcomes:
        tone = _TONES.get(str(outcome.kind), "yellow")
        change = changes.get(outcome.topic, "")
        line = f"{outcome.topic:<{NAME_WIDTH}} {change:<{CHANGE_WIDTH}} {_reason(outcome)}"
        yield f"{paint(tone, f'{outcome.kind:<13}')} {line}".rstrip()


def _reason(outcome: Outcome) -> str:
    rule = f" [{outcome.rule}]" if outcome.rule else ""
    return f"{outcome.text}{rule}"


def _findings(rehearsal: Rehearsal, paint: Paint) -> Iterator[str]:
    for name, differences in rehearsal.differences.items():
        for difference in differences:
            yield f"{paint('red', 'differs'):<13} {name}: {difference}"
    yield from tell_found(rehearsal)


def tell_found(rehearsal: Rehearsal) -> Iterator[str]:
    """Say what was looked at afterwards, and what the same run again would do."""
    if rehearsal.interrupted:
        return
    if not rehearsal.differences:
        beside = rehearsal.beside
        stayed = f"; {count(beside, 'topic')} beside it as before" if beside else ""
        yield f"Found as planned, every replica and override of what was done{stayed}."
    yield _tell_pending(rehearsal)
    told = {outcome.topic for outcome in rehearsal.outcomes}
    for name, why in rehearsal.scene.left_out.items():
        if name not in told:
            yield f"{name} could not be set up: {why}."


def _tell_pending(rehearsal: Rehearsal) -> str:
    """Say what the same run again would do: by another plan, or by this one."""
    again = "A second plan" if rehearsal.planned_again else "The plan applied again"
    if rehearsal.unexpected:
        return f"{again} would still change {', '.join(rehearsal.unexpected)}."
    failed = len(rehearsal.pending) > len(rehearsal.continued)
    if rehearsal.continued:
        tried = ", and tries what failed" if failed else ", and changes nothing else"
        return f"{again} goes on with {', '.join(rehearsal.continued)}{tried}."
    if failed:
        return f"{again} tries what failed, and changes nothing else."
    return f"{again} changes nothing."


def describe_measures(rehearsal: Rehearsal) -> Iterator[str]:
    """Say how even the cluster was before and is now, and how long each stage took."""
    before, after = rehearsal.balance_before, rehearsal.balance_after
    if before and after:
        yield f"Measured on the brokers: {describe_shift(before, after)}."
    stages = ", ".join(f"{took:.1f} s to {stage}" for stage, took in rehearsal.seconds.items())
    yield f"It took {stages}."


def conclude(rehearsal: Rehearsal) -> str:
    """Say in a sentence how it went."""
    how = "Interrupted" if rehearsal.interrupted else "Rehearsed"
    counts = rehearsal.count_outcomes() or "nothing to do"
    return f"{how}: {counts}. The throwaway cluster is gone."
