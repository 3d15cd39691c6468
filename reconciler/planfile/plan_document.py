"""The format of a plan file, declared once: it is written, read and published as JSON Schema.

Names are those of Terraform's plans where these have one (`resource_changes[].change.actions`), so
that viewers and policies for Terraform work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, PlainSerializer
from pydantic.config import JsonDict  # pydantic resolves annotations

# pydantic resolves annotations, and these documents have the fields of what they are made of.
from reconciler.errors import Location
from reconciler.model.cluster import Broker
from reconciler.model.health import HealthCounts
from reconciler.model.moves import (
    MoveKind,
    MovePolicy,
    PlannedBalance,
    PlannedDirectories,
    PlannedMoves,
)
from reconciler.model.plan import (
    Balance,
    Commit,
    DriftedTopic,
    LevelResult,
    Plan,
    PlannedTopic,
    ReplicaDirectory,
    TopicImage,
    Weighed,
)
from reconciler.model.steps import Verb, steps_of
from reconciler.planfile.documents import OMIT_EMPTY, Derived, Document, Held, document_of
from reconciler.planfile.totals import Totals, count_by_owner

FORMAT_VERSION = "1.0"
"""Major: a reader refuses an unknown one. Minor: added fields, which a reader may skip."""

DriftAction = Literal["create", "update", "delete"]
Action = Literal["no-op", DriftAction]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

_LATER = Derived(lambda _: "0" * 64)
"""A mark that covers the document, and is computed when it is there."""


def _name_actions(topic: PlannedTopic) -> tuple[Action]:
    """Name the action by Terraform's word: a step that neither creates nor deletes is an update."""
    steps = steps_of(topic)
    if not steps:
        return ("no-op",)
    named: dict[Verb, Action] = {Verb.CREATE: "create", Verb.DELETE: "delete"}
    return (named.get(steps[0].verb, "update"),)


@document_of(TopicImage)
class ImageDocument(Document):
    """One topic before or after: `assignment[p]` lists partition p's brokers, leader first.

    After a plan of a cluster whose brokers place replicas, -1 is a replica that they place.
    `leaders[p]` is the leader of partition p, in a plan that elects leaders only. `directories` has
    the replicas that the plan moves between the log directories of their brokers.
    """

    partitions: Annotated[int, Derived(lambda image: len(image.assignment))]
    replication_factor: Annotated[
        int, Derived(lambda image: max(map(len, image.assignment), default=0))
    ]
    # Without elections the content of a fingerprint is what it was before there were any.
    leaders: Annotated[tuple[int, ...], OMIT_EMPTY] = ()
    directories: Annotated[tuple[ReplicaDirectory, ...], OMIT_EMPTY] = ()


class ChangeDocument(Document):
    """Terraform's change representation; a refused topic has the action `no-op`."""

    actions: Annotated[
        tuple[Action, ...], Field(min_length=1, max_length=1), Derived(_name_actions)
    ]
    before: ImageDocument | None
    after: ImageDocument | None


@document_of(PlannedTopic)
class ResourceDocument(Document):
    """One topic of the plan: its change, steps, risks and refusals.

    `refused_change` lists the fields of a change that is refused; `change` and `steps` never do.
    `explicit` lists the configs that are set to what the brokers' defaults are already.
    """

    address: Annotated[str, Derived(lambda topic: f"kafka_topic.{topic.name}")]
    type: Annotated[Literal["kafka_topic"], Derived(lambda _: "kafka_topic")]
    change: ChangeDocument
    steps: Annotated[
        tuple[Verb, ...], Derived(lambda topic: tuple(step.verb for step in steps_of(topic)))
    ]
    where: Annotated[Location, Held("location")]
    labels: Annotated[Mapping[str, str], OMIT_EMPTY] = Field(default_factory=dict)


@document_of(DriftedTopic)
class DriftDocument(Document):
    """A topic outside the scope of the plan that differs from its spec; the plan leaves it as is.

    `actions` is what a plan of it would do. `differs` lists its fields: `before` is the live value,
    `after` that of the spec.
    """

    actions: Annotated[
        tuple[DriftAction],
        Held("action"),
        AfterValidator(lambda actions: actions[0]),
        PlainSerializer(lambda action: (action,), return_type=tuple[DriftAction]),
    ]
    where: Annotated[Location, Held("location")]


class ClusterDocument(Document):
    """The one cluster that the plan is for, and its balance over the eligible brokers."""

    name: Annotated[str, Held("cluster")]
    cluster_id: str | None
    brokers: tuple[Broker, ...]
    excluded: tuple[int, ...]
    balance_before: Balance | None
    balance_after: Balance | None
    levels: tuple[LevelResult, ...]
    weighed: Weighed | None


def _count_by_verb(schema: JsonDict) -> None:
    """List the verbs in the published schema: the model is their only source."""
    properties = schema["properties"]
    if isinstance(properties, dict):
        properties.update({str(verb): {"type": "integer"} for verb in Verb})


