"""What a rate reaches, and which throttles may be removed."""

from __future__ import annotations

import pytest
from readings import FOLLOWER, LEADER, default, listed, move, rate, reading

from reconciler.model.cluster import RateSource, Replicas, ThrottleList, ThrottleRate
from reconciler.model.moves import DefaultRate, PartitionState
from reconciler.model.throttles import find_leftovers
from reconciler.moves.decisions import (
    find_effect,
    find_settlement,
    find_traces,
)

AFTER = (4, 2, 3)


def shown(*rows: Replicas, in_sync: Replicas | None = None, leader: int | None = None) -> object:
    """Return the partitions of `t`; they are healthy unless `in_sync` and `leader` are given."""
    return {
        "t": tuple(
            PartitionState(
                row,
                row[0] if leader is None else leader,
                row if in_sync is None else in_sync,
            )
            for row in rows
        )
    }


class TestEffect:
    @pytest.mark.parametrize(
        ("lists", "limited"),
        [
            ((), 0),
            ((listed("t", "0:4"),), 1),
            ((listed("t", "0:1", LEADER),), 1),
            ((listed("t", "*"),), 1),
            ((listed("t", "0:2", LEADER),), 0),
            ((listed("t", "1:4"), listed("u", "0:4")), 0),
            ((listed("t", "0:5"),), 0),
        ],
    )
    def test_a_move_is_limited_at_its_destination_or_at_its_leader(
        self, lists: tuple[ThrottleList, ...], limited: int
    ) -> None:
        effect = find_effect(reading(move(), lists=lists))
        assert (len(effect.limited), len(effect.unlimited)) == (limited, 1 - limited)

    def test_every_copy_of_a_limited_move_is_limited(self) -> None:
        both = move(replicas=(4, 5, 2, 3, 1), adding=(4, 5))
        assert find_effect(reading(both, lists=(listed("t", "0:4"),))).limited == ()
        assert find_effect(reading(both, lists=(listed("t", "0:4,0:5"),))).limited == (both,)

    def test_the_lower_of_two_rates_is_the_one_that_limits(self) -> None:
        assert find_effect(reading()).rate is None
        rates = (rate(None, 9, LEADER), rate(None, 7, FOLLOWER))
        assert find_effect(reading(rates=rates)).rate == 7

    def test_brokers_with_a_rate_of_their_own_are_named(self) -> None:
        shown = ThrottleRate(1, FOLLOWER, 7, RateSource.CLUSTER_DEFAULT)
        static = ThrottleRate(2, FOLLOWER, 7, RateSource.STATIC)
        own = rate(3, 5)
        found = find_effect(reading(rates=(rate(None, 7), shown, static, own)))
        assert found.own == (static, own)

    def test_lists_that_nothing_uses_are_named(self) -> None:
        used, idle = listed("t", "0:4"), listed("u", "*", LEADER)
        found = find_effect(reading(move(), rates=(rate(5, 7),), lists=(used, idle)))
        assert found.idle == (idle,)


class TestSettlement:
    def test_what_nothing_uses_is_removed(self) -> None:
        lists = (listed("t", "0:4"), listed("t", "0:1", LEADER), listed("u", "0:5"))
        found = find_settlement(reading(rates=default(7), lists=lists))
        assert (found.topics, found.removes_rate, found.kept) == (("t", "u"), True, ())

    def test_a_move_that_names_its_replicas_is_waited_for(self) -> None:
        lists = (listed("t", "0:4"), listed("u", "0:5"))
        found = find_settlement(reading(move(), rates=default(7), lists=lists))
        assert found.awaited == (move(),)
        assert (found.topics, found.removes_rate, found.rate_used) == (("u",), False, True)

    @pytest.mark.parametrize(("lists", "removes_rate"), [((listed("t", "*"),), False), ((), True)])
    def test_moves_of_others_are_not_waited_for_and_keep_what_they_use(
        self, lists: tuple[ThrottleList, ...], removes_rate: bool
    ) -> None:
        found = find_settlement(reading(move(), rates=default(7), lists=lists))
        assert (found.awaited, found.foreign) == ((), (move(),))
        assert (found.topics, found.removes_rate) == ((), removes_rate)
        assert found.rate_used is not removes_rate

    def test_throttles_that_reconciler_never_sets_stay(self) -> None:
        found = find_settlement(reading(rates=(rate(5, 7),), lists=(listed("t", "*"),)))
        assert (found.removable, found.removes_rate) == ((), False)
        assert [(each.topic, each.broker) for each in found.kept] == [(None, 5), ("t", None)]

    @pytest.mark.parametrize("amounts", [(7, 7), (8, 7), (7, 9), (7, None), (None, 7)])
    def test_a_default_that_reconciler_did_not_set_stays(
        self, amounts: tuple[int | None, int | None]
    ) -> None:
        """The number alone says nothing: somebody may have chosen the same one, to stay."""
        sides = zip((LEADER, FOLLOWER), amounts, strict=True)
        rates = tuple(rate(None, each, side) for side, each in sides if each is not None)
        found = find_settlement(reading(move(), rates=rates, lists=(listed("t", "0:4"),)))
        assert (found.removes_rate, found.rate_used) == (False, False)
        assert found.standing == DefaultRate(*amounts)
        assert find_effect(reading(rates=rates)).standing
        assert find_leftovers(rates, (), ()) == ()

    def test_a_pause_does_not_stay(self) -> None:
        found = find_settlement(reading(rates=default(0)))
        assert (found.removes_rate, found.standing) == (True, None)


class TestTraces:
    def test_a_topic_as_it_should_be_has_none(self) -> None:
        found = reading(partitions=shown(AFTER, (2, 3, 4)))
        assert find_traces(found, ["t", "gone"], "prod-eu") == ()

    def test_uneven_rows_and_other_leaders_are_named(self) -> None:
        found = reading(partitions=shown(AFTER, (2, 3), leader=2))
        said = [(each.what, each.way_out) for each in find_traces(found, ["t"], "prod-eu")]
        assert said == [
            ("its partitions have 2 to 3 replicas", "apply the plan of moves again"),
            ("preferred leaders do not lead partitions 0", "reconciler elect --cluster prod-eu"),
        ]

    def test_a_partition_without_a_leader_is_nothing_to_elect(self) -> None:
        found = reading(partitions=shown(AFTER, leader=-1))
        assert find_traces(found, ["t"], "prod-eu") == ()
