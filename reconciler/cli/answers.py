"""The JSON that commands print and no file format covers, declared for its schemas.

A major `format_version` changes when a field changes its meaning or goes. A minor one adds fields,
which a reader must skip.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, create_model

from reconciler.errors import Severity
from reconciler.model.moves import LoadKind
from reconciler.model.outcomes import Outcome
from reconciler.model.plan import Balance
from reconciler.model.rights import Account, Operation, ResourceKind, Right, Task
from reconciler.sandbox.request import BrokerStatus, ControllerStatus
from reconciler.scaffold.checks import Check

if TYPE_CHECKING:
    from reconciler.fleet.tables import LakeTable

DIALECT = "https://json-schema.org/draft/2020-12/schema"
Version = Annotated[str, Field(pattern=r"^\d+\.\d+$")]


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")


class OwnerAnswer(_Answer):
    """An owner; null for the topics that have none."""

    owner: str | None
    topics: list[str]
    files: list[str]


class OwnersAnswer(_Answer):
    """Who owns which topics."""

    format_version: Version
    owners: list[OwnerAnswer]


class SandboxAnswer(_Answer):
    """The throwaway cluster of this machine, and the state of each of its nodes."""

    format_version: Version
    cluster_id: str
    kafka_version: str
    engine: str
    bootstrap_servers: str
    directory: str
    brokers: list[BrokerStatus]
    controllers: list[ControllerStatus]


class DoctorAnswer(_Answer):
    """Which parts of the setup of a repository are done. `do` is how to do a missing one."""

    format_version: Version
    checks: list[Check]


class GrantedAnswer(_Answer):
    """An operation that an ACL allows; `prefixed`: on all whose names begin with `name`."""

    principal: str
    kind: ResourceKind
    name: str
    prefixed: bool
    operation: Operation


class GrantsAnswer(_Answer):
    """The rights that the accounts need."""

    format_version: Version
    cluster: str
    rights: list[GrantedAnswer]


class LackingAnswer(_Answer):
    """A missing right. `not_on` names topics without it: none if it is missing everywhere."""

    kind: ResourceKind
    name: str
    prefixed: bool
    operation: Operation
    not_on: list[str]


class CheckedTaskAnswer(_Answer):
    """What the account of the run lacks to do a task as the planner or the applier."""

    account: Account
    task: Task
    lacking: list[LackingAnswer]
    unknown: list[Right]


class GrantsCheckAnswer(_Answer):
    """What the account of the run lacks, by --check."""

    format_version: Version
    cluster: str
    tasks: list[CheckedTaskAnswer]


class QualityAnswer(_Answer):
    """How even the rows of a topic are, or those of all topics."""

    partitions: int
    balance: Balance
    leader_deviation: float
    replica_deviation: float
    misplaced: int
    misplaced_share: float
    rack_violations: int
    replica_sets: int


class LossAnswer(_Answer):
    """What the loss of brokers does: leaders that move, and partitions that suffer."""

    brokers: list[int]
    leaders_moved: int
    worst_heir: int
    heirs: dict[str, int]
    under_min_in_sync: int
    offline: int


class CopiedAnswer(_Answer):
    """What one rebalance copies; bytes are null if sizes are not known."""

    replicas: int
    bytes: int | None


class StrategyAnswer(_Answer):
    """A strategy; figures by topic and by loss only if it has a single outcome."""

    strategy: str
    outcomes: int
    mean: dict[str, float | None]
    worst: dict[str, float | None]
    cluster: QualityAnswer | None = None
    topics: dict[str, QualityAnswer] | None = None
    if_broker_is_lost: dict[str, LossAnswer] | list[LossAnswer] | None = None
    if_rack_is_lost: dict[str, LossAnswer] | list[LossAnswer] | None = None
    losses: list[LossAnswer] | None = None
    rebalances: list[CopiedAnswer] | None = None


class StrategiesAnswer(_Answer):
    """What each strategy makes of the same topics and steps."""

    format_version: Version
    strategies: list[StrategyAnswer]


class CountAnswer(_Answer):
    """A topic with this number of partitions."""

    partitions: int
    balance: Balance
    worst_heir: int
    kafka_mean: float
    kafka_worst: int
    same_on_every_broker: str


class CountsAnswer(_Answer):
    """Which numbers of partitions are even, for --partitions-from and --to."""

    format_version: Version
    topic: str
    strategy: str
    counts: list[CountAnswer]


class SetupAnswer(_Answer):
    """The throwaway cluster of a rehearsal."""

    brokers: list[dict[str, int | str | None]]
    dead: list[int]
    cordoned: list[int]
    topics: int
    replicas: int
    complete: bool
    left_out: dict[str, str]


class RehearsalAnswer(_Answer):
    """What a plan did on a throwaway cluster."""

    format_version: Version
    succeeded: bool
    cluster: str
    cluster_id: str | None
    kafka_version: str
    setup: SetupAnswer
    outcomes: list[Outcome]
    differences: dict[str, Any]
    pending: Any
    balance_before: Balance | None
    balance_after: Balance | None
    seconds: dict[str, float]
    notes: list[str]


class SizeAnswer(_Answer):
    """The files of a collection."""

    files: int
    size_bytes: int


class HoldingAnswer(_Answer):
    """A collection of a lake, and its attempts by kind."""

    collection: str
    commit: str | None
    clusters_read: int
    clusters_unread: int
    attempts: dict[str, int]
    size: SizeAnswer


Holdings = list[HoldingAnswer]
"""What `fleet lake list` prints."""


class ChoiceAnswer(_Answer):
    """What a rebalance with these options would do. `farthest` is in parts of the share, by load.

    `unknown` names loads of which no amount is known; nothing was planned then. `copied_bytes` and
    `seconds` are null if they are not known.
    """

    options: str
    unknown: list[LoadKind]
    refused_by: list[str]
    replicas: int
    copied_bytes: int | None
    leader_changes: int
    seconds: int | None
    farthest: dict[str, float]


class ChoicesAnswer(_Answer):
    """The choices of a rebalance. `farthest` is that of today."""

    format_version: Version
    cluster: str
    wanted: str
    within_percent: float
    farthest: dict[str, float]
    choices: list[ChoiceAnswer]


def build_schema(answer: Any, title: str) -> dict[str, Any]:
    """Return the JSON Schema of an answer."""
    schema = TypeAdapter(answer).json_schema(mode="serialization")
    return {"$schema": DIALECT, **schema, "title": title}


def build_fleet_plan() -> dict[str, Any]:
    """Return the schema of `fleet plan --format json`, from the tables of the lake."""
    from reconciler.fleet.tables import MOVE_PLANS, PLANS

    parts = {
        "plans": (list[_read_row(PLANS, "plan")], ...),  # type: ignore[misc]
        "move_plans": (list[_read_row(MOVE_PLANS, "plan")], ...),  # type: ignore[misc]
    }
    return _build_parts("FleetPlanAnswer", parts, "The plans of a fleet, without the plan files")


def build_fleet_audit() -> dict[str, Any]:
    """Return the schema of `fleet audit --format json`."""
    from reconciler.fleet.tables import FINDINGS

    parts = {
        "collection": (str, ...),
        "counts": (dict[Severity, int], ...),
        "findings": (list[_read_row(FINDINGS)], ...),  # type: ignore[misc]
    }
    return _build_parts("FleetAuditAnswer", parts, "The findings of an audit of a fleet")


def build_fleet_history() -> dict[str, Any]:
    """Return the schema of `fleet history --format json`: `count` of all rows, and the first."""
    from reconciler.fleet.tables import DRIFT, EVENTS, GROWTH

    parts: dict[str, Any] = {}
    for table in (EVENTS, DRIFT, GROWTH):
        fields: dict[str, Any] = {"count": (int, ...), "rows": (list[_read_row(table)], ...)}  # type: ignore[misc]
        parts[table.name] = (create_model(f"Listed{table.name}", __base__=_Answer, **fields), ...)
    return _build_parts("FleetHistoryAnswer", parts, "What changed between collections of a fleet")


def _build_parts(name: str, parts: dict[str, Any], title: str) -> dict[str, Any]:
    parts = {"format_version": (Version, ...), **parts}
    return build_schema(create_model(name, __base__=_Answer, **parts), title)


def _read_row(table: LakeTable, *left_out: str) -> Any:
    """Return the type of a row of a lake's table. Only columns of the key are never null.

    Without a topic, a row is about the cluster.
    """
    required = {*table.key} - {"topic"}
    fields: dict[str, Any] = {
        field.name: (_read_type(field.dataType.jsonValue(), field.name in required), ...)
        for field in table.schema
        if field.name not in left_out
    }
    return create_model(f"{table.name}Row", __base__=_Answer, **fields)


def _read_type(spark: Any, required: bool) -> Any:
    kinds = {
        "string": str,
        "integer": int,
        "long": int,
        "double": float,
        "boolean": bool,
    }
    if isinstance(spark, str):
        found: Any = kinds[spark]
    elif spark["type"] == "array":
        found = list[_read_type(spark["elementType"], not spark["containsNull"])]  # type: ignore[misc]
    else:
        found = dict[str, _read_type(spark["valueType"], not spark["valueContainsNull"])]  # type: ignore[misc]
    return found if required else found | None
