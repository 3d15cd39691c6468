"""Each topic's configs and placement, folded behind its name, while there is room."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from reconciler.model.plan import Plan
from reconciler.show.explain.matrix import build_layout
from reconciler.show.explain.text import render_layout
from reconciler.show.markdown.changes import mark_sign
from reconciler.show.markdown.folding import Passage, size_of
from reconciler.show.markdown.marks import code_in_html, fence, folded, prose
from reconciler.show.view import PlanView, TopicView
from reconciler.show.wording import capital
from reconciler.styling import set_columns
from reconciler.units import count

WIDTH = 110
WITHOUT = 120
"""Room for the note on omitted topics. Units: bytes."""
FEW = 10
"""More topics than this are folded once more, all together."""


def write_details(view: PlanView, plan: Plan, room: int) -> Passage:
    """Show the details of the topics that change: those at risk first, then by name.

    Units: `room` in bytes, without `WITHOUT`.
    """
    changed = tuple(topic for topic in view.shown if topic.steps)
    if not changed:
        return Passage("")
    planned = {topic.name: topic for topic in plan.topics}

    def draw(topic: TopicView) -> str:
        return render_layout(build_layout(planned[topic.name], plan), width=WIDTH).rstrip("\n")

    room -= size_of(_together(["", *[""] * FEW]))
    told, room = _fill(changed, room, {}, _block)
    # Matrices are large: they take the room that is left when every topic has its other details.
    # What the brokers place has no matrix before they did.
    known = {name for name, topic in planned.items() if topic.balance_after}
    placed = [t for t in changed if t.places and t.name in told and t.name in known]
    drawn, room = _fill(placed, room, told, lambda topic: _block(topic, draw(topic)))
    blocks = {**told, **drawn}
    text = _together([blocks[topic.name] for topic in changed if topic.name in blocks])
    return Passage(text, _left_out(len(changed) - len(told), len(placed) - len(drawn)))


def _fill(
    topics: Sequence[TopicView],
    room: int,
    instead_of: Mapping[str, str],
    tell: Callable[[TopicView], str],
) -> tuple[dict[str, str], int]:
    """Show topics until one does not fit; later ones that would fit are not shown, either."""
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


def _block(topic: TopicView, matrix: str = "") -> str:
    """Fold a topic's details behind its name; with its matrix if there is one."""
    verbs = ", ".join(f"{mark_sign(step.sign)} {step.verb}" for step in topic.steps)
    parts = [prose(topic.description)] if topic.description else []
    if topic.refused_change:  # with the entire plan, so that each field has its place
        fields = (f"{field.name} {field.words} ({field.place})" for field in topic.refused_change)
        parts.append(fence("\n".join(fields), "text"))
    elif any(step.configs for step in topic.steps):
        configs = set_columns(
            (f"{sign} {field.name}", field.show(value))
            for step in topic.steps
            for field in step.configs
            for sign, value in (("-", field.before), ("+", field.after))
            if value is not None
        )
        parts.append(fence("\n".join(configs), "diff"))
    for step in topic.steps:
        if step.rows:
            rows = ((row.name, row.words) for row in step.rows)
            parts.append(fence("\n".join(set_columns([*step.details, *rows])), "text"))
    if topic.places and topic.placement:
        parts.append(f"{capital(prose(topic.placement))}.")
    if matrix:
        parts.append(fence(matrix, "text"))
    body = "\n\n".join(parts) or "Brokers' defaults for every config."
    return folded(f"{code_in_html(topic.name)} {verbs}", body)
