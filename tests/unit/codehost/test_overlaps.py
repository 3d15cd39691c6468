"""Open requests that change the same topics are warned of each other, before one is merged."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from code_host import HEAD, MERGED, Answer
from code_hosts import GitHubHost
from shorthand import ONE, cluster, plan, spec, topic, unused_cluster

from reconciler.codehost.approvals import find_approved
from reconciler.codehost.comments import report_plan
from reconciler.codehost.host import PullRequest, Run
from reconciler.codehost.seals import read_seal
from reconciler.errors import Finding, Severity
from reconciler.model.plan import Plan
from reconciler.planfile.codec import fingerprint_plan

if TYPE_CHECKING:
    from code_host import CodeHost, Talk

LIVE = cluster(topic("1 2 3", "a"), topic("1 2 3", "b"))
GROWN = plan([spec("a", partitions=4)], LIVE)
LONGER = plan([spec("a", partitions=6)], LIVE)
OTHER = plan([spec("b", partitions=4)], LIVE)
DELETED = plan([spec("a", absent=True)], unused_cluster(topic("1 2 3", "a")), guards=ONE)
ONE_HOST = [GitHubHost]
"""What is the same on both hosts is shown on one."""


def show(host: CodeHost, run: Run, number: int, made: Plan) -> Talk:
    """Open a request and let a run show its plan."""
    request = host.open_request(number, f"{number:040x}")
    report_plan(replace(run, request=PullRequest(number, request.head)), made)
    return request


def warnings(host: CodeHost, number: int = 12) -> list[str]:
    """Return the warnings in the newest comment of a request."""
    lines = host.talks[number].comments[-1]["body"].splitlines()
    return [line for line in lines if line.endswith(" a new review.")]


@pytest.fixture
def request_12(host: CodeHost) -> Talk:
    return host.open_request(12, HEAD)


@pytest.mark.usefixtures("request_12")
def test_a_request_names_the_other_one_until_that_is_closed_or_merged(
    host: CodeHost, run: Run
) -> None:
    others = [show(host, run, number, LONGER) for number in (13, 14)]
    link = "#" if isinstance(host, GitHubHost) else "!"
    said = "also changes `a`; whichever is merged second needs a new review."
    report_plan(run, GROWN)
    assert warnings(host) == [f"- Request {link}{n} {said}" for n in (14, 13)]
    others[0].merged_as = MERGED
    report_plan(run, GROWN)
    assert warnings(host) == [f"- Request {link}14 {said}"]
    others[1].open = False
    report_plan(run, GROWN)
    assert warnings(host) == []


@pytest.mark.usefixtures("request_12")
def test_requests_on_different_topics_or_clusters_are_not_warned(host: CodeHost, run: Run) -> None:
    show(host, run, 13, OTHER)
    show(host, run, 14, replace(GROWN, cluster="staging"))
    host.open_request(15, "", ("mallory", host.talks[13].comments[0]["body"]))
    report_plan(run, GROWN)
    assert warnings(host) == []
    assert warnings(host, 13) == []


@pytest.mark.parametrize("host", ONE_HOST, indirect=True)
@pytest.mark.usefixtures("request_12")
def test_a_deletion_is_named_on_both_requests(host: CodeHost, run: Run) -> None:
    report_plan(run, GROWN)
    show(host, run, 13, DELETED)
    assert warnings(host, 13)[0].startswith("- This one deletes what request #12 changes: `a`;")
    report_plan(run, GROWN)
    assert warnings(host)[0].startswith("- Request #13 deletes what this one changes: `a`;")


@pytest.mark.parametrize("host", ONE_HOST, indirect=True)
def test_settings_of_the_cluster_are_named_on_the_requests_that_rest_on_them(
    host: CodeHost, run: Run, request_12: Talk
) -> None:
    """Request 13 changes no topic: its comment is there so that others know."""
    note = Finding("settings-changed", "clusters.yaml changes strategy", severity=Severity.NOTE)
    show(host, run, 13, replace(plan([], LIVE), notes=(note,)))
    report_plan(run, GROWN)
    assert warnings(host) == [
        "- Request #13 changes settings of this cluster in clusters.yaml; if it is merged first, "
        "this one can need a new review."
    ]
    assert warnings(host, 13) == []
    report_plan(run, plan([], LIVE))
    assert warnings(host) == []
    assert len(request_12.comments) == 1


@pytest.mark.parametrize("host", ONE_HOST, indirect=True)
def test_many_topics_are_counted(host: CodeHost, run: Run, request_12: Talk) -> None:
    many = plan([spec(f"{n:02}", partitions=1, replication_factor=1) for n in range(12)], LIVE)
    show(host, run, 13, many)
    report_plan(run, many)
    assert "`09` and 2 more; whichever" in request_12.comments[0]["body"]


@pytest.mark.parametrize("host", ONE_HOST, indirect=True)
def test_only_the_newest_requests_are_compared(
    host: CodeHost, run: Run, request_12: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (13, 14):
        show(host, run, number, LONGER)
    monkeypatch.setattr("reconciler.codehost.overlaps.MOST_REQUESTS", 1)
    report_plan(run, GROWN)
    assert len(warnings(host)) == 1
    assert "#14" in request_12.comments[0]["body"]


def test_the_warning_is_no_part_of_what_a_review_approves(
    host: CodeHost, run: Run, request_12: Talk
) -> None:
    report_plan(run, GROWN)
    (before,) = (note["body"] for note in request_12.comments)
    request_12.review("alice")
    show(host, run, 13, LONGER)
    assert report_plan(run, GROWN).endswith("shows this plan, and is approved")
    assert [note["body"] for note in request_12.comments] == [before]
    request_12.merged_as = MERGED
    assert find_approved(run, "prod").fingerprint == fingerprint_plan(GROWN)
    warned = host.talks[13].comments[0]["body"]
    assert len(warnings(host, 13)) == 1
    report_plan(replace(run, request=PullRequest(13, f"{13:040x}")), LONGER)  # 12 is merged
    assert warnings(host, 13) == []
    assert read_seal(host.talks[13].comments[0]["body"]) == read_seal(warned)


def test_a_host_that_does_not_answer_leaves_the_warning_out(
    host: CodeHost, run: Run, request_12: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    show(host, run, 13, LONGER)
    path = "/pulls" if isinstance(host, GitHubHost) else "/merge_requests"
    answer = host.handle

    def refuse(method: str, asked: str, *more: object) -> Answer:
        if method == "GET" and asked.endswith(path):
            return Answer(403, {"message": "not allowed"})
        return answer(method, asked, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(host, "handle", refuse)
    said = report_plan(run, GROWN)
    assert said.startswith("comment on request 12 written; not all open requests were compared: ")
    assert "not allowed" in said
    assert warnings(host) == []
    assert len(request_12.comments) == 1


@pytest.mark.parametrize("host", ONE_HOST, indirect=True)
@pytest.mark.usefixtures("request_12")
def test_a_comment_without_readable_fields_warns_of_nothing(host: CodeHost, run: Run) -> None:
    other = show(host, run, 13, LONGER)
    seal = read_seal(other.comments[0]["body"])
    assert seal is not None
    for spoiled in ("", "AAAA"):
        body = other.comments[0]["body"].rpartition("<!--")[0]
        host.edit(other.comments[0], f"{body}{seal._replace(fields=spoiled)}\n")
        report_plan(run, GROWN)
        assert warnings(host) == []
