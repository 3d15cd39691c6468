"""How a cluster's policy lies over that of the estate."""

from __future__ import annotations

from types import MappingProxyType

from shorthand import HERE

from reconciler.policy.policy import Bounds, Limit, Policy, PolicyRule, lay_policy

ONE, NINE = Limit(1, "1"), Limit(9, "9")


def test_what_the_cluster_leaves_out_stays() -> None:
    estate = Policy(owner=True, partitions=Bounds(ONE, NINE), deny=("segment.*",))
    assert lay_policy(estate, Policy()) == estate
    assert lay_policy(Policy(), estate) == estate


def test_a_cluster_goes_before_the_estate() -> None:
    laid = lay_policy(Policy(owner=True, allow=("a", "b")), Policy(owner=False, allow=("c",)))
    assert (laid.owner, laid.allow) == (False, ("c",))


def test_both_ends_of_a_range_are_laid_by_themselves() -> None:
    estate = Policy(partitions=Bounds(ONE, NINE))
    laid = lay_policy(estate, Policy(partitions=Bounds(most=Limit(6, "6"))))
    assert laid.partitions == Bounds(ONE, Limit(6, "6"))


def test_configs_and_rules_are_laid_key_by_key() -> None:
    first, second = PolicyRule("first", "true", "x", HERE), PolicyRule("second", "true", "x", HERE)
    other = PolicyRule("first", "false", "x", HERE)
    estate = Policy(
        ranges=MappingProxyType({"a": Bounds(ONE, NINE)}), rules=MappingProxyType({"first": first})
    )
    cluster = Policy(
        ranges=MappingProxyType({"a": Bounds(most=ONE), "b": Bounds(ONE)}),
        rules=MappingProxyType({"first": other, "second": second}),
    )
    laid = lay_policy(estate, cluster)
    assert laid.ranges == {"a": Bounds(ONE, ONE), "b": Bounds(ONE)}
    assert laid.rules == {"first": other, "second": second}
