"""Laws of the rows of an approved rebalance by bytes: they hold while growth fits into the band.

Shares and bands are computed here, for brokers of one capacity without racks.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import ceil, floor
from random import Random

from shorthand import brokers, cluster, may_move, topic
from sizes import choose

from reconciler.errors import Location
from reconciler.model.cluster import Assignment, ClusterState
from reconciler.model.moves import LoadAim, LoadKind, MovedRows
from reconciler.model.plan import Plan
from reconciler.moves.rebalance import plan_rebalance
from reconciler.planfile.approval import Approval, keep_moved, list_moved_rows
from reconciler.planfile.codec import fingerprint_plan
from reconciler.spec.entry import ClusterEntry

ENTRY = ClusterEntry("prod", Location("topics/clusters.yaml", 2), moves=may_move())
WITHIN = 0.1
AIM = LoadAim((LoadKind.DISK,), within_percent=100 * WITHIN)
FITS = 1.04
"""Growth that leads from half of the band to no place outside: 1.05 · 1.04 < 1.1."""


def draw_state(rng: Random) -> ClusterState:
    """Draw topics of one to four partitions on some of four or five brokers."""
    nodes = brokers(*[None] * rng.randint(4, 5))
    ids = [node.id for node in nodes]
    topics = []
    for number in range(rng.randint(5, 8)):
        rows = tuple(
            tuple(rng.sample(ids[: rng.randint(2, len(ids))], 2)) for _ in range(rng.randint(1, 4))
        )
        sizes = tuple(rng.randint(1_000, 20_000) for _ in rows)
        topics.append(topic(rows, f"t{number}", size_bytes=sizes))
    return cluster(*topics, nodes=nodes)


def grow(state: ClusterState, rng: Random, most: float) -> ClusterState:
    """Grow each partition by a factor from 1 to `most`."""
    grown = {
        name: replace(
            each, size_bytes=tuple(floor(n * rng.uniform(1, most)) for n in each.size_bytes)
        )
        for name, each in state.topics.items()
    }
    return replace(state, topics=grown)


def plan(state: ClusterState, approved: MovedRows | None = None) -> Plan:
    return plan_rebalance(ENTRY, (), state, aim=AIM, approved=approved)


def rows_after(made: Plan, state: ClusterState) -> dict[str, Assignment]:
    after = {each.name: each.after.assignment for each in made.topics if each.after}
    return {name: after.get(name, each.assignment) for name, each in state.topics.items()}


def find_inside(rows: dict[str, Assignment], state: ClusterState, width: float) -> set[int]:
    """Return the brokers whose bytes are within a part of the mean."""
    held = Counter({broker.id: 0 for broker in state.brokers})
    for name, each in rows.items():
        for row, size in zip(each, state.topics[name].size_bytes, strict=True):
            for broker in row:
                held[broker] += size
    share = sum(held.values()) / len(state.brokers)
    low, high = floor(share * (1 - width)), ceil(share * (1 + width))
    return {broker for broker, size in held.items() if low <= size <= high}


def test_approved_rows_hold_while_growth_fits_into_the_band() -> None:
    rng = Random(20261213)
    kept = 0
    for _ in range(choose(12, 200)):
        state = draw_state(rng)
        made = plan(state)
        if len(find_inside(rows_after(made, state), state, WITHIN / 2)) < len(state.brokers):
            continue
        later = grow(state, rng, FITS)
        approval = Approval(fingerprint_plan(made), moved=list_moved_rows(made))
        if not approval.moved or not plan(later).topics:
            continue
        now = keep_moved(approval, lambda approved, later=later: plan(later, approved))
        assert fingerprint_plan(now) == approval.fingerprint
        kept += fingerprint_plan(plan(later)) != approval.fingerprint
    assert kept  # plans that would have been others


def test_approved_rows_bring_every_broker_inside_that_new_rows_bring() -> None:
    rng = Random(20261214)
    verdicts: Counter[str] = Counter()
    for _ in range(choose(12, 200)):
        state = draw_state(rng)
        approved = list_moved_rows(plan(state))
        later = grow(state, rng, rng.choice((1.2, 2.0, 6.0)))
        if rng.random() < 1 / 4 and approved:  # somebody moved one of the rows
            name, number = rng.choice(sorted(approved))
            rows = list(later.topics[name].assignment)
            rows[number] = tuple(reversed(rows[number]))
            moved = replace(later.topics[name], assignment=tuple(rows))
            later = replace(later, topics=dict(later.topics) | {name: moved})
        fresh, made = plan(later), plan(later, approved)
        notes = [note.what for note in made.notes if note.rule == "approved-rows"]
        live = {name: each.assignment for name, each in later.topics.items()}
        stands = all(live[name][n] == old for (name, n), (old, _) in approved.items())
        given = {
            name: tuple(approved[name, n][1] if (name, n) in approved else row
                        for n, row in enumerate(rows))
            for name, rows in live.items()
        }  # fmt: skip
        best = find_inside(rows_after(fresh, later), later, WITHIN)
        if not notes:
            verdicts["kept"] += 1
            assert stands
            assert rows_after(made, later) == given
            assert best <= find_inside(given, later, WITHIN)
            continue
        (note,) = notes
        assert made.topics == fresh.topics
        if "by now" in note:
            verdicts["moved"] += 1
            assert not stands
        elif "outside the band of disk" in note:
            verdicts["left"] += 1
            assert not best <= find_inside(given, later, WITHIN)
    assert {"kept", "moved", "left"} <= verdicts.keys(), verdicts
