"""The form of documents: a topic, its overrides, a policy and clusters.yaml, as pydantic models.

The models define the keys; reconciler.spec.keys and policy_keys define how each value is read. The
JSON Schemas are generated from both. reconciler.spec.form_errors translates the errors of pydantic
to findings.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from reconciler.errors import Severity
from reconciler.model.moves import MovePolicy
from reconciler.policy.patterns import NamePattern
from reconciler.policy.policy import Policy, PolicyRule, Subject
from reconciler.spec.fields import WrittenConfig
from reconciler.spec.keys import (
    AtOnce,
    AuditTopic,
    BrokerIds,
    Capacity,
    ClientMap,
    ClusterId,
    ClusterKey,
    ClusterNames,
    ConfigMap,
    Deletes,
    Duration,
    Factor,
    Flag,
    FormatVersion,
    GuardsFrom,
    KafkaVersion,
    Key,
    LeastReplicas,
    Limit,
    MoveKinds,
    Owned,
    Owner,
    Owners,
    Partitions,
    Patterns,
    Rate,
    Replication,
    Risks,
    Rows,
    Share,
    Size,
    Stages,
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
    Quota,
    Ranges,
    Requirement,
    RuleSeverity,
    RuleSubject,
    ValueLists,
)

if TYPE_CHECKING:
    from reconciler.spec.values import YamlText


class Form(BaseModel):
    """The settings of every model: unknown keys are errors, and no value is converted silently."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


class NameForm(Form):
    """The rules for topic names."""

    pattern: Pattern = Field(
        description="Regular expression (RE2) that the entire topic name must match."
    )
    means: Words | None = Field(
        default=None, description="The naming rule in plain words, shown if a name breaks it."
    )


class ConfigPolicyForm(Form):
    """The configs that topics may set, and their allowed values."""

    allow: ConfigPatterns | None = Field(
        default=None,
        description="Names or patterns of the only configs that topic files may set.",
    )
    deny: ConfigPatterns | None = Field(
        default=None, description="Names or patterns of configs that topic files must not set."
    )
    require: ConfigPatterns | None = Field(
        default=None,
        description="Names or patterns of configs that every topic must have, set or inherited.",
    )
    ranges: Ranges = Field(default={}, description="Minimum and maximum of a config, by name.")
    values: ValueLists = Field(default={}, description="Allowed values of a config, by name.")


class PerOwnerForm(Form):
    """The limits for all topics of one owner together, on one cluster."""

    topics: Quota | None = Field(default=None, description="Maximum number of topics of an owner.")
    partitions: Quota | None = Field(
        default=None, description="Maximum number of partitions of all topics of an owner."
    )
    replicas: Quota | None = Field(
        default=None, description="Maximum number of replicas of all topics of an owner."
    )


class RuleForm(Form):
    """A custom rule of a team, in CEL."""

    check: ExpressionText = Field(description="CEL expression that must be true.")
    message: Words = Field(description="Message that is shown if the check is false.")
    when: ExpressionText | None = Field(
        default=None,
        description="CEL expression: the rule applies only if it is true. Default: always.",
    )
    severity: RuleSeverity = Field(
        default=Severity.ERROR,
        description="error refuses the topic or the change; warning and note only report it.",
    )
    on: RuleSubject = Field(
        default=Subject.SPEC,
        description="What the rule checks: spec (in validate) or change (in plan).",
    )


class PolicyForm(Form):
    """The limits that a team sets for its topics."""

    name: NameForm | None = Field(default=None, description="Rule for topic names.")
    owner: Requirement | None = Field(default=None, description="Whether an owner is required.")
    description: Requirement | None = Field(
        default=None, description="Whether a description is required."
    )
    partitions: CountBounds | None = Field(
        default=None, description="Minimum and maximum number of partitions of a topic."
    )
    replication_factor: CountBounds | None = Field(
        default=None, description="Minimum and maximum number of replicas of a partition."
    )
    config: ConfigPolicyForm = Field(
        default_factory=ConfigPolicyForm.model_construct,
        description="Which configs topics may set, and their allowed values.",
    )
    per_owner: PerOwnerForm = Field(
        default_factory=PerOwnerForm.model_construct,
        description="Limits for all topics of one owner together, on each cluster.",
    )
    exempt: Exemptions = Field(
        default={},
        description="Topics that are exempt from a rule: names or patterns by rule id.",
    )
    rules: dict[Key, RuleForm] = Field(default={}, description="Custom rules in CEL, by name.")


