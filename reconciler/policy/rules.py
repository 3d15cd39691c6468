"""The rules that a team writes, evaluated for specs and changes. Each violation is a finding."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reconciler.errors import Finding, Location
from reconciler.policy.breaches import Breach
from reconciler.policy.facts import (
    ChangeFacts,
    Facts,
    PolicyCluster,
    ReadConfig,
    omit_values,
    state_change_facts,
    state_spec_facts,
)
from reconciler.policy.policy import BrokenLimit, PolicyRule, Subject

if TYPE_CHECKING:
    from reconciler.model.cluster import TopicSpec
    from reconciler.policy.expressions import Expression, ExpressionError

_MENTION = re.compile(
    r"""\bspec\.(?:(config|labels)(?:\[\s*(['"])([\w./-]+)\2\s*\]|\.(\w+))|(\w+))"""
)
_UNSPELLED = ("name", "file", "path", "description", "config", "labels")
"""The facts of a topic that say which one it is, or that are too long."""


@dataclass(frozen=True, slots=True)
class _Compiled:
    rule: PolicyRule
    check: Expression
    when: Expression | None


class Judge:
    """Evaluates the rules of one cluster. `findings`: the errors in the rules themselves."""

    def __init__(
        self, rules: Iterable[PolicyRule], cluster: PolicyCluster, read: ReadConfig
    ) -> None:
        self.findings: list[Finding] = []
        self._cluster = cluster
        self._read = read
        self._rules: dict[Subject, list[_Compiled]] = {subject: [] for subject in Subject}
        for rule in rules:
            check = self._compile(rule, "check", rule.check, rule.where)
            when = None
            if rule.when is not None:
                when = self._compile(rule, "when", rule.when, rule.when_where or rule.where)
            # Without its `when`, a rule would apply to topics that it is not for.
            if check is not None and (when is not None or rule.when is None):
                self._rules[rule.subject].append(_Compiled(rule, check, when))

    def judge_spec(self, spec: TopicSpec) -> Iterator[Breach]:
        """Evaluate every rule on specs for one spec.

        A topic to be deleted has no values, so a rule that depends on them does not apply to it.
        """
        rules = self._rules[Subject.SPEC]
        if rules:
            facts = state_spec_facts(spec, self._cluster, self._read)
            facts = omit_values(facts) if spec.absent else facts
            yield from _ask(rules, Subject.SPEC, facts, spec)

    def judge_change(self, spec: TopicSpec, change: ChangeFacts) -> Iterator[Finding]:
        """Evaluate every rule on changes for the change of one topic."""
        rules = self._rules[Subject.CHANGE]
        if rules and change.actions:
            facts = state_spec_facts(spec, self._cluster, self._read)
            facts |= state_change_facts(change, self._read)
            yield from (breach.finding for breach in _ask(rules, Subject.CHANGE, facts, spec))

    def _compile(self, rule: PolicyRule, key: str, text: str, where: Location) -> Expression | None:
        """Compile one expression of a rule; report its error and return None if it has one."""
        from reconciler.policy.expressions import (
            CostlyExpressionError,
            Expression,
            ExpressionError,
        )

        try:
            return Expression(text, rule.subject)
        except CostlyExpressionError as error:
            what = f"{key} of the rule {rule.name} {error.what}"
            self.findings.append(Finding("policy-expression-cost", what, error.way_out, where))
            return None
        except ExpressionError as error:
            what = f"{key} of the rule {rule.name} cannot be read as CEL: {error.what}"
            self.findings.append(Finding("policy-expression", what, error.way_out, where))
            return None


def _ask(
    rules: Iterable[_Compiled], subject: Subject, facts: Facts, spec: TopicSpec
) -> Iterator[Breach]:
    """Evaluate rules for one subject. A rule without an answer is a finding, never a pass."""
    from reconciler.policy.expressions import ExpressionError, bind_facts

    bound = bind_facts(facts, subject)
    for compiled in rules:
        rule, key = compiled.rule, "when"
        try:
            asked = compiled.when is None or compiled.when.holds(bound)
            key = "check"
            if asked and not compiled.check.holds(bound):
                broken = BrokenLimit("policy-rule", spec.name, rule.name)
                yield Breach(_blame(rule, spec), broken, _spell_mentioned(rule, facts))
        except ExpressionError as error:
            # CEL lets `false && x` be false and `true || x` true, even if x has no value. So this
            # is an answer that no other part of the expression decides.
            if error.is_omitted:
                continue
            if error.is_of_rule and subject is Subject.SPEC:
                yield Breach(_blame_rule(rule, key, error), None)
                continue
            whom = f" for '{spec.name}'" if subject is Subject.SPEC else ""
            what = f"the rule {rule.name} gives no answer{whom}: {error.what}"
            way_out = f"fix the rule at {rule.where}; when: limits it to the topics that it is for"
            finding = Finding("policy-rule-open", what, way_out, spec.location, rule.severity)
            yield Breach(finding, None)


def _spell_mentioned(rule: PolicyRule, facts: Facts) -> str:
    """Spell the values of a topic that a rule depends on: `partitions 24, retention.ms 3600000`.

    It identifies what breaks the rule, so a baseline ends where it changes.
    """
    mentioned = {}
    for mention in _MENTION.finditer(f"{rule.when or ''} {rule.check}"):
        inner = mention[3] or mention[4]
        key = inner or mention[5]
        if inner:
            values = facts.get(f"spec.{mention[1]}")
            value = values.get(key) if isinstance(values, Mapping) else None
        elif key in _UNSPELLED:
            continue
        else:
            value = facts.get(f"spec.{key}")
        if value is not None:
            mentioned[key] = _spell(value)
    return ", ".join(f"{key} {value}" for key, value in sorted(mentioned.items()))


def _spell(value: object) -> str:
    if isinstance(value, list):
        return "+".join(sorted(map(str, value)))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _blame_rule(rule: PolicyRule, key: str, error: ExpressionError) -> Finding:
    """Return the finding for an expression that has no answer for any topic: at its own place."""
    where = rule.when_where if key == "when" and rule.when_where else rule.where
    what = f"{key} of the rule {rule.name} gives no answer: {error.what}"
    return Finding("policy-rule-open", what, error.way_out, where, rule.severity)


def _blame(rule: PolicyRule, spec: TopicSpec) -> Finding:
    """Return the finding for a rule that a subject breaks."""
    # A plan shows a change below its topic, and shows equal texts once: no name is needed there.
    who = f"'{spec.name}' breaks" if rule.subject is Subject.SPEC else "this breaks"
    what = f"{who} the rule {rule.name}: {rule.message.rstrip('. ')}"
    way_out = f"the rule is at {rule.where.file}:{rule.where.line}"
    return Finding("policy-rule", what, way_out, _find_place(rule, spec), rule.severity)


def _find_place(rule: PolicyRule, spec: TopicSpec) -> Location:
    """Return the line of the first value that a check mentions and the topic's file contains."""
    for mention in _MENTION.finditer(rule.check):
        key = mention[3] or mention[4]
        path = f"{mention[1]}.{key}" if key else mention[5]
        where = spec.fields.get("state" if path == "absent" else path)
        if where is not None and where.file == spec.location.file:
            return where
    return spec.location
