"""Apply a plan to its cluster, one run at a time, and record it."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from reconciler.api.auditing import Audit
from reconciler.api.authors import find_author
from reconciler.api.connections import find_cluster, open_connection
from reconciler.api.records import ApplyRecord, begin_record
from reconciler.errors import (
    ClusterError,
    Finding,
    LockHeldError,
    RefusedPlanError,
    Severity,
    keep_interrupts,
)

if TYPE_CHECKING:
    from reconciler.kafka.connection import Connection
    from reconciler.kafka.lock import Holder, Waiting
    from reconciler.kafka.reader import KafkaReader
    from reconciler.model.plan import Plan
    from reconciler.run.ending import Applied
    from reconciler.run.events import MovesNoted, MovesWatched, StepAnswered, StepsWait
    from reconciler.run.ports import Lease
    from reconciler.spec.estate import Estate

    Observe = Callable[[StepAnswered | StepsWait | MovesNoted | MovesWatched], None]


def apply_plan(
    plan: Plan,
    estate: Estate,
    *,
    bootstrap_servers: str | None = None,
    skip_refused: bool = False,
    observe: Observe = lambda _: None,
    lock_timeout_s: float | None = 0.0,
    observe_wait: Callable[[Waiting], None] = lambda _: None,
    record: ApplyRecord | None = None,
    stop_after_s: float | None = None,
) -> Applied:
    """Make the changes of a plan on its cluster, and nothing else.

    The run holds the lock of the cluster. If another run has it, this run waits for up to
    `lock_timeout_s`; None means no lock. A plan of moves holds the lock of moves for its entire
    run, and that of the cluster only while it writes; only such a plan takes `stop_after_s`, after
    which it leaves what is in flight to a later run. `record` comes from `begin_record`; it is
    written to the `audit_topic` of the cluster at the end, if there is one.
    Returns: an outcome for every topic.
    Errors: RefusedPlanError, StalePlanError, LockHeldError and ClusterError, all of them before
    anything is written; AuditError with the ending, if the audit topic does not take the record.
    """
    from reconciler.kafka.reader import KafkaReader
    from reconciler.model.rights import GROUP, MOVES_GROUP
    from reconciler.run.ending import end_run

    check_hours(plan, estate)
    record = record or begin_record(plan)
    connection = open_connection(estate, plan.cluster, bootstrap_servers)
    reader = KafkaReader(connection)
    take_lock = partial(_hold_lock, connection, record, lock_timeout_s, observe_wait)
    if plan.moves is None:
        group, work = GROUP, _prepare(plan, connection, reader, observe, skip_refused=skip_refused)
    else:
        group = MOVES_GROUP
        work = partial(
            _make_moves,
            plan,
            connection,
            reader,
            observe,
            writing=partial(take_lock, GROUP),
            begin_for=partial(check_hours, plan, estate),
            stop_after_s=stop_after_s,
            skip_refused=skip_refused,
        )
    audit = Audit(connection, record)
    applied: Applied | None = None
    try:
        with connection:
            # Before the lock and the first write: an apply without its record must not begin.
            audit.check(created={t.name for t in plan.topics if t.before is None and t.after})
            with audit.keep_errors(), keep_interrupts():
                # All rights are checked before the first write: half an apply is worse than none.
                _check_rights(plan, reader)
                _check_requests(plan, reader)
                try:
                    with keep_interrupts(), take_lock(group) as lease:
                        applied = work(lease=lease)
                except KeyboardInterrupt:
                    # An interrupt of the release changes nothing: the work is done, and the lock
                    # expires by itself.
                    if applied is None:
                        raise
            audit.keep(end_run(applied))
    except KeyboardInterrupt:
        if applied is None:
            raise
        audit.give_up(end_run(applied))
    return applied


def check_hours(plan: Plan, estate: Estate) -> float | None:
    """Return how long moves of a plan may begin from now on, None for no limit. In seconds.

    Errors: RefusedPlanError outside the windows of their cluster.
    """
    from reconciler.model.hours import are_open, describe_moment, find_change

    if plan.moves is None:
        return None
    entry = find_cluster(estate, plan.cluster)
    windows = entry.move_hours
    if not windows:
        return None
    now = datetime.now(UTC)
    change = find_change(windows, now)
    if are_open(windows, now):
        return None if change is None else (change - now).total_seconds()
    opens = describe_moment(windows, change) if change else "never"
    what = f"moves of {plan.cluster} begin only in its windows; the next one opens {opens}"
    way_out = "apply at that time; to remove the throttles of a killed run: reconciler moves settle"
    where = entry.where("moves.windows")
    raise RefusedPlanError([Finding("moves-window", what, way_out, where)])


def check_apply(
    estate: Estate, cluster: str, *, bootstrap_servers: str | None = None, lock: bool = True
) -> None:
    """Check what apply needs of a cluster, as the account of this run, and change nothing.

    Checked are the audit topic, the rights on every topic of the estate, and the lock, which is
    taken and left at once. The lock works if another run holds it. Without `lock`, as apply goes
    without one, the groups that it lives in do not count.
    Errors: UsageError for a cluster that the estate does not name; ClusterError with everything
    that is missing.
    """
    from reconciler.kafka.lock import hold_lock
    from reconciler.kafka.reader import KafkaReader
    from reconciler.kafka.writer import check_audit_topic
    from reconciler.model.rights import GROUP, MOVES_GROUP

    specs = estate.topics_for(cluster)
    names = {spec.name for spec in specs if not spec.absent}
    holder = name_holder()
    findings: list[Finding] = []
    with open_connection(estate, cluster, bootstrap_servers) as connection:
        connection.client()
        entry, reader = connection.entry, KafkaReader(connection)

        def check_lock(group: str) -> None:
            with suppress(LockHeldError), hold_lock(connection, holder, group=group):
                pass

        checks: list[Callable[[], None]] = []
        if (topic := entry.audit_topic) is not None:
            checks.append(partial(check_audit_topic, connection, topic, planned=topic in names))
        moved = names if entry.moves is not None else None
        deleted = {spec.name for spec in specs if spec.absent and entry.guards.max_deletes}
        checks.append(
            partial(reader.check_rights, names, for_apply=True, deleted=deleted, moved=moved)
        )
        groups = (GROUP, MOVES_GROUP) if moved is not None else (GROUP,)
        checks += [partial(check_lock, group) for group in groups if lock]
        for check in checks:
            try:
                check()
            except ClusterError as error:
                findings += error.findings
    if findings:
        raise ClusterError(list(dict.fromkeys(findings)))


def name_holder() -> Holder:
    """Return the name under which this run holds a lock, if it is not for a plan."""
    from reconciler.kafka.lock import Holder

    author = find_author()
    since = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    return Holder(author.user, author.host, author.pid, since)


def _check_rights(plan: Plan, reader: KafkaReader) -> None:
    """Refuse if a right for a step of a plan is missing. Errors: ClusterError."""
    from reconciler.model.steps import Verb, is_deletion, steps_of

    steps = [step for topic in plan.topics for step in steps_of(topic)]
    if plan.moves is not None:
        reader.check_rights((), for_apply=True, moved={step.topic for step in steps})
        return
    deleted = [topic.name for topic in plan.topics if is_deletion(topic)]
    changed = {s.topic for s in steps if s.verb not in (Verb.ELECT, Verb.DELETE)}
    elects = any(step.verb is Verb.ELECT for step in steps)
    reader.check_rights(changed, for_apply=True, deleted=deleted, elects=elects)


def _check_requests(plan: Plan, reader: KafkaReader) -> None:
    """Refuse a plan of moves or elections if brokers do not offer a request that it needs.

    Brokers check no such request without carrying it out. The requests of other plans are checked
    by a first try that changes nothing. Errors: ClusterError. Cost: 0.2 s.
    """
    from reconciler.diff.requests import check_offered
    from reconciler.model.steps import Verb, steps_of

    verbs = {step.verb for topic in plan.topics for step in steps_of(topic)}
    if plan.moves is None and Verb.ELECT not in verbs:
        return
    found = check_offered(plan, reader.read_unoffered())
    if refusals := [finding for finding in found if finding.severity is Severity.ERROR]:
        raise ClusterError(refusals)


def _prepare(
    plan: Plan, connection: Connection, reader: KafkaReader, observe: Observe, *, skip_refused: bool
) -> Callable[..., Applied]:
    """Return the work of a plan that moves nothing."""
    from reconciler.apply.engine import run_plan
    from reconciler.kafka.writer import KafkaWriter

    writer = KafkaWriter(connection)
    return partial(
        run_plan,
        plan,
        reader,
        writer,
        time,
        observe,
        skip_refused=skip_refused,
        rates=connection.entry.rates,
    )


def _make_moves(
    plan: Plan,
    connection: Connection,
    reader: KafkaReader,
    observe: Observe,
    begin_for: Callable[[], float | None],
    **options: Any,
) -> Applied:
    """Do the work of a plan of moves. `begin_for` says how long some may begin, in seconds."""
    from reconciler.kafka.mover import KafkaMover
    from reconciler.moves.running.run import run_moves

    mover = KafkaMover(connection)
    try:
        # The lock may have been waited for.
        return run_moves(plan, reader, mover, time, observe, begin_for_s=begin_for(), **options)
    finally:
        mover.close()


def _hold_lock(
    connection: Connection,
    record: ApplyRecord,
    timeout_s: float | None,
    observe: Callable[[Waiting], None],
    group: str,
) -> AbstractContextManager[Lease | None]:
    """Hold a lock of the cluster under the name in the record."""
    if timeout_s is None:
        return nullcontext()
    from reconciler.kafka.lock import Holder, hold_lock

    author = record.author
    holder = Holder(
        author.user,
        author.host,
        author.pid,
        since=f"{record.started:%Y-%m-%dT%H:%M:%SZ}",
        fingerprint=record.fingerprint[:12],
        commit=(record.commit or "")[:12],
    )
    return hold_lock(connection, holder, group=group, patience_s=timeout_s, observe=observe)
