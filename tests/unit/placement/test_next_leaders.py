"""Next leaders: how they are counted, and how few leaders one broker takes over in the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from random import Random

import numpy as np
import pytest
from shorthand import brokers, rows
from takeovers import Takeovers, count_takeovers

from reconciler.model.cluster import Assignment, Broker
from reconciler.model.plan import Level
from reconciler.placement.bulk_next_leaders import order_followers
from reconciler.placement.loss import Exposed, lose_each_broker, lose_each_rack
from reconciler.placement.next_leaders import LEVEL_5, NextLeaders, Succession, arrange
from reconciler.placement.problem import Placed, Problem, Wish, count_load
from reconciler.placement.strategies import place_replicas


def cluster(*sizes: int) -> tuple[Broker, ...]:
    """Return racks of so many brokers, ids dealt round the racks."""
    slots = sorted((place, rack) for rack, size in enumerate(sizes) for place in range(size))
    return tuple(Broker(b, f"rack-{rack}") for b, (_, rack) in enumerate(slots))


def place(nodes: Sequence[Broker], wishes: Iterable[Wish], others: str = "") -> Placed:
    wishes = tuple(wishes)
    leaders, replicas = count_load([rows(others), *(wish.existing for wish in wishes)])
    return place_replicas(Problem(tuple(nodes), leaders, replicas, wishes, others=(rows(others),)))


def place_one_by_one(
    nodes: Sequence[Broker], wishes: Iterable[Wish], *, blind: bool = False
) -> list[Assignment]:
    """Place each wish on the cluster that those before it leave; blind: unaware of their rows."""
    live: list[Assignment] = []
    for wish in wishes:
        others = () if blind else tuple(live)
        placed = place_replicas(Problem(tuple(nodes), *count_load(live), (wish,), others=others))
        live.append(placed.rows[wish.topic])
    return live


def least_possible(nodes: Sequence[Broker], assignments: Iterable[Assignment]) -> tuple[int, int]:
    """Return the least that any order of followers could let one broker take over, at best."""
    led = Counter(row[0] for row in chain.from_iterable(assignments))
    size = Counter(broker.rack for broker in nodes)
    one_rack = len(size) == 1
    heirs = {b.id: len(nodes) - (1 if one_rack else size[b.rack]) for b in nodes}
    of_rack: Counter[str | None] = Counter()
    for broker in nodes:
        of_rack[broker.rack] += led[broker.id]
    return (
        max(-(-led[b.id] // heirs[b.id]) for b in nodes),
        0 if one_rack else max(-(-of_rack[r] // (len(nodes) - size[r])) for r in size),
    )


def table(racks: str, text: str = "", others: str = "") -> NextLeaders:
    """Return the table of a cluster with brokers 1, 2, 3 … in these racks; "-" is none."""
    nodes = brokers(*(None if rack == "-" else rack for rack in racks))
    wish = Wish("t", rows(text), 1, 1)
    return NextLeaders.count(Problem(nodes, {}, {}, (wish,), others=(rows(others),)))


def test_the_second_replica_is_next_if_the_first_ones_broker_is_lost() -> None:
    assert table("---", "1,2,3 1,2,3 1,3,2 2,1,3").after == [[0, 2, 1], [1, 0, 0], [0, 0, 0]]


def test_the_first_replica_outside_the_leaders_rack_is_next_if_the_rack_is_lost() -> None:
    assert table("aabb", "1,2,3 1,4,3 3,2,1 3,4,1").beyond == [[0, 0, 1, 1], [1, 1, 0, 0]]


def test_rows_of_other_topics_count_as_those_of_wished_ones() -> None:
    apart, together = table("aabb", "1,3", "2,4 1,3"), table("aabb", "1,3 2,4 1,3")
    assert (apart.after, apart.beyond) == (together.after, together.beyond)


def count_beside(idle: Broker, text: str) -> NextLeaders:
    """Return the table of brokers 1 in rack a and 2 in rack b, with one that takes nothing new."""
    also_alive = (idle,) if idle.alive else ()
    nodes = brokers("a", "b")
    return NextLeaders.count(
        Problem(nodes, {}, {}, (), others=(rows(text),), also_alive=also_alive)
    )


def test_living_brokers_that_take_nothing_new_lead_next_and_are_in_no_count() -> None:
    """9 is cordoned or excluded: it leads row one, would lead row two, and follows in row three."""
    found = count_beside(Broker(9, "c"), "9,1 1,9,2 1,2,9")
    assert (found.after, found.beyond) == ([[0, 1], [0, 0]], [[0, 1], [0, 0]])


def test_a_living_broker_is_lost_with_its_rack_also_if_it_takes_nothing_new() -> None:
    found = count_beside(Broker(9, "a"), "1,9,2")
    assert (found.after, found.beyond) == ([[0, 0], [0, 0]], [[0, 1], [0, 0]])


def test_the_living_replica_behind_a_dead_one_leads_instead_of_it() -> None:
    """9 is dead: 1 leads row one, 2 is next in row two, and row three has nobody next."""
    found = count_beside(Broker(9, "a", alive=False), "9,1,2 1,9,2 9,2")
    assert (found.after, found.beyond) == ([[0, 2], [0, 0]], [[0, 2], [0, 0]])


@pytest.mark.parametrize("seed", range(20))
def test_levels_and_losses_agree_on_who_leads_next_while_brokers_are_dead(seed: int) -> None:
    rng = Random(seed)
    nodes = tuple(
        Broker(b, rng.choice(("a", "b", "c", None)), alive=b == 0 or rng.random() < 0.7)
        for b in range(8)
    )
    assignment = tuple(tuple(rng.sample(range(9), 3)) for _ in range(60))  # 8 left the cluster
    living = tuple(broker for broker in nodes if broker.alive)
    found = NextLeaders.count(Problem(living, {}, {}, (), others=(assignment,)))
    exposed = [Exposed(assignment)]
    by_broker = {b: dict(loss.heirs) for b, loss in lose_each_broker(exposed, nodes).items()}
    by_rack = {rack: dict(loss.heirs) for rack, loss in lose_each_rack(exposed, nodes).items()}
    ids = [broker.id for broker in living]
    assert by_broker == {
        a: {b: n for b, n in zip(ids, line, strict=True) if n}
        for a, line in zip(ids, found.after, strict=True)
    }
    lines = found.beyond or [[]]  # the loss of the only rack leaves nobody to lead
    assert by_rack == {
        rack: {b: n for b, n in zip(ids, line, strict=bool(line)) if n}
        for rack, line in zip(sorted(by_rack), lines, strict=bool(by_rack))
    }


def test_without_a_follower_nobody_is_next() -> None:
    assert table("ab", "1 2").squares() == (0, 0)


def test_leaders_without_a_rack_are_lost_with_none() -> None:
    assert table("ab-", "1,3 3,1 3,2").beyond == [[0, 0, 1], [0, 0, 0]]


def test_the_only_rack_is_not_lost_for_nobody_would_be_left() -> None:
    assert table("aaa", "1,2 2,3").squares() == (2, 0)


def test_a_row_within_its_leaders_rack_has_nobody_to_lead_if_that_is_lost() -> None:
    assert table("aab", "1,2 2,1").squares() == (2, 0)


def test_a_refund_is_what_the_price_falls_by() -> None:
    found = table("aabb", "1,2,3 1,2,4 3,1,2 1,2,3")
    one, before = found.find([0, 1, 2]), found.price()
    refund = found.refund(one)
    found.add(one, -1)
    assert before - found.price() == refund == LEVEL_5 * (9 - 4) + (4 - 1)


def test_who_is_rarely_next_is_chosen_and_racks_break_ties() -> None:
    """After 1 come 3 and 4 once each; if rack a is lost, 4 leads twice and 3 once."""
    found = table("aabb", "1,3 1,4 2,4")
    price, one = found.choose(0, [2, 3], ranks=[0, 1, 3, 2])
    assert one == Succession(leader=0, following=2, rack=0, beyond=2)
    assert price == LEVEL_5 * (4 - 1) + (4 - 1)


def test_a_follower_of_the_own_rack_is_next_and_the_best_outside_behind_it() -> None:
    found = table("aabb", "1,3 1,4 2,3")
    _, one = found.choose(0, [3, 2, 1], ranks=[0, 1, 2, 3])
    assert one == Succession(leader=0, following=1, rack=0, beyond=3)
    assert arrange(one, [3, 2, 1], ranks=[0, 1, 2, 3]) == [0, 1, 3, 2]


def test_ties_of_followers_go_by_rank() -> None:
    _, one = table("---").choose(0, [1, 2], ranks=[0, 2, 1])
    assert arrange(one, [1, 2], ranks=[0, 2, 1]) == [0, 2, 1]


def test_both_levels_are_shown_with_the_most_that_one_broker_takes_over() -> None:
    """24 partitions: each broker leads 4, and each of the 4 in other racks takes over one."""
    levels = place(brokers(*"aabbcc"), [Wish("orders", (), 24, 3)]).levels[4:]
    shown = [(level.level, level.reached, level.bound) for level in levels]
    assert shown == [(Level.NEXT_LEADERS, 24, 24), (Level.RACK_NEXT_LEADERS, 48, 48)]
    assert [(level.skew, level.skew_bound) for level in levels] == [(1, 1), (2, 2)]


def test_existing_rows_are_in_the_result_and_in_its_bound() -> None:
    """3 is next after 1 five times already, so 4 is next in the new row that 1 leads."""
    placed = place(brokers(*"aabb"), [Wish("orders", (), 4, 2)], "1,3 1,3 1,3 1,3 1,3")
    level = placed.levels[4]
    assert (level.reached, level.bound) == (5 * 5 + 4, 5 * 5 + 4)
    assert (level.skew, level.skew_bound) == (5, 5)
    assert (1, 4) in placed.rows["orders"]


@pytest.mark.parametrize(
    ("nodes", "partitions", "replication"),
    [
        (cluster(2, 2, 2), [6] * 60, 3),
        (cluster(2, 2, 2), [1 + t % 12 for t in range(60)], 3),
        (cluster(3), [3] * 60, 2),
        (cluster(3, 3, 3), [1 + t % 5 for t in range(60)], 3),
    ],
)
def test_topics_planned_one_by_one_are_as_good_as_planned_together(
    nodes: Sequence[Broker], partitions: list[int], replication: int
) -> None:
    wishes = [Wish(f"topic-{t:02}", (), n, replication) for t, n in enumerate(partitions)]
    live = place_one_by_one(nodes, wishes)
    apart = count_takeovers(nodes, live)
    together = count_takeovers(nodes, place(nodes, wishes).rows.values())
    most = least_possible(nodes, live)
    assert apart.most[0] == most[0]
    assert apart.most[1] <= most[1] + 1
    for level in (0, 1):
        assert apart.squares[level] <= 1.05 * together.squares[level]


def test_without_the_rows_of_other_topics_one_broker_takes_over_too_much() -> None:
    """What the test before would find if a plan counted its own topics only."""
    nodes = cluster(2, 2, 2)
    wishes = [Wish(f"topic-{t:02}", (), 1 + t % 12, 3) for t in range(60)]
    live = place_one_by_one(nodes, wishes, blind=True)
    assert count_takeovers(nodes, live).most > least_possible(nodes, live)


def test_after_the_loss_of_the_largest_of_unequal_racks_brokers_lead_three_at_most() -> None:
    nodes = cluster(10, 8, 6, 4, 2)
    assignment = place(nodes, [Wish("orders", (), 60, 5)]).rows["orders"]
    led = Counter(row[0] for row in assignment)
    found = count_takeovers(nodes, [assignment])
    for lost in (*found.by_broker.values(), *found.by_rack.values()):
        assert max(led[b] + times for b, times in lost.items()) <= 3


def test_topics_of_mixed_sizes_share_one_table() -> None:
    """1,000 topics in bulk, in 40 groups: who is next after whom at most three times."""
    nodes = cluster(20, 20, 20, 20, 20)
    wishes = [Wish(f"topic-{t:04}", (), 1 + t % 40, 3) for t in range(1000)]
    placed = place(nodes, wishes)
    found = count_takeovers(nodes, placed.rows.values())
    most = least_possible(nodes, placed.rows.values())
    assert found.most[0] == most[0] == 3
    assert found.most[1] <= most[1] + 1
    assert [level.skew for level in placed.levels[4:]] == list(found.most)
    for level, reached in zip(placed.levels[4:], found.squares, strict=True):
        assert level.bound <= reached <= 1.02 * level.bound


@pytest.mark.parametrize(("sizes", "replication"), [((4, 4, 4), 3), ((12,), 3), ((6, 3, 3), 4)])
def test_no_path_of_rows_gains_in_bulk(sizes: Sequence[int], replication: int) -> None:
    """Level five is exact for given replica sets: orders alone cannot make it better."""
    nodes, rng = cluster(*sizes), Random(f"{sizes}")
    given = np.array([rng.sample(range(12), replication) for _ in range(2000)])
    given[:, 0] = given[:, 0] ** 2 // 12  # some lead more, and meet few others
    given = given[[len(set(row)) == replication for row in given.tolist()]]
    existing = tuple(tuple(rng.sample(range(12), 2)) for _ in range(200))
    found = NextLeaders.count(Problem(nodes, {}, {}, (), others=(existing,)))
    ordered = given.copy()
    order_followers([ordered], found)
    assert (ordered[:, 0] == given[:, 0]).all()
    assert (np.sort(ordered) == np.sort(given)).all()
    counted: Takeovers = count_takeovers(nodes, [existing, ordered.tolist()])
    assert found.squares() == counted.squares
    for leader in range(12):
        followers = [row[1:] for row in ordered.tolist() if row[0] == leader]
        assert not find_gain(followers, counted.by_broker[leader])


def find_gain(followers: Sequence[Sequence[int]], taken: Counter[int]) -> list[int]:
    """Return a path of brokers along which rows of one leader hand on who is next, if it gains.

    Each row lets its next leader hand on to its other followers; a path gains if its end takes
    over less than its start by two or more.
    """
    hands_on: dict[int, set[int]] = {}
    for row in followers:
        hands_on.setdefault(row[0], set()).update(row[1:])
    for start in hands_on:
        paths, seen = [[start]], {start}
        for path in paths:
            if taken[path[-1]] <= taken[start] - 2:
                return path
            for b in sorted(hands_on.get(path[-1], set()) - seen):
                seen.add(b)
                paths.append([*path, b])
    return []


@pytest.mark.parametrize("seed", [6, 10])
def test_no_other_order_of_a_row_gains_for_racks_in_bulk(seed: int) -> None:
    """Among orders that are equal for level five. Rows change at once, and never in a circle."""
    nodes, rng = cluster(6, 3, 3), Random(seed)
    rack = {broker.id: broker.rack or "" for broker in nodes}
    given = [rng.sample(range(12), 4) for _ in range(2000)]
    given = [row for row in given if len({rack[b] for b in row}) > 1]
    ordered = np.array([[row[0] ** 2 // 12, *row[1:]] for row in given])
    ordered = ordered[[len(set(row)) == 4 for row in ordered.tolist()]]
    order_followers([ordered], NextLeaders.count(Problem(nodes, {}, {}, ())))
    found = count_takeovers(nodes, [ordered.tolist()])
    for leader, *followers in ordered.tolist():
        after, beyond = found.by_broker[leader], found.by_rack[rack[leader]]
        outside = [b for b in followers if rack[b] != rack[leader]]
        for b in followers:
            same = b == followers[0] or after[b] + 1 == after[followers[0]]
            for c in [b] if b in outside else outside:
                assert not (same and beyond[c] + 1 < beyond[outside[0]])


def test_a_path_that_gains_is_noticed() -> None:
    """2 hands on to 3, and 3 to 4: no row alone could gain."""
    followers = [[2, 3], [2, 3], [3, 4], [3, 4]]
    assert find_gain(followers, Counter({2: 3, 3: 2, 4: 1})) == [2, 3, 4]
    assert find_gain(followers, Counter({2: 2, 3: 2, 4: 1})) == []
