"""The same as the command line, in five calls: for scripts, and for the command line itself.

    estate = load_estate("topics")
    state = read_cluster(estate, "prod-eu")
    plan = build_plan(estate, "prod-eu", state)
    print(render_plan(plan))
    apply_plan(plan, estate)

Beside them, `read_snapshot` gives a state without a cluster, and `take_snapshot` one to keep.
Every call raises a ReconcilerError whose text is fit for a person; nothing prints.
"""

from __future__ import annotations

import time
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, assert_never

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from reconciler.adopt import Adoption
    from reconciler.apply import Applied, StepAnswered
    from reconciler.diff import TopicDiff
    from reconciler.kafka import Connection
    from reconciler.model import ClusterState, Plan, TopicSpec
    from reconciler.plan.explain import Matrix
    from reconciler.plan.weigh import Weigh
    from reconciler.spec import ClusterEntry, Estate

PlanFormat = Literal["text", "json", "markdown", "github"]


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
        planned = [
            diff.spec.name
            for diff in _diff(estate, cluster, specs, state)
            if diff.changes or diff.refusals or diff.notes
        ]
        return _identify(state, reader.read_topic_ids(state.topics.keys() & planned))


def take_snapshot(
    estate: Estate, cluster: str, *, bootstrap_servers: str | None = None
) -> ClusterState:
    """Read a cluster whole: the configs and the id of every topic, whether or not it has a spec.

    Errors: as `read_cluster`. Cost: 0.3 ms of CPU for each topic.
    """
    from reconciler.kafka import KafkaReader

    with open_connection(estate, cluster, bootstrap_servers) as connection:
        reader = KafkaReader(connection)
        reader.check_rights([], for_apply=False)
        state = reader.read_cluster()
        state = _identify(state, reader.read_topic_ids(state.topics.keys()))
    return replace(state, kafka_version=find_cluster(estate, cluster).kafka_version)


def read_snapshot(path: str | Path) -> ClusterState:
    """Read a snapshot file: a state that needs no cluster. What it leaves out is healthy.

    Errors: SnapshotError with everything that is wrong with the file.
    """
    from reconciler.snapshot import read_snapshot as read

    return read(Path(path))


def write_snapshot(state: ClusterState, path: str | Path) -> None:
    """Write a state as a snapshot file: whole, or not at all. Errors: SnapshotError."""
    from reconciler.snapshot import write_snapshot as write

    write(state, Path(path))


def adopt_cluster(
    path: str | Path,
    cluster: str,
    *,
    bootstrap_servers: str | None = None,
    against: str | Path | None = None,
    assignments: bool = False,
    topics: str = "*",
) -> Adoption:
    """Make the texts of an estate whose plan on a cluster is empty; nothing is written yet.

    `path` may hold an estate, whose topics are kept and amended; `against` reads a snapshot.
    Errors: as `load_estate` and `take_snapshot`; UsageError where the cluster's address is unknown.
    """
    from reconciler import adopt as stage

    request = stage.Request(cluster, topics, assignments, bootstrap_servers)
    with stage.open_staging(Path(path)) as staging:
        estate = staging.change({})
        if against is not None:
            state = read_snapshot(against)
        else:
            state = _read_for_adoption(estate, Path(path), cluster, bootstrap_servers)
        if cluster in estate.clusters:
            _refuse_other_cluster(estate.clusters[cluster], state)
        return stage.adopt_cluster(staging, state, request)


def convert_files(tool: str, source: str | Path, path: str | Path) -> Adoption:
    """Make the texts of an estate out of another tool's files; nothing is written yet."""
    from reconciler import adopt as stage

    with stage.open_staging(Path(path)) as staging:
        return stage.convert_files(staging, tool, Path(source))


def write_adoption(adoption: Adoption, path: str | Path) -> None:
    """Write the files of an adoption into its estate, each whole or not at all."""
    from reconciler.adopt import write_texts

    write_texts(Path(path), adoption.texts)


def build_plan(
    estate: Estate,
    cluster: str,
    state: ClusterState,
    *,
    topics: str = "*",
    weigh: Weigh = "count",
) -> Plan:
    """Plan what would change on a cluster in a given state. Same input, same plan.

    `topics` is a glob of topic names; the others are neither planned nor reported. `weigh` says
    whether the cluster is levelled by the count of replicas, or by their size or rate, which only
    a snapshot knows.
    Errors: UsageError where nothing is known to weigh by; ClusterError where the state is another
    cluster's than the one that the estate expects.
    """
    from reconciler import plan as stage

    entry = find_cluster(estate, cluster)
    _refuse_other_cluster(entry, state)
    _refuse_blank_scale(state, weigh)
    specs = [spec for spec in estate.topics_for(cluster) if fnmatchcase(spec.name, topics)]
    if specs:
        state = _assume_defaults(entry, state)
    return stage.build_plan(
        cluster,
        _diff(estate, cluster, specs, state),
        state,
        excluded=entry.exclude_brokers,
        placing=stage.Placing(entry.strategy, entry.capacity, weigh),
        ignored=_list_ignored(entry, state, topics),
        files=len({spec.location.file for spec in specs}),
        notes=(*estate.findings, *state.notes),
    )


