"""The documents of another tool, and a reader that forgets nothing: what is left over is a note."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from reconciler.errors import Finding, Severity, SpecError, UsageError
from reconciler.spec.files import leads_out, read_file, refuse_link, show_path
from reconciler.spec.load import load_text
from reconciler.spec.values import Sequence, Table, Text, Value, describe, quote

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

    from reconciler.errors import Location
    from reconciler.model import Assignment

RawConfig = "Mapping[str, str | tuple[str, ...]]"
_SUFFIXES = {".yaml", ".yml", ".json"}


@dataclass(frozen=True, slots=True)
class ForeignTopic:
    """A topic as another tool's file says it; configs are raw. No cluster: it goes to every one."""

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
    absent: bool = False


@dataclass(slots=True)
class Source:
    """Documents, and what comes of them: topics, clusters by name, notes."""

    documents: tuple[Table, ...]
    topics: list[ForeignTopic] = field(default_factory=list)
    clusters: dict[str, dict[str, object]] = field(default_factory=dict)
    notes: list[Finding] = field(default_factory=list)

    def note(self, what: str, where: Location, way_out: str = "") -> None:
        """Name something that is not carried over."""
        severity = Severity.WARNING if way_out else Severity.NOTE
        finding = Finding("import-not-carried", what, way_out, where, severity)
        if finding not in self.notes:
            self.notes.append(finding)

    def note_rest(self, table: Table, known: Collection[str], of: str) -> None:
        """Name the keys that nobody has read."""
        rest = [key for key, _ in table.entries() if key not in known]
        if rest:
            listed = ", ".join(quote(key) for key in rest)
            self.note(f"{of}: {listed} has no counterpart in a spec", rest[0].where)

    def read_count(self, table: Table, key: str, of: str) -> int | None:
        """Read a count; one that is left to the broker, or none at all, is left open."""
        value = table.get(key)
        if value is None:
            return None
        if isinstance(value, Text) and re.fullmatch(r"[1-9][0-9]{0,8}", value):
            return int(value)
        self.note(
            f"{of}: {key} {describe(value)} is no count, and is left open", table.key(key).where
        )
        return None

    def read_text(self, table: Table, key: str) -> str | None:
        """Read a text; None where there is none."""
        value = table.get(key)
        return str(value) if isinstance(value, Text) and value and not value.is_null else None

    def read_config(self, value: Value | None, of: str) -> dict[str, str | tuple[str, ...]]:
        """Read a map of configs, scalars and lists; what is neither is noted."""
        config: dict[str, str | tuple[str, ...]] = {}
        if not isinstance(value, Table):
            if value is not None and not _is_null(value):
                self.note(f"{of}: its configs are {describe(value)}, not a map", value.where)
            return config
        for key, item in value.entries():
            if isinstance(item, Sequence) and all(isinstance(part, Text) for part in item):
                config[str(key)] = tuple(map(str, item))
            elif isinstance(item, Text) and item.tag != "null":
                config[str(key)] = str(item)
            else:
                self.note(f"{of}: {key} is {describe(item)}, not a value", key.where)
        return config

    def get_table(self, table: Table, key: str) -> Table:
        """Return the map below a key; an empty one where nothing is, or something else, noted."""
        value: Value | None = table.get(key)
        if isinstance(value, Table):
            return value
        if value is not None and not _is_null(value):
            self.note(f"{key} is {describe(value)}, not a map", value.where)
        empty = Table()
        empty.file, empty.line, empty.column = table.file, table.line, table.column
        return empty

    def list_tables(self, table: Table, key: str) -> Iterator[Table]:
        """Yield the maps of the list below a key; what is no map is noted."""
        value: Value | None = table.get(key)
        if value is not None and not isinstance(value, Sequence) and not _is_null(value):
            self.note(f"{key} is {describe(value)}, not a list", value.where)
        for item in value if isinstance(value, Sequence) else ():
            if isinstance(item, Table):
                yield item
            else:
                self.note(f"an item of {key} is {describe(item)}, not a map", item.where)


def read_source(path: Path) -> Source:
    """Read every YAML or JSON document below a path.

    Errors: UsageError where there is none; SpecError for what cannot be read.
    """
    if not path.exists():
        raise UsageError(f"there is no {show_path(path)}; name a file or a directory")
    documents: list[Value] = []
    findings: list[Finding] = []
    for file in _list_files(path):
        leaves = path.is_dir() and leads_out(file, path)
        content = refuse_link(file, path) if leaves else read_file(file)
        if isinstance(content, Finding):
            findings.append(content)
            continue
        loaded = load_text(content, show_path(file))
        findings.extend(loaded.findings)
        documents.extend(loaded.documents)
    if any(finding.severity is Severity.ERROR for finding in findings):
        raise SpecError(findings)
    source = Source(tuple(document for document in documents if isinstance(document, Table)))
    for document in documents:
        if not isinstance(document, Table):
            source.note(f"the document is {describe(document)}, not a map", document.where)
    return source


def _is_null(value: Value) -> bool:
    return isinstance(value, Text) and value.tag == "null"


def _list_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    return sorted(
        file
        for file in path.rglob("*")
        if file.suffix.lower() in _SUFFIXES and file.is_file()
        if not any(part.startswith(".") for part in file.relative_to(path).parts)
    )
