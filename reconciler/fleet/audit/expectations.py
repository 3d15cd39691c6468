"""What an estate asks of each cluster, as rows beside the states: no secret is among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.types import ArrayType, StructField, StructType

from reconciler.fleet.globs import translate_globs
from reconciler.fleet.tables import COUNT, FLAG, TEXT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame, SparkSession

    from reconciler.spec import ClusterEntry, Estate

EXPECTATIONS = StructType(
    [
        StructField("cluster", TEXT),
        StructField("owned", TEXT),  # regular expressions of topic names
        StructField("ignored", TEXT),
        StructField("exempt", TEXT),  # from the policy's replication
        StructField("least_replication", COUNT),  # of the policy; null: it asks for none
        StructField("default_replication", COUNT),
        StructField("excluded", ArrayType(COUNT)),  # brokers that take nothing new
        StructField("weighted", FLAG),  # brokers are not meant to hold the same
    ]
)


def make_expectations(
    session: SparkSession, estate: Estate, clusters: Iterable[str] = ()
) -> DataFrame:
    """Return a row for each cluster of the estate. Grain: a cluster.

    `clusters` adds those of a collection that the estate does not have, which it asks nothing of.
    """
    known = {*estate.declared, *clusters} if estate.declared else {*estate.clusters, *clusters}
    rows = [_expect(estate, name) for name in sorted(known)]
    return session.createDataFrame(rows, EXPECTATIONS)


def _expect(estate: Estate, cluster: str) -> tuple[Any, ...]:
    entry = estate.clusters.get(cluster)
    if entry is None:
        return (cluster, translate_globs("*"), translate_globs(()), translate_globs(()), *_NOTHING)
    return (
        cluster,
        translate_globs(entry.owns or "*"),
        translate_globs(entry.ignore),
        translate_globs(entry.policy.exempt.get("policy-replication", ())),
        _least_replication(entry),
        _default_replication(estate, cluster),
        sorted(entry.exclude_brokers),
        bool(entry.capacity),
    )


_NOTHING: tuple[Any, ...] = (None, None, [], False)


def _least_replication(entry: ClusterEntry) -> int | None:
    bounds = entry.policy.replication_factor
    return None if bounds is None or bounds.least is None else int(bounds.least.number)


def _default_replication(estate: Estate, cluster: str) -> int | None:
    """Return the factor that topics inherit: that of the nearest layer that has one."""
    layers = [layer.model.replication_factor for layer in estate.list_layers(cluster, None)]
    return next((int(factor) for factor in reversed(layers) if factor is not None), None)
