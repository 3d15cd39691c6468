"""One document of a file edited in place: comments, quotes, order and all other documents stay.

The file is cut at its `---` lines. Only the document that changes goes through ruamel.yaml, because
that normalises whatever it reads and writes; the rest is returned byte for byte.
"""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from reconciler.adopt.spelling import ORDER

if TYPE_CHECKING:
    from ruamel.yaml import YAML

_MARKER = re.compile(r"^---(?=[ \t\r\n]|$)", re.MULTILINE)
_OPENING = r"(?>[^\s#-][^\n]*?:[ \t]*(?=#|\n))[^\n]*\n"
"""A line that ends in a key, or in a comment behind one. `(?>` keeps a line of colons linear."""
_BARE_MARKER = re.compile(r"---[ \t]*(#[^\n]*)?(\n|$)")


class NotAmendableError(ValueError):
    """A document is written in a form that cannot be edited without rewriting it."""


def amend_document(text: str, line: int, edit: Callable[[Any], None]) -> str:
    """Edit the document at line `line` of a file. Errors: NotAmendableError."""
    pieces = cut_documents(text)
    start = 1
    for number, piece in enumerate(pieces):
        lines = piece.count("\n")
        if start <= line < start + lines or number == len(pieces) - 1:
            pieces[number] = rewrite_document(piece, edit)
            return "".join(pieces)
        start += lines
    raise NotAmendableError("no document is there")


def append_documents(text: str, documents: list[str]) -> str:
    """Add documents at the end of a file, which keeps every byte that it has."""
    if text and not text.endswith("\n"):
        text += "\n"
    # A file of comments alone, or one that ends in `---`, needs no separator: it has no document.
    last = cut_documents(text)[-1]
    match = _BARE_MARKER.match(last)
    lines = (last[match.end() :] if match else last).splitlines()
    is_held = any(line.strip() and not line.lstrip().startswith("#") for line in lines)
    return text + ("---\n" if is_held else "") + "---\n".join(documents)


def set_key(
    table: Any,
    key: str,
    value: object,
    *,
    is_config: bool = False,
    on_one_line: bool = False,
    at_end: bool = False,
) -> None:
    """Set a key; a new one goes to its usual place in a topic, or `at_end`.

    `is_config`: a text that looks like a number or a flag is written without quotes. `on_one_line`:
    so is a map.
    """
    wrapped: Any = _wrap(value, is_config=is_config)
    if on_one_line and isinstance(value, dict):
        wrapped.fa.set_flow_style()
    if key in table:
        # The comments below a list or a map are attached to its last item, which goes.
        holder, leaf = _last_leaf(table, key)
        rest = _take_rest(holder.ca.items.get(leaf)) if holder is not table else ""
        table[key] = wrapped
        if rest:
            _attach(table, key, rest)
        return
    before = tuple(table) if at_end or key not in ORDER else ORDER[: ORDER.index(key)]
    place = max((number + 1 for number, name in enumerate(table) if name in before), default=0)
    table.insert(place, key, wrapped)
    names = list(table)
    if 0 < place == len(names) - 1:
        # ruamel.yaml attaches the lines after a map to its last value. They must move to the new
        # last value, or the new key would follow the comments and blank lines that end the map.
        holder, leaf = _last_leaf(table, names[place - 1])
        if rest := _take_rest(holder.ca.items.get(leaf)):
            _attach(*_last_leaf(table, names[place]), rest)


def delete_key(table: Any, key: str, outer: Any = None) -> None:
    """Remove a key and the comment on its line; comments above the next key stay.

    In: `outer`, the map that holds this one. It gets the comments if no key is before them.
    """
    # ruamel.yaml attaches the comments above a key to the value before it. So the lines behind the
    # removed value must move to another value, or above the key that is now the first.
    names = list(table)
    place = names.index(key)
    holder, last = _last_leaf(table, key)
    comments = holder.ca.items.get(last)
    rest = _take_rest(comments)
    table.ca.items.pop(key, None)
    del table[key]
    if not rest:
        return
    if place == 0 and table:
        _put_before(table, names[1], rest)
    elif place > 0:
        _attach(*_last_leaf(table, names[place - 1]), rest)
    elif outer is not None:
        outside = list(outer)
        at = next(number for number, name in enumerate(outside) if outer[name] is table)
        if at:
            _attach(*_last_leaf(outer, outside[at - 1]), rest)


def cut_documents(text: str) -> list[str]:
    """Cut a file at its `---` lines; each of them begins a piece."""
    starts = [match.start() for match in _MARKER.finditer(text)]
    edges = [0, *(start for start in starts if start), len(text)]
    return [text[a:b] for a, b in itertools.pairwise(edges)]


