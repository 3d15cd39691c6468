"""How a report says things: counts, times, changes."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from reconciler.errors import escape_unprintable
from reconciler.fleet.report.contents import MOST_LETTERS
from reconciler.units import count

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_COLLECTION = "%Y%m%dT%H%M%SZ"


def cut(text: str) -> str:
    """Bound a text from the lake, and spell what no screen should be sent."""
    said = escape_unprintable(text)
    return said if len(said) <= MOST_LETTERS else f"{said[: MOST_LETTERS - 1]}…"


def say_when(collection: str) -> str:
    """Say when a collection was made, as 2026-11-21 03:00 UTC."""
    return datetime.strptime(collection, _COLLECTION).strftime("%Y-%m-%d %H:%M UTC")  # noqa: DTZ007


def say_share(part: int, whole: int) -> str:
    """Say a share as a percentage that is nought or 100 only when it is exactly that."""
    if not whole:
        return "–"
    percent = 100 * part / whole
    if 0 < part < whole:
        percent = min(max(percent, 0.1), 99.9)
    return f"{percent:.1f}".removesuffix(".0") + " %"


def describe_change(row: Mapping[str, Any]) -> str:
    """Say what a row of `changes` changes, or would change: partitions, replicas, configs."""
    if refused := row["refused_change"]:
        return ", ".join(map(_say_refused, refused))
    return ", ".join(_list_differences(row)) or ", ".join(row["steps"] or ())


def _say_refused(field: Mapping[str, Any]) -> str:
    before = "not set" if field["before"] is None else field["before"]
    after = "not set" if field["after"] is None else field["after"]
    name = field["path"].removeprefix("config.")
    return f"{name} {before} → {after} ({field['file']}:{field['line']})"


def _list_differences(row: Mapping[str, Any]) -> Iterator[str]:
    before, after = row["partitions_before"], row["partitions_after"]
    if before is None and after is not None:
        yield count(after, "partition")
    elif after is not None and before != after:
        yield f"{before:,} → {count(after, 'partition')}"
    was, becomes = row["config_before"] or {}, row["config_after"] or {}
    if row["action"] == "delete":
        return
    for key in sorted({*was, *becomes}):
        if was.get(key) != becomes.get(key):
            known = was.get(key, "not set") if before is not None else ""
            arrow = " → " if known else " "
            yield f"{key} {known}{arrow}{becomes.get(key, 'not set')}"
