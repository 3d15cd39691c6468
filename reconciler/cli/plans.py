"""Plans as files and as output: saved, read again, compared with the specs, printed.

In a workflow of GitHub Actions they are also appended to its summary, and to its outputs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from reconciler.api.rendering import PlanFormat, render_plan
from reconciler.cli.git import Checkout, GitError, UnknownCommitError
from reconciler.cli.options import STDOUT, is_given
from reconciler.cli.terminal import fold_width, print_annotations, print_note, wants_colour
from reconciler.errors import Finding, FindingsError, UsageError
from reconciler.files import open_to_append, write_file
from reconciler.model.cluster import SHORT
from reconciler.model.plan import Commit, Plan

if TYPE_CHECKING:
    from reconciler.planfile.accepted import Accepted
    from reconciler.planfile.approval import Approval


@dataclass(frozen=True, slots=True)
class PlanFiles:
    """The path of `--out`: a file, or a directory with a plan file per cluster (`is_many`)."""

    out: Path
    is_many: bool

    def check(self) -> None:
        """Refuse a file for a directory, or the reverse, before anything is read.

        Errors: UsageError.
        """
        if not self.out.exists() or self.out.is_dir() == self.is_many:
            return
        if self.is_many:
            raise UsageError(f"{self.out} is a file; for several clusters name a directory")
        raise UsageError(f"{self.out} is a directory; for one cluster name a file")

    def place(self, cluster: str) -> Path:
        """Return the path of the plan of a cluster."""
        return self.out / f"{cluster}.json" if self.is_many else self.out

    def save(self, plan: Plan) -> None:
        """Write a plan file atomically."""
        self.keep(plan.cluster, render_plan(plan, "json"))

    def keep(self, cluster: str, text: str) -> None:
        """Write an encoded plan to the file of its cluster."""
        path = self.place(cluster)
        if self.is_many:
            try:
                self.out.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise UsageError(f"{self.out} cannot be made: {error.strerror}") from error
        write_whole(path, text)
        print_note(f"saved to {path}; apply it with: reconciler apply {path}")

    def clear(self, cluster: str) -> None:
        """Remove the plan of an earlier run if this run has none: it must not be applied."""
        path = self.place(cluster)
        if path.exists():
            path.unlink()
            print_note(f"removed stale {path}")


def choose_output(out: Path | None, form: PlanFormat) -> tuple[Path | None, PlanFormat]:
    """Return where a plan is saved and how it is printed: `--out -` prints the plan file itself.

    Errors: UsageError if another format is asked for, too.
    """
    if out != STDOUT:
        return out, form
    if is_given("form") and form != "json":
        raise UsageError(f"--out - prints the plan file; leave out --format {form}")
    return None, "json"


PENDING = 2
"""The exit code of `--detailed-exitcode` if changes are pending."""


def choose_code(plans: Sequence[Plan], *, detailed: bool) -> int:
    """Return 1 if something is refused, 2 if changes are pending and it is asked for, else 0."""
    from reconciler.diff.guards import list_refusals
    from reconciler.model.steps import has_steps

    if any(list_refusals(plan) for plan in plans):
        return 1
    return PENDING if detailed and any(map(has_steps, plans)) else 0


def offer_plan(plan: Plan, form: PlanFormat, out: Path | None, *, detailed: bool) -> int:
    """Print a plan that was asked for, and save it, even if nothing is to be done.

    Returns: the exit code of `choose_code`. Errors: UsageError if the plan cannot be saved.
    """
    print_plans([Shown(plan, str(out) if out else None)], form)
    if out is not None:
        PlanFiles(out, is_many=False).save(plan)
    return choose_code([plan], detailed=detailed)


def check_out(out: Path | None) -> None:
    """Refuse a directory for the file of one plan, before anything is read. Errors: UsageError."""
    if out is not None:
        PlanFiles(out, is_many=False).check()


def write_whole(path: Path, text: str) -> None:
    """Write a file atomically. Errors: UsageError."""
    try:
        write_file(path, text)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error


FILES_NAMED = 5


def read_plan(path: Path) -> Plan:
    """Read a plan file. Errors: PlanFileError."""
    from reconciler.planfile.codec import decode_plan

    # Bytes that are not UTF-8 are replaced: the seal then refuses the file, with a clear message.
    return decode_plan(path.read_text(encoding="utf-8", errors="replace"), str(path))


def read_approval(path: Path) -> Approval:
    """Read the file of an approval. Errors: PlanFileError."""
    from reconciler.planfile.approval import decode_approval

    return decode_approval(path.read_text(encoding="utf-8", errors="replace"), str(path))


def read_accepted(path: Path) -> Accepted:
    """Read the file of accepted topics. Errors: PlanFileError."""
    from reconciler.planfile.accepted import decode_accepted

    return decode_accepted(path.read_text(encoding="utf-8", errors="replace"), str(path))


def refuse_other_specs(plan: Plan, estate: Path) -> None:
    """Refuse a plan if the specs differ from those of its commit.

    A note reports a plan that cannot be compared. Errors: FindingsError that names the files.
    """
    commit = plan.commit
    if commit is None:
        return
    if commit.dirty:
        _doubt(commit, "it was made of specs that were not all committed")
        return
    try:
        found = Checkout(estate).compare(commit.sha)
    except UnknownCommitError:
        _doubt(commit, "that commit is not in this repository, or not in this shallow clone")
    except GitError as error:
        _doubt(commit, str(error))
    else:
        if not found:
            return
        names = sorted(found.files) + [f"{name} (gone)" for name in sorted(found.gone)]
        more = len(names) - FILES_NAMED
        said = ", ".join(names[:FILES_NAMED]) + (f" and {more:,} more" if more > 0 else "")
        short = commit.sha[:SHORT]
        what = f"the plan was made of the specs of commit {short}, and others are here: {said}"
        way_out = f"check out {short}, or plan again"
        raise FindingsError([Finding("plan-commit", what, way_out)])


def _doubt(commit: Commit, why: str) -> None:
    print_note(f"the plan is of commit {commit.sha[:SHORT]}, not compared with the specs: {why}")


class Shown(NamedTuple):
    """A plan, and the path of its file, if there is one."""

    plan: Plan
    saved: str | None = None


def print_plans(plans: Sequence[Shown], form: PlanFormat, *, unmanaged: bool = False) -> None:
    """Print plans. The form `github` also appends them to the summary and outputs of a workflow.

    JSON is one line per plan; a blank line separates texts and comments.
    """
    if form == "github":
        from reconciler.show.github import render_github

        print_annotations(render_github(*(shown.plan for shown in plans)))
        report_plans(plans)
        return
    colour, width = wants_colour(sys.stdout), fold_width()
    between = "\n" if form == "json" else "\n\n"
    pages = [
        render_plan(
            plan, form, colour=colour, saved=saved, unmanaged=unmanaged, width=width
        ).rstrip("\n")
        for plan, saved in plans
    ]
    if pages:
        click.echo(between.join(pages), color=True)


LEAST_ROOM = 65_536
"""The least room for a plan's summary; it fits any number of changes. Units: bytes."""


def report_plans(plans: Sequence[Shown]) -> None:
    """Append plans to the summary and the outputs of a workflow, if the runner names files."""
    from reconciler.show.github import list_outputs

    if name := os.environ.get("GITHUB_STEP_SUMMARY"):
        for number, (plan, saved) in enumerate(plans):
            _summarise(plan, saved, Path(name), share=len(plans) - number)
    if name := os.environ.get("GITHUB_OUTPUT"):
        outputs = list_outputs(*(shown.plan for shown in plans))
        lines = [f"{key}={value}\n" for key, value in outputs.items()]
        _append(Path(name), "".join(lines))


def _summarise(plan: Plan, saved: str | None, path: Path, share: int) -> None:
    """Append a plan to the summary of this step. `share`: the number of plans not yet in it."""
    from reconciler.show.github import SUMMARY_LIMIT
    from reconciler.show.markdown.page import render_markdown

    # GitHub drops a summary that exceeds its limit, so each plan gets an equal part of the rest.
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
