"""The JSON form of moves in flight, declared once: it is printed and published as JSON Schema."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from reconciler.errors import Finding
from reconciler.model.cluster import Broker
from reconciler.model.moves import RateSource, ThrottleList, ThrottleRate, ThrottleSide
from reconciler.moves.progress import Cause

if TYPE_CHECKING:
    from reconciler.moves.progress import Copy, Move, MovesReport

FORMAT_VERSION = "1.0"
"""Major: a field changed its meaning or is gone. Minor: added fields, which a reader may skip."""


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, defer_build=True)


class CopyDocument(_Document):
    """A replica that a move adds. A number is null if it is not known.

    `bytes_per_s` needs an earlier reading, as --watch makes. `cause` is the reason why the copy
    does not end, `why` the same as a sentence.
    """

    broker: int
    bytes_done: int | None
    bytes_to_do: int | None
    percent: float | None
    in_sync: bool
    throttled: bool
    bytes_per_s: float | None
    cause: Cause | None
    why: str


class MoveDocument(_Document):
    """A partition in flight. `current` omits the replicas that are added, in no known order.

    `leader` is -1 if there is none, null if the account may not describe the topic.
    """

    topic: str
    partition: int
    current: tuple[int, ...]
    target: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    leader: int | None
    in_sync: tuple[int, ...]
    copies: tuple[CopyDocument, ...]


class SlowestDocument(_Document):
    """The copy that is farthest behind, those with a cause first."""

    topic: str
    partition: int
    broker: int
    percent: float | None
    cause: Cause | None
    why: str


class TotalsDocument(_Document):
    """Totals over all moves. Bytes that are not known count as none."""

    partitions: int
    replicas: int
    bytes_done: int
    bytes_to_do: int
    percent: float | None
    bytes_per_s: float | None
    seconds_left: float | None


class TrafficDocument(_Document):
    """A broker that sends or takes copies. Rates and `seconds_left` need an earlier reading."""

    broker: Broker
    in_bytes_per_s: float | None
    out_bytes_per_s: float | None
    bytes_left: int
    seconds_left: float | None


class RateDocument(_Document):
    """A throttle rate in force on a broker; `broker` is null for the cluster default itself."""

    broker: int | None
    side: ThrottleSide
    bytes_per_s: int
    source: RateSource
    left_over: bool


class ListDocument(_Document):
    """The throttled replicas of a topic, as its config spells them."""

    topic: str
    side: ThrottleSide
    replicas: str
    left_over: bool


class LeftoverDocument(_Document):
    """Throttles that nothing in flight uses, and Kafka's command that removes them.

    Without a topic and without a broker it is the cluster default. The command needs the address
    of the cluster: --bootstrap-server.
    """

    topic: str | None
    broker: int | None
    keys: tuple[str, ...]
    command: str


class MovesDocument(_Document):
    """What is in flight on a cluster at one time, and the throttles."""

    format_version: str
    cluster: str
    cluster_id: str | None
    seen_at: datetime
    totals: TotalsDocument
    moves: tuple[MoveDocument, ...]
    slowest: SlowestDocument | None
    brokers: tuple[TrafficDocument, ...]
    rates: tuple[RateDocument, ...]
    lists: tuple[ListDocument, ...]
    left_over: tuple[LeftoverDocument, ...]
    notes: tuple[Finding, ...]


def list_moves(report: MovesReport) -> MovesDocument:
    """Return a report as its document; `model_dump_json` makes one line of it."""
    reading = report.reading
    slowest = None
    if report.slowest is not None:
        each, copy = report.slowest
        slowest = SlowestDocument(
            topic=each.topic,
            partition=each.partition,
            broker=copy.broker,
            percent=_round(copy.percent),
            cause=copy.cause,
            why=copy.why,
        )
    unused = {throttle for each in report.leftovers for throttle in each.throttles}
    return MovesDocument(
        format_version=FORMAT_VERSION,
        cluster=reading.cluster,
        cluster_id=reading.cluster_id,
        seen_at=datetime.fromtimestamp(reading.seen_at_ms / 1000, UTC),
        totals=TotalsDocument(
            partitions=len(report.moves),
            replicas=len(report.copies),
            bytes_done=report.bytes_done,
            bytes_to_do=report.bytes_to_do,
            percent=_round(report.percent),
            bytes_per_s=_round(report.bytes_per_s),
            seconds_left=_round(report.seconds_left),
        ),
        moves=tuple(map(_list_move, report.moves)),
        slowest=slowest,
        brokers=tuple(
            TrafficDocument(
                broker=each.broker,
                in_bytes_per_s=_round(each.in_bytes_per_s),
                out_bytes_per_s=_round(each.out_bytes_per_s),
                bytes_left=each.bytes_left,
                seconds_left=_round(each.seconds_left),
            )
            for each in report.brokers
        ),
        rates=tuple(_list_rate(rate, left_over=rate in unused) for rate in reading.rates),
        lists=tuple(_list_list(each, left_over=each in unused) for each in reading.lists),
        left_over=tuple(
            LeftoverDocument(
                topic=each.topic, broker=each.broker, keys=each.keys, command=each.command
            )
            for each in report.leftovers
        ),
        notes=reading.notes,
    )


def _list_move(move: Move) -> MoveDocument:
    each = move.reassignment
    return MoveDocument(
        topic=each.topic,
        partition=each.partition,
        current=each.current,
        target=each.target,
        adding=each.adding,
        removing=each.removing,
        leader=each.leader,
        in_sync=each.in_sync,
        copies=tuple(map(_list_copy, move.copies)),
    )


def _list_copy(copy: Copy) -> CopyDocument:
    return CopyDocument(
        broker=copy.broker,
        bytes_done=copy.bytes_done,
        bytes_to_do=copy.bytes_to_do,
        percent=_round(copy.percent),
        in_sync=copy.in_sync,
        throttled=copy.throttled,
        bytes_per_s=_round(copy.bytes_per_s),
        cause=copy.cause,
        why=copy.why,
    )


def _list_rate(rate: ThrottleRate, *, left_over: bool) -> RateDocument:
    return RateDocument(
        broker=rate.broker,
        side=rate.side,
        bytes_per_s=rate.bytes_per_s,
        source=rate.source,
        left_over=left_over,
    )


def _list_list(each: ThrottleList, *, left_over: bool) -> ListDocument:
    return ListDocument(
        topic=each.topic, side=each.side, replicas=each.replicas, left_over=left_over
    )


def _round(number: float | None) -> float | None:
    return None if number is None else round(number, 1)
