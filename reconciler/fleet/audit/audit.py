"""An audit of a collection, from its tables to findings and balance."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

from reconciler.fleet import tables
from reconciler.fleet.audit.balance import (
    join_balance,
    weigh_brokers,
    weigh_clusters,
    weigh_racks,
)
from reconciler.fleet.audit.checks import apply_checks
from reconciler.fleet.audit.clusters import describe_clusters
from reconciler.fleet.audit.durability import check_durability
from reconciler.fleet.audit.evenness import check_clusters, check_racks, check_topics
from reconciler.fleet.audit.health import check_brokers, check_health, check_readings
from reconciler.fleet.audit.outliers import find_outliers
from reconciler.fleet.audit.ownership import check_ownership, find_collisions
from reconciler.fleet.audit.racks import check_rack_names
from reconciler.fleet.audit.topics import describe_topics

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from reconciler.fleet.audit.checks import Check


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit says, as the tables of these names; `topics` is what both rest on, kept."""

    findings: DataFrame
    balance: DataFrame
    topics: DataFrame


def audit_fleet(state: Mapping[str, DataFrame], specs: DataFrame, expectations: DataFrame) -> Audit:
    """Audit every cluster of a collection.

    In: the state tables by name, `specs`, and what `make_expectations` says. A cluster that was
    not read is one finding and nothing else. Internal topics count in health and not in
    balance. Shuffles: partitions once; all else is small.
    """
    brokers = state["brokers"]
    clusters = describe_clusters(state["readings"], brokers, expectations).persist()
    topics = describe_topics(state, specs, clusters).persist()
    counted = topics.where(~F.col("internal"))
    weighed = weigh_brokers(counted, brokers).persist()
    racks = weigh_racks(weighed, clusters)
    totals = weigh_clusters(weighed, clusters, counted)
    found = [
        apply_checks(state["readings"], check_readings()),
        apply_checks(topics, _check_topics()),
        apply_checks(weigh_brokers(topics, brokers), check_brokers()),
        apply_checks(clusters, check_rack_names()),
        apply_checks(totals, check_clusters()),
        apply_checks(racks, check_racks()),
        find_collisions(topics),
        find_outliers(topics, clusters),
    ]
    findings = reduce(DataFrame.unionByName, found).select(*tables.FINDINGS.columns)
    return Audit(findings, join_balance(counted, weighed, racks, totals), topics)


def _check_topics() -> Iterator[Check]:
    yield from check_health()
    yield from check_durability()
    yield from check_topics()
    yield from check_ownership()
