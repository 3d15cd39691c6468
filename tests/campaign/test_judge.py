"""The judge, on runs that are made up: it passes what is true, and finds each kind of untruth."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from campaign.faults import Kind
from campaign.judge import Run, judge
from campaign.records import Told
from campaign.truth import Topic
from campaign.world import Wish

OLD = Topic("id-old", ((1, 2), (2, 3)), {})
GROWN = Topic("id-old", ((1, 2), (2, 3), (3, 1)), {"flush.ms": "7"})
OTHER = Topic("id-other", ((1,),), {})
NEW = Topic("id-new", ((1, 2),), {})
WISHES = {
    "old": Wish("old", 3, 2, {"flush.ms": "7"}),
    "new": Wish("new", 1, 2, {}),
}
BEFORE = {"old": OLD, "other": OTHER}
AFTER = {"old": GROWN, "new": NEW, "other": OTHER}
DONE = {"new": "done", "old": "done"}


def tell(outcomes: Mapping[str, str], ended: str = "done", code: int = 0, **changes: Any) -> Told:
    """Return what a run says that ends like this."""
    lines = [f"{kind:<13} {name}" for name, kind in outcomes.items()]
    said = {"done": "", "nothing to do": ""}.get(ended, f"{ended.capitalize()}. ")
    last = "Nothing to do." if ended == "nothing to do" else f"{said}Applied: as above"
    end = {"type": "applied", "ended": ended, "topics": dict(outcomes), "fingerprint": "f"}
    written = [{"type": "outcome", "topic": n, "kind": k} for n, k in outcomes.items()]
    told = Told(code, "\n".join([*lines, "", last, ""]), "", [*written, end], audit=[dict(end)])
    for name, value in changes.items():
        setattr(told, name, value)
    return told


def run_of(told: Told, **changes: Any) -> Run:
    run = Run(told, BEFORE, AFTER, WISHES, Kind.NO_ANSWER, sent=2, scaled=True)
    return replace(run, **changes)


def found(run: Run) -> str:
    return "\n".join(judge(run).violations)


def test_a_true_report_passes() -> None:
    assert not found(run_of(tell(DONE)))


def test_a_killed_run_needs_no_report() -> None:
    killed = Told(-9, "the plan", "", [{"type": "apply"}])
    assert not found(run_of(killed, kind=Kind.KILL))


@pytest.mark.parametrize(
    ("twice", "sent", "ours"), [(True, 0, True), (True, 1, False), (False, 0, False)]
)
def test_only_a_second_interrupt_may_end_it_and_only_before_it_sent_anything(
    twice: bool, sent: int, ours: bool
) -> None:
    killed = Told(-2, "", "error: interrupted")
    run = run_of(killed, kind=Kind.INTERRUPT, after=BEFORE, twice=twice, sent=sent)
    assert bool(found(run)) is not ours


def test_unknown_is_counted_and_not_held_against_it() -> None:
    told = tell({"new": "unknown", "old": "done"}, "unknown", 75)
    verdict = judge(run_of(told))
    assert (verdict.violations, verdict.unknown) == ([], {"full": 1})


@pytest.mark.parametrize(
    ("told", "after", "words"),
    [
        (tell(DONE), {**AFTER, "old": OLD}, "old: claimed 'done'"),
        (tell({**DONE, "old": "failed"}, "failed", 1), AFTER, "old: claimed 'failed'"),
        (
            tell({**DONE, "old": "not attempted"}, "failed", 1),
            AFTER,
            "old: claimed 'not attempted'",
        ),
        (tell({**DONE, "old": "half done"}, "failed", 1), AFTER, "old: claimed 'half done'"),
        (tell({**DONE, "new": "already done"}), AFTER, "new: claimed 'already done'"),
        (tell({"old": "done"}), AFTER, "new: nobody claimed anything of it"),
        (tell(DONE), {k: v for k, v in AFTER.items() if k != "other"}, "other: lost: it is gone"),
        (tell(DONE), {**AFTER, "other": replace(OTHER, id="x")}, "other: lost: it is another"),
        (tell(DONE), {**AFTER, "other": GROWN}, "other: lost: it is another topic"),
        (tell(DONE), {**AFTER, "other": replace(OTHER, rows=((2,),))}, "other: moved: rows"),
        (tell(DONE), {**AFTER, "other": replace(OTHER, config={"a": "b"})}, "other: foreign"),
        (tell(DONE), {**AFTER, "more": NEW}, "more: foreign"),
        (
            tell(DONE),
            {**AFTER, "old": replace(GROWN, rows=((1, 2), (3, 2), (3, 1)))},
            "old: moved: rows",
        ),
        (
            tell(DONE),
            {**AFTER, "old": replace(GROWN, rows=(*GROWN.rows, (1, 2)))},
            "old: foreign: 4 partitions",
        ),
        (tell(DONE), {**AFTER, "new": replace(NEW, rows=((1,),))}, "new: foreign: rows"),
        (tell(DONE), {**AFTER, "new": replace(NEW, config={"a": "b"})}, "new: foreign: config"),
    ],
)
def test_a_cluster_that_is_not_as_told_is_found(
    told: Told, after: dict[str, Topic], words: str
) -> None:
    assert words in found(run_of(told, after=after))


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (tell(DONE, code=1), "it ended 'done' with exit code 1"),
        (tell(DONE, err="error: no"), "exit code 0, and an error on stderr"),
        (tell(DONE, err="Traceback (most recent call last)"), "it printed 'Traceback"),
        (tell(DONE, code=-11), "it was ended by SIGSEGV"),
        (tell(DONE, code=-9), "it was ended by SIGKILL"),
        (tell(DONE, torn=True), "a line of the journal is torn"),
        (tell(DONE, journal=[]), "the journal has no last line"),
        (tell(DONE, audit=[]), "no audit record"),
        (tell(DONE, audit=[{}, {}]), "2 audit records of one run"),
        (tell(DONE, audit=[{"ended": "failed"}]), "audit record and journal differ"),
        (tell(DONE, out="done          new\n\nApplied: 1 done"), "outcomes by the journal's lines"),
        (tell(DONE, out="done          new\n"), "no last line"),
        (tell(DONE, ended="stale", code=1), "it ended 'stale'"),
        (tell({**DONE, "old": "failed"}), "it ended 'done'"),
        (tell(DONE, ended="locked", code=1), "it ended 'locked'"),
    ],
)
def test_records_that_disagree_are_found(told: Told, words: str) -> None:
    assert words in found(run_of(told))


def test_a_repeated_command_has_to_finish() -> None:
    told = tell({"new": "failed", "old": "failed"}, "failed", 1)
    assert "on a healthy cluster, ended: failed" in found(run_of(told, after=BEFORE, kind=None))


def test_a_run_that_hangs_is_found() -> None:
    assert "it did not end" in found(run_of(tell(DONE), hung=True))


def test_a_part_of_a_large_topic_ends_at_the_boundary_of_a_request() -> None:
    wishes = {"new": Wish("new", 25, 1, {})}
    for rows, words in ((10, ""), (20, ""), (13, "13 partitions is no boundary")):
        after = {"new": Topic("id", ((1,),) * rows, {})}
        told = tell({"new": "half done"}, "failed", 1)
        assert words in found(run_of(told, before={}, after=after, wishes=wishes))
        assert bool(words) is bool(found(run_of(told, before={}, after=after, wishes=wishes)))


def test_records_are_read_as_a_run_writes_them() -> None:
    told = tell({"new": "half done", "old": "not attempted"}, "failed", 1)
    assert told.ended == "failed"
    assert told.outcomes == {"new": "half done", "old": "not attempted"}
    assert json.dumps(told.end)


def test_a_plan_is_rightly_refused_where_a_broker_is_away_that_it_needs() -> None:
    told = tell({}, "refused", 1, err="error: 3 exceeds the 2 brokers [rf-le-brokers]")
    away = run_of(told, kind=Kind.BROKER_FROZEN, after=BEFORE, sent=0)
    assert not found(away)
    assert "it ended 'refused'" in found(replace(away, kind=Kind.SLOW))
    assert "it ended 'refused'" in found(replace(away, told=tell({}, "refused", 1)))
