"""A real HTTP server with the state of a repository on a code host: requests, issues, comments."""

from __future__ import annotations

import itertools
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

TOKEN = "secret-token-of-this-job"
HEAD = "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678"
MERGED = "0123456789abcdef0123456789abcdef01234567"
BODY_LIMIT = 65_536

_MINUTES = itertools.count(1)


def tell_time() -> str:
    """Return the time of the host, whose clock is a minute later for each event."""
    at = datetime(2026, 11, 20, 10, tzinfo=UTC) + timedelta(minutes=next(_MINUTES))
    return at.isoformat().replace("+00:00", "Z")


class Answer(NamedTuple):
    status: int
    body: Any
    headers: dict[str, str] = {}  # noqa: RUF012 # never changed


class Ask(NamedTuple):
    """A request: its query, its body, and the numbers or hashes in its path."""

    query: dict[str, str]
    body: dict[str, Any]
    found: tuple[Any, ...]

    @property
    def number(self) -> int:
        return int(self.found[-1])


class Fault(NamedTuple):
    """What the next request of a method gets; `done` says whether it takes effect before."""

    method: str
    answer: Answer | None  # None: the connection ends without an answer
    done: bool = False


@dataclass
class Talk:
    """What stands below one request or issue: comments, the oldest first.

    Each is {id, author, body, written_at, edited_at}. `reviews` are of a request, the oldest first,
    each {author, state, at}.
    """

    title: str = ""
    body: str = ""
    author: str = "someone"
    open: bool = True
    is_request: bool = False
    comments: list[dict[str, Any]] = field(default_factory=list)
    reviews: list[dict[str, Any]] = field(default_factory=list)
    merged_at: str | None = None
    head: str = ""
    holds_back: dict[str, str] = field(default_factory=dict)  # by cluster: rejected, waiting …
    branch: str = ""  # of a request that a job proposed
    reviewers: tuple[str, ...] = ()  # whom it asked
    commits: tuple[str, ...] = ()  # those below the head, of which a rebase keeps each
    _merged_as: str | None = None

    @property
    def merged_as(self) -> str | None:
        """The commit that the request became."""
        return self._merged_as

    @merged_as.setter
    def merged_as(self, commit: str) -> None:
        self._merged_as, self.merged_at = commit, tell_time()

    def holds(self, commit: str) -> bool:
        """Return whether the request has this commit, or became it."""
        return commit in (self.merged_as, self.head, *self.commits)

    def review(self, author: str, state: str = "APPROVED") -> dict[str, Any]:
        """Submit a review, now."""
        review = {"author": author, "state": state, "at": tell_time()}
        self.reviews.append(review)
        return review


@dataclass
class HostBranch:
    """A branch with one commit above `base`, which changes one file."""

    commit: str
    message: str
    path: str = ""
    text: str = ""
    base: str = ""


