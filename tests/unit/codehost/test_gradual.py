"""What a merged request shows of its gradual changes, which nightly runs apply step by step."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from code_host import HEAD, MERGED, Answer, Fault
from code_hosts import GitHubHost
from shorthand import cluster, plan, spec, topic

from reconciler.codehost.comments import report_plan
from reconciler.codehost.gradual import report_gradual
from reconciler.codehost.host import Run
from reconciler.errors import ClusterError, CodeHostError, Finding
from reconciler.model.cluster import TopicSpec
from reconciler.model.outcomes import Outcome, OutcomeKind
from reconciler.model.plan import Plan
from reconciler.run.ending import Applied, Ending, end_run
from reconciler.show.gradual import list_gradual_steps
from reconciler.units import DAY

if TYPE_CHECKING:
    from code_host import CodeHost, Talk

OTHER = "89abcdef0123456789abcdef0123456789abcdef"
MARK = "<!-- reconciler:gradual cluster=prod -->"
HEADS = ["| Topic | Config | Step | Change | Result | Left |", "|:--|:--|:--|:--|:--|:--|"]
FROM = "Each nightly run applies one step. From [this run](https://ci.shop.example/runs/7)"
ONE_HOST = [GitHubHost]
"""What is the same on both hosts is shown on one."""


def lower(name: str, days: int = 1, **more: frozenset[str]) -> TopicSpec:
    accepted = {"acknowledge": frozenset({"data-loss"}), **more}
    return spec(name, gradual=2, config={"retention.ms": str(days * DAY)}, **accepted)


SPECS = (lower("a"), lower("b", 3))


def make(*specs: TopicSpec, **live: int) -> Plan:
    """Plan topics that have a retention of these days."""
    state = [topic(name=n, config={"retention.ms": str(days * DAY)}) for n, days in live.items()]
    return plan(specs, cluster(*state))


def report(run: Run, made: Plan, ending: Ending | None = None, **origins: str) -> list[str]:
    """Report a nightly run, by default one that is done; `a` and `b` came with one commit."""
    ending = ending or end_run(
        Applied(tuple(Outcome(t.name, OutcomeKind.DONE) for t in made.topics))
    )
    return _report(run, made, ending, **origins)


def _report(run: Run, made: Plan, ending: Ending | None, **origins: str) -> list[str]:
    steps = tuple(list_gradual_steps(made, SPECS))
    return report_gradual(run, made, steps, origins or {"a": MERGED, "b": MERGED}, ending)


def read(request: Talk) -> list[str]:
    """Return the paragraphs of the newest comment, without its hidden last line."""
    *shown, hidden = request.comments[-1]["body"].removesuffix("\n").split("\n\n")
    assert hidden.startswith("<!-- reconciler:steps rows=")
    return shown


@pytest.fixture
def request_12(host: CodeHost, run: Run) -> Talk:
    """A merged request that lowers two topics; its merge applied the first step of both."""
    request = host.open_request(12, HEAD)
    report_plan(run, make(*SPECS, a=7, b=7))
    request.merged_as = MERGED
    return request


def test_every_step_is_shown_in_one_comment_until_the_target_is_reached(
    run: Run, request_12: Talk
) -> None:
    made = make(*SPECS, a=4, b=4)
    assert report(run, made) == ["comment on request 12 written"]
    title, table, source = read(request_12)
    assert title == f"{MARK}\n### Gradual changes on `prod`: in progress"
    assert table.splitlines() == [
        *HEADS,
        "| `a` | `retention.ms` | 2 of 3 | 4d → 2d | done | 1d |",
        "| `b` | `retention.ms` | 2 of 2 | 4d → 3d | done | reached |",
    ]
    assert source == FROM
    note = request_12.comments[-1]["id"]
    assert report(run, make(*SPECS, a=2, b=3)) == [f"comment {note} on request 12 updated"]
    title, table, _ = read(request_12)
    assert title == f"{MARK}\n### Gradual changes on `prod`: reached"
    assert table.splitlines()[2:] == [
        "| `a` | `retention.ms` | 3 of 3 | 2d → 1d | done | reached |",
        "| `b` | `retention.ms` | 2 of 2 | 4d → 3d | done | reached |",
    ]
    assert len(request_12.comments) == 2


@pytest.mark.parametrize("host", ONE_HOST, indirect=True)
def test_without_a_plan_on_the_request_a_step_has_no_number(host: CodeHost, run: Run) -> None:
    request = host.open_request(12, HEAD)
    request.merged_as = MERGED
    report(run, make(*SPECS, a=7, b=3))
    assert read(request)[1].splitlines()[2:] == [
        "| `a` | `retention.ms` |  | 7d → 4d | done | 2d, then 1d |"
    ]


@pytest.mark.parametrize("host", ONE_HOST, indirect=True)
def test_a_step_that_failed_has_its_reason_and_the_next_night_replaces_it(
    run: Run, request_12: Talk
) -> None:
    made = make(*SPECS, a=4, b=4)
    failed = Outcome("a", OutcomeKind.FAILED, "broker 2 said: no *disk*", "topic-failed")
    report(run, made, end_run(Applied((failed, Outcome("b", OutcomeKind.DONE)))))
    title, table, _, next_step = read(request_12)
    assert title.endswith(": step not done")
    assert table.splitlines()[2] == (
        "| `a` | `retention.ms` | 2 of 3 | 4d → 2d | "
        "failed: broker 2 said: no &#42;disk&#42; `topic-failed` | 1d |"
    )
    assert next_step == "**Next:** once the reason is gone, the next nightly run makes the step."
    report(run, make(*SPECS, a=4, b=3))
    assert read(request_12)[0].endswith(": in progress")


@pytest.mark.parametrize("host", ONE_HOST, indirect=True)
def test_a_plan_that_is_refused_names_what_it_refuses(run: Run, request_12: Talk) -> None:
    refused = make(lower("a", acknowledge=frozenset()), SPECS[1], a=4, b=4)
    _report(run, refused, None)
    first, second = read(request_12)[1].splitlines()[2:]
    assert "| 4d → 2d | refused: records older than 2d (172800000) are deleted" in first
    assert "| 4d → 3d | refused: nothing is applied while the plan refuses a |" in second
    whole = replace(make(*SPECS, a=4, b=4), refusals=(Finding("guard-max-changed", "too many"),))
    _report(run, whole, None)
    for row in read(request_12)[1].splitlines()[2:]:
        assert "| refused: too many `guard-max-changed` |" in row


@pytest.mark.parametrize("host", ONE_HOST, indirect=True)
def test_an_apply_that_did_not_begin_says_why_if_that_is_known(run: Run, request_12: Talk) -> None:
    made = make(*SPECS, a=4, b=3)
    _report(run, made, end_run(error=ClusterError([Finding("connect-refused", "nobody answers")])))
    assert "nobody answers" in read(request_12)[1]
    _report(run, made, None)
    assert "| error: apply did not start; see the log of the run |" in read(request_12)[1]


def test_each_request_gets_its_own_topics(host: CodeHost, run: Run, request_12: Talk) -> None:
    """Request 13 was rebased: its topic came with a commit below its head."""
    other = host.open_request(13, "d" * 40)
    other.merged_as, other.commits = "e" * 40, (OTHER,)
    assert report(run, make(*SPECS, a=4, b=4), a=MERGED, b=OTHER) == [
        "comment on request 12 written",
        "comment on request 13 written",
    ]
    for request, name in ((request_12, "a"), (other, "b")):
        (row,) = read(request)[1].splitlines()[2:]
        assert row.startswith(f"| `{name}` |")


def test_without_a_single_request_there_is_no_comment(host: CodeHost, run: Run) -> None:
    made = make(*SPECS, a=4, b=3)
    for number in (13, 14):
        talk = host.open_request(number, "d" * 40)
        talk.merged_as = OTHER
    host.open_request(15, MERGED)  # open: it only contains the commit
    assert report(run, made, a=OTHER) == [f"the spec of a came with {OTHER[:12]}, from 2 requests"]
    assert report(run, made, a=MERGED) == [
        f"the spec of a came with {MERGED[:12]}, from 0 requests"
    ]
    assert report(run, made, b=MERGED) == ["it is not known which commit brought the spec of a"]
    assert host.writes() == []


def test_a_request_that_cannot_be_written_does_not_stop_the_others(
    host: CodeHost, run: Run, request_12: Talk
) -> None:
    other = host.open_request(13, "d" * 40)
    other.merged_as = OTHER
    host.faults.append(Fault("POST", Answer(403, {"message": "not allowed"})))
    with pytest.raises(CodeHostError, match="not allowed"):
        report(run, make(*SPECS, a=4, b=4), a=MERGED, b=OTHER)
    assert len(request_12.comments) == 1
    assert len(other.comments) == 1


@pytest.mark.parametrize("host", ONE_HOST, indirect=True)
def test_a_lost_answer_leads_to_no_second_comment(
    host: CodeHost, run: Run, request_12: Talk
) -> None:
    host.faults.append(Fault("POST", None, done=True))
    report(run, make(*SPECS, a=4, b=3))
    assert len(request_12.comments) == 2


@pytest.mark.parametrize("host", ONE_HOST, indirect=True)
def test_a_hidden_line_that_somebody_edited_holds_no_rows(
    host: CodeHost, run: Run, request_12: Talk
) -> None:
    report(run, make(*SPECS, a=4, b=4))
    note = request_12.comments[-1]
    for spoiled in ("AAAA", "bm9uZQ=="):
        host.edit(note, f"{MARK}\n\n<!-- reconciler:steps rows={spoiled} -->\n")
        report(run, make(*SPECS, a=2, b=3))
        assert len(read(request_12)[1].splitlines()) == 3
