"""An estate that follows a cluster: new topics are written, existing ones amended.

Every change is tried on the texts of the estate. The result is compared with the cluster by the
diff that plans use, so an import can promise that the next plan is empty.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from reconciler.adopt.clusters import describe_shared, write_clusters
from reconciler.adopt.desired import (
    NAMED,
    DesiredTopic,
    drop_look_alikes,
    list_adoptable,
    suggest_ignores,
)
from reconciler.adopt.draft import Adoption, EstateDraft
from reconciler.adopt.new_topics import add_topics
from reconciler.adopt.profiles import extract_shared
from reconciler.adopt.written_topics import claim_topics, restrict_topics, update_topics
from reconciler.changes.topics import TopicDiff, diff_topics
from reconciler.errors import Finding, Location, Severity, UsageError
from reconciler.model.cluster import ClusterState
from reconciler.model.plan import is_chosen
from reconciler.spec.catalogue import recognise_line, spell_line
from reconciler.spec.configs import Catalogue, choose_catalogue
from reconciler.spec.entry import SANDBOX, ClusterEntry
from reconciler.spec.estate import Estate
from reconciler.units import count


@dataclass(frozen=True, slots=True)
class AdoptionRequest:
    """The options of an import. `bootstrap_servers` goes into clusters.yaml for a new cluster.

    `ignore` adds to the patterns that clusters.yaml ignores for the cluster. `owner` becomes that
    of each topic without one.
    """

    cluster: str
    topics: str = "*"
    assignments: bool = False
    bootstrap_servers: str | None = None
    ignore: tuple[str, ...] = ()
    owner: str | None = None


def adopt_topics(draft: EstateDraft, state: ClusterState, request: AdoptionRequest) -> Adoption:
    """Write specs so that the next plan on a cluster in this state is empty.

    Errors: UsageError if clusters.yaml cannot be amended, or if there is no topic for an owner.
    """
    estate = draft.estate
    entry = estate.clusters.get(request.cluster)
    if entry is None and state.kafka_version is None:
        state = replace(state, kafka_version=_recognise_version(state))
    if request.assignments and entry and (why := entry.why_no_rows):
        raise UsageError(f"{why}, so its specs have no assignment; leave --assignments out")
    catalogue = entry.catalogue if entry else choose_catalogue(state.kafka_version)
    place = Location(draft.clusters_file, 1)
    named = entry or ClusterEntry(request.cluster, place, owns=estate.owns)
    named = replace(named, ignore=tuple(dict.fromkeys((*named.ignore, *request.ignore))))
    desired, notes = list_adoptable(
        state,
        catalogue,
        topics=request.topics,
        manages=named.manages,
        assignments=request.assignments,
    )
    others = estate.declared if entry is None else ()
    if request.owner is not None and not desired:
        raise UsageError(f"no live topic of {request.cluster} that a spec can describe is chosen")
    declared = _declare(draft, desired, request, named, state, catalogue)
    names = {wanted.name for wanted in desired}
    texts, kept = restrict_topics(draft, names, request.cluster, others)
    notes.extend(kept.values())
    joined = draft.change(declared | texts)
    own = {spec.name for spec in joined.estate.topics_for(request.cluster) if not spec.absent}
    desired = drop_look_alikes(desired, own, notes)
    before = {topic.name for topic in estate.written}
    amended, updated = _update(joined, desired, state, request, catalogue, notes)
    new = [wanted for wanted in desired if wanted.name not in before]
    notes.extend(suggest_ignores(wanted.name for wanted in new))
    done = amended.change(add_topics(new, amended, request.cluster, catalogue, request.owner))
    if request.owner is not None:
        claimed, kept = claim_topics(done, names, request.owner)
        notes.extend(kept.values())
        unowned = {t.name for t in done.estate.written if t.document.owner is None} & names
        updated = {*updated, *(unowned - kept.keys())}
        done = done.change(claimed)
    left = [d for d in _diff(done.estate, state, request, catalogue) if d.changes or d.refusals]
    explicit = [diff.spec.name for diff in left if diff.only_explicit and not diff.refusals]
    differing = [diff for diff in left if diff.spec.name not in explicit]
    return Adoption(
        texts=done.changed,
        created=tuple(sorted(done.changed.keys() - draft.texts)),
        written=tuple(wanted.name for wanted in new),
        updated=tuple(sorted(updated)),
        unchanged=len(desired) - len(new) - len(updated),
        differences=sum(bool(diff.changes) for diff in left),
        notes=(*notes, *map(_report_difference, differing), *_note_explicit(explicit)),
    )


def _recognise_version(state: ClusterState) -> str | None:
    """Return the Kafka version of a cluster by the configs that it shows; None if unclear."""
    shown = {key for topic in state.topics.values() for key in topic.config}
    line = recognise_line(shown.union(state.config_defaults))
    return None if line is None else spell_line(line)


def _declare(
    draft: EstateDraft,
    desired: Sequence[DesiredTopic],
    request: AdoptionRequest,
    named: ClusterEntry,
    state: ClusterState,
    catalogue: Catalogue,
) -> dict[str, str]:
    """Put the cluster, its `ignore`, and the shared values of its topics into clusters.yaml."""
    estate, cluster, file = draft.estate, request.cluster, draft.clusters_file
    is_new = cluster != SANDBOX and cluster not in estate.clusters
    # Defaults and profiles are only proposed for an estate without any: elsewhere, a new default
    # would change the topics of people.
    is_bare = not estate.written and not estate.profiles and not estate.has_layers(cluster)
    shared: dict[str, object] = {}
    if is_bare:
        shared = describe_shared(extract_shared(desired), catalogue)
    entry: dict[str, object] = {}
    if is_new and state.cluster_id:
        entry["cluster_id"] = state.cluster_id
    if is_new and state.kafka_version:
        entry["kafka_version"] = state.kafka_version
    if is_new and request.bootstrap_servers:
        entry["client"] = {"bootstrap.servers": request.bootstrap_servers}
    if request.ignore:
        entry["ignore"] = list(named.ignore)
    if not (shared or entry or is_new):
        return {}
    clusters = {cluster: entry} if entry or is_new else {}
    return {file: write_clusters(draft.texts.get(file), shared, clusters)}


def _update(
    draft: EstateDraft,
    desired: Sequence[DesiredTopic],
    state: ClusterState,
    request: AdoptionRequest,
    catalogue: Catalogue,
    notes: list[Finding],
) -> tuple[EstateDraft, Collection[str]]:
    """Amend written topics that differ from the cluster; add a note if this is impossible."""
    written = {topic.name: topic for topic in draft.estate.written}
    by_name = {wanted.name: wanted for wanted in desired}
    chosen = []
    for diff in _diff(draft.estate, state, request, catalogue):
        wanted = by_name.get(diff.spec.name)
        if not diff.changes or diff.state is None or diff.spec.absent or wanted is None:
            continue
        if diff.only_explicit:
            continue
        # What is written is in force, by the brokers' defaults, so it stays written.
        written_values = {key: diff.spec.config[key] for key in diff.explicit}
        wanted = replace(wanted, config={**wanted.config, **written_values})
        # A topic with manual rows keeps them, also without --assignments.
        if diff.spec.assignment is not None and wanted.replication_factor is not None:
            wanted = replace(wanted, assignment=diff.state.assignment)
        chosen.append((wanted, written[diff.spec.name]))
    texts, kept = update_topics(draft, chosen, request.cluster, catalogue)
    notes.extend(kept.values())
    return draft.change(texts), [w.name for w, _ in chosen if w.name not in kept]


def _diff(
    estate: Estate, state: ClusterState, request: AdoptionRequest, catalogue: Catalogue
) -> list[TopicDiff]:
    entry = estate.clusters[request.cluster]
    specs = [s for s in estate.topics_for(request.cluster) if is_chosen(s.name, request.topics)]
    return list(diff_topics(specs, state, catalogue, entry.exclude_brokers))


def _note_explicit(topics: Sequence[str]) -> Iterator[Finding]:
    """Note the topics whose written values are in force by the brokers' defaults alone."""
    if topics:
        named = f"{', '.join(topics[:NAMED])}" + (" and others" if len(topics) > NAMED else "")
        what = (
            f"values that are written for {count(len(topics), 'topic')} are in force by the "
            f"brokers' defaults: {named}"
        )
        way_out = "plan shows them, and apply sets them so that they stay in force"
        yield Finding("import-explicit", what, way_out, severity=Severity.NOTE)


def _report_difference(diff: TopicDiff) -> Finding:
    """Report a remaining difference, which a person must decide."""
    if diff.state is None:
        what = f"{diff.spec.name} is written and not on the cluster: a plan creates it"
        way_out = "remove its document if that is not meant"
    elif diff.spec.absent:
        what = f"{diff.spec.name} is on the cluster, and its spec says state: absent"
        way_out = "delete the topic, or remove the line"
    else:
        paths = ", ".join(change.path for change in diff.changes)
        what = f"{diff.spec.name} still differs in {paths or 'what a plan refuses'}"
        way_out = "plan shows how; decide which of the two is right"
    return Finding("import-differs", what, way_out, severity=Severity.WARNING)