class SummaryDocument(Document):
    """Counts of topics, also by verb. A topic that is expanded and configured counts in both."""

    model_config = ConfigDict(extra="allow", json_schema_extra=_count_by_verb)
    __pydantic_extra__: dict[str, int]

    refused: Annotated[int, Derived(lambda plan: sum(bool(t.refusals) for t in plan.topics))]
    unchanged: int
    live: Annotated[int, Held("live_topics")]
    files: int

    @classmethod
    def write(cls, value: Any, **given: Any) -> Self:
        """Count the topics of a plan."""
        verbs = Counter(step.verb for topic in value.topics for step in steps_of(topic))
        return super().write(value, **{str(verb): verbs[verb] for verb in Verb}, **given)


@document_of(Totals)
class CountsDocument(Document):
    """What a plan adds and removes; `topics_changed` counts every topic with steps."""


class OwnerTotalsDocument(CountsDocument):
    """What a plan adds and removes of one owner's topics; null: of the topics without an owner."""

    owner: str | None


class TotalsDocument(CountsDocument):
    """What a plan adds and removes, in total and for each owner whose topics change."""

    by_owner: tuple[OwnerTotalsDocument, ...]

    @classmethod
    def write(cls, value: Any, **given: Any) -> Self:
        """Count what a plan adds and removes."""
        owned = count_by_owner(value.topics)
        by_owner = tuple(OwnerTotalsDocument.write(owned[owner], owner=owner) for owner in owned)
        return super().write(sum(owned.values(), Totals()), by_owner=by_owner, **given)


@document_of(Commit)
class CommitDocument(Document):
    """The git commit of the specs; `dirty`: files of the estate differed from it."""

    sha: Annotated[str, Field(pattern=r"^[0-9a-f]{40,64}$")]


@document_of(MovePolicy)
class MovePolicyDocument(Document):
    """The moves that the cluster allows, and how fast: `moves` in clusters.yaml.

    `rate_bytes_per_s` limits what each broker sends, and what it receives; null is no limit.
    `at_once_cluster` and `at_once_broker` count the replicas that are copied at one time.
    `keep_free_percent` of every log directory stays free; the plan copies at most `max_bytes`.
    `balancer_off`: clusters.yaml states that nobody else moves replicas. `unthrottled`: brokers
    take no throttles, so the run sets none.
    """

    allow: Annotated[frozenset[MoveKind], PlainSerializer(sorted, return_type=list[MoveKind])]
    # Without them the content of a fingerprint is what it was before there were any.
    balancer_off: Annotated[bool, OMIT_EMPTY] = False
    unthrottled: Annotated[bool, OMIT_EMPTY] = False


@document_of(PlannedMoves)
class PlannedMovesDocument(Document):
    """The limits and the cost of a plan that moves replicas.

    `replicas` counts those to be copied, and `least_replicas` is the proven minimum.
    `leader_changes` counts partitions whose preferred leader changes. `drains` lists the brokers to
    empty. `made_by` is the command that makes the plan. `min_insync` holds, by topic, the value
    that min.insync.replicas has while replicas are copied. The fingerprint covers `policy`,
    `min_insync`, and which brokers are drained; the other fields change with the sizes of topics.
    `balance` is there if the plan was made by load, and `directories` if it moves replicas between
    the log directories of their brokers.
    """

    policy: MovePolicyDocument
    balance: Annotated[PlannedBalance | None, OMIT_EMPTY] = None
    directories: Annotated[PlannedDirectories | None, OMIT_EMPTY] = None


@document_of(HealthCounts)
class HealthCountsDocument(Document):
    """What is 0 on a healthy cluster.

    The first three count partitions, internal ones too; a partition can have two faults.
    `brokers_down` counts dead brokers that hold replicas, `directories_offline` log directories
    that have failed on living brokers.
    """


@document_of(Plan)
class PlanDocument(Document):
    """A plan of reconciler: all changes to make on one Kafka cluster.

    `fingerprint` covers the effects of the plan and its inputs, so that the same plan made
    elsewhere has the same fingerprint. Of topics that exist it covers only what the plan changes,
    their ids, and their numbers of partitions; in plans of moves and of elections, their entire
    images. It does not cover `alerts`: guards that the request loosens, and a changed client. Nor
    does it cover `stages`, the order in which a merge reaches the clusters, which is there if the
    estate has it, and `health`, which is there if something is wrong with the cluster. `seal`
    covers the entire document except itself. Only a plan that moves replicas has `moves`, and it
    makes no other change.
    """

    format_version: Annotated[str, Field(pattern=r"^\d+\.\d+$"), Derived(lambda _: FORMAT_VERSION)]
    fingerprint: Annotated[Sha256, _LATER]
    seal: Annotated[Sha256, _LATER]
    commit: CommitDocument | None
    cluster: ClusterDocument
    resource_changes: Annotated[tuple[ResourceDocument, ...], Held("topics")]
    summary: SummaryDocument
    totals: Annotated[TotalsDocument, Derived(TotalsDocument.write)]
    existing_drift: tuple[DriftDocument, ...]
    agreed: Annotated[tuple[str, ...], OMIT_EMPTY] = ()
    stages: Annotated[tuple[tuple[str, ...], ...], OMIT_EMPTY] = ()
    moves: Annotated[PlannedMovesDocument | None, OMIT_EMPTY] = None
    health: Annotated[HealthCountsDocument | None, OMIT_EMPTY] = None
