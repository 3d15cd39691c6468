"""The form of documents: a topic, its overrides, and clusters.yaml, as pydantic models.

The models say which keys there are; reconciler.spec.keys, how the value of each is read. JSON
Schemas are made from both. What pydantic finds is told in the words of
reconciler.spec.form_errors.
"""

from __future__ import annotations

from pydantic import Field

from reconciler.spec.form import Form
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
from reconciler.spec.policy_form import PolicyForm
from reconciler.spec.settings import Settings

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
        description="Lower retention in steps, a plan each: to half at most, or to one in so many.",
    )
    config: ConfigMap = Field(
        default=Settings(), description="Topic configs. null takes an inherited key away."
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
    """What a single plan may do to a cluster at most."""

    max_changed: Share | None = Field(
        default=None, description="The share of live topics that one plan may change, as 30%."
    )
    max_deletes: Deletes = Field(
        default=0, description="How many topics one plan may delete; none unless written."
    )
    unused_for: Duration = Field(
        default=DAYS_7_MS, description="How long nothing was written to a topic that may go."
    )


class ClusterForm(Form):
    """A cluster: how it is reached, what it is, and what is left alone on it."""

    description: Words | None = Field(default=None, description="What the cluster is for.")
    cluster_id: ClusterId | None = Field(
        default=None,
        description="The id that the cluster tells of itself; another cluster is refused.",
    )
    kafka_version: KafkaVersion | None = Field(
        default=None,
        description='The release line, quoted, such as "4.1": for checks without a cluster.',
    )
    client: ClientMap = Field(
        default={},
        description="Properties of the client, by librdkafka's names; secrets by reference.",
    )
    defaults: Layer = Field(default_factory=Layer, description="What its topics inherit.")
    ignore: Patterns = Field(default=(), description="Names and patterns of topics to leave alone.")
    owns: Owned = Field(
        default=(),
        description="Names and patterns of the topics that are this estate's; others are not.",
    )
    exclude_brokers: BrokerIds = Field(
        default=(), description="Ids of brokers that take nothing new."
    )
    guards: GuardsForm = Field(
        default_factory=GuardsForm, description="What a single plan may do at most."
    )
    policy: PolicyForm = Field(
        default_factory=PolicyForm, description="What its topics may be, over the estate's policy."
    )
    known_configs: WordList | None = Field(
        default=None,
        description="The topic configs that a managed service knows; others are left alone.",
    )
    audit_topic: AuditTopic | None = Field(
        default=None, description="An existing topic that takes a record of every apply."
    )
    strategy: Strategy = Field(
        default="optimal", description="How replicas are placed; striped goes round the brokers."
    )
    capacity: Capacity = Field(
        default={}, description="How much a broker can bear next to others, by id; 1 if not named."
    )


class ClustersDocument(Form):
    """clusters.yaml: the clusters of the estate, and what their topics inherit."""

    version: FormatVersion = Field(description="The version of this file's format: 1.")
    defaults: Layer = Field(default_factory=Layer, description="What every topic inherits.")
    profiles: dict[Key, Profile] = Field(default={}, description="Presets that topics start from.")
    owns: Owned = Field(
        default=(), description="What is this estate's on clusters that say nothing of their own."
    )
    policy: PolicyForm = Field(
        default_factory=PolicyForm, description="What topics may be, on every cluster."
    )
    clusters: dict[Key, ClusterForm] = Field(default={}, description="The clusters, by name.")
