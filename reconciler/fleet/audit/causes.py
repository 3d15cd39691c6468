"""From findings to causes: which one comes first, and which the pending plans fix.

A cause is a rule on a cluster with one common reason. Causes are ranked by the concern of their
rule, then by its severity, then by how much is affected.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

from reconciler.fleet import tables
from reconciler.fleet.audit.rules import AUDIT_RULES, SEVERITIES, Concern
from reconciler.fleet.audit.topics import TOPIC, UNCLEAN
from reconciler.fleet.lake.attempts import PLANNED
from reconciler.model.moves import MIN_INSYNC


@dataclass(frozen=True, slots=True)
class Pending:
    """The tables of the plans of a collection: `plans`, `changes`, `move_plans` and `moves`."""

    plans: DataFrame
    changes: DataFrame
    move_plans: DataFrame
    moves: DataFrame


def list_rules() -> list[str]:
    """Name the rules in the order in which an operator should look at them."""
    concerns = list(Concern)

    def place(rule: str) -> tuple[int, int]:
        one = AUDIT_RULES[rule]
        return concerns.index(one.concern), SEVERITIES.index(one.severity)

    return sorted(AUDIT_RULES, key=place)


def rank_findings(found: DataFrame) -> DataFrame:
    """Add the rank of its cause to every finding. Out: `findings`.

    In: computed, because it is read twice. Shuffles: a row for each cause and task.
    """
    causes = found.groupBy("cause", "rule").agg(
        F.sum("affected").alias("size"), F.count("*").alias("count")
    )
    place = F.element_at(F.create_map(*_place_rules()), F.col("rule"))
    # One window over all causes: there are few of them.
    order = Window.orderBy(place, F.desc("size"), F.desc("count"), "cause")
    ranked = causes.select("cause", F.row_number().over(order).alias("rank"))
    return found.join(F.broadcast(ranked), "cause", how="inner").select(*tables.FINDINGS.columns)


def _place_rules() -> list[Column]:
    """Return rules and their places; rules of one concern and severity share a place."""
    pairs = [(rule, AUDIT_RULES[rule]) for rule in list_rules()]
    shared: dict[tuple[str, str], int] = {}
    for _, one in pairs:
        shared.setdefault((one.concern, one.severity), len(shared))
    return [
        part
        for rule, one in pairs
        for part in (F.lit(rule), F.lit(shared[one.concern, one.severity]))
    ]


def mark_fixed(found: DataFrame, pending: Pending | None) -> DataFrame:
    """Add `fixed_by`: plan or moves, where the pending plan changes what the finding is about.

    A plan that is refused fixes nothing. Shuffles: the findings and the changes, by topic.
    """
    if pending is None:
        return found.withColumn("fixed_by", F.lit(None).cast("string"))
    changes = pending.changes.where(F.col("action").isin("create", "update")).select(
        *TOPIC, "action", "config_after"
    )
    planned = changes.join(_select_sound(pending.plans), "cluster", how="left_semi")
    drains = _select_sound(pending.move_plans).select("cluster", "drained")
    moved = pending.moves.join(drains, "cluster", how="left_semi").groupBy(*TOPIC)
    factors = moved.agg(F.min(F.size("after")).alias("least_after"))
    rows = (
        found.join(planned, [*TOPIC], how="left")
        .join(factors, [*TOPIC], how="left")
        .join(F.broadcast(drains), "cluster", how="left")
    )
    fixed = F.when(_any_of(_fixed_by_plan()), "plan").when(_any_of(_fixed_by_moves()), "moves")
    return rows.withColumn("fixed_by", fixed).select(*found.columns, "fixed_by")


def _select_sound(plans: DataFrame) -> DataFrame:
    return plans.where((F.col("status") == PLANNED) & (F.size("refusals") == 0))


def _any_of(fixes: Mapping[str, Column]) -> Column:
    """Return whether the fix of the finding's rule is true; null is false."""
    pairs = list(fixes.items())
    each = [F.when(F.col("rule") == rule, condition) for rule, condition in pairs]
    return F.coalesce(*each, F.lit(False))  # noqa: FBT003


def _fixed_by_plan() -> dict[str, Column]:
    """Return, by rule, whether the configs after the plan no longer break it."""
    in_sync = _after(F.lit(MIN_INSYNC)).try_cast("int")
    usual = _after(F.col("subject")) == _evidence("usual")
    return {
        "config-differs-by-cluster": usual,
        "config-differs-by-owner": usual,
        "min-in-sync-one": in_sync > 1,
        "min-in-sync-equals-replication": in_sync < _evidence("replication_factor").try_cast("int"),
        "unclean-election-on": _after(F.lit(UNCLEAN)) == "false",
        "topic-missing-in-stage": F.col("action") == "create",
    }


def _fixed_by_moves() -> dict[str, Column]:
    """Return, by rule, whether the replicas after the moves no longer break it."""
    factor = F.col("least_after")
    asked = factor >= _evidence("asked").try_cast("int")
    return {
        "replication-below-policy": asked,
        "replication-below-default": asked,
        "replication-single": factor > 1,
        "internal-replication-low": factor >= _evidence("usual").try_cast("int"),
        "replication-uneven": factor >= _evidence("most").try_cast("int"),
        "min-in-sync-equals-replication": factor > _evidence(MIN_INSYNC).try_cast("int"),
        "drain-unfinished": F.array_contains("drained", F.col("subject").try_cast("int")),
    }


def _after(key: Column) -> Column:
    return F.try_element_at("config_after", key)


def _evidence(name: str) -> Column:
    return F.try_element_at("evidence", F.lit(name))
