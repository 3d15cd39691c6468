"""Text made safe for markdown as GitHub reads it: nothing quoted is ever interpreted."""

from __future__ import annotations

import re
from html import escape

from reconciler.errors import escape_unprintable

_UNSEEN = "\u200b"
"""A blank of no width: where it stands, GitHub sees no mention, issue, link or emoji."""

_MARKUP = re.compile(r"[\\`*~<>&|\[\]$]|(?<![^\W_])_|_(?![^\W_])")
_REFERENCE = re.compile(
    r"(?<=@)(?=\w)|(?<=#)(?=\d)|(?<=GH-)(?=\d)|(?<=:)(?=//|[\w+-]+:)|(?<=www)(?=\.)", re.IGNORECASE
)
_PLAIN = re.compile(r"[^`|\s](?:[^`|]*[^`|\s])?")


def prose(text: str) -> str:
    """Escape what stands in a sentence or in a cell of a table."""
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


def code_in_html(text: str) -> str:
    """Set a name as code where GitHub reads HTML only, as in the summary of what is folded."""
    return f"<code>{escape(escape_unprintable(text))}</code>"


def fence(text: str, language: str) -> str:
    """Set lines as a block of code that no run of backticks within can end."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}{language}\n{text}\n{ticks}"


def folded(summary: str, body: str) -> str:
    """Fold markdown behind a summary, which is HTML."""
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"
