"""What an audit of the same collection found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

from reconciler.errors import Severity
from reconciler.fleet.report.contents import MOST_ROWS, Audit, FindingLine, Kept, RuleCount
from reconciler.fleet.report.words import cut

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

MOST_RULES = 100


def gather_findings(findings: DataFrame) -> Audit:
    """Count every rule, and keep the gravest findings.

    In: `findings`, whose `subject` names what is no topic.
    """
    counted = findings.groupBy("rule", "severity").agg(
        F.count("rule").alias("findings"), F.countDistinct("cluster").alias("clusters")
    )
    rules = counted.orderBy(_rank(), F.desc("findings"), "rule").limit(MOST_RULES).collect()
    order = (_rank(), F.col("rule"), F.col("cluster"), F.col("topic"))
    gravest = findings.orderBy(*order).limit(MOST_ROWS).collect()
    lines = tuple(_describe(row.asDict()) for row in gravest)
    return Audit(tuple(RuleCount(**row.asDict()) for row in rules), Kept(lines, findings.count()))


def _rank() -> Column:
    """How grave a finding is: 1 is gravest; what nobody knows comes first."""
    return F.array_position(F.array(*(F.lit(str(s)) for s in Severity)), F.col("severity"))


def _describe(row: Mapping[str, Any]) -> FindingLine:
    texts = ("cluster", "topic", "rule", "severity", "evidence", "what", "way_out")
    found = {**row, "topic": row["topic"] or row["subject"]}
    return FindingLine(**{name: cut(_spell(found[name])) for name in texts})


def _spell(value: object) -> str:
    """Spell evidence, which may be a text, numbers by name, or nothing."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {held}" for name, held in sorted(value.items()))
    return "" if value is None else str(value)
