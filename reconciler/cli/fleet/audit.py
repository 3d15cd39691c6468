"""`reconciler fleet audit`: findings about the clusters of a collection, with the way out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from reconciler.cli.findings import SEVERITY_COLOURS
from reconciler.cli.fleet.options import (
    collection_option,
    engine_options,
    lake_option,
    open_lake,
    refuse_unread,
    spark_job,
)
from reconciler.cli.options import Command
from reconciler.cli.terminal import paint
from reconciler.errors import Severity, escape_unprintable
from reconciler.fleet.session import Engine
from reconciler.styling import pad, set_columns
from reconciler.units import count

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

    from reconciler.fleet.audit.audit import Cause


@click.command(cls=Command)
@click.argument("estate", default="topics", type=click.Path(exists=True))
@lake_option
@collection_option
@click.option(
    "--severity",
    type=click.Choice(["error", "warning", "note"]),
    default="note",
    show_default=True,
    help="The lowest severity to show.",
)
@click.option(
    "--cluster", "clusters", multiple=True, metavar="NAME", help="Only these clusters; repeatable."
)
@click.option(
    "--show",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Number of findings per cause.",
)
@click.option(
    "--causes",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    help="Number of causes, the most urgent first.",
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
    estate: str,
    root: str,
    *,
    collection: str | None,
    severity: str,
    clusters: tuple[str, ...],
    show: int,
    causes: int,
    output: str,
    form: str,
    engine: Engine,
) -> int:
    """Report findings about a collection: health, safety, balance, configs, ownership.

    Findings of a cluster with the same cause are one entry. The entries come in the order in which
    to look at them: data at risk, availability, capacity, hygiene. --show 100 shows more rows of
    each, and --format json shows every finding. The full result is kept in the lake, as the tables
    `findings` and `balance`. Exits 0 if nothing shown is an error, otherwise 1. ESTATE defaults to
    topics.
    """
    from reconciler.api.planning import load_estate
    from reconciler.fleet.audit.audit import count_severities, select_findings, summarise_causes
    from reconciler.fleet.jobs import audit_collection
    from reconciler.fleet.tables import FINDINGS
    from reconciler.fleet.trouble import plain_reasons

    loaded = load_estate(estate)
    with spark_job(engine) as job:
        lake = open_lake(job.session, root, form)
        refuse_unread(clusters, [lake.find_attempt(collection)])
        made = audit_collection(lake, loaded, collection, announce=job.announce)
        kept = select_findings(lake.read(FINDINGS, made), Severity(severity), clusters)
        found = summarise_causes(kept, show)
    if output == "json":
        with plain_reasons():
            _print_json(made.collection, kept, found)
    else:
        _print_text(made.collection, found, causes, Severity(severity))
    return 1 if count_severities(found)[Severity.ERROR] else 0


def _print_text(collection: str, found: Sequence[Cause], shown: int, least: Severity) -> None:
    """Print the first causes, then the counts."""
    from reconciler.fleet.audit.audit import count_severities
    from reconciler.fleet.audit.rules import SEVERITIES

    print_causes(found[:shown])
    if (left := len(found) - shown) > 0:
        click.echo(f"… and {count(left, 'cause')} more: --causes {len(found)}\n")
    counts = count_severities(found)
    asked = SEVERITIES[: SEVERITIES.index(least) + 1]
    said = ", ".join(count(counts[severity], str(severity)) for severity in asked)
    fixed = sum(one.fixed for one in found)
    pending = f" · {fixed:,} fixed by pending plans" if fixed else ""
    click.echo(f"{collection}: {said}, of {count(len(found), 'cause')}{pending}")


def print_causes(found: Sequence[Cause]) -> None:
    """Print each cause with its worst findings and the way out."""
    from reconciler.fleet.audit.rules import AUDIT_RULES

    for one in found:
        rule = AUDIT_RULES[one.rule]
        label = pad(paint(SEVERITY_COLOURS[rule.severity], rule.severity), 8)
        fixed = f", {one.fixed:,} of them fixed by the pending plan" if one.fixed else ""
        head = f"{label} {escape_unprintable(one.cause)}  {count(one.count, 'finding')}{fixed}"
        rows = set_columns(
            (f"  {row['cluster']}", _name_subject(row), escape_unprintable(row["what"]))
            for row in one.worst
        )
        left = one.count - len(one.worst)
        more = [f"  … and {left:,} more"] if left > 0 else []
        for line in (head, *rows, *more, f"  → {rule.way_out}"):
            click.echo(line, color=True)
        click.echo()


def _name_subject(row: Row) -> str:
    """Name what breaks a rule; empty if it is the cluster, which the line names already."""
    if row["topic"] is not None:
        return str(row["topic"])
    return "" if row["subject"] == row["cluster"] else str(row["subject"])


def _print_json(collection: str, findings: DataFrame, found: Sequence[Cause]) -> None:
    """Print one JSON document, one line per finding."""
    from reconciler.fleet.audit.audit import count_severities, order_findings

    counts = {str(severity): count for severity, count in count_severities(found).items()}
    head = json.dumps({"format_version": "1.0", "collection": collection, "counts": counts})
    click.echo(f'{head[:-1]}, "findings": [', nl=False)
    separator = "\n"
    # A fleet can have more findings than fit into memory: take one Spark partition at a time.
    for row in order_findings(findings).toLocalIterator():
        click.echo(separator + json.dumps(row.asDict(), ensure_ascii=False), nl=False)
        separator = ",\n"
    click.echo("\n]}")
