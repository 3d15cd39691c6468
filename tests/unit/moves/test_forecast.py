"""What a plan of moves costs: bytes, time, the least rate, and the peaks of log directories."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from shorthand import HERE, brokers, cluster, plan, rows, topic

from reconciler.model.cluster import ClusterState, LogDirectory, TopicState
from reconciler.model.moves import BrokerTraffic, DirectoryPeak, Forecast, MovePolicy, PlannedMoves
from reconciler.model.plan import Plan, PlannedTopic, TopicImage
from reconciler.moves import copying
from reconciler.moves.forecast import find_urgent, forecast_moves, list_row_moves, measure_fullness

RATE = 100
POLICY = MovePolicy(frozenset(), RATE)
NODES = brokers(*[None] * 6)


def state(*topics: TopicState, **more: object) -> ClusterState:
    return replace(cluster(*topics, nodes=NODES), **more)


def planned(live: ClusterState, targets: dict[str, str], policy: MovePolicy = POLICY) -> Plan:
    """Plan these rows for topics of a state."""
    topics = []
    for name, text in sorted(targets.items()):
        before = TopicImage(f"id-{name}", live.topics[name].assignment, {})
        topics.append(PlannedTopic(name, HERE, before, replace(before, assignment=rows(text))))
    return Plan("prod", "id", NODES, tuple(topics), moves=PlannedMoves(policy, 0, 0, 0))


def foresee(
    before: str, after: str, sizes: tuple[int, ...], policy: MovePolicy = POLICY, **more: object
) -> Forecast:
    """Forecast the moves of one topic."""
    found = {
        key: more.pop(key) for key in ("write_bytes_per_s", "leaders", "in_sync") if key in more
    }
    live = state(topic(before, "a", size_bytes=sizes, **found), **more)
    return forecast_moves(planned(live, {"a": after}, policy), live)


def disks(*each: tuple[int, int], replicas: tuple[int, ...] = ()) -> tuple[LogDirectory, ...]:
    """Return log directories of a size and a use."""
    counts = replicas or (None,) * len(each)
    return tuple(
        LogDirectory(f"/data{number}", total, total - used, count)
        for number, ((total, used), count) in enumerate(zip(each, counts, strict=True), 1)
    )


# Bytes.


def test_bytes_are_those_of_added_replicas() -> None:
    found = foresee("1,2 2,3 1,2", "1,4 2,3 1,2,5,6", (1000, 500, 30))
    assert found.copied_bytes == 1000 + 2 * 30
    assert found.sizes == {"a": (1000, 500, 30)}


def test_bytes_come_from_the_leader_and_not_from_the_broker_that_is_left() -> None:
    found = foresee("1,2", "1,3", (1000,))
    assert found.traffic == (BrokerTraffic(1, 0, 1000), BrokerTraffic(3, 1000, 0))


def test_the_present_leader_sends_where_it_is_known() -> None:
    found = foresee("1,2", "1,3", (1000,), leaders=(2,))
    assert found.traffic == (BrokerTraffic(2, 0, 1000), BrokerTraffic(3, 1000, 0))


def test_the_first_living_replica_sends_where_leaders_are_unknown() -> None:
    dead = (replace(NODES[0], alive=False), *NODES[1:])
    found = foresee("1,2", "2,3", (1000,), brokers=dead)
    assert found.traffic == (BrokerTraffic(2, 0, 1000), BrokerTraffic(3, 1000, 0))


def test_a_new_order_and_fewer_replicas_cost_nothing() -> None:
    found = foresee("1,2,3 1,2,3", "3,2,1 1,2", (1000, 1000))
    assert (found.copied_bytes, found.seconds, found.traffic) == (0, 0, ())


def test_a_refused_topic_costs_nothing() -> None:
    live = state(topic("1,2", "a", size_bytes=(1000,)))
    made = planned(live, {"a": "1,2"})
    assert forecast_moves(made, live).copied_bytes == 0


# Time.


def test_one_copy_takes_its_bytes_by_the_rate() -> None:
    assert foresee("1", "2", (1050,)).seconds == 11


def test_copies_of_one_leader_share_its_rate() -> None:
    assert foresee("1 1", "2 3", (1000, 1000)).seconds == 20


def test_copies_to_one_broker_share_its_rate() -> None:
    assert foresee("1 2", "3 3", (1000, 1000)).seconds == 20


def test_copies_of_other_brokers_do_not_wait() -> None:
    assert foresee("1 2", "3 4", (1000, 1000)).seconds == 10


def test_the_rate_that_one_copy_cannot_use_goes_to_the_others() -> None:
    """Broker 1 sends to 4 and 5; 4 receives two others, so 1 sends twice as fast to 5."""
    found = foresee("1 1 2 3", "4 5 4 4", (1000, 2000, 1000, 1000))
    assert found.seconds == 30


def test_the_largest_partition_is_the_tail() -> None:
    """The small ones share brokers 1 and 2 with it, then it runs alone at no higher rate."""
    found = foresee("1 1 1", "2 3 4", (9000, 30, 30))
    assert found.seconds == 91


def test_what_rounding_leaves_of_a_copy_takes_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both copies of the third row end at once, but for the last bits of their floats."""
    passes = Counter[str]()

    def share(*given: object) -> None:
        passes["passes"] += 1
        assert passes["passes"] <= 100, "time stands still"
        share_rate(*given)

    share_rate = copying._share_rate
    monkeypatch.setattr(copying, "_share_rate", share)
    before, after = "1,4 4,6 3,6 5,2", "1,4,2 4,6,1 1,4,2 1,5,6"
    sizes, rates = (3444925, 4194713, 4195871, 4198840), (13414, 60362, 0, 64049)
    policy = MovePolicy(frozenset(), 2 << 20)
    assert foresee(before, after, sizes, policy, write_bytes_per_s=rates).seconds == 7


