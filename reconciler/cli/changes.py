"""What a command would write into an estate, as a diff."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path


def show_changes(estate: Path, texts: Mapping[str, str]) -> str:
    """Return new files and changed lines as a diff. In: new texts by their path in the estate."""
    lines: list[str] = []
    for name, text in sorted(texts.items()):
        path = estate / name
        old = path.read_text(encoding="utf-8-sig").splitlines() if path.exists() else []
        before = str(path) if path.exists() else "/dev/null"
        lines += difflib.unified_diff(old, text.splitlines(), before, str(path), lineterm="")
    return "".join(f"{line}\n" for line in lines)
