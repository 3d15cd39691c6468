"""What every code host offers: comments and reviews of a request, issues, what was merged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Note:
    """A comment, or an issue: who wrote it, its markdown, and when it was written and edited."""

    id: int
    author: str
    body: str
    written_at: datetime
    edited_at: datetime


@dataclass(frozen=True, slots=True)
class Review:
    """The opinion of a person on a request: whether it approves, and when it was submitted."""

    author: str
    at: datetime
    approves: bool = True


NEVER = datetime.max.replace(tzinfo=UTC)
"""The time of a merge that has not happened."""


@dataclass(frozen=True, slots=True)
class PullRequest:
    """A pull request, or merge request: its number, and the newest commit of its branch.

    `merged_as` is the commit that it became, empty if it is not merged.
    """

    number: int
    head: str
    merged_at: datetime = NEVER
    merged_as: str = ""


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch: its newest commit, and the message of that commit."""

    commit: str
    message: str


@dataclass(frozen=True, slots=True)
class Proposal:
    """The newest request from a branch: its number, and whether it is open or merged."""

    number: int
    is_open: bool
    is_merged: bool = False


@dataclass(frozen=True, slots=True)
class FileChange:
    """A commit that changes one file, on top of the commit `base`."""

    base: str
    path: str
    text: str
    message: str


class CodeHost(Protocol):
    """A repository on a code host. All times are of its clock.

    Errors: CodeHostError; after UnansweredError the effect is unknown: check before a retry.
    """

    def list_comments(self, number: int) -> Iterable[Note]:
        """Yield the comments on a request that this account wrote, the oldest first."""

    def create_comment(self, number: int, body: str) -> None:
        """Comment on a request."""

    def update_comment(self, number: int, comment: int, body: str) -> None:
        """Replace the words of a comment."""

    def list_issues(self) -> Iterable[Note]:
        """Yield the open issues that this account opened."""

    def create_issue(self, title: str, body: str) -> None:
        """Open an issue."""

    def update_issue(self, issue: int, title: str, body: str) -> None:
        """Replace the words of an issue."""

    def close_issue(self, issue: int, reason: str) -> None:
        """Write the reason in a comment, then close."""

    def is_merged(self, number: int) -> bool:
        """Return whether a request is merged, now."""

    def list_open(self) -> Iterable[int]:
        """Yield the numbers of the open requests, the newest first."""

    def link_request(self, number: int) -> str:
        """Return the words that a comment of this host turns into a link to a request."""

    def list_reviews(self, number: int) -> Sequence[Review]:
        """Return the last opinion of each person whose review of a request counts."""

    def say_by_hand(self, job: str, cluster: str, fingerprint: str, run: str = "") -> str:
        """Say how a person approves a plan by its fingerprint, or continues the plan of a run."""

    def list_merged(self, commit: str) -> Sequence[PullRequest]:
        """Return the requests whose merge, of any kind, made this commit."""

    def list_brought(self, commit: str) -> Sequence[PullRequest]:
        """Return the merged requests that brought this commit: as their merge, or below it."""

    def list_recently_merged(self) -> Iterable[PullRequest]:
        """Yield the merged requests, those that were changed last first."""

    def find_hold(self, request: PullRequest, cluster: str) -> str:
        """Say which person keeps the apply of a merged request from a cluster; empty if none does.

        Approvers of its environment may have rejected the apply, or may not have let it begin yet.
        """

    def find_branch(self, name: str) -> Branch | None:
        """Return a branch, None if there is none."""

    def set_branch(self, name: str, change: FileChange) -> None:
        """Let a branch, new or not, have one commit more than its base, and nothing else."""

    def delete_branch(self, name: str) -> None:
        """Delete a branch."""

    def find_proposal(self, branch: str) -> Proposal | None:
        """Return the newest request from a branch of this repository, open or not."""

    def propose(self, branch: str, target: str, title: str, body: str) -> int:
        """Open a request from a branch to another one. Returns its number."""

    def update_proposal(self, number: int, title: str, body: str) -> None:
        """Replace the words of a request."""

    def withdraw(self, number: int, reason: str) -> None:
        """Write the reason in a comment on a request, then close it."""

    def ask_reviewers(self, number: int, owners: Iterable[str]) -> None:
        """Ask people and teams for a review of a request; each is written as in CODEOWNERS."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run of a workflow: its host, its address, its commit, and its request, if there is one.

    `is_push`: a push to a branch started it, so it is about what became its commit. `branch` is the
    branch that it runs on, empty if it has none.
    """

    host: CodeHost
    url: str
    commit: str
    request: PullRequest | None
    is_push: bool = True
    branch: str = ""


@dataclass(frozen=True, slots=True)
class Links:
    """Where people read more: the addresses of a run, of its request, and of its commit."""

    run: str | None = None
    request: str | None = None
    commit: str | None = None
