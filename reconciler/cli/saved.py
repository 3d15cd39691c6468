"""A saved plan: read again, and held against the specs that are here now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.cli.git import Checkout, GitError, UnknownCommitError
from reconciler.cli.terminal import print_note
from reconciler.errors import Finding, FindingsError
from reconciler.model import SHORT

if TYPE_CHECKING:
    from pathlib import Path

    from reconciler.cli.git import Differences
    from reconciler.model import Commit, Plan

FILES_NAMED = 5


def read_plan(path: Path) -> Plan:
    """Read a plan file. Errors: PlanFileError."""
    from reconciler.plan import decode_plan

    return decode_plan(path.read_text(encoding="utf-8", errors="replace"), str(path))


def refuse_other_specs(plan: Plan, estate: Path) -> None:
    """Refuse a plan where the specs are not those of its commit any more.

    What cannot be told is said: the plan was made before a commit, or its commit is not here.
    Errors: FindingsError that names the files.
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
        if found:
            raise FindingsError([_refuse(commit, found)])


def _doubt(commit: Commit, why: str) -> None:
    print_note(f"the plan is of commit {commit.sha[:SHORT]}, not held against the specs: {why}")


def _refuse(commit: Commit, found: Differences) -> Finding:
    names = sorted(found.files) + [f"{name} (gone)" for name in sorted(found.gone)]
    more = len(names) - FILES_NAMED
    said = ", ".join(names[:FILES_NAMED]) + (f" and {more:,} more" if more > 0 else "")
    short = commit.sha[:SHORT]
    what = f"the plan was made of the specs of commit {short}, and others are here: {said}"
    return Finding("plan-commit", what, f"check out {short}, or plan again")
