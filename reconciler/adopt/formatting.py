"""The usual form of specs: indents, blank lines, quotes and the spelling of configs.

Comments stay, and so does the order of keys and documents. A document is left as it is if it cannot
be rewritten without the loss of a comment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from typing import Any

import yaml

from reconciler.adopt.amend import (
    NotAmendableError,
    cut_documents,
    read_scalar,
    rewrite_document,
    set_key,
)
from reconciler.adopt.draft import EstateDraft
from reconciler.adopt.spelling import humanise, spell_text
from reconciler.errors import Finding, Location, Severity, show_path
from reconciler.spec.configs import Catalogue, choose_catalogue
from reconciler.spec.entry import SANDBOX
from reconciler.spec.estate import Estate

_MOST_ROUNDS = 4
"""A comment that moves can need one more round until nothing changes."""


@dataclass(frozen=True, slots=True)
class Formatted:
    """The new texts of the files that are not in the usual form, and notes on what stays."""

    texts: Mapping[str, str]
    notes: tuple[Finding, ...] = ()


def format_estate(draft: EstateDraft, paths: Iterable[str]) -> Formatted:
    """Write files of an estate in the usual form, by their path in it.

    A file whose new text would mean something else is left as it is, with a note.
    """
    meaning, texts, notes = _describe_meaning(draft.estate), {}, []
    for path in sorted(paths):
        text, left = format_text(draft.texts[path], choose_catalogue(None))
        where = show_path(draft.root, path)
        notes += [_note_left(Location(where, line), why) for line, why in left]
        if text == draft.texts[path]:
            continue
        if _describe_meaning(draft.change({path: text}).estate) != meaning:
            notes.append(_note_left(Location(where, 1), "its new form would mean something else"))
            continue
        texts[path] = text
    return Formatted(texts, tuple(notes))


def _note_left(where: Location, why: str) -> Finding:
    way_out = "write it in the usual form by hand"
    return Finding("format-left", f"left as it is: {why}", way_out, where, Severity.NOTE)


def format_text(text: str, catalogue: Catalogue) -> tuple[str, list[tuple[int, str]]]:
    """Return a file in the usual form, and which documents stay as they are: line, and why."""
    pieces, left, line = [], [], 1
    plain = text.replace("\r\n", "\n").lstrip("\ufeff")
    for piece in cut_documents(plain):
        try:
            pieces.append(_format_piece(piece, catalogue))
        except NotAmendableError as error:
            pieces.append(piece if piece.endswith("\n") else f"{piece}\n")
            if _has_content(piece):
                left.append((line, str(error)))
        line += piece.count("\n")
    return "".join(pieces), left


def _format_piece(piece: str, catalogue: Catalogue) -> str:
    """Rewrite one document until it does not change any more. Errors: NotAmendableError."""
    edit = partial(_spell, catalogue=catalogue)
    for _ in range(_MOST_ROUNDS):
        written = rewrite_document(piece, edit, usual_indent=True)
        if _list_comments(written) != _list_comments(piece):
            raise NotAmendableError("a comment is where a rewrite would lose it")
        written = _tidy(written, piece)
        if written == piece:
            return piece
        piece = written
    raise NotAmendableError("its form changes with every rewrite")


def _has_content(piece: str) -> bool:
    lines = (line.removeprefix("---").strip() for line in piece.split("\n"))
    return any(line and not line.startswith("#") for line in lines)


# Values.


def _spell(document: Any, *, catalogue: Catalogue) -> None:
    """Spell the values of a document as people write them. A KafkaTopic keeps its values."""
    from ruamel.yaml.scalarstring import PlainScalarString

    if "apiVersion" in document:
        return
    _open_long(document)
    _unquote(document)
    for layer in _list_layers(document):
        config = layer.get("config") if isinstance(layer, dict) else None
        for key, value in list(config.items()) if isinstance(config, dict) else ():
            usual = _spell_config(catalogue, str(key), value)
            if usual is not None:
                # ruamel.yaml keeps the quotes of a value, unless the new one says that it has none.
                plain = PlainScalarString(usual) if isinstance(usual, str) else usual
                set_key(config, key, plain, is_config=True)


def _list_layers(document: Any) -> Iterator[Any]:
    """Yield the maps that can have a config: a topic and its overrides, defaults and profiles."""
    yield document
    yield document.get("defaults")
    for name in ("overrides", "profiles"):
        named = document.get(name)
        yield from named.values() if isinstance(named, dict) else ()
    clusters = document.get("clusters")
    for cluster in clusters.values() if isinstance(clusters, dict) else ():
        yield cluster.get("defaults") if isinstance(cluster, dict) else None


def _spell_config(catalogue: Catalogue, key: str, value: Any) -> object:
    """Return a value of a config as people write it; None if it is written so."""
    items = [str(item) for item in value] if isinstance(value, list) else None
    written = items if items is not None else _read_written(value)
    if written is None:
        return None
    normal = catalogue.normalise(key, written, None)
    if not isinstance(normal, str):
        return None
    # A value that has a unit keeps it: people choose between 52w and 364d.
    has_unit = isinstance(written, str) and not written.lstrip("-").isdigit() and "," not in written
    usual = written if has_unit else humanise(catalogue, key, normal)
    if usual is None or catalogue.normalise(key, usual, None) != normal:
        return None
    if isinstance(usual, list):
        is_usual = items == usual and value.fa.flow_style() is True
        return None if is_usual else usual
    plain = read_scalar(usual)
    # Text in quotes is of another type in ruamel.yaml.
    return None if type(plain) is type(value) and plain == value else usual


def _read_written(value: Any) -> str | None:
    """Return the text of a scalar, if ruamel.yaml knows it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str) or type(value) is int:
        return str(value)
    return None


