"""Rules of a team's own, asked about specs and changes: what breaks one becomes a finding."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reconciler.errors import Finding, Location
from reconciler.policy.expressions import Expression, ExpressionError, bind_facts
from reconciler.policy.facts import describe_change, describe_spec
from reconciler.policy.policy import Subject

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from reconciler.model import TopicSpec
    from reconciler.policy.facts import Change, Cluster, Facts, ReadConfig
    from reconciler.policy.policy import Rule

_MENTION = re.compile(r"""\bspec\.(?:config\[\s*(['"])([\w.]+)\1\s*\]|(\w+))""")


@dataclass(frozen=True, slots=True)
class _Compiled:
    rule: Rule
    check: Expression
    when: Expression | None


class Judge:
    """Asks the rules of one cluster. `findings`: what is wrong with the rules themselves."""

    def __init__(self, rules: Iterable[Rule], cluster: Cluster, read: ReadConfig) -> None:
        self.findings: list[Finding] = []
        self._cluster = cluster
        self._read = read
        self._rules: dict[Subject, list[_Compiled]] = {subject: [] for subject in Subject}
        for rule in rules:
            self._compile(rule)

    def judge_spec(self, spec: TopicSpec) -> Iterator[Finding]:
        """Ask every rule on specs about one that does not ask for its topic's deletion."""
        rules = self._rules[Subject.SPEC]
        if rules and not spec.absent:
            facts = describe_spec(spec, self._cluster, self._read)
            yield from _ask(rules, Subject.SPEC, facts, spec)

    def judge_change(self, spec: TopicSpec, change: Change) -> Iterator[Finding]:
        """Ask every rule on changes about what a plan does to a topic."""
        rules = self._rules[Subject.CHANGE]
        if rules and change.actions:
            facts = describe_spec(spec, self._cluster, self._read)
            facts |= describe_change(change, self._read)
            yield from _ask(rules, Subject.CHANGE, facts, spec)

    def _compile(self, rule: Rule) -> None:
        check = self._try(rule, "check", rule.check, rule.where)
        when = None
        if rule.when is not None:
            when = self._try(rule, "when", rule.when, rule.when_where or rule.where)
        if check is not None and (when is not None or rule.when is None):
            self._rules[rule.subject].append(_Compiled(rule, check, when))

    def _try(self, rule: Rule, key: str, text: str, where: Location) -> Expression | None:
        try:
            return Expression(text, rule.subject)
        except ExpressionError as error:
            what = f"{key} of the rule {rule.name} cannot be read as CEL: {error.what}"
            self.findings.append(Finding("policy-expression", what, error.way_out, where))
            return None


def _ask(
    rules: Iterable[_Compiled], subject: Subject, facts: Facts, spec: TopicSpec
) -> Iterator[Finding]:
    """Ask rules of one subject. What gives no answer is said, never passed over."""
    bound = bind_facts(facts, subject)
    for compiled in rules:
        rule = compiled.rule
        try:
            asked = compiled.when is None or compiled.when.holds(bound)
            if asked and not compiled.check.holds(bound):
                yield _blame(rule, spec)
        except ExpressionError as error:
            whom = f" for '{spec.name}'" if subject is Subject.SPEC else ""
            what = f"the rule {rule.name} gives no answer{whom}: {error.what}"
            way_out = f"mend the rule, at {rule.where}; when: keeps it from topics it is not for"
            yield Finding("policy-rule-open", what, way_out, spec.location, rule.severity)


def _blame(rule: Rule, spec: TopicSpec) -> Finding:
    """Say what a rule says. A change is told below its topic, and equal words are told once."""
    who = f"'{spec.name}' breaks" if rule.subject is Subject.SPEC else "this breaks"
    what = f"{who} the rule {rule.name}: {rule.message.rstrip('. ')}"
    way_out = f"the rule is at {rule.where.file}:{rule.where.line}"
    return Finding("policy-rule", what, way_out, _find_place(rule, spec), rule.severity)


def _find_place(rule: Rule, spec: TopicSpec) -> Location:
    """Return the line of the first thing that a check speaks of, if the topic's file has it."""
    for mention in _MENTION.finditer(rule.check):
        path = f"config.{mention[2]}" if mention[2] else mention[3]
        where = spec.fields.get(path)
        if where is not None and where.file == spec.location.file:
            return where
    return spec.location
