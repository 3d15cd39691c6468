"""What must hold of every explanation: nothing is lost on the way to the screen."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations, product
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st
from worlds import rows_on, worlds

from reconciler.model.cluster import Assignment, Broker, Replicas, TopicState
from reconciler.placement.check import check_placement
from reconciler.placement.problem import Problem, Wish, count_load
from reconciler.show.explain.matrix import Matrix, build_matrix
from reconciler.show.explain.picture import draw_matrix
from reconciler.show.explain.reasons import Growth, give_reasons
from reconciler.show.explain.text import render_matrix

if TYPE_CHECKING:
    from worlds import World

RECT = "{http://www.w3.org/2000/svg}rect"


def explained(world: World) -> Iterator[Matrix]:
    """Explain every topic that the world's plan or cluster has."""
    made = world.plan()
    specs = {spec.name: spec for spec in world.specs}
    for name in sorted({*world.state.topics, *(topic.name for topic in made.topics)}):
        yield build_matrix(name, made, world.state, spec=specs.get(name))


def replicas_of(matrix: Matrix) -> Counter[tuple[int, int, str, bool]]:
    """Count partition, broker, role, and whether it is new."""
    return Counter(
        (partition, broker, "LF"[place > 0], partition >= matrix.first_new)
        for partition, row in enumerate(matrix.rows)
        for place, broker in enumerate(row)
    )


@given(worlds())
def test_the_matrix_is_what_the_plan_leads_to(world: World) -> None:
    after = {topic.name: topic.after.assignment for topic in world.plan().topics if topic.after}
    for matrix in explained(world):
        found = world.state.topics.get(matrix.topic)
        before = found.assignment if found else ()
        assert matrix.rows == after.get(matrix.topic, before)
        assert matrix.first_new == len(before)
        held = {column.broker: column.topic.after for column in matrix.columns}
        counted = Counter(broker for row in matrix.rows for broker in row)
        assert {b: load.replicas for b, load in held.items() if load.replicas} == counted
        assert sum(load.leaders for load in held.values()) == len(matrix.rows)


@given(worlds(), st.data())
def test_the_totals_are_those_of_the_plan_s_balance(world: World, data: st.DataObject) -> None:
    """Internal topics are in neither."""
    ids = [broker.id for broker in world.state.brokers]
    offsets = TopicState("__consumer_offsets", "own", data.draw(rows_on(ids, 1)), internal=True)
    topics = {**world.state.topics, "__consumer_offsets": offsets}
    world = replace(world, state=replace(world.state, topics=topics))
    made = world.plan()
    for matrix in explained(world):
        able = [column.cluster for column in matrix.columns if not column.idle]
        for moment, balance in (("before", made.balance_before), ("after", made.balance_after)):
            loads = [getattr(shift, moment) for shift in able]
            for measured, counts in (
                (balance.leaders, [load.leaders for load in loads]),
                (balance.replicas, [load.replicas for load in loads]),
            ):
                spread = (min(counts, default=0), max(counts, default=0))
                assert (measured.least, measured.most) == spread


@given(worlds())
def test_every_replica_is_in_the_text_once(world: World) -> None:
    for matrix in explained(world):
        lines = render_matrix(matrix, width=1000).split("\n\n")[1].splitlines()
        rules = [number for number, line in enumerate(lines) if line.startswith("──")]
        body = lines[rules[0] + 1 : rules[1]] if matrix.rows else []
        drawn: Counter[tuple[int, int, str, bool]] = Counter()
        for line in body:
            label, *cells = line.replace("│", " ").split()
            for column, cell in zip(matrix.columns, cells, strict=True):
                if cell != "·":
                    drawn[int(label), column.broker, cell[-1], cell[0] == "+"] += 1
        assert drawn == replicas_of(matrix)


@given(worlds())
def test_every_replica_is_in_the_picture_once(world: World) -> None:
    for matrix in explained(world):
        drawn: Counter[tuple[int, int, str, bool]] = Counter()
        for rect in ET.fromstring(draw_matrix(matrix)).iter(RECT):
            if rect.get("data-broker"):
                role, *new = rect.get("class", "").split()
                place = int(rect.get("data-partition", "")), int(rect.get("data-broker", ""))
                drawn[*place, role.upper(), bool(new)] += 1
        assert drawn == replicas_of(matrix)


@given(worlds(), st.integers(30, 160))
def test_no_line_is_wider_than_the_screen(world: World, width: int) -> None:
    for matrix in explained(world):
        text = render_matrix(matrix, width=width)
        assert max(map(len, text.splitlines())) <= width
        assert text.count("+L") + text.count("+F") == sum(map(len, matrix.rows[matrix.first_new :]))


@given(worlds())
def test_colour_is_only_colour(world: World) -> None:
    for matrix in explained(world):
        coloured = re.sub(r"\x1b\[\d+m", "", render_matrix(matrix, colour=True))
        lines = [line.rstrip() for line in coloured.splitlines()]
        assert lines == render_matrix(matrix).splitlines()


@st.composite
def small_growths(draw: st.DrawFn) -> Growth:
    """Draw a topic so small that all its placements can be tried."""
    nodes = tuple(Broker(n, draw(st.sampled_from("ab"))) for n in range(draw(st.integers(2, 4))))
    ids = [node.id for node in nodes]
    replication = draw(st.integers(1, min(3, len(nodes))))
    existing = draw(rows_on(ids, replication)) if draw(st.booleans()) else ()
    rack_aware = draw(st.booleans())
    rows = legal_rows(nodes, replication, rack_aware)
    count = 3 if len(rows) <= 12 else 2
    new = draw(st.lists(st.sampled_from(rows), min_size=1, max_size=count))
    return Growth(nodes, existing, tuple(new), rack_aware)


def legal_rows(nodes: tuple[Broker, ...], replication: int, rack_aware: bool) -> list[Replicas]:
    """List every row that the checker accepts."""
    wish = Wish("t", (), 1, replication, rack_aware)
    problem = Problem(nodes, {}, {}, (wish,))
    rows = permutations([node.id for node in nodes], replication)
    return [row for row in rows if not check_placement(problem, {"t": (row,)})]


def squares(existing: Assignment, new: Assignment) -> tuple[tuple[int, int], Counter[int]]:
    """Return the sums of squares of leaders and replicas, and the new leaders."""
    totals = count_load([existing, new])
    leaders, replicas = (sum(n * n for n in total.values()) for total in totals)
    return (leaders, replicas), count_load([new])[0]


@given(small_growths())
def test_what_is_said_to_be_forced_is_forced(growth: Growth) -> None:
    """Held against every placement there is; replicas against those with the same leaders."""
    rows = legal_rows(growth.brokers, len(growth.new[0]), growth.rack_aware)
    found, led = squares(growth.existing, growth.new)
    tried = [squares(growth.existing, new) for new in product(rows, repeat=len(growth.new))]
    least_leaders = min(sums[0] for sums, _ in tried)
    least_replicas = min(sums[1] for sums, leaders in tried if leaders == led)
    for reason in give_reasons(growth):
        free = "nothing forces that" in reason
        if reason.startswith("Leaders"):
            assert free == (found[0] > least_leaders)
        elif reason.startswith("Replicas"):
            assert free == (found[1] > least_replicas)
        elif reason.startswith("As even as"):
            assert found == (least_leaders, least_replicas)
