"""Samples as text: grouped by metric, in the order of the catalogue, sorted by labels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import version
from typing import TYPE_CHECKING

from reconciler.errors import UsageError, say_install
from reconciler.metrics.catalogue import METRICS, Sample

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric as Family


def render_metrics(samples: Iterable[Sample]) -> str:
    """Return samples as OpenMetrics. Errors: UsageError if prometheus-client is not installed."""
    chosen = tuple(samples)
    registry = make_registry(lambda: chosen)
    from prometheus_client.openmetrics.exposition import generate_latest

    text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return text.decode()


def make_registry(read: Callable[[], Iterable[Sample]]) -> CollectorRegistry:
    """Return a registry that reads the samples anew for each answer.

    Errors: UsageError if prometheus-client is not installed.
    """
    try:
        from prometheus_client import CollectorRegistry
        from prometheus_client.registry import Collector
    except ImportError as error:
        what = "metrics need prometheus-client, which is not installed"
        raise UsageError(f"{what}; {say_install('metrics')}") from error

    class Samples(Collector):
        def collect(self) -> Iterator[Family]:
            return _group(read())

    registry = CollectorRegistry()
    registry.register(Samples())
    return registry


def _group(samples: Iterable[Sample]) -> Iterator[Family]:
    """Yield a family for each metric that has a sample."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    found: dict[str, list[Sample]] = defaultdict(list)
    found["reconciler_build_info"] = [
        Sample("reconciler_build_info", 1, (version("kafka-reconciler"),))
    ]
    for sample in samples:
        found[sample.metric].append(sample)
    for name, metric in METRICS.items():
        if name not in found:
            continue
        kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
        family = kind(name, metric.means, labels=metric.labels)
        for sample in sorted(found[name], key=lambda one: one.labels):
            family.add_metric(sample.labels, sample.value)
        yield family
