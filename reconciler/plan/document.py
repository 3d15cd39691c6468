"""The form of a plan file, declared once: what is written, read, and published as JSON Schema.

Names are Terraform's where it has one (`resource_changes[].change.actions`), so that plan viewers
and policies made for it work.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from reconciler.errors import Finding, Location
from reconciler.model import (
    Balance,
    Broker,
    Deletion,
    LevelResult,
    RefusedField,
    RiskNote,
    Scope,
)

FORMAT_VERSION = "1.2"
"""Major: a reader that does not know it refuses. Minor: added fields, which it may skip.

1.1 added deletions. A reader of 1.0 reads every plan without one as before, and refuses one with a
deletion for its action, as it must. 1.2 added `refused_change`, which nobody applies: the
fingerprint leaves it out, the seal covers it.
"""

Action = Literal["no-op", "create", "update", "delete"]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
StepName = Literal["create_topic", "add_partitions", "alter_config", "delete_topic"]


class _Document(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)


class ImageDocument(_Document):
    """One topic before or after: `assignment[p]` lists partition p's brokers, leader first."""

    topic_id: str | None
    partitions: int
    replication_factor: int
    assignment: tuple[tuple[int, ...], ...]
    config: dict[str, str]


class ChangeDocument(_Document):
    """Terraform's change representation; a refused topic has the action `no-op`."""

    actions: Annotated[tuple[Action, ...], Field(min_length=1, max_length=1)]
    before: ImageDocument | None
    after: ImageDocument | None


class ResourceDocument(_Document):
    """One topic of the plan: what changes, in which steps, at what risk, or why it is refused.

    `refused_change` lists the fields of a change that is refused; `change` and `steps` never do.
    """

    address: str
    type: Literal["kafka_topic"] = "kafka_topic"
    name: str
    change: ChangeDocument
    steps: tuple[StepName, ...]
    where: Location
    risks: tuple[RiskNote, ...] = ()
    refusals: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()
    balance_before: Balance | None = None
    balance_after: Balance | None = None
    deletion: Deletion | None = None
    refused_change: tuple[RefusedField, ...] = ()


class ClusterDocument(_Document):
    """The one cluster that the plan is for, and its balance over the eligible brokers."""

    name: str
    cluster_id: str | None
    brokers: tuple[Broker, ...]
    excluded: tuple[int, ...] = ()
    balance_before: Balance | None = None
    balance_after: Balance | None = None
    levels: tuple[LevelResult, ...] = ()


class SummaryDocument(_Document):
    """Counts of topics; one that grows and is configured counts in both."""

    create: int
    expand: int
    configure: int
    delete: int = 0
    refused: int
    unchanged: int
    live: int
    files: int


class CommitDocument(_Document):
    """The git commit of the specs; `dirty`: files of the estate differed from it."""

    sha: Annotated[str, Field(pattern=r"^[0-9a-f]{40,64}$")]
    dirty: bool = False


class PlanDocument(_Document):
    """A plan of reconciler: what would change on one Kafka cluster, and nothing else.

    `fingerprint` covers what the plan does and rests on, so that the same plan made elsewhere has
    the same; `seal` covers the whole document beside itself.
    """

    format_version: Annotated[str, Field(pattern=r"^\d+\.\d+$")]
    fingerprint: Sha256
    seal: Sha256
    commit: CommitDocument | None = None
    scope: Scope = Scope()
    cluster: ClusterDocument
    resource_changes: tuple[ResourceDocument, ...]
    summary: SummaryDocument
    unmanaged: tuple[str, ...] = ()
    notes: tuple[Finding, ...] = ()
    refusals: tuple[Finding, ...] = ()
