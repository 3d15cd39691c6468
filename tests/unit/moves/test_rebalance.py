"""Rebalance: what becomes even, what is left as it is and why, and what limits it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from shorthand import brokers, cluster, may_move, rows, said, spec, topic

from reconciler.errors import Finding, Location, Severity, UsageError
from reconciler.model.cluster import Broker, LogDirectory, Reassignment, ThrottleSide
from reconciler.model.plan import Plan
from reconciler.model.steps import steps_of
from reconciler.moves.rebalance import plan_rebalance
from reconciler.show.markdown.page import render_markdown
from reconciler.spec.entry import ClusterEntry

ENTRY = ClusterEntry("prod", Location("topics/clusters.yaml", 2), moves=may_move())
FOUR = brokers(None, None, None, None)
CROWDED = "1,2 2,1 1,2 2,1"
"""Four partitions on two of four brokers."""


def live(*found: Any, nodes: Any = FOUR, **state: Any) -> Any:
    sized = [
        replace(each, size_bytes=each.size_bytes or (10,) * len(each.assignment)) for each in found
    ]
    disks = {b.id: (LogDirectory("/data", 10**9, 9 * 10**8, 0),) for b in nodes}
    return replace(cluster(*sized, nodes=nodes), directories=disks, **state)


def rebalance(state: Any, *specs: Any, entry: ClusterEntry = ENTRY, **asked: Any) -> Plan:
    return plan_rebalance(entry, specs, state, **asked)


def after(plan: Plan, name: str = "shop.orders") -> Any:
    (found,) = [each.after for each in plan.topics if each.name == name]
    assert found is not None
    return found.assignment


def count_replicas(assignment: Any) -> Counter[int]:
    return Counter(broker for row in assignment for broker in row)


def test_replicas_and_leaders_become_even_with_the_fewest_moves() -> None:
    made = rebalance(live(topic(CROWDED)))
    found = after(made)
    assert count_replicas(found) == {1: 2, 2: 2, 3: 2, 4: 2}
    assert Counter(row[0] for row in found) == {1: 1, 2: 1, 3: 1, 4: 1}
    assert made.moves is not None
    assert made.moves.replicas == made.moves.least_replicas == 4
    assert made.moves.made_by == "rebalance --even-topics"


def test_what_is_even_stays() -> None:
    made = rebalance(live(topic("1,2 2,3 3,4 4,1")))
    assert made.topics == ()
    assert made.unchanged == 1


def test_only_the_brokers_that_are_named_take_replicas() -> None:
    found = after(rebalance(live(topic(CROWDED)), brokers=(4,)))
    assert set(count_replicas(found)) == {1, 2, 4}


def test_a_broker_that_is_named_takes_its_even_share_and_the_plan_says_what_stays_uneven() -> None:
    crowded = [topic("1,2 2,1", name=f"t{number}") for number in range(4)]
    made = rebalance(live(*crowded), brokers=(4,))
    held = sum((count_replicas(after(made, f"t{number}")) for number in range(4)), Counter())
    assert held == {
        1: 6,
        2: 6,
        4: 4,
    }  # without the share, broker 4 would hold as many as the others
    (note,) = [each for each in made.notes if each.rule == "rebalance-uneven"]
    assert note.what == (
        "only the brokers of --brokers take replicas, up to their even share, so this stays "
        "uneven: "
        "2 brokers above the even share (broker 1 has 6 replicas, its share is 4); "
        "4 topics (t0, t1, t2, t3)"
    )


def test_brokers_that_only_give_replicas_may_lead_more() -> None:
    found = after(rebalance(live(topic("1,2 1,3 1,2 1,3")), brokers=(4,)))
    assert count_replicas(found) == {1: 2, 2: 2, 3: 2, 4: 2}
    assert Counter(row[0] for row in found) == {1: 1, 2: 1, 3: 1, 4: 1}


def test_rows_keep_breaking_the_rack_rule_where_the_share_has_no_room() -> None:
    nodes = brokers("a", "a", "a", "b", "b")
    made = rebalance(live(topic("1,2 2,3 3,1 1,2"), nodes=nodes), brokers=(4,))
    assert count_replicas(after(made))[4] == 2
    (note,) = [each for each in made.notes if each.rule == "rebalance-uneven"]
    assert note.what.endswith("2 partitions over the racks")


def test_what_excluded_brokers_can_give_counts_in_the_even_share() -> None:
    state = live(topic(CROWDED), nodes=brokers(None, None, None))
    made = rebalance(state, entry=replace(ENTRY, exclude_brokers=frozenset({1, 2})), brokers=(3,))
    assert count_replicas(after(made)) == {1: 3, 2: 3, 3: 2}


def test_racks_bound_no_share_of_topics_that_may_go_anywhere() -> None:
    nodes = brokers("a", "a", "a", "b")
    crowded = [topic("1,2 2,3 3,1", name=f"t{number}") for number in range(4)]
    anywhere = [spec(name=each.name, rack_aware=False) for each in crowded]
    made = rebalance(live(*crowded, nodes=nodes), *anywhere, brokers=(4,))
    held = sum((count_replicas(after(made, each.name)) for each in crowded), Counter())
    assert held[4] <= 6
    assert "rebalance-uneven" not in [each.rule for each in made.notes]


def test_a_topic_is_not_uneven_where_its_racks_allow_no_more() -> None:
    nodes = brokers("a", "a", "b", "b", "b", "b")
    made = rebalance(live(topic("1,3 3,2 2,4 4,1 1,3 3,2 2,4 4,1"), nodes=nodes), brokers=(5, 6))
    assert count_replicas(after(made)) == {1: 4, 2: 4, 3: 2, 4: 2, 5: 2, 6: 2}
    assert "rebalance-uneven" not in [each.rule for each in made.notes]


def test_topics_that_stay_are_not_named_as_uneven() -> None:
    other = topic(CROWDED, name="other")
    made = rebalance(live(topic(CROWDED), other), topics="shop.*", brokers=(4,))
    (note,) = [each for each in made.notes if each.rule == "rebalance-uneven"]
    assert note.what.endswith("; 1 topic (shop.orders)")


def test_only_topics_that_match_move() -> None:
    state = live(topic(CROWDED), topic(CROWDED, name="other"))
    assert [each.name for each in rebalance(state, topics="oth*").topics] == ["other"]
    both = rebalance(state, topics="oth*,shop.orders")
    assert [each.name for each in both.topics] == ["other", "shop.orders"]
    with pytest.raises(UsageError, match="no live topic of prod matches --topic 'x'"):
        rebalance(state, topics="oth*,x")


def test_topics_of_no_file_move_and_ignored_and_internal_ones_stay() -> None:
    internal = replace(topic(CROWDED, name="__consumer_offsets"), internal=True)
    state = live(topic(CROWDED), topic(CROWDED, name="connect-status"), internal)
    made = rebalance(state, entry=replace(ENTRY, ignore=("connect-*",)))
    assert [each.name for each in made.topics] == ["shop.orders"]


@pytest.mark.parametrize(
    ("wished", "why"),
    [
        (spec(assignment=rows(CROWDED)), "manual assignment"),
        (spec(replication_factor=3), "moves are pending: reconciler plan --moves"),
        (spec(absent=True), "to be deleted"),
    ],
)
def test_a_topic_whose_spec_says_otherwise_is_left(wished: Any, why: str) -> None:
    made = rebalance(live(topic(CROWDED)), wished)
    assert made.topics == ()
    (note,) = [each for each in made.notes if each.rule == "rebalance-left"]
    assert note.what == f"1 topic left as they are ({why}): shop.orders"


def test_a_topic_in_flight_is_left() -> None:
    flight = Reassignment("shop.orders", 0, (1, 3, 2), (3,), (2,), 1, (1, 2))
    made = rebalance(live(topic(CROWDED), reassignments=(flight,)))
    assert made.topics == ()
    assert "(being reassigned)" in said(made.notes)[-1]


def test_it_is_refused_if_what_is_in_flight_is_not_shown() -> None:
    unseen = Finding("reassignments-unseen", "moves are hidden", "look", severity=Severity.WARNING)
    made = rebalance(live(topic(CROWDED), notes=(unseen,)))
    assert [each.rule for each in made.refusals] == ["reassignments-unseen"]
    assert unseen not in made.notes


def test_partitions_that_are_not_healthy_stay() -> None:
    sick = replace(topic(CROWDED), in_sync=rows("1 2,1 1,2 2,1"))
    found = after(rebalance(live(sick)))
    assert found[0] == (1, 2)
    assert found[1:] != rows("2,1 1,2 2,1")


def test_max_bytes_moves_the_smallest_partitions() -> None:
    sized = replace(topic(CROWDED), size_bytes=(400, 100, 300, 200))
    whole = rebalance(live(sized))
    assert whole.moves is not None
    made = rebalance(live(sized), max_bytes=300)
    copied = [
        number
        for number, (old, new) in enumerate(zip(rows(CROWDED), after(made), strict=True))
        if set(old) != set(new)
    ]
    assert made.moves is not None
    assert made.moves.forecast is not None
    assert made.moves.forecast.copied_bytes <= 300
    assert copied
    assert max(copied, key=lambda n: sized.size_bytes[n]) not in (0, 2)
    assert made.moves.made_by == "rebalance --even-topics --max-bytes 300B"
    (note,) = [each for each in made.notes if each.rule == "rebalance-limited"]
    assert note.way_out == "rebalance again after this plan"


def test_max_bytes_waits_for_the_room_that_larger_partitions_make() -> None:
    large, small = topic("1 1", size_bytes=(100, 100)), topic("3 3", "small", size_bytes=(10, 10))
    state = live(large, small, topic("2", "other"), nodes=brokers(None, None, None))
    assert count_replicas(after(rebalance(state, brokers=(1, 2)), "small")) == {1: 1, 3: 1}
    made = rebalance(state, brokers=(1, 2), max_bytes=50)
    assert made.topics == ()  # broker 1 has its share until it gives up a large partition
    (note,) = [each for each in made.notes if each.rule == "rebalance-limited"]
    assert note.what == "2 partitions stay, because all would copy 110 B"
    assert note.way_out == "nothing fits: write --max-bytes 100B or more"
    assert rebalance(state, brokers=(1, 2), max_bytes=99).topics == ()
    assert [each.name for each in rebalance(state, brokers=(1, 2), max_bytes=100).topics] == [
        "shop.orders"
    ]
    both = rebalance(state, brokers=(1, 2), max_bytes=110)
    assert [each.name for each in both.topics] == ["shop.orders", "small"]


def test_max_bytes_needs_sizes() -> None:
    blind = replace(topic(CROWDED), size_bytes=(10, -1, -1, -1))
    with pytest.raises(UsageError, match="is unknown, so --max-bytes cannot be kept"):
        rebalance(live(blind), max_bytes=300)


def test_a_cluster_that_does_not_allow_it_says_what_to_write() -> None:
    with pytest.raises(UsageError, match=r"add it to moves\.allow"):
        rebalance(live(topic(CROWDED)), entry=replace(ENTRY, moves=may_move("drain")))


def test_no_topic_and_no_such_broker_are_usage_errors() -> None:
    state = live(topic(CROWDED), nodes=(*FOUR[:3], Broker(4, alive=False)))
    with pytest.raises(UsageError, match="no live topic of prod matches --topic 'x'"):
        rebalance(state, topics="x")
    with pytest.raises(
        UsageError, match="broker 4 cannot take replicas; brokers that can: 1, 2, 3"
    ):
        rebalance(state, brokers=(4,))


def test_a_comment_names_the_command_that_makes_the_same_plan() -> None:
    text = render_markdown(rebalance(live(topic(CROWDED)), brokers=(3, 4), topics="shop.*"))
    command = "reconciler rebalance --cluster prod --topic 'shop.*' --even-topics --brokers 3,4"
    assert f"{command} --out moves.json" in text


def test_the_same_state_gives_the_same_plan() -> None:
    state = live(topic(CROWDED), topic("1,2,3 1,2,3", name="other"))
    first = rebalance(state)
    assert any(map(steps_of, first.topics))
    assert rebalance(state) == first


# Replicas on failed log directories.


def broken(*found: Any, on: tuple[int, ...] = (3,), nodes: Any = FOUR) -> Any:
    """Return a cluster of brokers with two log directories; the second one of some has failed."""
    state = live(*found, nodes=nodes)
    bad = (LogDirectory("/other", None, None, online=False),)
    return replace(
        state, directories={b: held + bad * (b in on) for b, held in state.directories.items()}
    )


OFFLINE = {"in_sync": rows("1,2 2,3 1"), "leaders": (1, 2, 1)}
"""Of rows 1,2 2,3 3,1: the last one has a replica on the failed log directory of broker 3."""


def test_only_replicas_on_failed_log_directories_move() -> None:
    made = rebalance(broken(topic("1,2 2,3 3,1", **OFFLINE)), offline=True)
    first, second, third = after(made)
    assert (first, second) == ((1, 2), (2, 3))
    assert 1 in third
    assert 3 not in third
    assert made.moves is not None
    assert made.moves.replicas == made.moves.least_replicas == 1
    assert made.moves.drains == ()
    assert made.moves.made_by == "rebalance --offline-replicas"


@pytest.mark.parametrize("nodes", [brokers(*[None] * 6), FOUR])
def test_a_replica_that_is_in_sync_stays_on_a_broker_with_a_failed_log_directory(
    nodes: Any,
) -> None:
    found = topic("1,2,3 2,3,4", in_sync=rows("2,3 2,3,4"), leaders=(2, 2))
    made = rebalance(broken(found, on=(1, 2), nodes=nodes), offline=True)
    first, second = after(made)
    assert second == (2, 3, 4)
    assert {2, 3} < set(first)
    assert 1 not in first
    assert "rebalance-left" not in [note.rule for note in made.notes]
    assert made.moves is not None
    assert made.moves.replicas == made.moves.least_replicas == 1


def test_a_rack_with_a_failed_log_directory_keeps_what_is_in_sync_there() -> None:
    nodes = brokers("a", "b", "c", "a", "b", "c")
    found = topic("1,2,3 5,3,4", in_sync=rows("2,3 5,3,4"), leaders=(2, 5))
    made = rebalance(broken(found, on=(1, 2), nodes=nodes), offline=True)
    assert set(after(made)[0]) == {2, 3, 4}
    assert after(made)[1] == (5, 3, 4)


def test_a_preferred_leader_stays_where_another_replica_leaves_a_failed_disk() -> None:
    found = topic("1,3 1,3 1,2 1,4", in_sync=rows("1 1 1,2 1,4"), leaders=(1,) * 4)
    made = rebalance(broken(found), offline=True)
    assert [row[0] for row in after(made)] == [1, 1, 1, 1]
    assert all(3 not in row for row in after(made))


def test_replicas_of_internal_and_unmanaged_topics_leave_a_failed_log_directory() -> None:
    entry = replace(ENTRY, ignore=("ignored",))
    found = (
        topic("3,1", "ignored", in_sync=rows("1"), leaders=(1,)),
        topic("3,1", "__consumer_offsets", internal=True, in_sync=rows("1"), leaders=(1,)),
    )
    made = rebalance(broken(*found), entry=entry, offline=True)
    assert [each.name for each in made.topics] == ["__consumer_offsets", "ignored"]
    assert all(3 not in after(made, each.name)[0] for each in made.topics)


def test_nothing_moves_without_a_failed_log_directory() -> None:
    made = rebalance(broken(topic("1,2 2,3 3,1", **OFFLINE), on=()), offline=True)
    assert made.topics == ()


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (topic("3,1", in_sync=((),), leaders=(-1,)), "no replica that is alive and in sync"),
        (topic("3,4", in_sync=rows("4"), leaders=(4,)), "on a cordoned or drained broker"),
        (
            topic("3,2,1", in_sync=rows("2,1"), leaders=(2,)),
            "too few brokers without a failed log directory",
        ),
    ],
)
def test_replicas_that_cannot_leave_a_failed_log_directory_are_named(found: Any, why: str) -> None:
    nodes = (*FOUR[:3], Broker(4, cordoned=True))
    made = rebalance(broken(found, nodes=nodes), offline=True)
    assert not any(map(steps_of, made.topics))
    assert [note.what for note in made.notes if note.rule == "rebalance-left"] == [
        f"1 topic left as they are ({why}): shop.orders"
    ]


def test_brokers_that_are_named_are_the_reason_where_others_could_take_a_replica() -> None:
    found = topic("3,2,1", in_sync=rows("2,1"), leaders=(2,))
    with pytest.raises(
        UsageError,
        match=r"^broker 3 cannot take replicas, as a log directory of it has failed; "
        r"brokers that can: 1, 2, 4$",
    ):
        rebalance(broken(found), brokers=(3,), offline=True)
    made = rebalance(broken(found), brokers=(2,), offline=True)
    assert [note.what for note in made.notes if note.rule == "rebalance-left"] == [
        "1 topic left as they are (too few of --brokers can take one): shop.orders"
    ]
    assert set(after(rebalance(broken(found), brokers=(4,), offline=True))[0]) == {1, 2, 4}


@pytest.mark.parametrize(
    ("first", "in_sync", "then"),
    [
        ("3,1,2", "2,1", (1, 3, 2)),
        ("1,3,2", "1,2", (1, 3, 2)),
        ("3,1,2", "2", (2, 3, 1)),
        ("3,4,1", "1", (3, 4, 1)),  # brokers refuse another order of it
    ],
)
def test_what_stays_has_no_preferred_leader_on_a_failed_disk(
    first: str, in_sync: str, then: tuple[int, ...]
) -> None:
    found = topic(
        f"{first} 1,2 1,2 1,2", in_sync=rows(f"{in_sync} 1,2 1,2 1,2"), leaders=(2, 1, 1, 1)
    )
    made = rebalance(broken(found, nodes=(*FOUR[:3], Broker(4, cordoned=True))))
    assert after(made)[0] == then
    assert after(made)[1:] != rows("1,2 1,2 1,2")


def test_a_topic_that_a_run_would_skip_stays() -> None:
    starred = topic(CROWDED, config={ThrottleSide.LEADER.list_key: "*"})
    made = rebalance(live(starred), entry=replace(ENTRY, moves=may_move(rate=None)))
    assert made.topics == ()
    assert any("a throttle list of *" in note.what for note in made.notes)
