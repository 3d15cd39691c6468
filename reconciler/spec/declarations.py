"""How the keys of a document are declared, and how a document is read by these declarations.

A form is a frozen dataclass. Each of its fields is a key, and says once what its value is, its
default and what it is for. The reader below, the JSON Schemas (json_schema), the messages and
docs/reference/keys.md come from this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, TypeVar, dataclass_transform, overload

from reconciler.errors import Finding
from reconciler.spec.fields import FieldError, Kind, fold_spelling, suggest
from reconciler.spec.values import (
    YamlList,
    YamlMap,
    YamlText,
    YamlValue,
    describe_yaml,
    quote,
    show,
)

D = TypeVar("D")
F = TypeVar("F")
T = TypeVar("T")

MOST_PROBLEMS = 100
"""The limit of errors in one document: with more, it is probably not a specification."""

_OTHER_NAMES: Mapping[str, str] = MappingProxyType(
    {
        word: name
        for name, words in {
            "assignment": ("replicaassignment", "replicaassignments"),
            "client": ("connection",),
            "cluster_id": ("clusterid", "id"),
            "clusters": ("cluster", "environments"),
            "config": ("configs", "settings", "topicconfig", "topicconfiguration"),
            "description": ("doc",),
            "owner": ("team",),
            "partitions": ("numberofpartitions", "numpartitions", "partitioncount"),
            "replication_factor": ("replicas", "replication", "rf"),
            "state": ("ensure",),
            "topic": ("name", "topicname"),
        }.items()
        for word in words
    }
)
"""What other tools call our keys, folded, and our own names."""


@dataclass(frozen=True, slots=True)
class Form:
    """The value of a key that is a map with keys of its own."""

    declared: type[Any]


@dataclass(frozen=True, slots=True)
class Forms:
    """The value of a key that is a map from names to maps with keys of their own."""

    names: Kind[str]
    declared: type[Any]


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a form. `says` is what it is for, with the default, which `default` spells for JSON.

    `asks` is what to write in a document that lacks the key.
    """

    says: str
    value: Kind[Any] | Form | Forms
    default: bool | int | str | None = None
    asks: str = ""

    @property
    def required(self) -> bool:
        """Whether every document must have it."""
        return bool(self.asks)


@overload
def key(value: Kind[T], says: str) -> T | None: ...
@overload
def key(value: Kind[T], says: str, *, asks: str, name: str = "") -> T: ...
@overload
def key(value: Kind[T], says: str, *, default: D, name: str = "") -> T | D: ...
def key(value: Kind[Any], says: str, *, default: Any = None, name: str = "", asks: str = "") -> Any:
    """Declare a key, which is required if it `asks`. `name`: if Python has no such name."""
    if asks:
        return field(metadata={"key": Key(says, value, asks=asks), "name": name})
    written = None
    if default is not None and value.spell is not None:
        written = value.spell(default)
        spelled = str(written).lower() if isinstance(written, bool) else written
        says = f"{says} Default: {spelled}."
    declared = {"key": Key(says, value, written), "name": name}
    return field(default_factory=lambda: default, metadata=declared)


def table(declared: type[F], says: str) -> F:
    """Declare a key whose value is a map with the keys of a form. Default: that form's defaults."""
    made: F = field(default_factory=declared, metadata={"key": Key(says, Form(declared))})
    return made


def table_or_none(declared: type[F], says: str) -> F | None:
    """Declare a key like `table`, whose default is None."""
    made: F | None = field(default=None, metadata={"key": Key(says, Form(declared))})
    return made


def tables(names: Kind[str], declared: type[F], says: str) -> Mapping[str, F]:
    """Declare a key whose value is a map from names to the keys of a form. Default: none."""
    made: Mapping[str, F] = field(
        default_factory=dict, metadata={"key": Key(says, Forms(names, declared))}
    )
    return made


@dataclass_transform(frozen_default=True, kw_only_default=True)
def form(declared: type[F]) -> type[F]:
    """Make a form of a class whose fields are keys."""
    return dataclass(frozen=True, slots=True, kw_only=True)(declared)


