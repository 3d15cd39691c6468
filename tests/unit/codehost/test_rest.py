"""Patience with a code host: what is tried again, how long, and what is said in the end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from code_host import TOKEN, Answer, Fault, serve
from code_hosts import GitHubHost

from reconciler.codehost.rest import Rest, UnansweredError
from reconciler.errors import CodeHostError

PATH = "repos/shop/topics/issues/12/comments"
SLOW_DOWN = {"message": "You have exceeded a secondary rate limit."}


@pytest.fixture
def host() -> Iterator[GitHubHost]:
    host = GitHubHost()
    host.open_request(12, "")
    with serve(host):
        yield host


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def rest(host: GitHubHost, waits: list[float]) -> Rest:
    return Rest(host.url, {"Authorization": f"Bearer {TOKEN}"}, {}, waits.append)


@pytest.mark.parametrize(
    ("answer", "waited"),
    [
        (None, [1.0]),
        (Answer(502, {"message": "Bad Gateway"}), [1.0]),
        (Answer(429, {}, {"Retry-After": "7"}), [7.0]),
        (Answer(403, SLOW_DOWN, {"Retry-After": "7"}), [7.0]),
        (Answer(403, SLOW_DOWN), [60.0]),
    ],
)
def test_a_passing_fault_is_waited_out(
    host: GitHubHost, rest: Rest, waits: list[float], answer: Answer | None, waited: list[float]
) -> None:
    host.faults.append(Fault("GET", answer))
    assert rest.send("GET", PATH) == []
    assert waits == waited


def test_a_write_that_was_put_off_is_sent_again(
    host: GitHubHost, rest: Rest, waits: list[float]
) -> None:
    host.faults.append(Fault("POST", Answer(403, SLOW_DOWN, {"Retry-After": "2"})))
    rest.send("POST", PATH, {"body": "hello"})
    assert [note["body"] for note in host.talks[12].comments] == ["hello"]
    assert waits == [2.0]


def test_a_write_whose_answer_was_lost_is_not_sent_again(
    host: GitHubHost, rest: Rest, waits: list[float]
) -> None:
    host.faults.append(Fault("POST", None, done=True))
    with pytest.raises(UnansweredError):
        rest.send("POST", PATH, {"body": "hello"})
    assert len(host.writes()) == 1
    assert waits == [3.0]  # so that whoever looks, sees


def test_patience_ends(host: GitHubHost, rest: Rest, waits: list[float]) -> None:
    host.faults += [Fault("GET", Answer(503, {"message": "Unavailable"}))] * 9
    with pytest.raises(CodeHostError, match="503 Service Unavailable: Unavailable"):
        rest.send("GET", PATH)
    assert waits == [1.0, 2.0, 4.0, 8.0]


def test_nobody_waits_for_an_hour(host: GitHubHost, rest: Rest, waits: list[float]) -> None:
    host.faults.append(Fault("GET", Answer(429, {"message": "Later"}, {"Retry-After": "3600"})))
    with pytest.raises(CodeHostError, match="429 Too Many Requests: Later"):
        rest.send("GET", PATH)
    assert waits == []


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_refused_token_is_said_at_once_and_never_shown(
    host: GitHubHost, rest: Rest, waits: list[float], status: int
) -> None:
    message = "Resource not accessible by integration"
    host.faults.append(Fault("POST", Answer(status, {"message": message})))
    with pytest.raises(CodeHostError) as error:
        rest.send("POST", PATH, {"body": "hello"})
    (finding,) = error.value.findings
    assert (finding.rule, waits) == ("code-host-access", [])
    assert message in finding.what
    assert TOKEN not in f"{error.value} {rest!r}"


def test_a_host_that_is_not_there_is_named(waits: list[float]) -> None:
    gone = Rest("http://127.0.0.1:9", {"Authorization": TOKEN}, {}, waits.append)
    with pytest.raises(CodeHostError, match=r"GET http://127.0.0.1:9/user: .*refused"):
        gone.send("GET", "user")


def test_the_token_goes_to_nobody_else(host: GitHubHost, rest: Rest) -> None:
    """A redirect is followed, but without what lets us in."""
    with serve(GitHubHost()) as other:
        moved = Answer(307, {}, {"Location": f"{other.url}/{PATH}"})
        host.faults.append(Fault("GET", moved))
        with pytest.raises(CodeHostError, match="401 Unauthorized: Bad credentials"):
            rest.send("GET", PATH)
        assert other.asked == [("GET", f"/{PATH}")]
