"""Errors of pydantic in a document, as findings at the exact place and in plain words."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from reconciler.errors import Finding
from reconciler.spec.fields import FieldError, fold_spelling, suggest
from reconciler.spec.values import (
    YamlList,
    YamlMap,
    YamlText,
    YamlValue,
    describe_yaml,
    quote,
    show,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

M = TypeVar("M", bound=BaseModel)

MOST_PROBLEMS = 100
"""The limit of errors in one document: with more, it is probably not a specification."""

# Common names of keys, and their names in this format.
_OTHER_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "name": "topic",
        "topicname": "topic",
        "replicas": "replication_factor",
        "replication": "replication_factor",
        "rf": "replication_factor",
        "partitioncount": "partitions",
        "numpartitions": "partitions",
        "numberofpartitions": "partitions",
        "configs": "config",
        "settings": "config",
        "topicconfig": "config",
        "topicconfiguration": "config",
        "cluster": "clusters",
        "environments": "clusters",
        "replicaassignment": "assignment",
        "replicaassignments": "assignment",
        "team": "owner",
        "doc": "description",
        "ensure": "state",
        "connection": "client",
        "id": "cluster_id",
        "clusterid": "cluster_id",
    }
)


def check_form(
    model: type[M], document: YamlMap, offered: frozenset[str] = frozenset()
) -> tuple[M | None, list[Finding]]:
    """Return the document as a model, and every finding about its form.

    Values with findings are removed from the model and from the document. None if the rest is no
    valid model. `offered`: configs that services have, Kafka's or not.
    """
    try:
        return model.model_validate(document, context=offered), []
    except ValidationError as error:
        problems = error.errors(include_url=False)
    findings = [
        finding
        for problem in problems[:MOST_PROBLEMS]
        for finding in _translate(model, document, problem)
    ]
    # Without the wrong values, checks across fields and topics still run on the others.
    for problem in problems:
        *path, last = problem["loc"]
        parent = _walk(document, tuple(path))
        if isinstance(parent, YamlMap):
            parent.pop(str(last), None)
    try:
        return model.model_validate(document, context=offered), findings
    except ValidationError:
        return None, findings


def _translate(model: type[BaseModel], document: YamlMap, problem: Any) -> list[Finding]:
    """Translate one error of pydantic. Findings of our own readers need no translation."""
    path = tuple(problem["loc"])
    reason = problem.get("ctx", {}).get("error")
    if isinstance(reason, FieldError):
        return list(reason.findings)
    if problem["type"] == "extra_forbidden":
        return [_refuse_unknown(model, document, path)]
    if problem["type"] == "missing":
        return _ask_for(document, path)
    return [_refuse_form(_walk(document, path), path)]


def _walk(document: YamlMap, path: tuple[int | str, ...]) -> Any:
    """Follow a path into the document, as far as it goes."""
    value: Any = document
    for step in path:
        if isinstance(value, YamlMap) and step in value:
            value = value[str(step)]
        elif isinstance(value, YamlList) and isinstance(step, int):
            value = value[step]
        else:
            break
    return value


def _refuse_unknown(
    model: type[BaseModel], document: YamlMap, path: tuple[int | str, ...]
) -> Finding:
    parent = _walk(document, path[:-1])
    key = parent.key(str(path[-1]))
    known = _keys_at(model, path[:-1])
    below = f" under {_spell_path(path[:-1])}" if path[:-1] else ""
    way_out = _find_meant(key, known)
    return Finding("key-unknown", f"unknown key {quote(key)}{below}", way_out, key.where)


def _find_meant(key: YamlText, known: tuple[str, ...]) -> str:
    """Return the way out for an unknown key."""
    if key in ("apiVersion", "kind") and "topic" in known:
        return "remove it, or write the topic as a KafkaTopic, with metadata and spec"
    if "." in key and "config" in known:
        return "topic configs belong below config:"
    if "." in key and "client" in known:
        return "properties of the client belong below client:"
    other = _OTHER_NAMES.get(fold_spelling(key))
    if other in known and fold_spelling(key) != fold_spelling(other):
        return f"did you mean {other}?"
    if near := suggest(key, known):
        return near
    return f"the keys here are {', '.join(known)}"


def _spell_path(path: tuple[int | str, ...]) -> str:
    return ".".join(show(str(step)) for step in path)


def _keys_at(model: type[BaseModel], path: tuple[int | str, ...]) -> tuple[str, ...]:
    """Name the keys that a model, or one nested in it, takes at a path."""
    current: Any = model
    for step in path:
        fields = getattr(current, "model_fields", None)
        values = get_args(current)[1:]  # of a dict, the annotation of its values
        current = values[0] if fields is None else fields[str(step)].annotation
        if type(None) in get_args(current):
            current = get_args(current)[0]  # a model that may be left out
    fields = current.model_fields
    return tuple(sorted(field.alias or name for name, field in fields.items()))


def _ask_for(document: YamlMap, path: tuple[int | str, ...]) -> list[Finding]:
    """Ask for a missing key, unless a common other name of it is reported as unknown."""
    parent: YamlMap = _walk(document, path[:-1])
    key = str(path[-1])
    examples = {
        "topic": "topic: orders.events",
        "version": "version: 1",
        "pattern": "pattern: '[a-z]+(\\.[a-z]+)+'",
        "check": "check: spec.partitions <= 48",
        "message": "message: and what people are to do about it",
        "allow": "allow: [replication, assignment]",
        "rate": "rate: 30MiB, the bytes per second and broker, or rate: unlimited",
    }
    if any(_OTHER_NAMES.get(fold_spelling(written)) == key for written in parent):
        return []
    way_out = f"write {examples[key]}"
    return [Finding("key-missing", f"the key {key} is missing", way_out, parent.where)]


def _refuse_form(value: YamlValue, path: tuple[int | str, ...]) -> Finding:
    name = _spell_path(path)
    if isinstance(value, YamlText) and value.tag == "null":
        # Most maps of a cluster may be empty; moves has keys that must be written.
        may_be_empty = path[0] == "clusters" and path[-1] != "moves"
        none = ", {} for none," if may_be_empty else ","
        what, way_out = f"{name} has no value", f"write keys below it{none} or leave it out"
        return Finding("value-missing", what, way_out, value.where)
    what = f"{name} is {describe_yaml(value)}, not a map"
    dashes = ", without dashes" if isinstance(value, YamlList) else ""
    return Finding("value-form", what, f"write 'key: value' lines below it{dashes}", value.where)
