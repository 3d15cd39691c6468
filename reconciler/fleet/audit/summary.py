"""What people are shown of an audit: rules by weight, and the worst of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

from reconciler.fleet.audit.rules import RULES, SEVERITIES

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pyspark.sql import Column, DataFrame, Row

    from reconciler.errors import Severity

ORDER = ("cluster", "topic", "subject", "rule")


@dataclass(frozen=True, slots=True)
class Broken:
    """A rule that is broken: how often, on how many clusters, and the worst of it."""

    rule: str
    count: int
    clusters: int
    worst: Sequence[Row]


def select_findings(
    findings: DataFrame, least: Severity, clusters: Collection[str] = ()
) -> DataFrame:
    """Return findings at least so severe, of some clusters or, where none is named, of all."""
    wanted = SEVERITIES[: SEVERITIES.index(least) + 1]
    severe = findings.where(F.col("severity").isin([str(severity) for severity in wanted]))
    return severe.where(F.col("cluster").isin(list(clusters))) if clusters else severe


def sort_findings(findings: DataFrame) -> DataFrame:
    """Order findings: the most severe first, by rule, and the most affected first in each."""
    return findings.orderBy(_rank(), F.desc("affected"), *ORDER)


def summarise_findings(findings: DataFrame, shown: int) -> list[Broken]:
    """Return every rule that is broken, the most severe first. Cost: two small results."""
    counted = findings.groupBy("rule").agg(
        F.count("*").alias("count"), F.count_distinct("cluster").alias("clusters")
    )
    by_rule = Window.partitionBy("rule").orderBy(F.desc("affected"), *ORDER)
    numbered = findings.withColumn("number", F.row_number().over(by_rule))
    worst: dict[str, list[Row]] = {}
    for row in numbered.where(F.col("number") <= shown).orderBy("rule", "number").collect():
        worst.setdefault(row["rule"], []).append(row)
    found = {row["rule"]: row for row in counted.collect()}
    return [
        Broken(rule, found[rule]["count"], found[rule]["clusters"], worst[rule])
        for rule in _list_rules()
        if rule in found
    ]


def count_severities(broken: Sequence[Broken]) -> Mapping[Severity, int]:
    """Count findings by severity, the most severe first."""
    return {
        severity: sum(of.count for of in broken if RULES[of.rule].severity is severity)
        for severity in SEVERITIES
    }


def _rank() -> Column:
    return F.array_position(F.array(*map(F.lit, _list_rules())), F.col("rule"))


def _list_rules() -> list[str]:
    """Name the rules, the most severe first; those of a severity in the order they are declared."""
    return sorted(RULES, key=lambda rule: SEVERITIES.index(RULES[rule].severity))
