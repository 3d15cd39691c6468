"""What one or two readings say about moves: bytes, rates, time left, causes."""

from __future__ import annotations

import pytest
from readings import BROKERS, FOLLOWER, LEADER, copied, listed, move, rate, reading, sizes

from reconciler.model.cluster import Broker, Reassignment
from reconciler.model.moves import MovesReading
from reconciler.moves.progress import Cause, Copy, MovesReport, measure_moves


def copy_of(report: MovesReport) -> Copy:
    (found,) = report.copies
    return found


def measure(now: MovesReading, before: MovesReading | None = None) -> Copy:
    return copy_of(measure_moves(now, before))


class TestBytes:
    def test_the_destination_is_measured_against_the_leader(self) -> None:
        copy = measure(reading(move(), sizes=copied(25)))
        assert (copy.bytes_done, copy.bytes_to_do, copy.percent) == (25, 100, 25.0)

    def test_before_its_first_byte_a_replica_is_on_no_disk(self) -> None:
        copy = measure(reading(move(), sizes=sizes(b1={("t", 0): 100})))
        assert (copy.bytes_done, copy.percent) == (0, 0.0)

    def test_a_destination_that_does_not_answer_has_no_size(self) -> None:
        held = {broker: of for broker, of in copied(25).items() if broker != 4}
        copy = measure(reading(move(), sizes=held))
        assert (copy.bytes_done, copy.bytes_to_do, copy.percent) == (None, 100, None)

    @pytest.mark.parametrize("leader", [-1, None, 2])
    def test_without_the_leaders_answer_the_largest_replica_counts(
        self, leader: int | None
    ) -> None:
        held = sizes(b1={("t", 0): 90}, b3={("t", 0): 80}, b4={("t", 0): 9})
        del held[2]
        assert measure(reading(move(leader=leader), sizes=held)).bytes_to_do == 90

    def test_a_copy_is_never_more_than_its_source(self) -> None:
        assert measure(reading(move(), sizes=copied(130))).percent == 100

    def test_a_copy_in_sync_is_done_even_if_compaction_made_it_smaller(self) -> None:
        report = measure_moves(reading(move(in_sync=(1, 2, 3, 4)), sizes=copied(60)))
        assert copy_of(report).percent == 100
        assert report.slowest is None

    def test_an_empty_partition_has_everything(self) -> None:
        assert measure(reading(move())).percent == 100

    def test_totals_add_all_copies(self) -> None:
        grows = Reassignment("u", 1, (1, 2, 3), (2, 3), (), 1, (1,))
        held = sizes(
            b1={("t", 0): 100, ("u", 1): 50}, b4={("t", 0): 20}, b2={("u", 1): 10}, b3={("u", 1): 0}
        )
        report = measure_moves(reading(grows, move(), sizes=held))
        assert [each.reassignment.topic for each in report.moves] == ["t", "u"]
        assert (len(report.copies), report.bytes_done, report.bytes_to_do) == (3, 30, 200)
        assert report.percent == 15

    def test_a_reordering_copies_nothing(self) -> None:
        report = measure_moves(reading(move(replicas=(2, 1), adding=(), removing=())))
        assert (report.copies, report.percent, report.slowest) == ((), None, None)


class TestRows:
    def test_metadata_shows_the_target_and_then_what_leaves(self) -> None:
        assert move().current == (2, 3, 1)
        assert move().target == (4, 2, 3)

    def test_what_is_added_and_removed_is_in_neither_row(self) -> None:
        stuck = move(replicas=(1, 2, 3, 4), adding=(4,), removing=(4,))
        assert stuck.current == stuck.target == (1, 2, 3)


