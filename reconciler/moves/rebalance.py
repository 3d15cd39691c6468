"""A plan that balances existing replicas, or uses new brokers. It is made only on request."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

from reconciler.diff.brokers import eligible_brokers
from reconciler.diff.notes import (
    assume_defaults,
    mute_notes,
    note_failed_directories,
    note_internal_topics,
    note_pending_internal,
    note_traffic,
    note_unregistered,
    note_unused_rows,
)
from reconciler.errors import Finding, Severity, UsageError
from reconciler.model.cluster import (
    Assignment,
    Broker,
    ClusterState,
    Place,
    TopicSpec,
)
from reconciler.model.moves import LoadAim, MovedRows, MoveKind, PlannedBalance
from reconciler.model.plan import Plan, Scope, list_unmatched
from reconciler.model.steps import steps_of
from reconciler.moves.by_load import balance_by_load
from reconciler.moves.differences import MoveDiff
from reconciler.moves.forecast import list_row_moves
from reconciler.moves.movable import NAMED, MovableTopics
from reconciler.moves.plan import add_cost, allowed_moves, compose_moves, list_notes
from reconciler.moves.window import RowMove
from reconciler.placement.bounds import share_evenly
from reconciler.placement.measure import measure_balance, measure_quality
from reconciler.placement.moving.problem import MoveGoal
from reconciler.spec.entry import ClusterEntry
from reconciler.units import approximate_size, count, format_size


def plan_rebalance(
    entry: ClusterEntry,
    specs: Iterable[TopicSpec],
    state: ClusterState,
    *,
    topics: str = "*",
    brokers: Collection[int] = (),
    max_bytes: int | None = None,
    offline: bool = False,
    aim: LoadAim | None = None,
    approved: MovedRows | None = None,
) -> Plan:
    """Plan the fewest moves that make the replicas of topics and of the cluster as even as
    possible.

    `aim`: bring every broker into a band around its share of some loads instead, with the fewest
    bytes copied; topics stay as even as they are. `offline`: move only the replicas on failed log
    directories, to brokers that have none, of every live topic, and leave all else as it is.

    In: `topics`, globs of live topics, in a file or not; those that the estate does not manage,
    internal ones and manual rows stay. `brokers` are the only ones that take replicas, none of them
    more than its even share of the cluster, unless `offline`; by default all that are able do,
    without a bound. `max_bytes` limits what is copied: the smallest partitions move first, and a
    later plan moves others. `approved`, with an aim, are the rows of an earlier plan. They are
    taken if they still bring inside its band every broker that new rows would; otherwise a note
    says why not. `state` is as for `plan_moves`.
    Errors: UsageError if the cluster does not allow it, if no topic matches, a broker is not able
    to take replicas, or if the aim asks for an amount that is not known.
    """
    if MoveKind.REBALANCE not in allowed_moves(entry, MoveKind.REBALANCE).allow:
        what = f"{entry.name} does not allow rebalance; add it to moves.allow in clusters.yaml"
        raise UsageError(what)
    live = state.topics if offline else state.user_topics
    if unmatched := list_unmatched(live, topics):
        raise UsageError(f"no live topic of {entry.name} matches --topic {unmatched[0]!r}")
    able = _list_able(entry, state, brokers, offline=offline)
    state = assume_defaults(entry, state)
    choice = MovableTopics(entry, {spec.name: spec for spec in specs}, state)
    takers = sorted(brokers or able)
    diffs = tuple(choice.choose_offline(topics, takers, able) if offline else choice.choose(topics))
    balance, limited = None, None
    objections: tuple[str, ...] = ()
    kinds = aim.by if aim is not None else ()
    if aim is not None:
        aim = replace(aim, brokers=frozenset(brokers), max_bytes=max_bytes)
        diffs, balance, objections = balance_by_load(entry, diffs, state, aim, able, approved)
        limited = _note_limited(balance, max_bytes)
    # What is on a failed disk has to go somewhere, so no share bounds it.
    anywhere = {spec.name for spec in choice.specs.values() if not spec.rack_aware}
    bounded = brokers and not offline and aim is None
    shares = _share_evenly(entry, state, anywhere) if bounded else {}
    most = {broker: shares[broker] for broker in brokers if shares}
    compose = partial(
        compose_moves,
        entry,
        state=state,
        brokers=takers,
        most=most,
        goal=MoveGoal.OFFLINE_REPLICAS if offline else MoveGoal.BALANCE,
    )
    plan = compose(diffs)
    if max_bytes is not None and aim is None:
        diffs, limited = _limit_bytes(plan, diffs, state, max_bytes, most)
        plan = compose(diffs)
    moved = tuple(topic for topic in plan.topics if steps_of(topic) or topic.refusals)
    notes = (
        *entry.notes,
        *list_notes(state, kinds),
        *note_traffic(state, kinds),
        *note_unregistered(entry, state),
        *note_internal_topics(entry, state),
        *note_pending_internal(entry, state),
        *note_failed_directories(entry, state),
        *plan.notes,
        *choice.note_left(),
        *(_note_uneven(plan, diffs, state, shares) if shares else ()),
        *note_unused_rows(objections),
    )
    plan = replace(
        plan,
        topics=moved,
        unchanged=len(diffs) - len(moved),
        notes=mute_notes(entry, (*notes, limited) if limited else notes),
        scope=Scope(topics),
    )
    if balance is not None and plan.moves is not None:
        plan = replace(plan, moves=replace(plan.moves, balance=balance, least_replicas=0))
    made_by = _name_command(brokers, max_bytes, aim, offline=offline)
    return add_cost(entry, plan, state, made_by=made_by)


def _list_able(
    entry: ClusterEntry, state: ClusterState, brokers: Collection[int], *, offline: bool
) -> set[int]:
    """Return the brokers that can take replicas. Errors: UsageError if one of `brokers` cannot."""
    able = {broker.id for broker in eligible_brokers(state.brokers, entry.exclude_brokers)}
    failed = state.failed_directories.keys() if offline else frozenset()
    able -= failed
    unable = min(set(brokers) - able, default=None)
    if unable is not None:
        why = ", as a log directory of it has failed" if unable in failed else ""
        if unable not in {broker.id for broker in state.brokers}:
            why = ", as it is not in the cluster"
        listed = ", ".join(map(str, sorted(able))) or "none"
        raise UsageError(f"broker {unable} cannot take replicas{why}; brokers that can: {listed}")
    return able


def _name_command(
    brokers: Collection[int], max_bytes: int | None, aim: LoadAim | None, *, offline: bool
) -> str:
    """Return the command that makes the plan, without the options that a scope names."""
    chosen = [f"--brokers {','.join(map(str, sorted(brokers)))}"] if brokers else []
    limit = [f"--max-bytes {max_bytes}B"] if max_bytes is not None else []
    only = ["--offline-replicas"] if offline else ["--even-topics"]
    if aim is not None:
        only = [f"--by {','.join(aim.by)}", f"--within {aim.within_percent:g}%"]
        only += ["--leaders-only"] if aim.leaders_only else []
        if aim.over_percent is not None:
            only = [f"--over {aim.over_percent:g}%"]
    return " ".join(["rebalance", *only, *chosen, *limit])


def _share_evenly(
    entry: ClusterEntry, state: ClusterState, anywhere: Collection[str]
) -> dict[int, int]:
    """Return the even share of the cluster's replicas of each broker that can take some.

    In: the topics for which the racks play no part. Excluded brokers give replicas up, so these
    count; what stays on brokers that are dead, cordoned or drained does not.
    """
    able = eligible_brokers(state.brokers, entry.exclude_brokers)
    apart = {broker.id for broker in able} | entry.drain_brokers
    live = state.user_topics.items()
    return share_evenly(
        able,
        chain.from_iterable(topic.assignment for name, topic in live if name not in anywhere),
        entry.capacity,
        anywhere=chain.from_iterable(topic.assignment for name, topic in live if name in anywhere),
        giving=[b for b in state.brokers if b.alive and not b.cordoned and b.id not in apart],
    )


def _note_uneven(
    plan: Plan, diffs: Iterable[MoveDiff], state: ClusterState, shares: Mapping[int, int]
) -> Iterator[Finding]:
    """Say what stays uneven because only some brokers take replicas, and these have their share."""
    live = {name: topic.assignment for name, topic in state.user_topics.items()}
    after = live | {topic.name: topic.after.assignment for topic in plan.topics if topic.after}
    held = Counter(broker for rows in after.values() for row in rows for broker in row)
    above = [broker for broker in sorted(shares) if held[broker] > shares[broker]]
    able = [broker for broker in state.brokers if broker.id in shares]
    # Topics that stay as they are have their own note.
    racked = {diff.spec.name: diff.spec.rack_aware for diff in diffs}
    uneven = [
        name
        for name, rack_aware in sorted(racked.items())
        if _is_uneven(after[name], able, rack_aware=rack_aware)
    ]
    spread = (after[name] for name, rack_aware in racked.items() if rack_aware)
    racks = measure_quality(spread, state.brokers).rack_violations
    parts = []
    if above:
        worst = max(above, key=lambda broker: held[broker] - shares[broker])
        example = f"broker {worst} has {held[worst]:,} replicas, its share is {shares[worst]:,}"
        parts.append(f"{count(len(above), 'broker')} above the even share ({example})")
    if uneven:
        more = f" and {len(uneven) - NAMED:,} more" if len(uneven) > NAMED else ""
        parts.append(f"{count(len(uneven), 'topic')} ({', '.join(uneven[:NAMED])}{more})")
    if racks:
        parts.append(f"{count(racks, 'partition')} over the racks")
    if parts:
        yield Finding(
            "rebalance-uneven",
            "only the brokers of --brokers take replicas, up to their even share, so this stays "
            f"uneven: {'; '.join(parts)}",
            "a rebalance without --brokers also moves replicas between the others",
            severity=Severity.NOTE,
        )


def _is_uneven(rows: Assignment, able: Sequence[Broker], *, rack_aware: bool) -> bool:
    """Return whether a topic is less even over brokers than their racks allow."""
    racks: dict[str | None, list[int]] = defaultdict(list)
    for broker in able:
        racks[broker.rack if rack_aware else None].append(broker.id)
    if any(measure_balance([rows], ids).replicas.skew > 1 for ids in racks.values()):
        return True
    if measure_balance([rows], [broker.id for broker in able]).replicas.skew <= 1:
        return False
    held = Counter(chain.from_iterable(rows))
    return any(held[broker] > most for broker, most in share_evenly(able, rows, {}).items())


def _note_limited(balance: PlannedBalance, max_bytes: int | None) -> Finding | None:
    """Say that some brokers stay outside their bands, if that may be for --max-bytes."""
    if max_bytes is None or not balance.unreached:
        return None
    what = f"some brokers stay outside their bands with {approximate_size(max_bytes)} copied"
    return Finding(
        "rebalance-limited", what, "rebalance again after this plan", severity=Severity.NOTE
    )


def _limit_bytes(
    plan: Plan,
    diffs: Iterable[MoveDiff],
    state: ClusterState,
    max_bytes: int,
    most: Mapping[int, int],
) -> tuple[tuple[MoveDiff, ...], Finding | None]:
    """Decide every row: the smallest partitions move, as many as copy `max_bytes` together.

    In: `most`, the bounds of the plan. Returns: the rows, and a note if some do not move.
    """
    moves = list_row_moves(plan, state)
    copies = sorted(
        (move for move in moves if move.adding),
        key=lambda move: (move.size * len(move.adding), move.place),
    )
    if unknown := [move.place for move in moves if move.adding and move.size < 0]:
        name, number = unknown[0]
        what = f"the size of {name} partition {number} is unknown"
        raise UsageError(f"{what}, so --max-bytes cannot be kept; leave it out")
    all_bytes = sum(move.size * len(move.adding) for move in copies)
    kept, way_out = {move.place for move in copies}, "rebalance again after this plan"
    if all_bytes > max_bytes:
        live = chain.from_iterable(topic.assignment for topic in state.user_topics.values())
        held = Counter(chain.from_iterable(live))
        room = {broker: max(n - held[broker], 0) for broker, n in most.items()}
        kept = _choose_copies(copies, max_bytes, dict(room))
        if not kept:  # and no later plan copies any
            able = (move for move in copies if all(room.get(broker) != 0 for broker in move.adding))
            least = next((move.size * len(move.adding) for move in able), all_bytes)
            way_out = f"nothing fits: write --max-bytes {format_size(least)} or more"
    after = {topic.name: topic.after.assignment for topic in plan.topics if topic.after}
    limited = []
    for diff in diffs:
        name = diff.spec.name
        rows = enumerate(zip(diff.rows, after[name], strict=True))
        given = {n: new if (name, n) in kept or {*new} == {*old} else old for n, (old, new) in rows}
        limited.append(replace(diff, given=given))
    rest = len(copies) - len(kept)
    if not rest:
        return tuple(limited), None
    note = Finding(
        "rebalance-limited",
        f"{count(rest, 'partition')} stay, because all would copy {approximate_size(all_bytes)}",
        way_out,
        severity=Severity.NOTE,
    )
    return tuple(limited), note


def _choose_copies(copies: Sequence[RowMove], most_bytes: int, room: dict[int, int]) -> set[Place]:
    """Choose the partitions that move, in order, as long as bytes and the room on brokers last.

    What has no room waits for others of the plan to make some. `room` names bounded brokers only.
    """
    chosen: set[Place] = set()
    while True:
        waiting = []
        for move in copies:
            size = move.size * len(move.adding)
            if size > most_bytes or any(room.get(broker) == 0 for broker in move.adding):
                waiting.append(move)
                continue
            chosen.add(move.place)
            most_bytes -= size
            for broker in room.keys() & {*move.adding, *move.removing}:
                room[broker] += 1 if broker in move.removing else -1
        if len(waiting) == len(copies):
            return chosen
        copies = waiting
