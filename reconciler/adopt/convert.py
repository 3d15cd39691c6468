"""Other tools' files as an estate: checked like any spec, grouped like the topics of a cluster."""

from __future__ import annotations

from collections import defaultdict
from types import MappingProxyType
from typing import TYPE_CHECKING

from reconciler.adopt.clusters import describe_shared, write_clusters
from reconciler.adopt.converters.julie import read_topologies
from reconciler.adopt.converters.kafka_gitops import read_state_files
from reconciler.adopt.converters.resources import read_resources
from reconciler.adopt.converters.source import read_source
from reconciler.adopt.converters.topicctl import read_topicctl
from reconciler.adopt.desired import MIN_INSYNC, DesiredTopic
from reconciler.adopt.draft import Adoption
from reconciler.adopt.new_topics import add_documents
from reconciler.adopt.profiles import choose_profile, extract_shared, list_own_keys
from reconciler.adopt.spelling import render_topic
from reconciler.errors import Location, sort_findings
from reconciler.model import TopicSpec
from reconciler.spec import SANDBOX, check_name, choose_catalogue, find_collisions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from reconciler.adopt.converters.source import Follow, ForeignTopic, Source
    from reconciler.adopt.draft import EstateDraft
    from reconciler.errors import Finding
    from reconciler.spec import Catalogue, Estate

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
    """Convert the files of another tool; topics that the estate has already are kept.

    In: the files by their paths as places spell them. Errors: SpecError for what cannot be read.
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
    """Judge every topic, and put those of one name together."""
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
    for group in find_collisions([*topics, *written]):
        for name in [name for name in group if name not in written][not written & {*group} :]:
            where = next(iter(topics.pop(name).values()))[1].where
            source.note(f"{name} collides with {group[0]} in metrics", where, "rename one of them")
    return dict(sorted(topics.items()))


def _judge(topic: ForeignTopic, source: Source, catalogue: Catalogue) -> DesiredTopic | None:
    """Normalise a topic's configs; what is refused is left out, and so is a topic in doubt."""
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
        what = (
            f"{topic.name}: {MIN_INSYNC} {config.pop(MIN_INSYNC)} exceeds its {replicas} replicas"
        )
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
    """Put clusters, and what topics share if nothing is shared yet, into clusters.yaml."""
    estate, file = draft.estate, draft.clusters_file
    is_bare = not estate.written and not estate.profiles and not estate.has_layers(SANDBOX)
    first = [next(iter(copies.values()))[0] for copies in topics.values()]
    shared = describe_shared(extract_shared(first), catalogue) if is_bare else {}
    clusters = {n: entry for n, entry in source.clusters.items() if n not in estate.clusters}
    if not shared and not clusters:
        return {}
    return {file: write_clusters(draft.texts.get(file), shared, clusters)}


def _make_document(copies: Copies, estate: Estate, catalogue: Catalogue) -> dict[str, object]:
    """Write a topic once: as on its first cluster, with overrides for the others."""
    (cluster, (wanted, topic)), *others = copies.items()
    base = cluster or next(iter(estate.declared), SANDBOX)
    bases = {name: estate.inherit(base, name, catalogue) for name in (None, *estate.profiles)}
    profile, said = choose_profile(wanted, bases, catalogue)
    document: dict[str, object] = {"topic": wanted.name}
    if topic.description:
        document["description"] = topic.description
    if cluster is not None and set(estate.declared) - {*copies}:
        document["clusters"] = [*copies]
    if profile is not None:
        document["profile"] = profile
    document |= said
    if topic.absent:
        document["state"] = "absent"
    overrides = {
        name: list_own_keys(other, _as_spec(wanted), catalogue) for name, (other, _) in others
    }
    if overrides := {name: override for name, override in overrides.items() if override}:
        document["overrides"] = overrides
    return document


def _as_spec(wanted: DesiredTopic) -> TopicSpec:
    counts = (wanted.partitions, wanted.replication_factor)
    if wanted.assignment is not None:
        counts = (len(wanted.assignment), len(wanted.assignment[0]))
    return TopicSpec(wanted.name, Location("", 1), *counts, config=wanted.config)
