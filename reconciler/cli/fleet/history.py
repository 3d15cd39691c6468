"""`reconciler fleet history`: what changed between collections, and how long drift stays."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from reconciler.cli.fleet.options import (
    engine_options,
    lake_option,
    open_lake,
    refuse_unread,
    spark_job,
)
from reconciler.cli.options import Command, choose_topics
from reconciler.cli.terminal import paint
from reconciler.errors import UsageError, escape_unprintable
from reconciler.fleet.session import Engine
from reconciler.styling import set_columns
from reconciler.units import approximate_size, count

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

    from reconciler.fleet.tables import LakeTable

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_COLLECTION = re.compile(r"\d{8}T\d{6}Z")
_DAY_S, _HOUR_S, _MINUTE_S = 86_400, 3_600, 60


@dataclass(frozen=True, slots=True)
class Told:
    """The rows of a table to show, and the total number."""

    rows: Sequence[Row]
    count: int


@click.command(cls=Command)
@lake_option
@choose_topics("Only topics whose names match; repeatable.")
@click.option(
    "--cluster", "clusters", multiple=True, metavar="NAME", help="Only these clusters; repeatable."
)
@click.option(
    "--since",
    metavar="WHEN",
    help="Only changes since then, such as 2026-11-21 or 20261121T030000Z.",
)
@click.option(
    "--show", type=click.IntRange(1), default=20, show_default=True, help="Number of rows per part."
)
@click.option(
    "--format",
    "output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="For a terminal, or for programs.",
)
@engine_options
def command(
    root: str,
    topic: str,
    clusters: tuple[str, ...],
    since: str | None,
    show: int,
    output: str,
    form: str,
    engine: Engine,
) -> int:
    """Compare the collections of a lake: topics that are new, removed, larger or moved, and drift.

    Only collections that are new since the last time are read. The full result is kept in the
    lake, as the tables `events`, `drift`, `growth` and `trend`.
    A cluster that a collection could not read is left out for that time. Exits 0.
    """
    from reconciler.fleet.tracing import read_history, trace_collections

    start = None if since is None else _read_since(since)
    with spark_job(engine) as job:
        lake = open_lake(job.session, root, form)
        refuse_unread(clusters, lake.list_attempts())
        made = trace_collections(lake, announce=job.announce)
        history = read_history(lake, made)
        parts = _select(history, topic, clusters, start or "")
        told = {}
        for name, rows in parts.items():
            first = rows.take(show)
            # Counting is another Spark job over the table: avoid it if the rows are all there.
            told[name] = Told(first, len(first) if len(first) < show else rows.count())
        if not any(part.count for part in told.values()):
            _refuse_unmatched(history, topic, clusters)
    if output == "json":
        shown = {
            name: {"count": part.count, "rows": [row.asDict(recursive=True) for row in part.rows]}
            for name, part in told.items()
        }
        click.echo(json.dumps({"format_version": "1.0", **shown}, indent=2, ensure_ascii=False))
        return 0
    _print_part("what changed, the latest first", told["events"], _describe_event)
    _print_part("drift, the longest first", told["drift"], _describe_drift)
    _print_part("growth, the most bytes and partitions first", told["growth"], _describe_growth)
    return 0


def _read_since(text: str) -> str:
    """Return the name of the earliest collection of a day, or a name as given.

    Errors: UsageError.
    """
    if _DAY.fullmatch(text):
        return text.replace("-", "") + "T000000Z"
    if not _COLLECTION.fullmatch(text):
        raise UsageError(
            f"--since {text}: write a day or a collection: 2026-11-21, 20261121T030000Z"
        )
    return text


def _refuse_unmatched(
    history: Mapping[str, DataFrame], topic: str, clusters: Sequence[str]
) -> None:
    """Refuse globs that match no topic of a history, whenever it was. Errors: UsageError.

    `growth` has every topic that was ever read, and `drift` those that only specs have.
    """
    from reconciler.fleet.tables import DRIFT, GROWTH

    if topic != "*" and not any(
        _choose_rows(history[table.name], topic, clusters).take(1) for table in (GROWTH, DRIFT)
    ):
        raise UsageError(f"no topic of the lake matches --topic {topic!r}")


def _choose_rows(rows: DataFrame, topic: str, clusters: Sequence[str]) -> DataFrame:
    """Return the rows of the wanted topics and clusters."""
    from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

    from reconciler.fleet.globs import translate_globs

    rows = rows.where(F.col("cluster").isin(list(clusters))) if clusters else rows
    named = F.regexp_like("topic", F.lit(translate_globs(topic.split(","))))
    return rows.where(named) if topic != "*" else rows


def _select(
    history: Mapping[str, DataFrame], topic: str, clusters: Sequence[str], since: str
) -> dict[str, DataFrame]:
    """Return the wanted rows of each table, in the order in which they are shown."""
    from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

    from reconciler.fleet.tables import DRIFT, EVENTS, GROWTH

    last = {EVENTS: "first_seen", DRIFT: "coalesce(gone_in, last_seen)", GROWTH: "last_seen"}

    def wanted(table: LakeTable) -> DataFrame:
        rows = history[table.name].where(F.expr(last[table]) >= since)
        return _choose_rows(rows, topic, clusters)

    grown = F.abs(F.col("partitions_last") - F.col("partitions_first"))
    bytes_grown = F.abs(F.col("size_bytes_last") - F.col("size_bytes_first"))
    growth = wanted(GROWTH).where((grown > 0) | (F.coalesce(bytes_grown, F.lit(0)) > 0))
    names = ("cluster", "topic")
    return {
        "events": wanted(EVENTS).orderBy(F.desc("first_seen"), *names, "event", "subject"),
        "drift": wanted(DRIFT).orderBy(F.desc("pending"), F.desc("lasted_s"), *names),
        "growth": growth.orderBy(F.desc(F.coalesce(bytes_grown, F.lit(0))), F.desc(grown), *names),
    }


def _print_part(title: str, told: Told, describe: Callable[[Row], tuple[str, ...]]) -> None:
    """Print a table under its title; an empty table is a line."""
    click.echo(paint("cyan", title), color=True)
    cells = [map(escape_unprintable, describe(row)) for row in told.rows]
    for line in set_columns([(f"  {first}", *rest) for first, *rest in cells]):
        click.echo(line)
    if not told.rows:
        click.echo("  nothing")
    elif told.count > len(told.rows):
        click.echo(f"  … and {told.count - len(told.rows):,} more")
    click.echo()


def _describe_event(row: Row) -> tuple[str, ...]:
    """Return the cells of an event: time, cluster, event, subject, values."""
    whom = row["topic"] or row["subject"]
    return row["first_seen"], row["cluster"], row["event"], whom, _describe_values(row)


def _describe_values(row: Row) -> str:
    before, after, affected = row["before"], row["after"], row["affected"]
    if row["event"] == "topic-configured":
        return f"{row['subject']}  {_show(before)} → {_show(after)}"
    if before is not None and after is not None:
        return f"{before} → {after}"
    if affected is not None:
        return count(affected, "partition")
    value = after if before is None else before
    return "" if value is None else str(value)


def _show(value: str | None) -> str:
    return "(not set)" if value is None else value


def _describe_drift(row: Row) -> tuple[str, ...]:
    seen = f"since {row['first_seen']}"
    if not row["pending"]:
        seen = f"from {row['first_seen']} until {row['gone_in']}"
    lasted = f"{_show_span(row['lasted_s'])} in {count(row['plans'], 'plan')}"
    return row["cluster"], row["topic"], row["action"], seen, lasted


def _describe_growth(row: Row) -> tuple[str, ...]:
    partitions = f"{row['partitions_first']:,} → {row['partitions_last']:,} partitions"
    first, last, daily = row["size_bytes_first"], row["size_bytes_last"], row["bytes_per_day"]
    known = first is not None and last is not None
    size = f"{approximate_size(first)} → {approximate_size(last)}" if known else ""
    rate = "" if daily is None else f"{approximate_size(daily)} a day"
    return row["cluster"], row["topic"] or "(all topics)", partitions, size, rate


def _show_span(seconds: int) -> str:
    """Format a duration in its two largest units."""
    days, rest = divmod(seconds, _DAY_S)
    hours, rest = divmod(rest, _HOUR_S)
    minutes = rest // _MINUTE_S
    if days:
        return f"{days}d {hours}h"
    return f"{hours}h {minutes}min" if hours else f"{minutes}min"
