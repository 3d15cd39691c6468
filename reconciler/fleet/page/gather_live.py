"""The live state of a fleet for the page: problems, the inventory of topics, and trends."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

from reconciler.fleet import tables
from reconciler.fleet.health import COUNTS, FAULTS, Health, count_health, judge_health
from reconciler.fleet.lake.inventory import find_chain
from reconciler.fleet.page.contents import (
    MOST_COLLECTIONS,
    MOST_ROWS,
    Kept,
    cut,
    describe_change_row,
)
from reconciler.fleet.page.live import (
    MOST_TOPICS,
    PROBLEMS,
    HealthTotals,
    ProblemLine,
    TopicLine,
    TrendPoint,
)
from reconciler.fleet.tracing import read_history

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pyspark.sql import Column, DataFrame, Row

    from reconciler.fleet.lake.attempts import Published
    from reconciler.fleet.lake.lake import Lake

    Key = tuple[str, str]

TOPIC = ["cluster", "topic"]


def gather_health(
    state: Mapping[str, DataFrame], unhealthy: DataFrame
) -> tuple[HealthTotals, Mapping[str, Health]]:
    """Return the problems of the fleet, and the health of each cluster of the readings."""
    rows = count_health(state, unhealthy).collect()
    totals = {name: sum(row[name] or 0 for row in rows) for name in COUNTS}
    clusters = {name: sum(bool(row[name]) for row in rows) for name in COUNTS}
    health = {row["cluster"]: judge_health(row.asDict()) for row in rows}
    return HealthTotals(**totals, clusters=clusters), health


def list_problems(state: Mapping[str, DataFrame], unhealthy: DataFrame) -> Kept[ProblemLine]:
    """Return the topics with each problem: the worst problem first, then the most partitions."""
    apart = F.explode(
        F.array(
            *(
                F.struct(F.lit(n).alias("rank"), F.col(name).alias("affected"))
                for n, name in enumerate(FAULTS)
            )
        )
    )
    rows = unhealthy.select(*TOPIC, "lagging", apart.alias("of")).select(*TOPIC, "lagging", "of.*")
    rows = rows.where("affected > 0")
    worst = rows.orderBy("rank", F.desc("affected"), *TOPIC).limit(MOST_ROWS).collect()
    keys = {_key(row) for row in worst}
    owners = find_owners(state["specs"], keys)
    counts = {_key(row): row["partitions"] for row in _pick(state["topics"], keys).collect()}
    lines = (
        ProblemLine(
            PROBLEMS[FAULTS[row["rank"]]],
            *_key(row),
            owner=owners.get(_key(row)),
            affected=row["affected"],
            partitions=counts[_key(row)],
            lagging=tuple(row["lagging"] or ()),
        )
        for row in worst
    )
    return Kept(tuple(lines), rows.count())


def find_owners(specs: DataFrame, keys: Collection[Key]) -> Mapping[Key, str]:
    """Return the owners of some topics, as far as their specs name one."""
    if not keys:
        return {}
    rows = _pick(specs, keys).where(F.col("owner").isNotNull())
    return {_key(row): row["owner"] for row in rows.select(*TOPIC, "owner").collect()}


def _pick(rows: DataFrame, keys: Collection[Key]) -> DataFrame:
    """Return the rows of topics with these names, on any cluster; names are a few hundred."""
    return rows.where(F.col("topic").isin(sorted({topic for _, topic in keys})))


def _key(row: Row) -> Key:
    return row["cluster"], row["topic"]


def list_topics(
    state: Mapping[str, DataFrame], changes: DataFrame | None, events: DataFrame | None
) -> Kept[TopicLine]:
    """Return the topics of the fleet without internal ones, those with the most partitions first.

    Cost: the partitions of the topics that are shown.
    """
    users = state["topics"].where(~F.col("internal")).select(*TOPIC, "partitions")
    order: list[Column | str] = [F.desc("partitions"), *TOPIC]
    # Chosen first, by one small table: what follows reads these topics only.
    chosen = users.orderBy(*order).limit(MOST_TOPICS).persist()
    sized = F.size("replicas")
    held = (
        _only(state["partitions"], chosen)
        .groupBy(*TOPIC)
        .agg(
            F.min(sized).alias("least"),
            F.max(sized).alias("most"),
            F.sum("size_bytes").alias("bytes"),
        )
    )
    entry = F.struct("config", F.coalesce("value", F.lit("")).alias("value"))
    configs = _only(state["configs"], chosen).groupBy(*TOPIC)
    owners = _only(state["specs"], chosen).select(*TOPIC, "owner")
    joined = [held, configs.agg(F.sort_array(F.collect_list(entry)).alias("overrides")), owners]
    if events is not None:
        last = F.max(F.struct("first_seen", "event")).alias("last")
        joined.append(_only(events, chosen).groupBy(*TOPIC).agg(last))
    rows = reduce(lambda a, b: a.join(b, TOPIC, how="left"), joined, chosen)
    found = [row.asDict(recursive=True) for row in rows.orderBy(*order).collect()]
    differs: dict[Key, str] = {}
    if changes is not None:
        for row in _only(changes.drop("assignment"), chosen).collect():
            differs[_key(row)] = describe_change_row(row.asDict(recursive=True))
    lines = tuple(_describe_topic(row, differs) for row in found)
    chosen.unpersist()
    return Kept(lines, users.count())


def _only(rows: DataFrame, chosen: DataFrame) -> DataFrame:
    return rows.join(F.broadcast(chosen.select(*TOPIC)), TOPIC, how="left_semi")


def _describe_topic(row: Mapping[str, Any], differs: Mapping[Key, str]) -> TopicLine:
    key, last = (row["cluster"], row["topic"]), row.get("last") or {}
    return TopicLine(
        *key,
        owner=row["owner"],
        partitions=row["partitions"],
        replication=(row["least"] or 0, row["most"] or 0),
        size_bytes=row["bytes"],
        overrides=tuple((each["config"], cut(each["value"])) for each in row["overrides"] or ()),
        differs=cut(differs.get(key, "")),
        changed=last.get("first_seen"),
        event=last.get("event"),
    )


def find_history(lake: Lake, attempt: Published) -> Mapping[str, DataFrame]:
    """Return the history up to a collection, by table; nothing if there is none yet."""
    if not find_chain(lake.list_published(), attempt.collection):
        return {}
    return read_history(lake, attempt)


def follow_trend(history: Mapping[str, DataFrame]) -> tuple[TrendPoint, ...]:
    """Return the fleet at each collection of the history, the latest of them."""
    if not history:
        return ()
    amounts = [name for name in tables.TREND.columns if name not in ("cluster", "seen")]
    sums = (F.sum(name).alias(name) for name in amounts if name != "brokers")
    rows = history[tables.TREND.name]
    found = rows.groupBy("seen").agg(F.count("*").alias("clusters"), *sums).collect()
    last = sorted(found, key=lambda row: row["seen"])[-MOST_COLLECTIONS:]
    names = [name for name in TrendPoint.__dataclass_fields__ if name != "collection"]
    return tuple(TrendPoint(row["seen"], **{name: row[name] for name in names}) for row in last)
