"""The judge of the records notices everything that must not happen."""

from __future__ import annotations

import pytest

from under_traffic.traffic import Verdict, judge

PLACE = ("shop.orders", 0)


def faults(acknowledged: list[int], there: list[int], consumed: list[int]) -> list[str]:
    verdict = Verdict()
    judge(verdict, {PLACE: acknowledged}, {PLACE: there}, {PLACE: consumed})
    return verdict.faults


def test_what_is_as_it_should_be_is_no_fault() -> None:
    assert faults([1, 2, 3], [1, 2, 3], [1, 2, 3]) == []
    assert faults([1, 2], [1, 2, 3], [2, 1, 1]) == []


@pytest.mark.parametrize(
    ("there", "said"),
    [
        ([1, 2], "shop.orders-0: 1 acknowledged, such as 3"),
        ([1, 3, 2], "shop.orders-0: 3 where 2 is expected"),
        ([1, 1, 2, 3], "shop.orders-0: 1 where 2 is expected"),
        ([], "shop.orders-0: 3 acknowledged, such as 1"),
    ],
)
def test_what_is_lost_doubled_or_out_of_order_is_a_fault(there: list[int], said: str) -> None:
    assert said in faults([1, 2, 3], there, [1, 2, 3])


def test_what_the_consumer_did_not_see_is_a_fault() -> None:
    assert faults([1, 2, 3], [1, 2, 3], [1, 3]) == ["shop.orders-0: 1 not seen by the consumer"]
