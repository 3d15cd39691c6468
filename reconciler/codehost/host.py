"""What every code host offers: comments on a request, issues, and which request was merged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@dataclass(frozen=True, slots=True)
class Note:
    """A comment, or an issue: who wrote it, and its markdown."""

    id: int
    author: str
    body: str


@dataclass(frozen=True, slots=True)
class PullRequest:
    """A pull request, or merge request: its number, and the newest commit of its branch."""

    number: int
    head: str


class CodeHost(Protocol):
    """A repository on a code host.

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

    def list_merged(self, commit: str) -> Sequence[PullRequest]:
        """Return the requests whose merge, of any kind, made this commit."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run of a workflow: its host, its address, its commit, and its request, if there is one."""

    host: CodeHost
    url: str
    commit: str
    request: PullRequest | None


@dataclass(frozen=True, slots=True)
class Links:
    """Where people read more: the addresses of a run, of its request, and of its commit."""

    run: str | None = None
    request: str | None = None
    commit: str | None = None
