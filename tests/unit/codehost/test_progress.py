"""What a merged request shows once the cluster was read again: by its own run, or a later one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from code_host import HEAD, MERGED
from code_hosts import GitHubHost
from shorthand import cluster, plan, spec, topic

from reconciler.codehost.comments import report_plan
from reconciler.codehost.host import PullRequest, Run
from reconciler.codehost.progress import Present, Progress, read_present, read_progress
from reconciler.codehost.results import report_result
from reconciler.errors import Finding, Severity
from reconciler.model.cluster import TopicSpec
from reconciler.model.outcomes import Outcome, OutcomeKind
from reconciler.model.plan import Plan
from reconciler.run.ending import Applied, Ended, Ending, end_run

if TYPE_CHECKING:
    from code_host import CodeHost, Talk

A, B = spec("a", partitions=9), spec("b", partitions=6, config={"flush.ms": "60000"})
SIX = topic("1 2 3 1 2 3", "a")
NINE = topic("1 2 3 1 2 3 1 2 3", "a")
SMALL = topic("1 2 3", "b")
GROWN = topic("1 2 3 1 2 3", "b", config={"flush.ms": "60000"})
APPROVED = plan([A, B], cluster(SIX, SMALL))
HALF = plan([A, B], cluster(NINE, SMALL))
WHOLE = plan([A, B], cluster(NINE, GROWN))
KILLED = Ending(Ended.UNKNOWN, error="the journal has no last line: the run was killed")
MARK = "<!-- reconciler:applied cluster=prod -->"


def read(made: Plan, *specs: TopicSpec) -> Present:
    named: Mapping[str, TopicSpec] = {one.name: one for one in specs or (A, B)}
    return read_present(made, named)


@pytest.fixture
def request_12(host: CodeHost, run: Run) -> Talk:
    request = host.open_request(12, HEAD)
    report_plan(run, APPROVED)
    request.review("alice")
    request.merged_as = MERGED
    return request


@pytest.fixture
def night(run: Run) -> Run:
    """A run that no push started, later."""
    return replace(run, commit="9" * 40, request=None, is_push=False)


def text(request: Talk) -> str:
    found = [note["body"] for note in request.comments if note["body"].startswith(MARK)]
    assert len(found) == 1
    return str(found[0])


def paragraphs(request: Talk) -> list[str]:
    title, *parts = text(request).removeprefix(f"{MARK}\n### Kafka apply on `prod`: ").split("\n\n")
    return [title, *(part for part in parts if not part.startswith(("From ", "Seen ", "<!--")))]


def test_a_run_that_was_killed_half_way_shows_what_it_did(run: Run, request_12: Talk) -> None:
    report_result(run, "prod", APPROVED, KILLED, "", present=read(HALF))
    title, *parts = paragraphs(request_12)
    assert title == "not finished"
    assert "1 of 2 topics of this request is as specified: `a`" in parts
    assert "1 topic is not: `b`" in parts
    assert read_progress(text(request_12)) == Progress(("a",), ("b",))


def test_a_run_after_one_that_was_killed_never_says_that_nothing_was_changed(
    run: Run, request_12: Talk
) -> None:
    """The rest is a plan of its own, which nobody approved."""
    report_result(run, "prod", HALF, None, "", present=read(HALF))
    title, why, *parts = paragraphs(request_12)
    assert title == "not finished"
    assert why.startswith("This run changed nothing, because the plan is not the approved one.")
    assert "1 of 2 topics of this request is as specified: `a`" in parts


def test_a_run_that_finds_everything_done_says_so_if_the_first_report_was_lost(
    run: Run, request_12: Talk
) -> None:
    report_result(run, "prod", WHOLE, None, "", present=read(WHOLE))
    assert paragraphs(request_12) == [
        "done",
        "The cluster is as specified.",
        "2 of 2 topics of this request are as specified: `a`, `b`",
    ]


def test_a_result_that_was_killed_is_final_if_the_changes_were_made_all_the_same(
    run: Run, request_12: Talk
) -> None:
    report_result(run, "prod", APPROVED, KILLED, "", present=read(WHOLE))
    assert paragraphs(request_12)[0] == "done"


def test_what_this_run_did_is_not_listed_twice(run: Run, request_12: Talk) -> None:
    ending = end_run(Applied((Outcome("a", OutcomeKind.DONE), Outcome("b", OutcomeKind.DONE))))
    report_result(run, "prod", APPROVED, ending, "", present=read(WHOLE))
    assert paragraphs(request_12) == ["done", "2 topics are as planned: `a`, `b`"]


@pytest.mark.parametrize(("now", "title"), [(HALF, "not finished"), (WHOLE, "done")])
def test_a_later_run_of_something_else_brings_the_result_up_to_date(
    now: Plan, title: str, run: Run, night: Run, request_12: Talk
) -> None:
    """Such as a night that applied drift, or a person who approved the rest by hand."""
    failed = end_run(Applied((Outcome("a", OutcomeKind.FAILED, "no rights", "topic-failed"),)))
    report_result(run, "prod", APPROVED, failed, "", present=read(APPROVED))
    assert paragraphs(request_12)[0] == "failed"
    said = report_result(night, "prod", now, None, "", present=read(now))
    assert said == [f"comment {request_12.comments[1]['id']} on request 12 updated"]
    assert paragraphs(request_12)[0] == title
    assert report_result(night, "prod", now, None, "", present=read(now)) == []


def test_a_later_run_says_why_the_rest_is_not_done(run: Run, night: Run, request_12: Talk) -> None:
    report_result(run, "prod", APPROVED, KILLED, "", present=read(APPROVED))
    failed = end_run(Applied((Outcome("b", OutcomeKind.FAILED, "no rights", "topic-failed"),)))
    report_result(night, "prod", HALF, failed, "", present=read(HALF))
    assert "| `b` | failed | no rights `topic-failed` |" in text(request_12)


def test_a_kill_before_the_report_is_made_good_by_a_later_run(night: Run, request_12: Talk) -> None:
    assert report_result(night, "prod", WHOLE, None, "", present=read(WHOLE)) == [
        "comment on request 12 written"
    ]
    assert paragraphs(request_12)[0] == "done"


@pytest.mark.usefixtures("request_12")
def test_a_request_whose_own_run_waits_gets_no_result_from_others(night: Run) -> None:
    assert report_result(night, "prod", APPROVED, None, "", present=read(APPROVED)) == []


def test_the_result_of_one_request_is_never_written_on_another(
    host: CodeHost, run: Run, night: Run, request_12: Talk
) -> None:
    """A person applies by hand what is left of request 12, at the commit of request 13."""
    report_result(run, "prod", APPROVED, KILLED, "", present=read(HALF))
    other = host.open_request(13, "d" * 40)
    other.merged_as = night.commit
    done = end_run(Applied((Outcome("b", OutcomeKind.DONE),)))
    report_result(night, "prod", HALF, done, "", present=read(WHOLE))
    assert paragraphs(request_12)[0] == "done"
    assert other.comments == []


def test_a_run_of_an_earlier_commit_judges_no_later_request(
    host: CodeHost, run: Run, night: Run, request_12: Talk
) -> None:
    """Its specs are not those of the later request."""
    later = host.open_request(13, "d" * 40)
    changed = [replace(A, partitions=12), B]
    report_plan(
        replace(run, request=PullRequest(13, "d" * 40)), plan(changed, cluster(NINE, GROWN))
    )
    later.merged_as = night.commit
    repeated = replace(run, is_push=False)
    said = report_result(
        repeated, "prod", WHOLE, None, "", present=read(WHOLE), knows=lambda c: c == MERGED
    )
    assert said == ["comment on request 12 written"]
    now = plan(changed, cluster(topic(" ".join(["1 2 3"] * 4), "a"), GROWN))
    assert report_result(night, "prod", now, None, "", present=read(now, *changed)) == [
        "comment on request 13 written"
    ]
    assert paragraphs(request_12)[0] == paragraphs(later)[0] == "done"


def test_a_request_that_another_one_took_back_is_not_called_done(
    run: Run, night: Run, request_12: Talk
) -> None:
    report_result(run, "prod", APPROVED, KILLED, "", present=read(HALF))
    back = [spec("a", partitions=9), replace(B, config={})]
    now = plan(back, cluster(NINE, topic("1 2 3 1 2 3", "b")))
    report_result(night, "prod", now, None, "", present=read(now, *back))
    assert read_progress(text(request_12)) == Progress(("a",), (), ("b",))
    said = "The specs ask for something else by now, or are gone: `b`"
    assert said in paragraphs(request_12)


def test_a_request_whose_specs_are_gone_is_replaced(run: Run, night: Run, request_12: Talk) -> None:
    report_result(run, "prod", APPROVED, KILLED, "", present=read(APPROVED))
    now = plan([], cluster(SIX, SMALL))
    report_result(night, "prod", now, None, "", present=read_present(now, {}))
    assert paragraphs(request_12)[0] == "replaced"


def test_a_request_that_changes_no_topic_keeps_its_result(
    host: CodeHost, run: Run, night: Run
) -> None:
    """Such as one that only removes specs: nothing of it can be compared with the cluster."""
    removed = Finding("topics-left", "unmanaged: c", severity=Severity.NOTE)
    request = host.open_request(12, HEAD)
    report_plan(run, replace(WHOLE, notes=(removed,)))
    request.merged_as = MERGED
    report_result(run, "prod", WHOLE, None, "", present=read(WHOLE))
    before = text(request)
    assert report_result(night, "prod", WHOLE, None, "", present=read(WHOLE)) == []
    assert text(request) == before


def test_a_cluster_that_cannot_be_read_again_keeps_what_an_earlier_run_found(
    run: Run, request_12: Talk
) -> None:
    report_result(run, "prod", APPROVED, KILLED, "", present=read(HALF))
    report_result(run, "prod", None, None, "error: no broker answers [connect-refused]")
    title, *parts = paragraphs(request_12)
    assert title == "error"
    assert "An earlier run found 1 of 2 topics of this request is as specified." in parts
    assert read_progress(text(request_12)) == Progress(("a",), ("b",))


def test_a_gradual_change_is_done_with_its_first_step(run: Run, host: CodeHost) -> None:
    lower = spec(
        "a", config={"retention.ms": "86400000"}, gradual=2, acknowledge=frozenset({"data-loss"})
    )

    def has(days: int) -> Plan:
        held = topic("1 2 3", "a", config={"retention.ms": str(days * 86_400_000)})
        return plan([lower], cluster(held))

    request = host.open_request(12, HEAD)
    report_plan(run, has(7))
    request.merged_as = MERGED
    done = end_run(Applied((Outcome("a", OutcomeKind.DONE),)))
    report_result(run, "prod", has(7), done, "", present=read(has(4), lower))
    assert read_progress(text(request)) == Progress(("a",))
    report_result(run, "prod", has(7), done, "", present=read(has(7), lower))
    assert read_progress(text(request)) == Progress((), ("a",))


@pytest.mark.parametrize("host", [GitHubHost], indirect=True)
def test_a_host_that_does_not_answer_for_others_fails_no_report(
    host: CodeHost, run: Run, request_12: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> Iterator[object]:
        return run.host._rest.list("unknown")  # type: ignore[attr-defined]

    monkeypatch.setattr(run.host, "list_recently_merged", refuse)
    done = end_run(Applied((Outcome("a", OutcomeKind.DONE), Outcome("b", OutcomeKind.DONE))))
    written, rest = report_result(run, "prod", APPROVED, done, "", present=read(WHOLE))
    assert written == "comment on request 12 written"
    assert rest.startswith("not all merged requests show what is done now: GET ")
    assert paragraphs(request_12)[0] == "done"
