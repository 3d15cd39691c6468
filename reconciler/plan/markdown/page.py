"""The whole comment: who it is about, dangers, changes, details, and how to go on."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING
from urllib.parse import quote

from reconciler.plan.codec import fingerprint_plan
from reconciler.plan.markdown.changes import tell_changes, tell_notes, tell_outcome, tell_strangers
from reconciler.plan.markdown.dangers import count_risks, tell_refusals, tell_risks, tell_whole
from reconciler.plan.markdown.deletions import tell_deletions
from reconciler.plan.markdown.details import WITHOUT, tell_details
from reconciler.plan.markdown.folding import BETWEEN, fold, size_of
from reconciler.plan.markdown.marks import code, prose
from reconciler.plan.steps import steps_of
from reconciler.plan.text import (
    capital,
    count_changes,
    count_strangers,
    count_unchanged,
    describe_cluster,
    describe_commit,
    describe_idle,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reconciler.model import Plan

COMMENT_LIMIT = 65_536
"""GitHub refuses a longer comment. It counts characters; bytes are never fewer."""


def render_markdown(plan: Plan, *, saved: str | None = None, limit: int = COMMENT_LIMIT) -> str:
    """Render a plan as markdown of at most so many bytes of UTF-8.

    `saved` is where the plan is kept, so that people are sent there. Returns text that ends in a
    newline, and begins with a marker by which the comment of a cluster is found again.
    """
    head, foot = _head(plan), _foot(plan, saved)
    closing = _left_out([""], saved, plan)
    room = limit - sum(map(size_of, (head, foot, closing))) - WITHOUT
    dangers = (tell_deletions, tell_whole, tell_refusals, tell_risks)
    sections = (*dangers, tell_changes, tell_outcome, tell_notes, tell_strangers)
    (*first, notes, strangers), room = fold((tell(plan) for tell in sections), room)
    details = tell_details(plan, room)
    told = [*first, details, notes, strangers]
    without = [telling.without for telling in told if telling.without]
    closing = _left_out(without, saved, plan) if without else ""
    parts = [head, *(telling.text for telling in told), closing, foot]
    return BETWEEN.join(filter(None, parts)) + "\n"


def mark_cluster(cluster: str) -> str:
    """Return the line, not to be seen, that a cluster's comment begins with."""
    return f"<!-- reconciler:plan cluster={quote(cluster, safe='')} -->"


def _head(plan: Plan) -> str:
    counts = ", ".join(count_changes(plan)) or "no changes"
    quiet = count_unchanged(plan) if count_changes(plan) else ["all as specified"]
    if plan.unmanaged:
        quiet.append(count_strangers(plan))
    about = describe_cluster(plan).removeprefix(f"{plan.cluster} · ")
    lines = [" · ".join([prose(about), *quiet])]
    lines += [f"**{capital(said)}.**" for said in describe_idle(plan)]
    if risks := count_risks(plan):
        lines.insert(0, f"Risk: {risks}")
    title = f"### Kafka plan for {code(plan.cluster)}: {counts}"
    return BETWEEN.join([f"{mark_cluster(plan.cluster)}\n{title}", *lines])


def _left_out(without: Iterable[str], saved: str | None, plan: Plan) -> str:
    """Name what did not fit, and where it is."""
    where = f"reconciler show {shlex.quote(saved)}" if saved else f"reconciler plan {_named(plan)}"
    return f"**Left out to fit:** {'; '.join(without)}. {code(where)} tells all of it."


def _named(plan: Plan) -> str:
    """Name the cluster, and what the plan was limited to, as the command line takes it."""
    options = {
        "--cluster": plan.cluster,
        "--topic": plan.scope.topics if plan.scope.topics != "*" else None,
        "--changed-since": plan.scope.changed_since,
    }
    return " ".join(f"{name} {shlex.quote(v)}" for name, v in options.items() if v is not None)


def _foot(plan: Plan, saved: str | None) -> str:
    """Name the plan, and say how to apply exactly it."""
    fingerprint = fingerprint_plan(plan)
    lines = [f"Fingerprint {code(fingerprint)}", *map(capital, describe_commit(plan))]
    if any(steps_of(topic) for topic in plan.topics) and not plan.refusals:
        fresh = f"{_named(plan)} --expect {fingerprint}"
        apply = f"reconciler apply {shlex.quote(saved) if saved else fresh}"
        lines.insert(0, f"To apply exactly this: {code(apply)}")
    return "---\n" + "<br>\n".join(f"<sub>{line}</sub>" for line in lines)
