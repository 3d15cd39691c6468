"""What the merged request shows of its apply: done, failed, or not applied and why."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from code_host import HEAD, MERGED, Answer, Fault
from code_hosts import GitHubHost, GitLabHost
from shorthand import HERE, cluster, may_move, plan, rows, spec, topic

from reconciler.codehost.comments import report_plan
from reconciler.codehost.host import Run
from reconciler.codehost.results import report_moves, report_result
from reconciler.errors import Finding, OutdatedPlanError, RefusedPlanError
from reconciler.model.outcomes import Outcome, OutcomeKind
from reconciler.model.plan import Plan
from reconciler.moves.plan import assemble_moves
from reconciler.planfile.codec import fingerprint_plan
from reconciler.run.ending import Applied, Ended, Ending, end_run
from reconciler.show.fields import keep_fields, pack_fields
from reconciler.show.markdown.page import COMMENT_LIMIT
from reconciler.spec.entry import ClusterEntry

if TYPE_CHECKING:
    from code_host import CodeHost, Talk

WISH = spec("a", partitions=9)
APPROVED = plan([WISH], cluster(topic("1 2 3 1 2 3", "a")))
STALE = plan([WISH], cluster(topic("1 2 3 1 2 3 1 2", "a")))
EMPTY = plan([WISH], cluster(topic("1 2 3 1 2 3 1 2 3", "a")))
REFUSED = plan([spec("a", partitions=1)], cluster(topic("1 2 3", "a")))
MOVES = assemble_moves(
    ClusterEntry("prod", HERE, moves=may_move()),
    [spec("b", replication_factor=2)],
    cluster(topic("1", "b", in_sync=rows("1"))),
)
DONE = Outcome("a", OutcomeKind.DONE)
FAILED = Outcome("b", OutcomeKind.FAILED, "broker 2 said: no *disk*", "topic-failed")
MARK = "<!-- reconciler:applied cluster=prod -->"
ONE_HOST = [GitHubHost]
"""What is the same on both hosts is shown on one."""


@pytest.fixture
def request_12(host: CodeHost, run: Run) -> Talk:
    """A merged request that alice approved."""
    request = host.open_request(12, HEAD)
    report_plan(run, APPROVED, moves=MOVES)
    request.review("alice")
    request.merged_as = MERGED
    return request


def result(
    run: Run,
    request: Talk,
    made: Plan | None,
    ending: Ending | None = None,
    errors: str = "",
    **more: bool | float,
) -> list[str]:
    """Report a result. Returns the paragraphs of the comment with it."""
    if more.pop("moves", False):
        said = report_moves(run, "prod", made, ending, errors)
    else:
        (said,) = report_result(run, "prod", made, ending, errors, **more)  # type: ignore[arg-type]
    assert said == "comment on request 12 written"
    assert len(request.comments) == 2
    text = request.comments[1]["body"]
    assert len(text.encode()) <= COMMENT_LIMIT
    return text.removesuffix("\n").split("\n\n")


def by_hand(host: CodeHost, made: Plan, job: str = "apply", run: str = "") -> str:
    fingerprint = fingerprint_plan(made)
    if isinstance(host, GitLabHost):
        more = f" and `RUN={run}`" if run else ""
        return f"start the job `{job} prod` with `FINGERPRINT={fingerprint}`{more}."
    named = ["cluster `prod`", f"fingerprint `{fingerprint}`", *([f"run `{run}`"] if run else [])]
    return f"run *{job}* by hand with {', '.join(named[:-1])} and {named[-1]}."


@pytest.mark.usefixtures("host")
def test_what_was_applied_has_its_topics_and_the_duration(run: Run, request_12: Talk) -> None:
    ending = end_run(Applied((DONE, replace(DONE, topic="c"))))
    assert result(run, request_12, APPROVED, ending, duration_s=72.4) == [
        f"{MARK}\n### Kafka apply on `prod`: done",
        "2 topics are as planned after 72 s: `a`, `c`",
        "From [this run](https://ci.shop.example/runs/7)",
    ]


@pytest.mark.parametrize("host", ONE_HOST, indirect=True)
def test_what_failed_has_its_topics_and_reasons(run: Run, request_12: Talk) -> None:
    ending = end_run(Applied((DONE, FAILED, replace(DONE, topic="c", kind=OutcomeKind.UNKNOWN))))
    title, done, table, _, next_step = result(run, request_12, APPROVED, ending)
    assert title == f"{MARK}\n### Kafka apply on `prod`: unknown"
    assert done == "1 topic is as planned: `a`"
    assert table.splitlines()[2:] == [
        "| `c` | unknown |  |",
        "| `b` | failed | broker 2 said: no &#42;disk&#42; `topic-failed` |",
    ]
    assert next_step == "**Next:** run the job again. It checks first what was done."


@pytest.mark.parametrize("host", ONE_HOST, indirect=True)
def test_an_approved_plan_that_the_branch_no_longer_asks_for_says_so(
    run: Run, request_12: Talk
) -> None:
    found = Finding("plan-outdated", "origin/main (1a2b3c4d5e) asks for something else for a")
    title, why, _, next_step = result(
        run, request_12, APPROVED, end_run(error=OutdatedPlanError([found]))
    )
    assert title == f"{MARK}\n### Kafka apply on `prod`: outdated"
    assert "origin/main (1a2b3c4d5e) asks for something else for a" in why
    assert next_step == (
        "**Next:** run apply by hand on the default branch. It plans what that branch asks for "
        "now, and the run says how to approve it."
    )


def test_a_plan_that_is_not_the_approved_one_is_compared_with_it(
    host: CodeHost, run: Run, request_12: Talk
) -> None:
    noted = replace(STALE, notes=(Finding("approved-rows", "the approved rows do not fit"),))
    title, why, table, note, _, next_step = result(run, request_12, noted)
    assert title == f"{MARK}\n### Kafka apply on `prod`: not applied"
    assert why.startswith(
        "This run changed nothing, because the plan is not the approved one. "
        "alice approved request 12"
    )
    assert why.endswith(
        f"when it showed the plan `{fingerprint_plan(APPROVED)}`. "
        f"The plan is `{fingerprint_plan(STALE)}` now."
    )
    assert table.splitlines() == [
        "| Topic | Field | Approved | Now | Why |",
        "|:--|:--|:--|:--|:--|",
        "| `a` | `partitions` | 6 → 9 | 8 → 9 | the topic was expanded meanwhile |",
    ]
    assert note == "the approved rows do not fit"
    assert next_step == (
        "**Next:** read the plan that the run shows. To apply it, " + by_hand(host, STALE)
    )


@pytest.mark.parametrize("host", ONE_HOST, indirect=True)
def test_a_plan_that_differs_in_no_field_says_what_else_may_differ(
    run: Run, request_12: Talk
) -> None:
    recreated = plan([WISH], cluster(topic("1 2 3 1 2 3", "a", topic_id="another")))
    assert fingerprint_plan(recreated) != fingerprint_plan(APPROVED)
    assert result(run, request_12, recreated)[2] == (
        "Every field is the same: replicas are on other brokers, or a topic has another id."
    )


@pytest.mark.parametrize("host", ONE_HOST, indirect=True)
def test_a_later_plan_that_nobody_reviewed_is_mentioned(host: CodeHost, run: Run) -> None:
    request = host.open_request(12, HEAD)
    report_plan(run, APPROVED)
    request.review("alice")
    report_plan(run, STALE)
    request.merged_as = MERGED
    report_result(run, "prod", STALE, None, "")
    assert (
        "The request also showed a different plan later, which nobody reviewed."
        in (request.comments[2]["body"])
    )


@pytest.mark.parametrize("host", ONE_HOST, indirect=True)
def test_a_plan_too_large_for_the_hidden_line_is_not_compared(
    host: CodeHost, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit is lower here: a plan that reaches the real one takes seconds to render."""
    request = host.open_request(12, HEAD)
    kept = pack_fields(keep_fields(APPROVED))
    monkeypatch.setattr("reconciler.codehost.comments.FIELDS_LIMIT", len(kept))
    report_plan(run, APPROVED)
    assert f" fields={kept} -->" in request.comments[0]["body"]
    monkeypatch.setattr("reconciler.codehost.comments.FIELDS_LIMIT", len(kept) - 1)
    report_plan(run, APPROVED)
    assert " fields=" not in request.comments[0]["body"]
    request.merged_as = MERGED
    _, why, compared, *_ = result(run, request, STALE)
    assert "Request 12 was merged when it showed the plan" in why
    said = "The approved plan was too large to be compared field by field: see its comment."
    assert compared == said


