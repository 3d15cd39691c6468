"""The JSON form of a report of health, declared once: printed, and published as JSON Schema."""

from __future__ import annotations

from typing import Annotated, ClassVar

from reconciler.errors import Finding
from reconciler.model.health import (
    DeadBroker,
    FailedDirectory,
    FaultyPartition,
    FillingDirectory,
    HealthReport,
    MovingPartition,
    OffPreferred,
)
from reconciler.planfile.documents import Derived, Document, Held, document_of
from reconciler.planfile.moves_in_flight import (
    LeftoverDocument,
    ListDocument,
    RateDocument,
    list_lists,
    list_rates,
)
from reconciler.planfile.plan_document import HealthCountsDocument

FORMAT_VERSION = "1.0"
"""Major: a field changed its meaning or is gone. Minor: added fields, which a reader may skip."""


@document_of(FaultyPartition)
class FaultyPartitionDocument(Document):
    """A partition with a fault.

    `leader` is -1 if there is none; it and `in_sync` are null if unknown. `min_insync` is
    min.insync.replicas in force. `lacking` lists the brokers whose replicas are not in sync.
    """

    lacking: tuple[int, ...]


@document_of(OffPreferred)
class OffPreferredDocument(Document):
    """A partition that another broker leads than its preferred leader; `electable`: that can."""


@document_of(MovingPartition)
class MovingPartitionDocument(Document):
    """A partition that is being reassigned."""


@document_of(DeadBroker)
class DeadBrokerDocument(Document):
    """A broker that is not alive, and the number of replicas on it."""


@document_of(FailedDirectory)
class FailedDirectoryDocument(Document):
    """A log directory that is offline on a living broker."""


@document_of(FillingDirectory)
class FillingDirectoryDocument(Document):
    """A log directory with little free space, in bytes. One that is `nearly_full` is at risk."""

    nearly_full: bool


class HealthDocument(Document):
    """What is wrong with a cluster, by name.

    `at_risk`: data or availability is at risk, and the command exits 2. That is so if one of
    `counts` is not 0 or a directory is nearly full. `partial`: something that could be at risk was
    not seen; `notes` say what. The rest are notes: `fenced` brokers are registered, not alive, and
    hold no replica; `left_over` are throttles that nothing in flight uses.
    """

    made_of: ClassVar[type | None] = HealthReport

    format_version: Annotated[str, Derived(lambda _: FORMAT_VERSION)]
    cluster: str
    cluster_id: Annotated[str | None, Held("state.cluster_id")]
    at_risk: Annotated[bool, Held("health.at_risk")]
    partial: Annotated[bool, Held("is_partial")]
    counts: Annotated[HealthCountsDocument, Held("health.counts")]
    partitions: Annotated[tuple[FaultyPartitionDocument, ...], Held("health.partitions")]
    dead: Annotated[tuple[DeadBrokerDocument, ...], Held("health.dead")]
    fenced: Annotated[tuple[DeadBrokerDocument, ...], Held("health.fenced")]
    cordoned: Annotated[tuple[int, ...], Held("health.cordoned")]
    failed_directories: Annotated[
        tuple[FailedDirectoryDocument, ...], Held("health.failed_directories")
    ]
    filling: Annotated[tuple[FillingDirectoryDocument, ...], Held("health.filling")]
    off_preferred: Annotated[tuple[OffPreferredDocument, ...], Held("health.off_preferred")]
    moving: Annotated[tuple[MovingPartitionDocument, ...], Held("health.moving")]
    rates: Annotated[
        tuple[RateDocument, ...], Derived(lambda r: list_rates(r.health.rates, r.health.leftovers))
    ]
    lists: Annotated[
        tuple[ListDocument, ...], Derived(lambda r: list_lists(r.health.lists, r.health.leftovers))
    ]
    left_over: Annotated[tuple[LeftoverDocument, ...], Held("health.leftovers")]
    notes: Annotated[tuple[Finding, ...], Held("state.notes")]