def rewrite_document(piece: str, edit: Callable[[Any], None], *, usual_indent: bool = False) -> str:
    """Edit one piece of a file. Its indent stays, unless it is to be the usual one.

    Errors: NotAmendableError.
    """
    from ruamel.yaml.comments import CommentedMap
    from ruamel.yaml.error import YAMLError

    marker = ""
    if piece.startswith("---"):
        match = _BARE_MARKER.match(piece)
        if match is None:
            raise NotAmendableError("it begins on the line of its `---`")
        marker, piece = match[0], piece[match.end() :]
    yaml = _make_yaml("" if usual_indent else piece)
    try:
        document = yaml.load(piece)
    except YAMLError as error:
        raise NotAmendableError("it is YAML that cannot be edited in place") from error
    if not isinstance(document, CommentedMap) or document.fa.flow_style():
        raise NotAmendableError("it is not a map of one key per line")
    edit(document)
    stream = io.StringIO()
    yaml.dump(document, stream)
    return marker + stream.getvalue()


def _make_yaml(text: str) -> YAML:
    """Return a reader and writer that indents as the text does."""
    from ruamel.yaml import YAML
    from ruamel.yaml.representer import RoundTripRepresenter

    class Representer(RoundTripRepresenter):
        """Writes null as a word: a key without a value is a mistake in a spec."""

    Representer.add_representer(
        type(None), lambda self, _: self.represent_scalar("tag:yaml.org,2002:null", "null")
    )
    yaml = YAML(typ="rt")
    yaml.Representer = Representer
    yaml.preserve_quotes = True
    yaml.width = 1 << 20  # otherwise ruamel.yaml folds long lines
    nested = re.search(rf"^{_OPENING}( +)[^\s#-]", text, re.MULTILINE)
    listed = re.search(rf"^( *){_OPENING}( *)-[ ]", text, re.MULTILINE)
    mapping = len(nested[1]) if nested else 2
    offset = len(listed[2]) - len(listed[1]) if listed else 2
    yaml.indent(mapping=mapping, sequence=offset + 2, offset=offset)
    return yaml


def _wrap(value: object, *, is_config: bool) -> object:
    """Turn a value into objects that ruamel.yaml writes as a person would."""
    from ruamel.yaml.comments import CommentedMap, CommentedSeq

    if isinstance(value, dict):
        configs = {key: is_config or key in {"config", "configs"} for key in value}
        return CommentedMap(
            {key: _wrap(inner, is_config=configs[key]) for key, inner in value.items()}
        )
    if isinstance(value, list | tuple):
        items = CommentedSeq([_wrap(item, is_config=False) for item in value])
        if not any(isinstance(item, list) for item in items):
            items.fa.set_flow_style()
        return items
    return read_scalar(value) if is_config and isinstance(value, str) else value


def read_scalar(text: str) -> object:
    """Turn the text of a number or a flag into its value, which is written without quotes."""
    if text in {"true", "false"}:
        return text == "true"
    if re.fullmatch(r"-?(0|[1-9][0-9]*)", text):
        return int(text)
    # Other spellings of a float, such as 0.50, would be written in another way.
    if re.fullmatch(r"-?[0-9]+\.[0-9]+", text) and repr(float(text)) == text:
        return float(text)
    return text


def _last_leaf(table: Any, key: Any) -> tuple[Any, Any]:
    """Return the map and key that hold the comments behind `key`: the innermost last one."""
    value: Any = table[key]
    if hasattr(value, "fa") and value and not value.fa.flow_style():
        inner = list(value)[-1] if isinstance(value, dict) else len(value) - 1
        return _last_leaf(value, inner)
    return table, key


def _take_rest(comments: Any) -> str:
    """Remove and return the lines below a value's own line: comments and blank lines."""
    token = next((slot for slot in comments or () if hasattr(slot, "value")), None)
    if token is None:
        return ""
    own, end, rest = token.value.partition("\n")
    token.value = own + end
    return str(rest)


def _attach(holder: Any, key: Any, rest: str) -> None:
    """Add comment lines behind a value that stays."""
    from ruamel.yaml.error import CommentMark
    from ruamel.yaml.tokens import CommentToken

    slots = holder.ca.items.setdefault(key, [None, None, None, None])
    place = 0 if isinstance(holder, list) else 2
    if slots[place] is None:
        slots[place] = CommentToken("\n" + rest, CommentMark(0), None)
    else:
        slots[place].value += rest


def _put_before(table: Any, key: str, rest: str) -> None:
    """Put comment lines above a key that is now the first of its map."""
    from ruamel.yaml.error import CommentMark
    from ruamel.yaml.tokens import CommentToken

    slots = table.ca.items.setdefault(key, [None, None, None, None])
    lines = [line.strip() for line in rest.splitlines() if line.strip()]
    slots[1] = [CommentToken(f"{line}\n", CommentMark(table.lc.col), None) for line in lines]


def edit_config(table: Any, key: str, changes: Mapping[str, object], gone: set[str]) -> None:
    """Set and remove configs of a document; a config map without keys is removed, too."""
    config = table.get(key)
    if config is None:
        if changes:
            set_key(table, key, dict(changes), is_config=True)
        return
    for name, value in changes.items():
        set_key(config, name, value, is_config=True)
    for name in gone & set(config):
        if len(config) == 1:
            delete_key(table, key)
            return
        delete_key(config, name, table)