@pytest.mark.parametrize("host", ONE_HOST, indirect=True)
def test_a_comment_with_many_differences_fits(host: CodeHost, run: Run) -> None:
    request = host.open_request(12, HEAD)
    wish = {"partitions": 1, "replication_factor": 1}
    report_plan(run, plan([spec(f"{n:0200}", **wish) for n in range(300)], cluster()))
    request.merged_as = MERGED
    now = plan([spec(f"{n:0200}", **wish) for n in range(300, 600)], cluster())
    shown = result(run, request, now)
    assert shown[3].endswith(" more in the log of the run")
    table = shown[2].count("\n") - 1
    assert table + int(shown[3].split()[0].replace(",", "")) == 1200


def test_a_plan_that_nobody_approved_says_why(host: CodeHost, run: Run) -> None:
    request = host.open_request(12, HEAD)
    report_plan(run, replace(APPROVED, cluster="staging"))
    request.merged_as = MERGED
    _, why, _, next_step = result(run, request, STALE)
    assert why.startswith(
        "This run changed nothing, because no plan was approved: request 12 shows no plan for prod;"
    )
    assert next_step.endswith(by_hand(host, STALE))


@pytest.mark.parametrize("host", ONE_HOST, indirect=True)
def test_a_refused_plan_and_one_that_could_not_be_made(run: Run, request_12: Talk) -> None:
    title, table, _, next_step = result(run, request_12, REFUSED)
    assert title.endswith("refused")
    assert "`partitions-never-shrink`" in table
    assert next_step == "**Next:** change the specs as the reasons say, in a new request."
    report_result(run, "prod", None, None, "error: no broker answers [connect-refused]\n")
    text = request_12.comments[1]["body"]
    assert "### Kafka apply on `prod`: error\n\n```text\nerror: no broker answers" in text
    assert "**Next:** once the reason is gone, run the job again." in text


