"""A topic's configs and placement, folded behind its name, for as many topics as there is room."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.errors import escape_unprintable
from reconciler.model import AddPartitions, AlterConfig, CreateTopic, DeleteTopic
from reconciler.plan.explain import lay_out_topic, render_layout
from reconciler.plan.markdown.changes import SIGNS, verb_of
from reconciler.plan.markdown.folding import Telling, size_of
from reconciler.plan.markdown.marks import code_in_html, fence, folded, prose
from reconciler.plan.refused import describe_refused_fields
from reconciler.plan.steps import steps_of
from reconciler.plan.text import capital, describe_placement, group_racks
from reconciler.units import count, describe_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from reconciler.model import Plan, PlannedTopic, Step
    from reconciler.plan.text import Racks

WIDTH = 110
WITHOUT = 120
"""Room for the words that say what is left out. Units: bytes."""
FEW = 10
"""More topics than this are folded once more, all together."""


def tell_details(plan: Plan, room: int) -> Telling:
    """Tell the details of the topics that change: those at risk first, then by name.

    Matrices come once every topic has its other details. Units: `room` in bytes, beside `WITHOUT`.
    """
    changed = [topic for topic in plan.topics if steps_of(topic)]
    if not changed:
        return Telling("")
    racks = group_racks(plan.brokers)
    room -= size_of(_together(["", *[""] * FEW]))
    told, room = _fill(changed, room, {}, lambda topic: _block(topic, racks))
    placed = [topic for topic in changed if topic.name in told and _places(topic)]
    drawn, room = _fill(placed, room, told, lambda topic: _block(topic, racks, plan))
    blocks = {**told, **drawn}
    text = _together([blocks[topic.name] for topic in changed if topic.name in blocks])
    return Telling(text, _left_out(len(changed) - len(told), len(placed) - len(drawn)))


def _fill(
    topics: Sequence[PlannedTopic],
    room: int,
    instead_of: Mapping[str, str],
    tell: Callable[[PlannedTopic], str],
) -> tuple[dict[str, str], int]:
    """Tell topics until one does not fit: a beginning of the list, never a pick from it."""
    told: dict[str, str] = {}
    for topic in sorted(topics, key=lambda topic: not topic.risks):
        text = tell(topic)
        cost = size_of(text) - (size_of(instead_of[topic.name]) if instead_of else 0)
        if cost > room:
            break
        told[topic.name] = text
        room -= cost
    return told, room


def _together(blocks: Sequence[str]) -> str:
    text = "\n\n".join(blocks)
    if len(blocks) <= FEW:
        return text
    return folded(f"Details of {count(len(blocks), 'topic')}", text)


def _left_out(topics: int, matrices: int) -> str:
    said = []
    if topics:
        said.append(f"the details of {count(topics, 'topic')}")
    if matrices:
        said.append(f"the placement matrices of {count(matrices, 'topic')}")
    return ", ".join(said)


def _places(topic: PlannedTopic) -> bool:
    return any(isinstance(step, CreateTopic | AddPartitions) for step in steps_of(topic))


def _block(topic: PlannedTopic, racks: Racks, plan: Plan | None = None) -> str:
    """Fold a topic's details behind its name; with its matrix where a plan is given."""
    steps = steps_of(topic)
    verbs = ", ".join(f"{SIGNS[verb_of(step)]} {verb_of(step)}" for step in steps)
    parts = []
    if topic.refused_change:  # with the whole plan, so that each field has its place
        parts.append(fence("\n".join(describe_refused_fields(topic)), "text"))
    elif configs := "\n".join(line for step in steps for line in _configs(step, topic)):
        parts.append(fence(configs, "diff"))
    if _places(topic) and (placement := describe_placement(topic, racks)):
        parts.append(f"{capital(prose(placement))}.")
    if plan is not None:
        matrix = render_layout(lay_out_topic(topic, plan), width=WIDTH)
        parts.append(fence(matrix.rstrip("\n"), "text"))
    body = "\n\n".join(parts) or "Brokers' defaults for every config."
    return folded(f"{code_in_html(topic.name)} {verbs}", body)


def _configs(step: Step, topic: PlannedTopic) -> Iterator[str]:
    """Say configs as lines of a diff, whole values included."""
    if isinstance(step, CreateTopic):
        yield from _diff({}, step.config, sorted(step.config))
    elif isinstance(step, AlterConfig):
        before = topic.before.config if topic.before else {}
        yield from _diff(before, step.set, sorted({*step.set, *step.unset}))
    elif isinstance(step, DeleteTopic) and topic.before:
        yield from _diff(topic.before.config, {}, sorted(topic.before.config))


def _diff(
    before: Mapping[str, str], after: Mapping[str, str], keys: Sequence[str]
) -> Iterator[str]:
    width = max(map(len, keys), default=0)
    for key in keys:
        for sign, values in (("-", before), ("+", after)):
            if key in values:
                said = escape_unprintable(describe_value(key, values[key]))
                yield f"{sign} {key:<{width}}  {said}".rstrip()
