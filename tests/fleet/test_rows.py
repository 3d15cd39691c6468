"""Rows carry everything: what was written as rows is read back as it was."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from fleets import CALM, rich_worlds, write_world
from hypothesis import given
from hypothesis import strategies as st
from shorthand import brokers, cluster, topic

from reconciler.fleet import tables
from reconciler.fleet.rows import arrow_schema, read_specs, read_state, write_specs
from reconciler.model.cluster import ClusterState

if TYPE_CHECKING:
    from worlds import World


def there_and_back(state: ClusterState, shuffle: Random | None = None) -> ClusterState:
    rows = write_world("prod", state)
    if shuffle is not None:
        rows = {name: mix(table, shuffle) for name, table in rows.items()}
    facts = (rows[name] for name in ("topics", "partitions", "configs"))
    (reading,) = rows["readings"].to_pylist()
    return read_state(reading, rows["brokers"].to_pylist(), *facts)


def mix(table: pa.Table, shuffle: Random) -> pa.Table:
    order = shuffle.sample(range(len(table)), len(table))
    return table.take(pa.array(order, pa.int64()))


@CALM
@given(rich_worlds(), st.randoms(use_true_random=False))
def test_a_state_survives_in_any_order_of_rows(world: World, shuffle: Random) -> None:
    assert there_and_back(world.state, shuffle) == replace(world.state, usage={})


@CALM
@given(rich_worlds())
def test_specs_survive(world: World) -> None:
    wished = tuple(sorted(world.specs, key=lambda spec: spec.name))
    assert read_specs(write_specs("prod", world.specs)) == wished


@CALM
@given(rich_worlds())
def test_rows_are_as_declared(world: World) -> None:
    rows = {**write_world("prod", world.state), "specs": write_specs("prod", world.specs)}
    for name, table in rows.items():
        assert table.schema == arrow_schema(name)
        keys = [tuple(row[key] for key in tables.TABLES[name].key) for row in table.to_pylist()]
        assert len(set(keys)) == len(keys)


def test_a_topic_without_partitions_is_kept() -> None:
    state = cluster(topic(()), topic(name="shop.events"))
    assert there_and_back(state) == state


def test_a_cluster_without_topics_is_kept() -> None:
    state = cluster(nodes=brokers("a", None))
    assert there_and_back(state) == state


@pytest.mark.parametrize("value", [None, "", "a,b", "ü\n"])
def test_an_override_is_kept_whatever_its_value(value: str | None) -> None:
    state = cluster(topic(config={"some.key": value}))
    assert there_and_back(state).topics["shop.orders"].config == {"some.key": value}
