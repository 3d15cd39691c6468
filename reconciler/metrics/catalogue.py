"""Every metric: its name, its type, its labels, its meaning, and the commands that export it.

Names follow the conventions of Prometheus. A file has gauges only: then the same text is valid
OpenMetrics and valid Prometheus text, which is what the textfile collector of node_exporter reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, NamedTuple

Source = Literal["plan", "watch", "fleet"]
"""What exports a metric: `plan --metrics`, `watch`, or `fleet metrics`."""

EVERY: tuple[Source, ...] = ("plan", "watch", "fleet")
ONE: tuple[Source, ...] = ("plan", "watch")
FLEET: tuple[Source, ...] = ("fleet",)
WATCH: tuple[Source, ...] = ("watch",)


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric. `labels` are in the order in which they are written."""

    name: str
    means: str
    labels: tuple[str, ...] = ("cluster",)
    sources: tuple[Source, ...] = EVERY
    kind: Literal["gauge", "counter"] = "gauge"


class Sample(NamedTuple):
    """A value of a metric, and the values of its labels."""

    metric: str
    value: float
    labels: tuple[str, ...] = ()


_ALL = (
    Metric("reconciler_build_info", "The release that wrote the metrics; always 1.", ("version",)),
    Metric(
        "reconciler_cluster_info",
        "The id of the cluster; always 1.",
        ("cluster", "cluster_id"),
    ),
    Metric("reconciler_read_success", "1 if the latest reading of the cluster worked, else 0."),
    Metric(
        "reconciler_read_last_success_timestamp_seconds",
        "When the cluster was last read, in seconds since 1970.",
    ),
    Metric("reconciler_plan_success", "1 if the latest plan of the cluster was made, else 0."),
    Metric(
        "reconciler_plan_last_success_timestamp_seconds",
        "When the cluster was last planned, in seconds since 1970.",
    ),
    Metric(
        "reconciler_failure",
        "1 while a stage (read, plan) fails, with the rule that names the reason.",
        ("cluster", "stage", "rule"),
    ),
    Metric(
        "reconciler_healthy",
        "1 if the cluster was read and no health problem is left, else 0.",
    ),
    Metric(
        "reconciler_health_problems",
        "Partitions, brokers (brokers_down) or log directories with a health problem.",
        ("cluster", "problem"),
    ),
    Metric("reconciler_brokers", "Brokers, alive or down."),
    Metric("reconciler_topics", "Live topics, without internal ones."),
    Metric("reconciler_partitions", "Partitions of live topics, without internal ones."),
    Metric("reconciler_moving_partitions", "Partitions under reassignment."),
    Metric(
        "reconciler_planned_move_replicas",
        "Replicas that the plan of moves copies, on clusters that allow moves.",
        sources=FLEET,
    ),
    Metric(
        "reconciler_planned_move_bytes",
        "Bytes that the plan of moves copies, without partitions of unknown size.",
        sources=FLEET,
    ),
    Metric(
        "reconciler_skew",
        "Leaders or replicas (of) on the fullest minus on the emptiest eligible broker, before or "
        "after the plan.",
        ("cluster", "of", "plan"),
    ),
    Metric(
        "reconciler_drifted_topics",
        "Topics that differ from their specs, by what a plan does (action).",
        ("cluster", "action"),
    ),
    Metric(
        "reconciler_drift_since_timestamp_seconds",
        "The first plan with the oldest change that is still pending, in seconds since 1970.",
        sources=("watch", "fleet"),
    ),
    Metric("reconciler_unmanaged_topics", "Live topics that no spec names."),
    Metric(
        "reconciler_plan_refusals",
        "Refusals of the latest plan, by rule.",
        ("cluster", "rule"),
    ),
    Metric(
        "reconciler_plan_findings",
        "Findings of the latest plan that are not refusals, by rule and severity.",
        ("cluster", "rule", "severity"),
        ONE,
    ),
    Metric(
        "reconciler_audit_findings",
        "Findings of the latest audit, by rule and severity.",
        ("cluster", "rule", "severity"),
        FLEET,
    ),
    Metric(
        "reconciler_collection_timestamp_seconds",
        "The time of the latest collection, in seconds since 1970.",
        (),
        FLEET,
    ),
    Metric(
        "reconciler_audit_timestamp_seconds",
        "The time of the latest collection with an audit, in seconds since 1970.",
        (),
        FLEET,
    ),
    Metric(
        "reconciler_specs_valid",
        "1 if the specs could be loaded in the latest round, else 0: the previous ones are used.",
        (),
        WATCH,
    ),
    Metric("reconciler_watch_interval_seconds", "The time between two rounds.", (), WATCH),
    Metric(
        "reconciler_watch_round_duration_seconds",
        "The duration of the latest round.",
        (),
        WATCH,
    ),
    Metric(
        "reconciler_watch_rounds_total",
        "Rounds since the start.",
        (),
        WATCH,
        "counter",
    ),
)

METRICS: Mapping[str, Metric] = MappingProxyType({metric.name: metric for metric in _ALL})
"""By name, in the order in which they are written."""
