"""The documents of another tool, and a reader that reports every key that it did not read."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from reconciler.errors import Finding, Location, Severity, SpecError
from reconciler.model.cluster import Assignment
from reconciler.spec.syntax import load_text
from reconciler.spec.values import YamlList, YamlMap, YamlText, YamlValue, describe_yaml, quote

Follow = Callable[[str, str], tuple[str, bytes | Finding | None]]
"""Finds the file that a document in a file names: its path, and what it holds, if it is there.
"""


@dataclass(frozen=True, slots=True)
class ForeignTopic:
    """A topic in the file of another tool; configs are raw. None as cluster means every cluster."""

    name: str
    where: Location
    cluster: str | None = None
    partitions: int | None = None
    replication_factor: int | None = None
    config: Mapping[str, str | tuple[str, ...]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    assignment: Assignment | None = None
    description: str | None = None
    labels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    absent: bool = False


@dataclass(slots=True)
class Source:
    """The documents of a tool, and the result: topics, clusters by name, notes."""

    documents: tuple[YamlMap, ...]
    follow: Follow
    topics: list[ForeignTopic] = field(default_factory=list)
    clusters: dict[str, dict[str, object]] = field(default_factory=dict)
    notes: list[Finding] = field(default_factory=list)

    def note(self, what: str, where: Location, way_out: str = "") -> None:
        """Report something that is not converted; a warning if there is a way out."""
        severity = Severity.WARNING if way_out else Severity.NOTE
        finding = Finding("import-not-carried", what, way_out, where, severity)
        if finding not in self.notes:
            self.notes.append(finding)

    def note_rest(self, table: YamlMap, known: Collection[str], of: str) -> None:
        """Report the keys that were not read."""
        rest = [key for key, _ in table.entries() if key not in known]
        if rest:
            listed = ", ".join(quote(key) for key in rest)
            self.note(f"{of}: {listed} has no counterpart in a spec", rest[0].where)

    def read_count(self, table: YamlMap, key: str, of: str, shown: str = "") -> int | None:
        """Read a count. None if it is missing, or invalid, such as the broker's default -1.

        `shown` is what the file calls the key, if the table is not the file's own.
        """
        value = table.get(key)
        if value is None:
            return None
        if isinstance(value, YamlText) and re.fullmatch(r"[1-9][0-9]{0,8}", value):
            return int(value)
        self.note(
            f"{of}: {shown or key} {describe_yaml(value)} is not a count, and is left open",
            table.key(key).where,
        )
        return None

    def read_text(self, table: YamlMap, key: str) -> str | None:
        """Read a text; None if there is none."""
        value = table.get(key)
        return str(value) if isinstance(value, YamlText) and value and not value.is_null else None

    def read_config(self, value: YamlValue | None, of: str) -> dict[str, str | tuple[str, ...]]:
        """Read a map of configs: scalars and lists. Report every other value."""
        config: dict[str, str | tuple[str, ...]] = {}
        if not isinstance(value, YamlMap):
            if value is not None and not _is_null(value):
                self.note(f"{of}: its configs are {describe_yaml(value)}, not a map", value.where)
            return config
        for key, item in value.entries():
            if isinstance(item, YamlList) and all(isinstance(part, YamlText) for part in item):
                config[str(key)] = tuple(map(str, item))
            elif isinstance(item, YamlText) and item.tag != "null":
                config[str(key)] = str(item)
            else:
                self.note(f"{of}: {key} is {describe_yaml(item)}, not a value", key.where)
        return config

    def get_table(self, table: YamlMap, key: str) -> YamlMap:
        """Return the map below a key, or an empty one; report a value that is no map."""
        value: YamlValue | None = table.get(key)
        if isinstance(value, YamlMap):
            return value
        if value is not None and not _is_null(value):
            self.note(f"{key} is {describe_yaml(value)}, not a map", value.where)
        empty = YamlMap()
        empty.file, empty.line, empty.column = table.file, table.line, table.column
        return empty

    def list_tables(self, table: YamlMap, key: str) -> Iterator[YamlMap]:
        """Yield the maps of the list below a key; report everything that is no map."""
        value: YamlValue | None = table.get(key)
        if value is not None and not isinstance(value, YamlList) and not _is_null(value):
            self.note(f"{key} is {describe_yaml(value)}, not a list", value.where)
        for item in value if isinstance(value, YamlList) else ():
            if isinstance(item, YamlMap):
                yield item
            else:
                self.note(f"an item of {key} is {describe_yaml(item)}, not a map", item.where)


def read_source(files: Mapping[str, bytes | Finding], follow: Follow) -> Source:
    """Read every document of some files, by their paths as locations spell them.

    Errors: SpecError for files that cannot be read.
    """
    documents: list[YamlValue] = []
    findings: list[Finding] = []
    for path, content in files.items():
        if isinstance(content, Finding):
            findings.append(content)
            continue
        loaded = load_text(content, path)
        findings.extend(loaded.findings)
        documents.extend(loaded.documents)
    if any(finding.severity is Severity.ERROR for finding in findings):
        raise SpecError(findings)
    tables = tuple(document for document in documents if isinstance(document, YamlMap))
    source = Source(tables, follow)
    for document in documents:
        if not isinstance(document, YamlMap):
            source.note(f"the document is {describe_yaml(document)}, not a map", document.where)
    return source


def _is_null(value: YamlValue) -> bool:
    return isinstance(value, YamlText) and value.tag == "null"
