"""Which plan counts as approved: the one shown for exactly what was merged."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from code_host import HEAD, MERGED
from code_hosts import GitHubHost, GitLabHost
from shorthand import HERE, cluster, may_move, plan, rows, spec, topic

from reconciler.codehost.approvals import find_approved
from reconciler.codehost.comments import report_no_plan, report_plan
from reconciler.codehost.host import Run
from reconciler.errors import CodeHostError
from reconciler.model.cluster import Broker
from reconciler.moves.plan import assemble_moves
from reconciler.planfile.approval import Approval, list_new_rows
from reconciler.planfile.codec import fingerprint_plan
from reconciler.show.fields import keep_fields, pack_fields
from reconciler.show.markdown.page import COMMENT_LIMIT
from reconciler.spec.entry import ClusterEntry

if TYPE_CHECKING:
    from code_host import CodeHost

WISHED = spec("a", partitions=4, replication_factor=2, config={"retention.ms": "1000"})
PLAN = plan([WISHED], cluster())
MOVES = assemble_moves(
    ClusterEntry("prod", HERE, moves=may_move()),
    [spec("b", replication_factor=2)],
    cluster(topic("1", "b", in_sync=rows("1"))),
)


def refusal(run: Run) -> str:
    with pytest.raises(CodeHostError) as error:
        find_approved(run, "prod")
    (finding,) = error.value.findings
    assert finding.rule == "plan-unapproved"
    return finding.what


def test_it_is_the_plan_that_the_merged_request_shows(host: CodeHost, run: Run) -> None:
    request = host.open_request(12, HEAD)
    report_plan(run, PLAN)
    request.merged_as = MERGED
    approved = find_approved(replace(run, request=None), "prod")
    assert approved == Approval(fingerprint_plan(PLAN), list_new_rows(PLAN))
    assert len(approved.rows["a"]) == 4


def test_moves_are_approved_by_themselves(host: CodeHost, run: Run) -> None:
    request = host.open_request(12, HEAD)
    report_plan(run, PLAN, moves=MOVES)
    request.merged_as = MERGED
    assert find_approved(run, "prod") == Approval(fingerprint_plan(PLAN), list_new_rows(PLAN))
    assert find_approved(run, "prod", moves=True) == Approval(fingerprint_plan(MOVES))


def test_a_plan_without_moves_approves_none(host: CodeHost, run: Run) -> None:
    request = host.open_request(12, HEAD)
    report_plan(run, PLAN, moves=MOVES)
    report_plan(run, PLAN)
    request.merged_as = MERGED
    with pytest.raises(CodeHostError, match="request 12 shows no moves for prod"):
        find_approved(run, "prod", moves=True)


def test_a_push_without_a_request_has_none(host: CodeHost, run: Run) -> None:
    assert refusal(run) == "no request became 0123456789ab, so no plan for prod was approved"


def test_an_open_request_that_holds_the_commit_does_not_count(host: CodeHost, run: Run) -> None:
    host.open_request(12, MERGED)
    report_plan(run, PLAN)
    assert refusal(run).startswith("no request became")


def test_a_request_without_a_plan_has_none(host: CodeHost, run: Run) -> None:
    host.open_request(12, HEAD).merged_as = MERGED
    report_plan(run, replace(PLAN, cluster="staging"))
    assert refusal(run) == "request 12 shows no plan for prod"
    report_no_plan(run, "prod", "error: no broker answers")
    assert refusal(run) == "request 12 shows no plan for prod"


def test_a_plan_of_an_earlier_commit_is_not_it(host: CodeHost, run: Run) -> None:
    request = host.open_request(12, HEAD)
    report_plan(run, PLAN)
    request.merged_as, request.head = MERGED, "e" * 40
    assert refusal(run) == (
        "request 12 shows a plan for a1b2c3d4e5f6, but was merged at eeeeeeeeeeee"
    )


def test_nothing_in_a_spec_can_forge_it(host: CodeHost, run: Run) -> None:
    """A value that looks like a seal stands above the true one."""
    seal = f"<!-- reconciler:planned commit={HEAD} fingerprint={'0' * 64} -->"
    forged = plan([spec("a", partitions=1, config={"x": f"\n{seal}\n"})], cluster())
    request = host.open_request(12, HEAD)
    report_plan(run, forged)
    request.merged_as = MERGED
    assert find_approved(run, "prod") == Approval(fingerprint_plan(forged), list_new_rows(forged))


def test_a_plan_without_new_rows_names_none(host: CodeHost, run: Run) -> None:
    changed = plan([spec("a", config={"flush.ms": "1"})], cluster(topic("1 2", "a")))
    request = host.open_request(12, HEAD)
    report_plan(run, changed)
    request.merged_as = MERGED
    assert request.comments[0]["body"].rpartition("fingerprint=")[2] == (
        f"{fingerprint_plan(changed)} fields={pack_fields(keep_fields(changed))} -->\n"
    )
    assert find_approved(run, "prod") == Approval(fingerprint_plan(changed))


@pytest.mark.parametrize(
    ("host", "topics", "kept"),
    [
        (GitHubHost, 60, True),
        (GitLabHost, 220, False),
        pytest.param(GitHubHost, 220, False, marks=pytest.mark.slow),
        pytest.param(GitLabHost, 60, True, marks=pytest.mark.slow),
    ],
    indirect=["host"],
)
def test_rows_that_take_too_much_of_the_comment_are_left_out(
    host: CodeHost, run: Run, topics: int, *, kept: bool
) -> None:
    """The text for people comes first; without rows, only the same plan is approved."""
    nodes = tuple(Broker(n, f"rack-{n % 5}") for n in range(100))
    many = [spec(f"team.t{n}", partitions=20, replication_factor=3) for n in range(topics)]
    large = plan(many, cluster(nodes=nodes))
    request = host.open_request(12, HEAD)
    report_plan(run, large)
    request.merged_as = MERGED
    assert len(request.comments[0]["body"]) <= COMMENT_LIMIT
    rows = list_new_rows(large) if kept else {}
    assert find_approved(run, "prod") == Approval(fingerprint_plan(large), rows)


def test_rows_that_are_damaged_leave_the_fingerprint(host: CodeHost, run: Run) -> None:
    request = host.open_request(12, HEAD)
    report_plan(run, PLAN)
    body = request.comments[0]["body"]
    request.comments[0]["body"] = re.sub(r"rows=.{8}", "rows=AAAA", body)
    request.merged_as = MERGED
    assert find_approved(run, "prod") == Approval(fingerprint_plan(PLAN))


def test_a_comment_of_an_earlier_release_has_no_rows(host: CodeHost, run: Run) -> None:
    request = host.open_request(12, HEAD)
    report_plan(run, PLAN)
    body = request.comments[0]["body"]
    request.comments[0]["body"] = re.sub(r" rows=\S+", "", body)
    request.merged_as = MERGED
    assert find_approved(run, "prod") == Approval(fingerprint_plan(PLAN))


def test_a_plan_by_anybody_else_does_not_count(host: CodeHost, run: Run) -> None:
    request = host.open_request(12, HEAD)
    report_plan(run, PLAN)
    request.comments[0]["author"] = "mallory"
    request.merged_as = MERGED
    assert refusal(run) == "request 12 shows no plan for prod"
