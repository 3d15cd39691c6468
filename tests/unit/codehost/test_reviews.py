"""A review approves the plan that the request showed before it, whatever a later run shows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from code_host import HEAD, MERGED
from code_hosts import GitHubHost, GitLabHost
from shorthand import HERE, cluster, may_move, plan, rows, spec, topic

from reconciler.codehost.approvals import find_approved
from reconciler.codehost.comments import report_no_plan, report_plan
from reconciler.codehost.host import PullRequest, Run
from reconciler.errors import CodeHostError, Finding
from reconciler.model.plan import Plan
from reconciler.moves.plan import assemble_moves
from reconciler.planfile.approval import Approval, list_new_rows
from reconciler.planfile.codec import fingerprint_plan
from reconciler.spec.entry import ClusterEntry

if TYPE_CHECKING:
    from code_host import CodeHost

PUSHED = "b" * 40
FIRST = plan([spec("a", partitions=4, replication_factor=2)], cluster())
SECOND = plan([spec("a", partitions=5, replication_factor=2)], cluster())
THIRD = plan([spec("a", partitions=6, replication_factor=2)], cluster())
EMPTY = plan([spec("a", partitions=1)], cluster(topic("1", "a")))
ONE_HOST = [GitHubHost]
"""What is the same on both hosts is shown on one."""


def move(factor: int) -> Plan:
    return assemble_moves(
        ClusterEntry("prod", HERE, moves=may_move()),
        [spec("b", replication_factor=factor)],
        cluster(topic("1", "b", in_sync=rows("1"))),
    )


def approval(made: Plan) -> Approval:
    return Approval(fingerprint_plan(made), list_new_rows(made))


def refusal(run: Run, *, moves: bool = False) -> str:
    with pytest.raises(CodeHostError) as error:
        find_approved(run, "prod", moves=moves)
    (finding,) = error.value.findings
    assert finding.rule == "plan-unreviewed"
    return finding.what


def texts(host: CodeHost) -> list[str]:
    return [note["body"] for note in host.talks[12].comments]


def push(host: CodeHost, run: Run) -> Run:
    """Push another commit. Returns the run for it."""
    host.talks[12].head = PUSHED
    return replace(run, request=PullRequest(12, PUSHED))


def test_a_rerun_after_the_review_changes_nothing_that_is_approved(
    host: CodeHost, run: Run
) -> None:
    request = host.open_request(12, HEAD)
    report_plan(run, FIRST)
    request.review("alice")
    report_plan(run, SECOND)
    request.merged_as = MERGED
    assert find_approved(run, "prod") == approval(FIRST)


def test_the_approved_comment_stays_and_the_new_one_says_that_it_needs_a_review(
    host: CodeHost, run: Run
) -> None:
    request = host.open_request(12, HEAD)
    report_plan(run, FIRST)
    (approved,) = texts(host)
    request.review("alice")
    assert report_plan(run, SECOND) == "comment on request 12 written"
    assert report_plan(run, THIRD).endswith("updated")
    kept, third = texts(host)
    assert kept == approved
    title, warning, *_ = third.split("\n\n")
    assert title.startswith("<!-- reconciler:plan cluster=prod -->\n### Kafka plan for `prod`")
    assert warning.startswith(
        "**This plan needs a new review.** alice approved request 12 at 2026-11-"
    )
    assert fingerprint_plan(THIRD) in third
    request.review("bob")
    request.merged_as = MERGED
    assert find_approved(run, "prod") == approval(THIRD)


@pytest.mark.parametrize("host", ONE_HOST, indirect=True)
def test_the_approved_plan_needs_no_new_review_and_no_new_comment(host: CodeHost, run: Run) -> None:
    request = host.open_request(12, HEAD)
    report_plan(run, FIRST)
    request.review("alice")
    assert report_plan(run, FIRST).endswith("shows this plan, and is approved")
    report_plan(run, SECOND)
    report_plan(run, FIRST)
    first, again = texts(host)
    assert again == first
    report_plan(run, EMPTY)
    assert "### Kafka plan for `prod`: no changes" in texts(host)[1]
    assert "needs a new review" not in texts(host)[1]


def test_a_rerun_after_the_merge_writes_nothing(host: CodeHost, run: Run) -> None:
    request = host.open_request(12, HEAD)
    report_plan(run, FIRST)
    before = texts(host)
    request.merged_as = MERGED
    said = "request 12 is merged, so its comments stay as they are"
    assert report_plan(run, SECOND) == said
    assert report_no_plan(run, "prod", "error: no broker answers") == said
    assert texts(host) == before
    assert find_approved(run, "prod") == approval(FIRST)


def test_without_a_review_the_merge_approves_what_the_request_showed(
    host: CodeHost, run: Run
) -> None:
    """A run that raced with the merge edited the comment after it."""
    request = host.open_request(12, HEAD)
    report_plan(run, FIRST)
    report_plan(run, SECOND)
    request.merged_as = MERGED
    assert find_approved(run, "prod") == approval(SECOND)
    host.edit(request.comments[0], request.comments[0]["body"])
    assert refusal(run) == "request 12 was merged before its comment for prod was edited"


def test_a_plan_that_is_shown_only_after_the_merge_is_not_approved(
    host: CodeHost, run: Run
) -> None:
    request = host.open_request(12, HEAD)
    report_plan(run, FIRST)
    late = request.comments.pop()
    request.merged_as = MERGED
    host.comment(request, host.me, late["body"])
    assert refusal(run) == "request 12 was merged when it showed no plan for prod"


def test_an_edit_that_raced_with_the_review_was_not_seen(host: CodeHost, run: Run) -> None:
    request = host.open_request(12, HEAD)
    report_plan(run, FIRST)
    request.review("alice")
    host.edit(request.comments[0], request.comments[0]["body"])
    request.merged_as = MERGED
    assert refusal(run).startswith("alice approved request 12 at 2026-11-")
    assert refusal(run).endswith(" UTC, before its comment for prod was edited")


def test_an_earlier_comment_does_not_stand_in_for_one_that_was_edited(
    host: CodeHost, run: Run
) -> None:
    """Bob saw the second plan, so he did not approve the first one again."""
    request = host.open_request(12, HEAD)
    report_plan(run, FIRST)
    request.review("alice")
    report_plan(run, SECOND)
    request.review("bob")
    host.edit(request.comments[1], request.comments[1]["body"])
    request.merged_as = MERGED
    assert refusal(run).startswith("bob approved request 12 at 2026-11-")
    assert refusal(run).endswith(" UTC, before its comment for prod was edited")


@pytest.mark.parametrize("host", ONE_HOST, indirect=True)
def test_a_review_before_any_plan_approves_none(host: CodeHost, run: Run) -> None:
    request = host.open_request(12, HEAD)
    report_no_plan(run, "prod", "error: no broker answers")
    request.review("alice")
    report_plan(run, FIRST)
    assert len(texts(host)) == 2
    assert "needs a new review" in texts(host)[1]
    request.merged_as = MERGED
    assert refusal(run).endswith("when it showed no plan for prod")


def test_a_review_of_an_earlier_commit_counts_if_the_plan_is_the_same(
    host: CodeHost, run: Run
) -> None:
    request = host.open_request(12, HEAD)
    report_plan(run, FIRST)
    request.review("alice")
    pushed = push(host, run)
    report_plan(pushed, FIRST)
    assert "needs a new review" not in texts(host)[1]
    request.merged_as = MERGED
    assert find_approved(pushed, "prod") == approval(FIRST)


def test_a_review_of_an_earlier_commit_does_not_approve_another_plan(
    host: CodeHost, run: Run
) -> None:
    request = host.open_request(12, HEAD)
    report_plan(run, FIRST)
    request.review("alice")
    report_plan(push(host, run), SECOND)
    request.merged_as = MERGED
    assert refusal(run).endswith(
        "when it showed the plan for a1b2c3d4e5f6; the plan for bbbbbbbbbbbb is a different one"
    )


def test_a_review_of_an_earlier_commit_does_not_accept_a_guard_that_a_later_one_loosens(
    host: CodeHost, run: Run
) -> None:
    request = host.open_request(12, HEAD)
    report_plan(run, FIRST)
    request.review("alice")
    alert = Finding("guard-loosened", "max_deletes of prod: 2 → 20", "ask the platform team", HERE)
    loosened = replace(FIRST, alerts=(alert,))
    assert fingerprint_plan(loosened) == fingerprint_plan(FIRST)
    report_plan(push(host, run), loosened)
    assert "**This plan needs a new review.**" in texts(host)[1]
    request.merged_as = MERGED
    assert refusal(run).endswith("has other warnings above it")


def test_moves_and_changes_are_reviewed_each_for_itself(host: CodeHost, run: Run) -> None:
    request = host.open_request(12, HEAD)
    report_plan(run, FIRST, moves=move(2))
    request.review("alice")
    pushed = push(host, run)
    report_plan(pushed, FIRST, moves=move(3))
    assert "needs a new review" in texts(host)[1]
    request.merged_as = MERGED
    assert find_approved(pushed, "prod") == approval(FIRST)
    assert refusal(pushed, moves=True).endswith("the plan for bbbbbbbbbbbb is a different one")


def test_moves_are_those_that_the_reviewer_saw(host: CodeHost, run: Run) -> None:
    request = host.open_request(12, HEAD)
    report_plan(run, FIRST, moves=move(2))
    request.review("alice")
    report_plan(run, FIRST, moves=move(3))
    request.merged_as = MERGED
    assert find_approved(run, "prod", moves=True) == Approval(fingerprint_plan(move(2)))


def test_an_approval_that_was_withdrawn_approves_nothing(host: CodeHost, run: Run) -> None:
    """On GitLab there is then no approval at all, as where none is required."""
    request = host.open_request(12, HEAD)
    report_plan(run, FIRST)
    review = request.review("alice")
    review["state"] = "DISMISSED"
    report_plan(run, SECOND)
    assert len(texts(host)) == 1
    request.merged_as = MERGED
    if isinstance(host, GitLabHost):
        assert find_approved(run, "prod") == approval(SECOND)
    else:
        assert refusal(run) == (
            "request 12 has no approval: alice requested changes, or the review was dismissed"
        )


@pytest.mark.parametrize("shows_permissions", [True, False])
@pytest.mark.parametrize("host", ONE_HOST, indirect=True)
def test_only_the_last_opinion_of_people_who_may_write_counts(
    host: GitHubHost, run: Run, shows_permissions: bool
) -> None:
    host.shows_permissions = shows_permissions
    request = host.open_request(12, HEAD)
    report_plan(run, FIRST)
    request.review("alice")
    request.review("alice", "COMMENTED")
    request.review("bob")
    report_plan(run, SECOND)
    for other in ("mallory", "checker[bot]"):
        request.review(other)
    request.review("bob", "CHANGES_REQUESTED")
    request.merged_as = MERGED
    assert find_approved(run, "prod") == approval(FIRST)


@pytest.mark.parametrize("host", [GitLabHost], indirect=True)
def test_a_merge_whose_time_is_unknown_approves_nothing(host: GitLabHost, run: Run) -> None:
    request = host.open_request(12, HEAD)
    report_plan(run, FIRST)
    request.merged_as, request.merged_at = MERGED, None
    assert refusal(run) == "request 12 was merged when it showed no plan for prod"


@pytest.mark.parametrize("host", [GitLabHost], indirect=True)
def test_an_approval_whose_time_is_unknown_approves_nothing(
    host: GitLabHost, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = host.open_request(12, HEAD)
    report_plan(run, FIRST)
    request.review("alice")
    request.merged_as = MERGED
    assert find_approved(run, "prod") == approval(FIRST)
    monkeypatch.setattr("code_hosts._record", lambda _: {**request.comments[0], "body": "…"})
    assert refusal(run).startswith("request 12 has no approval: alice")
