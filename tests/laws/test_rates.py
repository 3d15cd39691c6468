"""Rates: no window ever has more than its rate, and nothing waits that would keep to it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from reconciler.model.rates import NO_RATES, Rate, Rates, count_due, find_least_s, find_time

rates = st.builds(Rate, most=st.integers(1, 12), window_s=st.integers(1, 9))
steps = st.lists(st.integers(0, 15), min_size=1, max_size=12)
phases = st.lists(steps, min_size=1, max_size=4)
latencies = st.lists(st.integers(0, 5), min_size=1, max_size=5)

Request = tuple[float, float, Sequence[int], int]
"""When it was sent, when it was answered, the partitions of each of its steps, and of the step that
follows in its phase; 0 for none."""


def send_all(
    limits: Rates, phases: Sequence[Sequence[int]], latencies: Sequence[int]
) -> list[Request]:
    """Send the steps of each phase as a run does, with answers that take some time.

    A phase begins while the last request of the one before it may still count.
    """
    sent: list[tuple[float, int]] = []
    requests: list[Request] = []
    now_s = 0.0
    for steps in phases:
        left = steps
        while left:
            now_s = max(now_s, find_time(limits, sent, left[0]))
            due = count_due(limits, sent, left, now_s)
            answered_s = now_s + latencies[len(requests) % len(latencies)]
            following = left[due] if due < len(left) else 0
            requests.append((now_s, answered_s, left[:due], following))
            sent.append((answered_s, sum(left[:due])))
            now_s, left = answered_s, left[due:]
    return requests


def breaks(rate: Rate, amounts: Sequence[tuple[float, int]], at_s: float, *steps: int) -> bool:
    """Return whether a rate has no room for steps at a time, counted from what was answered before.

    In: when earlier requests were answered, and what counts for each. A step of more than fits into
    an empty window is sent alone, and takes as long as the rate takes for it.
    """
    inside = 0
    for answered_s, amount in amounts:
        lasts_s = rate.window_s * amount / rate.most if amount > rate.most else rate.window_s
        inside += amount if answered_s + lasts_s > at_s else 0
    if len(steps) == 1 and steps[0] > rate.most:
        return inside > 0
    return sum(steps) > 0 and inside + sum(steps) > rate.most


@given(partitions=rates, requests=rates, parts=phases, latencies=latencies)
# When the 8 is sent, the 6 no longer counts, and the 3 still does, for one second.
@example(Rate(12, 9), Rate(9, 1), [[6], [3], [8, 2]], [1])
def test_no_window_has_more_than_a_rate_and_no_request_is_later_or_smaller_than_it_must_be(
    partitions: Rate, requests: Rate, parts: list[list[int]], latencies: list[int]
) -> None:
    made = send_all(Rates(requests, partitions), parts, latencies)
    assert [step for _, _, taken, _ in made for step in taken] == [*chain(*parts)]
    free_s = 0.0
    for number, (sent_s, answered_s, taken, following) in enumerate(made):
        amounts = [(at_s, sum(each)) for _, at_s, each, _ in made[:number]]
        ones = [(at_s, 1) for at_s, _ in amounts]
        assert not breaks(partitions, amounts, sent_s, *taken)
        assert not breaks(requests, ones, sent_s, 1)
        if sent_s > free_s:  # it waited: a little earlier, its first step would have been too much
            early_s = sent_s - 1e-6
            too_early = breaks(requests, ones, early_s, 1)
            assert too_early or breaks(partitions, amounts, early_s, taken[0])
        # One step more would have been too much; one of more than the entire rate goes alone.
        if 0 < following <= partitions.most and sum(taken) <= partitions.most:
            assert breaks(partitions, amounts, sent_s, *taken, following)
        free_s = answered_s


@given(partitions=rates, parts=phases)
def test_a_plan_says_no_more_time_than_an_apply_takes_whose_answers_come_at_once(
    partitions: Rate, parts: list[list[int]]
) -> None:
    limits = Rates(partitions=partitions)
    made = send_all(limits, parts, [0])
    assert find_least_s(limits, parts) == made[-1][0]
    slow = send_all(limits, parts, [3])
    assert find_least_s(limits, parts) <= slow[-1][0]
    assert all(earlier[1] <= later[0] for earlier, later in pairwise(slow))


@given(left=steps)
def test_without_rates_everything_is_due(left: list[int]) -> None:
    assert count_due(NO_RATES, [(0.0, 99)], left, 0.0) == len(left)
    assert find_least_s(NO_RATES, [left, left]) == 0
