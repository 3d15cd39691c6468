"""Files of other tools as an estate: checked like any spec, grouped like topics of a cluster."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from types import MappingProxyType

from reconciler.adopt.clusters import describe_shared, write_clusters
from reconciler.adopt.converters.julie import read_topologies
from reconciler.adopt.converters.kafka_gitops import read_state_files
from reconciler.adopt.converters.resources import read_resources
from reconciler.adopt.converters.source import Follow, ForeignTopic, Source, read_source
from reconciler.adopt.converters.topicctl import read_topicctl
from reconciler.adopt.desired import MIN_INSYNC, DesiredTopic
from reconciler.adopt.draft import Adoption, EstateDraft
from reconciler.adopt.new_topics import add_documents
from reconciler.adopt.profiles import choose_profile, extract_shared, list_own_keys
from reconciler.adopt.spelling import render_topic
from reconciler.errors import Finding, Location, sort_findings
from reconciler.model.cluster import TopicSpec
from reconciler.spec.configs import Catalogue, choose_catalogue
from reconciler.spec.entry import SANDBOX
from reconciler.spec.estate import Estate
from reconciler.spec.names import check_name, find_collisions
from reconciler.units import count

TOOLS: Mapping[str, Callable[[Source], None]] = MappingProxyType(
    {
        "jikkou": read_resources,
        "julie": read_topologies,
        "kafka-gitops": read_state_files,
        "strimzi": read_resources,
        "topicctl": read_topicctl,
    }
)

Copies = dict[str | None, "tuple[DesiredTopic, ForeignTopic]"]
"""A topic by the clusters that it is written for; None means every cluster."""


def convert_topics(
    draft: EstateDraft, tool: str, files: Mapping[str, bytes | Finding], follow: Follow
) -> Adoption:
    """Convert the files of another tool; topics that are already in the estate are kept.

    In: the files by their paths as locations spell them. Errors: SpecError for unreadable files.
    """
    source = read_source(files, follow)
    TOOLS[tool](source)
    catalogue = choose_catalogue(None)
    topics = _collect(source, catalogue, {topic.name for topic in draft.estate.written})
    declared = draft.change(_declare(draft, source, topics, catalogue))
    documents = {
        name: render_topic(_make_document(copies, declared.estate, catalogue))
        for name, copies in topics.items()
    }
    done = declared.change(add_documents(documents, declared.find_files(), declared.texts))
    return Adoption(
        texts=done.changed,
        created=tuple(sorted(done.changed.keys() - draft.texts)),
        written=tuple(sorted(topics)),
        notes=sort_findings(source.notes),
    )


def _collect(source: Source, catalogue: Catalogue, written: set[str]) -> dict[str, Copies]:
    """Check every topic, and group the topics of one name by cluster."""
    topics: defaultdict[str, Copies] = defaultdict(dict)
    for topic in source.topics:
        copies = topics.get(topic.name, {})
        if topic.name in written:
            source.note(f"{topic.name} is in the estate already, and is kept", topic.where)
        elif topic.cluster in copies or (copies and None in {*copies, topic.cluster}):
            source.note(
                f"{topic.name} is written twice; the first is kept", topic.where, "check it"
            )
        elif (wanted := _judge(topic, source, catalogue)) is not None:
            topics[topic.name][topic.cluster] = (wanted, topic)
    # Kafka refuses the second of two names that metrics cannot distinguish: one of them is kept,
    # and a name that the estate already has goes first.
    for group in find_collisions([*topics, *written]):
        for name in [name for name in group if name not in written][not written & {*group} :]:
            where = next(iter(topics.pop(name).values()))[1].where
            source.note(f"{name} collides with {group[0]} in metrics", where, "rename one of them")
    return dict(sorted(topics.items()))


def _judge(topic: ForeignTopic, source: Source, catalogue: Catalogue) -> DesiredTopic | None:
    """Normalise the configs of a topic. Refused values are left out; None for a refused topic."""
    config: dict[str, str] = {}
    for key, raw in sorted(topic.config.items()):
        value = catalogue.normalise(key, raw if isinstance(raw, str) else list(raw), topic.where)
        if isinstance(value, str):
            config[key] = value
            continue
        for finding in value:
            source.note(f"{topic.name}: {finding.what}", topic.where, finding.way_out or "check it")
    rows = topic.assignment
    replicas = len(rows[0]) if rows else topic.replication_factor
    if replicas is not None and int(config.get(MIN_INSYNC, "0")) > replicas:
        least = config.pop(MIN_INSYNC)
        what = f"{topic.name}: {MIN_INSYNC} {least} exceeds its {count(replicas, 'replica')}"
        source.note(what, topic.where, f"it is left out; write at most {replicas}")
    wrong = [*check_name(topic.name, topic.where)]
    wrong += catalogue.check_together(config, lambda _: topic.where)
    for finding in wrong:
        source.note(f"{topic.name} stays out: {finding.what}", topic.where, finding.way_out)
    if wrong:
        return None
    return DesiredTopic(topic.name, topic.partitions, topic.replication_factor, config, rows)


def _declare(
    draft: EstateDraft, source: Source, topics: Mapping[str, Copies], catalogue: Catalogue
) -> dict[str, str]:
    """Put clusters into clusters.yaml, and shared values if the estate has none yet."""
    estate, file = draft.estate, draft.clusters_file
    is_bare = not estate.written and not estate.profiles and not estate.has_layers(SANDBOX)
    first = [next(iter(copies.values()))[0] for copies in topics.values()]
    shared = describe_shared(extract_shared(first), catalogue) if is_bare else {}
    clusters = {n: entry for n, entry in source.clusters.items() if n not in estate.clusters}
    if not shared and not clusters:
        return {}
    return {file: write_clusters(draft.texts.get(file), shared, clusters)}


def _make_document(copies: Copies, estate: Estate, catalogue: Catalogue) -> dict[str, object]:
    """Write a topic once: with the values of its first cluster, and overrides for the others."""
    (cluster, (wanted, topic)), *others = copies.items()
    base = cluster or next(iter(estate.declared), SANDBOX)
    bases = {name: estate.inherit(base, name, catalogue) for name in (None, *estate.profiles)}
    profile, said = choose_profile(wanted, bases, catalogue)
    document: dict[str, object] = {"topic": wanted.name}
    if topic.description:
        document["description"] = topic.description
    if topic.labels:
        document["labels"] = dict(topic.labels)
    if cluster is not None and set(estate.declared) - {*copies}:
        document["clusters"] = [*copies]
    if profile is not None:
        document["profile"] = profile
    document |= said
    if topic.absent:
        document["state"] = "absent"
    counts = (wanted.partitions, wanted.replication_factor)
    if (rows := wanted.assignment) is not None:
        counts = (len(rows), len(rows[0]))
    first = TopicSpec(wanted.name, Location("", 1), *counts, config=wanted.config)
    overrides = {name: list_own_keys(other, first, catalogue) for name, (other, _) in others}
    if overrides := {name: override for name, override in overrides.items() if override}:
        document["overrides"] = overrides
    return document
