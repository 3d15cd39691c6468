"""Generated fleets: many worlds at once, as the tables that a collection would hold."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from shorthand import HERE
from worlds import seldom, worlds

from reconciler.errors import Finding, Location, Severity
from reconciler.fleet import tables
from reconciler.fleet.rows import encode_notes, make_table, write_specs, write_state
from reconciler.spec import ClusterEntry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession
    from worlds import World

    from reconciler.model import ClusterState, TopicSpec, TopicState

CALM = settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))
NOTE = Finding("cluster-rights", "some topics are hidden\x1b", "ask", severity=Severity.NOTE)
PLACES = {"partitions": Location("topics/a.yaml", 3), "config.flush.ms": Location("b.yaml", 9, 4)}


@st.composite
def seen_topics(draw: st.DrawFn, topic: TopicState) -> TopicState:
    """Draw what else may be known of a topic: all of a column, or nothing."""
    count = len(topic.assignment)
    amounts = st.just(()) | st.tuples(*[st.integers(0, 2**40)] * count)
    return replace(
        topic,
        topic_id=draw(st.sampled_from((topic.topic_id, None))),
        in_sync=draw(st.sampled_from(((), topic.assignment, ((),) * count))),
        leaders=draw(st.sampled_from(((), (-1,) * count))),
        internal=draw(seldom(9)),
        size_bytes=draw(amounts),
        rate_bytes_per_s=draw(amounts),
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


@st.composite
def rich_worlds(draw: st.DrawFn) -> World:
    """Draw a world with everything in it that rows have to carry."""
    world = draw(worlds())
    state = replace(
        world.state,
        cluster_id=draw(st.none() | st.just("5L6g3nShT-eMCtK--X86sw")),
        brokers=tuple(sorted(world.state.brokers, key=lambda broker: broker.id)),
        topics={name: draw(seen_topics(topic)) for name, topic in world.state.topics.items()},
        notes=draw(st.just(()) | st.just((NOTE,))),
        kafka_version=draw(st.none() | st.just("4.1")),
    )
    most = draw(st.none() | st.integers(0, 100))
    return replace(
        world,
        state=state,
        specs=tuple(draw(told_specs(spec)) for spec in world.specs),
        guards=replace(world.guards, max_changed_percent=most),
    )


def draw_worlds(count: int, drawn_by: int = 1) -> list[World]:
    """Draw so many worlds at once, always the same ones: a Spark job for each would take long."""
    drawn: list[World] = []

    @seed(drawn_by)
    @settings(CALM, max_examples=count, database=None, phases=[Phase.generate])
    @given(rich_worlds())
    def keep(world: World) -> None:
        drawn.append(world)

    keep()
    return drawn


@dataclass(frozen=True)
class Fleet:
    """Worlds by the names of their clusters; stands in for their estate as well."""

    worlds: Mapping[str, World]
    findings: tuple[Finding, ...] = ()
    clusters: Mapping[str, ClusterEntry] = field(init=False)

    def __post_init__(self) -> None:
        entries = {
            name: ClusterEntry(
                name, HERE, exclude_brokers=world.excluded, guards=world.guards, client={"a": "b"}
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
        "cluster_id": state.cluster_id,
        "kafka_version": state.kafka_version,
        "defaults": list(state.config_defaults.items()),
        "notes": encode_notes(state.notes),
        **reading,
    }
    readings = make_table(tables.READINGS, {key: [value] for key, value in row.items()})
    return {tables.READINGS.name: readings, **write_state(name, state)}


def frame(session: SparkSession, table: tables.LakeTable, rows: pa.Table) -> DataFrame:
    """Return rows as Spark has them. In one chunk: an empty one hides what comes after it."""
    return session.createDataFrame(rows.combine_chunks(), schema=table.schema)