def make_policy(form: PolicyForm) -> Policy:
    """Make the policy from a form without errors."""
    config, name, per_owner = form.config, None, form.per_owner
    if form.name is not None:
        name = NamePattern(str(form.name.pattern), _plain(form.name.means) or "")
    return Policy(
        name=name,
        owner=form.owner,
        description=form.description,
        partitions=form.partitions,
        replication_factor=form.replication_factor,
        allow=config.allow,
        deny=config.deny,
        require=config.require,
        ranges=MappingProxyType(dict(config.ranges)),
        values=MappingProxyType(dict(config.values)),
        per_owner=MappingProxyType({noun: most for noun, most in per_owner if most is not None}),
        exempt=MappingProxyType(dict(form.exempt)),
        rules=MappingProxyType({name: _make_rule(name, rule) for name, rule in form.rules.items()}),
    )


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
        default=None, description="Number of partitions. It can only grow."
    )
    replication_factor: Replication = Field(
        default=None, description="Number of replicas of each partition."
    )
    rack_aware: Flag = Field(
        default=True, description="Spread the replicas of a partition over racks. Default: true."
    )
    gradual: Factor = Field(
        default=0,
        description="Lower retention in steps, one per plan. "
        "true keeps at least half of the live limit in each step, N keeps at least 1/N.",
    )
    config: ConfigMap = Field(
        default=WrittenConfig(), description="Topic configs. null removes an inherited key."
    )


class Override(Layer):
    """The values of a topic that differ on one cluster."""

    assignment: Rows = Field(
        default=None,
        description="Manual placement: row p lists the brokers of partition p, "
        "preferred leader first.",
    )
    state: State = Field(
        default="present", description="present, or absent to request the deletion of the topic."
    )
    acknowledge: Risks = Field(default=(), description="Accepted risks of a change.")


class TopicDocument(Override):
    """The spec of a topic."""

    topic: TopicName = Field(description="Name of the topic.")
    owner: Owner | None = Field(
        default=None, description="Team or person that is responsible for the topic."
    )
    description: Words | None = Field(default=None, description="What the topic contains.")
    profile: Words | None = Field(
        default=None, description="Profile in clusters.yaml that the topic inherits from."
    )
    clusters: ClusterNames | None = Field(
        default=None, description="Clusters of the topic. Default: every cluster."
    )
    overrides: dict[Key, Override] = Field(
        default={}, description="Values that differ on a cluster, by cluster name."
    )


class Profile(Layer):
    """A named preset that topics can inherit from."""

    description: Words | None = Field(default=None, description="Purpose of the profile.")


class GuardsForm(Form):
    """The limits on what a single plan may change on a cluster."""

    max_changed: Share | None = Field(
        default=None,
        description="Maximum share of the live topics that one plan may change, such as 30%.",
    )
    max_deletes: Deletes = Field(
        default=0, description="Maximum number of topics that one plan may delete. Default: 0."
    )
    unused_for: Duration = Field(
        default=DAYS_7_MS,
        description="A topic is deleted only if nothing was written to it for this long. "
        "Default: 7d.",
    )
    from_base: GuardsFrom = Field(
        default=False,
        alias="from",
        description="base: a plan of a request uses a guard of the base where the request loosens "
        "it. Default: request.",
    )


class AtOnceForm(Form):
    """The replicas that are copied at one time."""

    cluster: AtOnce = Field(
        default=50, description="Maximum number of replicas in flight on the cluster. Default: 50."
    )
    broker: AtOnce = Field(
        default=5,
        description="Maximum number of replicas in flight to a broker, and from it. Default: 5.",
    )


class MovesForm(Form):
    """The moves of existing replicas that a cluster allows, and how fast."""

    allow: MoveKinds = Field(
        description="Allowed reasons for a move: replication, assignment, drain, rebalance."
    )
    rate: Rate = Field(
        description="Bytes per second that a broker sends, and that it receives, "
        "such as 30MiB; or unlimited."
    )
    at_once: AtOnceForm = Field(
        default_factory=AtOnceForm.model_construct,
        description="Number of replicas that are copied at one time.",
    )
    keep_free: Share = Field(
        default=15,
        description="Share of every log directory that stays free at all times. Default: 15%.",
    )
    max_bytes: Size | None = Field(
        default=None, description="Maximum number of bytes that one plan may copy, such as 2TiB."
    )


def make_move_policy(form: MovesForm | None) -> MovePolicy | None:
    """Make the policy of moves from a form without errors. None: nothing may move."""
    if form is None:
        return None
    return MovePolicy(
        allow=form.allow,
        rate_bytes_per_s=form.rate,
        at_once_cluster=form.at_once.cluster,
        at_once_broker=form.at_once.broker,
        keep_free_percent=form.keep_free,
        max_bytes=form.max_bytes,
    )


