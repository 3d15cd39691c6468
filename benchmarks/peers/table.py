"""The record as a Markdown table: a row an edit, a column a tool."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from edits import EDITS, Edit
from outcome import tell
from quotes import quote


def render(record: Mapping[str, Any], tools: Sequence[str]) -> str:
    """Return the table of what was recorded. A tool that did not run says so in its column."""
    versions = record["versions"]
    heads = [f"{tool}<br>{versions.get(tool, 'not run')}" for tool in tools]
    lines = [write_row(["", *heads]), write_row(["---"] * (len(tools) + 1))]
    for number, edit in enumerate(EDITS, start=1):
        cells = (record["cells"].get(f"{number} {tool}") for tool in tools)
        lines.append(
            write_row([f"**{number}** {edit.title}", *(_cell(edit, cell) for cell in cells)])
        )
    return "\n".join(lines)


def write_row(cells: Iterable[str]) -> str:
    """Return a row of Markdown."""
    return f"| {' | '.join(cells)} |"


def _cell(edit: Edit, cell: Mapping[str, Any] | None) -> str:
    if cell is None:
        return "not run"
    outcome = tell(edit.watch, cell["before"], cell["after"])
    return "<br>".join([*_said(cell["steps"]), f"→ **{outcome}**"])


def _said(steps: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    """Tell how commands ended and their decisive words; those that say the same, in one line."""
    kinds: dict[str, dict[str, None]] = {}
    for step in steps:
        words = quote(step["said"])
        end = ("ok" if step["ok"] else f"exits {step['exit']}") + (
            f": “{_escape(words)}”" if words else ""
        )
        kinds.setdefault(end, {})[step["kind"]] = None
    return [f"{' and '.join(found)} {end}" for end, found in kinds.items()] or ["nothing to run"]


def _escape(text: str) -> str:
    return re.sub(r"([|<>*_`\[\]])", r"\\\1", text)


def write_between_markers(path: Path, marker: str, table: str) -> None:
    """Replace what is between the markers of a document. Errors: SystemExit without markers."""
    text = path.read_text(encoding="utf-8")
    start, end = f"<!-- {marker} -->", f"<!-- /{marker} -->"
    if start not in text or end not in text:
        raise SystemExit(f"{path} has no {start} … {end}")
    before, after = text.split(start)[0], text.split(end)[1]
    path.write_text(f"{before}{start}\n{table}\n{end}{after}", encoding="utf-8")
