"""Limits of a policy, one fact each: what passes, what does not, and what is said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from shorthand import HERE, said, spec

from reconciler.errors import Location
from reconciler.policy.limits import check_limits, read_limit
from reconciler.policy.patterns import NamePattern
from reconciler.policy.policy import Bounds, Limit, Policy

ELSEWHERE = Location("topics/clusters.yaml", 8, 3)


def at_most(number: int, shown: str = "") -> Bounds:
    return Bounds(most=Limit(number, shown or str(number)))


def check(policy: Policy, name: str = "shop.orders", **wished: Any) -> list[str]:
    breaches = check_limits(spec(name, **wished), policy, "prod")
    return said(breach.finding for breach in breaches)


def rules(policy: Policy, **wished: Any) -> list[str]:
    return [each.finding.rule for each in check_limits(spec(**wished), policy, "prod")]


def own(*keys: str) -> dict[str, Location]:
    """Place configs in the topic's own file."""
    return {f"config.{key}": HERE for key in keys}


def test_a_name_matches_from_end_to_end() -> None:
    policy = Policy(name=NamePattern("[a-z]+|shop", "one word"))
    assert check(policy, "shop") == []
    assert check(policy, "shop.orders") == [
        "topics/shop.yaml:3:1: the name 'shop.orders' is not one word; "
        "choose a name that [a-z]+|shop matches from start to end [policy-name]"
    ]


@pytest.mark.parametrize("word", ["owner", "description"])
def test_words_are_asked_for_where_they_are_required(word: str) -> None:
    assert rules(Policy(**{word: True})) == [f"policy-{word}"]
    assert rules(Policy(**{word: True}), **{word: "x"}) == []
    assert rules(Policy(**{word: False})) == []


def test_counts_have_limits_that_belong_to_them() -> None:
    policy = Policy(partitions=Bounds(Limit(3, "3"), Limit(12, "12")))
    assert [rules(policy, partitions=n) for n in (3, 12)] == [[], []]
    assert check(policy, partitions=13) == [
        "topics/shop.yaml:3:1: partitions 13 exceeds 12, the most that the policy of prod allows; "
        "use at most 12; exempt a topic that has more already [policy-partitions]"
    ]
    assert check(policy, partitions=2) == [
        "topics/shop.yaml:3:1: partitions 2 is below 3, the least that the policy of prod allows; "
        "use at least 3 [policy-partitions]"
    ]


def test_a_count_that_is_not_managed_has_no_limits() -> None:
    policy = Policy(partitions=at_most(1), replication_factor=at_most(1))
    assert rules(policy) == []
    assert rules(policy, replication_factor=2) == ["policy-replication"]


def test_what_a_profile_says_is_told_at_its_place() -> None:
    (breach,) = check_limits(
        spec(partitions=13, fields={"partitions": ELSEWHERE}),
        Policy(partitions=at_most(12)),
        "prod",
    )
    assert breach.finding.where == ELSEWHERE
    assert "partitions 13, which topics inherit, exceeds 12" in breach.finding.what


@pytest.mark.parametrize(
    ("policy", "passes"),
    [
        (Policy(allow=("retention.*",)), True),
        (Policy(allow=("segment.ms",)), False),
        (Policy(deny=("retention.ms",)), False),
        (Policy(deny=("segment.*",)), True),
        (Policy(allow=("retention.*",), deny=("*.ms",)), False),
    ],
)
def test_a_topics_file_sets_what_is_left_to_it(policy: Policy, passes: bool) -> None:
    found = rules(policy, config={"retention.ms": "1"}, fields=own("retention.ms"))
    assert found == ([] if passes else ["policy-config"])


def test_what_is_inherited_is_not_the_topics_doing() -> None:
    policy = Policy(allow=("segment.ms",), deny=("retention.ms",))
    inherited = {"config.retention.ms": ELSEWHERE}
    assert rules(policy, config={"retention.ms": "1"}, fields=inherited) == []


def test_a_required_config_may_be_inherited() -> None:
    policy = Policy(require=("retention.ms",))
    assert rules(policy, config={"retention.ms": "1"}) == []
    assert rules(policy) == ["policy-config-missing"]


@pytest.mark.parametrize(
    ("value", "passes"), [("86400000", True), ("86400001", False), ("-1", False)]
)
def test_no_limit_at_all_exceeds_every_limit(value: str, passes: bool) -> None:
    policy = Policy(ranges={"retention.ms": at_most(86_400_000, "1d")})
    assert rules(policy, config={"retention.ms": value}) == (
        [] if passes else ["policy-config-value"]
    )


def test_below_zero_means_no_limit_for_durations_and_sizes_only() -> None:
    assert read_limit("retention.bytes", "-1") == float("inf")
    assert read_limit("compression.zstd.level", "-5") == -5


def test_each_item_of_a_list_is_allowed() -> None:
    policy = Policy(values={"cleanup.policy": ("compact", "delete")})
    assert rules(policy, config={"cleanup.policy": "compact,delete"}) == []
    policy = Policy(values={"cleanup.policy": ("delete",)})
    assert check(policy, config={"cleanup.policy": "compact,delete"}) == [
        "topics/shop.yaml:3:1: cleanup.policy compact,delete is not a value that the policy of "
        "prod allows; use delete [policy-config-value]"
    ]


def test_a_topic_is_spared_by_the_rule_that_names_it_only() -> None:
    policy = Policy(
        owner=True, partitions=at_most(1), exempt={"policy-partitions": ("shop.*", "legacy")}
    )
    assert rules(policy, partitions=2) == ["policy-owner"]


LIMITS = Policy(
    partitions=at_most(1),
    replication_factor=at_most(1),
    allow=("segment.*",),
    require=("compression.type",),
    ranges={"retention.ms": at_most(1)},
    values={"cleanup.policy": ("delete",)},
)
BEYOND: dict[str, Any] = {
    "partitions": 2,
    "replication_factor": 2,
    "config": {"retention.ms": "2", "cleanup.policy": "compact"},
    "fields": {f"config.{key}": HERE for key in ("retention.ms", "cleanup.policy")},
}


def test_a_topic_that_is_to_go_has_no_values_to_limit() -> None:
    assert len(rules(LIMITS, **BEYOND)) == 7
    assert rules(LIMITS, absent=True, **BEYOND) == []


def test_a_topic_that_is_to_go_has_a_name_an_owner_and_a_description() -> None:
    policy = replace(LIMITS, name=NamePattern("web[.].*", ""), owner=True, description=True)
    assert check(policy, absent=True, **BEYOND)[0] == (
        f"{HERE}: the name 'shop.orders' is not what the pattern web[.].* asks for; exempt it "
        "from policy-name in clusters.yaml if it may be deleted from here [policy-name]"
    )
    assert rules(policy, absent=True, **BEYOND) == [
        "policy-name",
        "policy-owner",
        "policy-description",
    ]
    spared = replace(policy, exempt={"policy-name": ("shop.*",)})
    assert rules(spared, absent=True, owner="me", description="old") == []