class ClusterForm(Form):
    """A cluster: its connection, its properties, and the topics to ignore on it."""

    description: Words | None = Field(default=None, description="Purpose of the cluster.")
    cluster_id: ClusterId | None = Field(
        default=None,
        description="Id of the cluster, as Kafka reports it. Any other cluster is refused.",
    )
    kafka_version: KafkaVersion | None = Field(
        default=None,
        description='Kafka version in quotes, such as "4.1", for checks without a cluster.',
    )
    client: ClientMap = Field(
        default={},
        description="Client properties of librdkafka; secrets as ${env:NAME} or ${file:/path}.",
    )
    defaults: Layer = Field(
        default_factory=Layer.model_construct,
        description="Default values for the topics of this cluster.",
    )
    ignore: Patterns = Field(
        default=(), description="Names and patterns of topics that are not managed."
    )
    owns: Owned = Field(
        default=(),
        description="Names and patterns of the only topics that this estate manages.",
    )
    exclude_brokers: BrokerIds = Field(
        default=(), description="Ids of brokers that get no new replicas."
    )
    drain_brokers: BrokerIds = Field(
        default=(),
        description="Ids of brokers that are to hold no replica. Needs drain in moves.allow.",
    )
    internal_replication_factor: LeastReplicas | None = Field(
        default=None,
        description="Least number of replicas of the topics internal to Kafka. Needs replication "
        "in moves.allow.",
    )
    guards: GuardsForm = Field(
        default_factory=GuardsForm.model_construct, description="Limits for a single plan."
    )
    moves: MovesForm | None = Field(
        default=None,
        description="Moves of existing replicas that are allowed, and how fast. Default: none.",
    )
    policy: PolicyForm = Field(
        default_factory=PolicyForm.model_construct,
        description="Limits for the topics of this cluster; they refine the estate's policy.",
    )
    known_configs: WordList | None = Field(
        default=None,
        description="The topic configs that the service supports, its own included. Others are not "
        "managed.",
    )
    keeps_defaults: Flag = Field(
        default=True,
        description="false if the service drops a value that equals its default: then that is "
        "enough. Default: true.",
    )
    audit_topic: AuditTopic | None = Field(
        default=None, description="Existing topic that receives a record of every apply."
    )
    strategy: Strategy = Field(
        default="optimal",
        description="Placement strategy: optimal, or striped (round-robin over the brokers).",
    )
    capacity: Capacity = Field(
        default={},
        description="Capacity of a broker relative to others, by broker id. Default: 1.",
    )


class AuditForm(Form):
    """The limits beyond which an audit of a fleet reports a finding. Units: shares in percent."""

    misplaced: Share = Field(
        default=5,
        description="Maximum share of a cluster's partitions whose leader is misplaced. "
        "Default: 5%.",
    )
    topic_misplaced: Share = Field(
        default=10, description="The same share of a topic's partitions. Default: 10%."
    )
    skew: Share = Field(
        default=20,
        description="Maximum difference between brokers, and between a rack and its part, "
        "relative to the mean. Default: 20%.",
    )
    even_from: Limit = Field(
        default=10,
        description="Leaders per broker from which the evenness of a cluster is checked. "
        "Default: 10.",
    )
    clusters_agree: Share = Field(
        default=60,
        description="Minimum share of the clusters with a topic that agree on a config, and of "
        "the clusters of a stage that have a topic. Default: 60%.",
    )
    topics_agree: Share = Field(
        default=80,
        description="Minimum share of an owner's topics that agree on a config. Default: 80%.",
    )
    partitions_per_broker: Limit = Field(
        default=4_000, description="Maximum number of replicas on a broker. Default: 4000."
    )
    partitions_per_directory: Limit = Field(
        default=2_000, description="Maximum number of replicas in a log directory. Default: 2000."
    )
    disk_lasts: Duration = Field(
        default=30 * 24 * 3_600_000,
        description="A topic that fills a disk within this time is reported. Default: 30d.",
    )


class ClustersDocument(Form):
    """clusters.yaml: the clusters of the estate, and the values that their topics inherit."""

    version: FormatVersion = Field(description="Version of the file format: 1.")
    defaults: Layer = Field(
        default_factory=Layer.model_construct, description="Default values for every topic."
    )
    profiles: dict[Key, Profile] = Field(
        default={}, description="Presets that topics can inherit from, by name."
    )
    owns: Owned = Field(
        default=(),
        description="Names and patterns of the only topics that this estate manages, "
        "on clusters without their own list.",
    )
    owners: Owners = Field(
        default=(),
        description="Names of the only owners that topics may have. Default: any.",
    )
    policy: PolicyForm = Field(
        default_factory=PolicyForm.model_construct,
        description="Limits for topics on every cluster.",
    )
    clusters: dict[ClusterKey, ClusterForm] = Field(default={}, description="Clusters, by name.")
    stages: Stages = Field(
        default=(),
        description="Order in which a merge reaches the clusters: [[dev], [prod-eu, prod-us]]. "
        "Default: all at once.",
    )
    audit: AuditForm = Field(
        default_factory=AuditForm.model_construct,
        description="Limits beyond which an audit of the fleet reports a finding.",
    )
