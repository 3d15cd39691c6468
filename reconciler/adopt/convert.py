"""Other tools' files as an estate: judged like any spec, factored and grouped like a cluster."""

from __future__ import annotations

from collections import defaultdict
from types import MappingProxyType
from typing import TYPE_CHECKING

from reconciler.adopt.adoption import Adoption, Wish
from reconciler.adopt.clusters import describe_factored, write_clusters
from reconciler.adopt.converters.julie import read_topologies
from reconciler.adopt.converters.kafka_gitops import read_state_files
from reconciler.adopt.converters.resources import read_resources
from reconciler.adopt.converters.source import read_source
from reconciler.adopt.converters.topicctl import read_topicctl
from reconciler.adopt.express import choose_profile, express, inherit
from reconciler.adopt.factor import factor
from reconciler.adopt.lay_out import place_documents
from reconciler.adopt.spelling import render_topic
from reconciler.adopt.wishes import MIN_INSYNC
from reconciler.errors import Location, sort_findings
from reconciler.model import TopicSpec
from reconciler.spec.clusters import SANDBOX
from reconciler.spec.configs import catalogue as choose_catalogue
from reconciler.spec.names import check_name, find_collisions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from reconciler.adopt.converters.source import ForeignTopic, Source
    from reconciler.adopt.staging import Staging
    from reconciler.spec import Estate
    from reconciler.spec.configs import Catalogue

TOOLS: Mapping[str, Callable[[Source], None]] = MappingProxyType(
    {
        "jikkou": read_resources,
        "julie": read_topologies,
        "kafka-gitops": read_state_files,
        "strimzi": read_resources,
        "topicctl": read_topicctl,
    }
)

Copies = dict[str | None, "tuple[Wish, ForeignTopic]"]
"""A topic by the clusters that it is written for; None stands for every cluster."""


def convert_files(staging: Staging, tool: str, path: Path) -> Adoption:
    """Convert the files of another tool; topics that the estate has already are kept.

    Errors: UsageError and SpecError for files that cannot be read.
    """
    source = read_source(path)
    TOOLS[tool](source)
    estate = staging.change({})
    known = set(staging.texts)
    catalogue = choose_catalogue(None)
    topics = _collect(source, catalogue, {topic.name for topic in estate.written})
    estate = _declare(staging, estate, source, topics, catalogue)
    documents = {
        name: render_topic(_make_document(copies, estate, catalogue))
        for name, copies in topics.items()
    }
    written = {t.name: staging.relative(t.where.file) for t in estate.written}
    staging.change(place_documents(documents, written, staging.texts))
    return Adoption(
        texts=staging.changed,
        created=tuple(sorted(set(staging.changed) - known)),
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
        elif (wish := _judge(topic, source, catalogue)) is not None:
            topics[topic.name][topic.cluster] = (wish, topic)
    for group in find_collisions([*topics, *written]):
        for name in [name for name in group if name not in written][not written & {*group} :]:
            where = next(iter(topics.pop(name).values()))[1].where
            source.note(f"{name} collides with {group[0]} in metrics", where, "rename one of them")
    return dict(sorted(topics.items()))


def _judge(topic: ForeignTopic, source: Source, catalogue: Catalogue) -> Wish | None:
    """Normalise a topic's configs; what is refused is left out, and a topic in doubt as a whole."""
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
    return Wish(topic.name, topic.partitions, topic.replication_factor, config, rows)


def _declare(
    staging: Staging,
    estate: Estate,
    source: Source,
    topics: Mapping[str, Copies],
    catalogue: Catalogue,
) -> Estate:
    """Put clusters, and what topics share where nothing is shared yet, into clusters.yaml."""
    is_bare = not estate.written and not estate.profiles and not estate.list_layers(SANDBOX, None)
    first = [next(iter(copies.values()))[0] for copies in topics.values()]
    shared = describe_factored(factor(first), catalogue) if is_bare else {}
    clusters = {n: entry for n, entry in source.clusters.items() if n not in estate.clusters}
    file = staging.clusters_file
    if not shared and not clusters:
        return estate
    return staging.change({file: write_clusters(staging.texts.get(file), shared, clusters)})


def _make_document(copies: Copies, estate: Estate, catalogue: Catalogue) -> dict[str, object]:
    """Say a topic once: as its first cluster has it, with overrides for the others."""
    (cluster, (wish, topic)), *others = copies.items()
    base = cluster or next(iter(estate.declared), SANDBOX)
    bases = {name: inherit(estate, base, name, catalogue) for name in (None, *estate.profiles)}
    profile, said = choose_profile(wish, bases, catalogue)
    document: dict[str, object] = {"topic": wish.name}
    if topic.description:
        document["description"] = topic.description
    if cluster is not None and set(estate.declared) - {*copies}:
        document["clusters"] = [*copies]
    if profile is not None:
        document["profile"] = profile
    document |= said
    if topic.absent:
        document["state"] = "absent"
    overrides = {name: express(other, _as_spec(wish), catalogue) for name, (other, _) in others}
    if overrides := {name: override for name, override in overrides.items() if override}:
        document["overrides"] = overrides
    return document


def _as_spec(wish: Wish) -> TopicSpec:
    counts = (wish.partitions, wish.replication_factor)
    if wish.assignment is not None:
        counts = (len(wish.assignment), len(wish.assignment[0]))
    return TopicSpec(wish.name, Location("", 1), *counts, config=wish.config)
