"""Labels in a policy: those that topics must have, their values, and quotas by label."""

from __future__ import annotations

import pytest
from shorthand import said

from reconciler.errors import SpecError
from reconciler.policy.loosening import compare_policies
from reconciler.policy.policy import lay_policy
from reconciler.spec.estate import Estate, parse_estate


def load(policy: str, *topics: str) -> Estate:
    clusters = f"version: 1\npolicy: {policy}\nclusters: {{prod: {{}}}}\n"
    files = {"clusters.yaml": clusters.encode(), "shop.yaml": "\n---\n".join(topics).encode()}
    return parse_estate(files, "topics")


def refuse(policy: str, *topics: str) -> list[str]:
    with pytest.raises(SpecError) as refused:
        load(policy, *topics)
    return said(refused.value.findings)


def test_a_policy_requires_labels_and_limits_their_values() -> None:
    policy = "{labels: {require: [tier, pii], values: {tier: [gold, '1'], pii: ['true', 'false']}}}"
    assert load(policy, "topic: a\nlabels: {tier: gold, pii: 'true', other: free}")
    assert refuse(policy, "topic: a\nlabels: {tier: tin}") == [
        "topics/shop.yaml:1:8: the topic 'a' has no label pii, and the policy requires it; "
        'write labels: {pii: "true"} or {pii: "false"} [policy-label-missing]',
        "topics/shop.yaml:2:16: the label tier: 'tin' is not a value that the policy allows; "
        'use gold or "1" [policy-label-value]',
    ]
    exempt = policy[:-1] + ", exempt: {policy-label-missing: [a], policy-label-value: [a]}}"
    assert load(exempt, "topic: a\nlabels: {tier: tin}")


def test_a_topic_to_be_deleted_keeps_the_rules_on_labels() -> None:
    (found,) = refuse("{labels: {require: [tier]}}", "topic: a\nstate: absent")
    assert "[policy-label-missing]" in found


def topic(name: str, partitions: int, labels: str) -> str:
    return f"topic: {name}\npartitions: {partitions}\nlabels: {labels}"


THREE = (
    topic("a", 4, "{domain: shop, tier: gold}"),
    topic("b", 5, "{domain: shop}"),
    topic("c", 6, "{domain: pay, tier: gold}"),
    topic("d", 90, "{}"),
)


def test_a_quota_per_label_holds_for_each_of_its_values() -> None:
    assert load("{per_label: {domain: {partitions: 9, topics: 2}}}", *THREE)
    assert refuse("{per_label: {domain: {partitions: 8}}}", *THREE) == [
        "topics/shop.yaml:6:13: the topics with domain: 'shop' ask for 9 partitions on prod, "
        "1 more than the 8 of the quota per label, most of them for b (5, topics/shop.yaml:6), "
        "a (4, topics/shop.yaml:2); ask for 1 fewer in new topics, or write policy: {per_label: "
        "{domain=shop: {partitions: 9}}} for prod in clusters.yaml, or exempt topics from "
        "quota-per-label [quota-per-label]"
    ]


def test_a_quota_of_one_value_replaces_that_of_any() -> None:
    assert load("{per_label: {domain: {partitions: 8}, domain=shop: {partitions: 9}}}", *THREE)
    (found,) = refuse(
        "{per_label: {domain: {partitions: 9}, domain=pay: {topics: 1, partitions: 5}}}", *THREE
    )
    assert "with domain: 'pay' ask for 6 partitions" in found
    assert load("{per_label: {tier=gold: {topics: 2}}}", *THREE)
    assert "ask for 2 topics" in refuse("{per_label: {tier=gold: {topics: 1}}}", *THREE)[0]


def test_a_limit_on_labels_has_a_severity() -> None:
    policy = (
        "{labels: {require: [tier], values: {pii: ['true']}}, per_label: {pii: {topics: 1}},"
        " severity: {policy-label-missing: warning, policy-label-value: note,"
        " quota-per-label: {topics: note}}}"
    )
    estate = load(policy, *(topic(name, 1, "{pii: 'yes'}") for name in "ab"))
    assert sorted((found.rule, str(found.severity)) for found in estate.findings) == [
        *[("policy-label-missing", "warning")] * 2,
        *[("policy-label-value", "note")] * 2,
        ("quota-per-label", "note"),
    ]


def test_exempt_topics_do_not_count() -> None:
    policy = "{per_label: {tier=gold: {topics: 1}}, exempt: {quota-per-label: [c]}}"
    assert load(policy, *THREE)


@pytest.mark.parametrize("choice", ["'a b'", "tier=, x", "=gold", "'tier=g=h'"])
def test_a_quota_names_a_label_or_a_label_and_its_value(choice: str) -> None:
    found = refuse(f"{{per_label: {{{choice}: {{topics: 1}}}}}}", "topic: a")
    assert any("[label-form]" in line or "[value-" in line for line in found)


@pytest.mark.parametrize(
    ("then", "now", "path"),
    [
        ("{labels: {require: [tier, pii]}}", "{labels: {require: [pii]}}", "labels.require"),
        ("{labels: {values: {t: [a]}}}", "{labels: {values: {t: [a, b]}}}", "labels.values.t"),
        ("{labels: {values: {t: [a]}}}", "{}", "labels.values.t"),
        ("{per_label: {d: {topics: 5}}}", "{per_label: {d: {topics: 6}}}", "per_label.d.topics"),
        ("{per_label: {d: {topics: 5}}}", "{}", "per_label.d.topics"),
        (
            "{per_label: {d: {topics: 5}}}",
            "{per_label: {d: {topics: 5}, d=x: {topics: 6}}}",
            "per_label.d=x.topics",
        ),
        (
            "{per_label: {d: {topics: 5}, d=x: {replicas: 5}}}",
            "{per_label: {d: {topics: 5}, d=x: {replicas: 5, topics: 6}}}",
            "per_label.d=x.topics",
        ),
        (
            "{per_label: {d: {topics: 5}, d=x: {topics: 2}}}",
            "{per_label: {d: {topics: 5}}}",
            "per_label.d=x.topics",
        ),
        (
            "{per_label: {d: {topics: 5}}}",
            "{per_label: {d: {topics: 5}, d=x: {topics: 4, partitions: 9}}}",
            "",
        ),
    ],
)
def test_a_request_that_loosens_a_limit_on_labels_is_seen(then: str, now: str, path: str) -> None:
    labelled = "topic: a\nlabels: {tier: x, pii: x, t: a}"
    old, new = (load(text, labelled).clusters["prod"].policy for text in (then, now))
    parts = list(compare_policies(old, new))
    assert [part.path for part in parts] == [path] * bool(path)
    for part in parts:
        assert list(compare_policies(old, lay_policy(new, part.part))) == []


def test_a_rule_reads_labels_and_points_at_them() -> None:
    pytest.importorskip("cel_expr_python")
    rule = (
        "{rules: {pii: {when: \"'pii' in spec.labels && spec.labels.pii == 'true'\", "
        "check: \"spec.labels['tier'] == 'gold'\", message: Personal data needs tier gold.}}}"
    )
    assert load(rule, topic("a", 1, "{pii: 'true', tier: gold}"), topic("b", 1, "{tier: tin}"))
    (found,) = refuse(rule, topic("a", 1, "{pii: 'true', tier: tin}"))
    assert found.startswith("topics/shop.yaml:3:29: 'a' breaks the rule pii: Personal data")
