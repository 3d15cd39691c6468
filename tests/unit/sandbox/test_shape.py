"""Shapes: counts dealt to racks, and snapshots read or refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reconciler.errors import SandboxError
from reconciler.model import Broker
from reconciler.sandbox.shape import (
    choose_controller_id,
    describe_shape,
    read_shape,
    spread_brokers,
)

if TYPE_CHECKING:
    from pathlib import Path

EXPECTED = 'expected {"brokers": [{"id": 1, "rack": "a"}, …]}, as `reconciler snapshot` writes'


def test_brokers_are_dealt_to_racks_in_turn() -> None:
    assert spread_brokers(5, 2) == (
        Broker(1, "rack0"),
        Broker(2, "rack1"),
        Broker(3, "rack0"),
        Broker(4, "rack1"),
        Broker(5, "rack0"),
    )


@pytest.mark.parametrize(("brokers", "racks"), [(0, 0), (0, 1), (2, 3), (3, 0)])
def test_counts_that_make_no_cluster_are_refused(brokers: int, racks: int) -> None:
    with pytest.raises(SandboxError, match=f"{brokers} brokers cannot fill {racks} racks"):
        spread_brokers(brokers, racks)


def test_a_snapshot_gives_ids_and_racks_in_the_order_of_ids(tmp_path: Path) -> None:
    file = tmp_path / "snapshot.json"
    file.write_text('{"topics": [1], "brokers": [{"id": 12, "rack": "é", "x": 1}, {"id": 0}]}')
    assert read_shape(file) == (Broker(0, None), Broker(12, "é"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not JSON: Expecting value: line 1 column 1 (char 0); " + EXPECTED),
        ("[" * 100_000, "is not JSON: "),
        ("[]", "names no brokers; " + EXPECTED),
        ('{"brokers": {}}', "names no brokers; " + EXPECTED),
        ('{"brokers": []}', "names no brokers; " + EXPECTED),
        ('{"brokers": [7]}', ": brokers[0] is no object; " + EXPECTED),
        ('{"brokers": [{}]}', ": brokers[0].id is None; broker ids are whole numbers from 0"),
        ('{"brokers": [{"id": true}]}', ": brokers[0].id is True; broker ids are"),
        ('{"brokers": [{"id": 1.0}]}', ": brokers[0].id is 1.0; broker ids are"),
        ('{"brokers": [{"id": -1}]}', ": brokers[0].id is -1; broker ids are"),
        ('{"brokers": [{"id": 2147483648}]}', ": brokers[0].id is 2147483648; broker ids are"),
        ('{"brokers": [{"id": 1, "rack": 3}]}', ": brokers[0].rack is 3; a rack is a name, or"),
        ('{"brokers": [{"id": 1, "rack": ""}]}', ": brokers[0].rack is ''; a rack is a name, or"),
        ('{"brokers": [{"id": 1}, {"id": 1}]}', "names broker 1 twice; ids are unique"),
    ],
)
def test_a_bad_snapshot_is_refused_with_its_reason(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "snapshot.json"
    file.write_text(text)
    with pytest.raises(SandboxError) as refusal:
        read_shape(file)
    assert str(refusal.value).startswith(f"{file}")
    assert message in str(refusal.value)


@pytest.mark.parametrize(("name", "reason"), [("none", "No such file"), (".", "Is a directory")])
def test_an_unreadable_snapshot_is_refused(tmp_path: Path, name: str, reason: str) -> None:
    with pytest.raises(SandboxError, match=f"cannot read .*: {reason}"):
        read_shape(tmp_path / name)


def test_text_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "snapshot.json"
    file.write_bytes(b'{"brokers": [{"id": 1, "rack": "\xff"}]}')
    with pytest.raises(SandboxError, match="is not JSON"):
        read_shape(file)


def test_the_controller_takes_an_id_that_no_broker_has() -> None:
    assert choose_controller_id((Broker(1), Broker(3000), Broker(3001))) == 3002


@pytest.mark.parametrize(
    ("brokers", "words"),
    [
        ((Broker(1),), "1 broker without racks"),
        ((Broker(1, "a"),), "1 broker in 1 rack"),
        ((Broker(1, "a"), Broker(2), Broker(3, "b")), "3 brokers in 2 racks"),
    ],
)
def test_a_shape_is_told_in_words(brokers: tuple[Broker, ...], words: str) -> None:
    assert describe_shape(brokers) == words