@pytest.mark.parametrize("host", ONE_HOST, indirect=True)
def test_an_error_of_an_approved_plan_is_not_called_unapproved(run: Run, request_12: Talk) -> None:
    lost = end_run(error=RefusedPlanError([Finding("connect-refused", "no broker answers")]))
    ending = replace(lost, ended=Ended.ERROR)
    title, reason, *_ = result(run, request_12, APPROVED, ending)
    assert title.endswith("error")
    assert "no broker answers [connect-refused]" in reason


@pytest.mark.parametrize("host", ONE_HOST, indirect=True)
def test_the_reason_of_a_run_that_was_not_approved_stays_visible(
    run: Run, request_12: Talk
) -> None:
    """As on GitLab, where apply itself compares the fingerprints."""
    stopped = Ending(Ended.NOT_APPROVED, error="its fingerprint is not the approved one")
    title, *parts = result(run, request_12, STALE, stopped)
    assert title.endswith("not applied")
    assert "```text\nits fingerprint is not the approved one\n```" in parts


def test_moves_have_a_result_of_their_own(host: CodeHost, run: Run, request_12: Talk) -> None:
    other = assemble_moves(
        ClusterEntry("prod", HERE, moves=may_move()),
        [spec("b", replication_factor=3)],
        cluster(topic("1", "b", in_sync=rows("1"))),
    )
    title, _, table, *_, next_step = result(run, request_12, other, moves=True)
    assert title == "<!-- reconciler:moved cluster=prod -->\n### Kafka moves on `prod`: not applied"
    assert table.splitlines()[2] == (
        "| `b` | `move` | 1 partition, 1 → 2 replicas | 1 partition, 1 → 3 replicas | "
        "the specs are different |"
    )
    assert next_step.endswith(by_hand(host, other, "moves"))
    report_result(run, "prod", APPROVED, end_run(Applied((DONE,))), "")
    assert request_12.comments[2]["body"].startswith(MARK)


