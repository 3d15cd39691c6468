"""A plan that only elects: preferred leaders lead again where a failover left another broker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from reconciler.diff.brokers import eligible_brokers
from reconciler.diff.guards import check_means, refuse_plan
from reconciler.diff.notes import note_failed_directories
from reconciler.diff.requests import check_offered
from reconciler.errors import Finding, Severity, UsageError
from reconciler.model.cluster import EMPTY, Assignment, ClusterState, TopicSpec, TopicState
from reconciler.model.health import can_lead, find_problems
from reconciler.model.plan import Plan, PlannedTopic, Scope, TopicImage, is_chosen, list_unmatched
from reconciler.placement.measure import measure_balance
from reconciler.spec.entry import ClusterEntry
from reconciler.units import count

OFF_FAILED_DISK = (
    "move its replicas off the failed disk: reconciler rebalance --offline-replicas; or replace "
    "the disk, restart the broker, and elect again once it is in sync"
)


def assemble_elections(
    entry: ClusterEntry, specs: Iterable[TopicSpec], state: ClusterState, *, topics: str = "*"
) -> Plan:
    """Plan the election of every preferred leader that does not lead and can.

    In: `topics`, globs of names, separated by commas. All live topics count, also unmanaged ones,
    but none that is internal to Kafka: its leaders hold coordinators and the lock of apply itself.
    A preferred leader that is dead or not in sync is not elected, since only an unclean election
    could; a note names it, and what helps if its disk has failed.
    Errors: UsageError for a glob that no live topic matches.
    """
    if topics != "*" and (unmatched := list_unmatched(state.user_topics, topics)):
        raise UsageError(f"no live topic of {entry.name} matches --topic {unmatched[0]!r}")
    written = {spec.name: spec for spec in specs}
    alive = {broker.id for broker in state.brokers if broker.alive}
    planned, after = [], []
    unchanged = 0
    for name, topic in sorted(state.user_topics.items()):
        if not is_chosen(name, topics):
            after.append(_lead(topic))
            continue
        wanted = tuple(
            row[0] if row and can_lead(row[0], synced, alive) else leader
            for row, synced, leader in zip(
                topic.assignment, topic.in_sync, topic.leaders, strict=True
            )
        )
        after.append(_lead(replace(topic, leaders=wanted)))
        notes = tuple(_note_unable(topic, wanted, alive, state.find_offline(topic)))
        if wanted == topic.leaders:
            unchanged += 1
        if wanted == topic.leaders and not notes:
            continue
        spec = written.get(name)
        before = TopicImage(topic.topic_id, topic.assignment, EMPTY, topic.leaders)
        planned.append(
            PlannedTopic(
                name=name,
                location=spec.location if spec else entry.location,
                before=before,
                after=replace(before, leaders=wanted),
                notes=notes,
                owner=spec.owner if spec else None,
                labels=spec.labels if spec else EMPTY,
            )
        )
    ids = [broker.id for broker in eligible_brokers(state.brokers, entry.exclude_brokers)]
    plan = Plan(
        cluster=entry.name,
        cluster_id=state.cluster_id,
        brokers=tuple(sorted(state.brokers)),
        topics=tuple(planned),
        unchanged=unchanged,
        live_topics=len(state.user_topics),
        balance_before=measure_balance(map(_lead, state.user_topics.values()), ids),
        balance_after=measure_balance(after, ids),
        excluded=tuple(sorted(entry.exclude_brokers)),
        notes=tuple(note_failed_directories(entry, state)),
        scope=Scope(topics),
        health=find_problems(state),
    )
    plan = refuse_plan(plan, check_offered(plan, state.unoffered))
    return refuse_plan(plan, check_means(entry, plan, state))


def _note_unable(
    topic: TopicState, wanted: tuple[int, ...], alive: Collection[int], offline: Assignment
) -> Iterator[Finding]:
    """Name the preferred leaders that cannot lead now, why, and what helps."""
    unable: Counter[tuple[int, str, str]] = Counter()
    for number, (row, leader) in enumerate(zip(topic.assignment, wanted, strict=True)):
        if not row or leader == row[0]:
            continue
        why, way_out = "not in sync", "elect again once it is in sync"
        if row[0] not in alive:
            why = "dead"
        elif offline and row[0] in offline[number]:
            why, way_out = "not in sync, and has a failed log directory", OFF_FAILED_DISK
        unable[row[0], why, way_out] += 1
    for (broker, why, way_out), number in sorted(unable.items()):
        what = f"broker {broker} is {why}, so it cannot lead {count(number, 'partition')}"
        yield Finding("election-unable", what, way_out, severity=Severity.NOTE)


def _lead(topic: TopicState) -> Assignment:
    """Return the rows with the present leaders first; -1 where there is none."""
    return tuple(
        (leader, *(b for b in row if b != leader))
        for row, leader in zip(topic.assignment, topic.leaders, strict=True)
    )