def test_a_row_that_finds_no_seat_waits() -> None:
    one = replace(POLICY, at_once_cluster=1)
    assert foresee("1 2", "3 4", (1000, 1000), one).seconds == 20


def test_a_later_row_takes_a_seat_that_an_earlier_one_cannot() -> None:
    """Only one copy at a time leaves broker 1; that of broker 2 need not wait for both."""
    one = replace(POLICY, at_once_broker=1)
    assert foresee("1 1 2", "3 4 5", (1000, 1000, 2000), one).seconds == 20


def test_writes_slow_the_leader_once_for_every_follower() -> None:
    """10 bytes/s to one follower now and one new one: 80 of 100 are left for the copy."""
    found = foresee("1,2", "1,2,3", (800,), write_bytes_per_s=(10,))
    assert found.seconds == 10


def test_a_rate_below_the_writes_never_ends() -> None:
    found = foresee("1,2", "1,2,3", (800,), write_bytes_per_s=(50,))
    assert found.seconds is None
    assert found.copied_bytes == 800


def test_without_a_rate_nobody_knows_the_time() -> None:
    assert foresee("1", "2", (800,), MovePolicy(frozenset(), None)).seconds is None


def test_empty_partitions_take_no_time() -> None:
    assert foresee("1 1", "2 2", (0, 0)).seconds == 0


# The least rate.


def test_the_least_rate_is_half_more_than_the_writes_in_flight() -> None:
    found = foresee("1,2", "1,2,3", (800,), write_bytes_per_s=(10,))
    assert found.least_rate == 30


def test_the_least_rate_counts_as_many_partitions_as_move_at_once() -> None:
    two = replace(POLICY, at_once_broker=2)
    found = foresee("1,2 1,3 1,2", "1,4 1,4 1,4", (1, 1, 1), two, write_bytes_per_s=(10, 20, 30))
    assert found.least_rate == 150  # 1.5 × (20 + 30) × 2 followers


def test_the_least_rate_counts_a_broker_that_receives() -> None:
    found = foresee("1 2 3", "6 6 6", (1, 1, 1), write_bytes_per_s=(10, 10, 10))
    assert found.least_rate == 45


def test_a_partition_of_unknown_rate_counts_as_the_fastest_of_its_topic() -> None:
    found = foresee("1 2", "6 5", (1, 1), write_bytes_per_s=(-1, 20))
    assert found.least_rate == 30


