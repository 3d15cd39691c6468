"""From an estate and a cluster to a plan."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.api.connections import find_cluster, open_connection, refuse_other_cluster
from reconciler.api.snapshots import identify_topics

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from reconciler.api.connections import Wishes
    from reconciler.diff import TopicDiff
    from reconciler.errors import Finding
    from reconciler.model import ClusterState, Commit, Plan, TopicSpec
    from reconciler.plan.weigh import Weigh
    from reconciler.spec import ClusterEntry, Estate
    from reconciler.spec.changes import Changes

LEFT_SHOWN = 10


def load_estate(path: str | Path = "topics") -> Estate:
    """Read and check every spec below `path`, without a cluster.

    Errors: SpecError with every finding; UsageError where the path does not exist.
    """
    from reconciler.spec import load_estate as load

    return load(Path(path))


def read_cluster(
    estate: Estate,
    cluster: str,
    *,
    bootstrap_servers: str | None = None,
    client: Mapping[str, str] | None = None,
) -> ClusterState:
    """Read a cluster's brokers and topics, configs of the estate's topics included.

    `bootstrap_servers` overrides what clusters.yaml says, and `client` replaces its client
    properties. Errors: UsageError for a cluster that the estate does not name, ClusterError where
    it cannot be read or grants too little.
    """
    from reconciler.kafka import KafkaReader

    specs = estate.topics_for(cluster)
    names = [spec.name for spec in specs]
    with open_connection(estate, cluster, bootstrap_servers, client) as connection:
        reader = KafkaReader(connection)
        reader.check_rights(names, for_apply=False)
        state = reader.read_cluster(config_of=names)
        diffs = _diff(estate, cluster, specs, state)
        state = reader.confirm(state, *_list_doubtful(diffs))
        state = replace(state, usage=reader.read_usage(_list_doomed(estate, cluster, state)))
        planned = [d.spec.name for d in diffs if d.changes or d.refusals or d.notes]
        return identify_topics(state, reader.read_topic_ids(state.topics.keys() & planned))


def _list_doubtful(diffs: Iterable[TopicDiff]) -> tuple[list[str], list[str]]:
    """List the topics with more replicas than wished, and those whose overrides are to change."""
    from reconciler.diff import wished_replication

    longer, overridden = [], []
    for diff in diffs:
        if diff.state is None:
            continue
        fields = {change.path.partition(".")[0] for change in diff.changes}
        most = max(diff.state.replication_factors, default=0)
        if most > (wished_replication(diff.spec) or most):
            longer.append(diff.spec.name)
        if diff.state.config and fields & {"config", "topic"}:
            overridden.append(diff.spec.name)
    return longer, overridden


def _list_doomed(estate: Estate, cluster: str, state: ClusterState) -> list[str]:
    """List the topics that are to be deleted, where any may be: only those are asked about."""
    if not find_cluster(estate, cluster).guards.max_deletes:
        return []
    specs = estate.topics_for(cluster)
    return [spec.name for spec in specs if spec.absent and spec.name in state.topics]


def build_plan(
    estate: Wishes,
    cluster: str,
    state: ClusterState,
    *,
    topics: str = "*",
    changes: Changes | None = None,
    commit: Commit | None = None,
    weigh: Weigh = "count",
) -> Plan:
    """Plan what would change on a cluster in a given state. Same input, same plan.

    `topics` is a glob of topic names; the others are neither planned nor reported. With `changes`
    only topics whose files changed are planned; the others are still placed beside. `commit` is
    kept in the plan. `weigh` says whether the cluster is levelled by the count of replicas, or by
    their size or rate, which only a snapshot knows.
    Errors: UsageError where nothing is known to weigh by; ClusterError where the state is another
    cluster's than the one that the estate expects.
    """
    from reconciler import plan as stage
    from reconciler.model import Scope

    entry = find_cluster(estate, cluster)
    refuse_other_cluster(entry, state)
    _refuse_blank_scale(state, weigh)
    every = [spec for spec in estate.topics_for(cluster) if fnmatchcase(spec.name, topics)]
    specs = [spec for spec in every if changes is None or changes.touch(spec.location.file)]
    if specs:
        state = _assume_defaults(entry, state)
    diffs = _diff(estate, cluster, specs, state)
    plan = stage.build_plan(
        cluster,
        diffs,
        state,
        excluded=entry.exclude_brokers,
        placing=stage.Placing(entry.strategy, entry.capacity, weigh),
        ignored=[*_list_ignored(entry, state, topics), *(spec.name for spec in every)],
        files=len({spec.location.file for spec in specs}),
        notes=(*estate.findings, *state.notes),
    )
    scope = Scope(topics, changes.ref if changes else None)
    left_out = _note_scope(changes, len(specs), len(every), plan) if changes else ()
    files = {spec.location.file for spec in specs}
    kept = (note for note in plan.notes if _concerns(note, plan, entry, files))
    plan = replace(plan, commit=commit, scope=scope, notes=(*left_out, *kept))
    plan = replace(plan, notes=(*plan.notes, *_warn_of_strange_cluster(entry, plan)))
    live = _count_governed(entry, state)
    return stage.guard_plan(plan, diffs, entry.guards, live, entry.where("guards.max_changed"))


def _concerns(note: Finding, plan: Plan, entry: ClusterEntry, files: Collection[str]) -> bool:
    """Tell whether a note is about something in a plan. `files` are those of its topics.

    `validate` shows those of an estate, `snapshot` those of a cluster, whatever is planned.
    """
    from reconciler.errors import Severity
    from reconciler.plan import brokers_of, steps_of
    from reconciler.spec.configs import catalogue

    if note.severity is not Severity.NOTE:
        return True
    match note.rule:
        case "document-kind" | "topic-not-managed":
            return False  # a document that is no topic of any plan
        case "cluster-unknown":
            return note.where is None or note.where.file in files
        case "kafka-version-newer" | "kafka-version-older":
            return note.what == catalogue(entry.kafka_version).note
        case "cluster-rights":  # what else is there matters to placement
            return any(brokers_of(step) for topic in plan.topics for step in steps_of(topic))
        case _:
            return True


def _warn_of_strange_cluster(entry: ClusterEntry, plan: Plan) -> Iterator[Finding]:
    """Warn where topics go and nothing but an address says which cluster they go from."""
    from reconciler.errors import Finding, Severity
    from reconciler.plan import is_deletion

    if entry.cluster_id is None and any(map(is_deletion, plan.topics)):
        what = f"topics are to be deleted, and nothing says that this cluster is {entry.name}"
        way_out = f"write cluster_id: {plan.cluster_id} in clusters.yaml, if it is"
        yield Finding("cluster-id", what, way_out, entry.location, Severity.WARNING)


def _refuse_blank_scale(state: ClusterState, weigh: Weigh) -> None:
    from reconciler.errors import UsageError
    from reconciler.plan.weigh import Scale

    if Scale(state, weigh).is_blank:
        raise UsageError(f"no {weigh} is known of any partition; plan --against a snapshot with it")


def _diff(
    estate: Wishes, cluster: str, specs: Iterable[TopicSpec], state: ClusterState
) -> tuple[TopicDiff, ...]:
    from reconciler.diff import diff_topics, leave_unoffered, note_unoffered
    from reconciler.plan import judge_changes
    from reconciler.spec import Governor
    from reconciler.spec.configs import catalogue

    entry = find_cluster(estate, cluster)
    release, offered = catalogue(entry.kafka_version), entry.known_configs
    managed = leave_unoffered(state, offered)
    governor = Governor(entry, release)
    excluded, guards = entry.exclude_brokers, entry.guards
    diffs = diff_topics(specs, managed, release, excluded, guards, governor.allows)
    judged = judge_changes(diffs, managed, governor.judge)
    return note_unoffered(judged, state, offered)


def _assume_defaults(entry: ClusterEntry, state: ClusterState) -> ClusterState:
    """Give a state that tells no defaults those of its Kafka version, and say so.

    A cluster with a topic tells them wherever a spec is read for: only a snapshot written by hand
    does not.
    """
    from reconciler.errors import Finding, Severity
    from reconciler.spec.configs import catalogue

    if state.config_defaults or not state.topics:
        return state
    release = catalogue(state.kafka_version or entry.kafka_version)
    defaults = {n: key.default for n, key in release.keys.items() if key.default is not None}
    what = f"the snapshot tells no config_defaults, so those of Kafka {release.version} are assumed"
    note = Finding("snapshot-assumed", what, severity=Severity.NOTE)
    return replace(state, config_defaults=defaults, notes=(*state.notes, note))


def _count_governed(entry: ClusterEntry, state: ClusterState) -> int:
    """Count the live topics that guards hold shares against, whatever part is planned."""
    return sum(map(entry.minds, state.user_topics))


def _list_ignored(entry: ClusterEntry, state: ClusterState, topics: str) -> list[str]:
    """List the live topics that are nobody's business: ignored, others', or outside the glob."""
    return [name for name in state.topics if not (fnmatchcase(name, topics) and entry.minds(name))]


def _note_scope(changes: Changes, chosen: int, topics: int, plan: Plan) -> Iterator[Finding]:
    """Say that a plan leaves topics out, and which live ones the changed files hold no more."""
    from reconciler.errors import Finding, Severity

    if changes.everything:
        what = f"clusters.yaml changed since {changes.since}, so every topic is planned"
    else:
        what = (
            f"only files that changed since {changes.since} are planned: {chosen:,} of {topics:,}"
        )
        what += " topics"
    yield Finding("plan-scope", what, severity=Severity.NOTE)
    left = sorted(changes.left.intersection(plan.unmanaged))
    if left:
        more = f" and {len(left) - LEFT_SHOWN:,} more" if len(left) > LEFT_SHOWN else ""
        said = ", ".join(left[:LEFT_SHOWN]) + more
        what = f"live, and in no file since {changes.since}: {said}; nothing is done to them"
        way_out = (
            "where one is to be deleted, write it with state: absent, and allow that by "
            "guards.max_deletes"
        )
        yield Finding("plan-scope", what, way_out, severity=Severity.NOTE)