def render_plan(
    plan: Plan,
    format: PlanFormat = "text",  # noqa: A002
    *,
    colour: bool = False,
    saved: str | None = None,
) -> str:
    """Render a plan: text for people, canonical JSON, a comment, or annotations of GitHub.

    `saved` is where the plan is kept, which a comment then points to.
    """
    from reconciler.plan import encode_plan, render_text

    match format:
        case "json":
            return encode_plan(plan)
        case "markdown":
            from reconciler.plan.markdown import render_markdown

            return render_markdown(plan, saved=saved)
        case "github":
            from reconciler.plan.github import render_github

            return render_github(plan)
        case "text":
            return render_text(plan, colour=colour)
        case _:
            assert_never(format)


def explain_topic(
    estate: Estate, cluster: str, state: ClusterState, plan: Plan, topic: str
) -> Matrix:
    """Explain where a plan puts one topic, and why: a value to be rendered as text or picture.

    Errors: UsageError where neither the plan nor the cluster has such a topic.
    """
    from difflib import get_close_matches

    from reconciler.errors import UsageError
    from reconciler.plan import explain as stage

    known = {*state.topics, *(planned.name for planned in plan.topics)}
    if topic not in known:
        near = get_close_matches(topic, sorted(known), n=1)
        meant = f"; did you mean {near[0]}?" if near else ""
        raise UsageError(f"{topic!r} is neither in the plan nor on {cluster}{meant}")
    spec = next((s for s in estate.topics_for(cluster) if s.name == topic), None)
    excluded = find_cluster(estate, cluster).exclude_brokers
    return stage.explain_topic(topic, plan, state, spec=spec, excluded=excluded)


def render_explanation(matrix: Matrix, *, width: int = 120, colour: bool = False) -> str:
    """Render an explanation as text, no line wider than so many characters."""
    from reconciler.plan.explain import render_matrix

    return render_matrix(matrix, width=width, colour=colour)


def draw_explanation(matrix: Matrix) -> str:
    """Draw an explanation as an SVG document that stands alone."""
    from reconciler.plan.explain import draw_matrix

    return draw_matrix(matrix)


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


def _refuse_blank_scale(state: ClusterState, weigh: Weigh) -> None:
    from reconciler.errors import UsageError
    from reconciler.plan.weigh import Scale

    if Scale(state, weigh).is_blank:
        raise UsageError(f"no {weigh} is known of any partition; plan --against a snapshot with it")


def _read_for_adoption(
    estate: Estate, path: Path, cluster: str, bootstrap_servers: str | None
) -> ClusterState:
    """Read a cluster whole, be it one that clusters.yaml does not have yet."""
    from reconciler.errors import Location, UsageError
    from reconciler.kafka import KafkaReader, connect
    from reconciler.spec import ClusterEntry

    if cluster in estate.clusters:
        return take_snapshot(estate, cluster, bootstrap_servers=bootstrap_servers)
    if bootstrap_servers is None:
        way_out = "name it there, or say --bootstrap-servers or --against"
        raise UsageError(f"clusters.yaml has no cluster {cluster!r}; {way_out}")
    entry = ClusterEntry(cluster, Location(str(path / "clusters.yaml"), 1))
    with connect(entry, bootstrap_servers=bootstrap_servers) as connection:
        reader = KafkaReader(connection)
        reader.check_rights([], for_apply=False)
        return reader.read_cluster()


def _diff(
    estate: Estate, cluster: str, specs: Iterable[TopicSpec], state: ClusterState
) -> tuple[TopicDiff, ...]:
    from reconciler.diff import diff_topics
    from reconciler.spec.configs import catalogue

    entry = find_cluster(estate, cluster)
    return diff_topics(specs, state, catalogue(entry.kafka_version), entry.exclude_brokers)


def _refuse_other_cluster(entry: ClusterEntry, state: ClusterState) -> None:
    """Refuse what a connection would have refused already, had there been one."""
    from reconciler.errors import ClusterError, Finding

    if entry.cluster_id and state.cluster_id and entry.cluster_id != state.cluster_id:
        what = (
            f"this is cluster {state.cluster_id}, and {entry.name} is expected to be "
            f"{entry.cluster_id}"
        )
        way_out = f"take a snapshot of {entry.name}, or correct cluster_id in clusters.yaml"
        raise ClusterError([Finding("cluster-id", what, way_out, entry.location)])


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