def list_keys(declared: type[Any]) -> Mapping[str, tuple[str, Key]]:
    """Return the keys of a form by name, each with the name of its field."""
    return {
        each.metadata.get("name") or each.name: (each.name, each.metadata["key"])
        for each in fields(declared)
    }


def check_form(
    declared: type[F], document: YamlMap, any_config: frozenset[str] = frozenset()
) -> tuple[F | None, list[Finding]]:
    """Read a document as a form. Returns it, and every finding about its keys and values.

    Values with findings are removed from the document, and have their default in the form: without
    them, checks across keys and topics still run on the others. The form is None if a key is
    missing that is required. `any_config`: configs that services have, Kafka's or not.
    """
    reader = _Reader(any_config)
    read: F = reader.read(declared, document, ())
    found = [finding for problem in reader.problems[:MOST_PROBLEMS] for finding in problem]
    return None if reader.is_broken else read, found


class _Reader:
    """Reads one document: all of its problems, each with its findings."""

    def __init__(self, any_config: frozenset[str]) -> None:
        self.problems: list[tuple[Finding, ...]] = []
        self.is_broken = False
        self._any_config = any_config

    def read(self, declared: type[Any], written: YamlMap, path: tuple[str, ...]) -> Any:
        """Read a map as a form. None if a required key is missing or wrong."""
        keys, values = list_keys(declared), {}
        for name, (attribute, key) in keys.items():
            if name in written:
                try:
                    values[attribute] = self._read_value(key.value, written[name], (*path, name))
                except FieldError as error:
                    self.problems.append(error.findings)
                    del written[name]
            elif key.required:
                self.problems.append(tuple(_ask_for(name, key, written)))
            if key.required and attribute not in values:
                self.is_broken = True
        unknown = [name for name, _ in written.entries() if name not in keys]
        for name in unknown:
            self.problems.append((_refuse_unknown(name, sorted(keys), path),))
            del written[name]
        return None if self.is_broken else declared(**values)

    def _read_value(
        self, kind: Kind[Any] | Form | Forms, value: YamlValue, path: tuple[str, ...]
    ) -> object:
        match kind:
            case Kind(any_config=True):
                return kind.read(value, path[-1], self._any_config)
            case Kind():
                return kind.read(value, path[-1])
        if not isinstance(value, YamlMap):
            raise FieldError([_refuse_form(value, path)])
        if isinstance(kind, Form):
            return self.read(kind.declared, value, path)
        read: dict[str, object] = {}
        for name, item in [*value.entries()]:
            try:
                kind.names.read(name, path[-1])
            except FieldError as error:
                self.problems.append(error.findings)
                self.is_broken = True
            try:
                read[str(name)] = self._read_value(Form(kind.declared), item, (*path, name))
            except FieldError as error:
                self.problems.append(error.findings)
                del value[name]
        return read


def _refuse_unknown(key: YamlText, known: list[str], path: tuple[str, ...]) -> Finding:
    below = f" under {_spell_path(path)}" if path else ""
    what = f"unknown key {quote(key)}{below}"
    return Finding("key-unknown", what, _find_meant(key, known), key.where)


def _find_meant(key: YamlText, known: list[str]) -> str:
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
    return suggest(key, known) or f"the keys here are {', '.join(known)}"


def _spell_path(path: tuple[str, ...]) -> str:
    return ".".join(map(show, path))


def _ask_for(name: str, key: Key, written: YamlMap) -> list[Finding]:
    """Ask for a missing key, unless a common other name of it is reported as unknown."""
    if any(_OTHER_NAMES.get(fold_spelling(other)) == name for other in written):
        return []
    what, way_out = f"the key {name} is missing", f"write {name}: {key.asks}"
    return [Finding("key-missing", what, way_out, written.where)]


def _refuse_form(value: YamlValue, path: tuple[str, ...]) -> Finding:
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
