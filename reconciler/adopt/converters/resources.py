"""KafkaTopic resources of Strimzi and of Jikkou."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.adopt.converters.source import ForeignTopic, Source
from reconciler.spec.labels import is_label
from reconciler.spec.resources import (
    CLUSTER_LABEL,
    DELETED,
    LISTS,
    SPEC_KEYS,
    find_unmanaged,
    refuse_kind,
    translate,
)
from reconciler.spec.values import YamlList, YamlMap, YamlText

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
    """Read one resource in our own form, and note what a spec cannot say."""
    metadata, spec = source.get_table(item, "metadata"), source.get_table(item, "spec")
    topic, words, repeated = translate(item)
    name = topic.get("topic")
    if not isinstance(name, YamlText):
        source.note("a KafkaTopic has no name", item.where, "write metadata.name")
        return
    annotations = source.get_table(metadata, "annotations")
    labels = source.get_table(metadata, "labels")
    kept = {
        str(key): str(value)
        for key, value in topic.get("labels", {}).items()
        if is_label(str(key), str(value))
    }
    if marked := find_unmanaged(annotations):
        source.note(f"{name}: {': '.join(marked)} says that it is not managed", marked[0].where)
        return
    source.note_rest(item, {*_TOP, "spec", "status"}, name)
    source.note_rest(annotations, {DELETED}, f"{name}, annotations")
    source.note_rest(labels, {CLUSTER_LABEL, *kept}, f"{name}, labels")
    source.note_rest(metadata, {"name", "labels", "annotations", "namespace"}, name)
    source.note_rest(spec, {*SPEC_KEYS, "configMapRefs"}, name)
    for key in repeated:
        source.note(f"{name}: {key} repeats another key", key.where, "check it")
    cluster = next((str(label) for label in topic.get("clusters", ()) if label), None)
    if cluster is not None:
        source.clusters.setdefault(cluster, {})
    config = _read_references(spec, maps, name, source)
    config |= source.read_config(topic.get("config"), name)
    source.topics.append(
        ForeignTopic(
            str(name),
            name.where,
            cluster,
            source.read_count(topic, "partitions", name),
            source.read_count(
                topic, "replication_factor", name, words.get("replication_factor", "")
            ),
            config,
            labels=kept,
            absent="state" in topic,
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
            way_out = "also pass the file that contains it"
            source.note(f"{name}: there is no ConfigMap {reference!s}", where, way_out)
    return config
