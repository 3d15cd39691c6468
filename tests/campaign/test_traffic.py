"""The judge of the records notices everything that must not happen."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from kafka.record import MemoryRecordsBuilder

from campaign.moves.copies import describe_copies
from campaign.moves.traffic import Verdict, judge

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


def test_what_is_doubled_is_listed() -> None:
    verdict = Verdict()
    judge(verdict, {PLACE: [1, 2]}, {PLACE: [1, 2, 2]}, {PLACE: [1, 2]})
    assert verdict.doubled == [("shop.orders-0", 2)]


def test_the_copies_of_a_record_have_their_epochs(tmp_path: Path) -> None:
    """As two brokers have them: with ballast of another key, and the end of a batch missing."""
    logs = b""
    for offset, epoch, sequence, key in ((0, 0, 0, b"k"), (1, 0, 0, b"x"), (2, 1, 0, b"k")):
        builder = MemoryRecordsBuilder(
            2, 0, 1000, producer_id=7, producer_epoch=epoch, base_sequence=sequence
        )
        builder.append(0, key, struct.pack(">Qd", 5, 0.0))
        builder.close()
        logs += struct.pack(">q", offset) + bytes(builder.buffer())[8:]
    for broker, data in (("1", logs), ("2", logs + logs[:40])):
        folder = tmp_path / broker / "shop.orders-0"
        folder.mkdir(parents=True)
        (folder / "00000000000000000000.log").write_bytes(data)
    assert describe_copies(tmp_path, "shop.orders-0", b"k", 5) == (
        "shop.orders-0: 5 is at offset 0 by producer 7, epoch 0, sequence 0; "
        "offset 2 by producer 7, epoch 1, sequence 0"
    )
