"""The events between two readings of a cluster: of its topics, its brokers and itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from types import MappingProxyType

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

from reconciler.fleet import tables
from reconciler.fleet.history.readings import beside_previous
from reconciler.fleet.lake.attempts import READ

EVENT_KINDS: Mapping[str, str] = MappingProxyType(
    {
        "topic-created": "a topic that the reading before did not show",
        "topic-deleted": "a topic that no longer exists",
        "topic-recreated": "a topic with the same name and another id",
        "topic-grown": "more partitions",
        "topic-configured": "an override that was set, changed or removed",
        "replicas-moved": "partitions on other brokers than before",
        "leaders-reordered": "partitions on the same brokers, with another preferred leader",
        "broker-added": "a broker that the reading before did not show",
        "broker-removed": "a broker that no longer exists",
        "broker-down": "a broker that was alive",
        "broker-back": "a broker that is alive again",
        "broker-rack-changed": "a broker that names another rack",
        "cluster-lost": "a cluster that can no longer be read",
        "cluster-found": "a cluster that can be read again",
        "cluster-rebuilt": "another cluster under the same name; its topics are not compared",
        "cluster-renamed": "the same cluster under another name",
    }
)


def find_events(
    topics: DataFrame,
    brokers: DataFrame,
    readings: DataFrame,
    numbered: DataFrame,
    after: str | None = None,
) -> DataFrame:
    """Return everything that changed. Out: `events`.

    In: the rows of `describe_read_topics`, `brokers` of numbered readings, every reading of
    several collections, and the numbered ones. `after` is the last collection whose events are
    known.
    """
    found = [
        find_topic_events(topics),
        find_broker_events(brokers),
        find_cluster_events(readings),
        find_identity_events(numbered),
    ]
    events = reduce(DataFrame.unionByName, found).select(*tables.EVENTS.columns)
    return events.where(F.col("first_seen") > F.lit(after or ""))


def find_topic_events(topics: DataFrame) -> DataFrame:
    """Return the events of topics. Shuffles: by cluster and topic."""
    columns = ["topic_id", "partitions", "placed", "config"]
    rows = beside_previous(topics, ["cluster", "topic"], columns)
    same = F.col("topic_id").eqNullSafe(F.col("was_topic_id")) | (
        F.col("topic_id").isNull() | F.col("was_topic_id").isNull()
    )
    # Partitions and configs of another topic of the same name are not compared with the old ones.
    stays, count, was = F.col("stays") & same, F.col("partitions"), F.col("was_partitions")
    moved, reordered = _count_pairs(_is_moved), _count_pairs(_is_reordered)
    events = [
        _event("topic-created", F.col("appears"), after=count, affected=count),
        _event("topic-deleted", F.col("vanishes"), before=count, affected=count),
        _event(
            "topic-recreated",
            F.col("stays") & ~same,
            before=F.col("was_topic_id"),
            after=F.col("topic_id"),
            affected=count,
        ),
        _event("topic-grown", stays & (count > was), before=was, after=count, affected=count - was),
        _event("replicas-moved", stays & (moved > 0), affected=moved),
        _event("leaders-reordered", stays & (reordered > 0), affected=reordered),
    ]
    configured = F.filter(_configure(), lambda _: stays)
    return _explode(rows, F.concat(F.array_compact(F.array(*events)), configured))


def find_broker_events(brokers: DataFrame) -> DataFrame:
    """Return the events of brokers. In: rows of numbered readings."""
    rows = beside_previous(brokers, ["cluster", "id"], ["alive", "rack"])
    named = rows.withColumn("topic", F.lit(None).cast("string"))
    stays, alive, was_alive = F.col("stays"), F.col("alive"), F.col("was_alive")
    rack, was_rack, subject = F.col("rack"), F.col("was_rack"), F.col("id")
    events = [
        _event("broker-added", F.col("appears"), subject=subject, after=rack),
        _event("broker-removed", F.col("vanishes"), subject=subject, before=rack),
        _event("broker-down", stays & was_alive & ~alive, subject=subject),
        _event("broker-back", stays & ~was_alive & alive, subject=subject),
        _event(
            "broker-rack-changed",
            stays & alive & was_alive & ~rack.eqNullSafe(was_rack),
            subject=subject,
            before=was_rack,
            after=rack,
        ),
    ]
    return _explode(named, F.array_compact(F.array(*events)))


def find_cluster_events(readings: DataFrame) -> DataFrame:
    """Return clusters that became unreadable or readable. In: every reading, also failed ones."""
    order = Window.partitionBy("cluster").orderBy("collection")
    well = F.col("status") == READ
    rows = readings.withColumns(
        {
            "was_status": F.lag("status").over(order),
            "previous": F.lag("collection").over(order),
            "next": F.lit(None).cast("string"),
            "topic": F.lit(None).cast("string"),
        }
    )
    was_well, subject = F.col("was_status") == READ, F.col("cluster")
    status = {"before": F.col("was_status"), "after": F.col("status")}
    events = [
        _event("cluster-lost", was_well & ~well, subject=subject, **status),
        _event("cluster-found", ~was_well & well, subject=subject, **status),
    ]
    return _explode(rows, F.array_compact(F.array(*events)))


def find_identity_events(numbered: DataFrame) -> DataFrame:
    """Return clusters of another id than before, or of another name. In: numbered readings."""
    rows = numbered.withColumns(
        {
            "topic": F.lit(None).cast("string"),
            "previous": F.coalesce("rebuilt_after", "previous"),
        }
    )
    subject, rebuilt, renamed = F.col("cluster"), F.col("rebuilt_from"), F.col("renamed_from")
    rebuilt_to = {"before": rebuilt, "after": F.col("cluster_id")}
    renamed_to = {"before": renamed, "after": subject}
    events = [
        _event("cluster-rebuilt", rebuilt.isNotNull(), subject=subject, **rebuilt_to),
        _event("cluster-renamed", renamed.isNotNull(), subject=subject, **renamed_to),
    ]
    return _explode(rows, F.array_compact(F.array(*events)))


def _event(
    name: str,
    happened: Column,
    *,
    subject: Column | None = None,
    before: Column | None = None,
    after: Column | None = None,
    affected: Column | None = None,
) -> Column:
    """Return an event, null if it did not happen."""
    # A row that vanishes is in the reading before: the next reading is the first without it.
    gone = name in ("topic-deleted", "broker-removed")
    previous, seen = ("collection", "next") if gone else ("previous", "collection")
    values = {
        "event": F.lit(name),
        "subject": F.col("topic") if subject is None else subject,
        "previous": F.col(previous),
        "first_seen": F.col(seen),
        "before": before,
        "after": after,
        "affected": affected,
    }
    # Spark puts events of one array type only: every field gets its declared type.
    fields = [
        (F.lit(None) if value is None else value)
        .cast(tables.EVENTS.schema[field].dataType)
        .alias(field)
        for field, value in values.items()
    ]
    return F.when(happened, F.struct(*fields))


def _explode(rows: DataFrame, events: Column) -> DataFrame:
    found = rows.select("cluster", "topic", F.explode(events).alias("event"))
    return found.select("cluster", "topic", "event.*").select(*tables.EVENTS.columns)


def _configure() -> Column:
    """Return an event for each override that changed."""
    was_keys = F.coalesce(F.map_keys("was_config"), F.array().cast("array<string>"))
    keys = F.array_sort(F.array_union(F.map_keys("config"), was_keys))

    def value(name: str, key: Column) -> Column:
        return F.try_element_at(F.col(name), key)

    changed = F.filter(keys, lambda key: ~value("config", key).eqNullSafe(value("was_config", key)))
    return F.transform(
        changed,
        lambda key: _event(
            "topic-configured",
            F.lit(True),  # noqa: FBT003
            subject=key,
            before=value("was_config", key),
            after=value("config", key),
        ),
    )


def _count_pairs(differ: Callable[[Column, Column], Column]) -> Column:
    """Count the partitions whose replicas differ from before; new ones have no before."""
    pairs = F.zip_with("was_placed", "placed", differ)
    return F.size(F.filter(pairs, lambda differs: differs))


def _is_moved(before: Column, after: Column) -> Column:
    return F.array_sort(before) != F.array_sort(after)


def _is_reordered(before: Column, after: Column) -> Column:
    same = F.array_sort(before) == F.array_sort(after)
    return same & (F.try_element_at(before, F.lit(1)) != F.try_element_at(after, F.lit(1)))
