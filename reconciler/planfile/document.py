"""The format of a plan file, declared once: it is written, read and published as JSON Schema.

Names are those of Terraform's plans where these have one (`resource_changes[].change.actions`), so
that viewers and policies for Terraform work.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
)
from pydantic.config import JsonDict  # pydantic resolves annotations

from reconciler.errors import Finding, Location
from reconciler.model.cluster import Broker
from reconciler.model.moves import MoveKind
from reconciler.model.plan import (
    Balance,
    Deletion,
    LevelResult,
    RefusedField,
    RiskNote,
    Scope,
    Weighed,
)
from reconciler.model.steps import Verb

if TYPE_CHECKING:
    from pydantic import GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

FORMAT_VERSION = "2.7"
"""Major: a reader refuses an unknown major version. Minor: added fields, which a reader may skip.

1.1 added deletions, 1.2 `refused_change`. 2.0 calls steps by the verbs of the model, and adds
`owner`. 2.1 adds next leaders to the levels, 2.2 elections and `weighed`. 2.3 adds
plans of moves: an older reader refuses one, since it does not know its steps, and since the
fingerprint covers limits that it does not read. 2.4 adds `fingerprint_format`: an older reader
computes another fingerprint, and refuses the plan. It also adds drains, and the command that makes
a plan of moves. 2.5 adds `totals`, and to a risk the field that has it, and whether it was
acknowledged before the request. 2.6 adds `alerts`, `existing_drift`, and the description of a topic
that is created, `agreed` and `stages`. 2.7 adds `explicit` and `default_rate`.
"""

READABLE = ("1", "2")
"""The major versions that this reader supports."""

OLD_STEPS = MappingProxyType(
    {
        "create_topic": Verb.CREATE,
        "add_partitions": Verb.EXPAND,
        "alter_config": Verb.CONFIGURE,
        "delete_topic": Verb.DELETE,
    }
)
"""The names of steps in plans of 1.x."""

Action = Literal["no-op", "create", "update", "delete"]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class _Document(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)


class ImageDocument(_Document):
    """One topic before or after: `assignment[p]` lists partition p's brokers, leader first.

    `leaders[p]` is the leader of partition p, in a plan that elects leaders only.
    """

    topic_id: str | None
    partitions: int
    replication_factor: int
    assignment: tuple[tuple[int, ...], ...]
    config: dict[str, str]
    leaders: tuple[int, ...] = ()

    @model_serializer(mode="wrap")
    def _leave_out_leaders(self, write: SerializerFunctionWrapHandler) -> dict[str, object]:
        # Without elections the content of a fingerprint is what it was before there were any.
        written: dict[str, object] = write(self)
        return written if self.leaders else {k: v for k, v in written.items() if k != "leaders"}

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        # The published schema has the fields, not the result of the method above: any object.
        return handler({k: v for k, v in core_schema.items() if k != "serialization"})


class ChangeDocument(_Document):
    """Terraform's change representation; a refused topic has the action `no-op`."""

    actions: Annotated[tuple[Action, ...], Field(min_length=1, max_length=1)]
    before: ImageDocument | None
    after: ImageDocument | None


class ResourceDocument(_Document):
    """One topic of the plan: its change, steps, risks and refusals.

    `refused_change` lists the fields of a change that is refused; `change` and `steps` never do.
    `explicit` lists the configs that are set to what the brokers' defaults are already.
    """

    address: str
    type: Literal["kafka_topic"] = "kafka_topic"
    name: str
    change: ChangeDocument
    steps: tuple[Verb, ...]
    where: Location
    risks: tuple[RiskNote, ...] = ()
    refusals: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()
    balance_before: Balance | None = None
    balance_after: Balance | None = None
    deletion: Deletion | None = None
    refused_change: tuple[RefusedField, ...] = ()
    owner: str | None = None
    description: str | None = None
    explicit: tuple[str, ...] = ()


class DriftDocument(_Document):
    """A topic outside the scope of the plan that differs from its spec; the plan leaves it as is.

    `actions` is what a plan of it would do. `differs` lists its fields: `before` is the live value,
    `after` that of the spec.
    """

    name: str
    actions: tuple[Literal["create", "update", "delete"]]
    differs: tuple[RefusedField, ...]
    where: Location
    owner: str | None = None


class ClusterDocument(_Document):
    """The one cluster that the plan is for, and its balance over the eligible brokers."""

    name: str
    cluster_id: str | None
    brokers: tuple[Broker, ...]
    excluded: tuple[int, ...] = ()
    balance_before: Balance | None = None
    balance_after: Balance | None = None
    levels: tuple[LevelResult, ...] = ()
    weighed: Weighed | None = None


def _count_by_verb(schema: JsonDict) -> None:
    """List the verbs in the published schema: the model is their only source."""
    properties = schema["properties"]
    if isinstance(properties, dict):
        properties.update({str(verb): {"type": "integer"} for verb in Verb})


class SummaryDocument(_Document):
    """Counts of topics, also by verb. A topic that is expanded and configured counts in both."""

    model_config = ConfigDict(extra="allow", json_schema_extra=_count_by_verb)
    __pydantic_extra__: dict[str, int]

    refused: int
    unchanged: int
    live: int
    files: int


