"""The same as the command line, in five calls: for scripts, and for the command line itself.

    estate = load_estate("topics")
    state = read_cluster(estate, "prod-eu")
    plan = build_plan(estate, "prod-eu", state)
    print(render_plan(plan))
    apply_plan(plan, estate)

Every call raises a ReconcilerError whose text is fit for a person; nothing prints.
"""

from __future__ import annotations

import time
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from reconciler.apply import Applied, StepAnswered
    from reconciler.diff import TopicDiff
    from reconciler.kafka import Connection
    from reconciler.model import ClusterState, Plan, TopicSpec
    from reconciler.spec import ClusterEntry, Estate

PlanFormat = Literal["text", "json"]


def load_estate(path: str | Path = "topics") -> Estate:
    """Read and check every spec below `path`, without a cluster.

    Errors: SpecError with every finding; UsageError where the path does not exist.
    """
    from reconciler.spec import load_estate as load

    return load(Path(path))


def read_cluster(
    estate: Estate, cluster: str, *, bootstrap_servers: str | None = None
) -> ClusterState:
    """Read a cluster's brokers and topics, configs of the estate's topics included.

    `bootstrap_servers` goes before what clusters.yaml says. Errors: UsageError for a cluster that
    the estate does not name, ClusterError where it cannot be read or grants too little.
    """
    from reconciler.kafka import KafkaReader

    specs = estate.topics_for(cluster)
    names = [spec.name for spec in specs]
    with open_connection(estate, cluster, bootstrap_servers) as connection:
        reader = KafkaReader(connection)
        reader.check_rights(names, for_apply=False)
        state = reader.read_cluster(config_of=names)
        differing = [
            diff.spec.name for diff in _diff(estate, cluster, specs, state) if diff.changes
        ]
        return _identify(state, reader.read_topic_ids(state.topics.keys() & differing))


def build_plan(estate: Estate, cluster: str, state: ClusterState, *, topics: str = "*") -> Plan:
    """Plan what would change on a cluster in a given state. Same input, same plan.

    `topics` is a glob of topic names; the others are neither planned nor reported.
    """
    from reconciler import plan as stage

    entry = find_cluster(estate, cluster)
    specs = [spec for spec in estate.topics_for(cluster) if fnmatchcase(spec.name, topics)]
    return stage.build_plan(
        cluster,
        _diff(estate, cluster, specs, state),
        state,
        excluded=entry.exclude_brokers,
        ignored=_list_ignored(entry, state, topics),
        files=len({spec.location.file for spec in specs}),
        notes=(*estate.findings, *state.notes),
    )


def render_plan(plan: Plan, format: PlanFormat = "text", *, colour: bool = False) -> str:  # noqa: A002
    """Render a plan as text for people, or as canonical JSON."""
    from reconciler.plan import encode_plan, render_text

    return encode_plan(plan) if format == "json" else render_text(plan, colour=colour)


def apply_plan(
    plan: Plan,
    estate: Estate,
    *,
    bootstrap_servers: str | None = None,
    skip_refused: bool = False,
    observe: Callable[[StepAnswered], None] = lambda _: None,
) -> Applied:
    """Make the changes of a plan on its cluster, and nothing else.

    Returns an outcome for every topic. Errors: RefusedPlanError, StalePlanError and ClusterError,
    all of them before anything is written.
    """
    from reconciler import apply as stage
    from reconciler.kafka import KafkaReader, KafkaWriter
    from reconciler.plan import steps_of

    names = [topic.name for topic in plan.topics if steps_of(topic)]
    with open_connection(estate, plan.cluster, bootstrap_servers) as connection:
        reader = KafkaReader(connection)
        reader.check_rights(names, for_apply=True)
        return stage.apply_plan(
            plan, reader, KafkaWriter(connection), time, observe, skip_refused=skip_refused
        )


def find_cluster(estate: Estate, cluster: str) -> ClusterEntry:
    """Return a cluster's entry. Errors: UsageError that lists the clusters there are."""
    from reconciler.errors import UsageError

    entry = estate.clusters.get(cluster)
    if entry is None:
        known = ", ".join(sorted(estate.clusters))
        raise UsageError(f"no cluster is called {cluster!r}; the estate knows: {known}")
    return entry


def open_connection(
    estate: Estate, cluster: str, bootstrap_servers: str | None = None
) -> Connection:
    """Connect to a cluster of the estate; `sandbox` is the one that runs on this machine."""
    from reconciler.kafka import connect
    from reconciler.spec.estate import SANDBOX

    entry = find_cluster(estate, cluster)
    if cluster == SANDBOX and bootstrap_servers is None:
        from reconciler.sandbox.control import require_sandbox

        bootstrap_servers = require_sandbox().bootstrap_servers
    return connect(entry, bootstrap_servers=bootstrap_servers)


def _diff(
    estate: Estate, cluster: str, specs: Iterable[TopicSpec], state: ClusterState
) -> tuple[TopicDiff, ...]:
    from reconciler.diff import diff_topics
    from reconciler.spec.configs import catalogue

    entry = find_cluster(estate, cluster)
    return diff_topics(specs, state, catalogue(entry.kafka_version), entry.exclude_brokers)


def _identify(state: ClusterState, ids: Mapping[str, str]) -> ClusterState:
    """Add topic ids: asked for only where a plan will rest on them."""
    named = {name: replace(state.topics[name], topic_id=ids[name]) for name in ids}
    return replace(state, topics=MappingProxyType({**state.topics, **named}))


def _list_ignored(entry: ClusterEntry, state: ClusterState, topics: str) -> list[str]:
    """List the live topics that are nobody's business: ignored, or outside the glob."""
    return [
        name
        for name in state.topics
        if not fnmatchcase(name, topics) or any(fnmatchcase(name, p) for p in entry.ignore)
    ]
