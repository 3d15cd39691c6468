"""Plans as they are printed: one after the other, in the form that was asked for."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

import click

from reconciler import api
from reconciler.cli.terminal import fold_to_screen, wants_colour

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reconciler.model import Plan


class Shown(NamedTuple):
    """A plan, and where it is kept, if it is."""

    plan: Plan
    saved: str | None = None


def print_plans(plans: Sequence[Shown], form: api.PlanFormat, *, unmanaged: bool = False) -> None:
    """Print plans, and tell a workflow where that is asked for.

    JSON is a line for each; texts and comments stand one after the other.
    """
    if form == "github":
        _annotate(plans)
        return
    colour = wants_colour(sys.stdout)
    between = "\n" if form == "json" else "\n\n"
    pages = [
        api.render_plan(plan, form, colour=colour, saved=saved, unmanaged=unmanaged).rstrip("\n")
        for plan, saved in plans
    ]
    if pages:
        text = between.join(pages)
        click.echo(fold_to_screen(text) if form == "text" else text, color=True)


def _annotate(plans: Sequence[Shown]) -> None:
    from reconciler.cli.workflow import report_plans
    from reconciler.plan.github import render_github

    click.echo(render_github(*(shown.plan for shown in plans)), nl=False)
    report_plans(plans)
