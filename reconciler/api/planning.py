"""From an estate and a cluster to a plan."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.api.connections import (
    SpecSource,
    find_cluster,
    open_connection,
    refuse_other_cluster,
)
from reconciler.api.snapshots import identify_topics, read_snapshot

if TYPE_CHECKING:
    from reconciler.model.cluster import ClusterState, Place, Replicas, TopicSpec
    from reconciler.model.moves import DirectoryAim, LoadAim, LoadKind
    from reconciler.model.plan import Commit, Plan
    from reconciler.moves.compare import ComparedChoices
    from reconciler.planfile.approval import Approval
    from reconciler.spec.base import Base
    from reconciler.spec.changes import Changes
    from reconciler.spec.entry import ClusterEntry
    from reconciler.spec.estate import Estate


def load_estate(path: str | Path = "topics", base: Base | None = None) -> Estate:
    """Read and check every spec below `path`, without a cluster.

    `base` is what the estate is a request to: its guards are compared, and hold if it asks for it.
    Errors: SpecError with every finding; UsageError if the path does not exist.
    """
    from reconciler.api.estate_files import read_estate_files
    from reconciler.spec.estate import parse_estate

    return parse_estate(read_estate_files(Path(path)), str(Path(path)), base)


def read_cluster(
    estate: Estate,
    cluster: str,
    *,
    bootstrap_servers: str | None = None,
    client: Mapping[str, str] | None = None,
    with_sizes: bool = False,
    with_moves: bool = False,
    loads: Collection[LoadKind] = (),
    every_topic: bool = False,
    plan: Callable[[ClusterState], Plan] | None = None,
) -> ClusterState:
    """Read a cluster's brokers and topics, with the configs of those in the estate.

    `bootstrap_servers` overrides what clusters.yaml says, and `client` replaces its client
    properties. `with_sizes` also reads the sizes of partitions, for a plan that weighs by them;
    `with_moves` reads all that a plan of moves needs, which takes 10 s longer; if `plan`, called
    with the state so far, copies nothing, write rates are not measured, and it takes 1 s.
    `loads` and the rebalance that the cluster asks for say what is balanced: for writes and reads,
    `plan` is not called, and rates are more exact.
    `every_topic` reads the configs and ids of unmanaged topics as well, and so does a cluster whose
    own keys move them.
    Errors: UsageError for a cluster that the estate does not name, ClusterError if it cannot be
    read or grants too little.
    """
    from reconciler.changes.due import may_be_due
    from reconciler.diff.fields import list_doubts
    from reconciler.kafka.reader import KafkaReader
    from reconciler.model.requests import MOVING

    specs = estate.topics_for(cluster)
    names = [spec.name for spec in specs]
    entry = find_cluster(estate, cluster)
    drained = entry.drain_brokers if with_moves else frozenset()
    raises = with_moves and entry.internal_replication_factor is not None
    rebalances = with_moves and entry.rebalance is not None
    with open_connection(estate, cluster, bootstrap_servers, client) as connection:
        reader = KafkaReader(connection)
        reader.check_rights(names, for_apply=False)
        # What the keys of a cluster move, no file has to name.
        unnamed = drained or raises or rebalances or every_topic
        state = reader.read_cluster(config_of=None if unnamed else names)
        doubts = list_doubts(specs, state, entry.catalogue)
        # One broker's answer is not enough: shortly after a move it shows old and new replicas
        # together, and after a restart it can show configs of a deleted topic (Kafka 3.9 to 4.4).
        state = reader.confirm(state, doubts.longer, doubts.overridden)
        named = entry.exclude_brokers | entry.capacity.keys()
        if named - {broker.id for broker in state.brokers}:
            state = reader.read_fenced(state, named)
        if with_moves:
            state = reader.read_voters(state) if drained else state
            state = reader.check_requests(state)
            seen = reader.read_moves(state, interval_s=0)
            loads = {*loads, *(entry.rebalance.aim.by if entry.rebalance else ())}
            by_rates = any(kind.is_on_leaders for kind in loads)
            made = plan(seen).moves if plan and not by_rates else None
            # Write rates say whether copies end: nothing is copied, or nothing can be.
            unmovable = (made and not made.copies_data) or state.unoffered.intersection(MOVING)
            state = seen if unmovable else reader.read_moves(state, loads=loads)
        elif with_sizes or _lacks_living(state) or _weighs_sizes(entry, specs, state):
            state = reader.read_sizes(state)
        # Reading usage is slow: only topics to delete need it, if deletions are allowed, and those
        # that may be due.
        today = _read_date()
        used = [
            spec.name
            for spec in specs
            if spec.name in state.topics
            and (entry.guards.max_deletes if spec.absent else may_be_due(spec, today))
        ]
        state = replace(state, usage=reader.read_usage(used), read_on=today)
        # A topic in flight shows the rows that it is to have, so it may not differ from its spec.
        moving = {each.topic for each in state.reassignments if each.topic in names or unnamed}
        moving |= {
            name
            for name, topic in state.topics.items()
            if every_topic
            or rebalances
            or (raises and topic.internal)
            or any(not drained.isdisjoint(row) for row in topic.assignment)
        }
        created = any(spec.name not in state.topics for spec in specs if not spec.absent)
        asked = entry.drain_brokers or entry.internal_replication_factor or entry.rebalance
        if created or doubts.planned or moving or asked:
            state = state if with_moves else reader.check_requests(state)
        return identify_topics(state, reader.read_topic_ids({*doubts.planned, *moving}))


def _read_date() -> str:
    """Return the date in UTC, as specs write one."""
    return datetime.now(UTC).date().isoformat()


def _weighs_sizes(entry: ClusterEntry, specs: Iterable[TopicSpec], state: ClusterState) -> bool:
    """Return whether something is placed by bytes."""
    if not entry.weighed_by.is_on_replicas:
        return False
    live = {name: len(topic.assignment) for name, topic in state.topics.items()}
    return any(
        not spec.absent and (spec.name not in live or (spec.partitions or 0) > live[spec.name])
        for spec in specs
    )


def _lacks_living(state: ClusterState) -> bool:
    """Return whether a replica on a living broker is not in sync: its disk may have failed."""
    alive = {broker.id for broker in state.brokers if broker.alive}
    return any(
        alive.intersection(row).difference(synced)
        for topic in state.topics.values()
        for row, synced in zip(topic.assignment, topic.in_sync, strict=False)
    )


def read_for_moves(
    estate: Estate,
    cluster: str,
    bootstrap_servers: str | None,
    against: Path | None,
    plan: Callable[[ClusterState], Plan] | None,
    *,
    loads: Collection[LoadKind] = (),
) -> ClusterState:
    """Read what a plan of any moves needs, of every topic, from a cluster or a snapshot.

    If `plan` copies nothing, write rates are not measured. `loads` is that of `read_cluster`.
    Errors: those of `plan`, and as `read_cluster` and `read_snapshot`; UsageError for a snapshot
    with an address, or a cluster that the estate does not name.
    """
    from reconciler.errors import UsageError

    find_cluster(estate, cluster)
    if against is None:
        return read_cluster(
            estate,
            cluster,
            bootstrap_servers=bootstrap_servers,
            with_moves=True,
            loads=loads,
            every_topic=True,
            plan=plan,
        )
    if bootstrap_servers is not None:
        raise UsageError("--against reads a file; leave --bootstrap-servers out")
    return read_snapshot(against)


def build_plan(
    estate: SpecSource,
    cluster: str,
    state: ClusterState,
    *,
    topics: str = "*",
    changes: Changes | None = None,
    only: Collection[str] | None = None,
    commit: Commit | None = None,
    by: LoadKind | None = None,
    approved: Approval | None = None,
) -> Plan:
    """Plan what would change on a cluster in a given state. Same input, same plan.

    `topics` holds globs of names, separated by commas; other topics are neither planned nor
    reported. `changes` limits the plan to topics whose specs changed, and `only` to those that it
    names; the others count for placement, and as drift.
    `commit` is kept in the plan. `by` balances the cluster by the number of replicas, or by
    bytes or traffic, which the state must have; by default by what `balance` in clusters.yaml says,
    but not by traffic. `approved` proposes the rows of an approved plan:
    they are used if this gives exactly that plan, and if they are as good as new ones on levels 1
    to 4. Topics are due by the date of the state, or of the clock if it has none.
    Errors: UsageError if the state has no sizes or rates to weigh by; ClusterError if the state is
    of another cluster than the estate expects.
    """
    from reconciler.changes.plan import assemble_once, plan_cluster
    from reconciler.planfile.approval import keep_approved

    entry = find_cluster(estate, cluster)
    refuse_other_cluster(entry, state)
    plan = plan_cluster(
        entry,
        estate.topics_for(cluster),
        replace(state, read_on=state.read_on or _read_date()),
        topics=topics,
        changes=changes,
        only=only,
        by=by,
        remarks=estate.findings,
        settle=partial(keep_approved, approved) if approved else assemble_once,
    )
    return replace(plan, commit=commit)


def build_moves(
    estate: SpecSource,
    cluster: str,
    state: ClusterState,
    *,
    topics: str = "*",
    changes: Changes | None = None,
    commit: Commit | None = None,
    approved: Approval | None = None,
) -> Plan:
    """Plan the moves of existing replicas that the estate asks for. Same input, same plan.

    `topics`, `changes` and `commit` are those of `build_plan`. `approved` proposes the rows of an
    approved rebalance: they are used if this gives exactly that plan, and if they still bring
    inside its band every broker that new rows would. `state` is read with what is in
    flight, sizes and log directories; without them, the limits of the cluster refuse the plan. A
    rebalance is over by the date of the state, or of the clock if it has none.
    Errors: UsageError if the cluster allows no moves; ClusterError if the state is of another
    cluster than the estate expects.
    """
    from reconciler.moves.asked import plan_asked
    from reconciler.planfile.approval import keep_moved

    entry = find_cluster(estate, cluster)
    refuse_other_cluster(entry, state)
    plan = partial(
        plan_asked,
        entry,
        estate.topics_for(cluster),
        replace(state, read_on=state.read_on or _read_date()),
        topics=topics,
        changes=changes,
        commit=commit,
        remarks=estate.findings,
    )
    return keep_moved(approved, lambda rows: plan(approved=rows)) if approved else plan()


def plan_rebalance(
    estate: Estate,
    cluster: str,
    state: ClusterState,
    *,
    topics: str = "*",
    brokers: Collection[int] = (),
    max_bytes: int | None = None,
    offline: bool = False,
    aim: LoadAim | None = None,
) -> Plan:
    """Plan the fewest moves that make the replicas of topics and of the cluster as even as
    possible.

    `aim`, if given, brings the load of every broker into a band instead, with the fewest bytes
    copied. `topics` holds globs of live topics, `brokers` the only ones that take replicas (all
    that are able if there are none), `max_bytes` the most to copy. `offline` moves only replicas on
    failed log directories. `state` is read `with_moves`, of `every_topic`. Same input, same plan.
    Errors: UsageError for what the cluster does not allow or have; ClusterError if the state is of
    another cluster than the estate expects.
    """
    from reconciler.moves.rebalance import plan_rebalance

    entry = find_cluster(estate, cluster)
    refuse_other_cluster(entry, state)
    return plan_rebalance(
        entry,
        estate.topics_for(cluster),
        state,
        topics=topics,
        brokers=brokers,
        max_bytes=max_bytes,
        offline=offline,
        aim=aim,
    )


def plan_directories(
    estate: Estate, cluster: str, state: ClusterState, aim: DirectoryAim, *, topics: str = "*"
) -> Plan:
    """Plan the moves between the log directories of brokers that an aim needs.

    `state` is as for `plan_rebalance`. Errors: as there, and UsageError for a directory that is not
    there.
    """
    from reconciler.moves.directories import plan_directories

    entry = find_cluster(estate, cluster)
    refuse_other_cluster(entry, state)
    return plan_directories(entry, estate.topics_for(cluster), state, aim, topics=topics)


def compare_rebalances(
    estate: Estate,
    cluster: str,
    state: ClusterState,
    wanted: LoadAim,
    *,
    topics: str = "*",
    brokers: Collection[int] = (),
    max_bytes: int | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> ComparedChoices:
    """Plan a rebalance with each choice that there is, and say what each would cost.

    `wanted` is compared in several bands. `say` takes the options of each choice in turn. The
    rest, and the errors, are those of `plan_rebalance`.
    """
    from reconciler.moves.compare import compare_rebalances

    entry = find_cluster(estate, cluster)
    refuse_other_cluster(entry, state)
    return compare_rebalances(
        entry,
        estate.topics_for(cluster),
        state,
        wanted,
        topics=topics,
        brokers=brokers,
        max_bytes=max_bytes,
        say=say,
    )


def plan_rows(
    estate: Estate, cluster: str, state: ClusterState, rows: Mapping[Place, Replicas], source: str
) -> Plan:
    """Plan the moves to given rows, such as those that `read_rows` read from the file `source`.

    `state` is as for `plan_rebalance`. Errors: as there.
    """
    from reconciler.moves.reassignments import plan_rows

    entry = find_cluster(estate, cluster)
    refuse_other_cluster(entry, state)
    specs = {spec.name: spec for spec in estate.topics_for(cluster)}
    return plan_rows(entry, specs, state, rows, source)


def read_rows(path: Path) -> Mapping[Place, Replicas]:
    """Read a file of kafka-reassign-partitions. Errors: PlanFileError with every error in it."""
    from reconciler.moves.reassignments import decode_rows

    content = path.read_bytes()
    # PowerShell saves an output as UTF-16, with a byte order mark.
    encoding = "utf-16" if content.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    return decode_rows(content.decode(encoding, "replace"), str(path))


def plan_elections(
    estate: Estate, cluster: str, *, topics: str = "*", bootstrap_servers: str | None = None
) -> Plan:
    """Read a cluster, and plan the election of every preferred leader that does not lead and can.

    `topics` holds globs of live topics, in the estate or not; `bootstrap_servers` overrides what
    clusters.yaml says. Errors: UsageError for a cluster that the estate does not name; ClusterError
    if it cannot be read, grants too little, or is not the expected one.
    """
    from reconciler.kafka.reader import KafkaReader
    from reconciler.moves.elections import assemble_elections

    entry, specs = find_cluster(estate, cluster), estate.topics_for(cluster)
    with open_connection(estate, cluster, bootstrap_servers) as connection:
        reader = KafkaReader(connection)
        reader.check_rights([], for_apply=False)
        state = reader.read_cluster(config_of=())
        refuse_other_cluster(entry, state)
        state = reader.read_sizes(state) if _lacks_living(state) else state
        # Ids cost more than everything else together, so only those of the plan are read.
        planned = assemble_elections(entry, specs, state, topics=topics)
        state = reader.check_requests(state) if planned.topics else state
        ids = reader.read_topic_ids([topic.name for topic in planned.topics])
    return assemble_elections(entry, specs, identify_topics(state, ids), topics=topics)
