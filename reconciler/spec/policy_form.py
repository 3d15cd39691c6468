"""The form of a policy in clusters.yaml, and the policy that is made of it."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from pydantic import Field

from reconciler.errors import Severity
from reconciler.policy import NamePattern, Policy, Rule, Subject
from reconciler.spec.form import Form
from reconciler.spec.keys import Key, Words
from reconciler.spec.policy_keys import (
    ConfigPatterns,
    CountBounds,
    Exemptions,
    ExpressionText,
    Pattern,
    Ranges,
    Requirement,
    RuleSeverity,
    RuleSubject,
    ValueLists,
)

if TYPE_CHECKING:
    from reconciler.spec.values import Text


class NameForm(Form):
    """What topics may be called."""

    pattern: Pattern = Field(
        description="A regular expression, in the syntax of RE2, that the whole name matches."
    )
    means: Words | None = Field(default=None, description="What that is, for those who miss it.")


class ConfigPolicyForm(Form):
    """Which configs topics may set, and to what."""

    allow: ConfigPatterns | None = Field(
        default=None, description="Configs that topic files may set, or patterns; no others."
    )
    deny: ConfigPatterns | None = Field(
        default=None, description="Configs that topic files may not set, or patterns."
    )
    require: ConfigPatterns | None = Field(
        default=None, description="Configs that every topic has, of its own or inherited."
    )
    ranges: Ranges = Field(default={}, description="The least and the most that a config may be.")
    values: ValueLists = Field(default={}, description="The values that a config may have.")


class RuleForm(Form):
    """A rule of the team's own, in CEL."""

    check: ExpressionText = Field(description="What has to be true.")
    message: Words = Field(description="What people are told where it is not.")
    when: ExpressionText | None = Field(
        default=None, description="Which subjects are asked; all of them where left out."
    )
    severity: RuleSeverity = Field(
        default=Severity.ERROR, description="error refuses, warning and note only say so."
    )
    on: RuleSubject = Field(
        default=Subject.SPEC, description="spec is asked by validate, change by plan."
    )


class PolicyForm(Form):
    """What a team allows its topics to be."""

    name: NameForm | None = Field(default=None, description="What topics may be called.")
    owner: Requirement | None = Field(default=None, description="Whether an owner is required.")
    description: Requirement | None = Field(
        default=None, description="Whether a description is required."
    )
    partitions: CountBounds | None = Field(
        default=None, description="The fewest and the most partitions of a topic."
    )
    replication_factor: CountBounds | None = Field(
        default=None, description="The fewest and the most replicas of a partition."
    )
    config: ConfigPolicyForm = Field(
        default_factory=ConfigPolicyForm, description="Which configs topics may set, and to what."
    )
    exempt: Exemptions = Field(
        default={}, description="Names and patterns of topics that a rule spares, by its id."
    )
    rules: dict[Key, RuleForm] = Field(default={}, description="Rules in CEL, by name.")


def make_policy(form: PolicyForm) -> Policy:
    """Make the policy that a form, free of findings, describes."""
    config = form.config
    return Policy(
        name=_make_name(form.name),
        owner=form.owner,
        description=form.description,
        partitions=form.partitions,
        replication_factor=form.replication_factor,
        allow=config.allow,
        deny=config.deny,
        require=config.require,
        ranges=MappingProxyType(dict(config.ranges)),
        values=MappingProxyType(dict(config.values)),
        exempt=MappingProxyType(dict(form.exempt)),
        rules=MappingProxyType({name: _make_rule(name, rule) for name, rule in form.rules.items()}),
    )


def _make_name(form: NameForm | None) -> NamePattern | None:
    if form is None:
        return None
    return NamePattern(str(form.pattern), _plain(form.means) or "")


def _make_rule(name: str, form: RuleForm) -> Rule:
    return Rule(
        name=name,
        check=str(form.check),
        message=str(form.message),
        where=form.check.where,
        when=_plain(form.when),
        when_where=None if form.when is None else form.when.where,
        severity=form.severity,
        subject=form.on,
    )


def _plain(text: Text | None) -> str | None:
    return None if text is None else str(text)
