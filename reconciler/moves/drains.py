"""The drains of a plan of moves: what leaves each broker, what stays on it, and what is said."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType

from reconciler.diff.drains import Drain
from reconciler.errors import Finding, Location, Severity
from reconciler.model.cluster import Broker, ClusterState, TopicSpec
from reconciler.model.moves import PlannedDrain
from reconciler.model.plan import Plan, PlannedTopic
from reconciler.model.steps import steps_of
from reconciler.units import count

Rows = Iterable[Collection[int]]

NAMED = 5
"""The number of topics that a note names; it counts the others."""


def plan_drains(
    drain: Drain, plan: Plan, state: ClusterState, specs: Iterable[TopicSpec]
) -> tuple[PlannedDrain, ...]:
    """Describe what the plan does to every broker to drain, by id; an id without one is omitted.

    In: a plan with its rows, the state that it is based on, and all specs of the cluster.
    """
    written = {spec.name: spec for spec in specs}
    topics = {topic.name: topic for topic in plan.topics}
    before: dict[str, Rows] = {name: topic.assignment for name, topic in state.topics.items()}
    after = dict(before)
    for name, topic in topics.items():
        if topic.before is None or topic.after is None:
            continue
        # Where a foreign reassignment is left alone, a row has its old replicas and the new ones.
        moves = steps_of(topic)
        pairs = zip(topic.before.assignment, before[name], strict=True)
        before[name] = topic.before.assignment if moves else [{*old, *new} for old, new in pairs]
        after[name] = topic.after.assignment if moves else before[name]
    brokers = {broker.id: broker for broker in state.brokers}
    return tuple(
        _plan_drain(broker, brokers[broker], before, after, topics, state, written)
        for broker in sorted(drain.brokers)
        if broker in brokers
    )


def _plan_drain(
    number: int,
    broker: Broker,
    before: Mapping[str, Rows],
    after: Mapping[str, Rows],
    topics: Mapping[str, PlannedTopic],
    state: ClusterState,
    written: Mapping[str, TopicSpec],
) -> PlannedDrain:
    held = {name: found for name, rows in before.items() if (found := _count(number, rows))}
    left = {name: _count(number, after[name]) for name in held}
    leaving = [name for name in held if left[name] < held[name]]
    return PlannedDrain(
        number,
        cordon=state.can_cordon and broker.alive and not broker.cordoned,
        topics=len(leaving),
        replicas=sum(held[name] - left[name] for name in leaving),
        unnamed=tuple(name for name in sorted(leaving) if name not in written),
        stays=MappingProxyType(
            {
                name: _say_why(topics.get(name), written.get(name))
                for name in sorted(left)
                if left[name]
            }
        ),
    )


def _count(broker: int, rows: Rows) -> int:
    return sum(broker in row for row in rows)


def _say_why(topic: PlannedTopic | None, spec: TopicSpec | None) -> str:
    """Say why a topic keeps replicas on a broker to drain."""
    if spec is not None and spec.absent:
        return "it will be deleted"
    if topic is None:
        return "this plan leaves it out"
    if topic.refusals:
        return f"refused: {topic.refusals[0].what}"
    return "being reassigned by another tool or run"


def note_drains(plan: Plan, state: ClusterState, where: Location) -> Iterator[Finding]:
    """Report what a drain leaves on brokers, its effect on racks, and what to do afterwards."""
    drains = plan.moves.drains if plan.moves else ()
    brokers = {broker.id: broker for broker in state.brokers}
    for drain in drains:
        if drain.unnamed:
            are = "is unmanaged" if len(drain.unnamed) == 1 else "are unmanaged"
            what = f"{count(len(drain.unnamed), 'topic')} on broker {drain.broker} {are}"
            yield Finding(
                "drain-unnamed",
                f"{what}: {_list(drain.unnamed)}; a drain moves {_them(drain.unnamed)} as well",
                where=where,
                severity=Severity.NOTE,
            )
        if drain.stays:
            reasons = [f"{name} ({why})" for name, why in drain.stays.items()]
            yield Finding(
                "drain-incomplete",
                f"broker {drain.broker} keeps replicas of {count(len(reasons), 'topic')}: "
                f"{_list(reasons)}",
                "plan again once these can move; the broker is not empty before that",
                where,
                Severity.WARNING,
            )
        if not drain.replicas and not drain.stays:
            yield _note_empty(brokers[drain.broker], state, where)
    yield from _warn_of_lost_racks(plan, brokers, where)


def _note_empty(broker: Broker, state: ClusterState, where: Location) -> Finding:
    """Say that no partition has a replica there, and what its log directories hold."""
    number, alive = broker.id, broker.alive
    stored = [each.replicas for each in state.directories.get(number, ()) if each.online]
    known = sum(replicas or 0 for replicas in stored)
    if alive and (not stored or None in stored):
        return Finding(
            "drain-incomplete",
            f"no partition that this account can see has a replica on broker {number}, but it does "
            "not show what its log directories store",
            "plan again against the running cluster, with Describe on the cluster",
            where,
            Severity.WARNING,
        )
    if alive and known:
        return Finding(
            "drain-incomplete",
            f"no partition that this account can see has a replica on broker {number}, but its log "
            f"directories hold {count(known, 'replica')}",
            "wait a minute and plan again; grant Describe on all topics if that does not help",
            where,
            Severity.WARNING,
        )
    what = f"broker {number} stores nothing" if alive else f"no replica is on broker {number}"
    steps = [
        *(["remove it from the controllers' quorum if it votes there"] * (number in state.voters)),
        *(["stop it"] * alive),
        f"unregister it with kafka-cluster unregister --id {number}",
        f"remove {number} from drain_brokers",
    ]
    return Finding("drain-done", what, ", then ".join(steps), where, Severity.NOTE)


def _warn_of_lost_racks(
    plan: Plan, brokers: Mapping[int, Broker], where: Location
) -> Iterator[Finding]:
    """Warn of racks in which no broker can take replicas any more."""
    drained = {drain.broker for drain in plan.moves.drains} if plan.moves else set()
    able = {
        b.rack for b in brokers.values() if b.alive and not b.cordoned and b.id not in plan.excluded
    }
    lost = {brokers[number].rack for number in drained & brokers.keys()} - able - {None}
    for rack in sorted(filter(None, lost)):
        yield Finding(
            "drain-last-of-rack",
            f"no other broker of rack {rack} can take replicas, so rows are spread over the other "
            "racks only",
            "add brokers to that rack first, unless you retire the rack",
            where,
            Severity.WARNING,
        )


def _list(names: Collection[str]) -> str:
    shown = ", ".join([*names][:NAMED])
    return f"{shown} and {len(names) - NAMED:,} more" if len(names) > NAMED else shown


def _them(names: Collection[str]) -> str:
    return "it" if len(names) == 1 else "them"
