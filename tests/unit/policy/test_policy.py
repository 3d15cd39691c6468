"""How a cluster's policy lies over that of the estate."""

from __future__ import annotations

from types import MappingProxyType

from shorthand import HERE

from reconciler.errors import Severity
from reconciler.policy.loosening import compare_policies
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


def weighing(**severities: Severity) -> Policy:
    """Return a policy with severities: of a rule, or `RULE__CONFIG`."""
    named = (key.replace("_", "-").partition("--") for key in severities)
    keys = ((rule, limit.replace("-", ".")) for rule, _, limit in named)
    return Policy(severity=MappingProxyType(dict(zip(keys, severities.values(), strict=True))))


def test_a_limit_weighs_what_is_said_of_it_or_of_its_rule() -> None:
    policy = weighing(
        policy_config_value=Severity.WARNING, policy_config_value__retention_ms=Severity.NOTE
    )
    assert policy.weigh("policy-config-value", "retention.ms") is Severity.NOTE
    assert policy.weigh("policy-config-value", "flush.ms") is Severity.WARNING
    assert policy.weigh("policy-name") is Severity.ERROR


def test_severities_are_laid_key_by_key() -> None:
    estate = weighing(policy_name=Severity.NOTE, policy_owner=Severity.NOTE)
    laid = lay_policy(estate, weighing(policy_owner=Severity.ERROR))
    assert (laid.weigh("policy-name"), laid.weigh("policy-owner")) == (
        Severity.NOTE,
        Severity.ERROR,
    )


def test_a_lower_severity_of_a_limit_is_looser_and_can_be_restored() -> None:
    then = lay_policy(weighing(policy_owner=Severity.WARNING), Policy(owner=True, deny=("a",)))
    now = lay_policy(then, weighing(policy_owner=Severity.NOTE, policy_config__a=Severity.NOTE))
    found = list(compare_policies(then, now))
    assert [(path, how) for path, how, _ in found] == [
        ("severity.policy-config.a", "error → note"),
        ("severity.policy-owner", "warning → note"),
    ]
    for _, _, part in found:
        now = lay_policy(now, part)
    assert list(compare_policies(then, now)) == []


def test_a_severity_of_what_was_not_limited_loosens_nothing() -> None:
    now = lay_policy(weighing(policy_partitions=Severity.NOTE), Policy(partitions=Bounds(ONE)))
    assert list(compare_policies(Policy(), now)) == []
