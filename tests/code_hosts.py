"""The dialects of GitHub and GitLab, as far as comments, issues and merged requests go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from code_host import TOKEN, Answer, CodeHost

if TYPE_CHECKING:
    from collections.abc import Callable

    from code_host import Ask, Talk


class GitHubHost(CodeHost):
    """Speaks as api.github.com does."""

    me = "github-actions[bot]"

    def admits(self, headers: Any) -> bool:
        return headers.get("Authorization") == f"Bearer {TOKEN}"

    def routes(self) -> list[tuple[str, str, Callable[[Ask], Answer]]]:
        repository = "/repos/shop/topics"
        return [
            ("GET", f"{repository}/issues/(\\d+)/comments", self._comments),
            ("POST", f"{repository}/issues/(\\d+)/comments", self._comment),
            ("PATCH", f"{repository}/issues/comments/(\\d+)", self._edit),
            ("GET", f"{repository}/issues", self._issues),
            ("POST", f"{repository}/issues", self._open),
            ("PATCH", f"{repository}/issues/(\\d+)", self._edit_issue),
            ("GET", f"{repository}/commits/([0-9a-f]+)/pulls", self._pulls),
        ]

    def _comments(self, ask: Ask) -> Answer:
        return Answer(200, [self._note(note) for note in self.talks[ask.number].comments])

    def _note(self, note: dict[str, Any]) -> dict[str, Any]:
        user = {"login": note["author"]} if note["author"] else None
        return {"id": note["id"], "user": user, "body": note["body"]}

    def _comment(self, ask: Ask) -> Answer:
        return Answer(
            201, self._note(self.comment(self.talks[ask.number], self.me, ask.body["body"]))
        )

    def _edit(self, ask: Ask) -> Answer:
        note = self.find_comment(ask.number)
        assert note is not None
        note["body"] = ask.body["body"]
        return Answer(200, self._note(note))

    def _issues(self, ask: Ask) -> Answer:
        assert ask.query["state"] == "open"
        newest_first = sorted(self.talks.items(), reverse=True)
        return Answer(200, [self._issue(n, talk) for n, talk in newest_first if talk.open])

    def _issue(self, number: int, talk: Talk) -> dict[str, Any]:
        issue = {"number": number, "id": number + 10**9, "user": {"login": talk.author}}
        issue |= {"title": talk.title, "body": talk.body or None}
        return issue | ({"pull_request": {}} if talk.is_request else {})

    def _open(self, ask: Ask) -> Answer:
        number = self.open_issue(ask.body["title"], ask.body["body"], self.me)
        return Answer(201, self._issue(number, self.talks[number]))

    def _edit_issue(self, ask: Ask) -> Answer:
        talk = self.talks[ask.number]
        talk.title, talk.body = ask.body.get("title", talk.title), ask.body.get("body", talk.body)
        talk.open = ask.body.get("state") != "closed"
        return Answer(200, self._issue(ask.number, talk))

    def _pulls(self, ask: Ask) -> Answer:
        """GitHub lists open requests that hold a commit, too, until it is on the default branch."""
        return Answer(
            200,
            [
                {
                    "number": number,
                    "head": {"sha": talk.head},
                    "merged_at": "2026-11-20T10:00:00Z" if talk.merged_as else None,
                    "merge_commit_sha": talk.merged_as or "f" * 40,
                }
                for number, talk in self.talks.items()
                if ask.found[0] in (talk.merged_as, talk.head)
            ],
        )


class GitLabHost(CodeHost):
    """Speaks as gitlab.com/api/v4 does."""

    me = "project_1217_bot"

    def __init__(self) -> None:
        super().__init__()
        self.artifacts: dict[tuple[int, str], Any] = {}

    def admits(self, headers: Any) -> bool:
        return headers.get("PRIVATE-TOKEN") == TOKEN

    def routes(self) -> list[tuple[str, str, Callable[[Ask], Answer]]]:
        project = "/projects/1217"
        return [
            ("GET", "/user", lambda _: Answer(200, {"username": self.me})),
            ("GET", f"{project}/merge_requests/(\\d+)/notes", self._notes),
            ("POST", f"{project}/(?:merge_requests|issues)/(\\d+)/notes", self._add),
            ("PUT", f"{project}/merge_requests/(\\d+)/notes/(\\d+)", self._edit),
            ("GET", f"{project}/issues", self._issues),
            ("POST", f"{project}/issues", self._open),
            ("PUT", f"{project}/issues/(\\d+)", self._edit_issue),
            ("GET", f"{project}/repository/commits/([0-9a-f]+)/merge_requests", self._merged),
            ("GET", f"{project}/jobs/(\\d+)/artifacts/(.+)", self._artifact),
        ]

    def _artifact(self, ask: Ask) -> Answer:
        return Answer(200, self.artifacts[int(ask.found[0]), ask.found[1]])

    def _notes(self, ask: Ask) -> Answer:
        notes = [self._note(note) for note in self.talks[ask.number].comments]
        return Answer(200, notes if ask.query.get("sort") == "asc" else notes[::-1])

    def _note(self, note: dict[str, Any]) -> dict[str, Any]:
        system = note["body"].startswith("added 1 commit")
        author = {"username": note["author"]}
        return {"id": note["id"], "author": author, "body": note["body"], "system": system}

    def _add(self, ask: Ask) -> Answer:
        return Answer(
            201, self._note(self.comment(self.talks[ask.number], self.me, ask.body["body"]))
        )

    def _edit(self, ask: Ask) -> Answer:
        note = next(
            note for note in self.talks[int(ask.found[0])].comments if note["id"] == ask.number
        )
        note["body"] = ask.body["body"]
        return Answer(200, self._note(note))

    def _issues(self, ask: Ask) -> Answer:
        assert ask.query["state"] == "opened"
        assert ask.query["scope"] == "all"  # else only those that this account opened itself
        wanted = ask.query["author_username"]
        found = [(n, t) for n, t in self.issues.items() if t.open and t.author == wanted]
        return Answer(200, [self._issue(number, talk) for number, talk in found])

    def _issue(self, number: int, talk: Talk) -> dict[str, Any]:
        issue = {"iid": number, "id": number + 10**9, "author": {"username": talk.author}}
        return issue | {"title": talk.title, "description": talk.body or None}

    def _open(self, ask: Ask) -> Answer:
        number = self.open_issue(ask.body["title"], ask.body["description"], self.me)
        return Answer(201, self._issue(number, self.talks[number]))

    def _edit_issue(self, ask: Ask) -> Answer:
        talk = self.talks[ask.number]
        talk.title = ask.body.get("title", talk.title)
        talk.body = ask.body.get("description", talk.body)
        talk.open = ask.body.get("state_event") != "close"
        return Answer(200, self._issue(ask.number, talk))

    def _merged(self, ask: Ask) -> Answer:
        return Answer(
            200,
            [
                {
                    "iid": number,
                    "sha": talk.head,
                    "state": "merged" if talk.merged_as else "opened",
                    "merge_commit_sha": talk.merged_as,
                    "squash_commit_sha": None,
                }
                for number, talk in self.talks.items()
                if ask.found[0] in (talk.merged_as, talk.head)
            ],
        )


class WebhookHost(CodeHost):
    """Takes notifications at one address, which only those who send them know."""

    path = "/services/T0/B0/secret-part-of-the-address"

    def __init__(self) -> None:
        super().__init__()
        self.taken: list[dict[str, Any]] = []

    @property
    def address(self) -> str:
        return f"{self.url}{self.path}"

    def admits(self, headers: Any) -> bool:
        return headers.get("Content-Type") == "application/json"

    def routes(self) -> list[tuple[str, str, Callable[[Ask], Answer]]]:
        return [("POST", self.path, self._take)]

    def _take(self, ask: Ask) -> Answer:
        self.taken.append(ask.body)
        return Answer(200, "ok")
