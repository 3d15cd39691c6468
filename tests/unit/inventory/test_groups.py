"""Rows of groups: lag, what is behind most, and what is unknown."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.inventory.groups import GroupRow, list_groups
from reconciler.model.cluster import Place
from reconciler.model.groups import Group, GroupMember, GroupsReading

ENDS = {("a", 0): 100, ("a", 1): 50, ("b", 0): 7}


def group(committed: Mapping[Place, int], *reads: Place, name: str = "billing") -> Group:
    members = (GroupMember("c", "h", frozenset(reads)),) if reads else ()
    return Group(name, "classic", "consumer", "Stable", members, committed)


def row(one: Group, topics: set[str] | None = None) -> GroupRow:
    (found,) = list_groups(GroupsReading((one,), ENDS), topics)
    return found


def test_the_lag_is_the_sum_over_partitions() -> None:
    found = row(group({("a", 0): 90, ("a", 1): 20, ("b", 0): 7}))
    assert (found.lag, found.most, found.topics) == (40, ("a", 1), ("a", "b"))


def test_the_lag_of_chosen_topics_leaves_others_out() -> None:
    found = row(group({("a", 0): 90, ("b", 0): 2}, ("a", 0)), {"b"})
    assert (found.lag, found.most, found.topics, found.members) == (5, ("b", 0), ("b",), 0)


def test_no_lag_is_most_behind_nowhere() -> None:
    assert (row(group({("b", 0): 7})).lag, row(group({("b", 0): 7})).most) == (0, None)


def test_an_offset_beyond_the_end_is_no_lag() -> None:
    assert row(group({("b", 0): 9})).lag == 0  # the end was read before the commit


def test_the_lag_is_unknown_if_the_end_of_a_partition_is() -> None:
    assert row(group({("b", 0): 7, ("gone", 0): 1})).lag is None


def test_partitions_that_are_read_without_a_commit_are_counted() -> None:
    found = row(group({("a", 0): 100}, ("a", 0), ("a", 1), ("b", 0)))
    assert (found.uncommitted, found.topics, found.lag) == (2, ("a", "b"), 0)
    assert row(group({}, ("a", 0))).lag is None


def test_a_group_of_which_nothing_is_known_may_read_any_topic() -> None:
    share = Group("pool", "share", "share", "Stable", unseen="no client can ask")
    other = group({("a", 0): 1})
    found = list_groups(GroupsReading((share, other), ENDS), {"b"})
    assert [(each.group, each.unseen) for each in found] == [("pool", "no client can ask")]
