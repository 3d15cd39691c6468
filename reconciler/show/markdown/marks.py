"""Markup for GitHub: names and values are never interpreted, and lists of names are short."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from itertools import groupby

from reconciler.errors import escape_unprintable

OWNER = "Owner"

_UNSEEN = "\u200b"
"""A zero-width space: it stops GitHub from making a mention, issue, link or emoji."""

_MARKUP = re.compile(r"[\\`*~<>&|\[\]$]|(?<![^\W_])_|_(?![^\W_])")
_REFERENCE = re.compile(
    r"(?<=@)(?=\w)|(?<=#)(?=\d)|(?<=GH-)(?=\d)|(?<=:)(?=//|[\w+-]+:)|(?<=www)(?=\.)", re.IGNORECASE
)
_PLAIN = re.compile(r"[^`|\s](?:[^`|]*[^`|\s])?")
_STEM = re.compile(r".*[._-](?=[^._-])")


def prose(text: str) -> str:
    """Escape text for a sentence or a cell of a table."""
    return _escape_markup(_REFERENCE.sub(_UNSEEN, escape_unprintable(text)))


def _escape_markup(text: str) -> str:
    """Spell markup as entities, which neither markdown, HTML nor tables take for structure."""
    return _MARKUP.sub(lambda found: f"&#{ord(found[0])};", text)


def code(text: str) -> str:
    """Set a name or a value as code, in a sentence or in a cell of a table."""
    text = escape_unprintable(text)
    if _PLAIN.fullmatch(text):
        return f"`{text}`"
    return f"<code>{_escape_markup(text)}</code>"


def name_owner(owner: str | None, labels: Sequence[str] = ()) -> str:
    """Set an owner as code, and below it the labels; nothing for a topic without them."""
    return "<br>".join([*([] if owner is None else [code(owner)]), *map(prose, labels)])


def code_in_html(text: str) -> str:
    """Set a name as code where GitHub reads only HTML, as in the summary of a folded part."""
    return f"<code>{escape(escape_unprintable(text))}</code>"


def fence(text: str, language: str) -> str:
    """Set lines as a block of code that no run of backticks within can end."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}{language}\n{text}\n{ticks}"


def folded(summary: str, body: str) -> str:
    """Fold markdown behind a summary, which is HTML."""
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"


def tabulate(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Set a table of markdown; a column of owners only if one of its topics has an owner."""
    known = list(rows)
    columns = [n for n, head in enumerate(heads) if head != OWNER or any(row[n] for row in known)]
    head, *lines = (f"| {' | '.join(row[n] for n in columns)} |" for row in (heads, *known))
    return "\n".join([head.replace("  ", " "), "|" + ":--|" * len(columns), *lines])


def group_names(names: Iterable[str]) -> str:
    """List every name, those with one stem together, as in shells: shop.{orders,refunds}.

    This is unambiguous, because no name of a topic contains a brace or a comma.
    """
    ordered = sorted(names, key=lambda name: (_find_stem(name), name))
    groups = groupby(ordered, _find_stem)
    return ", ".join(code(spelt) for stem, found in groups for spelt in _spell(stem, list(found)))


def _spell(stem: str, names: Sequence[str]) -> Sequence[str]:
    """Spell the names of one stem as one word; names without a stem stay apart."""
    if not stem or len(names) == 1:
        return names
    return [f"{stem}{{{','.join(name.removeprefix(stem) for name in names)}}}"]


def _find_stem(name: str) -> str:
    """Return a name up to its last part: shop.orders-v2 begins with `shop.orders-`."""
    found = _STEM.match(name)
    return found[0] if found else ""


def list_names(names: Sequence[str], most: int | None = None) -> str:
    """List names as code, or some of them and the number of the others."""
    shown = ", ".join(map(code, names[:most]))
    beyond = len(names) - len(names[:most])
    return f"{shown} and {beyond:,} more" if beyond else shown
