"""Rules asked about specs and changes: what they say, where, and how much it weighs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from shorthand import CATALOGUE, HERE, said, spec

from reconciler.errors import Location, Severity
from reconciler.policy.facts import ChangeFacts, PolicyCluster, TopicFacts
from reconciler.policy.policy import PolicyRule, Subject
from reconciler.policy.rules import Judge

THERE = Location("topics/clusters.yaml", 12, 14)
SMALL = PolicyRule("small", "spec.partitions <= 12", "Ask the platform team.", THERE)


def judge(*rules: PolicyRule) -> Judge:
    return Judge(rules, PolicyCluster("prod", estate="topics"), CATALOGUE.interpret)


def ask(rule: PolicyRule, **wished: Any) -> list[str]:
    return said(breach.finding for breach in judge(rule).judge_spec(spec(**wished)))


def test_what_breaks_a_rule_is_told_on_the_line_that_the_rule_speaks_of() -> None:
    line = Location(HERE.file, 5, 13)
    assert ask(SMALL, partitions=13, fields={"partitions": line}) == [
        f"{line}: 'shop.orders' breaks the rule small: Ask the platform team; "
        "the rule is at topics/clusters.yaml:12 [policy-rule]"
    ]
    config = replace(SMALL, check="spec.config[ 'retention.ms' ] < 3")
    fields = {"config.retention.ms": line}
    assert ask(config, config={"retention.ms": "3"}, fields=fields)[0].startswith(str(line))


def test_where_the_line_is_another_files_the_topic_is_blamed() -> None:
    (told,) = ask(SMALL, partitions=13, fields={"partitions": THERE})
    assert told.startswith(f"{HERE}: ")


def test_a_rule_is_asked_where_its_condition_holds() -> None:
    rule = replace(SMALL, when="spec.name.startsWith('shop.')", when_where=THERE)
    assert ask(rule, partitions=13)
    assert not ask(rule, name="web.clicks", partitions=13)


def test_no_answer_is_told_and_weighs_what_its_rule_does() -> None:
    (breach,) = judge(replace(SMALL, severity=Severity.WARNING)).judge_spec(spec())
    finding = breach.finding
    assert (finding.rule, finding.severity) == ("policy-rule-open", Severity.WARNING)
    assert str(finding) == (
        f"{HERE}: the rule small gives no answer for 'shop.orders': No matching overloads found : "
        "_<=_(null_type, int64); fix the rule at topics/clusters.yaml:12:14; "
        "when: limits it to the topics that it is for [policy-rule-open]"
    )


def test_what_is_wrong_with_a_rule_is_told_at_its_place_and_it_is_not_asked() -> None:
    broken = replace(SMALL, when="spec.nane == ''", when_where=Location(THERE.file, 11, 7))
    judged = judge(broken, SMALL)
    assert said(judged.findings) == [
        "topics/clusters.yaml:11:7: when of the rule small cannot be read as CEL: undeclared "
        "reference to 'spec.nane' at character 5; did you mean spec.name? [policy-expression]"
    ]
    assert len(list(judged.judge_spec(spec(partitions=13)))) == 1


OWN = "spec.name.startsWith(spec.owner + '.')"
FOREIGN = {"owner": "web", "partitions": 3, "config": {"retention.ms": "1"}, "absent": True}


@pytest.mark.parametrize(
    "check",
    [
        OWN,
        f"{OWN} && spec.partitions <= 12",
        f"spec.partitions <= 12 && {OWN}",
        "!spec.absent || spec.owner == 'platform'",
        "spec.absent ? spec.owner == 'platform' : spec.partitions <= 12",
        "spec.path == spec.owner + '.yaml'",
    ],
)
def test_a_topic_that_is_to_go_breaks_a_rule_that_no_value_decides(check: str) -> None:
    rule = replace(SMALL, check=check)
    asked = [each.finding.rule for each in judge(rule).judge_spec(spec(**FOREIGN))]
    assert asked == ["policy-rule"]


@pytest.mark.parametrize(
    "check",
    [
        "spec.partitions <= 2",
        "spec.partitions != null && spec.partitions <= 2",
        "spec.replication_factor == 3",
        "'segment.ms' in spec.config",
        "spec.config['segment.ms'] < 1 * day",
        "has(spec.config.nothing)",
        "size(spec.config) == 9",
        "spec.config.all(key, key == 'segment.ms')",
        "spec.assigned || !spec.rack_aware",
        f"spec.owner == 'web' && !({OWN}) && spec.partitions <= 2",
        "spec.partitions <= 2 || spec.owner == 'web'",
    ],
)
def test_a_topic_that_is_to_go_has_no_values_to_judge(check: str) -> None:
    assert ask(replace(SMALL, check=check), **FOREIGN) == []
    when = f"({check}) || spec.partitions < 9"
    decided = check.endswith("spec.owner == 'web'")
    assert bool(ask(replace(SMALL, check="false", when=when), **FOREIGN)) is decided


def test_a_rule_without_an_answer_does_not_let_a_topic_go() -> None:
    told = ask(replace(SMALL, check=OWN), absent=True)
    assert "gives no answer for 'shop.orders': No matching overload" in told[0]
    faked = replace(SMALL, check="""{'a': true}['No value with name "spec.x" found']""")
    assert "gives no answer" in ask(faked, absent=True)[0]


def test_who_may_delete_is_told_where_it_is_asked_for() -> None:
    line = Location(HERE.file, 4, 8)
    rule = replace(SMALL, check="!spec.absent", message="Ask us.")
    assert ask(rule, absent=True, fields={"state": line})[0].startswith(f"{line}: 'shop.orders'")


def test_a_rule_on_changes_sees_a_deletion_with_what_its_spec_says() -> None:
    never = PolicyRule(
        "never",
        "!('delete' in change.actions && spec.absent && spec.partitions == 13)",
        *("no", THERE),
        subject=Subject.CHANGE,
    )
    change = ChangeFacts(("delete",), TopicFacts(3, 1, {}), None)
    (finding,) = judge(never).judge_change(spec(partitions=13, absent=True), change)
    assert finding.rule == "policy-rule"


def test_a_change_has_two_sides() -> None:
    check = "change.before == null || change.after.partitions <= 2 * change.before.partitions"
    double = PolicyRule("double", check, "no", THERE, subject=Subject.CHANGE)
    judged = judge(double, SMALL)

    def broken(before: int, after: int) -> bool:
        change = ChangeFacts(("expand",), TopicFacts(before, 1, {}), TopicFacts(after, 1, {}))
        return bool(list(judged.judge_change(spec(partitions=after), change)))

    assert [broken(3, 6), broken(3, 7)] == [False, True]
    created = ChangeFacts(("create",), None, TopicFacts(40, 1, {}))
    assert not list(judged.judge_change(spec(partitions=40), created))


def test_nothing_is_asked_where_nothing_changes() -> None:
    no = PolicyRule("no", "false", "no", THERE, subject=Subject.CHANGE)
    assert not list(
        judge(no).judge_change(spec(), ChangeFacts((), TopicFacts(1, 1, {}), TopicFacts(1, 1, {})))
    )
