"""The entire comment: cluster, dangers, changes, details, and next steps."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from urllib.parse import quote

from reconciler.model.plan import Plan
from reconciler.show.markdown.changes import (
    write_changes,
    write_drift,
    write_explicit,
    write_notes,
    write_outcome,
    write_owners,
    write_unmanaged,
)
from reconciler.show.markdown.dangers import (
    count_risks,
    write_alerts,
    write_deletions,
    write_refusals,
    write_refused_plan,
    write_risks,
)
from reconciler.show.markdown.details import WITHOUT, write_details
from reconciler.show.markdown.folding import BETWEEN, fold, size_of
from reconciler.show.markdown.marks import code, prose
from reconciler.show.markdown.moves import write_moves
from reconciler.show.view import PlanView, view_plan
from reconciler.show.wording import capital

COMMENT_LIMIT = 65_536
"""GitHub refuses a longer comment. It counts characters; bytes are never fewer."""


def render_markdown(plan: Plan, *, saved: str | None = None, limit: int = COMMENT_LIMIT) -> str:
    """Render a plan as markdown of limited size in bytes of UTF-8.

    `saved` is the path of the plan file, for the commands in the text. Returns: text that ends in a
    newline. It begins with a marker, by which a later run finds the comment of the cluster.
    """
    view = view_plan(plan)
    head, foot = _head(view), _foot(view, saved)
    closing = _left_out([""], saved, view)
    room = limit - sum(map(size_of, (head, foot, closing))) - WITHOUT
    dangers = (
        write_alerts,
        write_deletions,
        write_refused_plan,
        write_refusals,
        write_moves,
        write_risks,
    )
    changes = (write_changes, write_explicit, write_outcome, write_owners)
    sections = (*dangers, *changes, write_drift, write_notes, write_unmanaged)
    (*first, drift, notes, unmanaged), room = fold((tell(view) for tell in sections), room)
    details = write_details(view, plan, room)
    told = [*first, details, drift, notes, unmanaged]
    without = [passage.without for passage in told if passage.without]
    closing = _left_out(without, saved, view) if without else ""
    parts = [head, *(passage.text for passage in told), closing, foot]
    return BETWEEN.join(filter(None, parts)) + "\n"


def mark_cluster(cluster: str, *, moves: bool = False) -> str:
    """Return the invisible first line of a cluster's comment; a plan of moves has its own."""
    kind = "moves" if moves else "plan"
    return f"<!-- reconciler:{kind} cluster={quote(cluster, safe='')} -->"


def _head(plan: PlanView) -> str:
    counts = ", ".join(plan.to_do) or "no changes"
    open_ = plan.to_do or plan.pending or plan.existing_drift
    quiet = [plan.unchanged_words if open_ else "all as specified", *plan.asides]
    lines = [" · ".join(filter(None, [*map(prose, plan.headline[1:]), *quiet]))]
    if plan.stage:
        lines.append(capital(prose(plan.stage)))
    if plan.health:
        named = code(f"reconciler health --cluster {shlex.quote(plan.cluster)}")
        lines.append(f"**Unhealthy: {plan.health}.** By name: {named}")
    lines += [f"**{capital(said)}.**" for said in plan.idle]
    if risks := count_risks(plan):
        lines.insert(0, f"Risk: {risks}")
    kind = "plan of moves" if plan.moves else "plan"
    title = f"### Kafka {kind} for {code(plan.cluster)}: {counts}"
    return BETWEEN.join([f"{mark_cluster(plan.cluster, moves=bool(plan.moves))}\n{title}", *lines])


def _left_out(without: Iterable[str], saved: str | None, plan: PlanView) -> str:
    """Name what did not fit, and the command that shows it."""
    where = f"reconciler show {shlex.quote(saved)}" if saved else f"reconciler {_named(plan)}"
    return f"**Left out to fit:** {'; '.join(without)}. {code(where)} shows all of it."


def _named(plan: PlanView) -> str:
    """Return the command line for the same cluster and the same topics, without `reconciler`."""
    options = {
        "--cluster": plan.cluster,
        "--topic": plan.scope.topics if plan.scope.topics != "*" else None,
        "--changed-since": plan.scope.changed_since,
    }
    verb, *more = plan.made_by.split(" ", 1)
    named = [f"{name} {shlex.quote(v)}" for name, v in options.items() if v is not None]
    return " ".join([verb, *named, *more])


def _foot(plan: PlanView, saved: str | None) -> str:
    """Identify the plan, and give the command that applies exactly this plan."""
    lines = [f"Fingerprint {code(plan.fingerprint)}"]
    if plan.commit:
        lines.append(capital(plan.commit))
    if (plan.changed or plan.cordons) and not plan.refusals:
        expect = f"--expect {plan.fingerprint}"
        named = _named(plan).removeprefix("plan ")
        apply = f"reconciler apply {shlex.quote(saved) if saved else f'{named} {expect}'}"
        if plan.moves and not saved:  # apply makes no plan of moves itself
            save = f"reconciler {_named(plan)} --out moves.json"
            apply = f"{save} && reconciler apply moves.json {expect}"
        lines.insert(0, f"To apply exactly this: {code(apply)}")
    return "---\n\n" + "<br>\n".join(lines)  # not in <sub>: GitHub prints its lines on each other