class CodeHost:
    """The state of one repository, and what was asked of it. Subclasses speak a host's dialect."""

    me = "reconciler-bot"

    def __init__(self) -> None:
        self.talks: dict[int, Talk] = {}
        self.asked: list[tuple[str, str]] = []
        self.faults: list[Fault] = []
        self.writers = {"alice", "bob", "carol"}
        self.branches: dict[str, HostBranch] = {}
        self.url = ""
        self._ids = itertools.count(1001)
        self._lock = threading.Lock()

    def open_request(self, number: int, head: str, *comments: tuple[str, str]) -> Talk:
        """Open a pull request whose branch ends in `head`, with comments (author, body)."""
        talk = Talk(is_request=True, head=head)
        self.talks[number] = talk
        for author, body in comments:
            self.comment(talk, author, body)
        return talk

    def open_issue(self, title: str, body: str, author: str) -> int:
        number = max(self.talks, default=0) + 1
        self.talks[number] = Talk(title, body, author)
        return number

    def put_branch(self, name: str, branch: HostBranch) -> HostBranch:
        """Let a branch end in a commit, which is also the head of its open request."""
        self.branches[name] = branch
        for number in self.open_requests:
            if self.talks[number].branch == name:
                self.talks[number].head = branch.commit
        return branch

    def propose(self, branch: str, title: str, body: str) -> int:
        """Open a request from a branch, as a program does. Returns its number."""
        number = max(self.talks, default=0) + 1
        head = self.branches[branch].commit
        talk = Talk(title, body, self.me, is_request=True, head=head, branch=branch)
        self.talks[number] = talk
        return number

    def find_from(self, branch: str) -> list[int]:
        """Return the requests from a branch, the newest first."""
        return sorted((n for n, t in self.talks.items() if t.branch == branch), reverse=True)

    def comment(self, talk: Talk, author: str, body: str) -> dict[str, Any]:
        note = {"id": next(self._ids), "author": author, "body": body}
        note["written_at"] = note["edited_at"] = tell_time()
        talk.comments.append(note)
        return note

    def edit(self, note: dict[str, Any], body: str) -> None:
        note["body"], note["edited_at"] = body, tell_time()

    @property
    def issues(self) -> dict[int, Talk]:
        return {number: talk for number, talk in self.talks.items() if not talk.is_request}

    @property
    def open_requests(self) -> list[int]:
        """Return the numbers of the open requests, the newest first."""
        found = (n for n, talk in self.talks.items() if talk.is_request and talk.open)
        return sorted((n for n in found if not self.talks[n].merged_at), reverse=True)

    @property
    def merged_requests(self) -> list[int]:
        """Return the numbers of the merged requests, the newest first."""
        return sorted((n for n, talk in self.talks.items() if talk.merged_at), reverse=True)

    def find_merged(self, commit: str) -> Talk | None:
        """Return the request that became a commit."""
        return next((talk for talk in self.talks.values() if talk.merged_as == commit), None)

    def writes(self) -> list[tuple[str, str]]:
        """Return what was asked that is no reading."""
        return [(method, path) for method, path in self.asked if method != "GET"]

    def find_comment(self, number: int) -> dict[str, Any] | None:
        found = (n for talk in self.talks.values() for n in talk.comments if n["id"] == number)
        return next(found, None)

    def answer(self, method: str, target: str, body: dict[str, Any], headers: Any) -> Answer | None:
        with self._lock:
            parts = urlsplit(target)
            self.asked.append((method, parts.path))
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            fault = next((f for f in self.faults if f.method == method), None)
            if fault is None:
                return self.handle(method, parts.path, query, body, headers)
            self.faults.remove(fault)
            if fault.done:
                self.handle(method, parts.path, query, body, headers)
            return fault.answer

    def handle(
        self, method: str, path: str, query: dict[str, str], body: dict[str, Any], headers: Any
    ) -> Answer:
        if not self.admits(headers):
            return Answer(401, {"message": "Bad credentials"})
        if len(body.get("body") or body.get("description") or "") > BODY_LIMIT:
            return Answer(422, {"message": "body is too long (maximum is 65536 characters)"})
        for known, pattern, reply in self.routes():
            match = re.fullmatch(pattern, path)
            if match and method == known:
                answer = reply(Ask(query, body, match.groups()))
                return _page(answer, query) if isinstance(answer.body, list) else answer
        return Answer(404, {"message": "Not Found"})

    def admits(self, headers: Any) -> bool:
        raise NotImplementedError

    def routes(self) -> list[tuple[str, str, Callable[[Ask], Answer]]]:
        raise NotImplementedError


def _page(answer: Answer, query: dict[str, str]) -> Answer:
    """Cut a list as both hosts do: 20 or 30 a page unless more are asked for, 100 at most."""
    size = min(int(query.get("per_page", "30")), 100)
    start = (int(query.get("page", "1")) - 1) * size
    return answer._replace(body=answer.body[start : start + size])


@contextmanager
def serve(host: CodeHost) -> Iterator[CodeHost]:
    """Serve a code host on loopback, at `host.url`, until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else {}
            answer = host.answer(self.command, self.path, body, self.headers)
            if answer is None:
                self.close_connection = True
                return
            content = json.dumps(answer.body).encode()
            self.send_response(answer.status)
            for name, value in {**answer.headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _answer  # noqa: N815 # names of http.server

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Keep quiet: what was asked is in `host.asked`."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    host.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield host
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
