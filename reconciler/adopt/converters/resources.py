"""KafkaTopic resources of Strimzi and of Jikkou."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.adopt.converters.source import ForeignTopic
from reconciler.spec.resource_form import (
    CLUSTER_LABEL,
    DELETED,
    LISTS,
    SPEC_KEYS,
    UNMANAGED,
    refuse_kind,
)
from reconciler.spec.values import YamlList, YamlMap, YamlText

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reconciler.adopt.converters.source import Source

_TOP = {"apiVersion", "kind", "metadata"}


def read_resources(source: Source) -> None:
    """Read KafkaTopic and KafkaTopicList documents; ConfigMaps that topics refer to are merged."""
    maps = {
        source.read_text(source.get_table(document, "metadata"), "name"): document
        for document in source.documents
        if document.get("kind") == "ConfigMap"
    }
    for document in source.documents:
        for item in _list_items(document, source):
            kind = source.read_text(item, "kind") or "KafkaTopic"
            refused = refuse_kind(item, kind, source.read_text(item, "apiVersion"))
            if refused is None:
                _read_topic(item, maps, source)
            elif kind != "ConfigMap":
                source.note(refused.what, item.where, refused.way_out)


def _list_items(document: YamlMap, source: Source) -> Iterator[YamlMap]:
    if document.get("kind") in LISTS:
        source.note_rest(document, {*_TOP, "items"}, str(document["kind"]))
        for item in source.list_tables(document, "items"):
            yield from _list_items(item, source)
    else:
        yield document


def _read_topic(item: YamlMap, maps: dict[str | None, YamlMap], source: Source) -> None:
    """Read one resource, unless an annotation marks it as unmanaged."""
    metadata, spec = source.get_table(item, "metadata"), source.get_table(item, "spec")
    name = spec.get("topicName", metadata.get("name"))
    if not isinstance(name, YamlText):
        source.note("a KafkaTopic has no name", item.where, "write metadata.name")
        return
    annotations = source.get_table(metadata, "annotations")
    labels = source.get_table(metadata, "labels")
    # An annotation that pauses the operator says that people change this topic by hand.
    for key, value in annotations.entries():
        if UNMANAGED.get(key) == str(value).lower():
            source.note(f"{name}: {key}: {value} says that it is not managed", key.where)
            return
    source.note_rest(item, {*_TOP, "spec", "status"}, name)
    source.note_rest(annotations, {DELETED}, f"{name}, annotations")
    source.note_rest(labels, {CLUSTER_LABEL}, f"{name}, labels")
    source.note_rest(metadata, {"name", "labels", "annotations", "namespace"}, name)
    source.note_rest(spec, {*SPEC_KEYS, "configMapRefs"}, name)
    replicas = "replicas" if "replicas" in spec else "replicationFactor"
    cluster = source.read_text(labels, CLUSTER_LABEL)
    if cluster is not None:
        source.clusters.setdefault(cluster, {})
    config = _read_references(spec, maps, name, source)
    for word in ("config", "configs"):
        config |= source.read_config(spec.get(word), name)
    source.topics.append(
        ForeignTopic(
            str(name),
            name.where,
            cluster,
            source.read_count(spec, "partitions", name),
            source.read_count(spec, replicas, name),
            config,
            absent=str(annotations.get(DELETED, "")).lower() == "true",
        )
    )


def _read_references(
    spec: YamlMap, maps: dict[str | None, YamlMap], name: str, source: Source
) -> dict[str, str | tuple[str, ...]]:
    """Merge the ConfigMaps that a topic of Jikkou refers to."""
    config: dict[str, str | tuple[str, ...]] = {}
    references = spec.get("configMapRefs")
    for reference in references if isinstance(references, YamlList) else ():
        if str(reference) in maps:
            config |= source.read_config(maps[str(reference)].get("data"), name)
        else:
            where = spec.key("configMapRefs").where
            way_out = "hand over the file that holds it, too"
            source.note(f"{name}: there is no ConfigMap {reference!s}", where, way_out)
    return config
