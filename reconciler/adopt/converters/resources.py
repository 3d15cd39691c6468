"""KafkaTopic resources of Strimzi and of Jikkou."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.adopt.converters.source import ForeignTopic, get_table, list_tables
from reconciler.spec.custom_resources import CLUSTER_LABEL
from reconciler.spec.values import Sequence, Table, Text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reconciler.adopt.converters.source import Source

_UNMANAGED = {
    "strimzi.io/managed": "false",
    "strimzi.io/pause-reconciliation": "true",
    "jikkou.io/ignore": "true",
}
_READ = {"topicName", "partitions", "replicas", "replicationFactor", "config", "configs"}


def read_resources(source: Source) -> None:
    """Read KafkaTopic and KafkaTopicList documents; ConfigMaps that topics refer to are merged."""
    maps = {
        str(get_table(document, "metadata").get("name")): get_table(document, "data")
        for document in source.documents
        if document.get("kind") == "ConfigMap"
    }
    for document in source.documents:
        for item in _list_items(document):
            kind = item.get("kind", "KafkaTopic")
            if kind == "KafkaTopic":
                _read_topic(item, maps, source)
            elif kind != "ConfigMap":
                source.note(f"a {kind!s} is no topic, and is passed over", item.where)


def _list_items(document: Table) -> Iterator[Table]:
    if document.get("kind") in {"KafkaTopicList", "List"}:
        yield from list_tables(document.get("items"))
    else:
        yield document


def _read_topic(item: Table, maps: dict[str, Table], source: Source) -> None:
    """Read one resource, unless it says that nobody manages it."""
    metadata, spec = get_table(item, "metadata"), get_table(item, "spec")
    name = spec.get("topicName", metadata.get("name"))
    if not isinstance(name, Text):
        source.note("a KafkaTopic has no name", item.where, "write metadata.name")
        return
    annotations, labels = get_table(metadata, "annotations"), get_table(metadata, "labels")
    for key, value in annotations.entries():  # what pauses the operator pauses us
        if _UNMANAGED.get(key) == str(value).lower():
            source.note(f"{name}: {key}: {value} says that it is not managed", key.where)
            return
    source.note_rest(annotations, {"jikkou.io/delete"}, f"{name}, annotations")
    source.note_rest(labels, {CLUSTER_LABEL}, f"{name}, labels")
    source.note_rest(metadata, {"name", "labels", "annotations", "namespace"}, name)
    source.note_rest(spec, {*_READ, "configMapRefs"}, name)
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
            absent=str(annotations.get("jikkou.io/delete", "")).lower() == "true",
        )
    )


def _read_references(
    spec: Table, maps: dict[str, Table], name: str, source: Source
) -> dict[str, str | tuple[str, ...]]:
    """Merge the ConfigMaps that a topic of Jikkou refers to."""
    config: dict[str, str | tuple[str, ...]] = {}
    references = spec.get("configMapRefs")
    for reference in references if isinstance(references, Sequence) else ():
        if str(reference) in maps:
            config |= source.read_config(maps[str(reference)], name)
        else:
            where = spec.key("configMapRefs").where
            way_out = "hand over the file that holds it, too"
            source.note(f"{name}: there is no ConfigMap {reference!s}", where, way_out)
    return config
