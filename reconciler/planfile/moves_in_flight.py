"""The JSON form of moves in flight, declared once: it is printed and published as JSON Schema."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, ClassVar

from pydantic import PlainSerializer

from reconciler.errors import Finding
from reconciler.model.cluster import Broker, RateSource, ThrottleList, ThrottleRate, ThrottleSide
from reconciler.model.moves import DirectoryRate
from reconciler.model.throttles import Leftover
from reconciler.moves.progress import (
    BrokerProgress,
    Cause,
    Copy,
    DirectoryMove,
    Move,
    MovesReport,
)
from reconciler.planfile.documents import Derived, Document, Held

FORMAT_VERSION = "1.0"
"""Major: a field changed its meaning or is gone. Minor: added fields, which a reader may skip."""


def _round(number: float | None) -> float | None:
    return None if number is None else float(round(number, 1))


Rounded = Annotated[float | None, PlainSerializer(_round, return_type=float | None)]


class CopyDocument(Document):
    """A replica that a move adds. A number is null if it is not known.

    `bytes_per_s` needs an earlier reading, as --watch makes. `cause` is the reason why the copy
    does not end, `why` the same as a sentence.
    """

    made_of: ClassVar[type | None] = Copy

    broker: int
    bytes_done: int | None
    bytes_to_do: int | None
    percent: Rounded
    in_sync: bool
    throttled: bool
    bytes_per_s: Rounded
    cause: Cause | None
    why: str


class MoveDocument(Document):
    """A partition in flight. `current` omits the replicas that are added, in no known order.

    `leader` is -1 if there is none, null if the account may not describe the topic.
    """

    made_of: ClassVar[type | None] = Move

    topic: Annotated[str, Held("reassignment.topic")]
    partition: Annotated[int, Held("reassignment.partition")]
    current: Annotated[tuple[int, ...], Held("reassignment.current")]
    target: Annotated[tuple[int, ...], Held("reassignment.target")]
    adding: Annotated[tuple[int, ...], Held("reassignment.adding")]
    removing: Annotated[tuple[int, ...], Held("reassignment.removing")]
    leader: Annotated[int | None, Held("reassignment.leader")]
    in_sync: Annotated[tuple[int, ...], Held("reassignment.in_sync")]
    copies: tuple[CopyDocument, ...]


class SlowestDocument(Document):
    """The copy that is farthest behind, those with a cause first."""

    made_of: ClassVar[type | None] = Copy

    topic: str
    partition: int
    broker: int
    percent: Rounded
    cause: Cause | None
    why: str


class DirectoryMoveDocument(Document):
    """A replica that moves between log directories of its broker, from `source` to `target`."""

    made_of: ClassVar[type | None] = DirectoryMove

    topic: str
    partition: int
    broker: int
    source: str
    target: str
    bytes_done: int
    bytes_to_do: int
    percent: Rounded
    bytes_per_s: Rounded


class DirectoryRateDocument(Document):
    """A limit on copies between log directories; `broker` is null for the cluster default itself.

    `is_of_moves`: reconciler has set it.
    """

    made_of: ClassVar[type | None] = DirectoryRate

    broker: int | None
    bytes_per_s: int
    source: RateSource
    is_of_moves: bool


class TotalsDocument(Document):
    """Totals over all moves between brokers. Bytes that are not known count as none."""

    partitions: Annotated[int, Derived(lambda report: len(report.moves))]
    replicas: Annotated[int, Derived(lambda report: len(report.copies))]
    bytes_done: int
    bytes_to_do: int
    percent: Rounded
    bytes_per_s: Rounded
    seconds_left: Rounded


class TrafficDocument(Document):
    """A broker that sends or takes copies. Rates and `seconds_left` need an earlier reading."""

    made_of: ClassVar[type | None] = BrokerProgress

    broker: Broker
    in_bytes_per_s: Rounded
    out_bytes_per_s: Rounded
    bytes_left: int
    seconds_left: Rounded


class RateDocument(Document):
    """A throttle rate in force on a broker; `broker` is null for the cluster default itself."""

    made_of: ClassVar[type | None] = ThrottleRate

    broker: int | None
    side: ThrottleSide
    bytes_per_s: int
    source: RateSource
    left_over: bool


class ListDocument(Document):
    """The throttled replicas of a topic, as its config spells them."""

    made_of: ClassVar[type | None] = ThrottleList

    topic: str
    side: ThrottleSide
    replicas: str
    left_over: bool


class LeftoverDocument(Document):
    """Throttles that nothing in flight uses, and Kafka's command that removes them.

    Without a topic and without a broker it is the cluster default. The command needs the address
    of the cluster: --bootstrap-server.
    """

    made_of: ClassVar[type | None] = Leftover

    topic: str | None
    broker: int | None
    keys: tuple[str, ...]
    command: str


def _list_slowest(report: MovesReport) -> SlowestDocument | None:
    if report.slowest is None:
        return None
    each, copy = report.slowest
    return SlowestDocument.write(copy, topic=each.topic, partition=each.partition)


def list_rates(
    rates: Iterable[ThrottleRate], leftovers: Iterable[Leftover]
) -> tuple[RateDocument, ...]:
    """Return the documents of throttle rates; those of `leftovers` are marked."""
    unused = {throttle for each in leftovers for throttle in each.throttles}
    return tuple(RateDocument.write(rate, left_over=rate in unused) for rate in rates)


def list_lists(
    lists: Iterable[ThrottleList], leftovers: Iterable[Leftover]
) -> tuple[ListDocument, ...]:
    """Return the documents of throttled replicas; those of `leftovers` are marked."""
    unused = {throttle for each in leftovers for throttle in each.throttles}
    return tuple(ListDocument.write(one, left_over=one in unused) for one in lists)


def _read_time(report: MovesReport) -> datetime:
    return datetime.fromtimestamp(report.reading.seen_at_ms / 1000, UTC)


class MovesDocument(Document):
    """What is in flight on a cluster at one time, and the throttles."""

    format_version: Annotated[str, Derived(lambda _: FORMAT_VERSION)]
    cluster: Annotated[str, Held("reading.cluster")]
    cluster_id: Annotated[str | None, Held("reading.cluster_id")]
    seen_at: Annotated[datetime, Derived(_read_time)]
    totals: TotalsDocument
    moves: tuple[MoveDocument, ...]
    directory_moves: tuple[DirectoryMoveDocument, ...]
    slowest: Annotated[SlowestDocument | None, Derived(_list_slowest)]
    brokers: tuple[TrafficDocument, ...]
    rates: Annotated[
        tuple[RateDocument, ...], Derived(lambda r: list_rates(r.reading.rates, r.leftovers))
    ]
    lists: Annotated[
        tuple[ListDocument, ...], Derived(lambda r: list_lists(r.reading.lists, r.leftovers))
    ]
    directory_rates: Annotated[tuple[DirectoryRateDocument, ...], Held("reading.directory_rates")]
    left_over: Annotated[tuple[LeftoverDocument, ...], Held("leftovers")]
    notes: Annotated[tuple[Finding, ...], Held("reading.notes")]
