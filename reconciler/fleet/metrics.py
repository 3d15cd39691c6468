"""What a lake holds, as metrics: the latest collection, its health, the latest plans and audit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

from reconciler.fleet import tables
from reconciler.fleet.complete import read_collection
from reconciler.fleet.health import count_health
from reconciler.fleet.history.growth import find_drift
from reconciler.fleet.lake.attempts import AUDIT, PLAN, PLANNED, READ, Published, read_time
from reconciler.fleet.lake.lake import Lake
from reconciler.metrics.catalogue import Sample
from reconciler.metrics.figures import ACTIONS, ClusterFigures, list_samples
from reconciler.model.health import PROBLEMS

MOST_PLANS = 100
"""The number of plans that drift is followed back to."""

Fields = dict[str, dict[str, Any]]
"""The fields of ClusterFigures by cluster."""


def gather_metrics(lake: Lake, announce: Callable[[str], None] = lambda _: None) -> list[Sample]:
    """Return the metrics of every cluster in the latest collection, and of the lake.

    Errors: LakeError if there is no collection, or plans lost rows.
    Cost: a scan of three columns of the partitions, and of the changes of up to MOST_PLANS plans.
    """
    states = lake.list_attempts()
    latest = lake.find_attempt()
    announce(f"counting {latest.collection}")
    fields = _measure_state(lake, latest, states)
    plans = lake.list_attempts(PLAN)[-MOST_PLANS:]
    if plans:
        announce(f"following the drift in {len(plans)} plans")
        _add(fields, _measure_plans(lake, plans))
    samples = [_stamp("collection", latest)]
    if audits := lake.list_attempts(AUDIT)[-1:]:
        announce("counting findings")
        findings = lake.read(tables.FINDINGS, audits[0])
        _add(fields, _count_findings(findings))
        samples.append(_stamp("audit", audits[0]))
    for name in sorted(fields):
        samples += list_samples(ClusterFigures(name, **fields[name]))
    return samples


def _stamp(what: str, attempt: Published) -> Sample:
    return Sample(f"reconciler_{what}_timestamp_seconds", _read_seconds(attempt.collection))


def _read_seconds(collection: str) -> float:
    return read_time(collection).timestamp()


def _add(fields: Fields, more: Mapping[str, Mapping[str, Any]]) -> None:
    """Add fields of the clusters that are in the latest collection; others have left the estate."""
    for cluster in fields.keys() & more.keys():
        for name, value in more[cluster].items():
            known = fields[cluster].get(name)
            fields[cluster][name] = {**known, **value} if isinstance(known, dict) else value


def _measure_state(lake: Lake, latest: Published, states: Sequence[Published]) -> Fields:
    state = read_collection(lake, latest)
    users = state["topics"].where(~F.col("internal")).groupBy("cluster")
    sums = (F.count("topic").alias("topics"), F.sum("partitions").alias("partitions"))
    moving = state["partitions"].where("moving").groupBy("cluster").agg(F.count("*").alias("n"))
    topics, moves = _by_cluster(users.agg(*sums).collect()), _by_cluster(moving.collect())
    ids = _by_cluster(state["readings"].select("cluster", "cluster_id").collect())
    fields: Fields = {}
    for row in count_health(state).collect():
        name = row["cluster"]
        if row["status"] != READ:
            fields[name] = {
                "failures": {"read": row["status"]},
                "read_at": _find_reading(name, states[:-1]),
            }
            continue
        fields[name] = {
            "cluster_id": ids[name]["cluster_id"],
            "read": True,
            "read_at": _read_seconds(latest.collection),
            "problems": {problem: row[problem] for problem in PROBLEMS},
            "brokers": row["brokers"],
            "topics": topics[name]["topics"] if name in topics else 0,
            "partitions": topics[name]["partitions"] if name in topics else 0,
            "moving": moves[name]["n"] if name in moves else 0,
        }
    return fields


def _by_cluster(rows: Iterable[Row]) -> Mapping[str, Row]:
    return {row["cluster"]: row for row in rows}


def _find_reading(cluster: str, states: Sequence[Published]) -> float | None:
    """Return the time of the last collection that read a cluster: only these have its brokers."""
    for attempt in reversed(states):
        if attempt.rows[tables.BROKERS.name].get(cluster):
            return _read_seconds(attempt.collection)
    return None


def _measure_plans(lake: Lake, plans: Sequence[Published]) -> Fields:
    """Return what the latest plans say, and since when their oldest change is pending."""
    rows, changes = (lake.read_all(table, plans) for table in (tables.PLANS, tables.CHANGES))
    fields: Fields = defaultdict(dict)
    for row in rows.where(F.col("collection") == plans[-1].collection).collect():
        fields[row["cluster"]] = _describe_plan(row)
    last = rows.where(F.col("status") == PLANNED).groupBy("cluster")
    for row in last.agg(F.max("collection").alias("at")).collect():
        fields[row["cluster"]]["planned_at"] = _read_seconds(row["at"])
    drift = find_drift(rows, changes).where("pending").groupBy("cluster")
    for row in drift.agg(F.min("first_seen").alias("since")).collect():
        fields[row["cluster"]]["drift_since"] = _read_seconds(row["since"])
    current = lake.read(tables.CHANGES, plans[-1])
    for row in current.groupBy("cluster", "action").count().collect():
        if row["action"] in ACTIONS and fields[row["cluster"]].get("planned"):
            fields[row["cluster"]]["drift"][row["action"]] = row["count"]
    refused = current.select("cluster", F.explode("refusals").alias("rule"))
    for row in refused.groupBy("cluster", "rule").count().collect():
        if fields[row["cluster"]].get("planned"):
            counts = fields[row["cluster"]]["refusals"]
            counts[row["rule"]] = counts.get(row["rule"], 0) + row["count"]
    if tables.MOVE_PLANS.name in plans[-1].rows:
        moves = lake.read(tables.MOVE_PLANS, plans[-1]).where(F.col("status") == PLANNED)
        for row in moves.select("cluster", "replicas", "copied_bytes").collect():
            amounts = {"move_replicas": row["replicas"], "move_bytes": row["copied_bytes"]}
            fields[row["cluster"]].update(amounts)
    return dict(fields)


def _describe_plan(row: Row) -> dict[str, Any]:
    if row["status"] != PLANNED:
        return {"planned": False, "failures": {"plan": row["status"]}}
    skews = {
        (f"{of}s", when): row[f"{of}_skew_{when}"]
        for of in ("leader", "replica")
        for when in ("before", "after")
    }
    refusals: dict[str, int] = {}
    for message in row["refusals"] or ():  # of the plan itself: a message ends with its rule
        rule = message.rpartition("[")[2].removesuffix("]")
        refusals[rule] = refusals.get(rule, 0) + 1
    return {
        "planned": True,
        "skews": {key: skew for key, skew in skews.items() if skew is not None},
        "drift": dict.fromkeys(ACTIONS, 0),
        "unmanaged": row["unmanaged"],
        "refusals": refusals,
    }


def _count_findings(findings: DataFrame) -> Fields:
    fields: Fields = defaultdict(lambda: {"audit_findings": {}})
    for row in findings.groupBy("cluster", "rule", "severity").count().collect():
        counts = fields[row["cluster"]]["audit_findings"]
        counts[row["rule"], row["severity"]] = row["count"]
    return dict(fields)
