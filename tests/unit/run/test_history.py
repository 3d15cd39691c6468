"""Which runs are asked for, and what a revert brings back."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from reconciler.model.outcomes import OutcomeKind
from reconciler.model.steps import Verb
from reconciler.run.ending import Ended
from reconciler.run.history import CommitNote, KeptRun, Run, choose_runs

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
DONE = OutcomeKind.DONE
RUN = Run(
    verb="apply",
    started=NOON,
    at=NOON + timedelta(seconds=9),
    duration_s=9.0,
    user="ana",
    host="ci-7",
    pid=42,
    run_url=None,
    reconciler="0.1.0",
    cluster="prod-eu",
    cluster_id="5L6g3nShT-eMCtK--X86sw",
    fingerprint="0123456789abcdef",
    commit="6f1e2d3c4b5a",
    steps={"create": 1},
    refused=0,
    ended=Ended.DONE,
    error=None,
    topics={"orders.events": DONE},
    topics_left_out=0,
)
LATER = replace(RUN, started=NOON + timedelta(days=1), at=NOON + timedelta(days=1), pid=43)


def test_the_latest_run_is_first() -> None:
    assert choose_runs([RUN, LATER]) == [LATER, RUN]
    assert choose_runs([LATER, RUN]) == [LATER, RUN]


def test_a_run_counts_from_its_end_and_without_one_from_its_start() -> None:
    assert choose_runs([RUN], since=NOON + timedelta(seconds=9)) == [RUN]
    assert choose_runs([RUN], since=NOON + timedelta(seconds=10)) == []
    killed = replace(RUN, at=None)
    assert choose_runs([killed], since=NOON) == [killed]
    assert choose_runs([killed], since=NOON + timedelta(seconds=1)) == []


def test_topics_that_are_not_asked_for_are_not_shown() -> None:
    run = replace(RUN, topics={"a.b": DONE, "c": DONE}, texts={"a.b": "x", "c": "y"})
    (found,) = choose_runs([run], topics="a.*")
    assert (found.topics, found.texts) == ({"a.b": DONE}, {"a.b": "x"})
    (found,) = choose_runs([run], topics="d,c")
    assert (found.topics, found.texts) == ({"c": DONE}, {"c": "y"})
    assert choose_runs([run], topics="d") == []


def test_a_run_that_omits_topics_may_have_changed_any() -> None:
    run = replace(RUN, topics_left_out=7)
    assert choose_runs([run], topics="d") == [replace(run, topics={})]


def test_runs_are_chosen_by_plan_and_cluster() -> None:
    assert choose_runs([RUN, replace(RUN, fingerprint=None)], plan="0123") == [RUN]
    assert choose_runs([RUN, replace(RUN, cluster="test")], cluster="prod-eu") == [RUN]


@pytest.mark.parametrize(
    ("changes", "changed"),
    [
        ({}, True),
        ({"topics": {"a": OutcomeKind.FAILED}}, False),
        ({"topics": {"a": OutcomeKind.UNKNOWN}}, True),
        ({"topics": {"a": OutcomeKind.HALF_DONE, "b": OutcomeKind.FAILED}}, True),
        ({"topics": {}, "ended": Ended.STALE}, False),
        ({"topics": {}, "ended": None}, True),
        ({"topics": {}, "topics_left_out": 1}, True),
        ({"topics": {}, "verb": "rate"}, True),
    ],
)
def test_whether_a_run_may_have_changed_something(
    changes: dict[str, object], *, changed: bool
) -> None:
    assert replace(RUN, **changes).changed is changed


@pytest.mark.parametrize("verb", [*Verb, "cordon"])
def test_each_kind_of_step_says_what_a_revert_does_not_bring_back(verb: str) -> None:
    first, *others = KeptRun(replace(RUN, steps={verb: 1})).ways_back
    assert first.startswith("git revert 6f1e2d3c4b5a, as a request: ")
    assert len(others) == 1


def test_a_merge_is_reverted_to_its_first_parent() -> None:
    note = CommitNote("Merge pull request #7 from shop/orders", "#7", merges=True)
    assert KeptRun(RUN, note).ways_back[0].startswith("git revert -m 1 6f1e2d3c4b5a, ")


def test_without_a_commit_nothing_is_reverted() -> None:
    way, _ = KeptRun(replace(RUN, commit=None)).ways_back
    assert way == "the record names no commit: write the specs as they were, and plan"


def test_what_changed_nothing_needs_no_way_back() -> None:
    refused = replace(RUN, ended=Ended.REFUSED, topics={})
    assert KeptRun(refused).ways_back == ("nothing: this run changed nothing",)
    assert KeptRun(replace(RUN, verb="rate")).ways_back == ()
