"""Reasons not to delete a topic: it is deleted only if it is certainly unused.

`object_to_use` runs twice: in the plan, and right before the deletion.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from reconciler.errors import Finding
from reconciler.model.cluster import Guards, TopicSpec, TopicState, TopicUsage
from reconciler.units import describe_value

NAMED = 3
"""The number of consumer groups that a message names; it counts the others."""

UNSEEN = TopicUsage(
    0,
    unseen="it is not known who uses it",
    way_out="plan on the cluster itself: a snapshot does not hold that",
)


class Objection(NamedTuple):
    """A reason not to delete: its rule, what it is, and the way out."""

    rule: str
    what: str
    way_out: str


def refuse_deletion(
    spec: TopicSpec,
    state: TopicState,
    guards: Guards,
    usage: TopicUsage | None,
    config: Mapping[str, str],
    wanted: int,
    settings: Mapping[str, str],
) -> Iterator[Finding]:
    """Refuse to delete a topic that is internal, over the budget, reassigning, or perhaps used.

    `config` holds the configs in force; `wanted` counts the deletions of this plan; `settings`
    are the settings of the brokers.
    """
    objections = []
    if state.internal:
        what = f"{state.name} is an internal topic of Kafka"
        way_out = "remove the document from the estate"
        objections.append(Objection("deletion-internal", what, way_out))
    objections += _object_to_number(guards, wanted)
    # If the budget is 0, the cluster was not asked who uses the topic: `usage` is empty for this
    # reason alone, and further objections would mislead.
    if guards.max_deletes:
        usage = usage or UNSEEN
        objections += _object_to_cluster(state, settings)
        objections += object_to_use(usage, guards.unused_for_ms)
        objections += _object_to_lost_traces(usage, guards.unused_for_ms, config)
    where = spec.where("state")
    return (Finding(rule, what, way_out, where) for rule, what, way_out in objections)


def object_to_use(usage: TopicUsage, unused_for_ms: int) -> Iterator[Objection]:
    """Return an objection if a topic is in use, was written to recently, or this is unknown."""
    if usage.groups:
        named = ", ".join(usage.groups[:NAMED])
        more = len(usage.groups) - NAMED
        more_groups = f" and {more} more" if more > 0 else ""
        noun, verb = ("group", "uses") if len(usage.groups) == 1 else ("groups", "use")
        yield Objection(
            "deletion-in-use",
            f"active consumer {noun} {named}{more_groups} {verb} it",
            "stop its consumers, or have them read something else, and plan again",
        )
    if usage.unseen:
        yield Objection("deletion-unseen", usage.unseen, usage.way_out)
    elif usage.newest_ms is not None:
        age_ms = usage.seen_at_ms - usage.newest_ms
        if age_ms >= unused_for_ms:
            return
        what = f"its newest record is of {describe_time(usage.newest_ms)}, "
        if age_ms < 0:  # producers choose timestamps freely
            what += "which is in the future"
            way_out = "have no record of that time in it; its time does not say when it was written"
        else:
            limit = _describe_ms(unused_for_ms)
            what += f"{describe_age(age_ms)} ago, and unused_for is {limit}"
            way_out = "stop its producers and wait, or lower guards.unused_for of the cluster"
        yield Objection("deletion-written", what, way_out)


def _object_to_number(guards: Guards, wanted: int) -> Iterator[Objection]:
    """Object if a plan has too many deletions: to each of them, because none has priority."""
    most = guards.max_deletes
    if not most:
        yield Objection(
            "deletion-budget",
            "state: absent asks to delete it, and the cluster's plans may delete nothing",
            f"write guards: {{max_deletes: {wanted}}} for the cluster in clusters.yaml, or remove "
            "the document from the estate",
        )
    elif wanted > most:
        yield Objection(
            "deletion-budget",
            f"{wanted} topics are to be deleted, and max_deletes of the cluster is {most}; "
            "none is deleted",
            f"plan at most {most} at a time, in several requests or with --topic, or raise "
            "max_deletes",
        )


def _object_to_cluster(state: TopicState, settings: Mapping[str, str]) -> Iterator[Objection]:
    """Object if brokers refuse deletions, or if the topic is unidentified or reassigning."""
    key = "delete.topic.enable"
    if settings.get(key) == "false":
        what = f"brokers refuse to delete topics: {key} is not true on all of them"
        way_out = (
            f"set {key}=true on all brokers and controllers first, or remove the document from the "
            "estate"
        )
        yield Objection("deletion-disabled", what, way_out)
    if state.topic_id is None:
        what = "its topic id is not known, and a deletion by name could delete another topic"
        yield Objection("deletion-unseen", what, "plan on the cluster itself")
    if state.reassigning:
        listed = ", ".join(map(str, sorted(state.reassigning)))
        what = f"its partitions {listed} are being reassigned"
        way_out = "wait until the reassignment has ended, or cancel it, and plan again"
        yield Objection("deletion-reassigning", what, way_out)


def _object_to_lost_traces(
    usage: TopicUsage, unused_for_ms: int, config: Mapping[str, str]
) -> Iterator[Objection]:
    """Object if deleted records may have been younger than `unused_for`."""
    if usage.unseen or not usage.emptied:
        return
    # Retention by time only deletes records that are at least retention.ms old. Retention by size
    # keeps at least retention.bytes, so it empties a partition only if that is 0.
    retention = config.get("retention.ms")
    by_time = "delete" in config.get("cleanup.policy", "delete") and retention is not None
    kept_ms = int(retention) if retention is not None and by_time else -1
    keeps_some = config.get("retention.bytes") != "0"
    if kept_ms >= unused_for_ms and keeps_some:
        return
    lower = "lower guards.unused_for of the cluster to its retention.ms, or "
    how = f"retention.ms is {_describe_ms(kept_ms)}" if kept_ms >= 0 else "not by its age"
    yield Objection(
        "deletion-unseen",
        f"records were already deleted from it ({how}, unused_for {_describe_ms(unused_for_ms)}), "
        "so it is not known when it was last written to",
        f"{lower if kept_ms >= 0 and keeps_some else ''}delete it by hand",
    )


def describe_time(at_ms: int) -> str:
    """Format a time to the minute, in UTC, or as a number if the calendar ends before it."""
    try:
        return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (OverflowError, ValueError, OSError):
        return f"{at_ms} ms since 1970"


def describe_age(age_ms: int) -> str:
    """Format an age in its largest unit, rounded down: 3d, 5h, 12min, 40s."""
    for unit, length_ms in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000)):
        if age_ms >= length_ms:
            return f"{age_ms // length_ms}{unit}"
    return f"{age_ms // 1000}s"


def _describe_ms(value_ms: int) -> str:
    return describe_value("retention.ms", str(value_ms)).partition(" (")[0]