class TestRates:
    def test_rates_are_measured_between_two_readings(self) -> None:
        before = reading(move(), sizes=copied(10), clock_s=90.0)
        report = measure_moves(reading(move(), sizes=copied(40)), before)
        assert copy_of(report).bytes_per_s == report.bytes_per_s == 3.0
        source, destination = report.brokers
        assert (source.broker.id, source.in_bytes_per_s, source.out_bytes_per_s) == (1, None, 3.0)
        assert (destination.broker.id, destination.in_bytes_per_s) == (4, 3.0)
        assert destination.seconds_left == report.seconds_left == 20.0

    def test_one_reading_has_no_rates(self) -> None:
        report = measure_moves(reading(move(), sizes=copied(40)))
        assert (report.bytes_per_s, report.seconds_left) == (None, None)

    def test_a_move_that_began_in_between_has_no_rate(self) -> None:
        report = measure_moves(reading(move(), sizes=copied(40)), reading(clock_s=90.0))
        assert copy_of(report).bytes_per_s is None

    def test_two_readings_at_the_same_time_have_no_rates(self) -> None:
        now = reading(move(), sizes=copied(40))
        assert measure(now, now).bytes_per_s is None

    def test_a_size_that_fell_has_no_rate(self) -> None:
        before = reading(move(), sizes=copied(50), clock_s=90.0)
        assert measure(reading(move(), sizes=copied(40)), before).bytes_per_s is None

    def test_writes_meanwhile_lengthen_the_time_left(self) -> None:
        before = reading(move(), sizes=copied(10, to_do=100), clock_s=90.0)
        report = measure_moves(reading(move(), sizes=copied(40, to_do=110)), before)
        assert report.seconds_left == 70 * 10 / 20

    def test_a_copy_that_falls_behind_has_no_end(self) -> None:
        before = reading(move(), sizes=copied(10, to_do=100), clock_s=90.0)
        report = measure_moves(reading(move(), sizes=copied(20, to_do=120)), before)
        assert report.seconds_left is None

    def test_a_copy_that_has_ended_counts_for_its_broker(self) -> None:
        moves = (move(), move(partition=1))
        before = reading(
            *moves,
            sizes=sizes(b1={("t", 0): 100, ("t", 1): 100}, b4={("t", 0): 0, ("t", 1): 50}),
            clock_s=90.0,
        )
        report = measure_moves(reading(move(), sizes=copied(0)), before)
        assert report.seconds_left == 100 * 10 / 50

    def test_the_last_broker_decides(self) -> None:
        other = move(partition=1, replicas=(5, 2, 3, 1), adding=(5,))
        held = {("t", 0): 100, ("t", 1): 100}
        before = reading(
            move(), other, sizes=sizes(b1=held, b4={("t", 0): 0}, b5={("t", 1): 0}), clock_s=90.0
        )
        now = reading(move(), other, sizes=sizes(b1=held, b4={("t", 0): 50}, b5={("t", 1): 10}))
        assert measure_moves(now, before).seconds_left == 90.0

    def test_a_copy_with_a_cause_gives_its_broker_no_time(self) -> None:
        moves = (move(), move(partition=1, leader=-1))
        held = sizes(b1={("t", 0): 100, ("t", 1): 100}, b4={("t", 0): 50, ("t", 1): 10})
        before = reading(*moves, sizes=held | {4: {("t", 0): 10, ("t", 1): 10}}, clock_s=90.0)
        report = measure_moves(reading(*moves, sizes=held), before)
        assert [each.seconds_left for each in report.brokers if each.bytes_left] == [None]

    def test_what_a_silent_broker_had_before_is_no_progress(self) -> None:
        silent = {broker: of for broker, of in copied(0).items() if broker != 4}
        before = reading(move(), sizes=silent, clock_s=90.0)
        report = measure_moves(reading(move(), sizes=copied(60)), before)
        assert report.seconds_left is None

    def test_a_blocked_copy_makes_the_end_unknown(self) -> None:
        dead = (*BROKERS[:4], Broker(5, alive=False))
        other = move(partition=1, replicas=(5, 2, 3, 1), adding=(5,))
        held = {("t", 0): 100, ("t", 1): 100}
        before = reading(move(), other, sizes=sizes(b1=held), brokers=dead, clock_s=90.0)
        now = reading(move(), other, sizes=sizes(b1=held, b4={("t", 0): 50}), brokers=dead)
        assert measure_moves(now, before).seconds_left is None


