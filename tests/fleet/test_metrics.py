"""The metrics of a lake: the latest collection, plans and audit, and what earlier ones know."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from shorthand import brokers, cluster, spec, topic
from small_fleets import make_state

from reconciler.api.planning import load_estate
from reconciler.fleet.health import count_health
from reconciler.fleet.jobs import audit_collection, collect_fleet, plan_collection
from reconciler.fleet.lake.attempts import read_time
from reconciler.fleet.lake.lake import Lake
from reconciler.fleet.metrics import gather_metrics
from reconciler.fleet.planning import join_tables
from reconciler.fleet.rows import write_specs
from reconciler.metrics.catalogue import METRICS
from reconciler.metrics.text import render_metrics
from reconciler.model.cluster import LogDirectory
from reconciler.model.health import PROBLEMS, count_problems

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.fleet

FIRST, SECOND = "20261120T030000Z", "20261121T030000Z"
NODES = brokers("a", "b", "c")
LESS = (*NODES[:2], replace(NODES[2], alive=False))
HEALTHY = topic("1,2 2,3", leaders=(1, 2), in_sync=((1, 2), (2, 3)))
FAULTY = topic(
    "1,2 2,3 3,1",
    leaders=(1, -1, 1),
    in_sync=((1,), (), (1,)),
    config={"min.insync.replicas": "2"},
    reassigning=frozenset({0}),
)
INTERNAL = topic("1,2", "__consumer_offsets", internal=True, leaders=(1,), in_sync=((1,),))
STATES = {
    "well": cluster(HEALTHY, nodes=NODES),
    "ill": replace(
        cluster(FAULTY, INTERNAL, nodes=LESS, defaults={"min.insync.replicas": "2"}),
        directories={1: (LogDirectory("/data", None, None, online=False),)},
    ),
}


def test_one_cluster_and_a_fleet_count_health_alike(spark: SparkSession) -> None:
    rows = count_health(make_state(spark, STATES)).collect()
    found = {row["cluster"]: {name: row[name] for name in PROBLEMS} for row in rows}
    assert found == {name: count_problems(state).by_problem for name, state in STATES.items()}
    assert all(found["ill"].values())  # each kind of fault is there


def test_the_metrics_of_a_lake(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "clusters.yaml").write_text("version: 1\nclusters: {well: {}, ill: {}}\n")
    lake, estate = Lake(spark, str(tmp_path / "lake")), load_estate(str(tmp_path))
    wished = [spec(partitions=4), spec("new", partitions=1, replication_factor=1)]
    specs = pa.concat_tables(write_specs(name, wished) for name in STATES)
    nights = {FIRST: STATES, SECOND: {**STATES, "ill": "connection refused"}}
    for collection, states in nights.items():
        facts = join_tables(make_state(spark, states))
        collect_fleet(lake, facts, spark.createDataFrame(specs), collection)
        plan_collection(lake, estate, collection)
    audit_collection(lake, estate, SECOND)
    samples = gather_metrics(lake)
    found = {(name.removeprefix("reconciler_"), *labels): v for name, v, labels in samples}
    first, second = (read_time(name).timestamp() for name in (FIRST, SECOND))
    assert found["collection_timestamp_seconds",] == second
    assert found["audit_timestamp_seconds",] == second
    assert found["healthy", "well"] == 1
    assert found["partitions", "well"] == 2
    assert found["read_last_success_timestamp_seconds", "well"] == second
    assert found["drifted_topics", "well", "create"] == 1
    assert found["drifted_topics", "well", "update"] == 1
    assert found["drift_since_timestamp_seconds", "well"] == first
    assert found["healthy", "ill"] == 0
    assert found["read_success", "ill"] == 0
    assert found["read_last_success_timestamp_seconds", "ill"] == first
    assert found["plan_last_success_timestamp_seconds", "ill"] == first
    assert found["audit_findings", "ill", "cluster-unread", "error"] == 1
    assert {sample.metric for sample in samples} <= {
        m.name for m in METRICS.values() if "fleet" in m.sources
    }
    assert render_metrics(samples).endswith("# EOF\n")
