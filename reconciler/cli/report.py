"""`reconciler report`: report a plan to GitHub or GitLab, from a workflow."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.cli.options import cluster_option
from reconciler.cli.plans import read_plan, write_whole
from reconciler.cli.terminal import print_note
from reconciler.errors import UsageError

if TYPE_CHECKING:
    from reconciler.model import Plan

plan_option = click.option(
    "--plan",
    "path",
    required=True,
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file that plan --out saved.",
)
errors_option = click.option(
    "--errors",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Its stderr, reported where no plan was saved.",
)


@click.group()
def command() -> None:
    """Report a plan to GitHub or GitLab, from a workflow.

    The runner's variables name the host; GITHUB_TOKEN or RECONCILER_TOKEN authenticates.
    """


@command.command()
@cluster_option
@plan_option
@click.option(
    "--moves",
    "moves_path",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file that plan --moves --out saved, shown below the other plan.",
)
@errors_option
def plan(cluster: str, path: Path, moves_path: Path | None, errors: Path | None) -> None:
    """Write or replace the cluster's comment on this pull request."""
    from reconciler.codehost import Moves, find_run, report_no_plan, report_plan

    run = find_run(os.environ)
    made = _read(cluster, path)
    planned = _read(cluster, moves_path) if moves_path is not None else None
    if made is None or (moves_path is not None and planned is None):
        print_note(report_no_plan(run, cluster, _read_errors(errors)))
        return
    moves = Moves(planned, moves_path.name) if planned and moves_path else None
    print_note(report_plan(run, made, path.name, moves))


@command.command()
@cluster_option
@plan_option
@errors_option
def drift(cluster: str, path: Path, errors: Path | None) -> None:
    """Open, update or close the cluster's issue."""
    from reconciler.codehost import find_run, report_drift, report_no_drift

    run = find_run(os.environ)
    made = _read(cluster, path)
    if made is None:
        print_note(report_no_drift(run, cluster, _read_errors(errors)))
    else:
        print_note(report_drift(run, made, path.name))


@command.command()
@cluster_option
@click.option(
    "--out",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Save the approved plan's fingerprint and rows, for plan or apply --approved.",
)
@click.option("--moves", is_flag=True, help="Of the plan of moves, which is approved by itself.")
def approved(cluster: str, out: Path | None, *, moves: bool) -> None:
    """Print the fingerprint of the plan that the merged pull request showed."""
    from reconciler.codehost import find_approved, find_run
    from reconciler.plan import encode_approval

    approval = find_approved(find_run(os.environ), cluster, moves=moves)
    if out is not None:
        write_whole(out, encode_approval(approval))
    click.echo(approval.fingerprint)


def _read(cluster: str, path: Path) -> Plan | None:
    """Read the saved plan, if there is one."""
    if not path.exists():
        return None
    made = read_plan(path)
    if made.cluster != cluster:
        raise UsageError(f"the plan is for {made.cluster}, not for {cluster}")
    return made


def _read_errors(errors: Path | None) -> str:
    """Read the saved stderr of a run without a plan; empty if there is none."""
    if errors is None or not errors.exists():
        return ""
    return errors.read_text(encoding="utf-8", errors="replace")
