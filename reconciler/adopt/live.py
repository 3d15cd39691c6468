"""An estate brought to what a cluster has: new topics written, written ones amended.

Every round is tried on a copy of the estate, and the last one is held against the cluster with
the very diff that a plan uses.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from reconciler.adopt.adoption import Adoption
from reconciler.adopt.clusters import describe_factored, write_clusters
from reconciler.adopt.factor import factor
from reconciler.adopt.foreign import suggest_ignores
from reconciler.adopt.lay_out import lay_out
from reconciler.adopt.update import restrict_topics, update_topics
from reconciler.adopt.wishes import drop_look_alikes, list_wishes
from reconciler.diff import diff_topics, leave_unoffered
from reconciler.errors import Finding, Location, Severity
from reconciler.spec.clusters import SANDBOX, ClusterEntry
from reconciler.spec.configs import catalogue as choose_catalogue

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from reconciler.adopt.adoption import Wish
    from reconciler.adopt.staging import Staging
    from reconciler.diff import TopicDiff
    from reconciler.model import ClusterState
    from reconciler.spec import Estate
    from reconciler.spec.configs import Catalogue


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of an import. `bootstrap_servers` goes into clusters.yaml for a new cluster.

    `ignore` adds to the patterns that clusters.yaml ignores for the cluster.
    """

    cluster: str
    topics: str = "*"
    assignments: bool = False
    bootstrap_servers: str | None = None
    ignore: tuple[str, ...] = ()


def adopt_cluster(staging: Staging, state: ClusterState, request: Request) -> Adoption:
    """Write specs so that the next plan on a cluster in this state is empty.

    Errors: UsageError where clusters.yaml cannot be amended.
    """
    estate = staging.change({})
    known = set(staging.texts)
    catalogue = _choose_catalogue(estate, state, request.cluster)
    entry = estate.clusters.get(request.cluster)
    place = Location(staging.clusters_file, 1)
    named = entry or ClusterEntry(request.cluster, place, owns=estate.owns)
    named = replace(named, ignore=tuple(dict.fromkeys((*named.ignore, *request.ignore))))
    state = leave_unoffered(state, named.known_configs)
    wishes, notes = list_wishes(
        state,
        catalogue,
        topics=request.topics,
        minds=named.minds,
        assignments=request.assignments,
    )
    others = estate.declared if entry is None else ()
    declared = _declare(staging, estate, wishes, request, named, state, catalogue)
    names = {wish.name for wish in wishes}
    texts, kept = restrict_topics(staging, estate, names, request.cluster, others)
    notes.extend(kept.values())
    estate = staging.change(declared | texts)
    own = {spec.name for spec in estate.topics_for(request.cluster) if not spec.absent}
    wishes = drop_look_alikes(wishes, own, notes)
    before = {topic.name for topic in estate.written}
    estate, updated = _update(staging, estate, wishes, state, request, catalogue, notes)
    new = [wish for wish in wishes if wish.name not in before]
    notes.extend(suggest_ignores(wish.name for wish in new))
    estate = staging.change(lay_out(new, estate, request.cluster, catalogue, staging))
    left = _find_differences(estate, state, request, catalogue)
    return Adoption(
        texts=staging.changed,
        created=tuple(sorted(set(staging.changed) - known)),
        written=tuple(wish.name for wish in new),
        updated=tuple(sorted(updated)),
        unchanged=len(wishes) - len(new) - len(updated),
        differences=sum(bool(diff.changes) for diff in left),
        notes=(*notes, *map(_tell_difference, left)),
    )


def _choose_catalogue(estate: Estate, state: ClusterState, cluster: str) -> Catalogue:
    entry = estate.clusters.get(cluster)
    version = entry.kafka_version if entry else state.kafka_version
    return choose_catalogue(version)


