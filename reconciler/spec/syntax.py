"""From YAML text to values with locations: the content of a file, and its syntax errors.

Reads YAML 1.2 core from the event stream of libyaml. Depth, size and the growth by aliases are
limited during the reading, so the cost of a hostile file is proportional to its length.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import yaml
from yaml._yaml import CParser
from yamlcore import CCoreLoader

from reconciler.errors import Finding, Location
from reconciler.spec.syntax_errors import (
    DEPTH,
    Repeated,
    explain_depth,
    explain_repeated,
    explain_syntax_error,
    find_cut,
    find_foreign,
    find_template,
)
from reconciler.spec.values import YamlList, YamlMap, YamlText, YamlValue, quote

FILE_BYTES = 5_000_000
ALIASED_VALUES = 10_000

_ODD_LINE_ENDS = "\r\x85\u2028\u2029"
_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")
_CORE_TAGS = {f"tag:yaml.org,2002:{name}" for name in ("str", "map", "seq")} | {"!"}


@dataclass(frozen=True, slots=True)
class LoadedFile:
    """The documents of one file without empty ones, and its errors."""

    file: str
    documents: tuple[YamlValue, ...]
    findings: tuple[Finding, ...] = ()


class _UnreadableError(Exception):
    """Ends the reading of one file; carries the finding with the reason."""

    def __init__(self, finding: Finding) -> None:
        self.finding = finding


def load_text(content: bytes, file: str) -> LoadedFile:
    """Read the YAML documents of a file. It returns errors as findings."""
    try:
        text = _decode(content, file)
    except _UnreadableError as error:
        return LoadedFile(file, (), (error.finding,))
    if foreign := find_foreign(text, file):
        return LoadedFile(file, (), (foreign,))
    reading = _Reading(text, file)
    documents: list[YamlValue] = []
    try:
        documents.extend(reading.read_documents())
    except _UnreadableError as error:
        reading.findings.append(error.finding)
    except yaml.reader.ReaderError:
        # Its position counts bytes, so the character is found in the text.
        index = next(i for i, character in enumerate(text) if not _is_allowed(character))
        reading.findings.append(_refuse_character(text, index, file))
    except yaml.MarkedYAMLError as error:
        reading.findings.append(explain_syntax_error(error, text, reading.place))
    # Last, because only the reading knows which line ends are inside quotes, where they are text.
    # Alone, because the lines of all other findings would be wrong for git and editors.
    if odd := reading.find_odd_line_end():
        return LoadedFile(file, (), (odd,))
    if reading.findings and (template := find_template(text, file)):
        return LoadedFile(file, (), (template,))
    return LoadedFile(file, tuple(documents), tuple(reading.findings))


def _decode(content: bytes, file: str) -> str:
    if len(content) > FILE_BYTES:
        raise _UnreadableError(
            Finding(
                "file-size",
                f"the file is larger than {FILE_BYTES:,} bytes",
                "spread its topics over several files",
                Location(file, 1),
            )
        )
    if content.startswith(_WIDE_MARKS):
        raise _UnreadableError(_encoding(file, Location(file, 1), "the file is UTF-16 or UTF-32"))
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8-sig", "replace")
        where = Location(file, before.count("\n") + 1, len(before) - before.rfind("\n"))
        what = f"byte 0x{content[error.start]:02x} is not UTF-8"
        raise _UnreadableError(_encoding(file, where, what)) from None
    if "\ufeff" in text:
        raise _UnreadableError(_refuse_character(text, text.index("\ufeff"), file))
    return text


def _refuse_character(text: str, index: int, file: str) -> Finding:
    before = text[:index]
    return Finding(
        "file-encoding",
        f"the character U+{ord(text[index]):04X} is not allowed in YAML",
        "remove it, or write it as an escape inside double quotes",
        Location(file, before.count("\n") + 1, len(before) - before.rfind("\n")),
    )


def _is_allowed(character: str) -> bool:
    """Return whether libyaml takes a character: all but controls and non-characters."""
    return character in "\t\n\r\x85" or not (
        character < " " or "\x7f" <= character < "\xa0" or character in "\ufffe\uffff"
    )


def _find_odd_line_ends(text: str) -> list[int]:
    """List the places of line ends that YAML counts and git does not."""
    # They are rare: a fast search comes before the loop over each character.
    if text.count("\r") == text.count("\r\n") and not any(c in text for c in _ODD_LINE_ENDS[1:]):
        return []
    return [
        index
        for index, character in enumerate(text)
        if character in _ODD_LINE_ENDS and not text.startswith("\r\n", index)
    ]


def _encoding(file: str, where: Location, what: str) -> Finding:
    way_out = f"save {file.rpartition('/')[2]} as UTF-8"
    return Finding("file-encoding", what, way_out, where)


@lru_cache(maxsize=10_000)
def _resolve_plain(text: str) -> str:
    """Return the type of a plain scalar in YAML 1.2 core."""
    for tag, pattern in CCoreLoader.yaml_implicit_resolvers.get(text[:1], ()):
        if pattern.match(text):
            return str(tag.rpartition(":")[2])
    return "str"


class _Reading:
    """One pass over the event stream of one file, with the anchors and findings so far."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.findings: list[Finding] = []
        self._events = CParser(text)
        self._anchors: dict[str, tuple[YamlValue, int]] = {}
        self._values = 0
        self._aliased = 0
        self._quoted: list[tuple[int, int]] = []
        self._odd = _find_odd_line_ends(text)
        self._starts: list[int] = []
        if self._odd:
            self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def read_documents(self) -> Iterator[YamlValue]:
        """Yield every document that is not empty."""
        while True:
            event = self._events.get_event()
            if type(event) is yaml.StreamEndEvent:
                return
            if type(event) is not yaml.DocumentStartEvent:
                continue
            self._anchors, self._aliased = {}, 0
            document = self._compose(self._events.get_event(), 0)
            if not (isinstance(document, YamlText) and document.tag == "null"):
                yield document

    def place(self, mark: Any) -> Location:
        """Turn a mark into the line and column that git and editors count."""
        # libyaml also counts U+0085, U+2028, U+2029 and a lone carriage return as line ends.
        if not self._odd:
            return Location(self.file, mark.line + 1, mark.column + 1)
        line = bisect_right(self._starts, mark.index)
        return Location(self.file, line, mark.index - self._starts[line - 1] + 1)

    def find_odd_line_end(self) -> Finding | None:
        """Find the first line end outside quotes that git does not count as a line end."""
        starts = [start for start, _ in self._quoted]
        for index in self._odd:
            before = bisect_right(starts, index) - 1
            if before >= 0 and index < self._quoted[before][1]:
                continue
            line = bisect_right(self._starts, index)
            return Finding(
                "yaml-line-ends",
                f"the character U+{ord(self.text[index]):04X} ends a line for YAML, not for git",
                "end lines with a plain line feed, or write it as an escape in double quotes",
                Location(self.file, line, index - self._starts[line - 1] + 1),
            )
        return None

    def _compose(self, event: Any, depth: int) -> YamlValue:
        self._values += 1
        kind = type(event)
        if kind is yaml.ScalarEvent:
            return self._compose_text(event)
        if kind is yaml.AliasEvent:
            return self._follow_alias(event)
        if depth >= DEPTH:
            raise _UnreadableError(explain_depth(self.place(event.start_mark)))
        self._check_tag(event)
        before = self._values
        value: YamlValue
        if kind is yaml.MappingStartEvent:
            value = self._compose_table(event, depth)
        else:
            value = YamlList()
            where = self.place(event.start_mark)
            value.file, value.line, value.column = where.file, where.line, where.column
            while type(item := self._events.get_event()) is not yaml.SequenceEndEvent:
                value.append(self._compose(item, depth + 1))
        # An anchor counts only once its value is complete, so no value can contain itself.
        if event.anchor:
            self._anchors[event.anchor] = (value, self._values - before + 1)
        return value

    def _compose_text(self, event: Any) -> YamlText:
        text = YamlText(event.value)
        mark = event.start_mark
        text.file = self.file
        if self._odd:
            where = self.place(mark)
            text.line, text.column = where.line, where.column
            if event.style in ("'", '"'):
                self._quoted.append((mark.index, event.end_mark.index))
        else:
            text.line, text.column = mark.line + 1, mark.column + 1
        text.quoted = bool(event.style)
        text.tag = "str"
        if event.implicit[0]:
            text.tag = _resolve_plain(event.value)
        elif event.tag:
            self._check_tag(event)
        if event.anchor:
            self._anchors[event.anchor] = (text, 1)
        return text

    def _compose_table(self, event: Any, depth: int) -> YamlMap:
        table = YamlMap()
        where = self.place(event.start_mark)
        table.file, table.line, table.column = where.file, where.line, where.column
        flow = event.flow_style
        repeated: list[Repeated] = []
        next_event = self._events.get_event
        while type(event := next_event()) is not yaml.MappingEndEvent:
            key = self._compose(event, depth + 1)
            start = event.start_mark
            value = self._compose(next_event(), depth + 1)
            if not isinstance(key, YamlText):
                what = "a key is a list or a map"
                self._report("yaml-key", what, "keys are plain words", self.place(start))
            elif key == "<<" and not key.quoted:
                self._report(
                    "yaml-merge-key",
                    "'<<' merges nothing in YAML 1.2",
                    "put what topics share into a profile of clusters.yaml",
                    key.where,
                )
            elif flow and (cut := find_cut(table, self.text, event.end_mark.index, value)):
                self._report("yaml-syntax", *cut, self.place(start))
            elif key in table:
                repeated.append((key, value, self.place(start)))
            else:
                table[key] = value
        if repeated:
            self.findings.extend(explain_repeated(table, repeated, top=depth == 0))
        return table

    def _follow_alias(self, event: Any) -> YamlValue:
        value, size = self._anchors.get(event.anchor, (None, 0))
        if value is None:
            what = f"*{event.anchor} names no anchor that is complete above it in this document"
            raise self._stop("yaml-alias", what, f"write &{event.anchor} first", event)
        # An alias counts with all of its values, so nested aliases cannot grow exponentially.
        self._aliased += size
        self._values += size
        if self._aliased > ALIASED_VALUES:
            what = f"aliases expand the document by more than {ALIASED_VALUES:,} values"
            way_out = "put what topics share into a profile of clusters.yaml"
            raise self._stop("yaml-alias", what, way_out, event)
        return value

    def _check_tag(self, event: Any) -> None:
        if event.tag and event.tag not in _CORE_TAGS:
            shown = event.tag.replace("tag:yaml.org,2002:", "!!")
            what = f"the tag {quote(shown)} has no meaning here"
            way_out = "leave the tag out, and quote the value if it must be text"
            self._report("yaml-tag", what, way_out, self.place(event.start_mark))

    def _report(self, rule: str, what: str, way_out: str, where: Location) -> None:
        self.findings.append(Finding(rule, what, way_out, where))

    def _stop(self, rule: str, what: str, way_out: str, event: Any) -> _UnreadableError:
        return _UnreadableError(Finding(rule, what, way_out, self.place(event.start_mark)))
