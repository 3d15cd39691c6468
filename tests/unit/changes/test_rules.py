"""What rules on changes see of a diff, and what becomes of their answers."""

from __future__ import annotations

from dataclasses import replace

from shorthand import CATALOGUE, cluster, diff, spec, topic

from reconciler.changes.rules import gather_facts, judge_changes
from reconciler.errors import Location, Severity
from reconciler.policy.facts import PolicyCluster, TopicFacts
from reconciler.policy.policy import PolicyRule, Subject
from reconciler.policy.rules import Judge

THERE = Location("topics/clusters.yaml", 12, 14)
NO_DATA_LOSS = PolicyRule(
    "keep", "!('data-loss' in change.risks)", "Ask.", THERE, subject=Subject.CHANGE
)


def judge(*rules: PolicyRule) -> Judge:
    return Judge(rules, PolicyCluster("prod"), CATALOGUE.interpret)


def test_a_new_topic_has_no_before() -> None:
    wished = spec(partitions=3, replication_factor=2, config={"segment.ms": "60000"})
    change = gather_facts(diff(wished), cluster(defaults={"retention.ms": "5"}))
    assert (change.actions, change.before, change.config_keys) == (
        ("create",),
        None,
        ("segment.ms",),
    )
    assert change.after == TopicFacts(3, 2, {"retention.ms": "5", "segment.ms": "60000"})


def test_a_change_tells_what_is_in_force_on_both_sides() -> None:
    state = cluster(
        topic("1,2 2,3", config={"retention.ms": "9"}),
        defaults={"retention.ms": "7", "segment.ms": "3"},
    )
    change = gather_facts(diff(spec(partitions=4, config={"segment.ms": "2"}), state), state)
    assert change.actions == ("expand", "configure")
    assert change.before == TopicFacts(2, 2, {"retention.ms": "9", "segment.ms": "3"})
    assert change.after == TopicFacts(4, 2, {"retention.ms": "7", "segment.ms": "2"})
    assert change.config_keys == ("retention.ms", "segment.ms")
    assert change.risks == ("data-loss", "ordering")


def test_nothing_to_do_is_no_action() -> None:
    state = cluster(topic("1 2"))
    assert gather_facts(diff(spec(partitions=2), state), state).actions == ()


def test_a_deletion_has_no_after() -> None:
    state = cluster(topic("1 2"))
    change = gather_facts(diff(spec(absent=True), state), state)
    assert (change.actions, change.after) == (("delete",), None)


def test_an_error_refuses_and_a_warning_is_kept() -> None:
    state = cluster(topic("1 2"), defaults={"retention.ms": "7"})
    wished = diff(spec(config={"retention.ms": "6"}, acknowledge=frozenset({"data-loss"})), state)
    rules = (NO_DATA_LOSS, replace(NO_DATA_LOSS, name="mind", severity=Severity.WARNING))
    (judged,) = judge_changes([wished], state, judge(*rules))
    assert [finding.what for finding in judged.refusals] == ["this breaks the rule keep: Ask"]
    assert [finding.severity for finding in judged.notes] == [Severity.WARNING]
