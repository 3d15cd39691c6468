"""Every key of a topic's spec and of clusters.yaml, a policy included: each is declared here once.

`declarations` says how, and reads documents by these forms.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from reconciler.errors import Severity
from reconciler.model.cluster import Assignment
from reconciler.model.hours import DAYS, MoveHours
from reconciler.model.moves import AskedRebalance, LoadAim, LoadKind, MoveKind, MovePolicy
from reconciler.model.rates import Rate
from reconciler.policy.patterns import NamePattern
from reconciler.policy.policy import Bounds, Policy, PolicyRule, Subject
from reconciler.spec import keys, policy_keys
from reconciler.spec.acknowledgements import Acknowledged
from reconciler.spec.declarations import form, key, list_keys, table, table_or_none, tables
from reconciler.spec.fields import FLAG, PATTERNS, TEXT, TEXTS, WrittenConfig, or_null, whole
from reconciler.spec.labels import LABELS
from reconciler.spec.services import APACHE, Placement
from reconciler.spec.values import YamlText
from reconciler.units import DAY


@form
class NameForm:
    """The rules for topic names."""

    pattern: YamlText = key(
        policy_keys.PATTERN,
        "Regular expression (RE2) that the entire topic name must match.",
        asks="'[a-z]+(\\.[a-z]+)+'",
    )
    means: YamlText | None = key(TEXT, "The naming rule in plain words, shown if a name breaks it.")


@form
class ConfigPolicyForm:
    """The configs that topics may set, and their allowed values."""

    allow: tuple[str, ...] | None = key(
        policy_keys.CONFIG_PATTERNS,
        "Names or patterns of the only configs that topic files may set.",
    )
    deny: tuple[str, ...] | None = key(
        policy_keys.CONFIG_PATTERNS, "Names or patterns of configs that topic files must not set."
    )
    require: tuple[str, ...] | None = key(
        policy_keys.CONFIG_KEYS, "Configs that every topic must have, set or inherited."
    )
    ranges: Mapping[str, Bounds] = key(
        policy_keys.RANGES, "Minimum and maximum of a config, by name.", default={}
    )
    values: Mapping[str, tuple[str, ...]] = key(
        policy_keys.VALUES, "Allowed values of a config, by name.", default={}
    )


@form
class LabelPolicyForm:
    """The labels that topics must have, and their allowed values."""

    require: tuple[str, ...] | None = key(
        policy_keys.LABEL_KEYS, "Labels that every topic must have, set or inherited."
    )
    values: Mapping[str, tuple[str, ...]] = key(
        policy_keys.LABEL_VALUES, "Allowed values of a label, by label.", default={}
    )


@form
class PerOwnerForm:
    """The limits for all topics of one owner together, on one cluster."""

    topics: int | None = key(policy_keys.QUOTA, "Maximum number of topics of an owner.")
    partitions: int | None = key(
        policy_keys.QUOTA, "Maximum number of partitions of all topics of an owner."
    )
    replicas: int | None = key(
        policy_keys.QUOTA, "Maximum number of replicas of all topics of an owner."
    )


@form
class PerLabelForm:
    """The limits for all topics with the same value of one label together, on one cluster."""

    topics: int | None = key(policy_keys.QUOTA, "Maximum number of topics with the label.")
    partitions: int | None = key(
        policy_keys.QUOTA, "Maximum number of partitions of all topics with the label."
    )
    replicas: int | None = key(
        policy_keys.QUOTA, "Maximum number of replicas of all topics with the label."
    )


@form
class RuleForm:
    """A custom rule of a team, in CEL."""

    check: YamlText = key(
        policy_keys.EXPRESSION, "CEL expression that must be true.", asks="spec.partitions <= 48"
    )
    message: YamlText = key(
        TEXT,
        "Message that is shown if the check is false.",
        asks="and what to do about it",
    )
    when: YamlText | None = key(
        policy_keys.EXPRESSION,
        "CEL expression: the rule applies only if it is true. Default: always.",
    )
    severity: Severity = key(
        policy_keys.SEVERITY,
        "error refuses the topic or the change; warning and note only report it.",
        default=Severity.ERROR,
    )
    on: Subject = key(
        policy_keys.SUBJECT,
        "What the rule checks: spec (in validate) or change (in plan).",
        default=Subject.SPEC,
    )


@form
class PolicyForm:
    """The limits that a team sets for its topics."""

    name: NameForm | None = table_or_none(NameForm, "Rule for topic names.")
    owner: bool | None = key(policy_keys.REQUIREMENT, "Whether an owner is required.")
    description: bool | None = key(policy_keys.REQUIREMENT, "Whether a description is required.")
    partitions: Bounds | None = key(
        policy_keys.COUNT_BOUNDS, "Minimum and maximum number of partitions of a topic."
    )
    replication_factor: Bounds | None = key(
        policy_keys.COUNT_BOUNDS, "Minimum and maximum number of replicas of a partition."
    )
    config: ConfigPolicyForm = table(
        ConfigPolicyForm, "Which configs topics may set, and their allowed values."
    )
    labels: LabelPolicyForm = table(
        LabelPolicyForm, "Which labels topics must have, and their allowed values."
    )
    per_owner: PerOwnerForm = table(
        PerOwnerForm, "Limits for all topics of one owner together, on each cluster."
    )
    per_label: Mapping[str, PerLabelForm] = tables(
        policy_keys.LABEL_CHOICE,
        PerLabelForm,
        "The same limits for all topics with one label: by label, such as domain, for each of its "
        "values, or by label and value, such as tier=gold.",
    )
    exempt: Mapping[str, tuple[str, ...]] = key(
        policy_keys.EXEMPTIONS,
        "Topics that are exempt from a rule: names or patterns by rule id.",
        default={},
    )
    severity: Mapping[tuple[str, str], Severity] = key(
        policy_keys.SEVERITIES,
        "Severity of a limit, by rule id: only errors refuse a topic. Default: error.",
        default={},
    )
    rules: Mapping[str, RuleForm] = tables(keys.KEY, RuleForm, "Custom rules in CEL, by name.")


@form
class ExemptionForm:
    """An entry of policy-baseline.yaml: a topic that broke a limit before it was introduced.

    Or an owner that exceeded a quota.
    """

    topic: YamlText | None = key(TEXT, "Name of the topic. A quota has owner instead.")
    owner: YamlText | None = key(
        TEXT, "Owner that exceeds a quota. Default: the topics without an owner."
    )
    rule: str = key(policy_keys.BASELINED_RULE, "Id of the rule.", asks="policy-partitions")
    limit: YamlText | None = key(
        TEXT, "Which limit of the rule: a config, a count of per_owner, or the name in rules."
    )
    value: YamlText | None = key(
        policy_keys.KNOWN_VALUE, "Value at that time. A worse value is not exempt."
    )
    clusters: tuple[YamlText, ...] | None = key(
        keys.CLUSTER_NAMES, "Clusters on which it is exempt. Default: every cluster."
    )
    reason: YamlText | None = key(
        policy_keys.REASON, "Reason why this may stay, written by a person."
    )


def make_policy(read: PolicyForm) -> Policy:
    """Make the policy from a form without errors."""
    config, name = read.config, None
    if read.name is not None:
        name = NamePattern(str(read.name.pattern), _plain(read.name.means) or "")
    return Policy(
        name=name,
        owner=read.owner,
        description=read.description,
        partitions=read.partitions,
        replication_factor=read.replication_factor,
        allow=config.allow,
        deny=config.deny,
        require=config.require,
        require_labels=read.labels.require,
        ranges=MappingProxyType(dict(config.ranges)),
        values=MappingProxyType(dict(config.values)),
        label_values=MappingProxyType(dict(read.labels.values)),
        per_owner=_make_quotas(read.per_owner),
        per_label=MappingProxyType(
            {label: _make_quotas(quotas) for label, quotas in read.per_label.items()}
        ),
        exempt=MappingProxyType(dict(read.exempt)),
        severity=MappingProxyType(dict(read.severity)),
        rules=MappingProxyType({name: _make_rule(name, rule) for name, rule in read.rules.items()}),
    )


def _make_quotas(read: PerOwnerForm | PerLabelForm) -> Mapping[str, int]:
    said = {noun: getattr(read, noun) for noun in list_keys(PerOwnerForm)}
    return MappingProxyType({noun: most for noun, most in said.items() if most is not None})


def _make_rule(name: str, read: RuleForm) -> PolicyRule:
    return PolicyRule(
        name=name,
        check=str(read.check),
        message=str(read.message),
        where=read.check.where,
        when=_plain(read.when),
        when_where=None if read.when is None else read.when.where,
        severity=read.severity,
        subject=read.on,
    )


def _plain(text: YamlText | None) -> str | None:
    return None if text is None else str(text)


@form
class Layer:
    """Values that topics inherit: defaults of the estate or of a cluster, or a profile."""

    partitions: int | None = key(keys.PARTITIONS, "Number of partitions. It can only grow.")
    replication_factor: int | None = key(keys.REPLICATION, "Number of replicas of each partition.")
    rack_aware: bool = key(FLAG, "Spread the replicas of a partition over racks.", default=True)
    gradual: int = key(
        keys.FACTOR,
        "Lower retention in steps, one per plan. true keeps at least half of the live limit in "
        "each step, N keeps at least 1/N.",
        default=0,
    )
    config: WrittenConfig = key(
        keys.CONFIG, "Topic configs. null removes an inherited key.", default=WrittenConfig()
    )
    labels: Mapping[str, str | None] = key(
        LABELS,
        "Your own keys and values for rules, quotas and filters. Kafka does not get them.",
        default={},
    )
    idle_after: int | None = key(
        or_null(keys.DURATION_MS),
        "A topic that nobody reads or writes for this long is reported. Nothing is deleted "
        "automatically.",
    )


@form
class Override(Layer):
    """The values of a topic that differ on one cluster."""

    assignment: Assignment | None = key(
        keys.ROWS,
        "Manual placement: row p lists the brokers of partition p, preferred leader first.",
    )
    state: str = key(
        keys.STATE, "present, or absent to request the deletion of the topic.", default="present"
    )
    acknowledge: tuple[Acknowledged, ...] = key(
        keys.RISKS, "Accepted risks of a change.", default=()
    )
    expires: str | None = key(
        or_null(keys.DATE),
        "Date in UTC from which the topic is reported as expired. Nothing is deleted "
        "automatically.",
    )


@form
class TopicDocument(Override):
    """The spec of a topic."""

    topic: YamlText = key(keys.TOPIC_NAME, "Name of the topic.", asks="orders.events")
    owner: YamlText | None = key(keys.OWNER, "Team or person that is responsible for the topic.")
    description: YamlText | None = key(TEXT, "What the topic contains.")
    profile: YamlText | None = key(TEXT, "Profile in clusters.yaml that the topic inherits from.")
    clusters: tuple[YamlText, ...] | None = key(
        keys.CLUSTER_NAMES, "Clusters of the topic. Default: every cluster."
    )
    overrides: Mapping[str, Override] = tables(
        keys.KEY, Override, "Values that differ on a cluster, by cluster name."
    )


@form
class Profile(Layer):
    """A named preset that topics can inherit from."""

    description: YamlText | None = key(TEXT, "Purpose of the profile.")


@form
class GuardsForm:
    """The limits on what a single plan may change on a cluster."""

    max_changed: int | None = key(
        keys.SHARE, "Maximum share of the live topics that one plan may change, such as 30%."
    )
    max_deletes: int = key(
        whole(0, 10_000), "Maximum number of topics that one plan may delete.", default=0
    )
    unused_for: int = key(
        keys.DURATION_MS,
        "A topic is deleted only if nothing was written to it for this long.",
        default=7 * DAY,
    )
    from_base: bool = key(
        keys.GUARDS_FROM,
        "base: if a request loosens a guard, its plan still uses the guard of the base.",
        default=False,
        name="from",
    )


@form
class AtOnceForm:
    """The replicas that are copied at one time."""

    cluster: int = key(
        whole(1, 10_000), "Maximum number of replicas in flight on the cluster.", default=50
    )
    broker: int = key(
        whole(1, 10_000),
        "Maximum number of replicas in flight to a broker, and from it.",
        default=5,
    )


@form
class BalanceForm:
    """The target of a rebalance of a cluster."""

    by: tuple[LoadKind, ...] = key(
        keys.LOAD_KINDS,
        "The loads that a rebalance evens out over the brokers: count, disk, write, read.",
        default=(LoadKind.COUNT,),
    )
    within: int = key(keys.SHARE, "Maximum distance of a broker from its share.", default=10)


@form
class RebalanceForm:
    """A rebalance that a plan of moves makes."""

    until: str = key(
        keys.DATE,
        "Date in UTC from which the key has no effect, so that a forgotten line moves nothing.",
        asks="2027-03-31, the date from which it has no effect",
    )
    by: tuple[LoadKind, ...] | None = key(
        keys.LOAD_KINDS, "As in balance. Default: what balance says."
    )
    within: int | None = key(keys.SHARE, "As in balance. Default: what balance says.")
    brokers: tuple[int, ...] = key(
        keys.BROKER_IDS,
        "Ids of the only brokers that take replicas, such as those that joined. Default: all.",
        default=(),
    )


@form
class WindowForm:
    """The hours in which moves may begin."""

    days: frozenset[int] = key(
        keys.WEEK_DAYS,
        "Days on which the hours begin. Default: every day.",
        default=frozenset(range(len(DAYS))),
    )
    begins: int = key(
        keys.TIME_OF_DAY, "Time from which copies may begin.", asks='"22:00"', name="from"
    )
    ends: int = key(
        keys.TIME_OF_DAY,
        "Time from which no copies begin; on the next day if it is not after from.",
        asks='"06:00"',
        name="to",
    )
    zone: str = key(keys.ZONE, "Time zone of both times.", asks="Europe/Berlin")


@form
class MovesForm:
    """The moves of existing replicas that a cluster allows, and how fast."""

    allow: frozenset[MoveKind] = key(
        keys.MOVE_KINDS,
        "Allowed reasons for a move: replication, assignment, drain, rebalance.",
        asks="[replication, assignment]",
    )
    rate: int | None = key(
        keys.RATE,
        "Bytes per second that a broker sends, and that it receives, such as 30MiB; or unlimited.",
        asks="30MiB, the bytes per second and broker, or rate: unlimited",
    )
    at_once: AtOnceForm = table(AtOnceForm, "Number of replicas that are copied at one time.")
    keep_free: int = key(
        keys.SHARE, "Share of every log directory that a plan of moves keeps free.", default=15
    )
    max_bytes: int | None = key(
        keys.SIZE_BYTES, "Maximum number of bytes that one plan may copy, such as 2TiB."
    )
    windows: Mapping[str, WindowForm] = tables(
        keys.KEY,
        WindowForm,
        "Hours in which copies may begin, by name. Copies in flight continue. Default: any time.",
    )
    balancer_off: bool = key(
        FLAG,
        "true states that the balancer of the service is off or paused, and moves no replicas. "
        "Some services require it.",
        default=False,
    )


@form
class RatesForm:
    """The maximum rates of topic changes on a cluster: apply pauses to keep to them."""

    requests: Rate | None = key(
        keys.COUNT_RATE,
        "Maximum number of requests in a time, such as 2/s. Default: by service, otherwise no "
        "limit.",
    )
    partitions: Rate | None = key(
        keys.COUNT_RATE,
        "Maximum number of partitions that apply validates, creates or deletes in a time, such as "
        "250/5min. Default: by service, otherwise no limit.",
    )


def make_move_policy(read: MovesForm | None, *, unthrottled: bool = False) -> MovePolicy | None:
    """Make the policy of moves from a form without errors. None: nothing may move."""
    if read is None:
        return None
    return MovePolicy(
        allow=read.allow,
        rate_bytes_per_s=read.rate,
        at_once_cluster=read.at_once.cluster,
        at_once_broker=read.at_once.broker,
        keep_free_percent=read.keep_free,
        max_bytes=read.max_bytes,
        balancer_off=read.balancer_off,
        unthrottled=unthrottled,
    )


def make_hours(read: MovesForm | None) -> tuple[MoveHours, ...]:
    """Make the hours in which moves may begin from a form without errors. None: at any time."""
    windows = read.windows if read else {}
    return tuple(
        MoveHours(name, window.days, window.begins, window.ends, window.zone)
        for name, window in sorted(windows.items())
    )


def make_rebalance(read: RebalanceForm | None, balance: BalanceForm) -> AskedRebalance | None:
    """Make the rebalance that a cluster asks for from a form without errors."""
    if read is None:
        return None
    within = balance.within if read.within is None else read.within
    return AskedRebalance(
        LoadAim(read.by or balance.by, within, brokers=frozenset(read.brokers)), read.until
    )


@form
class ClusterForm:
    """A cluster: its connection, its properties, and the topics to ignore on it."""

    description: YamlText | None = key(TEXT, "Purpose of the cluster.")
    cluster_id: str | None = key(
        keys.CLUSTER_ID,
        "Id of the cluster, as Kafka reports it, or `bootstrap:` and its address if it "
        "reports none. Any other cluster is refused.",
    )
    kafka_version: YamlText | None = key(
        keys.KAFKA_VERSION, 'Kafka version in quotes, such as "4.1", for checks without a cluster.'
    )
    client: Mapping[str, str] = key(
        keys.CLIENT,
        "Client properties of librdkafka, and `aws.*` for Amazon MSK; "
        "secrets as ${env:NAME} or ${file:/path}.",
        default={},
    )
    defaults: Layer = table(Layer, "Default values for the topics of this cluster.")
    ignore: tuple[str, ...] = key(
        PATTERNS, "Names and patterns of topics that are not managed.", default=()
    )
    owns: tuple[str, ...] = key(
        keys.OWNED, "Names and patterns of the only topics that this estate manages.", default=()
    )
    exclude_brokers: tuple[int, ...] = key(
        keys.BROKER_IDS, "Ids of brokers that get no new replicas.", default=()
    )
    drain_brokers: tuple[int, ...] = key(
        keys.BROKER_IDS,
        "Ids of brokers that a plan of moves empties. Needs drain in moves.allow.",
        default=(),
    )
    internal_replication_factor: int | None = key(
        keys.REPLICAS,
        "Minimum number of replicas of Kafka's internal topics. Needs replication in moves.allow.",
    )
    guards: GuardsForm = table(GuardsForm, "Limits for a single plan.")
    balance: BalanceForm = table(BalanceForm, "Target of a rebalance.")
    rebalance: RebalanceForm | None = table_or_none(
        RebalanceForm,
        "A rebalance that a plan of moves makes until a date. Needs rebalance in moves.allow.",
    )
    moves: MovesForm | None = table_or_none(
        MovesForm, "Moves of existing replicas that are allowed, and how fast. Default: none."
    )
    rates: RatesForm = table(
        RatesForm, "Maximum rates of topic changes: apply pauses to keep to them."
    )
    policy: PolicyForm = table(
        PolicyForm, "Limits for the topics of this cluster; they refine the estate's policy."
    )
    service: str = key(
        keys.SERVICE,
        "Service that runs the brokers: its limits are checked, and its configs are known.",
        default=APACHE,
    )
    known_configs: tuple[YamlText, ...] | None = key(
        TEXTS,
        "The topic configs that the service supports, including its own. Others are not managed.",
    )
    keeps_defaults: bool = key(
        FLAG,
        "false if the service drops an override that equals its default. The default then counts "
        "as the value.",
        default=True,
    )
    mute: frozenset[str] = key(
        keys.MUTED,
        "Rules whose notes plans of this cluster leave out; a plan counts them.",
        default=frozenset(),
    )
    audit_topic: str | None = key(
        keys.EXISTING_TOPIC, "Existing topic that receives a record of every apply."
    )
    placement: Placement | None = key(
        keys.PLACEMENT,
        "Who places the replicas of new partitions: reconciler, or the broker, as some services "
        "require. Default: by service.",
    )
    strategy: str = key(
        keys.STRATEGY,
        "Placement strategy: optimal, or striped (round-robin over the brokers).",
        default="optimal",
    )
    capacity: Mapping[int, int] = key(
        keys.CAPACITIES,
        "Capacity of a broker relative to others, by broker id. Default: 1.",
        default={},
    )


@form
class AuditForm:
    """The limits beyond which an audit of a fleet reports a finding. Units: shares in percent."""

    misplaced: int = key(
        keys.SHARE, "Maximum share of a cluster's partitions whose leader is misplaced.", default=5
    )
    topic_misplaced: int = key(keys.SHARE, "The same share of a topic's partitions.", default=10)
    skew: int = key(
        keys.SHARE,
        "Maximum difference between brokers, and between a rack and its share, relative to the "
        "mean.",
        default=20,
    )
    even_from: int = key(
        whole(1, 1_000_000),
        "Leaders per broker from which the evenness of a cluster is checked.",
        default=10,
    )
    clusters_agree: int = key(
        keys.SHARE,
        "Minimum share of the clusters with a topic that agree on a config, and of the clusters "
        "of a stage that have a topic.",
        default=60,
    )
    topics_agree: int = key(
        keys.SHARE, "Minimum share of an owner's topics that agree on a config.", default=80
    )
    partitions_per_broker: int = key(
        whole(1, 1_000_000), "Maximum number of replicas on a broker.", default=4_000
    )
    partitions_per_directory: int = key(
        whole(1, 1_000_000), "Maximum number of replicas in a log directory.", default=2_000
    )
    large_partition: int = key(
        keys.SIZE_BYTES,
        "Size from which a partition is compared with the smallest one of its topic.",
        default=2**30,
    )
    disk_lasts: int = key(
        keys.DURATION_MS,
        "A topic that fills a disk within this time is reported.",
        default=30 * DAY,
    )


@form
class ClustersDocument:
    """clusters.yaml: the clusters of the estate, and the values that their topics inherit."""

    version: int = key(keys.FORMAT_VERSION, "Version of the file format: 1.", asks="1")
    defaults: Layer = table(Layer, "Default values for every topic.")
    profiles: Mapping[str, Profile] = tables(
        keys.KEY, Profile, "Presets that topics can inherit from, by name."
    )
    owns: tuple[str, ...] = key(
        keys.OWNED,
        "Names and patterns of the only topics that this estate manages, on clusters without "
        "their own list.",
        default=(),
    )
    owners: tuple[str, ...] = key(
        keys.OWNERS, "Names of the only owners that topics may have. Default: any.", default=()
    )
    policy: PolicyForm = table(PolicyForm, "Limits for topics on every cluster.")
    clusters: Mapping[str, ClusterForm] = tables(
        keys.CLUSTER_KEY, ClusterForm, "Clusters, by name."
    )
    stages: tuple[tuple[YamlText, ...], ...] = key(
        keys.STAGES,
        "Order in which a merge reaches the clusters: [[dev], [prod-eu, prod-us]]. Default: all "
        "at once.",
        default=(),
    )
    audit: AuditForm = table(
        AuditForm, "Limits beyond which an audit of the fleet reports a finding."
    )
