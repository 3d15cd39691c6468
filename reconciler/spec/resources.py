"""KafkaTopic documents of Strimzi and Jikkou: each becomes a document in our own form here.

It is then checked like any other, and every value keeps its location. `import` translates with the
same function. Any key that is neither read nor one of Kubernetes is a finding. A document that
resembles a KafkaTopic and is none is also a finding.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import NamedTuple

from reconciler.errors import Finding, Severity
from reconciler.spec.declarations import list_keys
from reconciler.spec.fields import FieldError, fold_spelling, read_each, read_text, suggest
from reconciler.spec.forms import TopicDocument
from reconciler.spec.values import YamlList, YamlMap, YamlText, YamlValue, describe_yaml, quote

Read = tuple[YamlMap | None, list[Finding]]

CLUSTER_LABEL = "strimzi.io/cluster"
DELETED = "jikkou.io/delete"
_UNMANAGED: Mapping[str, str] = MappingProxyType(
    {
        "strimzi.io/managed": "false",
        "strimzi.io/pause-reconciliation": "true",
        "jikkou.io/ignore": "true",
    }
)
"""Annotations that leave a topic unmanaged, and the value that does so."""
LISTS = ("KafkaTopicList", "List")
SPEC_KEYS: Mapping[str, str] = MappingProxyType(
    {
        "topicName": "topic",
        "partitions": "partitions",
        "replicas": "replication_factor",
        "replicationFactor": "replication_factor",
        "config": "config",
        "configs": "config",
    }
)
"""Keys of spec, and our own names for them."""

_OWN_LABELS = ("strimzi.io", "jikkou.io", "kubernetes.io", "k8s.io")
"""Labels with such a prefix are for the software that reads them, and not labels of the team."""

OURS_ONLY = list_keys(TopicDocument).keys() - SPEC_KEYS.values() - {"labels"}
"""Keys of our format without an equivalent in a KafkaTopic."""

_FLAGS = (*_UNMANAGED, DELETED)
_PLACES = {CLUSTER_LABEL: "labels", **dict.fromkeys(_FLAGS, "annotations")}
_KINDS = ("KafkaTopic", "KafkaTopicList")
_GROUPS = ("kafka.strimzi.io", "kafka.jikkou.io")
# Tools with a kind Topic, by the group of its apiVersion; ns4kafka has none, only a version.
_OTHER_TOOLS = {
    "kafka": "Conduktor",
    "v1": "ns4kafka",
    "kafka.nais.io": "nais",
    "cluster.redpanda.com": "Redpanda's operator",
}
_NEAR = 0.9
"""Names this similar are one name with a typo. KafkaTopicClaim, another tool's kind, is at 0.80."""
_TOPIC_KEYS = ("apiVersion", "kind", "metadata", "spec", "status")
_LIST_KEYS = ("apiVersion", "kind", "metadata", "items")
# Source: ObjectMeta and ListMeta of the Kubernetes API, and what older servers print besides.
_META_KEYS = (
    *("name", "generateName", "namespace", "clusterName", "selfLink", "uid", "resourceVersion"),
    *("generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"),
    *("labels", "annotations", "ownerReferences", "finalizers", "managedFields"),
    *("continue", "remainingItemCount"),
)

# Other Kubernetes kinds also have these top-level keys: a kubeconfig has clusters.
_SHARED = {"clusters", "description", "owner", "state"}
_OURS = {fold_spelling(key) for key in list_keys(TopicDocument).keys() - _SHARED}


def is_resource(document: YamlMap) -> bool:
    """Return whether a document has the form of Kubernetes.

    If our own keys are next to `kind`, it is a topic in our own form with an unknown key.
    """
    if "apiVersion" not in document and "kind" not in document:
        return False
    return "metadata" in document or not any(fold_spelling(key) in _OURS for key in document)


def read_resource(document: YamlValue, default: str | None = None) -> Iterator[Read]:
    """Yield each topic of a resource as a document in our own form, and its findings.

    The topic is None if its name is unknown. In: `default`, the kind of list items that name none.
    """
    if not isinstance(document, YamlMap):
        what = f"an item of the list is {describe_yaml(document)}, not a map"
        way_out = "write its keys after the dash, or remove it"
        yield None, [Finding("document-form", what, way_out, document.where)]
        return
    written = [(key, document[key]) for key in ("kind", "apiVersion") if key in document]
    try:
        said = dict(read_each(written, lambda entry: (entry[0], read_text(entry[1], entry[0]))))
    except FieldError as error:
        yield None, list(error.findings)
        return
    kind = said.get("kind", default)
    if refused := refuse_kind(document, kind, said.get("apiVersion")):
        yield None, [refused]
    elif kind in LISTS:
        yield None, [*_check_list(document, str(kind))]
        items = document.get("items")
        for item in items if isinstance(items, YamlList) else ():
            yield from read_resource(item, "KafkaTopic" if kind != "List" else None)
    else:
        yield _read_topic(document)