def _unquote(value: Any) -> None:
    """Remove quotes that no reader of YAML needs."""
    from ruamel.yaml.scalarstring import (
        DoubleQuotedScalarString,
        PlainScalarString,
        SingleQuotedScalarString,
    )

    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in list(pairs):
        if isinstance(item, dict | list):
            _unquote(item)
        elif (
            isinstance(item, DoubleQuotedScalarString | SingleQuotedScalarString)
            and item.anchor.value is None
            and spell_text(str(item)) == str(item)
        ):
            value[key] = PlainScalarString(item)


def _open_long(value: Any) -> None:
    """Write a map or a list in braces or brackets over several lines as one item per line."""
    item: Any
    for item in value.values() if isinstance(value, dict) else value:
        if _has_items(item):
            if item.fa.flow_style() and any(line != item.lc.line for line in _list_lines(item)):
                item.fa.set_block_style()
            _open_long(item)


def _has_items(value: Any) -> bool:
    return isinstance(value, dict | list)


def _list_lines(value: Any) -> Iterator[int]:
    """Yield the line of each item of a map or a list, and of the items within."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        places = value.lc.data or {}
        if key in places:
            yield places[key][0]
        if isinstance(item, dict | list):
            yield from _list_lines(item)


# Lines.


@dataclass(frozen=True, slots=True)
class _Lines:
    """The lines of a document. `comments` has the column of the comment on a line.

    `held` are lines that are part of a text of several lines, where a blank and `#` are text.
    """

    lines: list[str]
    comments: Mapping[int, int]
    held: frozenset[int]

    def code(self, number: int) -> str:
        """Return a line without its comment."""
        return self.lines[number][: self.comments.get(number)].rstrip()

    def comment(self, number: int) -> str:
        """Return the comment of a line."""
        return self.lines[number][self.comments[number] :].rstrip()

    def list_alone(self) -> list[int]:
        """List the lines that have only a comment."""
        return [number for number in sorted(self.comments) if not self.code(number)]

    def find_levels(self, number: int) -> tuple[int, list[int]]:
        """Return the indent of the code below, and those of all levels that are open here."""
        count = len(self.lines)
        below = next(self._indents(range(number, count)), 0)
        levels: list[int] = []
        for indent in self._indents(range(number, -1, -1)):
            if not levels or indent < levels[0]:
                levels.insert(0, indent)
        return below, levels

    def _indents(self, numbers: Iterable[int]) -> Iterator[int]:
        code = (self.code(number) for number in numbers if number not in self.held)
        return (len(each) - len(each.lstrip()) for each in code if each)


def _read_lines(text: str) -> _Lines:
    """Find the comments of a document: what begins with `#` behind the last token of a line."""
    ends: dict[int, int] = {}
    held: set[int] = set()
    for token in yaml.scan(text, Loader=yaml.CSafeLoader):
        mark = token.end_mark
        if isinstance(token, yaml.ScalarToken) and mark.line > token.start_mark.line:
            is_block = token.style in ("|", ">")
            held.update(range(token.start_mark.line + 1, mark.line + (not is_block)))
            mark = token.start_mark if is_block else mark
        elif isinstance(token, yaml.BlockEndToken | yaml.StreamEndToken):
            continue  # these are at the next token, behind the comments
        ends[mark.line] = max(ends.get(mark.line, 0), mark.column)
    lines, comments = text.split("\n"), {}
    for number, line in enumerate(lines):
        if number in ends or number not in held:
            place = line.find("#", ends.get(number, 0))
            if place >= 0:
                comments[number] = place
    return _Lines(lines, comments, frozenset(held))


def _list_comments(text: str) -> list[str]:
    """Return the comments of a document; those on lines of their own are first."""
    read = _read_lines(text)
    alone = read.list_alone()
    return [read.comment(number) for number in (*alone, *sorted({*read.comments} - {*alone}))]


def _tidy(text: str, before: str) -> str:
    """Indent comments as what they belong to, keep the column of others, and remove blanks.

    In: the document `before` it was written anew, which shows what a comment belongs to.
    """
    read = _read_lines(text)
    every = range(len(read.lines))
    width = {number: len(read.code(number)) for number in every}
    indents = _indent_comments(read, _read_lines(before))
    kept: list[str] = []
    for number in every:
        if number in read.held and number not in read.comments:
            kept.append(read.lines[number])
        elif number not in read.comments:
            if (line := read.lines[number].rstrip()) or (kept and kept[-1]):
                kept.append(line)
        elif width[number]:
            # People align comments, so one stays in its column if the value leaves room.
            column = max(read.comments[number], width[number] + 1 + (read.code(number) != "---"))
            kept.append(f"{read.code(number):<{column}}{read.comment(number)}")
        else:
            kept.append(f"{'':{indents[number]}}{read.comment(number)}")
    if kept[0].startswith("---"):
        del kept[1 : 2 if kept[1:2] == [""] else 1]
    while len(kept) > 1 and not kept[-1]:
        kept.pop()
    return "\n".join(kept) + "\n"


def _indent_comments(read: _Lines, before: _Lines) -> dict[int, int]:
    """Return the indent of each line that has only a comment.

    One that is deeper than the code below it belongs to a level that ends there. Others belong to
    the code below.
    """
    indents = {}
    for number, earlier in zip(read.list_alone(), before.list_alone(), strict=False):
        below, levels = read.find_levels(number)
        column, (was_below, were) = before.comments[earlier], before.find_levels(earlier)
        depth = sum(level <= column for level in were)
        is_above = column > was_below and levels and depth
        indents[number] = levels[min(depth, len(levels)) - 1] if is_above else below
    return indents


# Meaning.


def _describe_meaning(estate: Estate) -> object:
    """Return all that an estate says, without the places where it says so."""
    names = estate.declared or (SANDBOX,)
    said = (estate.clusters, estate.topics, estate.stages, estate.audit, estate.owns)
    findings = sorted((f.rule, f.severity, f.what) for f in estate.findings)
    rules = [rule for rule, *_ in findings]
    return _strip(said), _strip([estate.topics_for(name) for name in names]), rules


def _strip(value: Any) -> object:
    """Return a value without locations, as something that can be compared."""
    if isinstance(value, Location):
        return None
    if is_dataclass(value):
        return {field.name: _strip(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: _strip(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_strip(item) for item in value]
    return value
