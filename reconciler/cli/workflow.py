"""What a workflow of GitHub Actions is told beside the output: its summary, and its outputs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.cli.terminal import print_note
from reconciler.errors import UsageError
from reconciler.files import open_to_append

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reconciler.cli.showing import Shown
    from reconciler.model import Plan

LEAST_ROOM = 65_536
"""A summary of a plan fits in that, however much the plan changes. Units: bytes."""


def report_plans(plans: Sequence[Shown]) -> None:
    """Append plans to the files that the runner names, where it names them."""
    from reconciler.plan.github import list_outputs

    if name := os.environ.get("GITHUB_STEP_SUMMARY"):
        for number, (plan, saved) in enumerate(plans):
            _summarise(plan, saved, Path(name), share=len(plans) - number)
    if name := os.environ.get("GITHUB_OUTPUT"):
        outputs = list_outputs(*(shown.plan for shown in plans))
        lines = [f"{key}={value}\n" for key, value in outputs.items()]
        _append(Path(name), "".join(lines))


def _summarise(plan: Plan, saved: str | None, path: Path, share: int) -> None:
    """Append to the summary of this step, in a share of the room that is left of it."""
    from reconciler.plan.github import SUMMARY_LIMIT
    from reconciler.plan.markdown import render_markdown

    room = (SUMMARY_LIMIT - 1 - (path.stat().st_size if path.exists() else 0)) // share
    if room < LEAST_ROOM:
        full = "the summary of this step is full, so the plan"
        print_note(f"{full} for {plan.cluster} is not added to it")
        return
    _append(path, render_markdown(plan, saved=saved, limit=room))


def _append(path: Path, text: str) -> None:
    try:
        with open_to_append(path) as file:
            file.write(text.encode())
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error
