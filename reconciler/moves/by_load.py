"""Rows that bring every broker into a band around its share of replicas, bytes, writes or reads.

First other brokers get replicas, then other replicas become preferred leaders, which copies
nothing. What the bands mean: docs/explanation/balance-by-load.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from reconciler.errors import UsageError
from reconciler.model.cluster import ClusterState, Replicas
from reconciler.model.moves import (
    BrokerBand,
    LoadAim,
    LoadBand,
    LoadKind,
    MovedRows,
    PlannedBalance,
)
from reconciler.moves.differences import MoveDiff
from reconciler.moves.load_table import Bands, LoadTable
from reconciler.spec.entry import ClusterEntry
from reconciler.units import count, name_each

if TYPE_CHECKING:
    from reconciler.placement.loads.problem import Ints, LoadProblem


def balance_by_load(
    entry: ClusterEntry,
    diffs: Sequence[MoveDiff],
    state: ClusterState,
    aim: LoadAim,
    able: Collection[int],
    approved: MovedRows | None = None,
) -> tuple[tuple[MoveDiff, ...], PlannedBalance, tuple[str, ...]]:
    """Decide every row: with the fewest bytes copied, and then the fewest leaders changed.

    In: the rows that may change, and the brokers that could take replicas. The rows of an
    `approved` plan are taken instead of new ones if they still hold. Returns also the objections to
    these, none if they are taken.
    Errors: UsageError if an amount that the aim needs is not known of any partition, or if the
    leaders alone cannot move it; AssertionError if the checker objects.
    """
    table = LoadTable(entry, diffs, state, aim, frozenset(able))
    decided = _decide(table)
    objections: tuple[str, ...] = ()
    if approved is not None:
        kept, objections = _take(table, approved, decided)
        decided = kept or decided
    moved, led = decided
    after = {
        place: led.rows[number]
        for number, place in enumerate(table.places)
        if table.movable[number]
    }
    settled = tuple(
        replace(
            diff,
            given={
                number: after.get((diff.spec.name, number), diff.given.get(number, row))
                for number, row in enumerate(diff.rows)
            },
        )
        for diff in diffs
    )
    balance = PlannedBalance(
        aim.within_percent,
        (*moved.bands, *led.bands),
        moved.least if moved.bands and table.sized else None,
        led.least,
        unreached=moved.unreached or led.unreached,
        over_percent=aim.over_percent,
    )
    return settled, balance, objections


def measure_farthest(
    entry: ClusterEntry,
    diffs: Sequence[MoveDiff],
    state: ClusterState,
    able: Collection[int],
    kinds: Collection[LoadKind],
) -> dict[str, float]:
    """Return how far from its share the farthest broker is, of each load by its name.

    `leaders` are counted. In: the rows of the state, and the kinds whose amounts are known.
    Units: parts of the share.
    """
    table = LoadTable(entry, diffs, state, LoadAim(), frozenset(able))
    loads = [
        *((str(kind), kind, False) for kind in LoadKind if kind is not LoadKind.READ),
        ("read", LoadKind.READ, True),
        ("leaders", LoadKind.COUNT, True),
    ]
    needed = {LoadKind.READ: {LoadKind.READ, LoadKind.WRITE}}
    return {
        name: _measure_farthest(table, kind, leads=leads)
        for name, kind, leads in loads
        if needed.get(kind, {kind}).issubset(kinds)
    }


def _list_leader_kinds(aim: LoadAim) -> list[LoadKind]:
    """Return what leaders are balanced by: rates if they are asked for, or else their number."""
    rates: list[LoadKind] = [k for k in aim.by if k in (LoadKind.WRITE, LoadKind.READ)]
    if aim.leaders_only and LoadKind.DISK in aim.by:
        what = "bytes on disk do not move with leaders"
        raise UsageError(f"{what}; with --leaders-only, write --by count, write or read")
    return rates if rates and LoadKind.COUNT not in aim.by else [*rates, LoadKind.COUNT]


@dataclass(frozen=True, slots=True)
class _Stage:
    """Rows after one stage, its bands, and the least that it has to cost, None if unknown.

    `inside` are the brokers inside the band of each load, at the width at which a balance acts.
    `faults` are what the checker says against given rows.
    """

    rows: tuple[Replicas, ...]
    bands: tuple[LoadBand, ...] = ()
    least: int | None = 0
    unreached: bool = False
    inside: tuple[frozenset[int], ...] = ()
    faults: tuple[str, ...] = ()


class _Decided(NamedTuple):
    """The rows after both stages: other brokers, and then other leaders."""

    moved: _Stage
    led: _Stage


def _decide(table: LoadTable, given: tuple[Replicas, ...] | None = None) -> _Decided:
    """Choose the rows, or measure given ones.

    Errors: as `balance_by_load`, but that faults of given rows are in the stages.
    """
    aim, moved = table.aim, _Stage(table.rows)
    kinds = [kind for kind in aim.by if kind is not LoadKind.READ]
    if kinds and not aim.leaders_only:
        moved = _move_replicas(table, kinds, given)
    # Relief changes nothing that it need not.
    leading = _list_leader_kinds(aim) if aim.over_percent is None else []
    if not leading:
        return _Decided(moved, _Stage(moved.rows))
    return _Decided(moved, _choose_leaders(table, moved.rows, leading, given))


def _take(
    table: LoadTable, approved: MovedRows, new: _Decided
) -> tuple[_Decided | None, tuple[str, ...]]:
    """Return the rows of an approved plan, or why they do not hold.

    They hold if the live rows are still those before it, if they break no hard rule, and if
    they bring inside its band every broker that new rows bring there.
    """
    if new.led.rows == table.rows:
        return None, ("a new plan moves nothing",)
    if objections := tuple(_compare_live(table, approved)):
        return None, objections
    given = tuple(
        approved[place][1] if place in approved else row
        for place, row in zip(table.places, table.rows, strict=True)
    )
    if given == new.led.rows:
        return new, ()
    if objections := tuple(_find_barred(table, given)):
        return None, objections
    kept = _decide(table, given)
    if kept.moved.faults or kept.led.faults:
        what = "they break a rule: of racks, of the spread of a topic, or of free space"
        return None, (what,)
    objections = tuple(_list_lost(kept, new))
    return (None, objections) if objections else (kept, ())


def _compare_live(table: LoadTable, approved: MovedRows) -> Iterator[str]:
    """Yield the partitions whose live rows are not those before an approved plan."""
    for (name, number), (before, _) in sorted(approved.items()):
        topic = table.state.topics.get(name)
        rows = topic.assignment if topic else ()
        if number >= len(rows):
            yield f"{name} has no partition {number} any more"
        elif rows[number] != before:
            yield f"{name} partition {number} is on {_spell(rows[number])} by now"


def _find_barred(table: LoadTable, given: Sequence[Replicas]) -> Iterator[str]:
    """Yield the given rows that may not move, or not to their brokers."""
    copies = not table.aim.leaders_only and {*table.aim.by} != {LoadKind.READ}
    takes = (table.aim.brokers or table.able) if copies else frozenset()
    for place, free, old, new in zip(table.places, table.movable, table.rows, given, strict=True):
        name, number = place
        if old != new and not free:
            yield f"{name} partition {number} may not move now"
        elif barred := sorted({*new} - {*old} - takes):
            yield f"{name} partition {number} may not move to {name_each('broker', barred)} now"
        elif len(new) != len(old):
            yield f"{name} partition {number} has {count(len(old), 'replica')} by now"


def _move_replicas(
    table: LoadTable, kinds: Sequence[LoadKind], given: tuple[Replicas, ...] | None
) -> _Stage:
    """Choose brokers for replicas, so that loads of these kinds are in their bands."""
    import numpy as np

    from reconciler.placement.loads.check import check_loads
    from reconciler.placement.loads.search import balance_loads

    rows = table.pad(table.rows)
    cost = table.list_amounts(LoadKind.DISK) if table.sized else np.ones(len(rows), np.int64)
    problem, bands = table.set_bands(rows, kinds, cost, np.array([], dtype=np.int64))
    most = table.aim.max_bytes
    if most is not None and not table.sized:
        what = "the sizes of partitions are unknown"
        raise UsageError(f"{what}, so --max-bytes cannot be kept; leave it out")
    if given is not None:
        chosen = table.pad(given)
        faults = check_loads(problem, chosen)
        if most is not None and problem.measure_cost(chosen) > most:
            faults = (*faults, f"more than {most} bytes are copied")
        measured = _measure(table, bands.use(problem), chosen, kinds, bands, leads=False)
        return replace(measured, rows=_order(table, chosen), least=None, faults=faults)
    found = balance_loads(problem, inf if most is None else most)
    _check(problem, found.rows)
    measured = _measure(table, problem, found.rows, kinds, bands, leads=False)
    return replace(measured, rows=_order(table, found.rows), least=int(found.least_cost))


def _order(table: LoadTable, chosen: Ints) -> tuple[Replicas, ...]:
    """Return the brokers of each row: those that stay in their order, and then the others."""
    after = []
    for old, new in zip(table.rows, chosen.tolist(), strict=True):
        held = {table.ids[broker] for broker in new if broker >= 0}
        kept = [broker for broker in old if broker in held]
        after.append((*kept, *sorted(held.difference(kept))))
    return tuple(after)


def _choose_leaders(
    table: LoadTable,
    rows: Sequence[Replicas],
    kinds: Sequence[LoadKind],
    given: tuple[Replicas, ...] | None,
) -> _Stage:
    """Choose the preferred leaders of rows, so that their loads are in their bands."""
    import numpy as np

    from reconciler.placement.loads.check import check_loads
    from reconciler.placement.loads.problem import NOBODY
    from reconciler.placement.loads.search import balance_loads

    within = table.pad(rows)
    cost = np.ones(len(rows), dtype=np.int64)
    problem, bands = table.set_bands(within[:, :1], kinds, cost, within)
    if given is not None:
        chosen = table.pad(given)[:, :1]
        measured = _measure(table, bands.use(problem), chosen, kinds, bands, leads=True)
        faults = check_loads(problem, chosen)
        return replace(measured, rows=given, least=None, faults=faults)
    found = balance_loads(problem)
    _check(problem, found.rows)
    after = []
    for row, (leader,) in zip(rows, found.rows.tolist(), strict=True):
        first = table.ids[leader] if leader != NOBODY else None
        after.append(row if first is None else (first, *(b for b in row if b != first)))
    measured = _measure(table, problem, found.rows, kinds, bands, leads=True)
    return replace(measured, rows=tuple(after), least=int(found.least_cost))


def _measure_farthest(table: LoadTable, kind: LoadKind, *, leads: bool) -> float:
    """Return how far from its share the farthest broker is, in parts of the share."""
    import numpy as np

    rows = table.pad(table.rows)
    none = np.array([], dtype=np.int64)
    held, within = (rows[:, :1], rows) if leads else (rows, none)
    cost = np.ones(len(rows), dtype=np.int64)
    problem, bands = table.set_bands(held, [kind], cost, within)
    (share,) = bands.shares
    (load,) = problem.add_up(held)
    counts = [n for n, broker in enumerate(table.ids) if broker in table.able and share[n]]
    return max((float(abs(load[n] - share[n]) / share[n]) for n in counts), default=0.0)


def _measure(
    table: LoadTable,
    problem: LoadProblem,
    rows: Ints,
    kinds: Sequence[LoadKind],
    by: Bands,
    *,
    leads: bool,
) -> _Stage:
    """Measure rows, which the answer has without them."""
    before, after = problem.add_up(problem.rows), problem.add_up(rows)
    shown = [
        LoadBand(
            kind,
            leads,
            tuple(table.ids[number] for number in by.outside[k].nonzero()[0]),
            tuple(
                BrokerBand(
                    broker,
                    round(float(by.shares[k, number])),
                    int(problem.low[k, number]),
                    int(problem.high[k, number]),
                    int(before[k, number]),
                    int(after[k, number]),
                )
                for number, broker in enumerate(table.ids)
                if broker in table.able and by.shares[k, number]
            ),
        )
        for k, kind in enumerate(kinds)
    ]
    within = (by.floor <= after) & (after <= by.ceiling)
    inside = [
        frozenset(table.ids[n] for n in row.nonzero()[0] if table.ids[n] in table.able)
        for row in within
    ]
    unreached = float(problem.measure_outside(after).sum()) > 0
    return _Stage((), tuple(shown), unreached=unreached, inside=tuple(inside))


def _check(problem: LoadProblem, rows: Ints) -> None:
    from reconciler.placement.loads.check import check_loads

    if violations := check_loads(problem, rows):
        raise AssertionError("; ".join(violations))


def _list_lost(kept: _Decided, new: _Decided) -> Iterator[str]:
    """Yield the brokers that only new rows bring inside their bands."""
    for ours, theirs in zip(kept, new, strict=True):
        for band, reached, best in zip(ours.bands, ours.inside, theirs.inside, strict=True):
            if lost := sorted(best - reached):
                of = f"{band.by} of leaders" if band.of_leaders else str(band.by)
                stays = "stays" if len(lost) == 1 else "stay"
                yield f"{name_each('broker', lost)} {stays} outside the band of {of} with them"


def _spell(row: Replicas) -> str:
    return ", ".join(map(str, row))
