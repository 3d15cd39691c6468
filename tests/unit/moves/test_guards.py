"""Limits of plans of moves: what is too large, too full, too slow, or not known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from shorthand import cluster, may_move, spec, topic

from reconciler.errors import Location
from reconciler.model.cluster import RateSource, ThrottleList, ThrottleRate, ThrottleSide
from reconciler.model.moves import UNLIMITED, DirectoryPeak, Forecast, MovePolicy
from reconciler.model.plan import Plan
from reconciler.moves.guards import guard_moves
from reconciler.moves.plan import assemble_moves, plan_moves
from reconciler.show.text import render_text
from reconciler.spec.entry import ClusterEntry

MIB = 2**20
ENTRY = ClusterEntry("prod", Location("topics/clusters.yaml", 2), moves=may_move())


def where(path: str) -> Location:
    return Location("topics/clusters.yaml", {"rate": 4, "keep_free": 5}.get(path[6:], 6))


def plan(forecast: Forecast | None, factor: int = 2) -> Plan:
    """Return a plan whose copies go to brokers 2 and 3, with this forecast."""
    wished, state = (
        spec(replication_factor=factor),
        cluster(topic("1,2 1,3" if factor == 1 else "1 1")),
    )
    made = assemble_moves(ENTRY, [wished], state)
    assert made.moves is not None
    return replace(made, moves=replace(made.moves, forecast=forecast))


def peak(broker: int, used: int = 10, highest: int = 20, total: int = 100) -> DirectoryPeak:
    return DirectoryPeak(broker, f"/data{broker}", total * MIB, used * MIB, highest * MIB)


FINE = Forecast(8 * MIB, {"shop.orders": (4 * MIB, 4 * MIB)}, peaks=(peak(2), peak(3)))


def refuse(forecast: Forecast | None, factor: int = 2, **limits: Any) -> list[str]:
    policy: MovePolicy = may_move(**limits)
    return [str(finding) for finding in guard_moves(plan(forecast, factor), policy, where).refusals]


def test_a_plan_within_its_limits_passes() -> None:
    assert refuse(FINE, max_bytes=8 * MIB) == []
    assert refuse(replace(FINE, least_rate=30 * MIB), max_bytes=None) == []


def test_a_plan_that_copies_more_than_max_bytes_is_refused() -> None:
    assert refuse(FINE, max_bytes=7 * MIB) == [
        "topics/clusters.yaml:6:1: the plan copies 8.0 MiB, and max_bytes allows 7MiB; split the "
        "plan into several requests or with --topic, or raise max_bytes in clusters.yaml if this "
        "is intended [moves-too-large]"
    ]


@pytest.mark.parametrize(
    ("forecast", "why"),
    [
        (None, "no size is known"),
        (replace(FINE, unknown=1), "the size of 1 partition is unknown"),
    ],
)
def test_limits_that_cannot_be_checked_refuse(forecast: Forecast | None, why: str) -> None:
    see = "grant Describe on the cluster, so that sizes and disks are visible"
    assert refuse(forecast, max_bytes=8 * MIB) == [
        f"topics/clusters.yaml:6:1: max_bytes: 8MiB cannot be checked: {why}; {see}, or remove "
        "max_bytes [moves-too-large]",
        f"topics/clusters.yaml:5:1: keep_free: 15% cannot be checked: {why}; {see}, or write "
        "keep_free: 0% [moves-disk]",
    ]
    assert refuse(forecast, keep_free_percent=0) == []


def test_the_fullest_directory_is_named() -> None:
    peaks = (peak(2, highest=86), peak(3, highest=91))
    assert refuse(replace(FINE, peaks=peaks)) == [
        "topics/clusters.yaml:5:1: /data3 of broker 3 would be up to 91% full, and keep_free: 15% "
        "allows 85%; so would 1 more; move fewer topics at once, in several requests or with "
        "--topic, free space on the broker, or lower keep_free [moves-disk]"
    ]
    assert refuse(replace(FINE, peaks=peaks), keep_free_percent=9) == []


def test_a_directory_that_is_full_already_and_gets_nothing_refuses_nothing() -> None:
    peaks = (*FINE.peaks, peak(1, used=99, highest=99))
    assert refuse(replace(FINE, peaks=peaks)) == []


def test_a_disk_that_would_overflow_refuses_whatever_is_to_stay_free() -> None:
    (refusal,) = refuse(replace(FINE, peaks=(peak(2, highest=101),)), keep_free_percent=0)
    assert "/data2 of broker 2 would be up to 101% full, and keep_free: 0% allows 100%" in refusal


def test_a_broker_whose_disks_are_unknown_refuses() -> None:
    (refusal,) = refuse(replace(FINE, peaks=(peak(2),)))
    assert "keep_free: 15% cannot be checked: the disks of broker 3 are unknown" in refusal


def test_a_rate_at_which_the_moves_never_end_is_refused() -> None:
    assert refuse(replace(FINE, least_rate=31 * MIB)) == [
        "topics/clusters.yaml:4:1: at rate 30MiB the moves never end: what is written to the "
        "partitions meanwhile needs 31.0 MiB/s per broker; raise rate in clusters.yaml, or move "
        "fewer topics at once, in several requests or with --topic [moves-rate-below-writes]"
    ]
    assert refuse(replace(FINE, least_rate=31 * MIB), rate=None) == []


def test_a_plan_that_copies_nothing_needs_no_forecast() -> None:
    assert refuse(None, factor=1, max_bytes=0) == []


def test_another_plan_has_no_limits_of_moves() -> None:
    other = replace(plan(None), moves=None)
    assert guard_moves(other, may_move(max_bytes=0), where) == other


def test_a_refused_plan_keeps_its_rows() -> None:
    guarded = guard_moves(plan(None), may_move(), where)
    assert (guarded.topics, guarded.moves) == (plan(None).topics, plan(None).moves)


def plan_under(leader: int | None, follower: int | None, **limits: Any) -> Plan:
    """Plan to copy 30 MiB, on a cluster with these default rates."""
    sides = zip(ThrottleSide, (leader, follower), strict=True)
    rates = tuple(
        ThrottleRate(broker, side, rate, RateSource.CLUSTER_DEFAULT)
        for side, rate in sides
        if rate is not None
        for broker in (1, 2, 3)
    )
    orders = topic("1", size_bytes=(30 * MIB,))
    state = replace(cluster(orders), throttle_rates=rates)
    moves = may_move(keep_free_percent=0, **limits)
    return plan_moves(replace(ENTRY, moves=moves), [WISHED], state)


WISHED = spec(replication_factor=2, partitions=1)


def test_moves_run_under_a_default_rate_that_somebody_else_set() -> None:
    made = plan_under(MIB, MIB)
    assert made.refusals == ()
    assert [note.what for note in made.notes if note.rule == "moves-rate-taken"] == [
        "the cluster has a default throttle rate of 1048576 B/s (1.0 MiB/s), which reconciler did "
        "not set"
    ]
    assert made.moves is not None
    assert made.moves.forecast is not None
    assert (made.moves.forecast.seconds, made.moves.forecast.default_rate) == (30, MIB)
    assert "at 1.0 MiB/s per broker" in render_text(made, width=200)


def test_a_default_rate_of_moves_is_that_of_a_run_under_way() -> None:
    made = plan_under(MIB, MIB + 1)
    assert made.refusals == ()
    assert "moves-rate-taken" not in {note.rule for note in made.notes}
    assert made.moves is not None
    assert made.moves.forecast is not None
    assert (made.moves.forecast.seconds, made.moves.forecast.default_rate) == (1, None)


@pytest.mark.parametrize(
    ("rates", "said"),
    [
        ((40 * MIB, 40 * MIB), "more than the 31457280 B/s of the plan"),
        ((MIB, None), "but none for followers"),
        (
            (20 * MIB, 40 * MIB),
            "rate of 41943040 B/s (40.0 MiB/s), which reconciler did not set, more than the "
            "31457280 B/s of the plan",
        ),
        ((UNLIMITED, UNLIMITED), "rate of 9223372036854775806 B/s (no limit), which"),
        ((0, MIB), "less than the 1 B/s that the moves need to end"),
    ],
)
def test_moves_that_cannot_run_under_the_rate_of_somebody_else_are_refused(
    rates: tuple[int | None, int | None], said: str
) -> None:
    (refusal,) = plan_under(*rates).refusals
    assert said in refusal.what
    assert refusal.rule == "moves-rate-taken"


def test_a_plan_with_a_limit_can_follow_a_default_rate_without_one() -> None:
    (refusal,) = plan_under(UNLIMITED, UNLIMITED).refusals
    assert refusal.way_out.startswith("raise moves.rate to unlimited and plan again, or remove it:")
    made = plan_under(UNLIMITED, UNLIMITED, rate=None)
    assert made.refusals == ()
    assert "TiB/s" not in render_text(made, width=200)


def plan_beside(*lists: ThrottleList, **limits: Any) -> Plan:
    """Plan to copy shop.orders, on a cluster with these throttle lists."""
    orders = topic("1", size_bytes=(30 * MIB,))
    state = replace(cluster(orders), throttle_lists=lists)
    moves = may_move(keep_free_percent=0, **limits)
    return plan_moves(replace(ENTRY, moves=moves), [WISHED], state)


def test_a_list_of_all_replicas_that_the_rate_would_slow_refuses_the_plan() -> None:
    star = ThrottleList("other", ThrottleSide.LEADER, "*")
    (refusal,) = plan_beside(star, replace(star, topic="more")).refusals
    assert str(refusal) == (
        "a throttle list of * is left on more, other; the rate of a run would also slow replicas "
        "of these topics that catch up; remove it: reconciler moves unthrottle --topic more "
        "--topic other "
        "--cluster prod [moves-throttle-left]"
    )
    assert plan_beside(star, rate=None).refusals == ()


def test_a_list_of_named_replicas_may_be_that_of_a_run_under_way() -> None:
    made = plan_beside(ThrottleList("other", ThrottleSide.LEADER, "0:1"))
    assert made.refusals == ()
    (warning,) = [note for note in made.notes if note.rule == "moves-throttle-left"]
    assert "nothing in flight uses the throttle lists of other" in warning.what
    assert warning.way_out == "remove it: reconciler moves settle --cluster prod"


def test_a_topic_that_a_run_would_skip_is_refused() -> None:
    orders = topic("1", size_bytes=(30 * MIB,), config={ThrottleSide.LEADER.list_key: "*"})
    moves = may_move(keep_free_percent=0, rate=None)
    made = plan_moves(replace(ENTRY, moves=moves), [WISHED], cluster(orders))
    (refusal,) = made.topics[0].refusals
    assert refusal.rule == "moves-throttle-left"
    assert "so a run would skip it" in refusal.what
