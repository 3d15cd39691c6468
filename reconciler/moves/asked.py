"""All moves that clusters.yaml and the specs ask for: a rebalance comes last.

A rebalance levels what is there, so it is planned only once nothing else is to move. Rows that a
spec asks for, or a drain, would otherwise be copied twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from reconciler.diff.guards import refuse_plan
from reconciler.errors import Finding, Severity, UsageError
from reconciler.model.cluster import ClusterState, TopicSpec
from reconciler.model.moves import AskedRebalance, MovedRows
from reconciler.model.plan import Commit, Plan, Scope
from reconciler.model.steps import steps_of
from reconciler.moves.plan import choose_moving, note_moved_scope, plan_moves
from reconciler.moves.rebalance import plan_rebalance
from reconciler.spec.changes import Changes
from reconciler.spec.entry import ClusterEntry

KEY = "rebalance"
"""The key of a cluster that asks for one."""


def plan_asked(
    entry: ClusterEntry,
    specs: Iterable[TopicSpec],
    state: ClusterState,
    *,
    topics: str = "*",
    changes: Changes | None = None,
    commit: Commit | None = None,
    remarks: Iterable[Finding] = (),
    approved: MovedRows | None = None,
) -> Plan:
    """Plan the moves that the specs and the keys of a cluster ask for.

    In: as `plan_moves`; `state.read_on` is the date by which a rebalance is over. One that cannot
    be made as it is written refuses the plan. `approved` are rows for the rebalance, as for
    `plan_rebalance`. Errors: UsageError if the cluster allows no moves.
    """
    specs = tuple(specs)
    plan = plan_moves(
        entry, specs, state, topics=topics, changes=changes, commit=commit, remarks=remarks
    )
    asked = entry.rebalance
    # As a drain, it belongs to the request that changes its key, and is of the whole cluster.
    if asked is None or topics != "*" or (changes and not changes.alter(entry, _read)):
        return plan
    if is_over(asked, state.read_on):
        what = f"the rebalance until {asked.until} is over and has no effect"
        return _add_note(entry, plan, "rebalance-over", what, "remove the line, or write a date")
    if not state.user_topics:
        return plan
    if plan.refusals or any(steps_of(topic) or topic.refusals for topic in plan.topics):
        what = "the rebalance waits until all other moves are made"
        way_out = "apply the other moves, then plan again"
        return _add_note(entry, plan, "rebalance-waits", what, way_out)
    try:
        takers = sorted(asked.aim.brokers)
        made = plan_rebalance(entry, specs, state, brokers=takers, aim=asked.aim, approved=approved)
    except UsageError as error:
        way_out = "correct the brokers and loads of the rebalance, or remove it from clusters.yaml"
        what = f"the rebalance cannot be planned: {error}"
        return refuse_plan(plan, [Finding("rebalance-unable", what, way_out, entry.where(KEY))])
    scope = tuple(note_moved_scope(changes, choose_moving(entry, specs, changes), specs, made))
    # Those on brokers and on topics internal to Kafka are in both plans.
    again = {note.rule for note in (*scope, *made.notes)}
    return replace(
        made,
        notes=(*scope, *(note for note in plan.notes if note.rule not in again), *made.notes),
        files=plan.files,
        commit=commit,
        scope=Scope(topics, changes.ref if changes else None),
        moves=replace(made.moves, made_by="plan --moves") if made.moves else None,
    )


def is_over(asked: AskedRebalance, today: str) -> bool:
    """Return whether a rebalance asks for nothing any more. In: the date in UTC, "" if unknown."""
    return bool(today) and asked.until <= today


def _read(entry: ClusterEntry) -> AskedRebalance | None:
    return entry.rebalance


def _add_note(entry: ClusterEntry, plan: Plan, rule: str, what: str, way_out: str) -> Plan:
    note = Finding(rule, what, way_out, entry.where(KEY), Severity.NOTE)
    return replace(plan, notes=(*plan.notes, note))
