"""Refusals and notes for one topic, each with the way out; `brokers` has those on brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from reconciler.diff.fields import NOT_MANAGED_KEYS, FieldChange
from reconciler.diff.moving import PLAN_MOVES
from reconciler.errors import Finding, Severity
from reconciler.model.cluster import TopicSpec, TopicState
from reconciler.spec.configs import Catalogue
from reconciler.spec.services import SERVICES
from reconciler.units import count, describe_value

Allows = Callable[[TopicSpec], bool]
Edit = tuple[str, TopicSpec]

BY_SERVICE = "change it with the service's own tools"
"""The way out instead of an edit that allows moves, if the brokers place replicas."""


def allow_all(_: TopicSpec) -> bool:
    """Allow every spec, if no estate says otherwise."""
    return True


def name_allowed(edits: Iterable[Edit], allows: Allows) -> str:
    """Return the text of the first allowed edit; empty if none is allowed."""
    return next((words for words, edited in edits if allows(edited)), "")


def join_ways(*ways: str) -> str:
    """Join several ways out in a sentence, without empty ones."""
    return ", or ".join(filter(None, ways))


def set_config(spec: TopicSpec, config: Mapping[str, str]) -> TopicSpec:
    """Return a spec with some configs written into it."""
    return replace(spec, config={**spec.config, **config})


def list_factors(spec: TopicSpec, factor: int, words: str) -> Iterator[Edit]:
    """List edits to a replication factor: first alone, then with min.insync.replicas."""
    edited = replace(spec, replication_factor=factor)
    yield words, edited
    key = "min.insync.replicas"
    yield f"{words}, with {key} {factor}", set_config(edited, {key: str(factor)})


def list_live_rows(spec: TopicSpec, state: TopicState) -> TopicSpec | None:
    """Replace the first manual rows of a spec by the live rows, and set its counts to match.

    None if the rows then differ in length, because no spec can have such rows.
    """
    rows = state.assignment + (spec.assignment or ())[len(state.assignment) :]
    if len({*map(len, rows)}) != 1:
        return None
    return replace(spec, assignment=rows, partitions=len(rows), replication_factor=len(rows[0]))


_COPY_DISABLE = "remote.log.copy.disable"
_NAMED = 3


def refuse_look_alikes(
    spec: TopicSpec, look_alikes: Iterable[str], allows: Allows
) -> Iterator[Finding]:
    """Refuse a new name if its metrics would collide with those of a live topic."""
    for live in sorted(look_alikes):
        edit = (f"write {live} in the spec instead", replace(spec, name=live))
        yield Finding(
            "name-collides-with-live",
            f"topic {spec.name} would collide with the live topic {live}: "
            "metrics spell '.' and '_' alike, so Kafka refuses it",
            join_ways("choose another name", name_allowed([edit], allows)),
            spec.location,
        )


def refuse_change(
    spec: TopicSpec, state: TopicState, change: FieldChange, allows: Allows, allow: str = ""
) -> Iterator[Finding]:
    """Refuse a change that cannot be made. Configs can change, and partitions can be added.

    `allow` is the edit of clusters.yaml that allows to move the replicas of this topic.
    """
    field_name = change.path.partition(".")[0]
    if field_name == "config":
        return
    where = spec.where(change.path)
    found, desired = change.found, change.desired
    back = _put_back(spec, state, change, allows)
    if field_name == "partitions":
        if isinstance(found, int) and isinstance(desired, int) and desired < found:
            yield Finding(
                "partitions-never-shrink",
                f"{found} → {count(desired, 'partition')}: Kafka cannot remove partitions",
                join_ways(
                    back or f"have the policy allow {found} partitions and put {found} back",
                    "create a new topic and move its producers and consumers",
                ),
                where,
            )
    elif field_name == "replication_factor":
        yield Finding(
            "replication-stays",
            f"replication_factor {found} → {desired}: changing it moves replicas, "
            "which this cluster does not allow",
            join_ways(back, allow),
            where,
        )
    else:
        yield Finding(
            "replicas-stay",
            f"{change.path.replace('.', ' of partition ')}: {found} → {desired}: this changes "
            "existing replicas, which this cluster does not allow",
            join_ways(back, allow),
            where,
        )


def refuse_only_at_create(
    spec: TopicSpec, changes: Iterable[FieldChange], service: str
) -> Iterator[Finding]:
    """Refuse changes of configs that a service sets only when it creates a topic."""
    for change in changes:
        key = change.path.removeprefix("config.")
        if key in SERVICES[service].only_at_create:
            now, then = (
                "not set" if value is None else describe_value(key, str(value))
                for value in (change.found, change.desired)
            )
            what = f"{key} {now} → {then}: {SERVICES[service].title} sets it only when it creates "
            back = f"write config: {{{key}: {'null' if change.found is None else change.found}}}"
            another = "create a new topic and move its producers and consumers"
            where = spec.where(change.path)
            yield Finding("service-create-only", f"{what}a topic", join_ways(back, another), where)


def _put_back(spec: TopicSpec, state: TopicState, change: FieldChange, allows: Allows) -> str:
    """Return the edit that makes a spec equal to the live topic; empty if there is none."""
    if spec.assignment is not None:
        rows = list_live_rows(spec, state)
        words = "list the rows of the live partitions again"
        if change.path.startswith("assignment"):
            words = f"write {change.found}"
        edits = list_factors(rows, rows.replication_factor or 0, words) if rows else ()
    elif change.path == "partitions":
        found = len(state.assignment)
        edits = iter([(f"put {found} back", replace(spec, partitions=found))])
    elif len(state.replication_factors) > 1:  # no single number describes the topic
        edits = iter([("write replication_factor: null", replace(spec, replication_factor=None))])
    else:
        (factor,) = state.replication_factors
        edits = list_factors(spec, factor, f"put {factor} back")
    return name_allowed(edits, allows)


def _replicate(
    spec: TopicSpec, factor: int, allows: Allows, allow: str, goal: str, *, along: bool = True
) -> str:
    """Return the edits after which a plan of moves gives a topic so many replicas.

    `allow` is the edit of clusters.yaml that allows it, empty if none is needed. `along` lists the
    edit with min.insync.replicas as well.
    """
    if allow == BY_SERVICE:
        return f"{goal} with the service's own tools"
    verb = "keep" if spec.replication_factor == factor else "write"
    edits = list_factors(spec, factor, f"{verb} replication_factor: {factor}")
    written = name_allowed(edits if along else [next(edits)], allows)
    if not written:
        return f"have the policy allow {count(factor, 'replica')}"
    steps = " and ".join(filter(None, [written, allow]))
    return f"{steps}, then {goal} with {PLAN_MOVES}"


def refuse_expansion(
    spec: TopicSpec, state: TopicState, allows: Allows, allow: str
) -> Iterator[Finding]:
    """Refuse new partitions if Kafka cannot derive the replication factor.

    `allow` is the edit of clusters.yaml that allows to give all partitions the same.
    """
    if state.reassigning:
        listed = ", ".join(map(str, sorted(state.reassigning)))
        are = "partition {} is" if len(state.reassigning) == 1 else "partitions {} are"
        yield Finding(
            "expand-after-reassignment",
            f"{are.format(listed)} being reassigned; Kafka may take the inflated list of replicas "
            "for the replication factor",
            "wait until the reassignment has ended, or cancel it, and plan again",
            spec.where("partitions"),
        )
    factors = sorted(state.replication_factors)
    if len(factors) > 1:
        goal = "give all of them the same number"
        factor = spec.replication_factor or max(factors)
        yield Finding(
            "expand-uniform-replication",
            f"its partitions have {' and '.join(map(str, factors))} replicas; Kafka compares new "
            "partitions with one of the existing ones, chosen arbitrarily",
            _replicate(spec, factor, allows, allow, goal),
            spec.where("partitions"),
        )


def refuse_unknown_counts(
    spec: TopicSpec, partitions: int | None, replication: int | None
) -> Iterator[Finding]:
    """Refuse to create a topic if its spec omits a count."""
    wanted = {"partitions": partitions, "replication_factor": replication}
    missing = " and ".join(name for name, count in wanted.items() if count is None)
    yield Finding(
        "create-needs-counts",
        f"topic {spec.name} does not exist, and its spec leaves out {missing}",
        f"write {missing} in the topic, its profile or the defaults",
        spec.location,
    )


def refuse_min_insync(
    spec: TopicSpec,
    config: Mapping[str, str],
    replication: int,
    allows: Allows,
    allow: str | None = None,
) -> Iterator[Finding]:
    """Refuse more in-sync replicas than replicas.

    Kafka accepts this, and then requires all replicas but no more (KAFKA-21110). While replication
    grows, it requires more. `allow` is the edit of clusters.yaml that allows a topic that exists to
    have more replicas; None for a new topic.
    """
    desired = config.get("min.insync.replicas")
    if desired is not None and int(desired) > replication > 0:
        held = count(replication, "replica")
        lowered = set_config(spec, {"min.insync.replicas": str(replication)})
        lower = name_allowed([(f"use at most {replication}", lowered)], allows)
        yield Finding(
            "min-insync-le-replication",
            f"min.insync.replicas {desired} exceeds the {held} of {spec.name}: acks=all then "
            f"guarantees {held}, not {desired}, and every such write fails while replication grows",
            lower or _raise_replication(spec, int(desired), allows, allow),
            spec.where("config.min.insync.replicas"),
        )


def refuse_unsynced(
    spec: TopicSpec, objections: Iterable[Finding], now: int | None, allows: Allows
) -> Iterator[Finding]:
    """Refuse a higher min.insync.replicas while too few replicas are in sync for it.

    `now` is the value in force, None if it is unknown.
    """
    key = "min.insync.replicas"
    for objection in objections:
        edits = [] if now is None else [set_config(spec, {key: str(now)})]
        keep = name_allowed([(f"keep {key} {now} until then", each) for each in edits], allows)
        way_out = join_ways(objection.way_out, keep)
        yield replace(objection, way_out=way_out, where=spec.where(f"config.{key}"))


def _raise_replication(spec: TopicSpec, factor: int, allows: Allows, allow: str | None) -> str:
    if allow is not None:
        return _replicate(spec, factor, allows, allow, "give the topic more replicas", along=False)
    edit = next(list_factors(spec, factor, f"write replication_factor: {factor}"))
    return name_allowed([edit], allows) or f"have the policy allow {count(factor, 'replica')}"


def refuse_untiering(
    spec: TopicSpec, before: Mapping[str, str], after: Mapping[str, str], allows: Allows
) -> Iterator[Finding]:
    """Refuse to disable the remote tier of a topic unless the spec says that this deletes records.

    In: the configs in force, before and after. Source: KIP-950; brokers refuse it only in apply.
    """
    tiered, key = "remote.storage.enable", "remote.log.delete.on.disable"
    turned_off = before.get(tiered) == "true" and after.get(tiered) == "false"
    if turned_off and after.get(key) != "true":
        explicit = set_config(spec, {key: "true"})
        stopped = set_config(spec, {tiered: "true", _COPY_DISABLE: "true"})
        local = {f"local.retention.{unit}": "-2" for unit in ("ms", "bytes")}
        keep = f"keep {tiered}: true with {_COPY_DISABLE}: true"
        follow = (f"{keep}, and {' and '.join(local)} -2", set_config(stopped, local))
        yield Finding(
            "untiering-deletes",
            f"{tiered} true → false deletes what the remote tier holds, and Kafka "
            "requires that to be explicit",
            join_ways(
                name_allowed([(f"write {key}: true next to it", explicit)], allows),
                name_allowed([(keep, stopped), follow], allows),
            )
            or f"have the policy allow {key}",
            spec.where(f"config.{tiered}"),
        )


def check_tier(
    spec: TopicSpec, config: Mapping[str, str], settings: Mapping[str, str]
) -> tuple[list[Finding], list[Finding]]:
    """Refuse the remote tier if the brokers have none; add a note if this is unknown.

    In: the config that will be in force, and the settings of the brokers. Returns: refusals, notes.
    """
    tiered, key = "remote.storage.enable", "remote.log.storage.system.enable"
    if config.get(tiered) != "true" or settings.get(key) == "true":
        return [], []
    where = spec.where(f"config.{tiered}")
    if key in settings:
        what = f"{tiered} is true, and brokers refuse that: {key} is not true on all of them"
        way_out = f"write {tiered}: false, or set {key}=true on all brokers and controllers first"
        return [Finding("tiered-storage-off", what, way_out, where)], []
    what = f"{tiered} is true, and it is not known whether {key} is true on the brokers"
    way_out = (
        "apply asks the brokers before it changes anything; to see it in the plan, grant "
        "DescribeConfigs on the cluster, and take a snapshot again"
    )
    return [], [Finding("tiered-storage-unknown", what, way_out, where, Severity.NOTE)]


def note_not_managed(spec: TopicSpec, state: TopicState) -> Iterator[Finding]:
    """Add a note for each override that no spec can manage."""
    for key, value in sorted(state.config.items()):
        if key in NOT_MANAGED_KEYS:
            what = (
                f"{key} is set on the topic: a reassignment is throttled, or an earlier one left it"
            )
            way_out = "reconciler moves settle removes it once nothing uses it"
            if value is not None and "*" in value:  # reconciler sets none, so settle leaves it
                way_out = f"reconciler moves unthrottle --topic {state.name} removes it"
        elif value is None:
            what = f"{key} is set on the topic, but the brokers do not know that key"
            way_out = "kafka-configs --delete-config removes it"
        else:
            continue
        yield Finding("not-managed", what, way_out, spec.location, Severity.NOTE)


def note_left_alone(left: Mapping[str, Sequence[str]], catalogue: Catalogue) -> Iterator[Finding]:
    """Add a note for each config that is left alone, with the topics that it is set on.

    In: the topics by config. A service can set a config on every topic: each is named once.
    """
    for key, topics in sorted(left.items()):
        more = f" and {count(len(topics) - _NAMED, 'more topic')}" if len(topics) > _NAMED else ""
        why, way_out = catalogue.explain_left(key)
        what = f"{key} is set on {', '.join(topics[:_NAMED])}{more}; {why}, so it is left alone"
        yield Finding("not-managed", what, way_out, severity=Severity.NOTE)


def warn_of_disputed(spec: TopicSpec, state: TopicState) -> Iterator[Finding]:
    """Warn of overrides on which the brokers disagree. The plan does not change them."""
    for key, values in sorted(state.disputed.items()):
        by_value: dict[str, list[int]] = {}
        for broker, value in sorted(values.items()):
            by_value.setdefault("not set" if value is None else value or "''", []).append(broker)
        shown = ", ".join(
            f"{value} on broker {' and '.join(map(str, brokers))}"
            for value, brokers in by_value.items()
        )
        yield Finding(
            "config-disputed",
            f"brokers disagree on {key}, so it is left as it is: {shown}",
            "plan again in a minute; if they still disagree, set it with kafka-configs --alter",
            spec.where(f"config.{key}"),
            Severity.WARNING,
        )
