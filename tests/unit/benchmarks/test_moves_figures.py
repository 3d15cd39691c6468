"""What the comparison of moves says about a cluster, from looks at it."""

from __future__ import annotations

import runpy
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
FIGURES = runpy.run_path(str(ROOT / "benchmarks" / "peers" / "moves_figures.py"))

MIB = 1 << 20
LOOK = FIGURES["Look"](
    rows={"orders": [[1, 2], [2, 3], [3, 1]]},
    leaders={"orders": [1, 2, 3]},
    sizes={"orders": [4 * MIB, 2 * MIB, MIB]},
    racks={1: "a", 2: "b", 3: "c"},
    configs=[("broker 1", "min.insync.replicas")],
    in_flight=0,
)


def test_copies_are_counted_with_the_bytes_that_their_partition_had_before() -> None:
    copied = {("orders", 0, 3), ("orders", 2, 2)}
    assert FIGURES["tell_copied"](copied, LOOK) == "2 replicas, 5.0 MiB"
    assert FIGURES["tell_copied"](set(), LOOK) == "nothing"


def test_balance_counts_replicas_leaders_and_bytes() -> None:
    assert FIGURES["tell_balance"](LOOK) == "2 replicas, 1 leaders, 3..6 MiB per broker"


def test_balance_counts_a_broker_that_has_nothing_but_not_the_drained_one() -> None:
    drained = replace(LOOK, rows={"orders": [[1, 2], [2, 1], [1, 2]]})
    assert FIGURES["tell_balance"](drained).startswith("0..3 replicas, 0..2 leaders")
    assert FIGURES["tell_balance"](drained, without=3).startswith("3 replicas, 1..2 leaders")


def test_two_replicas_in_a_rack_are_named_where_racks_are_enough() -> None:
    crowded = replace(LOOK, racks={1: "a", 2: "a", 3: "c"})
    assert FIGURES["tell_balance"](crowded).endswith("; 1 partition with two replicas in a rack")
    one_rack = replace(LOOK, racks={1: "a", 2: "a", 3: "a"})
    assert "rack" not in FIGURES["tell_balance"](one_rack)


@pytest.mark.parametrize(
    ("drained", "replication", "undone"),
    [
        (None, None, []),
        (3, None, ["2 replicas still on broker 3"]),
        (4, None, []),
        (None, 2, []),
        (None, 3, ["3 partitions without 3 replicas"]),
    ],
)
def test_work_that_is_not_done_is_named(
    drained: int | None, replication: int | None, undone: list[str]
) -> None:
    assert FIGURES["list_undone"](LOOK, drained, replication) == undone


def test_nothing_is_left_where_only_rows_changed() -> None:
    after = replace(LOOK, rows={"orders": [[1, 3], [2, 1], [3, 2]]})
    assert FIGURES["list_left"](LOOK, after) == []


def test_throttles_leaders_moves_and_configs_that_were_not_there_before_are_left() -> None:
    throttled = [
        ("orders", "leader.replication.throttled.replicas"),
        ("orders", "follower.replication.throttled.replicas"),
        ("broker 1", "leader.replication.throttled.rate"),
        ("broker 2", "follower.replication.throttled.rate"),
        ("broker 3", "cordoned.log.dirs"),
    ]
    after = replace(
        LOOK,
        leaders={"orders": [1, 3, 3]},
        configs=sorted([*LOOK.configs, *throttled]),
        in_flight=2,
    )
    assert FIGURES["list_left"](LOOK, after) == [
        "2 moves in flight",
        "throttle lists of 1 topic",
        "throttle rates of 2 brokers",
        "1 leader not preferred",
        "cordoned.log.dirs of broker 3",
    ]
