"""The request that asks for what a cluster needs: its life from night to night, on both hosts."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from code_host import MERGED, CodeHost, HostBranch
from code_hosts import GitHubHost
from shorthand import HERE, cluster, may_move, plan, rows, spec, topic

from reconciler.adopt.clusters import ask_of_cluster
from reconciler.codehost.approvals import find_approved, find_shown_moves
from reconciler.codehost.comments import report_plan
from reconciler.codehost.host import PullRequest, Run
from reconciler.codehost.requests import ClustersFile, keep_request, name_branch
from reconciler.errors import CodeHostError, UsageError
from reconciler.model.moves import LoadAim, LoadKind
from reconciler.model.plan import Plan
from reconciler.moves.needs import Need, NeedKind
from reconciler.moves.plan import assemble_moves
from reconciler.moves.rebalance import plan_rebalance
from reconciler.planfile.approval import Approval, list_moved_rows
from reconciler.planfile.codec import fingerprint_plan
from reconciler.spec.entry import ClusterEntry

TEXT = """\
version: 1
clusters:
  prod:  # the big one
    moves: {allow: [rebalance], rate: 30MiB}
"""
BRANCH = name_branch("prod")
JOINED = Need("prod", "2026-12-01", NeedKind.JOINED, "Brokers 4, 5 hold no replica of any topic.",
              (4, 5), costs="6 replicas copied, 5.6 GiB, 4 preferred leaders changed",
              fingerprint="a" * 64)  # fmt: skip
BAND = replace(JOINED, kind=NeedKind.BAND, why="Broker 1 left the band.", brokers=())
INTERNAL = replace(JOINED, kind=NeedKind.INTERNAL, brokers=(), factor=3)
NOTHING = replace(JOINED, kind=NeedKind.NOTHING, why="every broker is inside its band")
UNKNOWN = replace(NOTHING, kind=NeedKind.UNKNOWN, why="replicas are being moved")


def night(run: Run, need: Need, text: str = TEXT, commit: str = MERGED) -> list[str]:
    """Run what a night does, on a commit of main."""
    amend = partial(ask_of_cluster, text, need.cluster)
    file = ClustersFile("topics/clusters.yaml", text, ("@alice", "@acme/platform"), amend)
    return list(keep_request(replace(run, branch="main", commit=commit), need, file))


def only(host: CodeHost) -> int:
    (number,) = host.find_from(BRANCH)
    return number


def test_brokers_that_joined_open_a_request_at_once_that_changes_one_line(
    host: CodeHost, run: Run
) -> None:
    (said,) = night(run, JOINED)
    assert said == "request 1 opened: Rebalance prod to brokers 4, 5"
    branch, talk = host.branches[BRANCH], host.talks[only(host)]
    assert (branch.path, branch.base) == ("topics/clusters.yaml", MERGED)
    line = "    rebalance: {brokers: [4, 5], until: 2026-12-15}\n"
    assert branch.text == TEXT + line
    assert "Brokers 4, 5 hold no replica of any topic." in talk.body
    assert "6 replicas copied, 5.6 GiB" in talk.body
    assert "cc @alice @acme/platform" in talk.body
    teams = ("platform",) if isinstance(host, GitHubHost) else ()
    assert talk.reviewers == ("alice", *teams)


def test_a_night_that_finds_the_same_writes_nothing(host: CodeHost, run: Run) -> None:
    night(run, JOINED)
    host.asked.clear()
    assert night(run, replace(JOINED, today="2026-12-02")) == ["request 1 is up to date"]
    assert host.writes() == []
    # A merge that leaves clusters.yaml as it is needs no new commit, which would cost a review.
    assert night(run, replace(JOINED, today="2026-12-03"), commit="c" * 40)[0].endswith("date")
    assert host.writes() == []


def test_another_plan_or_another_file_below_rebuilds_the_branch_on_main(
    host: CodeHost, run: Run
) -> None:
    night(run, JOINED)
    first = host.branches[BRANCH].commit
    (said,) = night(run, replace(JOINED, fingerprint="b" * 64, costs="9 replicas"), commit="c" * 40)
    assert said == "request 1 updated"
    second = host.branches[BRANCH]
    assert (second.base, second.commit == first) == ("c" * 40, False)
    assert host.talks[1].head == second.commit  # by which hosts dismiss what was approved before
    assert "9 replicas" in host.talks[1].body
    night(run, replace(JOINED, fingerprint="b" * 64), f"# new\n{TEXT}", "d" * 40)
    assert host.branches[BRANCH].text.startswith("# new\n")
    assert len(host.find_from(BRANCH)) == 1


def test_a_band_is_left_for_two_nights_before_a_request_opens(host: CodeHost, run: Run) -> None:
    (said,) = night(run, BAND)
    assert said == "Broker 1 left the band. A request opens if this is still so the next night."
    assert host.find_from(BRANCH) == []
    night(run, BAND)  # a job that is repeated is no other night
    assert host.find_from(BRANCH) == []
    (said,) = night(run, replace(BAND, today="2026-12-02", fingerprint="b" * 64))
    assert said == "request 1 opened: Rebalance prod"
    assert "rebalance: {until: 2026-12-15}\n" in host.branches[BRANCH].text


def test_a_band_that_holds_in_between_is_forgotten(host: CodeHost, run: Run) -> None:
    night(run, BAND)
    night(run, replace(NOTHING, today="2026-12-02"))
    assert host.branches == {}
    night(run, replace(BAND, today="2026-12-03"))
    assert host.find_from(BRANCH) == []


def test_what_is_not_needed_any_more_closes_with_a_reason(host: CodeHost, run: Run) -> None:
    night(run, JOINED)
    said = night(run, NOTHING)
    assert said[0] == "request 1 closed: every broker is inside its band"
    talk = host.talks[1]
    assert not talk.open
    assert "every broker is inside its band" in talk.comments[-1]["body"]
    assert host.branches == {}
    # Once brokers join again, another one opens.
    assert night(run, JOINED)[0].startswith("request 2 opened")


def test_what_cannot_be_judged_leaves_everything_as_it_is(host: CodeHost, run: Run) -> None:
    night(run, JOINED)
    host.asked.clear()
    (said,) = night(run, UNKNOWN)
    assert said == "nothing is asked of prod now: replicas are being moved"
    assert host.writes() == []


def test_another_need_is_asked_for_in_the_same_request(host: CodeHost, run: Run) -> None:
    night(run, JOINED)
    night(run, replace(JOINED, brokers=(4, 5, 6)))
    assert host.talks[1].title == "Rebalance prod to brokers 4, 5, 6"
    night(run, INTERNAL)
    assert host.talks[1].title == "Raise the internal topics of prod to 3 replicas"
    assert host.branches[BRANCH].text == f"{TEXT}    internal_replication_factor: 3\n"
    assert len(host.find_from(BRANCH)) == 1


def test_what_a_person_pushed_or_closed_stays(host: CodeHost, run: Run) -> None:
    night(run, JOINED)
    ours = host.branches[BRANCH]
    host.put_branch(BRANCH, HostBranch("e" * 40, "Only broker 4, for now"))
    for need in (NOTHING, JOINED, replace(JOINED, fingerprint="b" * 64)):
        assert night(run, need) == [f"somebody pushed to {BRANCH}, so it stays as it is"]
    assert host.talks[1].open
    host.put_branch(BRANCH, ours)
    host.talks[1].open = False
    (said,) = night(run, replace(JOINED, today="2026-12-02", fingerprint="b" * 64))
    assert said.startswith("request 1 was closed by somebody")
    # Other brokers are another question.
    assert night(run, replace(JOINED, brokers=(9,)))[0].startswith("request 2 opened")


def test_its_date_is_moved_in_time(host: CodeHost, run: Run) -> None:
    night(run, JOINED)
    night(run, replace(JOINED, today="2026-12-08"))
    assert "until: 2026-12-15" in host.branches[BRANCH].text
    night(run, replace(JOINED, today="2026-12-09"))
    assert "until: 2026-12-23" in host.branches[BRANCH].text


def test_after_the_merge_the_branch_goes_and_another_need_has_another_request(
    host: CodeHost, run: Run
) -> None:
    night(run, JOINED)
    host.talks[1].merged_as = "f" * 40
    asked = replace(NOTHING, why="clusters.yaml already asks for a rebalance until 2026-12-15")
    night(run, asked)
    assert host.branches == {}
    night(run, replace(BAND, today="2026-12-20"))
    (said,) = night(run, replace(BAND, today="2026-12-21"))
    assert said.startswith("request 2 opened")


def test_reviewers_that_the_host_does_not_know_do_not_stop_it(host: CodeHost, run: Run) -> None:
    host.writers.clear()
    said = night(run, JOINED)
    assert said[0].startswith("request 1 opened")
    assert host.talks[1].reviewers in ((), ("platform",))


@pytest.mark.parametrize("text", ["{version: 1, clusters: {prod: {}}}\n"])
def test_a_file_that_cannot_be_amended_is_an_error(host: CodeHost, run: Run, text: str) -> None:
    with pytest.raises(UsageError, match=r"clusters.yaml cannot be amended"):
        night(run, JOINED, text)
    assert host.writes() == []


def test_an_approval_of_another_plan_is_void(host: CodeHost, run: Run) -> None:
    """Also where the host does not dismiss it, the merge knows what was reviewed."""
    night(run, JOINED)

    def plan_it(factor: int) -> None:
        request = PullRequest(1, host.talks[1].head)
        report_plan(replace(run, request=request), EMPTY, moves=move(factor))

    plan_it(2)
    host.talks[1].review("alice")
    night(run, replace(JOINED, fingerprint="b" * 64), commit="c" * 40)
    plan_it(3)
    assert "**This plan needs a new review.**" in host.talks[1].comments[-1]["body"]
    host.talks[1].merged_as = MERGED
    with pytest.raises(CodeHostError, match="plan-unreviewed"):
        find_approved(run, "prod", moves=True)
    host.talks[1]._merged_as = host.talks[1].merged_at = None
    host.talks[1].review("alice")
    host.talks[1].merged_as = MERGED
    assert find_approved(run, "prod", moves=True).fingerprint == fingerprint_plan(move(3))


def test_the_rows_that_the_request_shows_are_known_at_night_and_after_the_merge(
    host: CodeHost, run: Run
) -> None:
    assert find_shown_moves(run.host, BRANCH, "prod") is None
    night(run, JOINED)
    assert find_shown_moves(run.host, BRANCH, "prod") is None
    request = PullRequest(1, host.talks[1].head)
    made = level()
    report_plan(replace(run, request=request), EMPTY, moves=made)
    shown = find_shown_moves(run.host, BRANCH, "prod")
    assert shown == Approval(fingerprint_plan(made), moved=list_moved_rows(made))
    assert shown.moved
    assert find_shown_moves(run.host, BRANCH, "other") is None
    host.talks[1].merged_as = MERGED
    assert find_approved(run, "prod", moves=True) == shown
    assert find_shown_moves(run.host, BRANCH, "prod") is None


def test_a_plan_that_holds_leaves_the_request_as_it_is(host: CodeHost, run: Run) -> None:
    """The plan job made its plan later than the night, so its fingerprint may be another one."""
    night(run, JOINED)
    commit = host.branches[BRANCH].commit
    holds = replace(JOINED, today="2026-12-02", fingerprint="b" * 64, shown=True)
    assert night(run, holds) == ["request 1 is up to date"]
    assert host.branches[BRANCH].commit == commit
    # What is asked for, and the file below, count as before.
    assert night(run, holds, f"# new\n{TEXT}") == ["request 1 updated"]
    assert night(run, replace(holds, brokers=(4,)))[-1] == "request 1 updated"


EMPTY = plan([spec("a", partitions=1)], cluster(topic("1", "a")))


def level() -> Plan:
    """Return a plan of a rebalance."""
    sized = topic("1,2 1,2 1,2 1,3", "a", size_bytes=(9_000,) * 4)
    entry = ClusterEntry("prod", HERE, moves=may_move())
    return plan_rebalance(entry, (), cluster(sized), aim=LoadAim((LoadKind.DISK,)))


def move(factor: int) -> Plan:
    return assemble_moves(
        ClusterEntry("prod", HERE, moves=may_move()),
        [spec("b", replication_factor=factor)],
        cluster(topic("1", "b", in_sync=rows("1"))),
    )
