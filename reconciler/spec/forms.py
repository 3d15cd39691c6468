"""The form of documents: a topic, its overrides, a policy and clusters.yaml, as pydantic models.

The models define the keys; reconciler.spec.keys and policy_keys define how each value is read. JSON
Schemas are made from both. What pydantic finds is reported in the words of
reconciler.spec.form_errors.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from reconciler.errors import Severity
from reconciler.policy import NamePattern, Policy, PolicyRule, Subject
from reconciler.spec.fields import WrittenConfig
from reconciler.spec.keys import (
    AuditTopic,
    BrokerIds,
    Capacity,
    ClientMap,
    ClusterId,
    ClusterNames,
    ConfigMap,
    Deletes,
    Duration,
    Factor,
    Flag,
    FormatVersion,
    KafkaVersion,
    Key,
    Owned,
    Partitions,
    Patterns,
    Replication,
    Risks,
    Rows,
    Share,
    State,
    Strategy,
    TopicName,
    WordList,
    Words,
)
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
    from reconciler.spec.values import YamlText


class Form(BaseModel):
    """What every model shares: no unknown keys, nothing converted silently."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


class NameForm(Form):
    """The rules for topic names."""

    pattern: Pattern = Field(
        description="A regular expression, in the syntax of RE2, that the whole name matches."
    )
    means: Words | None = Field(default=None, description="What that is, for those who miss it.")


class ConfigPolicyForm(Form):
    """The configs that topics may set, and their allowed values."""

    allow: ConfigPatterns | None = Field(
        default=None, description="Configs that topic files may set, or patterns; no others."
    )
    deny: ConfigPatterns | None = Field(
        default=None, description="Configs that topic files may not set, or patterns."
    )
    require: ConfigPatterns | None = Field(
        default=None, description="Configs that every topic must have, set or inherited."
    )
    ranges: Ranges = Field(default={}, description="The least and the most that a config may be.")
    values: ValueLists = Field(default={}, description="The values that a config may have.")


class RuleForm(Form):
    """A rule of the team's own, in CEL."""

    check: ExpressionText = Field(description="What has to be true.")
    message: Words = Field(description="What people read where it is not.")
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
    """The limits that a team sets for its topics."""

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
        default_factory=ConfigPolicyForm.model_construct,
        description="Which configs topics may set, and to what.",
    )
    exempt: Exemptions = Field(
        default={}, description="Names and patterns of topics that a rule exempts, by its id."
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


def _make_rule(name: str, form: RuleForm) -> PolicyRule:
    return PolicyRule(
        name=name,
        check=str(form.check),
        message=str(form.message),
        where=form.check.where,
        when=_plain(form.when),
        when_where=None if form.when is None else form.when.where,
        severity=form.severity,
        subject=form.on,
    )


def _plain(text: YamlText | None) -> str | None:
    return None if text is None else str(text)


DAYS_7_MS = 7 * 86_400_000


class Layer(Form):
    """Values that topics inherit: defaults of the estate or of a cluster, or a profile."""

    partitions: Partitions = Field(
        default=None, description="Number of partitions. It never shrinks."
    )
    replication_factor: Replication = Field(default=None, description="Replicas of each partition.")
    rack_aware: Flag = Field(
        default=True, description="Spread the replicas of a partition over racks. On unless false."
    )
    gradual: Factor = Field(
        default=0,
        description="Lower retention in steps, one per plan: each to half at most, or to 1/N.",
    )
    config: ConfigMap = Field(
        default=WrittenConfig(), description="Topic configs. null removes an inherited key."
    )


class Override(Layer):
    """What differs on one cluster."""

    assignment: Rows = Field(
        default=None,
        description="Manual placement: row p lists the brokers of partition p, "
        "preferred leader first.",
    )
    state: State = Field(default="present", description="absent asks for the topic's deletion.")
    acknowledge: Risks = Field(
        default=(), description="Risks of a change that are accepted, by name."
    )


class TopicDocument(Override):
    """A topic, as a team writes it."""

    topic: TopicName = Field(description="The topic's name.")
    owner: Words | None = Field(default=None, description="Who answers for the topic.")
    description: Words | None = Field(default=None, description="What a record of it says.")
    profile: Words | None = Field(
        default=None, description="A preset of clusters.yaml to start from."
    )
    clusters: ClusterNames | None = Field(
        default=None, description="The clusters it belongs on; every cluster where left out."
    )
    overrides: dict[Key, Override] = Field(default={}, description="What differs, by cluster.")


class Profile(Layer):
    """A named preset that topics start from."""

    description: Words | None = Field(default=None, description="What the profile is for.")


class GuardsForm(Form):
    """The limits on what a single plan may change on a cluster."""

    max_changed: Share | None = Field(
        default=None, description="The share of live topics that one plan may change, as 30%."
    )
    max_deletes: Deletes = Field(
        default=0, description="How many topics one plan may delete; none unless written."
    )
    unused_for: Duration = Field(
        default=DAYS_7_MS,
        description="How long nothing was written to a topic that may be deleted.",
    )


class ClusterForm(Form):
    """A cluster: its connection, its properties, and the topics to ignore on it."""

    description: Words | None = Field(default=None, description="What the cluster is for.")
    cluster_id: ClusterId | None = Field(
        default=None,
        description="The id that the cluster reports; another cluster is refused.",
    )
    kafka_version: KafkaVersion | None = Field(
        default=None,
        description='The release line, quoted, such as "4.1": for checks without a cluster.',
    )
    client: ClientMap = Field(
        default={},
        description="Properties of the client, by librdkafka's names; secrets by reference.",
    )
    defaults: Layer = Field(
        default_factory=Layer.model_construct, description="What its topics inherit."
    )
    ignore: Patterns = Field(default=(), description="Names and patterns of topics to leave alone.")
    owns: Owned = Field(
        default=(),
        description="Names and patterns of the topics that are this estate's; others are not.",
    )
    exclude_brokers: BrokerIds = Field(
        default=(), description="Ids of brokers that take nothing new."
    )
    guards: GuardsForm = Field(
        default_factory=GuardsForm.model_construct, description="What a single plan may do at most."
    )
    policy: PolicyForm = Field(
        default_factory=PolicyForm.model_construct,
        description="What its topics may be, over the estate's policy.",
    )
    known_configs: WordList | None = Field(
        default=None,
        description="The topic configs that a managed service knows; others are left alone.",
    )
    audit_topic: AuditTopic | None = Field(
        default=None, description="An existing topic that takes a record of every apply."
    )
    strategy: Strategy = Field(
        default="optimal",
        description="How replicas are placed; striped is round-robin over the brokers.",
    )
    capacity: Capacity = Field(
        default={},
        description="How much a broker can hold relative to others, by id; 1 if not named.",
    )


class ClustersDocument(Form):
    """clusters.yaml: the clusters of the estate, and what their topics inherit."""

    version: FormatVersion = Field(description="The version of this file's format: 1.")
    defaults: Layer = Field(
        default_factory=Layer.model_construct, description="What every topic inherits."
    )
    profiles: dict[Key, Profile] = Field(default={}, description="Presets that topics start from.")
    owns: Owned = Field(
        default=(), description="What is this estate's on clusters that say nothing of their own."
    )
    policy: PolicyForm = Field(
        default_factory=PolicyForm.model_construct,
        description="What topics may be, on every cluster.",
    )
    clusters: dict[Key, ClusterForm] = Field(default={}, description="The clusters, by name.")
