"""GitLab's REST interface, as far as notes, approvals, issues and merged requests go."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any
from urllib.parse import quote, urlencode

from reconciler.codehost.host import (
    NEVER,
    Branch,
    FileChange,
    Note,
    Proposal,
    PullRequest,
    Review,
)
from reconciler.codehost.rest import Rest
from reconciler.show.markdown.marks import code

_APPROVED = "approved this merge request"
"""The note that GitLab adds; in English, whatever the language of the person."""
_STOPPED = ("canceled", "canceling")
"""The states of a job that somebody stopped."""
_LONG_AGO = "0001-01-01T00:00:00Z"


class GitLab:
    """A project on GitLab, as seen by the account that the token belongs to."""

    def __init__(
        self,
        base: str,
        project: str,
        token: str,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._rest = Rest(base, {"PRIVATE-TOKEN": token}, {"User-Agent": "reconciler"}, wait)
        self._project = f"projects/{project}"

    @cached_property
    def _author(self) -> str:
        return str(self._rest.send("GET", "user")["username"])

    def list_comments(self, number: int) -> Iterator[Note]:
        """Yield the notes on a merge request that this account wrote; GitLab adds its own."""
        for note, is_system in self._list_notes(number):
            if note.author == self._author and not is_system:
                yield note

    def _list_notes(self, number: int) -> Iterator[tuple[Note, bool]]:
        path = f"{self._project}/merge_requests/{number}/notes"
        for item in self._rest.list(path, sort="asc", order_by="created_at"):
            author = item["author"]["username"]
            yield Note(item["id"], author, item["body"], *_read_times(item)), item["system"]

    def create_comment(self, number: int, body: str) -> None:
        """Write a note on a merge request."""
        self._rest.send("POST", f"{self._project}/merge_requests/{number}/notes", {"body": body})

    def update_comment(self, number: int, comment: int, body: str) -> None:
        """Replace the words of a note."""
        path = f"{self._project}/merge_requests/{number}/notes/{comment}"
        self._rest.send("PUT", path, {"body": body})

    def list_issues(self) -> Iterator[Note]:
        """Yield the open issues that this account opened."""
        asked = {"state": "opened", "scope": "all", "author_username": self._author}
        for item in self._rest.list(f"{self._project}/issues", **asked):
            text = item["description"] or ""
            yield Note(item["iid"], self._author, text, *_read_times(item))

    def create_issue(self, title: str, body: str) -> None:
        """Open an issue."""
        self._rest.send("POST", f"{self._project}/issues", {"title": title, "description": body})

    def update_issue(self, issue: int, title: str, body: str) -> None:
        """Replace the words of an issue."""
        words = {"title": title, "description": body}
        self._rest.send("PUT", f"{self._project}/issues/{issue}", words)

    def close_issue(self, issue: int, reason: str) -> None:
        """Write the reason in a note, then close."""
        self._rest.send("POST", f"{self._project}/issues/{issue}/notes", {"body": reason})
        self._rest.send("PUT", f"{self._project}/issues/{issue}", {"state_event": "close"})

    def is_merged(self, number: int) -> bool:
        """Return whether a merge request is merged, now."""
        found = self._rest.send("GET", f"{self._project}/merge_requests/{number}")
        return bool(found["state"] == "merged")

    def list_open(self) -> Iterator[int]:
        """Yield the numbers of the open merge requests, the newest first."""
        asked = {"state": "opened", "scope": "all", "order_by": "created_at", "sort": "desc"}
        for item in self._rest.list(f"{self._project}/merge_requests", **asked):
            yield item["iid"]

    def link_request(self, number: int) -> str:
        """Return what GitLab turns into a link."""
        return f"!{number}"

    def list_reviews(self, number: int) -> Sequence[Review]:
        """Return the approvals that are not withdrawn. GitLab's notes have their times."""
        path = f"{self._project}/merge_requests/{number}/approvals"
        approvals = self._rest.send("GET", path)["approved_by"]
        if not approvals:
            return []
        times = {
            note.author: note.written_at
            for note, is_system in self._list_notes(number)
            if is_system and note.body == _APPROVED
        }
        names = [item["user"]["username"] for item in approvals]
        # An approval without a time approves no plan.
        return [Review(name, times.get(name, NEVER), name in times) for name in names]

    def say_by_hand(self, job: str, cluster: str, fingerprint: str, run: str = "") -> str:
        """Say how a person starts a job."""
        variables = {"FINGERPRINT": fingerprint, "RUN": run}
        listed = " and ".join(code(f"{name}={value}") for name, value in variables.items() if value)
        return f"start the job {code(f'{job} {cluster}')} with {listed}"

    def list_merged(self, commit: str) -> Sequence[PullRequest]:
        """Return the merge requests that became this commit: merged, squashed or fast-forwarded."""
        return [request for request, became in self._list_holding(commit) if became]

    def list_brought(self, commit: str) -> Sequence[PullRequest]:
        """Return the merge requests that became this commit, or were fast-forwarded with it."""
        found = self._list_holding(commit)
        return [request for request, became in found if became] or [each for each, _ in found]

    def _list_holding(self, commit: str) -> list[tuple[PullRequest, bool]]:
        """Return the merged requests that contain a commit, and whether each became it."""
        path = f"{self._project}/repository/commits/{commit}/merge_requests"
        return [
            (
                _read_merged(item),
                commit in (item["merge_commit_sha"], item["squash_commit_sha"], item["sha"]),
            )
            for item in self._rest.list(path)
            if item["state"] == "merged"
        ]

    def list_recently_merged(self) -> Iterator[PullRequest]:
        """Yield the merged merge requests, those that were changed last first."""
        asked = {"state": "merged", "scope": "all", "order_by": "updated_at", "sort": "desc"}
        for item in self._rest.list(f"{self._project}/merge_requests", **asked):
            yield _read_merged(item)

    def find_hold(self, request: PullRequest, cluster: str) -> str:
        """Say that the job that applies the merge was not started, or was cancelled.

        The approvers of its environment start it. A job that waits for an earlier stage, or whose
        deployment they rejected, was never started. Neither was one of a merge without a pipeline.
        """
        name = f"apply {cluster}"
        asked = {"sha": request.merged_as, "source": "push"}
        for pipeline in self._rest.list(f"{self._project}/pipelines", **asked):
            for job in self._rest.list(f"{self._project}/pipelines/{pipeline['id']}/jobs"):
                if job["name"] == name and job["started_at"] and job["status"] not in _STOPPED:
                    return ""
        return f"its job {name} was not started, or was cancelled"

    def find_branch(self, name: str) -> Branch | None:
        """Return a branch, None if there is none."""
        asked = urlencode({"search": f"^{name}$"})
        path = f"{self._project}/repository/branches?{asked}"
        for item in self._rest.send("GET", path):
            if item["name"] == name:
                return Branch(item["commit"]["id"], item["commit"]["message"])
        return None

    def set_branch(self, name: str, change: FileChange) -> None:
        """Let a branch have one commit more than its base."""
        update = {"action": "update", "file_path": change.path, "content": change.text}
        commit = {
            "branch": name,
            "start_sha": change.base,
            "force": True,
            "commit_message": change.message,
            "actions": [update],
        }
        self._rest.send("POST", f"{self._project}/repository/commits", commit)

    def delete_branch(self, name: str) -> None:
        """Delete a branch."""
        path = f"{self._project}/repository/branches/{quote(name, safe='')}"
        self._rest.send("DELETE", path)

    def find_proposal(self, branch: str) -> Proposal | None:
        """Return the newest merge request from a branch of this project, not of a fork."""
        asked = {"source_branch": branch, "scope": "all", "order_by": "created_at", "sort": "desc"}
        for item in self._rest.list(f"{self._project}/merge_requests", **asked):
            if item["source_project_id"] == item["target_project_id"]:
                state = item["state"]
                return Proposal(item["iid"], state == "opened", state == "merged")
        return None

    def propose(self, branch: str, target: str, title: str, body: str) -> int:
        """Open a merge request."""
        wanted = {"title": title, "description": body, "remove_source_branch": True}
        wanted |= {"source_branch": branch, "target_branch": target}
        return int(self._rest.send("POST", f"{self._project}/merge_requests", wanted)["iid"])

    def update_proposal(self, number: int, title: str, body: str) -> None:
        """Replace the words of a merge request."""
        words = {"title": title, "description": body}
        self._rest.send("PUT", f"{self._project}/merge_requests/{number}", words)

    def withdraw(self, number: int, reason: str) -> None:
        """Write the reason in a note, then close."""
        self.create_comment(number, reason)
        closed = {"state_event": "close"}
        self._rest.send("PUT", f"{self._project}/merge_requests/{number}", closed)

    def ask_reviewers(self, number: int, owners: Iterable[str]) -> None:
        """Ask people; of a group, GitLab notifies the members, whom the text mentions."""
        names = [owner.removeprefix("@") for owner in owners if owner.startswith("@")]
        found = []
        for name in (name for name in names if "/" not in name):
            found += self._rest.send("GET", f"users?{urlencode({'username': name})}")
        ids = [user["id"] for user in found]
        path = f"{self._project}/merge_requests/{number}"
        self._rest.send("PUT", path, {"reviewer_ids": ids})


def _read_merged(item: dict[str, Any]) -> PullRequest:
    # A fast-forward has no commit of its own: then the head of the branch is the commit.
    # Very old merges have no time: then no plan was shown before it.
    return PullRequest(
        item["iid"],
        item["sha"],
        datetime.fromisoformat(item["merged_at"] or _LONG_AGO),
        item["merge_commit_sha"] or item["squash_commit_sha"] or item["sha"],
    )


def _read_times(item: dict[str, Any]) -> tuple[datetime, datetime]:
    return datetime.fromisoformat(item["created_at"]), datetime.fromisoformat(item["updated_at"])
