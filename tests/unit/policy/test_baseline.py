"""What a baseline exempts: what broke a limit before, as long as it gets no worse."""

from __future__ import annotations

from types import MappingProxyType

import pytest
from shorthand import HERE, spec

from reconciler.errors import Severity
from reconciler.policy.baseline import Settled, is_worse, settle
from reconciler.policy.breaches import Breach
from reconciler.policy.facts import PolicyCluster
from reconciler.policy.limits import check_limits
from reconciler.policy.loosening import compare_policies
from reconciler.policy.policy import (
    Baseline,
    Bounds,
    BrokenLimit,
    Limit,
    Policy,
    PolicyRule,
    Subject,
    lay_policy,
)
from reconciler.policy.quotas import check_quotas
from reconciler.policy.rules import Judge
from reconciler.spec.configs import choose_catalogue

RANGE = Bounds(Limit(3, "3"), Limit(48, "48"))
PARTITIONS = BrokenLimit("policy-partitions", "shop.orders")
OTHER = BrokenLimit("policy-partitions", "shop.other")


def knowing(values: dict[BrokenLimit, str], policy: Policy | None = None) -> Policy:
    known = Policy(baseline=Baseline(MappingProxyType(values)))
    return lay_policy(policy or Policy(partitions=RANGE), known)


def check(policy: Policy, partitions: int) -> Settled:
    return settle(check_limits(spec(partitions=partitions), policy, "prod"), policy)


@pytest.mark.parametrize(
    ("known", "value", "worse"),
    [
        ("60", "60", False),
        ("60", "54", False),
        ("60", "61", True),
        ("1", "2", False),
        ("2", "1", True),
        ("60", "2", True),  # on the other side
        ("-", "60", True),
    ],
)
def test_a_number_may_come_nearer_to_its_range_and_go_no_further(
    known: str, value: str, worse: bool
) -> None:
    assert is_worse("", value, known, RANGE) is worse


def test_no_limit_is_further_than_any_number() -> None:
    day = Bounds(most=Limit(86_400_000, "1d"))
    assert is_worse("retention.ms", "-1", "172800000", day)
    assert not is_worse("retention.ms", "172800000", "-1", day)
    assert not is_worse("retention.ms", "-1", "-1", day)


def test_a_value_of_no_range_stays_as_it_is() -> None:
    assert not is_worse("cleanup.policy", "delete,compact", "compact,delete", None)
    assert is_worse("cleanup.policy", "delete", "compact,delete", None)


def test_a_breach_of_the_baseline_is_no_finding() -> None:
    exempted = check(knowing({PARTITIONS: "60"}), 60)
    assert exempted.findings == ()
    assert [(each.broken, each.value) for each in exempted.exempt] == [(PARTITIONS, "60")]
    assert len(check(knowing({OTHER: "60"}), 60).findings) == 1


def test_what_is_worse_than_before_is_a_finding_that_says_so() -> None:
    findings, exempt = check(knowing({PARTITIONS: "60"}), 61)
    assert exempt == ()
    assert findings[0].what.endswith("allows (the baseline exempts 60)")


def test_everything_can_be_exempt_so_that_it_can_be_listed() -> None:
    policy = Policy(partitions=RANGE, baseline=Baseline(MappingProxyType({}), everything=True))
    assert [each.broken for each in check(policy, 1).exempt] == [PARTITIONS]


def test_an_owner_stays_within_what_it_asked_for() -> None:
    broken = BrokenLimit("quota-per-owner", "me", "partitions")
    policy = knowing({broken: "20"}, Policy(per_owner=MappingProxyType({"partitions": 10})))
    for partitions, errors in ((20, 0), (15, 0), (21, 1)):
        found = check_quotas([spec(partitions=partitions, owner="me")], policy, "prod")
        assert len(settle(found, policy).findings) == errors


RULE = PolicyRule(
    "small",
    "spec.partitions <= 3",
    "Small.",
    HERE,
    when="spec.config['cleanup.policy'] == ['compact']",
    severity=Severity.WARNING,
    subject=Subject.SPEC,
)


def ask(rule: PolicyRule, **wished: object) -> list[Breach]:
    read = choose_catalogue(None).interpret
    return list(Judge([rule], PolicyCluster("prod"), read).judge_spec(spec(**wished)))


def test_a_rule_in_cel_is_broken_at_the_values_that_it_mentions() -> None:
    pytest.importorskip("cel_expr_python")
    (breach,) = ask(RULE, partitions=4, config={"cleanup.policy": "compact"}, owner="me")
    assert breach.broken == BrokenLimit("policy-rule", "shop.orders", "small")
    assert breach.value == "cleanup.policy compact, partitions 4"


def test_a_rule_without_an_answer_is_never_exempt() -> None:
    pytest.importorskip("cel_expr_python")
    policy = Policy(baseline=Baseline(MappingProxyType({}), everything=True))
    (breach,) = ask(RULE, partitions=4)
    assert breach.broken is None
    assert settle([breach], policy).findings == (breach.finding,)


def test_more_exemptions_are_looser_and_can_be_taken_back() -> None:
    then = knowing({PARTITIONS: "60"})
    now = knowing({PARTITIONS: "72", OTHER: "50"})
    ((path, how, part),) = compare_policies(then, now)
    assert path == "baseline"
    assert how == (
        "2 new or wider exemptions: shop.orders (policy-partitions 72), "
        "shop.other (policy-partitions 50)"
    )
    held = lay_policy(now, part).baseline
    assert held is not None
    assert held.values == {PARTITIONS: "60"}
    assert list(compare_policies(then, lay_policy(now, part))) == []


@pytest.mark.parametrize("now", [{}, {PARTITIONS: "60"}, {PARTITIONS: "50"}])
def test_fewer_and_narrower_exemptions_loosen_nothing(now: dict[BrokenLimit, str]) -> None:
    assert list(compare_policies(knowing({PARTITIONS: "60"}), knowing(now))) == []


def test_an_exemption_from_a_new_limit_loosens_nothing() -> None:
    assert list(compare_policies(Policy(), knowing({PARTITIONS: "60"}))) == []
