"""Text of generated pages: what Markdown would read as its own is escaped, and pages are found."""

from __future__ import annotations

import os
import re
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"
REFERENCE = DOCS / "reference"


def escape(text: str) -> str:
    """Spell options as code, and escape what Markdown reads as its own: *, _, <, [, |."""
    parts = re.split(r"(`[^`]*`|(?<![\w-])--[a-z]+(?:-[a-z]+)*)", text)
    return "".join(map(_escape_part, parts))


def _escape_part(part: str) -> str:
    if part.startswith("`"):
        return part
    if part.startswith("--"):
        return f"`{part}`"
    return re.sub(r"([\\*<\[\]|]|(?<!\w)_)", r"\\\1", part)


def code(text: str) -> str:
    """Spell alternatives as code: a `|` in code ends a cell for some renderers, so none is left."""
    return " or ".join(f"`{each.strip()}`" for each in text.split("|"))


def link(page: str, says: str, anchor: str = "") -> str:
    """Link from docs/reference to a page, by its path below docs/. Errors: LookupError if none."""
    if not (DOCS / page).exists():
        raise LookupError(f"docs/ has no {page}")
    path = Path(os.path.relpath(DOCS / page, REFERENCE)).as_posix()
    return f"[{says}]({path}{anchor and '#'}{anchor})"


def spell_anchor(heading: str) -> str:
    """Return what hosts of code make of a heading for links."""
    return re.sub(r"[^a-z0-9_ -]", "", heading.lower()).replace(" ", "-")