def _read_topic(document: YamlMap) -> Read:
    """Return a KafkaTopic as a document in our own form, and its findings."""
    metadata = _find_map(document, "metadata")
    name = metadata.get("name")
    if not isinstance(name, YamlText):
        return None, _check_topic(document)
    if marked := find_unmanaged(_find_map(metadata, "annotations")):
        what = f"the topic {quote(name)} is not managed, because of {': '.join(marked).lower()}"
        return None, [Finding("topic-not-managed", what, "", name.where, Severity.NOTE)]
    findings = _check_topic(document)
    topic, _, repeated = translate(document)
    for key in repeated:
        what = f"{quote(key)} repeats another key"
        findings.append(Finding("yaml-duplicate-key", what, "keep one of them", key.where))
    return topic, findings


def find_unmanaged(annotations: YamlMap) -> tuple[YamlText, YamlText] | None:
    """Return the annotation that says that people change this topic by hand, if there is one."""
    for marker, value in _UNMANAGED.items():
        if str(annotations.get(marker, "")).lower() == value:
            return annotations.key(marker), annotations[marker]
    return None


class Translated(NamedTuple):
    """A KafkaTopic in our own form; `words` has its own names of our keys.

    `repeated` are keys that say again what another one says, and are not read.
    """

    topic: YamlMap
    words: Mapping[str, YamlText]
    repeated: tuple[YamlText, ...]


def translate(document: YamlMap) -> Translated:
    """Return a KafkaTopic with our own keys. Values keep their locations, and are not checked."""
    metadata, spec = _find_map(document, "metadata"), _find_map(document, "spec")
    topic, words, repeated = _new_table(document), {}, []
    if "name" in metadata:
        words["topic"] = metadata.key("name")
        topic[_rename("topic", words["topic"])] = metadata["name"]
    for key, item in spec.entries():
        ours = SPEC_KEYS.get(key)
        if ours is None:
            continue
        if ours in topic and ours != "topic":
            repeated.append(key)
            continue
        topic.pop(ours, None)  # topicName overrides metadata.name, and its own key has its location
        words[ours] = key
        topic[_rename(ours, key)] = item
    label = _find_map(metadata, "labels").get(CLUSTER_LABEL)
    if isinstance(label, YamlText) and label.tag != "null":
        names = YamlList([label])
        names.file, names.line, names.column = label.file, label.line, label.column
        topic[_rename("clusters", label)] = names
    if labels := _translate_labels(_find_map(metadata, "labels")):
        topic[_rename("labels", metadata.key("labels"))] = labels
    annotations = _find_map(metadata, "annotations")
    if str(annotations.get(DELETED, "")).lower() == "true":
        key = annotations.key(DELETED)
        topic[_rename("state", key)] = _rename("absent", key)
    return Translated(topic, words, tuple(repeated))


def _translate_labels(written: YamlMap) -> YamlMap:
    """Return the labels of the team; a value is text, also if it is not in quotes."""
    labels = _new_table(written)
    for key, value in written.entries():
        of_software = key.partition("/")[0].endswith(_OWN_LABELS) and "/" in key
        if isinstance(value, YamlText) and value.tag != "null" and not of_software:
            labels[key] = _rename(str(value), value)
    return labels


def _rename(name: str, at: YamlText) -> YamlText:
    """Return another word at the place of `at`."""
    text = YamlText(name)
    text.file, text.line, text.column = at.file, at.line, at.column
    text.quoted, text.tag = True, "str"
    return text


def _find_map(table: YamlMap, key: str) -> YamlMap:
    """Return the map below a key; an empty one if there is none."""
    found = table.get(key)
    return found if isinstance(found, YamlMap) else _new_table(table)


def _new_table(at: YamlMap) -> YamlMap:
    table = YamlMap()
    table.file, table.line, table.column = at.file, at.line, at.column
    return table


