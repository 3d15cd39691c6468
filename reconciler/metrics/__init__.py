"""Numbers about clusters for Prometheus: what a state, a plan and an audit say, as metrics.

    state, plan ──► figures ──► samples ──► OpenMetrics
    lake ──────────────┘

Belongs here: the catalogue of every metric, the figures of a cluster, and the text of samples.
Forbidden here: reading clusters or lakes, files, and the network.
"""

from reconciler.metrics.catalogue import METRICS, Metric, Sample
from reconciler.metrics.figures import (
    ACTIONS,
    ClusterFigures,
    list_drift,
    list_samples,
    measure_plan,
    measure_state,
)
from reconciler.metrics.health import PROBLEMS, count_problems
from reconciler.metrics.text import make_registry, render_metrics

__all__ = [
    "ACTIONS",
    "METRICS",
    "PROBLEMS",
    "ClusterFigures",
    "Metric",
    "Sample",
    "count_problems",
    "list_drift",
    "list_samples",
    "make_registry",
    "measure_plan",
    "measure_state",
    "render_metrics",
]