@pytest.mark.parametrize("rates", [(), (-1,)])
def test_without_any_rate_of_a_topic_the_least_rate_is_unknown(rates: tuple[int, ...]) -> None:
    found = foresee("1", "2", (100,), write_bytes_per_s=rates)
    assert (found.least_rate, found.seconds) == (None, 1)


# Unknown sizes.


def test_unknown_sizes_are_counted_and_leave_no_time() -> None:
    found = foresee("1 1 1", "2 2 1", (-1, 100, -1))
    assert (found.unknown, found.seconds, found.copied_bytes) == (1, None, 100)
    assert found.sizes == {"a": (-1, 100, -1)}


def test_a_topic_without_sizes_is_unknown_as_a_whole() -> None:
    found = foresee("1 1", "2 2", ())
    assert (found.unknown, found.sizes) == (2, {"a": (-1, -1)})


# Peaks.


def test_a_directory_holds_what_it_had_and_what_enters() -> None:
    found = foresee("1", "2", (300,), directories={1: disks((1000, 400)), 2: disks((1000, 100))})
    assert found.peaks == (DirectoryPeak(2, "/data1", 1000, 100, 400),)


def test_what_leaves_is_freed_a_minute_after_the_row_ended() -> None:
    """Two rows of 8,000 bytes enter broker 2 one after the other; one of 1,000 bytes left it."""
    one = replace(POLICY, at_once_broker=1)
    found = foresee(
        "2 1 1", "3 2 2", (1000, 8000, 7999), one, directories={2: disks((99_000, 1000))}
    )
    (peak,) = found.peaks
    assert peak.peak_bytes == 1000 - 1000 + 8000 + 7999


def test_what_leaves_less_than_a_minute_before_still_takes_room() -> None:
    one = replace(POLICY, at_once_broker=1)
    found = foresee(
        "2 1 1", "3 2 2", (1000, 4000, 3999), one, directories={2: disks((99_000, 1000))}
    )
    (peak,) = found.peaks
    assert peak.peak_bytes == 1000 + 4000 + 3999


def test_without_a_time_nothing_is_freed() -> None:
    free = MovePolicy(frozenset(), None)
    found = foresee("2 1", "3 2", (1000, 8000), free, directories={2: disks((99_000, 1000))})
    (peak,) = found.peaks
    assert peak.peak_bytes == 9000


def test_a_new_replica_goes_where_the_fewest_are() -> None:
    held = {2: disks((1000, 500), (1000, 100), replicas=(3, 5))}
    found = foresee("1 1 1", "2 2 2", (10, 10, 10), directories=held)
    assert [peak.peak_bytes for peak in found.peaks] == [530, 100]
    held = {2: disks((1000, 500), (1000, 100), replicas=(4, 4))}
    found = foresee("1 1 1", "2 2 2", (10, 10, 10), directories=held)
    assert [peak.peak_bytes for peak in found.peaks] == [520, 110]


def test_without_counts_it_goes_into_the_fullest_directory() -> None:
    held = {2: disks((1000, 100), (1000, 500))}
    found = foresee("1 1", "2 2", (100, 100), directories=held)
    assert [peak.peak_bytes for peak in found.peaks] == [100, 700]


def test_a_directory_of_unknown_size_has_no_peak() -> None:
    held = {2: (LogDirectory("/data1", None, None),)}
    assert foresee("1", "2", (100,), directories=held).peaks == ()


# The rest.


def test_a_broker_is_as_full_as_its_fullest_directory() -> None:
    held = {1: disks((1000, 100), (1000, 600)), 2: (LogDirectory("/data", None, None),), 3: ()}
    assert measure_fullness(held) == {1: 0.6}


def test_a_row_is_urgent_that_lacks_a_copy() -> None:
    dead = (replace(NODES[0], alive=False), *NODES[1:])
    synced = rows("2 2 2,3")
    live = state(topic("1,2 2,3 2,3", "a", in_sync=synced), topic("4 1", "b"), brokers=dead)
    moves = list_row_moves(planned(live, {"a": "2,4 2,4 2,4", "b": "5 5"}), live)
    assert find_urgent(moves, live) == {("a", 0), ("a", 1), ("b", 1)}


def test_other_plans_have_no_forecast() -> None:
    with pytest.raises(ValueError, match="no moves"):
        forecast_moves(plan([], state()), state())
