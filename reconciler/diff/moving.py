"""Changes that move existing replicas: which are allowed, what they delay, and notes on both."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from reconciler.diff.fields import FieldChange
from reconciler.diff.requests import ANOTHER_WAY, explain_unmovable
from reconciler.errors import Finding, Location, Severity
from reconciler.model.cluster import TopicSpec, TopicState
from reconciler.model.health import is_below_min, read_min_insync
from reconciler.model.moves import MIN_INSYNC, MoveKind, MovePolicy
from reconciler.model.requests import KafkaRequest
from reconciler.spec.services import APACHE, spell_moves
from reconciler.units import count, name_each

PLAN_MOVES = "reconciler plan --moves"
NAMED = 5
"""The number of partitions that a message names; it counts the others."""


def kind_of(change: FieldChange) -> MoveKind | None:
    """Return the kind of move that a change needs; None if it moves no replica."""
    match change.path.partition(".")[0]:
        case "replication_factor":
            return MoveKind.REPLICATION
        case "assignment":
            return MoveKind.ASSIGNMENT
        case _:
            return None


def list_kinds(changes: Iterable[FieldChange]) -> frozenset[MoveKind]:
    """Return the kinds of moves that some changes need."""
    return frozenset(kind for change in changes if (kind := kind_of(change)) is not None)


def allow_moves(
    kinds: Collection[MoveKind], moves: MovePolicy | None, service: str = APACHE
) -> str:
    """Return the edit of clusters.yaml that allows some kinds of moves on a cluster."""
    if moves is None:
        named = [kind for kind in MoveKind if kind in kinds]
        return spell_moves(service, named, "below this cluster in clusters.yaml")
    listed = " and ".join(kind for kind in MoveKind if kind in kinds and kind not in moves.allow)
    return f"add {listed} to moves.allow of this cluster in clusters.yaml"


def list_pending(
    changes: Iterable[FieldChange], moves: MovePolicy | None
) -> tuple[FieldChange, ...]:
    """List the changes that a plan of moves makes: none if one of them is not allowed.

    A topic is refused as a unit, with all of its changes.
    """
    moving = tuple(change for change in changes if kind_of(change) is not None)
    return moving if moves is not None and list_kinds(moving) <= moves.allow else ()


def waits_for_moves(spec: TopicSpec, state: TopicState, pending: Iterable[FieldChange]) -> bool:
    """Return whether new partitions must wait until the existing ones have moved.

    Kafka gives new partitions as many replicas as the existing ones have. So they cannot have
    manual rows of another length, and none are added while the existing ones differ.
    """
    resized = MoveKind.REPLICATION in list_kinds(pending)
    return resized and (spec.assignment is not None or len(state.replication_factors) > 1)


def hold_min_insync(
    spec: TopicSpec,
    state: TopicState,
    pending: Iterable[FieldChange],
    overrides: Mapping[str, str],
    config: Mapping[str, str],
    defaults: Mapping[str, str],
) -> tuple[Mapping[str, str], tuple[Finding, ...]]:
    """Keep min.insync.replicas while it would refuse every acks=all write.

    Replicas that are being copied count as replicas, and are not in sync (KAFKA-21110): a value
    above what is in sync now stops writes until the first copy has ended. A run of moves lowers it
    for that time; a plan of changes must not raise it. In: `overrides` as they are, `config` as
    they are to be. Returns: the config to set now, and a note if it differs.
    """
    resized = MoveKind.REPLICATION in list_kinds(pending)
    wanted, now = (read_min_insync(configs, defaults) for configs in (config, overrides))
    able = min(map(len, state.in_sync or state.assignment), default=0)
    if not (resized or state.reassigning) or wanted is None or wanted <= max(able, now or 0):
        return config, ()
    held = {key: value for key, value in config.items() if key != MIN_INSYNC}
    held |= {MIN_INSYNC: overrides[MIN_INSYNC]} if MIN_INSYNC in overrides else {}
    note = Finding(
        "moves-pending",
        f"{MIN_INSYNC} {now or 'not set'} → {wanted} is pending: a partition has "
        f"{count(able, 'replica')} in sync, so every acks=all write would fail",
        "plan again once the moves have ended",
        spec.where(f"config.{MIN_INSYNC}"),
        Severity.NOTE,
    )
    return dict(sorted(held.items())), (note,)


def object_to_min_insync(
    state: TopicState, now: int | None, wanted: int | None, alive: Collection[int] = ()
) -> Iterator[Finding]:
    """Object to a higher min.insync.replicas that replicas out of sync make unwritable.

    In: the values in force before and after, None if unknown; `alive`, the brokers whose replicas
    count as in sync if the state does not say which are. The finding has no location.
    """
    if wanted is None or (now is not None and wanted <= now):
        return
    short, behind = [], set[int]()
    for number, row in enumerate(state.assignment):
        synced = set(state.in_sync[number]) if state.in_sync else set(row).intersection(alive)
        if is_below_min(row, synced, wanted):
            short.append(number)
            behind |= set(row) - synced
    if short:
        least = f"fewer than {count(wanted, 'replica')} in sync"
        brokers = name_each("broker", sorted(behind))
        yield Finding(
            "min-insync-le-in-sync",
            f"{name_partitions(short, 'has', 'have')} {least}, so every acks=all write to "
            f"{'it' if len(short) == 1 else 'them'} would fail with {MIN_INSYNC} {wanted}",
            f"plan again once the replicas on {brokers} are in sync",
        )


def name_partitions(numbers: Collection[int], one: str, many: str) -> str:
    """Name some partitions as the subject of a sentence: `partitions 0, 1 and 7 more have`."""
    shown = ", ".join(map(str, sorted(numbers)[:NAMED]))
    more = f" and {len(numbers) - NAMED:,} more" if len(numbers) > NAMED else ""
    return f"partition {shown} {one}" if len(numbers) == 1 else f"partitions {shown}{more} {many}"


def note_moves(
    pending: str, unmade: str, where: Location, unoffered: Collection[KafkaRequest]
) -> Finding:
    """Say what is `pending` for a plan of moves, or what stays `unmade` because no plan can move
    replicas."""
    if why := explain_unmovable(unoffered):
        what = f"{unmade}: {why}"
        return Finding("request-unoffered", what, ANOTHER_WAY, where, Severity.NOTE)
    return Finding("moves-pending", pending, f"plan it with {PLAN_MOVES}", where, Severity.NOTE)


def note_pending(
    spec: TopicSpec,
    pending: Iterable[FieldChange],
    waiting: FieldChange | None,
    unoffered: Collection[KafkaRequest] = (),
) -> Iterator[Finding]:
    """Add a note on changes that a plan of moves makes, and on new partitions that wait for it."""
    said, paths = [], []
    rows = 0
    for change in pending:
        match kind_of(change):
            case MoveKind.REPLICATION:
                said.append(f"replication_factor {change.found} → {change.desired}")
                paths.append(change.path)
            case MoveKind.ASSIGNMENT:
                rows += 1
                paths.append(change.path)
            case None:
                pass  # new partitions, which wait
    if rows:
        said.append(f"the assignment of {count(rows, 'partition')}")
    if not said:
        return
    what, are = " and ".join(said), "is" if len(said) == 1 else "are"
    waits = ""
    if waiting is not None:
        waits = f", and partitions {waiting.found} → {waiting.desired} waits for that"
    where = spec.where(max(paths))  # replication_factor comes last
    yield note_moves(
        f"{what} {are} pending{waits}", f"{what} {are} not made{waits}", where, unoffered
    )
