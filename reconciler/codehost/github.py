"""GitHub's REST interface, as far as comments, reviews, issues and merged pull requests go."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode

from reconciler.codehost.host import Branch, FileChange, Note, Proposal, PullRequest, Review
from reconciler.codehost.rest import Rest
from reconciler.errors import CodeHostError
from reconciler.show.markdown.marks import code

JOB_ACCOUNT = "github-actions[bot]"
"""The author of what is written with the token that GitHub gives to a job."""

_APPLIES = "/apply.yml"
"""The workflow whose runs apply what was merged."""
_APPROVED = "APPROVED"
_OPINIONS = (_APPROVED, "CHANGES_REQUESTED", "DISMISSED")
"""The states of a review that replace an earlier opinion; a comment does not."""


def open_github(base: str, token: str, wait: Callable[[float], None] = time.sleep) -> Rest:
    """Return the REST interface of GitHub with a token."""
    headers = {
        "Accept": "application/vnd.github+json",
        "X-GitHub-Api-Version": "2022-11-28",
        "User-Agent": "reconciler",
    }
    return Rest(base, {"Authorization": f"Bearer {token}"}, headers, wait)


class GitHub:
    """A repository on GitHub, as seen by the account that writes there."""

    def __init__(
        self,
        base: str,
        repository: str,
        token: str,
        author: str = JOB_ACCOUNT,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._rest = open_github(base, token, wait)
        self._repository = f"repos/{repository}"
        self._author = author

    def list_comments(self, number: int) -> Iterator[Note]:
        """Yield the comments on a pull request that this account wrote."""
        return self._own(f"{self._repository}/issues/{number}/comments")

    def _own(self, path: str, **query: str) -> Iterator[Note]:
        for item in self._rest.list(path, **query):
            if _author(item) == self._author and "pull_request" not in item:
                number = item.get("number") or item["id"]
                yield Note(
                    number,
                    _author(item),
                    item["body"] or "",
                    datetime.fromisoformat(item["created_at"]),
                    datetime.fromisoformat(item["updated_at"]),
                )

    def create_comment(self, number: int, body: str) -> None:
        """Comment on a pull request, or an issue."""
        self._rest.send("POST", f"{self._repository}/issues/{number}/comments", {"body": body})

    def update_comment(self, number: int, comment: int, body: str) -> None:  # noqa: ARG002
        """Replace the words of a comment."""
        self._rest.send("PATCH", f"{self._repository}/issues/comments/{comment}", {"body": body})

    def list_issues(self) -> Iterator[Note]:
        """Yield the open issues that this account opened; GitHub lists pull requests with them."""
        return self._own(f"{self._repository}/issues", state="open")

    def create_issue(self, title: str, body: str) -> None:
        """Open an issue."""
        self._rest.send("POST", f"{self._repository}/issues", {"title": title, "body": body})

    def update_issue(self, issue: int, title: str, body: str) -> None:
        """Replace the words of an issue."""
        words = {"title": title, "body": body}
        self._rest.send("PATCH", f"{self._repository}/issues/{issue}", words)

    def close_issue(self, issue: int, reason: str) -> None:
        """Write the reason in a comment, then close."""
        self.create_comment(issue, reason)
        closed = {"state": "closed", "state_reason": "completed"}
        self._rest.send("PATCH", f"{self._repository}/issues/{issue}", closed)

    def is_merged(self, number: int) -> bool:
        """Return whether a pull request is merged, now."""
        return bool(self._rest.send("GET", f"{self._repository}/pulls/{number}")["merged_at"])

    def list_open(self) -> Iterator[int]:
        """Yield the numbers of the open pull requests, the newest first."""
        asked = {"state": "open", "sort": "created", "direction": "desc"}
        for item in self._rest.list(f"{self._repository}/pulls", **asked):
            yield item["number"]

    def link_request(self, number: int) -> str:
        """Return what GitHub turns into a link."""
        return f"#{number}"

    def list_reviews(self, number: int) -> Sequence[Review]:
        """Return the last opinion of each person who may write.

        Everybody who can read a repository can approve, also a program that saw no plan.
        """
        last = {
            _author(item): item
            for item in self._rest.list(f"{self._repository}/pulls/{number}/reviews")
            if item["state"] in _OPINIONS and (item.get("user") or {}).get("type") == "User"
        }
        return [
            Review(author, datetime.fromisoformat(item["submitted_at"]), item["state"] == _APPROVED)
            for author, item in last.items()
            if self._may_write(author, item["author_association"])
        ]

    def _may_write(self, user: str, association: str) -> bool:
        path = f"{self._repository}/collaborators/{quote(user, safe='')}/permission"
        try:
            return self._rest.send("GET", path)["permission"] in ("admin", "write")
        except CodeHostError as error:
            # A token of an app may lack this permission, which a token of a job has.
            if error.findings[0].rule != "code-host-access":
                raise
            return association in ("OWNER", "MEMBER", "COLLABORATOR")

    def say_by_hand(self, job: str, cluster: str, fingerprint: str, run: str = "") -> str:
        """Say how a person runs a workflow."""
        inputs = {"cluster": cluster, "fingerprint": fingerprint, "run": run}
        *first, last = (f"{name} {code(value)}" for name, value in inputs.items() if value)
        return f"run *{job}* by hand with {', '.join(first)} and {last}"

    def list_merged(self, commit: str) -> Sequence[PullRequest]:
        """Return the pull requests that became this commit: merged, squashed or rebased."""
        return [request for request, became in self._list_holding(commit) if became]

    def list_brought(self, commit: str) -> Sequence[PullRequest]:
        """Return the pull requests that became this commit, or that were rebased with it."""
        found = self._list_holding(commit)
        return [request for request, became in found if became] or [each for each, _ in found]

    def _list_holding(self, commit: str) -> list[tuple[PullRequest, bool]]:
        """Return the merged pull requests that contain a commit, and whether each became it."""
        return [
            (_read_merged(item), item["merge_commit_sha"] == commit)
            for item in self._rest.list(f"{self._repository}/commits/{commit}/pulls")
            if item["merged_at"]
        ]

    def list_recently_merged(self) -> Iterator[PullRequest]:
        """Yield the merged pull requests, those that were changed last first."""
        asked = {"state": "closed", "sort": "updated", "direction": "desc"}
        for item in self._rest.list(f"{self._repository}/pulls", **asked):
            if item["merged_at"]:
                yield _read_merged(item)

    def find_hold(self, request: PullRequest, cluster: str) -> str:
        """Say who keeps the apply of the merge from a cluster: its approvers, or one of them.

        A rejection holds, whatever a later attempt of the run got. If the environment of the
        cluster asks reviewers, one of them must have let the apply begin. A run of moves asks them
        for something else.
        """
        runs = f"{self._repository}/actions/runs"
        asked = urlencode({"head_sha": request.merged_as, "event": "push", "per_page": "100"})
        found = self._rest.send("GET", f"{runs}?{asked}")["workflow_runs"]
        approved = False
        for run in (run for run in found if _APPLIES in run["path"]):
            for review in self._rest.send("GET", f"{runs}/{run['id']}/approvals"):
                if cluster in _name_environments(review):
                    if review["state"] == "rejected":
                        return f"{_author(review)} rejected its apply on {cluster}"
                    approved |= review["state"] == "approved"
            waiting = self._rest.send("GET", f"{runs}/{run['id']}/pending_deployments")
            if any(one["environment"]["name"] == cluster for one in waiting):
                return f"its apply on {cluster} still waits for an approval"
        if approved or not self._asks_reviewers(cluster):
            return ""
        return f"no reviewer of the environment {cluster} let its apply begin"

    def find_branch(self, name: str) -> Branch | None:
        """Return a branch, None if there is none."""
        # Other branches may begin with its name.
        for item in self._rest.send("GET", f"{self._repository}/git/matching-refs/heads/{name}"):
            if item["ref"] == f"refs/heads/{name}":
                commit = item["object"]["sha"]
                path = f"{self._repository}/git/commits/{commit}"
                return Branch(commit, self._rest.send("GET", path)["message"])
        return None

    def set_branch(self, name: str, change: FileChange) -> None:
        """Let a branch have one commit more than its base. GitHub signs it for an app."""
        git = f"{self._repository}/git"
        below = self._rest.send("GET", f"{git}/commits/{change.base}")["tree"]["sha"]
        file = {"path": change.path, "mode": "100644", "type": "blob", "content": change.text}
        tree = self._rest.send("POST", f"{git}/trees", {"base_tree": below, "tree": [file]})["sha"]
        commit = {"message": change.message, "tree": tree, "parents": [change.base]}
        made = self._rest.send("POST", f"{git}/commits", commit)["sha"]
        if self.find_branch(name):
            moved = {"sha": made, "force": True}
            self._rest.send("PATCH", f"{git}/refs/heads/{name}", moved)
        else:
            new = {"ref": f"refs/heads/{name}", "sha": made}
            self._rest.send("POST", f"{git}/refs", new)

    def delete_branch(self, name: str) -> None:
        """Delete a branch."""
        self._rest.send("DELETE", f"{self._repository}/git/refs/heads/{name}")

    def find_proposal(self, branch: str) -> Proposal | None:
        """Return the newest pull request from a branch of this repository, not of a fork."""
        owner = self._repository.split("/")[1]
        asked = {"head": f"{owner}:{branch}", "state": "all", "sort": "created"}
        for item in self._rest.list(f"{self._repository}/pulls", **asked, direction="desc"):
            return Proposal(item["number"], item["state"] == "open", bool(item["merged_at"]))
        return None

    def propose(self, branch: str, target: str, title: str, body: str) -> int:
        """Open a pull request."""
        wanted = {"title": title, "body": body, "head": branch, "base": target}
        return int(self._rest.send("POST", f"{self._repository}/pulls", wanted)["number"])

    def update_proposal(self, number: int, title: str, body: str) -> None:
        """Replace the words of a pull request."""
        words = {"title": title, "body": body}
        self._rest.send("PATCH", f"{self._repository}/pulls/{number}", words)

    def withdraw(self, number: int, reason: str) -> None:
        """Write the reason in a comment, then close."""
        self.create_comment(number, reason)
        self._rest.send("PATCH", f"{self._repository}/pulls/{number}", {"state": "closed"})

    def ask_reviewers(self, number: int, owners: Iterable[str]) -> None:
        """Ask people and teams; GitHub knows no address as a reviewer."""
        names = [owner.removeprefix("@") for owner in owners if owner.startswith("@")]
        wanted = {
            "reviewers": [name for name in names if "/" not in name],
            "team_reviewers": [name.partition("/")[2] for name in names if "/" in name],
        }
        path = f"{self._repository}/pulls/{number}/requested_reviewers"
        self._rest.send("POST", path, wanted)

    def _asks_reviewers(self, environment: str) -> bool:
        path = f"{self._repository}/environments/{quote(environment, safe='')}"
        rules = self._rest.send("GET", path).get("protection_rules") or ()
        return any(rule["type"] == "required_reviewers" for rule in rules)


def _read_merged(item: dict[str, Any]) -> PullRequest:
    return PullRequest(
        item["number"],
        item["head"]["sha"],
        datetime.fromisoformat(item["merged_at"]),
        item["merge_commit_sha"] or "",
    )


def _name_environments(review: dict[str, Any]) -> list[str]:
    return [environment["name"] for environment in review["environments"]]


def _author(item: dict[str, Any]) -> str:
    """Return the author; a deleted account has no name."""
    return str((item.get("user") or {}).get("login", ""))
