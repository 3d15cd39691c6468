"""KafkaTopic documents of Strimzi and Jikkou, read without conversion.

Each becomes a topic document in our own form and is checked like any other. Every value keeps its
location.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.errors import Finding, Severity
from reconciler.spec.declarations import list_keys
from reconciler.spec.fields import FieldError, fold_spelling, read_each, read_text
from reconciler.spec.forms import TopicDocument
from reconciler.spec.resource_form import (
    CLUSTER_LABEL,
    DELETED,
    LISTS,
    SPEC_KEYS,
    UNMANAGED,
    check_list,
    check_topic,
    refuse_kind,
)
from reconciler.spec.values import YamlList, YamlMap, YamlText, YamlValue, describe_yaml, quote

if TYPE_CHECKING:
    from collections.abc import Iterator

    Read = tuple[YamlMap | None, list[Finding]]

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
        yield None, [*check_list(document, str(kind))]
        items = document.get("items")
        for item in items if isinstance(items, YamlList) else ():
            yield from read_resource(item, "KafkaTopic" if kind != "List" else None)
    else:
        yield _read_topic(document)


def _read_topic(document: YamlMap) -> Read:
    """Return the same topic with our own keys. Values keep their locations."""
    metadata, spec = _find_map(document, "metadata"), _find_map(document, "spec")
    name, annotations = metadata.get("name"), _find_map(metadata, "annotations")
    if not isinstance(name, YamlText):
        return None, check_topic(document)
    for marker, value in UNMANAGED.items():
        if str(annotations.get(marker, "")).lower() == value:
            what = f"the topic {quote(name)} is not managed: {marker}: {value} says so"
            return None, [Finding("topic-not-managed", what, "", name.where, Severity.NOTE)]
    findings = check_topic(document)
    topic = _new_table(document)
    topic[_rename("topic", metadata.key("name"))] = name
    for key, item in spec.entries():
        ours = SPEC_KEYS.get(key)
        if ours is None:  # check_topic reports it
            continue
        if ours in topic and ours != "topic":
            what = f"{quote(key)} says again what another key says"
            findings.append(Finding("yaml-duplicate-key", what, "keep one of them", key.where))
            continue
        topic.pop(ours, None)  # topicName overrides metadata.name, and its own key has its location
        topic[_rename(ours, key)] = item
    label = _find_map(metadata, "labels").get(CLUSTER_LABEL)
    if isinstance(label, YamlText) and label.tag != "null":
        names = YamlList([label])
        names.file, names.line, names.column = label.file, label.line, label.column
        topic[_rename("clusters", label)] = names
    if str(annotations.get(DELETED, "")).lower() == "true":
        key = annotations.key(DELETED)
        topic[_rename("state", key)] = _rename("absent", key)
    return topic, findings


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