def refuse_kind(document: YamlMap, kind: str | None, version: str | None) -> Finding | None:
    """Return why a document is not read, or None if it is.

    In: its kind and apiVersion. An item of a list may leave its version to the list.
    """
    if kind is None:
        way_out = "write kind: KafkaTopic, or move everything else out of the estate"
        return Finding("key-missing", "the key kind is missing", way_out, document.where)
    group = (version or _GROUPS[0]).partition("/")[0]
    ours = f".{group}".endswith((".strimzi.io", ".jikkou.io"))
    if kind == "List" or (ours and kind in _KINDS):
        return None
    kinds = {fold_spelling(name): name for name in _KINDS}
    meant = get_close_matches(fold_spelling(kind), kinds, n=1, cutoff=_NEAR)
    if ours and meant:
        what, way_out = f"there is no kind {quote(kind)}", f"did you mean {kinds[meant[0]]}?"
        return Finding("document-kind", what, way_out, document["kind"].where)
    if version is None:
        what = f"a {quote(kind)} has no apiVersion"
        way_out = "write it, or kind: KafkaTopic if this is a topic"
        return Finding("key-missing", what, way_out, document.where)
    if meant and (groups := get_close_matches(group, _GROUPS, n=1, cutoff=_NEAR)):
        what = f"there is no {quote(kind)} of {quote(version)}"
        way_out = f"did you mean {groups[0]}?"
        return Finding("document-kind", what, way_out, document["apiVersion"].where)
    if kind in _KINDS:
        what = f"the {kind} of {quote(version)} is not read, and its topics are not managed"
        way_out = "write it in the form of Strimzi, of Jikkou or of this estate"
        return Finding("document-kind", what, way_out, document.where, Severity.WARNING)
    if fold_spelling(kind) == "topic":
        owner = _OTHER_TOOLS.get(group, "another tool")
        what = f"the {kind} of {quote(version)} is a topic of {owner}, is skipped and not managed"
        way_out = (
            f"write it in the form of Strimzi, of Jikkou or of this estate; or leave it to {owner}"
        )
        return Finding("document-kind", what, way_out, document.where, Severity.WARNING)
    what = f"a {quote(kind)} of {quote(version)} is not a Kafka topic, and is skipped"
    return Finding("document-kind", what, "", document.where, Severity.NOTE)


def _check_list(document: YamlMap, kind: str) -> Iterator[Finding]:
    """Return every error in a list, apart from its items."""
    metadata = document.get("metadata")
    yield from _refuse_unknown(document, _LIST_KEYS, f"in a {kind}")
    yield from _check_metadata(metadata)
    # Some labels and annotations only have a meaning on a topic.
    of_list = metadata if isinstance(metadata, YamlMap) else {}
    for words in (of_list.get("labels"), of_list.get("annotations")):
        for key, _ in words.entries() if isinstance(words, YamlMap) else ():
            if key == CLUSTER_LABEL or key in _FLAGS:
                what, way_out = f"{key} of a {kind} is not read", "write it on each item"
                yield Finding("key-unknown", what, way_out, key.where)
    if not isinstance(document.get("items"), YamlList):
        what, way_out = f"a {kind} holds a list of items", "write its topics below items:"
        yield Finding("document-form", what, way_out, document.where)


# The topic operator of Strimzi makes such names of those that Kubernetes does not take. Source:
# TopicOperator, KafkaTopic.metadata.name of __consumer_offsets: the valid part, and a SHA-1.
_MANGLED = re.compile(r"[a-z0-9.-]*---[0-9a-f]{40}")


def _check_mangled(name: YamlValue | None, spec: YamlValue | None) -> Iterator[Finding]:
    named = isinstance(spec, YamlMap) and "topicName" in spec
    if isinstance(name, YamlText) and not named and _MANGLED.fullmatch(name):
        what = (
            f"{quote(name)} is a name that Strimzi generated; the topic has another name in Kafka"
        )
        way_out = "write the topic's name in Kafka as topicName below spec:"
        yield Finding("key-missing", what, way_out, name.where)


def _check_topic(document: YamlMap) -> list[Finding]:
    """Return every error in the form of a KafkaTopic; its values are checked later."""
    metadata, spec = document.get("metadata"), document.get("spec")
    findings = [
        *_refuse_unknown(document, _TOPIC_KEYS, "in a KafkaTopic"),
        *_check_metadata(metadata),
        *_check_spec(spec),
        *_check_mangled(metadata.get("name") if isinstance(metadata, YamlMap) else None, spec),
    ]
    # A misspelt key, such as metdata, is not missing as well.
    asked = {finding.way_out for finding in findings}
    named = isinstance(metadata, YamlMap) and isinstance(metadata.get("name"), YamlText)
    if not named and not asked & {_mean("metadata"), _mean("name")}:
        what, way_out = "a KafkaTopic has no metadata.name", "write metadata: {name: orders.events}"
        findings.append(Finding("key-missing", what, way_out, document.where))
    if spec is None and _mean("spec") not in asked:
        what, way_out = "a KafkaTopic has no spec", "write spec: {partitions: 3, replicas: 3}"
        findings.append(Finding("key-missing", what, way_out, document.where))
    return findings


