"""From plans and failures to the figures of clusters, for `plan --metrics` and `watch`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reconciler.cli.plans import write_whole
from reconciler.errors import FindingsError, ReconcilerError, UsageError
from reconciler.metrics.figures import ClusterFigures, list_samples, measure_plan, measure_state
from reconciler.metrics.text import render_metrics

if TYPE_CHECKING:
    from reconciler.cli.planning import Failed, Made, Wanted

UNNAMED = "error"
"""The rule of an error that names none."""


def check_metrics(file: Path, wanted: Wanted) -> None:
    """Refuse what cannot be written or measured, before anything is read. Errors: UsageError."""
    if wanted.against is not None:
        raise UsageError("--metrics is about a live cluster; leave --against out")
    if wanted.moves:
        raise UsageError("--metrics is about a plan of changes; leave --moves out")
    check_file(file)


def check_file(file: Path) -> None:
    """Refuse a file without a directory, or a missing library. Errors: UsageError."""
    render_metrics(())
    if not file.absolute().parent.is_dir():
        raise UsageError(f"{file} cannot be written: {file.parent} is not a directory")


def write_metrics(made: Made, file: Path) -> None:
    """Write the figures of every cluster, planned or not, atomically. Errors: UsageError."""
    figures = describe_made(made, time.time())
    samples = (sample for one in figures.values() for sample in list_samples(one))
    write_whole(file, render_metrics(samples))


def describe_made(made: Made, now: float) -> dict[str, ClusterFigures]:
    """Return the figures of every cluster, planned or not. `now`: seconds since 1970."""
    figures = {}
    for planned in made.plans:
        found = {**measure_state(planned.state), **measure_plan(planned.plan)}
        figures[planned.cluster] = ClusterFigures(
            planned.cluster, read_at=now, planned_at=now, **found
        )
    for failed in made.failures:
        figures[failed.cluster] = describe_failure(failed, now)
    return figures


def describe_failure(failed: Failed, now: float) -> ClusterFigures:
    """Return the figures of a cluster without a plan; its state counts if it was read."""
    stage = "read" if failed.state is None else "plan"
    found: dict[str, Any] = {}
    if failed.state is not None:
        found = {**measure_state(failed.state), "read_at": now}
    return ClusterFigures(
        failed.cluster, planned=False, failures={stage: name_rule(failed.error)}, **found
    )


def name_rule(error: ReconcilerError) -> str:
    """Return the rule that an error names first."""
    return error.findings[0].rule if isinstance(error, FindingsError) else UNNAMED
