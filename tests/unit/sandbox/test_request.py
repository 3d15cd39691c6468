"""Shapes: counts dealt to racks, and snapshots read or refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.errors import SandboxError, SnapshotError
from reconciler.model.cluster import Broker
from reconciler.sandbox.request import (
    choose_controller_ids,
    describe_shape,
    read_shape,
    spread_brokers,
)


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
    file.write_text('{"brokers": [{"id": 12, "rack": "é"}, {"id": 0}]}')
    assert read_shape(file) == (Broker(0, None), Broker(12, "é"))


def test_a_snapshot_that_is_none_is_refused_with_its_reason(tmp_path: Path) -> None:
    file = tmp_path / "snapshot.json"
    file.write_text('{"brokers": [{"id": 1}, {"id": 1}]}')
    with pytest.raises(SnapshotError, match="broker 1 is there already, as brokers"):
        read_shape(file)


def test_controllers_take_ids_that_no_broker_has() -> None:
    brokers = (Broker(1), Broker(3000), Broker(3002))
    assert choose_controller_ids(brokers) == (3001,)
    assert choose_controller_ids(brokers, 3) == (3001, 3003, 3004)


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
    assert describe_shape(brokers, controllers=3) == f"{words}, 3 controllers"
