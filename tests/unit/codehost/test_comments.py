"""One comment and one issue a cluster: created once, replaced later, on both hosts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from code_host import HEAD, Answer, CodeHost, Fault
from code_hosts import GitHubHost, GitLabHost
from shorthand import HERE, cluster, may_move, plan, rows, spec, topic

from reconciler.codehost.comments import report_drift, report_no_drift, report_no_plan, report_plan
from reconciler.codehost.host import Run
from reconciler.errors import CodeHostError, Finding, Severity, UsageError
from reconciler.model.plan import Plan
from reconciler.moves.plan import assemble_moves
from reconciler.planfile.codec import fingerprint_plan
from reconciler.show.markdown.page import COMMENT_LIMIT
from reconciler.spec.entry import ClusterEntry

LIVE = topic("1 2 3", "a")
EMPTY = plan([spec("a", partitions=3)], cluster(LIVE))
GROWN = plan([spec("a", partitions=4)], cluster(LIVE))
REFUSED = plan([spec("a", partitions=1)], cluster(LIVE))
ONE_HOST = [GitHubHost, pytest.param(GitLabHost, marks=pytest.mark.slow)]
"""For what costs much: plans of thousands of topics are cut to fit before a host sees them."""


def plan_moves(topics: int) -> Plan:
    """Return the moves of topics that are to have a second replica."""
    names = [f"{n:05}.to.move" for n in range(topics)]
    return assemble_moves(
        ClusterEntry("prod", HERE, moves=may_move()),
        [spec(name, replication_factor=2) for name in names],
        cluster(*(topic("1", name, in_sync=rows("1")) for name in names)),
    )


def texts(host: CodeHost, number: int = 12) -> list[str]:
    return [note["body"] for note in host.talks[number].comments]


def test_a_plan_is_one_comment_however_often_it_is_made(host: CodeHost, run: Run) -> None:
    host.open_request(12, "")
    assert report_plan(run, GROWN) == "comment on request 12 written"
    assert report_plan(run, REFUSED).endswith("updated")
    (text,) = texts(host)
    assert text.startswith("<!-- reconciler:plan cluster=prod -->\n### Kafka plan for `prod`: 1 re")
    assert fingerprint_plan(REFUSED) in text


def test_moves_are_shown_below_the_changes(host: CodeHost, run: Run) -> None:
    host.open_request(12, "")
    moves = plan_moves(1)
    report_plan(run, EMPTY, moves)
    (text,) = texts(host)
    assert text.count("<!-- reconciler:plan cluster=prod -->") == 1
    assert text.index(f"`{fingerprint_plan(EMPTY)}`") < text.index("`00000.to.move`")
    assert text.index("`00000.to.move`") < text.index(f"`{fingerprint_plan(moves)}`")
    assert "reconciler apply moves.json" in text


def test_a_plan_that_moves_nothing_is_not_shown(host: CodeHost, run: Run) -> None:
    host.open_request(12, "")
    said = report_plan(run, EMPTY, moves=plan_moves(0))
    assert said == "no changes, so request 12 gets no comment"
    report_plan(run, GROWN)
    (alone,) = texts(host)
    report_plan(run, GROWN, moves=plan_moves(0))
    assert texts(host) == [alone]


@pytest.mark.parametrize("host", ONE_HOST, indirect=True)
def test_a_large_plan_of_moves_leaves_room_for_the_changes(host: CodeHost, run: Run) -> None:
    host.open_request(12, "")
    names = [f"{n:05}.to.grow" for n in range(1200)]
    live = cluster(*(topic("1 2 3", name) for name in names))
    changes = plan([spec(name, partitions=4) for name in names], live)
    report_plan(run, changes, plan_moves(300))
    (text,) = texts(host)
    assert len(text.encode()) <= COMMENT_LIMIT
    assert text.count("**Left out to fit:**") == 2
    assert "`00000.to.grow`" in text
    assert "`00000.to.move`" in text


def test_each_cluster_has_its_own_comment(host: CodeHost, run: Run) -> None:
    host.open_request(12, "")
    report_plan(run, GROWN)
    report_plan(run, replace(GROWN, cluster="prod-2"))
    report_plan(run, GROWN)
    assert [text.partition(" -->")[0] for text in texts(host)] == [
        "<!-- reconciler:plan cluster=prod",
        "<!-- reconciler:plan cluster=prod-2",
    ]


def test_what_others_wrote_is_never_touched(host: CodeHost, run: Run) -> None:
    """Neither a copy of ours by someone else, nor ours about something else."""
    copy = "<!-- reconciler:plan cluster=prod -->\nlooks like it"
    host.open_request(12, "", ("mallory", copy), (host.me, f"quoting:\n{copy}"))
    report_plan(run, GROWN)
    report_plan(run, REFUSED)
    assert texts(host)[:2] == [copy, f"quoting:\n{copy}"]
    assert len(texts(host)) == 3


def test_a_comment_is_found_on_whatever_page(host: CodeHost, run: Run) -> None:
    chatter = [("someone", f"thought {number}") for number in range(250)]
    own = (host.me, "<!-- reconciler:plan cluster=prod -->\nold")
    host.open_request(12, "", *chatter[:130], own, *chatter[130:])
    report_plan(run, GROWN)
    assert len(texts(host)) == 251
    assert "old" not in texts(host)[130]


def test_a_plan_without_changes_makes_no_noise_but_corrects(host: CodeHost, run: Run) -> None:
    host.open_request(12, "")
    assert report_plan(run, EMPTY) == "no changes, so request 12 gets no comment"
    assert host.writes() == []
    report_plan(run, GROWN)
    report_plan(run, EMPTY)
    assert "### Kafka plan for `prod`: no changes" in texts(host)[0]


def test_a_plan_that_cannot_be_made_replaces_the_one_before(host: CodeHost, run: Run) -> None:
    host.open_request(12, "")
    report_plan(run, GROWN)
    report_no_plan(run, "prod", "error: ```no``` broker answers [connect-refused]\n")
    (text,) = texts(host)
    assert "could not be made\n\n````text\nerror: ```no``` broker answers" in text
    assert fingerprint_plan(GROWN) not in text


def test_a_long_reason_is_told_as_far_as_there_is_room(host: CodeHost, run: Run) -> None:
    host.open_request(12, "")
    report_no_plan(run, "prod", "\n".join(f"finding {number}" for number in range(5_000)))
    (text,) = texts(host)
    assert len(text) < 21_000
    assert "more lines in the log of the run\n```" in text


def test_a_comment_needs_a_request(host: CodeHost, run: Run) -> None:
    with pytest.raises(UsageError, match="no pull request"):
        report_plan(replace(run, request=None), GROWN)


def test_drift_is_one_issue_that_closes_itself(host: CodeHost, run: Run) -> None:
    assert report_drift(run, EMPTY) == "prod is as specified"
    report_drift(run, GROWN)
    report_drift(run, REFUSED)
    report_no_drift(run, "prod", "error: no broker answers")
    (issue,) = host.issues.values()
    assert issue.title == "Kafka drift on prod: could not be checked"
    report_drift(run, REFUSED)
    assert issue.title == "Kafka drift on prod: 1 refused"
    assert "cannot remove partitions" in issue.body
    assert issue.open
    report_drift(run, EMPTY)
    assert not issue.open
    assert issue.comments[-1]["body"].startswith("`prod` is as specified at 0123456789ab again")
    report_drift(run, GROWN)
    assert [talk.open for talk in host.issues.values()] == [False, True]


def test_issues_and_requests_of_others_are_left_alone(host: CodeHost, run: Run) -> None:
    mark = "<!-- reconciler:drift cluster=prod -->\n"
    host.open_issue("a copy", mark, "mallory")
    host.open_request(2, "").body = mark
    host.talks[2].author = host.me
    report_drift(run, GROWN)
    assert [talk.title for talk in host.issues.values()] == [
        "a copy",
        "Kafka drift on prod: 1 to expand",
    ]


@pytest.mark.parametrize("done", [True, False])
@pytest.mark.parametrize("answer", [None, Answer(502, {"message": "Bad Gateway"})])
def test_a_lost_answer_never_makes_a_second_comment(
    host: CodeHost, run: Run, answer: Answer | None, done: bool
) -> None:
    host.open_request(12, "")
    host.faults.append(Fault("POST", answer, done))
    report_plan(run, GROWN)
    assert len(texts(host)) == 1


def test_a_host_that_never_answers_is_given_up_with_its_words(host: CodeHost, run: Run) -> None:
    host.open_request(12, "")
    host.faults += [Fault("POST", Answer(500, {"message": "Server Error"}))] * 3
    with pytest.raises(CodeHostError) as error:
        report_plan(run, GROWN)
    way = "/merge_requests/12/notes" if isinstance(host, GitLabHost) else "/issues/12/comments"
    (finding,) = error.value.findings
    assert finding.rule == "code-host-answer"
    assert way in finding.what
    assert "500 Internal Server Error: Server Error" in finding.what


@pytest.mark.parametrize("host", ONE_HOST, indirect=True)
def test_the_largest_plan_fits_with_its_seal(host: CodeHost, run: Run) -> None:
    host.open_request(12, "")
    many = [spec(f"shop.topic-{number:04}-{'x' * 60}", partitions=1) for number in range(3_000)]
    report_plan(run, plan(many, cluster()))  # the host refuses a longer one
    assert "Left out to fit" in texts(host)[0]
    report_drift(run, plan(many, cluster()))
    assert "Left out to fit" in next(iter(host.issues.values())).body


@pytest.mark.parametrize(
    "means",
    [
        {"notes": (Finding("topics-left", "unmanaged since main: a", severity=Severity.NOTE),)},
        {"alerts": (Finding("owner-changed", "the owner changes", severity=Severity.WARNING),)},
        {"agreed": ("a",)},
    ],
)
def test_a_request_without_changes_that_means_something_is_shown(
    means: dict[str, Any], host: CodeHost, run: Run
) -> None:
    """It removes specs, takes a topic to another owner, or brings specs of topics as they are."""
    request = host.open_request(12, HEAD)
    empty = plan([], cluster(topic("1", "a")))
    assert report_plan(run, empty) == "no changes, so request 12 gets no comment"
    assert report_plan(run, replace(empty, **means)) == "comment on request 12 written"
    (note,) = request.comments
    for finding in (*means.get("notes", ()), *means.get("alerts", ())):
        assert finding.what.partition(" ")[2] in note["body"]


def test_a_looser_guard_is_shown_without_any_change_and_once(host: CodeHost, run: Run) -> None:
    host.open_request(12, "")
    what = "the request loosens guards.max_deletes of prod: 0 → 9"
    alert = Finding("guard-loosened", what, "review it", HERE, Severity.WARNING)
    loose = replace(EMPTY, alerts=(alert,))
    report_plan(run, loose)
    (text,) = texts(host)
    assert text.index("[!CAUTION]") < text.index("loosens guards.max_deletes")
    report_plan(run, loose, moves=replace(plan_moves(1), alerts=(alert,)))
    (text,) = texts(host)
    assert text.count("loosens guards.max_deletes") == 1
    assert "`00000.to.move`" in text
