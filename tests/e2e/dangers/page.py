"""docs/explanation/dangers.md: a table for each kind of danger, a row for each danger."""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from types import ModuleType

from dangers import edits, files, losses, moved, trouble
from dangers.stage import Stage
from reconciler.sandbox.cluster import Cluster

Danger = Callable[[Stage], None]

PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "dangers.md"
KINDS = (edits, losses, moved, trouble, files)
HEAD = """\
# Dangers, and what reconciler says and does

Each row was run with the real command line, on a real cluster of three brokers in three racks.
`make dangers` runs them again and writes this page; a test runs all of them, and fails if a row
is no longer true.

`plan` is `reconciler plan topics --cluster lab`, `apply` the same with `--auto-approve`, or of the
saved plan. A topic has 6 partitions and 2 replicas, written `6 × 2`, unless its row says otherwise.
The plan that `apply` shows first, and the lines about balance, are left out; of a saved plan, only
the counts are shown.
[What the exit codes mean](../reference/exit-codes.md) ·
[what the rules in brackets protect from](../reference/rules.md)
"""
COLUMNS = "| danger | `plan` | `apply` | the cluster afterwards |\n|:--|:--|:--|:--|"


def list_dangers() -> list[Danger]:
    """Return every danger, in the order of the page."""
    return [danger for kind in KINDS for danger in kind.DANGERS]


def name_danger(danger: Danger) -> str:
    """Return what the page calls it: the first line of its docstring."""
    return inspect.cleandoc(danger.__doc__ or "").partition("\n")[0]


def act_out(danger: Danger, cluster: Cluster) -> str:
    """Act a danger out on a cluster that has no topics, and leave none. Returns its row."""
    with (
        tempfile.TemporaryDirectory() as directory,
        closing(Stage(cluster, Path(directory))) as stage,
    ):
        danger(stage)
        stage.look()
    said = ("<br>".join(stage.planned), "<br>".join(stage.applied))
    return f"| {' | '.join([name_danger(danger), *said, stage.afterwards])} |"


def render_page(rows: Mapping[str, str]) -> str:
    """Return the page. In: rows by the name of their danger."""
    return "\n".join([HEAD, *(line for kind in KINDS for line in _render_kind(kind, rows))])


def _render_kind(kind: ModuleType, rows: Mapping[str, str]) -> Iterator[str]:
    heading, _, about = inspect.cleandoc(kind.__doc__ or "").partition("\n\n")
    yield f"## {heading}\n"
    if about:
        yield f"{about}\n"
    yield COLUMNS
    yield from (rows[name_danger(danger)] for danger in kind.DANGERS)
    yield ""