def test_unfinished_moves_say_how_to_continue(host: CodeHost, run: Run, request_12: Talk) -> None:
    going = Outcome("b", OutcomeKind.IN_FLIGHT, "1 of 2 partitions")
    ending = end_run(Applied((going,)))
    title, table, _, next_step = result(run, request_12, MOVES, ending, moves=True)
    assert title.endswith("unfinished")
    assert "| `b` | in flight | 1 of 2 partitions |" in table
    assert next_step == (
        "**Next:** copies in flight go on. To continue, " + by_hand(host, MOVES, "moves", "7")
    )


def test_moves_that_are_continued_by_hand_are_reported_where_they_were_shown(
    host: CodeHost, run: Run, request_12: Talk
) -> None:
    """The commit is that of another request by then."""
    going = end_run(Applied((Outcome("b", OutcomeKind.IN_FLIGHT, "1 of 2 partitions"),)))
    result(run, request_12, MOVES, going, moves=True)
    other = host.open_request(13, "d" * 40)
    other.merged_as = "9" * 40
    later = replace(run, commit="9" * 40, request=None, is_push=False)
    done = end_run(Applied((Outcome("b", OutcomeKind.DONE),)))
    assert report_moves(later, "prod", MOVES, done, "") == "comment 1002 on request 12 updated"
    assert "Kafka moves on `prod`: done" in request_12.comments[1]["body"]
    assert other.comments == []
    said = report_moves(later, "prod", APPROVED, done, "")
    assert said == "0 requests showed these moves, so none gets the result"


def test_a_later_run_edits_the_result_and_nothing_else(
    host: CodeHost, run: Run, request_12: Talk
) -> None:
    host.comment(request_12, "mallory", f"{MARK}\nnot ours")
    before = [note["body"] for note in request_12.comments]
    report_result(run, "prod", APPROVED, end_run(Applied((FAILED,))), "")
    report_result(replace(run, request=None), "prod", APPROVED, end_run(Applied((DONE,))), "")
    assert [note["body"] for note in request_12.comments[:2]] == before
    (ours,) = request_12.comments[2:]
    assert ours["body"].startswith(f"{MARK}\n### Kafka apply on `prod`: done")
    report_result(run, "prod", EMPTY, None, "")
    assert ours["body"].startswith(f"{MARK}\n### Kafka apply on `prod`: nothing to do")


def test_nothing_to_do_is_reported_only_where_a_plan_was_shown(
    host: CodeHost, run: Run, request_12: Talk
) -> None:
    assert result(run, request_12, EMPTY)[1] == "The cluster is as specified."
    elsewhere = replace(EMPTY, cluster="staging")
    said = report_result(run, "staging", elsewhere, None, "")
    assert said == ["nothing to do, so request 12 gets no comment"]
    assert len(request_12.comments) == 2


def test_without_a_request_there_is_no_comment(host: CodeHost, run: Run) -> None:
    said = report_result(run, "prod", APPROVED, end_run(Applied((DONE,))), "")
    assert said == ["0 requests became 0123456789ab, so none gets the result"]
    assert host.writes() == []


@pytest.mark.parametrize("done", [True, False])
def test_a_lost_answer_never_makes_a_second_result(
    host: CodeHost, run: Run, request_12: Talk, done: bool
) -> None:
    host.faults.append(Fault("POST", Answer(502, {"message": "Bad Gateway"}), done))
    report_result(run, "prod", APPROVED, end_run(Applied((DONE,))), "")
    assert len(request_12.comments) == 2
