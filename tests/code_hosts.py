"""The dialects of GitHub and GitLab, as far as comments, reviews, issues and merged requests go."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha1
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from code_host import TOKEN, Answer, CodeHost, HostBranch, tell_time

if TYPE_CHECKING:
    from code_host import Ask, Talk


class GitHubHost(CodeHost):
    """Speaks as api.github.com does."""

    me = "github-actions[bot]"
    shows_permissions = True

    def __init__(self) -> None:
        super().__init__()
        self.guarded: set[str] = set()  # environments that ask reviewers
        self._made: dict[str, Any] = {}  # trees and commits by id
        self.setup: dict[str, Any] = {}  # what administrators did; None: the token may not read it

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
            ("GET", f"{repository}/pulls", self._open_pulls),
            ("GET", f"{repository}/pulls/(\\d+)", self._pull),
            ("GET", f"{repository}/pulls/(\\d+)/reviews", self._reviews),
            ("GET", f"{repository}/actions/runs", self._runs),
            ("GET", f"{repository}/actions/runs/([0-9a-f]+)/approvals", self._run_approvals),
            ("GET", f"{repository}/actions/runs/([0-9a-f]+)/pending_deployments", self._pending),
            ("GET", f"{repository}/environments/([\\w-]+)", self._environment),
            ("GET", repository, lambda _: Answer(200, {"full_name": "shop/topics"})),
            ("GET", f"{repository}/environments", self._environments),
            ("GET", f"{repository}/environments/([\\w-]+)/secrets", self._secrets),
            (
                "GET",
                f"{repository}/environments/([\\w-]+)/deployment-branch-policies",
                self._policies,
            ),
            ("GET", f"{repository}/actions/variables", self._variables),
            ("GET", f"{repository}/actions/workflows/drift.yml/runs", self._nights),
            ("GET", f"{repository}/branches/main", self._branch),
            ("GET", f"{repository}/rules/branches/main", lambda _: Answer(200, [])),
            ("GET", f"{repository}/collaborators/([\\w-]+)/permission", self._permission),
            ("GET", f"{repository}/git/matching-refs/heads/(.+)", self._refs),
            ("GET", f"{repository}/git/commits/([0-9a-f]+)", self._commit),
            ("POST", f"{repository}/git/trees", self._make_tree),
            ("POST", f"{repository}/git/commits", self._make_commit),
            ("POST", f"{repository}/git/refs", self._make_ref),
            ("PATCH", f"{repository}/git/refs/heads/(.+)", self._move_ref),
            ("DELETE", f"{repository}/git/refs/heads/(.+)", self._delete_ref),
            ("POST", f"{repository}/pulls", self._propose),
            ("PATCH", f"{repository}/pulls/(\\d+)", self._edit_pull),
            ("POST", f"{repository}/pulls/(\\d+)/requested_reviewers", self._ask),
        ]

    def _refs(self, ask: Ask) -> Answer:
        """GitHub lists every branch whose name begins so."""
        found = [n for n in self.branches if n.startswith(ask.found[0])]
        return Answer(
            200,
            [{"ref": f"refs/heads/{n}", "object": {"sha": self.branches[n].commit}} for n in found],
        )

    def _commit(self, ask: Ask) -> Answer:
        sha = ask.found[0]
        messages = [b.message for b in self.branches.values() if b.commit == sha]
        tree = {"sha": f"tree of {sha}"}
        return Answer(200, {"sha": sha, "message": "".join(messages), "tree": tree})

    def _make_tree(self, ask: Ask) -> Answer:
        (file,) = ask.body["tree"]
        assert (file["mode"], file["type"]) == ("100644", "blob")
        self._made[tell_time()] = made = {"below": ask.body["base_tree"], **file}
        return Answer(201, {"sha": next(n for n, each in self._made.items() if each is made)})

    def _make_commit(self, ask: Ask) -> Answer:
        file, (base,) = self._made[ask.body["tree"]], ask.body["parents"]
        assert file["below"] == f"tree of {base}"
        commit = sha1(json.dumps(ask.body).encode()).hexdigest()
        self._made[commit] = HostBranch(
            commit, ask.body["message"], file["path"], file["content"], base
        )
        return Answer(201, {"sha": commit})

    def _make_ref(self, ask: Ask) -> Answer:
        name = ask.body["ref"].removeprefix("refs/heads/")
        if name in self.branches:
            return Answer(422, {"message": "Reference already exists"})
        self.put_branch(name, self._made[ask.body["sha"]])
        return Answer(201, {})

    def _move_ref(self, ask: Ask) -> Answer:
        assert ask.body["force"] is True
        self.put_branch(ask.found[0], self._made[ask.body["sha"]])
        return Answer(200, {})

    def _delete_ref(self, ask: Ask) -> Answer:
        del self.branches[ask.found[0]]
        return Answer(204, None)

    def _propose(self, ask: Ask) -> Answer:
        assert ask.body["base"] == "main"
        number = self.propose(ask.body["head"], ask.body["title"], ask.body["body"])
        return Answer(201, self._request(number, self.talks[number]))

    def _edit_pull(self, ask: Ask) -> Answer:
        talk = self.talks[ask.number]
        talk.title, talk.body = ask.body.get("title", talk.title), ask.body.get("body", talk.body)
        talk.open = ask.body.get("state") != "closed"
        return Answer(200, self._request(ask.number, talk))

    def _ask(self, ask: Ask) -> Answer:
        people, teams = ask.body["reviewers"], ask.body["team_reviewers"]
        if not self.writers.issuperset(people):
            what = "Reviews may only be requested from collaborators."
            return Answer(422, {"message": what})
        self.talks[int(ask.found[0])].reviewers = (*people, *teams)
        return Answer(201, {})

    def _comments(self, ask: Ask) -> Answer:
        return Answer(200, [self._note(note) for note in self.talks[ask.number].comments])

    def _note(self, note: dict[str, Any]) -> dict[str, Any]:
        user = {"login": note["author"]} if note["author"] else None
        return {"id": note["id"], "user": user, "body": note["body"], **_times(note)}

    def _comment(self, ask: Ask) -> Answer:
        return Answer(
            201, self._note(self.comment(self.talks[ask.number], self.me, ask.body["body"]))
        )

    def _edit(self, ask: Ask) -> Answer:
        note = self.find_comment(ask.number)
        assert note is not None
        self.edit(note, ask.body["body"])
        return Answer(200, self._note(note))

    def _issues(self, ask: Ask) -> Answer:
        assert ask.query["state"] == "open"
        newest_first = sorted(self.talks.items(), reverse=True)
        return Answer(200, [self._issue(n, talk) for n, talk in newest_first if talk.open])

    def _issue(self, number: int, talk: Talk) -> dict[str, Any]:
        issue = {"number": number, "id": number + 10**9, "user": {"login": talk.author}}
        issue |= {"title": talk.title, "body": talk.body or None, **_times()}
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
                self._request(number, talk)
                for number, talk in self.talks.items()
                if talk.holds(ask.found[0])
            ],
        )

    def _request(self, number: int, talk: Talk) -> dict[str, Any]:
        return {
            "number": number,
            "state": "open" if talk.open and not talk.merged_at else "closed",
            "head": {"sha": talk.head},
            "merged_at": talk.merged_at,
            "merge_commit_sha": talk.merged_as or "f" * 40,
        }

    def _open_pulls(self, ask: Ask) -> Answer:
        """List open requests, or closed ones; everybody lists the newest first."""
        assert ask.query["direction"] == "desc"
        if "head" in ask.query:
            assert (ask.query["state"], ask.query["sort"]) == ("all", "created")
            owner, _, branch = ask.query["head"].partition(":")
            assert owner == "shop"
            return Answer(200, [self._request(n, self.talks[n]) for n in self.find_from(branch)])
        is_open = ask.query["state"] == "open"
        assert ask.query["sort"] == ("created" if is_open else "updated")
        found = self.open_requests if is_open else self.merged_requests
        return Answer(200, [self._request(n, self.talks[n]) for n in found])

    def _runs(self, ask: Ask) -> Answer:
        """Return the one run of a merge; its id is its commit."""
        assert ask.query["event"] == "push"
        found = self.find_merged(ask.query["head_sha"])
        moves = {"id": "0", "path": ".github/workflows/moves.yml"}
        apply = {"id": found.merged_as, "path": ".github/workflows/apply.yml"} if found else None
        runs = [moves, apply] if apply else []
        return Answer(200, {"total_count": len(runs), "workflow_runs": runs})

    def _run_approvals(self, ask: Ask) -> Answer:
        user = {"login": "bob"}
        return Answer(
            200,
            [
                {"state": state, "user": user, "environments": self._list_held(ask, state)}
                for state in ("approved", "rejected")
            ],
        )

    def _environment(self, ask: Ask) -> Answer:
        guarded = ask.found[0] in self.guarded
        rules = [{"type": "branch_policy"}] + [{"type": "required_reviewers"}] * guarded
        return Answer(200, {"name": ask.found[0], "protection_rules": rules})

    def _environments(self, _: Ask) -> Answer:
        own = {"protected_branches": False, "custom_branch_policies": True}
        found = [
            {
                "name": name,
                "protection_rules": [{"type": rule} for rule in rules],
                "deployment_branch_policy": own if "branch_policy" in rules else None,
            }
            for name, rules in self.setup.get("environments", {}).items()
        ]
        return Answer(200, {"total_count": len(found), "environments": found})

    def _secrets(self, ask: Ask) -> Answer:
        secrets = self.setup.get("secrets", {})
        if secrets is None:
            return Answer(403, {"message": "Resource not accessible by integration"})
        return Answer(200, {"secrets": [{"name": name} for name in secrets[ask.found[0]]]})

    def _policies(self, ask: Ask) -> Answer:
        named = self.setup["branches"][ask.found[0]]
        return Answer(200, {"branch_policies": [{"name": name} for name in named]})

    def _variables(self, _: Ask) -> Answer:
        variables = self.setup.get("variables", {})
        if variables is None:
            return Answer(403, {"message": "Resource not accessible by integration"})
        pairs = [{"name": name, "value": value} for name, value in variables.items()]
        return Answer(200, {"total_count": len(pairs), "variables": pairs})

    def _nights(self, _: Ask) -> Answer:
        night = self.setup.get("night", "")
        if night is None:
            return Answer(404, {"message": "Not Found"})
        return Answer(200, {"workflow_runs": [{"conclusion": night}] if night else []})

    def _branch(self, _: Ask) -> Answer:
        required = self.setup.get("required")
        checks = {"required_status_checks": {"contexts": required or []}}
        return Answer(200, {"protected": required is not None, "protection": checks})

    def _pending(self, ask: Ask) -> Answer:
        held = self._list_held(ask, "waiting")
        return Answer(200, [{"environment": environment} for environment in held])

    def _list_held(self, ask: Ask, how: str) -> list[dict[str, str]]:
        found = self.find_merged(ask.found[0])
        assert found is not None
        return [{"name": name} for name, held in found.holds_back.items() if held == how]

    def _pull(self, ask: Ask) -> Answer:
        return Answer(200, self._request(ask.number, self.talks[ask.number]))

    def _reviews(self, ask: Ask) -> Answer:
        return Answer(
            200,
            [
                {
                    "user": {"login": review["author"], "type": _type(review["author"])},
                    "state": review["state"],
                    "submitted_at": review["at"],
                    "author_association": "MEMBER" if review["author"] in self.writers else "NONE",
                }
                for review in self.talks[ask.number].reviews
            ],
        )

    def _permission(self, ask: Ask) -> Answer:
        if not self.shows_permissions:
            return Answer(403, {"message": "Resource not accessible by integration"})
        return Answer(200, {"permission": "write" if ask.found[0] in self.writers else "read"})


def _times(note: dict[str, Any] | None = None) -> dict[str, str]:
    """Return the times of a comment; of an issue, which nobody asks for, some time."""
    note = note or dict.fromkeys(("written_at", "edited_at"), tell_time())
    return {"created_at": note["written_at"], "updated_at": note["edited_at"]}


def _type(author: str) -> str:
    return "Bot" if author.endswith("[bot]") else "User"


_STATES = {
    "": ("failed", True),
    "rejected": ("canceled", True),
    "rejected deployment": ("failed", False),
    "waiting": ("manual", False),
    "waiting for a stage": ("created", False),
}
"""The states of jobs on GitLab, and whether they were started."""


class GitLabHost(CodeHost):
    """Speaks as gitlab.com/api/v4 does."""

    me = "project_1217_bot"
    clusters = ("dev", "lab", "prod", "staging")

    def __init__(self) -> None:
        super().__init__()
        self.artifacts: dict[tuple[int, str], Any] = {}
        self.setup: dict[str, Any] = {}  # what maintainers did; None: the token may not read it

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
            ("GET", f"{project}/merge_requests", self._open_requests),
            ("GET", f"{project}/merge_requests/(\\d+)", self._request),
            ("GET", f"{project}/merge_requests/(\\d+)/approvals", self._approvals),
            ("GET", f"{project}/repository/commits/([0-9a-f]+)/merge_requests", self._merged),
            ("GET", f"{project}/pipelines", self._pipelines),
            ("GET", f"{project}/pipelines/(\\d+)/jobs", self._jobs),
            ("GET", f"{project}/jobs/(\\d+)/artifacts/(.+)", self._artifact),
            ("GET", project, lambda _: Answer(200, {"id": 1217})),
            ("GET", f"{project}/variables", self._variables),
            ("GET", f"{project}/protected_environments", self._asking),
            ("GET", f"{project}/pipeline_schedules", self._schedules),
            ("GET", f"{project}/protected_branches", self._protected),
            ("GET", f"{project}/repository/branches", self._find_branches),
            ("POST", f"{project}/repository/commits", self._commit),
            ("DELETE", f"{project}/repository/branches/(.+)", self._delete_branch),
            ("POST", f"{project}/merge_requests", self._propose),
            ("PUT", f"{project}/merge_requests/(\\d+)", self._edit_request),
            ("GET", "/users", self._find_users),
        ]

    def _find_branches(self, ask: Ask) -> Answer:
        name = ask.query["search"].removeprefix("^").removesuffix("$")
        found = [(n, b) for n, b in self.branches.items() if n == name]
        return Answer(
            200,
            [{"name": n, "commit": {"id": b.commit, "message": b.message}} for n, b in found],
        )

    def _commit(self, ask: Ask) -> Answer:
        (action,), body = ask.body["actions"], ask.body
        assert (action["action"], body["force"]) == ("update", True)
        commit = sha1(json.dumps(body).encode()).hexdigest()
        place = action["file_path"], action["content"], body["start_sha"]
        self.put_branch(body["branch"], HostBranch(commit, body["commit_message"], *place))
        return Answer(201, {"id": commit})

    def _delete_branch(self, ask: Ask) -> Answer:
        del self.branches[unquote(ask.found[0])]
        return Answer(204, None)

    def _propose(self, ask: Ask) -> Answer:
        assert ask.body["target_branch"] == "main"
        title, body = ask.body["title"], ask.body["description"]
        number = self.propose(ask.body["source_branch"], title, body)
        return Answer(201, self._describe(number, self.talks[number]))

    def _edit_request(self, ask: Ask) -> Answer:
        talk = self.talks[ask.number]
        talk.title = ask.body.get("title", talk.title)
        talk.body = ask.body.get("description", talk.body)
        talk.open = talk.open and ask.body.get("state_event") != "close"
        ids = ask.body.get("reviewer_ids", [])
        talk.reviewers += tuple(n for n in sorted(self.writers) if _number(n) in ids)
        return Answer(200, self._describe(ask.number, talk))

    def _find_users(self, ask: Ask) -> Answer:
        name = ask.query["username"]
        return Answer(200, [{"id": _number(name)}] if name in self.writers else [])

    def _variables(self, _: Ask) -> Answer:
        scoped = self.setup.get("variables", {})
        if scoped is None:
            return Answer(403, {"message": "403 Forbidden"})
        pairs = [(scope, key) for scope, keys in scoped.items() for key in keys]
        return Answer(200, [{"key": key, "environment_scope": scope} for scope, key in pairs])

    def _asking(self, _: Ask) -> Answer:
        asking = self.setup.get("asking", [])
        if asking is None:
            return Answer(404, {"message": "404 Not Found"})
        return Answer(200, [{"name": name} for name in asking])

    def _schedules(self, _: Ask) -> Answer:
        return Answer(200, [{"active": True}] if self.setup.get("night") else [])

    def _protected(self, _: Ask) -> Answer:
        return Answer(200, [{"name": name} for name in self.setup.get("protected", ())])

    def _artifact(self, ask: Ask) -> Answer:
        return Answer(200, self.artifacts[int(ask.found[0]), ask.found[1]])

    def _notes(self, ask: Ask) -> Answer:
        """GitLab adds notes of its own, such as those of approvals."""
        talk = self.talks[ask.number]
        said = [self._note(note) for note in (*talk.comments, *map(_record, talk.reviews))]
        notes = sorted(said, key=lambda note: (note["created_at"], note["id"]))
        return Answer(200, notes if ask.query.get("sort") == "asc" else notes[::-1])

    def _note(self, note: dict[str, Any]) -> dict[str, Any]:
        return {
            "id": note["id"],
            "author": {"username": note["author"]},
            "body": note["body"],
            "system": note["body"].startswith(("added 1 commit", "approved this", "unapproved")),
            **_times(note),
        }

    def _approvals(self, ask: Ask) -> Answer:
        last = {review["author"]: review["state"] for review in self.talks[ask.number].reviews}
        approved = [name for name, state in last.items() if state == "APPROVED"]
        return Answer(200, {"approved_by": [{"user": {"username": name}} for name in approved]})

    def _open_requests(self, ask: Ask) -> Answer:
        if "source_branch" in ask.query:
            wanted = {"scope": "all", "order_by": "created_at", "sort": "desc"}
            assert wanted.items() <= ask.query.items()
            found = self.find_from(ask.query["source_branch"])
            return Answer(200, [self._describe(n, self.talks[n]) for n in found])
        is_open = ask.query["state"] == "opened"
        order = "created_at" if is_open else "updated_at"
        wanted = {"scope": "all", "order_by": order, "sort": "desc"}
        assert wanted.items() <= ask.query.items()
        found = self.open_requests if is_open else self.merged_requests
        return Answer(200, [self._describe(n, self.talks[n]) for n in found])

    def _pipelines(self, ask: Ask) -> Answer:
        """Return the one pipeline of a merge; its id is its request."""
        assert ask.query["source"] == "push"
        found = [n for n, talk in self.talks.items() if talk.merged_as == ask.query["sha"]]
        began = [n for n in found if "no pipeline" not in self.talks[n].holds_back.values()]
        return Answer(200, [{"id": number} for number in began])

    def _jobs(self, ask: Ask) -> Answer:
        held = self.talks[ask.number].holds_back
        names = {*held, *self.clusters}
        return Answer(200, [self._job(name, held.get(name, "")) for name in sorted(names)])

    def _job(self, cluster: str, how: str) -> dict[str, Any]:
        """Describe the job that applies; every job without a reason to wait was started."""
        status, was_started = _STATES[how]
        started_at = tell_time() if was_started else None
        return {"name": f"apply {cluster}", "status": status, "started_at": started_at}

    def _request(self, ask: Ask) -> Answer:
        return Answer(200, self._describe(ask.number, self.talks[ask.number]))

    def _describe(self, number: int, talk: Talk) -> dict[str, Any]:
        return {
            "iid": number,
            "sha": talk.head,
            "source_project_id": 1217,
            "target_project_id": 1217,
            "state": "merged" if talk.merged_as else "opened" if talk.open else "closed",
            "merged_at": talk.merged_at,
            "merge_commit_sha": talk.merged_as,
            "squash_commit_sha": None,
        }

    def _add(self, ask: Ask) -> Answer:
        return Answer(
            201, self._note(self.comment(self.talks[ask.number], self.me, ask.body["body"]))
        )

    def _edit(self, ask: Ask) -> Answer:
        note = next(
            note for note in self.talks[int(ask.found[0])].comments if note["id"] == ask.number
        )
        self.edit(note, ask.body["body"])
        return Answer(200, self._note(note))

    def _issues(self, ask: Ask) -> Answer:
        assert ask.query["state"] == "opened"
        assert ask.query["scope"] == "all"  # else only those that this account opened itself
        wanted = ask.query["author_username"]
        found = [(n, t) for n, t in self.issues.items() if t.open and t.author == wanted]
        return Answer(200, [self._issue(number, talk) for number, talk in found])

    def _issue(self, number: int, talk: Talk) -> dict[str, Any]:
        issue = {"iid": number, "id": number + 10**9, "author": {"username": talk.author}}
        return issue | {"title": talk.title, "description": talk.body or None, **_times()}

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
                self._describe(number, talk)
                for number, talk in self.talks.items()
                if talk.holds(ask.found[0])
            ],
        )


def _record(review: dict[str, Any]) -> dict[str, Any]:
    """Return the note that GitLab adds for an approval, or for the end of one."""
    said = "approved" if review["state"] == "APPROVED" else "unapproved"
    body = f"{said} this merge request"
    times = dict.fromkeys(("written_at", "edited_at"), review["at"])
    return {"id": 0, "author": review["author"], "body": body, **times}


def _number(name: str) -> int:
    return sum(map(ord, name))


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