def _refuse_unknown(table: YamlMap, known: Collection[str], place: str) -> Iterator[Finding]:
    for key, _ in table.entries():
        if key not in known:
            what = f"unknown key {quote(key)} {place}"
            yield Finding("key-unknown", what, _find_meant(key, known), key.where)


def _find_meant(key: str, known: Collection[str]) -> str:
    """Return the way out for a key that is not among the `known` ones."""
    if known is _TOPIC_KEYS and key == "topic":
        return "the name of the topic is metadata.name, or topicName below spec:"
    if known is _TOPIC_KEYS and key in SPEC_KEYS:
        return "write it below spec:"
    if known is SPEC_KEYS and "." in key:
        return "topic configs belong below config:"
    if known is SPEC_KEYS and fold_spelling(key) == "configmaprefs":
        return "ConfigMaps are not read: write their configs below configs:"
    if known in (SPEC_KEYS, _TOPIC_KEYS) and fold_spelling(key) in map(fold_spelling, OURS_ONLY):
        return f"to use {key}, write the topic in this estate's own form, which starts with topic:"
    if near := suggest(key, known):
        return near
    if known is _META_KEYS:
        return "keys of your own belong below labels: or annotations:"
    return f"the keys here are {', '.join(sorted(known))}"


def _mean(key: str) -> str:
    """Return the way out for a misspelt key."""
    return f"did you mean {key}?"


def _check_metadata(metadata: YamlValue | None) -> Iterator[Finding]:
    if metadata is None or _is_null(metadata):
        return
    if not isinstance(metadata, YamlMap):
        yield _refuse_form("metadata", metadata)
        return
    yield from _refuse_unknown(metadata, _META_KEYS, "in metadata")
    for name in ("labels", "annotations"):
        words = metadata.get(name)
        if isinstance(words, YamlMap):
            yield from _check_words(name, words)
        elif words is not None and not _is_null(words):
            yield _refuse_form(f"metadata.{name}", words)


def _check_words(name: str, words: YamlMap) -> Iterator[Finding]:
    """Check labels or annotations: their values are text, and their keys are free.

    A typo in a key that has a meaning would send the topic to every cluster, or change it.
    """
    for key, value in words.entries():
        (meant,) = get_close_matches(key.lower(), _PLACES, n=1, cutoff=_NEAR) or [""]
        if meant and meant not in (key, *words):
            what = f"{quote(key)} in {name} has no meaning"
            yield Finding("key-unknown", what, _mean(meant), key.where)
        elif key in _PLACES and _PLACES[key] != name:
            what = f"{key} in {name} has no meaning"
            yield Finding("key-unknown", what, f"write it below {_PLACES[key]}", key.where)
        if not isinstance(value, YamlText):
            what = f"{quote(key)} in {name} is {describe_yaml(value)}, not text"
            yield Finding("value-form", what, "write one text", value.where)
        elif key in _FLAGS and value.lower() not in ("true", "false"):
            what = f"{key} is {describe_yaml(value)}, which is not a boolean"
            yield Finding("value-flag", what, 'write "true" or "false"', value.where)
        elif key == CLUSTER_LABEL and _is_null(value):
            what, way_out = f"{key} has no value", "write the name of a cluster, or remove it"
            yield Finding("value-missing", what, way_out, value.where)


def _check_spec(spec: YamlValue | None) -> Iterator[Finding]:
    if isinstance(spec, YamlMap):
        yield from _refuse_unknown(spec, SPEC_KEYS, "in the spec of a KafkaTopic")
    elif spec is not None and _is_null(spec):
        what, way_out = "spec has no value", "write keys below it, or spec: {} to inherit all"
        yield Finding("value-missing", what, way_out, spec.where)
    elif spec is not None:
        yield _refuse_form("spec", spec)


def _refuse_form(name: str, value: YamlValue) -> Finding:
    what = f"{name} is {describe_yaml(value)}, not a map"
    return Finding("value-form", what, "write 'key: value' lines below it", value.where)


def _is_null(value: YamlValue) -> bool:
    return isinstance(value, YamlText) and value.tag == "null"