class CountsDocument(_Document):
    """What a plan adds and removes; `topics_changed` counts every topic with steps."""

    model_config = ConfigDict(from_attributes=True)

    topics_added: int
    topics_removed: int
    partitions_added: int
    partitions_removed: int
    replicas_added: int
    replicas_removed: int
    topics_changed: int


class OwnerTotalsDocument(CountsDocument):
    """What a plan adds and removes of one owner's topics; null: of the topics without an owner."""

    owner: str | None


class TotalsDocument(CountsDocument):
    """What a plan adds and removes, in total and for each owner whose topics change."""

    by_owner: tuple[OwnerTotalsDocument, ...]


class CommitDocument(_Document):
    """The git commit of the specs; `dirty`: files of the estate differed from it."""

    sha: Annotated[str, Field(pattern=r"^[0-9a-f]{40,64}$")]
    dirty: bool = False


class MovePolicyDocument(_Document):
    """The moves that the cluster allows, and how fast: `moves` in clusters.yaml.

    `rate_bytes_per_s` limits what each broker sends, and what it receives; null is no limit.
    `at_once_cluster` and `at_once_broker` count the replicas that are copied at one time.
    `keep_free_percent` of every log directory stays free; the plan copies at most `max_bytes`.
    """

    allow: tuple[MoveKind, ...]
    rate_bytes_per_s: int | None
    at_once_cluster: int
    at_once_broker: int
    keep_free_percent: int
    max_bytes: int | None = None


class TrafficDocument(_Document):
    """The bytes that the plan copies to and from one broker. Only leaders send."""

    broker: int
    in_bytes: int
    out_bytes: int


class PeakDocument(_Document):
    """The usage of a log directory now, and the highest while replicas are copied. In bytes."""

    broker: int
    path: str
    total_bytes: int
    used_bytes: int
    peak_bytes: int


class ForecastDocument(_Document):
    """What the plan costs, measured when it was made.

    `sizes` holds the bytes of each partition of the planned topics, -1 if unknown; `copied_bytes`
    leaves out the `unknown` partitions. `seconds` is the time at the rate of the plan, or
    at `default_rate`: a rate of the cluster that somebody else has set, under which the moves run.
    `least_rate` is the lowest rate, in bytes per second and broker, at which the moves end.
    """

    copied_bytes: int
    sizes: dict[str, tuple[int, ...]]
    unknown: int = 0
    seconds: int | None = None
    default_rate: int | None = None
    least_rate: int | None = None
    traffic: tuple[TrafficDocument, ...] = ()
    peaks: tuple[PeakDocument, ...] = ()


class DrainDocument(_Document):
    """A broker that is to hold no replica.

    `cordon`: the run cordons it first, so that Kafka places nothing on it. `topics` and `replicas`
    count what leaves it, and `unnamed` the topics among these that no file names. `stays` holds the
    topics that keep replicas on it, with the reason.
    """

    broker: int
    cordon: bool = False
    topics: int = 0
    replicas: int = 0
    unnamed: tuple[str, ...] = ()
    stays: dict[str, str] = Field(default_factory=dict)


class PlannedMovesDocument(_Document):
    """The limits and the cost of a plan that moves replicas.

    `replicas` counts those to be copied, and `least_replicas` is the proven minimum.
    `leader_changes` counts partitions whose preferred leader changes. `drains` lists the brokers to
    empty. `made_by` is the command that makes the plan. `min_insync` holds, by topic, the value
    that min.insync.replicas has while replicas are copied. The fingerprint covers `policy`,
    `min_insync`, and which brokers are drained; the other fields change with the sizes of topics.
    """

    policy: MovePolicyDocument
    replicas: int
    least_replicas: int
    leader_changes: int
    drains: tuple[DrainDocument, ...] = ()
    made_by: str = "plan --moves"
    min_insync: dict[str, int] = Field(default_factory=dict)
    forecast: ForecastDocument | None = None


class PlanDocument(_Document):
    """A plan of reconciler: all changes to make on one Kafka cluster.

    `fingerprint` covers the effects of the plan and its inputs, so that the same plan made
    elsewhere has the same fingerprint. `fingerprint_format` says what it covers of topics that
    exist: 1, their entire images; 2, only what the plan changes, their ids, and their numbers of
    partitions. Of plans of moves and of elections it covers the images in both. It does not cover
    `alerts`: guards that the request loosens, and a changed client. Nor does it cover `stages`, the
    order in which a merge reaches the clusters, which is there if the estate has it. `seal` covers
    the entire document except itself. Only a plan that moves replicas has `moves`, and it makes no
    other change.
    """

    format_version: Annotated[str, Field(pattern=r"^\d+\.\d+$")]
    fingerprint_format: Literal[1, 2] = 1
    fingerprint: Sha256
    seal: Sha256
    commit: CommitDocument | None = None
    scope: Scope = Scope()
    cluster: ClusterDocument
    resource_changes: tuple[ResourceDocument, ...]
    summary: SummaryDocument
    totals: TotalsDocument | None = None
    unmanaged: tuple[str, ...] = ()
    notes: tuple[Finding, ...] = ()
    refusals: tuple[Finding, ...] = ()
    alerts: tuple[Finding, ...] = ()
    existing_drift: tuple[DriftDocument, ...] = ()
    agreed: tuple[str, ...] = ()
    stages: tuple[tuple[str, ...], ...] = ()
    moves: PlannedMovesDocument | None = None
