"""The choices of a rebalance, side by side: as text, Markdown and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.moves.compare import ComparedChoice, ComparedChoices
from reconciler.styling import set_groups
from reconciler.units import approximate_duration, approximate_size

_AS_IT_IS = "as it is"
_FARTHEST = "farthest from the share"
_NOTHING = "–"

Heads = list[tuple[str, str]]


def render_choices(compared: ComparedChoices) -> str:
    """Render choices for a terminal. Returns: lines that end in a newline."""
    heads, rows = _lay_out(compared)
    parts = [_title(compared), "", *set_groups(heads, rows, between="  "), "", *_legend(compared)]
    return "\n".join(parts) + "\n"


def render_choices_markdown(compared: ComparedChoices) -> str:
    """Render choices as a table of Markdown. Returns: lines that end in a newline."""
    heads, rows = _lay_out(compared)
    names = [f"{group}: {name}" if group else name for group, name in heads]
    cells = [[f"`{row[0]}`" if row[0] != _AS_IT_IS else row[0], *row[1:]] for row in rows]
    lines = [names, [":--", *["--:"] * (len(heads) - 1)], *cells]
    table = [f"| {' | '.join(line)} |" for line in lines]
    return "\n".join([f"{_title(compared)}.", "", *table, "", *_join(_legend(compared))]) + "\n"


def list_choices_json(compared: ComparedChoices) -> str:
    """Return choices as JSON."""
    answer = {
        "format_version": "1.0",
        "cluster": compared.cluster,
        "wanted": compared.wanted,
        "within_percent": compared.within_percent,
        "farthest": dict(compared.farthest),
        "choices": [_list_choice(choice) for choice in compared.choices],
    }
    return json.dumps(answer, indent=2, ensure_ascii=False) + "\n"


def _list_choice(choice: ComparedChoice) -> dict[str, Any]:
    return {
        "options": choice.options,
        "unknown": list(choice.unknown),
        "refused_by": list(choice.refused_by),
        "replicas": choice.replicas,
        "copied_bytes": choice.copied_bytes,
        "leader_changes": choice.leader_changes,
        "seconds": choice.seconds,
        "farthest": dict(choice.farthest),
    }


def _title(compared: ComparedChoices) -> str:
    within = f"{compared.within_percent:g} %"
    return f"{compared.cluster} · what a rebalance would cost · within {within} of the share"


def _lay_out(compared: ComparedChoices) -> tuple[Heads, list[list[str]]]:
    """Return two head lines, and a row for today and each choice."""
    loads = list(compared.farthest)
    # With reads and writes known, the traffic of leaders says more than their number.
    if {"read", "write"}.issubset(loads):
        loads.remove("leaders")
    heads = [
        ("", "rebalance"),
        ("copied", "replicas"),
        ("copied", "bytes"),
        ("new", "leaders"),
        ("", "time"),
        *((_FARTHEST, load) for load in loads),
    ]
    today = [_AS_IT_IS, *[_NOTHING] * 4, *_say_farthest(compared.farthest, loads)]
    rows = [[each.options, *_list_cells(each, loads)] for each in compared.choices]
    return heads, [today, *rows]


def _list_cells(choice: ComparedChoice, loads: list[str]) -> Iterator[str]:
    if choice.unknown:
        yield from ["unknown", *[_NOTHING] * (3 + len(loads))]
        return
    yield f"{choice.replicas:,}"
    yield "unknown" if choice.copied_bytes is None else approximate_size(choice.copied_bytes)
    yield f"{choice.leader_changes:,}"
    if not choice.replicas:
        yield _NOTHING
    else:
        yield "unknown" if choice.seconds is None else approximate_duration(choice.seconds)
    yield from _say_farthest(choice.farthest, loads)


def _say_farthest(farthest: Mapping[str, float], loads: list[str]) -> list[str]:
    return [f"{round(100 * farthest[load]):,} %" for load in loads]


def _legend(compared: ComparedChoices) -> Iterator[str]:
    yield f"without --compare, this run plans: rebalance {compared.wanted}"
    unknown = sorted({kind for each in compared.choices for kind in each.unknown})
    if unknown:
        yield f"unknown: no {' and no '.join(unknown)} of any partition is known"
    for each in compared.choices:
        if each.refused_by:
            yield f"refused: {each.options} [{', '.join(each.refused_by)}]"
    yield "farthest from the share: the farthest broker afterwards, by each load"


def _join(lines: Iterator[str]) -> list[str]:
    return ["<br>\n".join(lines)]
