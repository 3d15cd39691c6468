"""Laws of forecasts: bounds that hold for every plan of moves, whatever the window does."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from math import ceil
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from shorthand import HERE, brokers, cluster, topic

from reconciler.model.cluster import ClusterState, LogDirectory
from reconciler.model.moves import MovePolicy, PlannedMoves
from reconciler.model.plan import Plan, PlannedTopic, TopicImage
from reconciler.moves.forecast import forecast_moves, list_row_moves
from reconciler.planfile.codec import decode_plan, encode_plan

IDS = range(1, 7)
NODES = brokers("a", "a", "b", "b", "c", "c")


@dataclass(frozen=True)
class Case:
    """A plan of moves, and the state that it is based on."""

    plan: Plan
    state: ClusterState

    @property
    def rate(self) -> int:
        assert self.plan.moves is not None
        assert self.plan.moves.policy.rate_bytes_per_s is not None
        return self.plan.moves.policy.rate_bytes_per_s


@st.composite
def cases(draw: st.DrawFn, most_written: int = 0) -> Case:
    """Draw rows and other rows, their sizes, and limits. Nothing is written by default."""
    row = st.lists(st.sampled_from(IDS), min_size=1, max_size=4, unique=True).map(tuple)
    pairs = draw(st.lists(st.tuples(row, row), min_size=1, max_size=20))
    old, new = (tuple(pair[side] for pair in pairs) for side in (0, 1))
    size, written = st.integers(0, 10_000), st.integers(0, most_written)
    sizes, rates = (draw(st.tuples(*[each] * len(pairs))) for each in (size, written))
    policy = MovePolicy(
        frozenset(),
        draw(st.integers(1, 500)),
        at_once_cluster=draw(st.integers(1, 12)),
        at_once_broker=draw(st.integers(1, 4)),
    )
    used = draw(st.lists(st.integers(0, 50_000), min_size=len(IDS), max_size=len(IDS)))
    state = replace(
        cluster(topic(old, "a", size_bytes=sizes, write_bytes_per_s=rates), nodes=NODES),
        directories={
            broker: (LogDirectory("/data", 10**6, 10**6 - held),)
            for broker, held in zip(IDS, used, strict=True)
        },
    )
    images = (TopicImage("id-a", rows, {}) for rows in (old, new))
    planned = PlannedTopic("a", HERE, *images)
    moves = PlannedMoves(policy, 0, 0, 0)
    return Case(Plan("prod", "id", NODES, (planned,), moves=moves), state)


@given(cases())
def test_copies_take_at_least_what_the_busiest_broker_needs(case: Case) -> None:
    found = forecast_moves(case.plan, case.state)
    busiest = max((max(t.in_bytes, t.out_bytes) for t in found.traffic), default=0)
    assert found.seconds is not None
    assert found.seconds >= busiest / case.rate - 1e-6


@given(cases())
def test_copies_take_at_most_as_long_as_one_after_the_other(case: Case) -> None:
    found = forecast_moves(case.plan, case.state)
    assert found.seconds is not None
    assert found.seconds <= ceil(found.copied_bytes / case.rate + 1e-6)


@given(cases(most_written=30))
def test_at_the_least_rate_every_plan_ends(case: Case) -> None:
    least = forecast_moves(case.plan, case.state).least_rate
    assert least is not None
    assert case.plan.moves is not None
    policy = replace(case.plan.moves.policy, rate_bytes_per_s=max(1, least))
    plan = replace(case.plan, moves=replace(case.plan.moves, policy=policy))
    assert forecast_moves(plan, case.state).seconds is not None


@given(cases())
def test_bytes_in_and_out_are_the_bytes_of_added_replicas(case: Case) -> None:
    found = forecast_moves(case.plan, case.state)
    assert sum(t.in_bytes for t in found.traffic) == found.copied_bytes
    assert sum(t.out_bytes for t in found.traffic) == found.copied_bytes


@given(cases())
def test_a_peak_is_between_one_replica_and_all_of_them(case: Case) -> None:
    entering: Counter[int] = Counter()
    largest: Counter[int] = Counter()
    leaving: Counter[int] = Counter()
    for move in list_row_moves(case.plan, case.state):
        for broker in move.adding:
            entering[broker] += move.size
            largest[broker] = max(largest[broker], move.size)
        for broker in move.removing:
            leaving[broker] += move.size
    peaks = forecast_moves(case.plan, case.state).peaks
    assert {peak.broker for peak in peaks} == set(entering)
    for peak in peaks:
        floor = max(peak.used_bytes, peak.used_bytes - leaving[peak.broker] + largest[peak.broker])
        assert floor <= peak.peak_bytes <= peak.used_bytes + entering[peak.broker]
        if not leaving[peak.broker]:
            assert peak.peak_bytes == peak.used_bytes + entering[peak.broker]


@given(cases(most_written=30), st.randoms(use_true_random=False))
def test_the_order_of_input_means_nothing(case: Case, random: Random) -> None:
    directories = list(case.state.directories.items())
    random.shuffle(directories)
    shuffled = replace(case.state, directories=dict(directories))
    assert forecast_moves(case.plan, shuffled) == forecast_moves(case.plan, case.state)


@given(cases(most_written=30))
def test_a_forecast_comes_back_from_a_file(case: Case) -> None:
    assert case.plan.moves is not None
    found = forecast_moves(case.plan, case.state)
    plan = replace(case.plan, moves=replace(case.plan.moves, forecast=found))
    assert decode_plan(encode_plan(plan)) == plan
