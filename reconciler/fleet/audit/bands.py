"""The loads of brokers beside the bands that a rebalance keeps them in: bytes on disk, and writes.

Spark adds up what brokers hold, an unknown amount as in reconciler.moves.by_load. Shares and bands
are computed by the code that a rebalance uses, from a few sums of each cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from reconciler.fleet import tables
from reconciler.fleet.audit.rules import Check, apply_checks, say
from reconciler.fleet.audit.topics import TOPIC
from reconciler.fleet.caching import Cache
from reconciler.model.moves import LoadAim, LoadKind
from reconciler.moves.load_table import choose_capacity
from reconciler.placement.loads.shares import share_load, surround_shares
from reconciler.units import AMOUNTS

COLUMNS: Mapping[LoadKind, str] = {
    LoadKind.DISK: "size_bytes",
    LoadKind.WRITE: "rate_bytes_per_s",
}
"""The loads that a collection has, and their columns in `partitions`."""

_SAID = {"amount_said": tables.TEXT, "share_said": tables.TEXT, "off_percent": tables.AMOUNT}
_BAND = StructType(
    [*tables.BANDS.schema.fields, *(StructField(name, kind) for name, kind in _SAID.items())]
)


def find_bands(
    partitions: DataFrame,
    brokers: DataFrame,
    clusters: DataFrame,
    rackless: DataFrame,
    compute: Cache,
) -> DataFrame:
    """Return the loads of every broker of the clusters that were read.

    In: the tables `partitions` and `brokers`, the rows of `describe_clusters`, and the cluster and
    topic of each topic for which racks play no part. Out: `bands`, with what findings say of them.
    Grain: a load of a broker. Shuffles: a row for each broker and task, because loads are added up
    where partitions are read; and the partitions of clusters of which some amounts are unknown.
    """
    known = compute(_add_up(partitions, clusters, rackless))
    estimated = _estimate(partitions, _find_gaps(known))
    sums = known.unionByName(_add_up(estimated, clusters, rackless))
    held = F.struct("broker", "copies", "anywhere", *COLUMNS.values())
    nodes = F.struct(F.col("id").alias("broker"), "rack", "log_directories")
    asked = clusters.select("cluster", "able", "aims", "within_percent", "capacity")
    rows = (
        sums.groupBy("cluster")
        .agg(F.collect_list(held).alias("held"))
        .join(brokers.groupBy("cluster").agg(F.collect_list(nodes).alias("nodes")), "cluster")
        .join(asked, "cluster", how="inner")
    )
    return rows.mapInArrow(_judge_clusters, _BAND)


def _add_up(partitions: DataFrame, clusters: DataFrame, rackless: DataFrame) -> DataFrame:
    """Add up the loads of brokers by `copies`, the replicas of a partition that count in shares.

    Grain: a broker of a cluster, a number of copies, and whether racks play no part (`anywhere`).
    """
    placed = F.broadcast(clusters.select("cluster", "able"))
    freely = F.broadcast(rackless.select(*TOPIC, F.lit(True).alias("anywhere")))  # noqa: FBT003
    able = F.filter("replicas", lambda broker: F.array_contains("able", broker))
    rows = partitions.join(placed, "cluster", how="inner").join(freely, [*TOPIC], how="left")
    apart = rows.select(
        "cluster",
        F.explode("replicas").alias("broker"),
        F.size(able).alias("copies"),
        F.coalesce("anywhere", F.lit(False)).alias("anywhere"),  # noqa: FBT003
        *COLUMNS.values(),
    )
    return apart.groupBy("cluster", "broker", "copies", "anywhere").agg(
        *(F.sum(name).alias(name) for name in COLUMNS.values()),
        *(F.count(name).alias(f"{name}_known") for name in COLUMNS.values()),
        F.count("*").alias("replicas"),
    )


def _find_gaps(known: DataFrame) -> DataFrame:
    """Return the clusters of which some amounts of a load are known, but not all."""
    every = known.groupBy("cluster").agg(
        *(F.sum(f"{name}_known").alias(name) for name in COLUMNS.values()),
        F.sum("replicas").alias("replicas"),
    )
    some = [(F.col(n) > 0) & (F.col(n) < F.col("replicas")) for n in COLUMNS.values()]
    return every.where(some[0] | some[1]).select("cluster")


def _estimate(partitions: DataFrame, gaps: DataFrame) -> DataFrame:
    """Return the partitions with unknown amounts, with estimates of these alone.

    An estimate is the median of its topic, or else that of the medians of topics.
    """
    names = COLUMNS.values()
    rows = partitions.join(F.broadcast(gaps), "cluster", how="left_semi")
    topics = rows.groupBy(*TOPIC).agg(*(F.median(name).alias(f"{name}_of_topic") for name in names))
    usual = topics.groupBy("cluster").agg(
        *(F.median(f"{name}_of_topic").alias(f"{name}_usual") for name in names)
    )
    lacking = rows.where(" OR ".join(f"{name} IS NULL" for name in names))
    medians = lacking.join(topics, [*TOPIC], how="inner").join(
        F.broadcast(usual), "cluster", how="inner"
    )
    estimates = {
        name: F.when(
            F.col(name).isNull(),
            F.bround(F.coalesce(f"{name}_of_topic", f"{name}_usual")).cast("long"),
        )
        for name in names
    }
    return medians.withColumns(estimates)


def _judge_clusters(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    schema = to_arrow_schema(_BAND, prefers_large_types=False)
    for batch in batches:
        bands = [band for row in batch.to_pylist() for band in _list_bands(row)]
        yield from pa.Table.from_pylist(bands, schema=schema).to_batches()


def _list_bands(row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the rows of `bands` of one cluster, from its sums by broker."""
    nodes = {node["broker"]: node for node in row["nodes"]}
    ids = sorted(nodes.keys() | {held["broker"] for held in row["held"]})
    places, chosen = {broker: place for place, broker in enumerate(ids)}, frozenset(row["able"])
    able = np.array([broker in chosen for broker in ids], dtype=bool)
    racks = [nodes[broker]["rack"] or "" if broker in nodes else "" for broker in ids]
    _, numbered = np.unique(racks, return_inverse=True)
    aims, written = row["aims"] or [*LoadAim().by], dict(row["capacity"] or ())
    within = LoadAim().within_percent if row["within_percent"] is None else row["within_percent"]
    disks = {
        broker: sum(directory["total_bytes"] or 0 for directory in node["log_directories"] or ())
        for broker, node in nodes.items()
    }
    for kind, name in COLUMNS.items():
        known = [held for held in row["held"] if held[name] is not None]
        if not known:
            continue
        loads = np.zeros(len(ids), dtype=np.int64)
        groups: Counter[tuple[int, bool]] = Counter()
        for held in known:
            loads[places[held["broker"]]] += held[name]
            if held["broker"] in chosen:
                groups[held["copies"], held["anywhere"]] += held[name]
        # Each of the copies on these brokers added the load of its partition once.
        weights = np.array([total // of[0] for of, total in groups.items()], dtype=np.int64)
        shares = share_load(
            weights,
            np.array([copies for copies, _ in groups], dtype=np.int64),
            numbered.astype(np.int64),
            choose_capacity(ids, chosen, written, disks if kind is LoadKind.DISK else {}),
            able,
            np.array([not anywhere for _, anywhere in groups], dtype=bool),
        )
        least, most = surround_shares(shares, within / 100)
        say_amount = AMOUNTS[kind]
        for place, broker in enumerate(ids):
            amount, share = int(loads[place]), round(float(shares[place]))
            band = {
                "cluster": row["cluster"],
                "load": str(kind),
                "broker": broker,
                "rack": nodes[broker]["rack"] if broker in nodes else None,
                "amount": amount,
                "outside": False,
                "aimed": str(kind) in aims,
                "amount_said": say_amount(amount),
            }
            if able[place]:
                low, high = int(least[place]), int(most[place])
                band |= {"share": share, "least": low, "most": high}
                band |= {"outside": not low <= amount <= high, "share_said": say_amount(share)}
                band["off_percent"] = round(100 * (amount - share) / share) if share else 100
            yield band


def find_outside(bands: DataFrame) -> DataFrame:
    """Return a finding for each broker that is outside its band of a load that balance.by names.

    In: the rows of `find_bands`. Out: `findings`.
    """
    rows = bands.where("aimed AND outside")
    evidence = {name: F.col(name) for name in ("amount", "share", "least", "most")}

    def check(rule: str, kind: LoadKind, verb: str) -> Check:
        what = f"broker %s {verb} %s, its share is %s (%+d %%)"
        return Check(
            rule,
            F.col("load") == str(kind),
            say(what, "broker", "amount_said", "share_said", "off_percent"),
            F.abs("off_percent"),
            evidence,
            subject="broker",
        )

    return apply_checks(
        rows,
        [
            check("broker-disk-uneven", LoadKind.DISK, "holds"),
            check("broker-writes-uneven", LoadKind.WRITE, "takes"),
        ],
    )
