"""What makes a run of moves pause: partitions that are worse off than at its start."""

from __future__ import annotations

from dataclasses import replace

from readings import BROKERS, reading

from reconciler.model.moves import MovesReading, PartitionState
from reconciler.moves.running.health import Health

PLACE = ("t", 0)


def shown(leader: int, in_sync: tuple[int, ...], dead: tuple[int, ...] = ()) -> MovesReading:
    """Return a reading of one partition on brokers 1 and 2."""
    brokers = tuple(replace(each, alive=each.id not in dead) for each in BROKERS)
    return reading(partitions={"t": (PartitionState((1, 2), leader, in_sync),)}, brokers=brokers)


def start() -> Health:
    """Return the health of a run that began when all was well."""
    health = Health({"t": 2})
    assert health.check(shown(1, (1, 2)), (), {}) == []
    return health


def test_a_partition_without_a_leader_pauses_even_if_its_replicas_count_as_in_sync() -> None:
    assert start().check(shown(-1, (1, 2)), (), {}) == ["t partition 0 has no leader"]


def test_a_dead_broker_is_named_with_the_worst_that_follows() -> None:
    said = "broker 2 is not alive: 1 partition lacks it, 1 of them "
    below = start().check(shown(1, (1,), dead=(2,)), (), {})
    assert below == [f"{said}below min.insync.replicas"]
    assert start().check(shown(-1, (1,), dead=(2,)), (), {}) == [f"{said}without a leader"]


def test_what_moves_may_lack_its_new_replicas_but_not_those_that_writes_need() -> None:
    assert Health({"t": 1}).check(shown(1, (1, 2)), (), {}) == []
    relaxed, strict = Health({"t": 1}), start()
    relaxed.check(shown(1, (1, 2)), (), {})
    assert relaxed.check(shown(1, (1,)), [PLACE], {}) == []
    said = "t partition 0 has fewer in-sync replicas than min.insync.replicas"
    assert strict.check(shown(1, (1,)), [PLACE], {}) == [said]


def test_a_partition_that_was_offline_at_the_start_may_get_better_step_by_step() -> None:
    health = Health({"t": 2})
    assert health.check(shown(-1, (1,)), (), {}) == []
    assert health.check(shown(1, (1,)), (), {}) == []
    assert health.check(shown(1, (1, 2)), (), {}) == []
    assert health.check(shown(1, (1,)), (), {}) != []  # healed, it counts as any other


def test_what_leaves_a_dead_broker_does_not_pause_the_run_that_moves_it() -> None:
    health = start()
    assert health.check(shown(-1, (1, 2), dead=(1, 2)), (), {PLACE: {1, 2}}) == []
