"""Generated fleets: many worlds at once, as the tables that a collection would hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from shorthand import HERE, may_move
from worlds import World, seldom, worlds

from reconciler.errors import Finding, Location, Severity
from reconciler.fleet import tables
from reconciler.fleet.rows import describe_reading, make_table, write_specs, write_state
from reconciler.model.cluster import (
    Broker,
    ClusterState,
    Guards,
    LogDirectory,
    RateSource,
    Reassignment,
    ThrottleRate,
    ThrottleSide,
    TopicSpec,
    TopicState,
)
from reconciler.model.moves import MIN_INSYNC, MovePolicy
from reconciler.spec.entry import ClusterEntry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CALM = settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))
NOTE = Finding("cluster-rights", "some topics are hidden\x1b", "ask", severity=Severity.NOTE)
PLACES = {"partitions": Location("topics/a.yaml", 3), "config.flush.ms": Location("b.yaml", 9, 4)}


@st.composite
def seen_topics(draw: st.DrawFn, topic: TopicState) -> TopicState:
    """Draw what else may be known of a topic: all of a column, or nothing."""
    count = len(topic.assignment)
    led = tuple(row[0] for row in topic.assignment)
    amount = st.just(-1) | st.integers(0, 2**40)
    amounts = (st.just(()) | st.tuples(*[amount] * count)).map(
        lambda drawn: drawn if any(each >= 0 for each in drawn) else ()
    )
    return replace(
        topic,
        topic_id=draw(st.sampled_from((topic.topic_id, None))),
        in_sync=((),) * count if draw(seldom(5)) else draw(st.sampled_from(((), topic.assignment))),
        leaders=(-1,) * count if draw(seldom(5)) else draw(st.sampled_from(((), led))),
        internal=draw(seldom(9)),
        size_bytes=draw(amounts),
        write_bytes_per_s=draw(amounts),
    )


@st.composite
def told_specs(draw: st.DrawFn, spec: TopicSpec) -> TopicSpec:
    """Draw what else a spec may say: nothing of it is a column, and all of it has to survive."""
    return replace(
        spec,
        owner=draw(st.none() | st.text(max_size=4)),
        description=draw(st.none() | st.text(max_size=9)),
        profile=draw(st.none() | st.just("event-log")),
        gradual=draw(st.sampled_from((0, 2, 10))),
        fields=draw(st.just({}) | st.just(PLACES)),
    )


@dataclass(frozen=True)
class MovingWorld(World):
    """A world, what its cluster allows to move, and the brokers to drain."""

    moves: MovePolicy | None = None
    drained: frozenset[int] = frozenset()


@st.composite
def reassignments(draw: st.DrawFn, topic: TopicState, ids: Sequence[int]) -> list[Reassignment]:
    """Draw what is in flight of a topic: of each moving partition, or not known."""
    found = []
    for number in sorted(topic.reassigning):
        target = topic.assignment[number]
        removing = tuple(draw(st.permutations(sorted({*ids} - {*target})))[:1])
        adding = target[-1:] if len(target) > 1 or removing else ()
        in_sync = draw(st.sampled_from(((), target[:1])))
        leader = draw(st.sampled_from((None, -1, target[0])))
        whole = (*target, *removing)
        found.append(Reassignment(topic.name, number, whole, adding, removing, leader, in_sync))
    return found if draw(st.booleans()) else []


@st.composite
def log_directories(draw: st.DrawFn) -> tuple[LogDirectory, ...]:
    """Draw the directories of a broker: of known size or not, nearly full or not, or offline."""
    usable = st.none() | st.integers(0, 2**45)
    return tuple(
        LogDirectory(path, None, None, online=False)
        if draw(seldom(5))
        else LogDirectory(
            path, draw(st.none() | st.just(2**45)), draw(usable), draw(st.integers(0, 9))
        )
        for path in ("/a", "/b")[: draw(st.integers(0, 2))]
    )


@st.composite
def specs_to_move(draw: st.DrawFn, topic: TopicState, ids: Sequence[int]) -> TopicSpec:
    """Draw a spec that asks for other replicas of a topic, or for the same in another order."""
    config = {MIN_INSYNC: "1"}
    if draw(st.booleans()):
        rows = tuple(row[::-1] for row in topic.assignment)
        return TopicSpec(topic.name, HERE, assignment=rows, config=config)
    factor = draw(st.integers(1, min(3, len(ids))))
    return TopicSpec(topic.name, HERE, len(topic.assignment), factor, config)


RATE = ThrottleRate(1, ThrottleSide.LEADER, 2**20, RateSource.CLUSTER_DEFAULT)


@st.composite
def rich_worlds(draw: st.DrawFn) -> MovingWorld:
    """Draw a world with everything in it that rows have to carry."""
    world = draw(worlds())
    ids = sorted(broker.id for broker in world.state.brokers)
    topics = {name: draw(seen_topics(topic)) for name, topic in world.state.topics.items()}
    state = replace(
        world.state,
        cluster_id=draw(st.none() | st.just("5L6g3nShT-eMCtK--X86sw")),
        brokers=tuple(sorted(world.state.brokers, key=lambda broker: broker.id)),
        topics=topics,
        notes=draw(st.just(()) | st.just((NOTE,))),
        kafka_version=draw(st.none() | st.just("4.1")),
        directories={b: draw(log_directories()) for b in ids if not draw(seldom(4))},
        reassignments=tuple(
            each for name in sorted(topics) for each in draw(reassignments(topics[name], ids))
        ),
        can_cordon=draw(st.booleans()),
        voters=frozenset(draw(st.sets(st.sampled_from(ids)))),
        throttle_rates=draw(st.sampled_from(((), (RATE,)))),
    )
    most = draw(st.none() | st.integers(0, 100))
    drained = frozenset({draw(st.sampled_from(ids))} if draw(seldom(3)) else ())
    specs = [
        draw(specs_to_move(topics[spec.name], ids))
        if spec.name in topics and draw(st.booleans())
        else spec
        for spec in world.specs
    ]
    return MovingWorld(
        state=state,
        specs=tuple(draw(told_specs(spec)) for spec in specs),
        excluded=world.excluded | drained,
        guards=replace(world.guards, max_changed_percent=most),
        moves=draw(st.none() | st.just(may_move()) | st.just(may_move("replication", rate=None))),
        drained=drained,
    )


def draw_worlds(count: int, drawn_by: int = 1) -> list[MovingWorld]:
    """Draw so many worlds at once, always the same ones: a Spark job for each would take long."""
    drawn: list[MovingWorld] = []

    @seed(drawn_by)
    @settings(CALM, max_examples=count, database=None, phases=[Phase.generate])
    @given(rich_worlds())
    def keep(world: MovingWorld) -> None:
        drawn.append(world)

    keep()
    return drawn


def draw_moves(count: int, drawn_by: int = 1) -> list[MovingWorld]:
    """Draw healthy worlds in which replicas are to move and topics to change.

    In few of the other worlds anything can move, and how many there are depends on the modules that
    are loaded: Hypothesis draws values that it finds in them.
    """
    return [_draw_move(Random(f"{drawn_by}-{number}")) for number in range(count)]


def _draw_move(draw: Random) -> MovingWorld:
    ids = range(1, draw.randint(4, 7))
    topics, specs = {}, []
    for name in "abcde"[: draw.randint(1, 5)]:
        factor = draw.randint(1, 3)
        rows = tuple(tuple(draw.sample(ids, factor)) for _ in range(draw.randint(1, 6)))
        topics[name] = TopicState(
            name,
            f"id-{name}",
            rows,
            {MIN_INSYNC: "1"},
            in_sync=rows,
            leaders=tuple(row[0] for row in rows),
            size_bytes=tuple(draw.choice((-1, draw.randrange(2**30))) for _ in rows),
            write_bytes_per_s=tuple(draw.randrange(2**10) for _ in rows),
        )
        wished = {
            "same": {"partitions": len(rows), "replication_factor": factor},
            "resized": {"partitions": len(rows), "replication_factor": draw.randint(1, 3)},
            "reordered": {"assignment": tuple(row[::-1] for row in rows)},
            "expanded": {"partitions": len(rows) + 1, "replication_factor": factor},
            "deleted": {"absent": True},
        }
        kind = draw.choice([*wished, None])
        if kind is not None:
            config = {} if kind == "deleted" else {MIN_INSYNC: "1"}
            specs.append(TopicSpec(name, HERE, config=config, **wished[kind]))
    drained = frozenset({draw.choice(ids)} if draw.random() < 0.4 else ())
    state = ClusterState(
        "cluster-1",
        tuple(Broker(number, "abc"[number % 3]) for number in ids),
        topics,
        directories={number: (LogDirectory("/a", 2**45, 2**44, 9),) for number in ids},
        can_cordon=draw.random() < 0.5,
        voters=frozenset(draw.sample(ids, 1)) if drained else frozenset(),
    )
    if draw.random() < 0.5:
        specs.append(TopicSpec("new", HERE, 3, 2, {MIN_INSYNC: "1"}))
    guards = Guards(max_changed_percent=draw.choice((None, 0)))
    return MovingWorld(state, tuple(specs), drained, guards, moves=may_move(), drained=drained)


@dataclass(frozen=True)
class Fleet:
    """Worlds by the names of their clusters; stands in for their estate as well."""

    worlds: Mapping[str, MovingWorld]
    findings: tuple[Finding, ...] = ()
    clusters: Mapping[str, ClusterEntry] = field(init=False)

    def __post_init__(self) -> None:
        entries = {
            name: ClusterEntry(
                name,
                HERE,
                exclude_brokers=world.excluded,
                drain_brokers=world.drained,
                guards=world.guards,
                moves=world.moves,
                client={"a": "b"},
            )
            for name, world in self.worlds.items()
        }
        object.__setattr__(self, "clusters", entries)

    @property
    def declared(self) -> tuple[str, ...]:
        return tuple(sorted(self.worlds))

    def topics_for(self, cluster: str) -> tuple[TopicSpec, ...]:
        return self.worlds[cluster].specs

    def facts(self) -> dict[str, pa.Table]:
        """Return the rows of every state table."""
        written = [write_world(name, world.state) for name, world in self.worlds.items()]
        return {t.name: pa.concat_tables(w[t.name] for w in written) for t in tables.STATE}

    def specs(self) -> pa.Table:
        return pa.concat_tables(write_specs(name, w.specs) for name, w in self.worlds.items())


def write_world(name: str, state: ClusterState, **reading: Any) -> dict[str, pa.Table]:
    """Return a state as a collection has it, its row of `readings` included."""
    row = {
        "cluster": name,
        "status": "read",
        **describe_reading(state),
        **reading,
    }
    readings = make_table(tables.READINGS, {key: [value] for key, value in row.items()})
    return {tables.READINGS.name: readings, **write_state(name, state)}


def frame(session: SparkSession, table: tables.LakeTable, rows: pa.Table) -> DataFrame:
    """Return rows as Spark has them. In one chunk: an empty one hides what comes after it."""
    return session.createDataFrame(rows.combine_chunks(), schema=table.schema)
