"""KafkaTopic documents of Strimzi and Jikkou, read as they stand.

Each becomes a topic document of ours, with every value still at its own place; from there on it
is checked like any other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.errors import Finding, Severity
from reconciler.spec.fields import suggest
from reconciler.spec.values import Sequence, Table, Text, Value, describe, quote

if TYPE_CHECKING:
    from collections.abc import Collection

CLUSTER_LABEL = "strimzi.io/cluster"
_UNMANAGED = (
    ("strimzi.io/managed", "false"),
    ("strimzi.io/pause-reconciliation", "true"),
    ("jikkou.io/ignore", "true"),
)
_DELETED = ("jikkou.io/delete", "true")
_LISTS = ("KafkaTopicList", "List")
# Keys of spec, and what they are called here.
_SPEC = {
    "topicName": "topic",
    "partitions": "partitions",
    "replicas": "replication_factor",
    "replicationFactor": "replication_factor",
    "config": "config",
    "configs": "config",
}


def is_resource(document: Table) -> bool:
    """Tell whether a document is written in the form of Kubernetes."""
    return "apiVersion" in document or "kind" in document


def read_resource(
    document: Table, clusters: Collection[str], findings: list[Finding]
) -> list[Table]:
    """Return the topics of a resource as documents of ours.

    What is wrong, or left alone, goes to `findings`. In: `clusters`, the names the estate has.
    """
    kind = document.get("kind")
    if kind in _LISTS:
        items = document.get("items")
        if not isinstance(items, Sequence):
            what = f"a {kind} holds a list of items"
            findings.append(
                Finding("document-form", what, "write its topics below items:", document.where)
            )
            return []
        topics = [item for item in items if isinstance(item, Table)]
        return [
            topic
            for item in topics
            for topic in _read_item(item, clusters, findings, str(item.get("kind", "KafkaTopic")))
        ]
    return _read_item(document, clusters, findings, str(kind))


def _read_item(
    document: Table, clusters: Collection[str], findings: list[Finding], kind: str
) -> list[Table]:
    version = document.get("apiVersion")
    if kind != "KafkaTopic" or not _is_known_version(version):
        what = f"a {quote(kind)} of {quote(str(version))} is no Kafka topic, and is passed over"
        findings.append(Finding("document-kind", what, "", document.where, severity=Severity.NOTE))
        return []
    metadata = document.get("metadata")
    if not isinstance(metadata, Table) or not isinstance(metadata.get("name"), Text):
        what = "a KafkaTopic has no metadata.name"
        findings.append(
            Finding("key-missing", what, "write metadata: {name: orders.events}", document.where)
        )
        return []
    if marker := _find_marker(metadata):
        what = f"the topic {quote(metadata['name'])} is not managed: {marker} says so"
        where = metadata["name"].where
        findings.append(Finding("topic-not-managed", what, "", where, severity=Severity.NOTE))
        return []
    return [_translate(document, metadata, clusters, findings)]


def _is_known_version(version: Value | None) -> bool:
    """Items of a KafkaTopicList may leave their version to the list."""
    return version is None or (
        isinstance(version, Text)
        and version.partition("/")[0].endswith(("strimzi.io", "jikkou.io"))
    )


def _find_marker(metadata: Table) -> str:
    annotations = metadata.get("annotations")
    if isinstance(annotations, Table):
        for name, value in _UNMANAGED:
            if str(annotations.get(name, "")).lower() == value:
                return f"{name}: {value}"
    return ""


def _translate(
    document: Table, metadata: Table, clusters: Collection[str], findings: list[Finding]
) -> Table:
    """Return the same topic in the keys of this format; values keep their places."""
    topic = _new_table(document)
    topic[_rename("topic", metadata.key("name"))] = metadata["name"]
    spec = document.get("spec", _new_table(document))
    if isinstance(spec, Table):
        for key, value in spec.entries():
            if key in _SPEC:
                _put(topic, _SPEC[key], key, value, findings)
            else:
                what = f"unknown key {quote(key)} in the spec of a KafkaTopic"
                way_out = suggest(key, _SPEC) or f"the keys here are {', '.join(sorted(_SPEC))}"
                findings.append(Finding("key-unknown", what, way_out, key.where))
    else:
        what = f"spec is {describe(spec)}, not a map"
        findings.append(
            Finding("value-form", what, "write 'key: value' lines below it", spec.where)
        )
    _restrict(topic, metadata, clusters, findings)
    annotations = metadata.get("annotations")
    if isinstance(annotations, Table) and str(annotations.get(_DELETED[0], "")) == _DELETED[1]:
        key = annotations.key(_DELETED[0])
        topic[_rename("state", key)] = _rename("absent", key)
    return topic


def _put(topic: Table, name: str, key: Text, value: Value, findings: list[Finding]) -> None:
    """Store a value under our name for its key; two keys that mean the same are a finding."""
    if name in topic and name != "topic":
        what = f"{quote(key)} says again what another key says"
        findings.append(Finding("yaml-duplicate-key", what, "keep one of them", key.where))
        return
    if name in topic:
        del topic[name]
    topic[_rename(name, key)] = value


def _restrict(
    topic: Table, metadata: Table, clusters: Collection[str], findings: list[Finding]
) -> None:
    """Let the label of a cluster that the estate has restrict the topic to it."""
    labels = metadata.get("labels")
    label = labels.get(CLUSTER_LABEL) if isinstance(labels, Table) else None
    if not isinstance(label, Text):
        return
    if label not in clusters:
        what = f"{CLUSTER_LABEL} names {quote(label)}, no cluster of this estate"
        way_out = "the topic goes to every cluster"
        findings.append(
            Finding("cluster-unknown", what, way_out, label.where, severity=Severity.NOTE)
        )
        return
    names = Sequence([label])
    names.file, names.line, names.column = label.file, label.line, label.column
    topic[_rename("clusters", label)] = names


def _rename(name: str, at: Text) -> Text:
    """Return another word at the place of `at`."""
    text = Text(name)
    text.file, text.line, text.column = at.file, at.line, at.column
    text.quoted, text.tag = True, "str"
    return text


def _new_table(at: Table) -> Table:
    table = Table()
    table.file, table.line, table.column = at.file, at.line, at.column
    return table