def _declare(
    staging: Staging,
    estate: Estate,
    wishes: Sequence[Wish],
    request: Request,
    named: ClusterEntry,
    state: ClusterState,
    catalogue: Catalogue,
) -> dict[str, str]:
    """Put the cluster, what it ignores, and what its topics share, into clusters.yaml."""
    cluster, file = request.cluster, staging.clusters_file
    is_new = cluster != SANDBOX and cluster not in estate.clusters
    is_bare = not estate.written and not estate.profiles
    is_bare = is_bare and not estate.list_layers(cluster, None)
    shared: dict[str, object] = {}
    if is_bare:
        shared = describe_factored(factor(wishes), catalogue)
    entry = _describe_cluster(request, state) if is_new else {}
    if request.ignore:
        entry["ignore"] = list(named.ignore)
    if not (shared or entry or is_new):
        return {}
    clusters = {cluster: entry} if entry or is_new else {}
    return {file: write_clusters(staging.texts.get(file), shared, clusters)}


def _describe_cluster(request: Request, state: ClusterState) -> dict[str, object]:
    entry: dict[str, object] = {}
    if state.cluster_id:
        entry["cluster_id"] = state.cluster_id
    if state.kafka_version:
        entry["kafka_version"] = state.kafka_version
    if request.bootstrap_servers:
        entry["client"] = {"bootstrap.servers": request.bootstrap_servers}
    return entry


def _update(
    staging: Staging,
    estate: Estate,
    wishes: Sequence[Wish],
    state: ClusterState,
    request: Request,
    catalogue: Catalogue,
    notes: list[Finding],
) -> tuple[Estate, Collection[str]]:
    """Amend the topics that are written and differ; what cannot be amended is noted."""
    diffs = [
        diff
        for diff in _diff(estate, state, request, catalogue)
        if diff.changes and diff.state is not None and not diff.spec.absent
    ]
    written = {topic.name: topic for topic in estate.written}
    by_name = {wish.name: wish for wish in wishes}
    chosen = [
        (_keep_rows(by_name[diff.spec.name], diff), written[diff.spec.name])
        for diff in diffs
        if diff.spec.name in by_name
    ]
    texts, kept = update_topics(staging, estate, chosen, request.cluster, catalogue)
    notes.extend(kept.values())
    return staging.change(texts), [w.name for w, _ in chosen if w.name not in kept]


def _keep_rows(wish: Wish, diff: TopicDiff) -> Wish:
    """Let a topic that is written with its rows keep having rows, asked for or not."""
    if diff.spec.assignment is None or diff.state is None or wish.replication_factor is None:
        return wish
    return replace(wish, assignment=diff.state.assignment)


def _diff(
    estate: Estate, state: ClusterState, request: Request, catalogue: Catalogue
) -> list[TopicDiff]:
    entry = estate.clusters[request.cluster]
    specs = [s for s in estate.topics_for(request.cluster) if fnmatchcase(s.name, request.topics)]
    return list(diff_topics(specs, state, catalogue, entry.exclude_brokers))


def _find_differences(
    estate: Estate, state: ClusterState, request: Request, catalogue: Catalogue
) -> list[TopicDiff]:
    return [d for d in _diff(estate, state, request, catalogue) if d.changes or d.refusals]


def _tell_difference(diff: TopicDiff) -> Finding:
    """Say what a plan would still find, and that the import left it to a person."""
    if diff.state is None:
        what = f"{diff.spec.name} is written and not on the cluster: a plan creates it"
        way_out = "take its document out if that is not meant"
    elif diff.spec.absent:
        what = f"{diff.spec.name} is on the cluster, and its spec says state: absent"
        way_out = "delete the topic, or take the line out"
    else:
        paths = ", ".join(change.path for change in diff.changes)
        what = f"{diff.spec.name} still differs in {paths or 'what a plan refuses'}"
        way_out = "plan shows how; decide which of the two is right"
    return Finding("import-differs", what, way_out, severity=Severity.WARNING)
