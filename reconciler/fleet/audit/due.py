"""Topics that are due: past their date, or unused for as long as their specs say.

They are judged and described as by a plan (reconciler.changes.due), from the tables of a
collection, and at the time of its reading. A topic whose use was not read is not idle.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

from reconciler.changes.deletions import NAMED
from reconciler.changes.due import EXPIRED, IDLE
from reconciler.fleet.audit.rules import Check, apply_checks, say
from reconciler.units import DURATION

_LAST_MS = 253_402_300_799_999
"""The end of the year 9999."""


def find_due(topics: DataFrame, specs: DataFrame, clusters: DataFrame) -> DataFrame:
    """Return a finding for each live topic that is due; one for a topic that is both.

    In: `topics` of the state. Out: `findings`. Shuffles: the specs that can be due, and topics.
    """
    spec = {name: F.get_json_object("spec", f"$.{name}") for name in ("expires", "absent")}
    idle_after = F.get_json_object("spec", "$.idle_after_ms").try_cast("long")
    may_be = specs.withColumns({**spec, "idle_after_ms": idle_after}).where(
        (F.col("absent") == "false")
        & (F.col("expires").isNotNull() | F.col("idle_after_ms").isNotNull())
    )
    wished = may_be.select("cluster", "topic", "owner", "file", "line", "expires", "idle_after_ms")
    read = F.broadcast(clusters.select("cluster", "read_at", "spared_expired", "spared_idle"))
    rows = (
        topics.select("cluster", "topic", "last_write_ms", "readers", "use_unknown")
        .join(wished, ["cluster", "topic"], how="inner")
        .join(read, "cluster", how="inner")
    )
    past = F.col("expires") <= F.substring("read_at", 1, 10)
    expired = past & ~_is_spared("spared_expired")
    unused_ms = F.unix_millis(F.to_timestamp("read_at")) - F.col("last_write_ms")
    # Without readers, as without a last write, its use is unknown: then it is not idle.
    unused = (F.size("readers") == 0) & (unused_ms >= F.col("idle_after_ms"))
    idle = unused & ~_is_spared("spared_idle") & ~F.coalesce(expired, F.lit(False))  # noqa: FBT003
    use = {"last_written": _last_written(), "read_by": F.array_join("readers", ", ")}
    after = _format_duration("idle_after_ms")
    return apply_checks(
        rows,
        [
            Check(
                EXPIRED,
                expired,
                say("it expired on %s: %s", "expires", _describe_use()),
                evidence={"expires": F.col("expires"), **use},
            ),
            Check(
                IDLE,
                idle,
                say("it has been idle for more than %s: %s", after, _describe_use()),
                evidence={"idle_after": after, **use},
            ),
        ],
    )


def _is_spared(patterns: str) -> Column:
    return F.coalesce(F.regexp_like("topic", F.col(patterns)), F.lit(False))  # noqa: FBT003


def _last_written() -> Column:
    """Format the last write, as a number if the calendar ends before it; null if not known."""
    at_ms = F.col("last_write_ms")
    minute = F.date_format(F.timestamp_millis(at_ms), "yyyy-MM-dd HH:mm 'UTC'")
    number = F.when(at_ms.isNotNull(), say("%s ms since 1970", at_ms))
    return F.when(at_ms.between(0, _LAST_MS), minute).otherwise(number)


def _describe_use() -> Column:
    """Say when a topic was last written, and who reads it, as far as the collection knows."""
    written = F.when(
        F.col("last_write_ms").isNull(), "it holds no record, so its last write is not known"
    ).otherwise(say("last written %s", _last_written()))
    more = F.size("readers") - NAMED
    named = F.array_join(F.slice("readers", 1, NAMED), ", ")
    read = (
        F.when(more == -NAMED, "no consumer group is active on it")
        .when(more > 0, say("read by %s and %s more", named, more))
        .otherwise(say("read by %s", named))
    )
    return (
        F.when(F.col("use_unknown").isNotNull(), F.col("use_unknown"))
        .when(F.col("readers").isNull(), "who uses it was not collected")
        .otherwise(say("%s; %s", written, read))
    )


def _format_duration(name: str) -> Column:
    """Format a duration in the largest unit that is exact, as specs write it."""
    shown = say("%sms", name)
    for unit in reversed(DURATION.shown):
        size = DURATION.units[unit]
        exact = F.col(name) % size == 0
        shown = F.when(exact, say(f"%s{unit}", (F.col(name) / size).cast("long"))).otherwise(shown)
    return shown
