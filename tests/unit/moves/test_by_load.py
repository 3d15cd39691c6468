"""A balance by load: which rows move, what stays, what is said, and what cannot be asked for."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from shorthand import brokers, cluster, may_move, spec, topic

from reconciler.errors import Location, UsageError
from reconciler.model.cluster import Assignment, LogDirectory
from reconciler.model.moves import LoadAim, LoadKind, PlannedBalance
from reconciler.model.plan import Plan
from reconciler.moves.rebalance import plan_rebalance
from reconciler.spec.entry import ClusterEntry

ENTRY = ClusterEntry("prod", Location("topics/clusters.yaml", 2), moves=may_move())
FOUR = brokers(None, None, None, None)
DISK = LoadAim((LoadKind.DISK,))


def live(*found: Any, nodes: Any = FOUR, **state: Any) -> Any:
    disks = {b.id: (LogDirectory("/data", 10**9, 9 * 10**8, 0),) for b in nodes}
    return replace(cluster(*found, nodes=nodes), directories=disks, **state)


def rebalance(
    state: Any, *specs: Any, aim: LoadAim = DISK, entry: ClusterEntry = ENTRY, **asked: Any
) -> Plan:
    return plan_rebalance(entry, specs, state, aim=aim, **asked)


def rows_after(plan: Plan, state: Any) -> dict[str, Assignment]:
    after = {each.name: each.after.assignment for each in plan.topics if each.after}
    return {name: after.get(name, live.assignment) for name, live in state.topics.items()}


def measure(plan: Plan, state: Any) -> Counter[int]:
    """Return the bytes on each broker after a plan."""
    held: Counter[int] = Counter()
    for name, rows in rows_after(plan, state).items():
        for row, size in zip(rows, state.topics[name].size_bytes, strict=True):
            held.update(dict.fromkeys(row, size))
    return held


def balance_of(plan: Plan) -> PlannedBalance:
    assert plan.moves is not None
    assert plan.moves.balance is not None
    return plan.moves.balance


def make_uneven() -> Any:
    """Eight topics of one partition; the first broker has the large ones."""
    big = [topic("1,2", name=f"big{n}", size_bytes=(100,)) for n in range(4)]
    small = [topic("3,4", name=f"small{n}", size_bytes=(20,)) for n in range(4)]
    return live(*big, *small)


def test_brokers_come_near_their_share_of_bytes_and_a_second_plan_is_empty() -> None:
    state = make_uneven()
    made = rebalance(state)
    held = measure(made, state)
    assert sum(held.values()) == 960
    assert all(216 <= held[broker] <= 264 for broker in (1, 2, 3, 4))
    moved = {name: replace(state.topics[name], assignment=rows)
             for name, rows in rows_after(made, state).items()}  # fmt: skip
    again = rebalance(replace(state, topics=moved))
    assert again.topics == ()
    assert again.moves is not None
    assert again.moves.replicas == 0


def test_the_bound_says_that_no_plan_copies_less() -> None:
    state = make_uneven()
    made = rebalance(state)
    assert made.moves is not None
    assert made.moves.forecast is not None
    least = balance_of(made).least_bytes
    assert least is not None
    assert 0 < least <= made.moves.forecast.copied_bytes
    # Brokers 1 and 2 have 400 bytes, and at most 252 are within 5 % of their share.
    assert least >= 2 * (400 - 252)


def test_a_cluster_within_the_band_stays_though_it_is_not_even() -> None:
    state = live(
        topic("1,2", name="a", size_bytes=(100,)), topic("3,4", name="b", size_bytes=(95,))
    )
    made = rebalance(state)
    assert made.topics == ()
    assert all(not band.outside for band in balance_of(made).bands)


def test_the_band_is_as_wide_as_asked_for() -> None:
    state = live(
        *(topic(f"{1 + n % 2},{2 - n % 2}", name=f"a{n}", size_bytes=(11,)) for n in range(10)),
        *(topic(f"{3 + n % 2},{4 - n % 2}", name=f"b{n}", size_bytes=(10,)) for n in range(10)),
    )
    assert rebalance(state).topics == ()
    aim = replace(DISK, within_percent=2)
    narrow = rebalance(state, aim=aim)
    assert measure(narrow, state)[1] < 110
    assert balance_of(narrow).bands[0].outside == (1, 2, 3, 4)


def test_larger_disks_take_a_larger_share() -> None:
    state = make_uneven()
    entry = replace(ENTRY, capacity={1: 1, 2: 1, 3: 2, 4: 2})
    held = measure(rebalance(state, entry=entry), state)
    assert held[3] > 1.5 * held[1]
    assert held[4] > 1.5 * held[2]


def test_without_a_written_capacity_that_of_the_directories_counts() -> None:
    state = make_uneven()
    sizes = {1: 10**9, 2: 10**9, 3: 2 * 10**9, 4: 2 * 10**9}
    disks = {b: (LogDirectory("/data", size, size, 0),) for b, size in sizes.items()}
    held = measure(rebalance(replace(state, directories=disks)), state)
    assert held[3] > 1.5 * held[1]


def test_no_broker_takes_more_than_keep_free_leaves_it() -> None:
    state = make_uneven()
    disks = {1: (2000, 1600), 2: (2000, 1600), 3: (2000, 370), 4: (2000, 1900)}
    held = {b: (LogDirectory("/data", *sizes, 0),) for b, sizes in disks.items()}
    state = replace(state, directories=held)
    made = rebalance(state)
    assert made.moves is not None
    assert made.moves.forecast is not None
    taken = {each.broker: each.in_bytes for each in made.moves.forecast.traffic}
    # 15 % of 2,000 bytes stay free, so broker 3 has room for 70: no large partition fits.
    assert taken.get(3, 0) <= 70
    assert not made.refusals
    assert measure(made, state)[4] >= 180


@pytest.mark.parametrize(("first", "then"), [("disk", "write"), ("write", "disk")])
def test_of_bands_that_exclude_each_other_that_of_the_load_named_first_is_reached(
    first: str, then: str
) -> None:
    loads = {"a": (200, 20), "b": (100, 60), "c": (100, 80)}
    found = [
        topic("1", name=name, size_bytes=(size,), write_bytes_per_s=(rate,))
        for name, (size, rate) in loads.items()
    ]
    state = live(*found, nodes=brokers(None, None))
    made = rebalance(state, aim=LoadAim((LoadKind(first), LoadKind(then))))
    moved = rows_after(made, state)
    together = {name for name in loads if moved[name] == moved["b"]}
    assert together == ({"b", "c"} if first == "disk" else {"a", "b"})
    assert balance_of(made).unreached


def test_topics_stay_as_even_as_they_are() -> None:
    wide = topic("1,2 2,3 3,4 4,1", name="wide", size_bytes=(10, 10, 10, 10))
    state = live(wide, *(topic("1,2", name=f"t{n}", size_bytes=(50,)) for n in range(6)))
    after = rows_after(rebalance(state), state)["wide"]
    assert Counter(b for row in after for b in row) == {1: 2, 2: 2, 3: 2, 4: 2}


def test_replicas_keep_their_racks() -> None:
    nodes = brokers("a", "a", "b", "b")
    state = live(*(topic("1,3", name=f"t{n}", size_bytes=(50,)) for n in range(8)), nodes=nodes)
    made = rebalance(state)
    assert measure(made, state)[2] == measure(made, state)[4] == 200
    for (row,) in rows_after(made, state).values():
        assert len({row[0] <= 2, row[1] <= 2}) == 2


def test_manual_rows_and_ignored_topics_stay_and_count() -> None:
    state = make_uneven()
    entry = replace(ENTRY, ignore=("big0",))
    by_hand = spec(name="big1", assignment=((1, 2),))
    made = rebalance(state, by_hand, entry=entry)
    after = rows_after(made, state)
    assert after["big0"] == after["big1"] == ((1, 2),)
    held = measure(made, state)
    assert max(held.values()) <= 264


def test_leaders_alone_even_the_writes_and_copy_nothing() -> None:
    state = live(*(topic("1,2", name=f"t{n}", write_bytes_per_s=(100,)) for n in range(8)))
    aim = LoadAim((LoadKind.WRITE,), leaders_only=True)
    made = rebalance(state, aim=aim)
    led = Counter(row[0] for (row,) in rows_after(made, state).values())
    # Brokers 3 and 4 hold nothing, so they can lead nothing.
    assert led == {1: 4, 2: 4}
    assert made.moves is not None
    assert made.moves.replicas == 0
    assert made.moves.leader_changes == 4
    assert not balance_of(made).unreached


def test_reads_count_what_followers_fetch_as_well() -> None:
    rates = {"write_bytes_per_s": (100,), "read_bytes_per_s": (0,)}
    wide = [topic("1,2,3", name=f"wide{n}", **rates) for n in range(3)]
    state = live(*wide, *(topic("2,1", name=f"t{n}", **rates) for n in range(6)))
    made = rebalance(state, aim=LoadAim((LoadKind.READ,), leaders_only=True))
    (band,) = balance_of(made).bands
    assert band.of_leaders
    assert {each.broker: each.before for each in band.brokers} == {1: 600, 2: 600, 3: 0}


def test_brokers_that_are_named_take_replicas_up_to_their_share() -> None:
    state = live(*(topic("1,2", name=f"t{n}", size_bytes=(10,)) for n in range(20)))
    made = rebalance(state, brokers=[3])
    held = measure(made, state)
    assert held[4] == 0
    assert held[3] == 100


def test_an_amount_that_nobody_knows_is_an_error() -> None:
    state = live(topic("1,2", name="a"), topic("1,2", name="b"))
    with pytest.raises(UsageError, match="no size_bytes is known of any partition"):
        rebalance(state)
    with pytest.raises(UsageError, match="bytes on disk do not move with leaders"):
        rebalance(state, aim=replace(DISK, leaders_only=True))


def test_by_count_the_smallest_partitions_move() -> None:
    sizes = [1, 1, 1, 1, 900, 900, 900, 900]
    found = [topic("1,2", name=f"t{n}", size_bytes=(size,)) for n, size in enumerate(sizes)]
    state = live(*found)
    made = rebalance(state, aim=LoadAim((LoadKind.COUNT,)))
    held = Counter(b for rows in rows_after(made, state).values() for row in rows for b in row)
    assert held == {1: 4, 2: 4, 3: 4, 4: 4}
    copied = {name for name, ((old, new),) in _pair(made) if set(old) != set(new)}
    assert copied == {"t0", "t1", "t2", "t3"}


def _pair(plan: Plan) -> list[tuple[str, list[tuple[Any, Any]]]]:
    return [
        (each.name, list(zip(each.before.assignment, each.after.assignment, strict=True)))
        for each in plan.topics
        if each.before and each.after
    ]


def test_a_limit_of_bytes_makes_what_helps_most_and_says_that_it_ended_there() -> None:
    state = make_uneven()
    whole, part = rebalance(state), rebalance(state, max_bytes=150)
    assert whole.moves is not None
    assert part.moves is not None
    assert whole.moves.forecast is not None
    assert part.moves.forecast is not None
    assert part.moves.forecast.copied_bytes <= 150 < whole.moves.forecast.copied_bytes
    before, after = measure(rebalance(state, max_bytes=0), state), measure(part, state)
    assert sum(held**2 for held in after.values()) < sum(held**2 for held in before.values())
    (note,) = [each for each in part.notes if each.rule == "rebalance-limited"]
    assert note.what == "some brokers stay outside their bands with 150 B copied"


def test_without_sizes_the_fewest_replicas_move() -> None:
    state = live(*(topic("1,2", name=f"t{n}") for n in range(8)))
    made = rebalance(state, aim=LoadAim())
    assert made.moves is not None
    assert made.moves.replicas == 8
    assert balance_of(made).least_bytes is None
    with pytest.raises(UsageError, match="sizes of partitions are unknown"):
        rebalance(state, aim=LoadAim(), max_bytes=10)


def test_relief_moves_what_is_above_the_limit_and_nothing_else() -> None:
    state = make_uneven()
    disks = {b: (LogDirectory("/data", 430, 430 - held, 0),)
             for b, held in {1: 400, 2: 400, 3: 80, 4: 80}.items()}  # fmt: skip
    state = replace(state, directories=disks)
    aim = replace(DISK, over_percent=80)
    made = rebalance(state, aim=aim)
    held = measure(made, state)
    assert held[1] == held[2] == 300
    assert made.moves is not None
    assert made.moves.replicas == 2
    assert made.moves.leader_changes <= 2
    assert rebalance(state, aim=replace(DISK, over_percent=95)).topics == ()
    with pytest.raises(UsageError, match="broker 1 does not tell how large its disks are"):
        rebalance(replace(state, directories={}), aim=aim)


def test_a_cluster_of_which_nothing_may_move_has_an_empty_plan() -> None:
    entry = replace(ENTRY, ignore=("*",))
    plan = rebalance(make_uneven(), entry=entry)
    assert plan.topics == ()
    assert balance_of(plan).unreached
