"""What a check is, and how many of them look at the same rows in one pass."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

from reconciler.fleet import tables
from reconciler.fleet.audit.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import Column, DataFrame

ABOUT = ("cluster", "topic", "owner", "file", "line")


@dataclass(frozen=True, slots=True)
class Check:
    """A rule over rows: where it is broken, how often, and what to say of that.

    `what` and `evidence` are columns of the rows; null counts as not broken. `subject` is the
    column that names who breaks it.
    """

    rule: str
    broken: Column
    what: Column
    affected: Column | None = None
    evidence: Mapping[str, Column] = field(default_factory=lambda: MappingProxyType({}))
    subject: str = "topic"


def apply_checks(rows: DataFrame, checks: Iterable[Check]) -> DataFrame:
    """Return a finding for each row and check that is broken by it.

    In: rows with the columns ABOUT, or some of them. Out: `findings`. Shuffles: none.
    """
    found = F.explode(F.array_compact(F.array(*map(_find, checks)))).alias("finding")
    about = [F.col(name) if name in rows.columns else _absent(name) for name in ABOUT]
    return rows.select(*about, found).select(*ABOUT, "finding.*").select(*tables.FINDINGS.columns)


def say(template: str, *columns: str | Column) -> Column:
    """Put values into a sentence, each where a %s stands."""
    return F.format_string(template, *(F.col(c) if isinstance(c, str) else c for c in columns))


def percent(part: Column, whole: Column) -> Column:
    """Return a proportion as people are shown it, as in 12.5%."""
    return F.format_string("%.1f%%", part * 100.0 / F.greatest(whole, F.lit(1)))


def _find(check: Check) -> Column:
    rule = RULES[check.rule]
    affected = F.lit(1) if check.affected is None else check.affected
    finding = F.struct(
        F.col(check.subject).cast("string").alias("subject"),
        F.lit(rule.id).alias("rule"),
        F.lit(str(rule.severity)).alias("severity"),
        affected.cast("long").alias("affected"),
        _write_evidence(check.evidence).alias("evidence"),
        check.what.alias("what"),
        F.lit(rule.way_out).alias("way_out"),
    )
    return F.when(check.broken, finding)


def _write_evidence(evidence: Mapping[str, Column]) -> Column:
    """Spell evidence as texts, which numbers, shares and config values have in common."""
    if not evidence:
        return F.create_map().cast(tables.CONFIG)
    pairs = [(F.lit(key), F.coalesce(c.cast("string"), F.lit(""))) for key, c in evidence.items()]
    return F.create_map(*(part for pair in pairs for part in pair))


def _absent(name: str) -> Column:
    return F.lit(None).cast(tables.FINDINGS.schema[name].dataType).alias(name)