class TestCauses:
    def test_a_copy_that_runs_has_none(self) -> None:
        copy = measure(reading(move(), sizes=copied(25)))
        assert (copy.cause, copy.why, copy.throttled) == (None, "", False)

    @pytest.mark.parametrize(
        "brokers", [BROKERS[:3], (*BROKERS[:3], Broker(4, alive=False))], ids=["gone", "dead"]
    )
    def test_a_destination_that_is_not_alive(self, brokers: tuple[Broker, ...]) -> None:
        copy = measure(reading(move(), brokers=brokers))
        assert (copy.cause, copy.why) == (Cause.DESTINATION_DEAD, "broker 4 is not alive")

    def test_a_partition_without_a_leader(self) -> None:
        copy = measure(reading(move(leader=-1)))
        assert (copy.cause, copy.why) == (
            Cause.NO_LEADER,
            "the partition has no leader to copy from",
        )

    def test_a_leader_that_is_hidden_is_no_cause(self) -> None:
        assert measure(reading(move(leader=None))).cause is None

    def test_a_replica_that_is_added_and_removed(self) -> None:
        stuck = move(replicas=(1, 2, 3, 4), adding=(4,), removing=(4,), in_sync=(1, 2, 3, 4))
        report = measure_moves(reading(stuck, sizes=copied(100)))
        assert copy_of(report).cause is Cause.ADDED_AND_REMOVED
        assert report.slowest is not None

    @pytest.mark.parametrize(
        ("rates", "lists", "why"),
        [
            ([rate(4, 0)], [listed("t", "0:4")], "the follower rate of broker 4 is 0"),
            ([rate(None, 0)], [listed("t", "0:4")], "the follower rate of broker 4 is 0"),
            ([rate(None, 0)], [listed("t", "*")], "the follower rate of broker 4 is 0"),
            (
                [rate(1, 0, LEADER)],
                [listed("t", "0:1", LEADER)],
                "the leader rate of broker 1 is 0",
            ),
            ([rate(None, 0), rate(4, 9)], [listed("t", "0:4")], ""),
            ([rate(None, 0)], [listed("t", "1:4,0:5")], ""),
            ([rate(None, 0)], [listed("u", "*")], ""),
            ([rate(None, 0)], [listed("t", "0:4", LEADER)], ""),
            ([rate(None, 0)], [], ""),
            ([rate(5, 0)], [listed("t", "*")], ""),
        ],
    )
    def test_a_rate_of_zero(self, rates: list[object], lists: list[object], why: str) -> None:
        copy = measure(reading(move(), sizes=copied(1), rates=tuple(rates), lists=tuple(lists)))
        assert copy.why == why
        assert (copy.cause is Cause.RATE_ZERO) == bool(why)

    @pytest.mark.parametrize(("amount", "is_below"), [(20, True), (21, False)])
    def test_a_destinations_rate_is_above_the_writes(self, amount: int, is_below: bool) -> None:
        before = reading(move(), sizes=copied(0, to_do=100), clock_s=90.0)
        throttles = {"rates": (rate(4, amount),), "lists": (listed("t", "0:4"),)}
        copy = measure(reading(move(), sizes=copied(1, to_do=300), **throttles), before)
        assert (copy.cause is Cause.RATE_BELOW_WRITES) == is_below
        if is_below:
            assert copy.why == (
                "the follower rate of broker 4 is 20 B/s, and writes alone take 20 B/s of it"
            )

    @pytest.mark.parametrize(("amount", "is_below"), [(60, True), (61, False)])
    def test_a_leaders_rate_is_above_the_writes_of_all_followers(
        self, amount: int, is_below: bool
    ) -> None:
        before = reading(move(), sizes=copied(0, to_do=100), clock_s=90.0)
        throttles = {"rates": (rate(1, amount, LEADER),), "lists": (listed("t", "0:1", LEADER),)}
        copy = measure(reading(move(), sizes=copied(1, to_do=300), **throttles), before)
        assert (copy.cause is Cause.RATE_BELOW_WRITES) == is_below

    def test_writes_to_partitions_in_no_list_need_no_rate(self) -> None:
        moves = (move(), move(partition=1))
        held = {("t", 0): 100, ("t", 1): 100}
        grown = {("t", 0): 100, ("t", 1): 900}
        throttles = {"rates": (rate(4, 20),), "lists": (listed("t", "0:4"),)}
        before = reading(*moves, sizes=sizes(b1=held), clock_s=90.0)
        now = reading(*moves, sizes=sizes(b1=grown), **throttles)
        assert {copy.cause for copy in measure_moves(now, before).copies} == {None}

    def test_a_cordoned_destination(self) -> None:
        cordoned = (*BROKERS[:3], Broker(4, cordoned=True))
        copy = measure(reading(move(), sizes=copied(0), brokers=cordoned))
        assert (copy.cause, copy.why) == (
            Cause.CORDONED,
            "all log directories of broker 4 are cordoned",
        )

    def test_a_cordon_does_not_stop_a_copy_that_has_begun(self) -> None:
        cordoned = (*BROKERS[:3], Broker(4, cordoned=True))
        assert measure(reading(move(), sizes=copied(1), brokers=cordoned)).cause is None

    def test_a_copy_in_sync_needs_no_rate(self) -> None:
        throttles = {"rates": (rate(None, 0),), "lists": (listed("t", "*"),)}
        assert measure(reading(move(in_sync=(1, 2, 3, 4)), **throttles)).cause is None

    @pytest.mark.parametrize(
        ("lists", "rates", "throttled"),
        [
            ([listed("t", "0:4")], [rate(None, 9)], True),
            ([listed("t", "0:1", LEADER)], [rate(None, 9, LEADER)], True),
            ([listed("t", "0:4")], [], False),
            ([listed("t", "0:2", LEADER)], [rate(None, 9, LEADER)], False),
            ([listed("t", "0:4")], [rate(None, 9, LEADER)], False),
        ],
    )
    def test_a_copy_is_throttled_by_a_list_and_a_rate(
        self, lists: list[object], rates: list[object], throttled: bool
    ) -> None:
        copy = measure(reading(move(), lists=tuple(lists), rates=tuple(rates)))
        assert copy.throttled is throttled


class TestSlowest:
    def test_it_has_the_least_share(self) -> None:
        held = sizes(b1={("t", 0): 100, ("t", 1): 1000}, b4={("t", 0): 30, ("t", 1): 200})
        report = measure_moves(reading(move(), move(partition=1), sizes=held))
        assert report.slowest is not None
        assert report.slowest[0].partition == 1

    def test_a_cause_comes_first(self) -> None:
        held = sizes(b1={("t", 0): 100, ("t", 1): 100}, b4={("t", 0): 30, ("t", 1): 0})
        throttles = {"rates": (rate(4, 0, FOLLOWER),), "lists": (listed("t", "0:4"),)}
        report = measure_moves(reading(move(), move(partition=1), sizes=held, **throttles))
        assert report.slowest is not None
        assert (report.slowest[0].partition, report.slowest[1].cause) == (0, Cause.RATE_ZERO)
