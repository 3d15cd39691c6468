"""Plans as rows of `plans` and `changes`; plans of moves as rows of `move_plans` and `moves`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reconciler.fleet.lake.attempts import PLANNED
from reconciler.model.plan import Plan, RefusedField, TopicImage
from reconciler.model.steps import Verb, steps_of
from reconciler.planfile.codec import encode_plan, fingerprint_plan
from reconciler.show.view import PlanView


def describe_plan(plan: Plan, view: PlanView) -> dict[str, Any]:
    """Return the row of a plan."""
    before, after = plan.balance_before, plan.balance_after
    return {
        "cluster": plan.cluster,
        "status": PLANNED,
        "fingerprint": view.fingerprint,
        "changed": len(view.changed),
        "refused": len(view.refused),
        "refusals": [str(refusal) for refusal in plan.refusals],
        "unchanged": view.unchanged,
        "unmanaged": len(view.unmanaged),
        "leader_skew_before": before and before.leaders.skew,
        "leader_skew_after": after and after.leaders.skew,
        "replica_skew_before": before and before.replicas.skew,
        "replica_skew_after": after and after.replicas.skew,
        "plan": encode_plan(plan),
    }


def describe_changes(plan: Plan, view: PlanView) -> Iterator[dict[str, Any]]:
    """Yield a row for every topic of a plan."""
    for topic, shown in zip(plan.topics, view.topics, strict=True):
        yield {
            "topic": topic.name,
            "action": shown.action,
            "steps": [str(step.verb) for step in shown.steps],
            "partitions_before": topic.before and len(topic.before.assignment),
            "partitions_after": topic.after and len(topic.after.assignment),
            "config_before": _list_config(topic.before),
            "config_after": _list_config(topic.after),
            "assignment": topic.after and topic.after.assignment,
            "risks": [str(note.risk) for note in topic.risks],
            "refusals": [refusal.rule for refusal in topic.refusals],
            "reasons": [refusal.what for refusal in topic.refusals],
            "refused_change": list(map(_describe_field, topic.refused_change)),
            "file": topic.location.file,
            "line": topic.location.line,
        }


def describe_move_plan(plan: Plan) -> dict[str, Any]:
    """Return the row of a plan of moves. Errors: ValueError if it is a plan of changes."""
    moves = plan.moves
    if moves is None:
        raise ValueError("the plan has no moves")
    forecast = moves.forecast
    peaks = [
        peak.peak_bytes / peak.total_bytes
        for peak in (forecast.peaks if forecast else ())
        if peak.total_bytes
    ]
    return {
        "cluster": plan.cluster,
        "status": PLANNED,
        "fingerprint": fingerprint_plan(plan),
        "changed": sum(bool(steps_of(topic)) for topic in plan.topics),
        "refused": sum(bool(topic.refusals) for topic in plan.topics),
        "refusals": [str(refusal) for refusal in plan.refusals],
        "partitions": sum(1 for _ in describe_moves(plan)),
        "replicas": moves.replicas,
        "least_replicas": moves.least_replicas,
        "leader_changes": moves.leader_changes,
        "copied_bytes": forecast and forecast.copied_bytes,
        "seconds": forecast and forecast.seconds,
        "peak_share": max(peaks, default=None),
        "drained": [drain.broker for drain in moves.drains],
        "cordons": len(moves.cordons),
        "plan": encode_plan(plan),
    }


def describe_moves(plan: Plan) -> Iterator[dict[str, Any]]:
    """Yield a row for every partition that a plan of moves changes."""
    forecast = plan.moves and plan.moves.forecast
    sizes = forecast.sizes if forecast else {}
    for topic in plan.topics:
        if topic.before is None or topic.after is None:
            continue
        known = sizes.get(topic.name, ())
        rows = zip(topic.before.assignment, topic.after.assignment, strict=True)
        for number, (old, new) in enumerate(rows):
            if old == new:
                continue
            size = known[number] if number < len(known) else -1
            yield {
                "topic": topic.name,
                "partition": number,
                "step": str(Verb.REORDER if {*old} == {*new} else Verb.MOVE),
                "before": old,
                "after": new,
                "size_bytes": None if size < 0 else size,
                "file": topic.location.file,
                "line": topic.location.line,
            }


def _describe_field(field: RefusedField) -> dict[str, Any]:
    return {
        "path": field.path,
        "before": _spell(field.before),
        "after": _spell(field.after),
        "file": field.where.file,
        "line": field.where.line,
    }


def _spell(value: object) -> str | None:
    """Format the value of any field as text; a row becomes a list."""
    return None if value is None else str(list(value) if isinstance(value, tuple) else value)


def _list_config(image: TopicImage | None) -> list[tuple[str, str]] | None:
    return None if image is None else sorted(image.config.items())
