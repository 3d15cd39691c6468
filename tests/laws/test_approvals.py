"""Laws of approvals: a plan is kept only if it is as good, and rows decide nothing else."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from instances import draw_problem
from sizes import choose
from worlds import NAMES, World, rows_on, worlds

from reconciler.changes.build import assemble_plan
from reconciler.diff.brokers import eligible_brokers
from reconciler.model.cluster import Assignment
from reconciler.model.plan import Level, Plan
from reconciler.placement.given_rows import prefer_rows
from reconciler.placement.strategies import place_replicas
from reconciler.planfile.approval import Approval, keep_approved, list_new_rows
from reconciler.planfile.codec import fingerprint_plan


def assemble(world: World, proposed: Mapping[str, Assignment] | None) -> Plan:
    return assemble_plan(
        "prod", world.diffs(), world.state, excluded=world.excluded, files=1, proposed=proposed
    )


def price(world: World, plan: Plan, new: Mapping[str, Assignment]) -> tuple[int, ...]:
    """Return levels 1 to 4 of a plan with these new rows, without any code of placement."""
    ids = [broker.id for broker in eligible_brokers(world.state.brokers, world.excluded)]
    after = {name: topic.assignment for name, topic in world.state.user_topics.items()}
    for topic in plan.topics:
        if topic.after is None:
            after.pop(topic.name, None)
    after |= {name: after.get(name, ()) + rows for name, rows in new.items()}
    placed = [after[name] for name in new]
    every = tuple(chain.from_iterable(after.values()))
    return (
        sum(squares((row[0] for row in rows), ids) for rows in placed),
        sum(squares(chain.from_iterable(rows), ids) for rows in placed),
        squares((row[0] for row in every), ids),
        squares(chain.from_iterable(every), ids),
    )


def squares(brokers: Iterable[int], ids: Iterable[int]) -> int:
    held = Counter(brokers)
    return sum(held[broker] ** 2 for broker in ids)


@given(worlds(), st.integers(1, 6))
def test_an_approved_plan_is_kept_if_it_is_as_good(world: World, cut: int) -> None:
    """One part of the specs is planned, the other part is planned and applied first."""
    mine, other = (replace(world, specs=part) for part in (world.specs[:cut], world.specs[cut:]))
    approved = mine.plan()
    approval = Approval(fingerprint_plan(approved), list_new_rows(approved))
    now = replace(mine, state=other.applied().state)
    fresh = now.plan()
    made = keep_approved(approval, lambda proposed: assemble(now, proposed))
    best = price(now, fresh, list_new_rows(fresh))
    if fingerprint_plan(made) == approval.fingerprint:
        assert list_new_rows(made) == approval.rows
        assert price(now, fresh, approval.rows) <= best
    else:
        assert made.topics == fresh.topics
        (note,) = made.notes
        assert note.rule == "approved-rows"
        if "more evenly" in note.what:
            assert price(now, fresh, approval.rows) > best


@st.composite
def forgeries(draw: st.DrawFn, world: World) -> dict[str, Assignment]:
    """Draw rows that somebody may have forged: valid ones in another order, or any."""
    ids = sorted(broker.id for broker in world.state.brokers)
    rows = list_new_rows(world.plan())
    for name in sorted(rows):
        turned = draw(st.permutations(rows[name]))
        rows[name] = tuple(tuple(draw(st.permutations(row))) for row in turned)
    for name in draw(st.lists(st.sampled_from(NAMES), max_size=1)):
        rows[name] = draw(rows_on([*ids, 77], draw(st.integers(1, len(ids)))))
    return rows


@given(worlds(), st.data())
def test_forged_rows_choose_among_rows_that_are_as_good(world: World, data: st.DataObject) -> None:
    """Without any hash, which would leave the rows of one plan only."""
    fresh = world.plan()
    made = assemble(world, data.draw(forgeries(world)))
    eligible = {broker.id for broker in eligible_brokers(world.state.brokers, world.excluded)}
    rows, best = list_new_rows(made), list_new_rows(fresh)
    assert price(world, fresh, rows) <= price(world, fresh, best)
    for ours, theirs in zip(fresh.topics, made.topics, strict=True):
        if ours.after is None or theirs.after is None:
            assert ours == theirs
            continue
        existing = len(ours.before.assignment) if ours.before else 0
        kept = theirs.after.assignment[:existing]
        assert kept == (ours.before.assignment if ours.before else ())
        assert len(theirs.after.assignment) == len(ours.after.assignment)
        if ours.after.assignment != theirs.after.assignment:
            for row, own in zip(theirs.after.assignment, ours.after.assignment, strict=True):
                assert len(row) == len(set(row)) == len(own)
            assert set(chain.from_iterable(theirs.after.assignment[existing:])) <= eligible
        same = replace(theirs, after=ours.after, balance_after=ours.balance_after)
        assert same == ours


def test_rows_stay_approved_while_no_load_grows_or_shrinks_by_more_than_a_tenth() -> None:
    rng = Random(20261129)
    differing = 0
    for _ in range(choose(150, 1_500)):
        problem = draw_problem(rng, 1, partitions=3)
        (wish,) = problem.wishes
        problem = replace(problem, wishes=(replace(wish, weight=rng.choice((1, 100))),))
        then = {broker.id: rng.randint(5_000, 6_000) for broker in problem.brokers}
        # What it was is within a tenth of what it is now.
        now = {b: rng.choice((math.ceil(y / 1.1), math.floor(y / 0.9))) for b, y in then.items()}
        approved = place_replicas(replace(problem, replicas=then)).rows
        grown = replace(problem, replicas=now)
        placed = place_replicas(grown)
        judged = prefer_rows(grown, placed, approved, {Level.CLUSTER_REPLICAS})
        assert judged.objections == (), problem
        assert judged.placed.rows == approved
        differing += bool(prefer_rows(grown, placed, approved).objections)
    assert differing > 10
