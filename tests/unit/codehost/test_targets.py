"""Which differences a nightly run may apply: those whose target people accepted, and no others."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from code_host import HEAD, MERGED, Answer, Fault
from code_hosts import GitHubHost, GitLabHost
from shorthand import ONE, cluster, plan, spec, topic, unused_cluster

from reconciler.codehost.comments import report_drift, report_plan
from reconciler.codehost.host import Run
from reconciler.codehost.progress import read_present
from reconciler.codehost.results import report_result
from reconciler.codehost.targets import judge_targets
from reconciler.errors import CodeHostError
from reconciler.model.outcomes import Outcome, OutcomeKind
from reconciler.model.plan import Plan
from reconciler.planfile.accepted import Accepted, decode_accepted, encode_accepted
from reconciler.run.ending import Applied, end_run
from reconciler.show.gradual import list_gradual_steps

if TYPE_CHECKING:
    from code_host import CodeHost, Talk

DAY = 86_400_000
A = spec("a", partitions=9, config={"flush.ms": "60000"})
BEFORE = plan([A], cluster(topic("1 2 3 1 2 3", "a", config={"flush.ms": "60000"})))
"""What the request showed: an expansion."""
DONE = plan([A], cluster(topic("1 2 3 1 2 3 1 2 3", "a", config={"flush.ms": "60000"})))
BY_HAND = plan([A], cluster(topic("1 2 3 1 2 3 1 2 3", "a", config={"flush.ms": "1"})))
"""Somebody changed another field of the topic later."""
BOTH = plan([A], cluster(topic("1 2 3 1 2 3", "a", config={"flush.ms": "1"})))
KEPT = {"a": MERGED}


@pytest.fixture
def request_12(host: CodeHost, run: Run) -> Talk:
    request = host.open_request(12, HEAD)
    report_plan(run, BEFORE)
    return request


def merge(request: Talk) -> None:
    request.merged_as = MERGED


def judge(run: Run, made: Plan, origins: dict[str, str] = KEPT) -> Accepted:
    return judge_targets(run.host, made, origins, ())


def waits(run: Run, made: Plan, origins: dict[str, str] = KEPT) -> str:
    judged = judge(run, made, origins)
    assert (judged.topics, list(judged.waiting)) == ((), ["a"])
    return judged.waiting["a"]


def test_what_an_approved_plan_shows_is_accepted(run: Run, request_12: Talk) -> None:
    """Its apply failed, or never ran."""
    request_12.review("alice")
    merge(request_12)
    assert judge(run, BEFORE) == Accepted(cluster="prod", topics=("a",))


@pytest.mark.parametrize("host", [GitHubHost], indirect=True)
def test_what_no_review_approved_waits(run: Run, request_12: Talk) -> None:
    request_12.review("alice", "CHANGES_REQUESTED")
    merge(request_12)
    assert waits(run, BEFORE).startswith("request 12 has no approval: alice requested changes")


def test_what_was_shown_after_the_review_waits(host: CodeHost, run: Run) -> None:
    request = host.open_request(12, HEAD)
    report_plan(run, BY_HAND)
    request.review("alice")
    report_plan(run, BEFORE)
    merge(request)
    why = "the approved plan of request 12 does not show this: partitions"
    assert waits(run, BEFORE) == why


def test_a_difference_that_the_approved_plan_does_not_show_waits(
    run: Run, request_12: Talk
) -> None:
    merge(request_12)
    why = "the approved plan of request 12 does not show this: flush.ms"
    assert waits(run, BY_HAND) == why
    assert waits(run, BOTH) == why


def test_another_value_than_the_approved_one_waits(run: Run, request_12: Talk) -> None:
    """What was merged is not what was shown: another merge changed the same topic before."""
    merge(request_12)
    more = plan([replace(A, partitions=12)], cluster(topic("1 2 3 1 2 3", "a")))
    assert "partitions" in waits(run, more)


def test_everything_of_a_topic_is_accepted_once_its_apply_is_done(
    run: Run, request_12: Talk
) -> None:
    merge(request_12)
    ending = end_run(Applied((Outcome("a", OutcomeKind.DONE),)))
    report_result(run, "prod", BEFORE, ending, "", present=read_present(DONE, {"a": A}))
    assert judge(run, BY_HAND).topics == ("a",)
    assert judge(run, BOTH).topics == ("a",)


def test_no_topic_is_deleted_at_night(host: CodeHost, run: Run) -> None:
    """Whoever creates a topic again after its deletion wants another one."""
    gone = spec("a", absent=True)
    made = plan([gone], unused_cluster(topic("1", "a")), guards=ONE)
    request = host.open_request(12, HEAD)
    report_plan(run, made)
    merge(request)
    assert waits(run, made) == "no topic is deleted at night"
    done = end_run(Applied((Outcome("a", OutcomeKind.DONE),)))
    without = plan([gone], cluster())
    report_result(run, "prod", made, done, "", present=read_present(without, {"a": gone}))
    back = plan([gone], unused_cluster(topic("1 2", "a", topic_id="another")), guards=ONE)
    assert waits(run, back) == "no topic is deleted at night"


def test_an_apply_that_left_something_accepts_nothing_more(run: Run, request_12: Talk) -> None:
    merge(request_12)
    ending = end_run(Applied((Outcome("a", OutcomeKind.FAILED, "no rights"),)))
    report_result(run, "prod", BEFORE, ending, "", present=read_present(BEFORE, {"a": A}))
    assert "flush.ms" in waits(run, BY_HAND)
    assert judge(run, BEFORE).topics == ("a",)


def test_a_commit_without_a_plan_after_the_approval_is_not_accepted(
    host: CodeHost, run: Run
) -> None:
    """It said [skip ci]. The comment that was approved says that the topic is as specified."""
    request = host.open_request(12, HEAD)
    report_plan(run, replace(DONE, agreed=("a",)))
    request.review("alice")
    request.head = "b" * 40
    merge(request)
    lower = replace(A, config={"flush.ms": "1000"})
    made = plan([lower], cluster(topic("1 2 3 1 2 3 1 2 3", "a", config={"flush.ms": "60000"})))
    report_result(run, "prod", made, None, "", present=read_present(made, {"a": lower}))
    assert "was merged at bbbbbbbbbbbb" in waits(run, made)


def test_a_topic_that_was_as_specified_after_the_merge_is_accepted(
    host: CodeHost, run: Run
) -> None:
    """Such as an imported one: nobody applied it, and a run after the merge found it so."""
    request = host.open_request(12, HEAD)
    report_plan(run, replace(DONE, agreed=("a",)))
    (note,) = request.comments
    assert "no changes" in note["body"]
    merge(request)
    assert "flush.ms" in waits(run, BY_HAND)
    report_result(run, "prod", DONE, None, "", present=read_present(DONE, {"a": A}))
    assert judge(run, BY_HAND).topics == ("a",)


def test_a_topic_that_another_merge_changed_before_is_not_accepted(
    host: CodeHost, run: Run
) -> None:
    """The branch was not up to date: what was shown as specified is not what was merged."""
    request = host.open_request(12, HEAD)
    report_plan(run, replace(DONE, agreed=("a",)))
    request.review("alice")
    merge(request)
    lower = replace(A, config={"flush.ms": "1000"})
    made = plan([lower], cluster(topic("1 2 3 1 2 3 1 2 3", "a", config={"flush.ms": "60000"})))
    report_result(run, "prod", made, None, "", present=read_present(made, {"a": lower}))
    assert "flush.ms" in waits(run, made)


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ("rejected", ("bob rejected its apply on prod", "was not started, or was cancelled")),
        ("waiting", ("its apply on prod still waits for an approval", "was not started")),
    ],
)
def test_what_the_approvers_of_the_environment_keep_back_waits(
    held: str, said: tuple[str, str], host: CodeHost, run: Run, request_12: Talk
) -> None:
    merge(request_12)
    request_12.holds_back["staging"] = held
    assert judge(run, BEFORE).topics == ("a",)
    request_12.holds_back["prod"] = held
    why = waits(run, BEFORE)
    assert why.startswith("request 12 is approved, but ")
    assert said[not isinstance(host, GitHubHost)] in why


@pytest.mark.parametrize("host", [GitLabHost], indirect=True)
@pytest.mark.parametrize("held", ["waiting for a stage", "rejected deployment", "no pipeline"])
def test_a_job_that_was_never_started_keeps_its_changes_back(
    held: str, run: Run, request_12: Talk
) -> None:
    """Its stage has not begun, its deployment was rejected, or the merge said [skip ci]."""
    merge(request_12)
    request_12.holds_back["prod"] = held
    assert waits(run, BEFORE) == (
        "request 12 is approved, but its job apply prod was not started, or was cancelled"
    )


@pytest.mark.usefixtures("request_12")
@pytest.mark.parametrize("host", [GitHubHost], indirect=True)
def test_an_environment_with_reviewers_needs_one_who_let_the_apply_begin(
    host: CodeHost, run: Run, request_12: Talk
) -> None:
    """Its run may have been cancelled, or never have begun."""
    assert isinstance(host, GitHubHost)
    merge(request_12)
    host.guarded = {"staging"}
    assert judge(run, BEFORE).topics == ("a",)
    host.guarded = {"prod"}
    why = "request 12 is approved, but no reviewer of the environment prod let its apply begin"
    assert waits(run, BEFORE) == why
    request_12.holds_back["prod"] = "approved"
    assert judge(run, BEFORE).topics == ("a",)


STAGED = replace(BEFORE, stages=(("staging",), ("prod",)))


def test_a_stage_does_not_wait_for_one_on_which_the_request_changes_nothing(
    run: Run, request_12: Talk
) -> None:
    merge(request_12)
    assert judge(run, STAGED).topics == ("a",)


def test_a_stage_waits_for_those_before_it(run: Run, request_12: Talk) -> None:
    on_staging = replace(BEFORE, cluster="staging")
    report_plan(run, on_staging)
    merge(request_12)
    why = "request 12 is not done on staging, which comes first"
    assert waits(run, STAGED) == why
    failed = end_run(Applied((Outcome("a", OutcomeKind.FAILED, "no rights"),)))
    left = read_present(BEFORE, {"a": A})
    report_result(run, "staging", on_staging, failed, "", present=left)
    assert waits(run, STAGED) == why
    done = end_run(Applied((Outcome("a", OutcomeKind.DONE),)))
    report_result(run, "staging", on_staging, done, "", present=read_present(DONE, {"a": A}))
    assert judge(run, STAGED).topics == ("a",)


def test_another_start_than_the_approved_one_waits(run: Run, request_12: Talk) -> None:
    """As by day, where such a plan has another fingerprint."""
    merge(request_12)
    held = {"flush.ms": "60000"}
    eight = plan([A], cluster(topic("1 2 3 1 2 3 1 2", "a", config=held)))
    assert waits(run, eight) == "the approved plan of request 12 does not show this: partitions"


def test_a_spec_that_no_single_request_brought_waits(host: CodeHost, run: Run) -> None:
    assert waits(run, BEFORE, {}) == "it is not known which commit brought its spec"
    other = "e" * 40
    assert waits(run, BEFORE, {"a": other}) == ("its spec came with eeeeeeeeeeee, from 0 requests")


def test_later_steps_of_a_gradual_change_belong_to_the_approval_of_the_first(
    host: CodeHost, run: Run
) -> None:
    lower = spec(
        "a",
        gradual=2,
        config={"retention.ms": str(DAY)},
        acknowledge=frozenset({"data-loss"}),
    )

    def has(days: int) -> Plan:
        return plan([lower], cluster(topic("1", "a", config={"retention.ms": str(days * DAY)})))

    request = host.open_request(12, HEAD)
    report_plan(run, has(7))
    merge(request)
    later = has(4)
    assert judge_targets(run.host, later, KEPT, list_gradual_steps(later, [lower])).topics == ("a",)
    assert "retention.ms" in waits(run, later)


@pytest.mark.parametrize("host", [GitHubHost], indirect=True)
def test_a_host_that_does_not_answer_accepts_nothing(
    host: CodeHost, run: Run, request_12: Talk
) -> None:
    merge(request_12)
    host.faults += [Fault("GET", Answer(403, {"message": "Forbidden"}))]
    with pytest.raises(CodeHostError, match="code-host-access"):
        judge(run, BEFORE)


def test_accepted_topics_survive_their_file() -> None:
    accepted = Accepted(cluster="prod", topics=("a",), waiting={"b": "nobody"})
    assert decode_accepted(encode_accepted(accepted)) == accepted


def test_the_issue_says_what_waits_and_how_to_approve_it(host: CodeHost, run: Run) -> None:
    waiting = Accepted(cluster="prod", waiting={"a": "nobody *reviewed* it"})
    report_drift(run, BEFORE, waiting)
    (issue,) = host.issues.values()
    assert "Nightly runs do not apply these changes" in issue.body
    assert "| `a` | nobody &#42;reviewed&#42; it |" in issue.body
    report_drift(run, BEFORE)
    assert "Nightly runs" not in issue.body
