"""Laws of plans of moves: they reach the spec, copy no more than they must, and touch no more."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import assume, event, given
from hypothesis import strategies as st
from shorthand import CATALOGUE, HERE, may_move
from worlds import broker_lists, live_topics, rows_on, seldom

from reconciler.changes.build import assemble_plan
from reconciler.changes.topics import diff_topics
from reconciler.diff.fields import desired_replication
from reconciler.errors import Location
from reconciler.model.cluster import ClusterState, Reassignment, TopicSpec, TopicState
from reconciler.model.moves import MIN_INSYNC
from reconciler.model.plan import Plan
from reconciler.model.steps import steps_of
from reconciler.moves.plan import assemble_moves
from reconciler.planfile.codec import decode_plan, encode_plan, fingerprint_plan
from reconciler.spec.entry import ClusterEntry

ENTRY = ClusterEntry("prod", Location("topics/clusters.yaml", 2), moves=may_move())
Drawn = tuple[ClusterEntry, tuple[TopicSpec, ...], ClusterState]


@st.composite
def specs_to_move(draw: st.DrawFn, topic: TopicState, ids: list[int]) -> TopicSpec:
    """Draw a spec that asks for other replicas of a topic, or for none."""
    count = len(topic.assignment) + draw(st.integers(0, 2))
    if draw(seldom(4)):
        replication = draw(st.integers(1, min(3, len(ids))))
        rows = draw(rows_on(ids, replication, most=len(topic.assignment) + 2))
        return TopicSpec(topic.name, HERE, assignment=rows, config={MIN_INSYNC: "1"})
    replication = draw(st.integers(1, 4))
    least = str(draw(st.integers(1, replication)))
    return TopicSpec(
        topic.name,
        HERE,
        partitions=count,
        replication_factor=replication,
        config={MIN_INSYNC: least},
        rack_aware=draw(st.booleans()),
        acknowledge=frozenset({"ordering", "data-loss"}),
    )


@st.composite
def drawn_moves(draw: st.DrawFn) -> Drawn:
    """Draw a cluster, and specs that move some of its replicas."""
    nodes = draw(broker_lists(least=3))
    ids = sorted(broker.id for broker in nodes)
    names = sorted(draw(st.sets(st.sampled_from("abcdef"), min_size=1, max_size=5)))
    topics = {}
    for name in names:
        found = replace(draw(live_topics(name, ids)), reassigning=frozenset())
        if draw(seldom(3)):
            in_sync = tuple(
                tuple(b for b in row if not draw(seldom(5))) for row in found.assignment
            )
            found = replace(found, in_sync=in_sync)
        topics[name] = found
    specs = tuple(draw(specs_to_move(topics[n], ids)) for n in names if not draw(seldom(5)))
    excluded = frozenset({draw(st.sampled_from(ids))} if draw(seldom(4)) else ())
    capacity = draw(st.dictionaries(st.sampled_from(ids), st.integers(1, 3), max_size=2))
    entry = replace(ENTRY, exclude_brokers=excluded, capacity=capacity)
    defaults = {MIN_INSYNC: str(draw(st.integers(1, 3)))}
    return entry, specs, ClusterState("cluster-1", nodes, topics, defaults)


def plan_changes(drawn: Drawn) -> Plan:
    entry, specs, state = drawn
    excluded = entry.exclude_brokers
    diffs = diff_topics(specs, state, CATALOGUE, excluded, moves=entry.moves)
    return assemble_plan("prod", diffs, state, excluded=excluded)


def apply(plan: Plan, drawn: Drawn) -> Drawn:
    """Return what is there once a plan is done. A plan of moves leaves configs as they were."""
    entry, specs, state = drawn
    topics = dict(state.topics)
    for planned in plan.topics:
        if planned.after is not None and steps_of(planned):
            old = topics[planned.name]
            kept = {k: v for k, v in old.config.items() if v is None or "throttled" in k}
            config = old.config if plan.moves else {**kept, **planned.after.config}
            rows = planned.after.assignment
            topics[planned.name] = replace(old, assignment=rows, config=config, in_sync=())
    return entry, specs, replace(state, topics=topics)


def list_staying(plan: Plan) -> set[str]:
    """Return the topics that are refused."""
    return {topic.name for topic in plan.topics if topic.refusals}


@given(drawn_moves())
def test_what_was_moved_is_not_moved_again(drawn: Drawn) -> None:
    first = assemble_moves(*drawn)
    event(f"{sum(bool(steps_of(topic)) for topic in first.topics)} topics moved")
    event(f"{len(list_staying(first))} topics refused")
    second = assemble_moves(*apply(first, drawn))
    assert [topic.name for topic in second.topics if steps_of(topic)] == []
    assert list_staying(second) == list_staying(first)


@given(drawn_moves())
def test_nothing_is_pending_after_the_moves(drawn: Drawn) -> None:
    plan = assemble_moves(*drawn)
    _, specs, state = apply(plan, drawn)
    for diff in diff_topics(specs, state, CATALOGUE, moves=ENTRY.moves):
        if diff.spec.name not in list_staying(plan):
            assert diff.pending == ()
            assert "moves-pending" not in {note.rule for note in diff.notes}


@given(drawn_moves())
def test_no_replica_is_copied_that_could_stay(drawn: Drawn) -> None:
    moves = assemble_moves(*drawn).moves
    assert moves is not None
    assert moves.replicas == moves.least_replicas


@given(drawn_moves())
def test_rows_are_what_the_specs_ask_for_on_brokers_that_may_take_them(drawn: Drawn) -> None:
    entry, specs, state = drawn
    wished = {spec.name: spec for spec in specs}
    takers = {b.id for b in state.brokers if b.alive and not b.cordoned} - entry.exclude_brokers
    for planned in assemble_moves(*drawn).topics:
        assert planned.before is not None
        assert planned.after is not None
        assert planned.before.assignment == state.topics[planned.name].assignment
        if planned.refusals:
            assert planned.after == planned.before
            continue
        spec, rows = wished[planned.name], planned.after.assignment
        if spec.assignment is not None:
            assert rows == spec.assignment[: len(rows)]
        assert {len(row) for row in rows} == {desired_replication(spec)}
        assert all(len(set(row)) == len(row) for row in rows)
        for old, new in zip(planned.before.assignment, rows, strict=True):
            assert set(new) - set(old) <= takers


@given(drawn_moves())
def test_topics_whose_replicas_are_as_specified_are_not_in_the_plan(drawn: Drawn) -> None:
    _, specs, state = drawn
    asked = set()
    for spec in specs:
        rows = state.topics[spec.name].assignment
        other = spec.assignment is not None and spec.assignment[: len(rows)] != rows
        if other or {*map(len, rows)} != {desired_replication(spec)}:
            asked.add(spec.name)
    # Manual rows for some of the partitions are compared as far as they go.
    lengths = {spec.name: len(spec.assignment) for spec in specs if spec.assignment}
    partly = {name for name in lengths if lengths[name] < len(state.topics[name].assignment)}
    planned = {topic.name for topic in assemble_moves(*drawn).topics}
    assert planned - partly == asked - partly


@given(drawn_moves())
def test_changes_moves_and_changes_reach_the_specs(drawn: Drawn) -> None:
    """Whatever the first plan of changes leaves to the moves, or holds back until then."""
    refused: set[str] = set()
    found = drawn
    for make in (plan_changes, lambda each: assemble_moves(*each), plan_changes):
        plan = make(found)
        refused |= list_staying(plan)
        found = apply(plan, found)
    entry, specs, state = found
    for diff in diff_topics(specs, state, CATALOGUE, entry.exclude_brokers, moves=entry.moves):
        if diff.spec.name not in refused:
            assert (diff.changes, diff.pending) == ((), ())


@given(drawn_moves())
def test_min_insync_never_refuses_writes_that_work_now(drawn: Drawn) -> None:
    """At no time: after the plan of changes, and while all rows of the moves are in flight."""
    found = apply(plan_changes(drawn), drawn)
    _, _, state = found
    plan = assemble_moves(*found)
    assert plan.moves is not None
    for planned in plan.topics:
        live = state.topics[planned.name]
        assert planned.after is not None
        in_force = int(live.config.get(MIN_INSYNC) or state.config_defaults[MIN_INSYNC])
        meanwhile = plan.moves.min_insync.get(planned.name, in_force)
        assert meanwhile <= in_force
        for number, (old, new) in enumerate(
            zip(live.assignment, planned.after.assignment, strict=True)
        ):
            in_sync = len(live.in_sync[number] if live.in_sync else old)
            if min(in_force, len(old)) <= in_sync and not planned.refusals:
                # A broker requires at most all replicas, those that are copied included.
                assert min(meanwhile, len({*old, *new})) <= in_sync


@given(drawn_moves(), st.randoms(use_true_random=False))
def test_order_means_nothing(drawn: Drawn, random: Random) -> None:
    entry, specs, state = drawn
    names = random.sample(sorted(state.topics), len(state.topics))
    nodes = tuple(random.sample(state.brokers, len(state.brokers)))
    other = replace(state, topics={n: state.topics[n] for n in names}, brokers=nodes)
    shuffled = random.sample(specs, len(specs))
    assert assemble_moves(entry, shuffled, other) == assemble_moves(entry, specs, state)


@given(drawn_moves(), st.data())
def test_a_plan_adopts_what_an_earlier_run_of_it_left_in_flight(
    drawn: Drawn, data: st.DataObject
) -> None:
    """Rows in flight keep their targets, no topic counts as foreign, and no row is left out."""
    entry, specs, state = drawn
    first = {topic.name: topic for topic in assemble_moves(*drawn).topics if steps_of(topic)}
    assume(first)
    topics, moving, targets = dict(state.topics), [], {}
    for name, planned in first.items():
        assert planned.before is not None
        assert planned.after is not None
        rows = list(state.topics[name].assignment)
        for number, new in enumerate(planned.after.assignment):
            old = rows[number]
            if set(old) == set(new) or not data.draw(st.booleans()):
                continue
            leaving = tuple(broker for broker in old if broker not in new)
            adding = tuple(broker for broker in new if broker not in old)
            moving.append(Reassignment(name, number, (*new, *leaving), adding, leaving))
            targets[name, number] = new
            rows[number] = new
        topics[name] = replace(topics[name], assignment=tuple(rows))
    again = assemble_moves(entry, specs, replace(state, topics=topics, reassignments=tuple(moving)))
    planned_again = {topic.name: topic for topic in again.topics}
    assert first.keys() <= planned_again.keys()
    for (name, number), target in targets.items():
        image = planned_again[name].after
        assert image is not None
        assert image.assignment[number] == target
    assert "moves-foreign" not in {n.rule for t in again.topics for n in t.notes}
    event(f"{len(targets)} rows in flight")


@given(drawn_moves())
def test_a_plan_of_moves_survives_its_file(drawn: Drawn) -> None:
    plan = assemble_moves(*drawn)
    assert decode_plan(encode_plan(plan)) == plan
    assert fingerprint_plan(decode_plan(encode_plan(plan))) == fingerprint_plan(plan)
