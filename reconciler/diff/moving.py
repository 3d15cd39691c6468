"""Changes that move existing replicas: which are allowed, what they hold up, and notes on both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.errors import Finding, Severity
from reconciler.model import MIN_INSYNC, MoveKind
from reconciler.units import count

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from reconciler.diff.fields import FieldChange
    from reconciler.model import MovePolicy, TopicSpec, TopicState

PLAN_MOVES = "reconciler plan --moves"


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


def allow_moves(kinds: Collection[MoveKind], moves: MovePolicy | None) -> str:
    """Return the edit of clusters.yaml that allows some kinds of moves."""
    if moves is None:
        listed = ", ".join(kind for kind in MoveKind if kind in kinds)
        block = f"moves: {{allow: [{listed}], rate: 30MiB}}"
        return f"write {block} below this cluster in clusters.yaml"
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
    wanted = config.get(MIN_INSYNC, defaults.get(MIN_INSYNC))
    now = overrides.get(MIN_INSYNC, defaults.get(MIN_INSYNC))
    if not (resized or state.reassigning) or wanted in (None, now):
        return config, ()
    able = min(map(len, state.in_sync or state.assignment), default=0)
    if int(wanted) <= able or (now is not None and int(wanted) < int(now)):
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


def note_pending(
    spec: TopicSpec, pending: Iterable[FieldChange], waiting: FieldChange | None
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
    what = f"{' and '.join(said)} {'is' if len(said) == 1 else 'are'} pending"
    if waiting is not None:
        what += f", and partitions {waiting.found} → {waiting.desired} waits for that"
    yield Finding(
        "moves-pending",
        what,
        f"plan it with {PLAN_MOVES}",
        spec.where(max(paths)),  # replication_factor comes last
        Severity.NOTE,
    )
