"""Rates between two readings: exact where a log lost nothing, a guess where it did."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from shorthand import cluster, topic

from reconciler.model.cluster import ClusterState, CommittedOffsets, LeaderLog, TopicState
from reconciler.model.growth import measure_rates

SECONDS = 10


def read(at_s: int, *logs: LeaderLog | None, **found: Any) -> ClusterState:
    committed: CommittedOffsets | None = found.pop("committed", None)
    defaults = found.pop("defaults", None)
    live = topic(" ".join("1" for _ in logs), "t", logs=logs, **found)
    state = cluster(live, defaults=defaults)
    return replace(state, read_at_ms=1_000 * at_s + 1_000, committed_offsets=committed)


def measure(before: ClusterState, after: ClusterState) -> TopicState:
    return measure_rates(before, after).topics["t"]


def log(start: int, end: int, size_bytes: int, leader: int = 1) -> LeaderLog:
    return LeaderLog(leader, start, end, size_bytes)


@pytest.mark.parametrize(
    ("before", "after", "rate", "is_guess"),
    [
        pytest.param(log(5, 9, 400), log(5, 19, 1600), 120, False, id="grew"),
        pytest.param(log(5, 9, 400), log(5, 9, 400), 0, False, id="no record"),
        pytest.param(log(0, 9, 900), log(9, 9, 0), 0, False, id="no record, and all deleted"),
        # 10 records of 50 bytes, the average of those that are left.
        pytest.param(log(5, 9, 400), log(9, 19, 500), 50, True, id="retention"),
        pytest.param(log(0, 9, 900), log(19, 19, 0), 100, True, id="all deleted since"),
        pytest.param(log(9, 9, 0), log(19, 19, 0), -1, False, id="never a record to see"),
        pytest.param(log(5, 9, 400), log(5, 19, 300), 21, True, id="shrank at one start"),
        # More than its offsets say was added in any case.
        pytest.param(log(0, 10, 100), log(2, 12, 2100), 200, True, id="grew by more"),
        pytest.param(log(0, 9, 900), log(0, 4, 400), -1, False, id="truncated"),
        pytest.param(log(0, 9, 900), log(0, 19, 1900, leader=2), 100, False, id="whole elsewhere"),
        pytest.param(log(5, 9, 400), log(5, 19, 1400, leader=2), 100, True, id="elsewhere"),
        pytest.param(None, log(0, 9, 900), -1, False, id="unknown before"),
        pytest.param(log(0, 9, 900), None, -1, False, id="unknown now"),
    ],
)
def test_a_write_rate_is_exact_or_a_guess(
    before: LeaderLog | None, after: LeaderLog | None, rate: int, *, is_guess: bool
) -> None:
    # A second partition has a rate in any case, so that the topic has some.
    other = log(0, 1, 10), log(0, 2, 20)
    found = measure(read(0, before, other[0]), read(SECONDS, after, other[1]))
    assert found.write_bytes_per_s == (rate, 1)
    assert found.guessed_rates == (frozenset({0}) if is_guess else frozenset())


@pytest.mark.parametrize(
    ("before", "after", "rate", "is_guess"),
    [
        pytest.param(log(-1, -1, 400), log(-1, -1, 1600), 120, True, id="grew"),
        pytest.param(log(-1, -1, 400), log(-1, -1, 400), 0, True, id="as before"),
        pytest.param(log(-1, -1, 400), log(-1, -1, 300), -1, False, id="shrank"),
        pytest.param(log(-1, -1, 400), log(-1, -1, 1600, leader=2), -1, False, id="elsewhere"),
    ],
)
def test_without_offsets_a_rate_is_what_the_log_grew_at_least(
    before: LeaderLog, after: LeaderLog, rate: int, *, is_guess: bool
) -> None:
    other = log(-1, -1, 10), log(-1, -1, 20)
    found = measure(read(0, before, other[0]), read(SECONDS, after, other[1]))
    assert found.write_bytes_per_s == (rate, 1)
    assert found.guessed_rates == (frozenset({0, 1}) if is_guess else frozenset({1}))


@pytest.mark.parametrize(
    "found",
    [
        {"config": {"cleanup.policy": "compact,delete"}},
        {"defaults": {"cleanup.policy": "compact"}},
    ],
)
def test_a_rate_of_a_compacted_topic_is_a_guess(found: dict[str, Any]) -> None:
    before, after = log(0, 9, 900), log(0, 19, 1900)
    measured = measure(read(0, before, **found), read(SECONDS, after, **found))
    assert (measured.write_bytes_per_s, measured.guessed_rates) == ((100,), {0})


def test_a_compacted_log_had_more_bytes_per_offset_before() -> None:
    found = {"config": {"cleanup.policy": "compact"}}
    before, after = log(0, 10, 1000), log(0, 20, 200)
    assert measure(read(0, before, **found), read(SECONDS, after, **found)).write_bytes_per_s == (
        100,
    )


def test_a_topic_that_was_created_again_has_no_rates() -> None:
    before = read(0, log(0, 9, 900), topic_id="old")
    after = read(SECONDS, log(0, 19, 1900), topic_id="new", write_bytes_per_s=(7,))
    assert measure(before, after).write_bytes_per_s == ()
    after = read(SECONDS, log(0, 19, 1900), topic_id=None)  # brokers before 2.8 have no ids
    assert measure(before, after).write_bytes_per_s == (100,)


def test_a_new_topic_and_a_new_partition_have_no_rates() -> None:
    nothing = replace(read(0), topics={})
    after = read(SECONDS, log(0, 19, 1900), log(0, 9, 900))
    assert measure(nothing, after).write_bytes_per_s == ()
    assert measure(read(0, log(0, 9, 900)), after).write_bytes_per_s == (100, -1)


def test_the_time_between_is_said() -> None:
    assert measure_rates(read(0), read(600)).measured_s == 600
    assert measure_rates(read(0), replace(read(0), read_at_ms=1_300)).measured_s == 1


def commit(**groups: int) -> CommittedOffsets:
    return {group: {"t": (offset,)} for group, offset in groups.items()}


@pytest.mark.parametrize(
    ("before", "after", "rate"),
    [
        (commit(a=10, b=30), commit(a=20, b=50), 300),
        (commit(a=10, back=30), commit(a=20, back=0), 100),
        (commit(a=10), commit(a=20, new=50), 100),
        (commit(a=10, gone=50), commit(a=20), 100),
        (commit(a=-1), commit(a=20), 0),
        ({}, {}, 0),
    ],
)
def test_reads_are_what_groups_committed_and_none_counts_back(
    before: CommittedOffsets, after: CommittedOffsets, rate: int
) -> None:
    logs = log(0, 90, 9000)
    found = measure(read(0, logs, committed=before), read(SECONDS, logs, committed=after))
    assert found.read_bytes_per_s == (rate,)


def test_reads_are_unknown_without_commits_or_bytes() -> None:
    logs, some = log(0, 90, 9000), commit(a=10)
    assert measure(read(0, logs), read(SECONDS, logs, committed=some)).read_bytes_per_s == ()
    assert measure(read(0, logs, committed=some), read(SECONDS, logs)).read_bytes_per_s == ()
    empty = log(90, 90, 0)
    found = measure(read(0, empty, committed=some), read(SECONDS, empty, committed=commit(a=20)))
    assert found.read_bytes_per_s == ()
