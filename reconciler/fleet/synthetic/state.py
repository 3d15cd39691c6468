"""What the state tables say of one synthetic cluster, but for its partitions."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from reconciler.fleet import READ, tables
from reconciler.fleet.rows import make_table
from reconciler.fleet.synthetic.specs import KAFKA_VERSION, choose_config
from reconciler.fleet.synthetic.topics import PROFILES, Drift

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from reconciler.fleet.synthetic.shapes import ClusterShape
    from reconciler.fleet.synthetic.topics import Topics

READ_AT = "2026-01-01T00:00:00+00:00"
"""Nobody read it, so it was always then."""

_LOWERED, _RAISED = 0.5, 2.0


def write_reading(shape: ClusterShape) -> pa.Table:
    """Return the row of `readings`, which says that the cluster is synthetic."""
    row = {
        "cluster": shape.name,
        "status": READ,
        "cluster_id": shape.cluster_id,
        "kafka_version": KAFKA_VERSION,
        "defaults": [*_list_defaults().items()],
        "notes": "[]",
        "read_at": READ_AT,
        "read_ms": shape.partitions // 10,
        "synthetic": True,
    }
    return make_table(tables.READINGS, {name: [value] for name, value in row.items()})


def write_brokers(shape: ClusterShape) -> pa.Table:
    """Return the rows of `brokers`."""
    brokers = shape.list_brokers()
    return make_table(
        tables.BROKERS,
        {
            "cluster": [shape.name] * len(brokers),
            "id": [broker.id for broker in brokers],
            "rack": [broker.rack for broker in brokers],
            "alive": [broker.alive for broker in brokers],
            "cordoned": [broker.cordoned for broker in brokers],
        },
    )


def write_topics(shape: ClusterShape, topics: Topics) -> pa.Table:
    """Return the rows of `topics`."""
    live = topics.live
    return make_table(
        tables.TOPICS,
        {
            "cluster": [shape.name] * live,
            "topic": topics.names[:live],
            "topic_id": topics.ids,
            "internal": [row == topics.internal for row in range(live)],
            "partitions": topics.partitions[:live].tolist(),
        },
    )


def write_configs(shape: ClusterShape, topics: Topics) -> pa.Table:
    """Return the rows of `configs`: what specs say, but for what was changed by hand."""
    found = [
        (topics.names[row], key, value)
        for row in range(topics.live)
        for key, value in _list_overrides(topics, row)
    ]
    return make_table(
        tables.CONFIGS,
        {
            "cluster": [shape.name] * len(found),
            "topic": [topic for topic, _, _ in found],
            "config": [key for _, key, _ in found],
            "value": [value for _, _, value in found],
        },
    )


def _list_overrides(topics: Topics, row: int) -> Iterator[tuple[str, str]]:
    drift = topics.drift[row]
    if drift == Drift.UNMANAGED:
        return
    profile = tuple(PROFILES)[topics.profile[row]]
    config = choose_config(profile, int(topics.wished_replication[row]))
    if drift == Drift.CONFIG:
        key = "retention.ms" if "retention.ms" in config else "min.cleanable.dirty.ratio"
        config[key] = _change_by_hand(config[key], row)
    if drift == Drift.OVERRIDE:
        config["max.message.bytes"] = "2097152"
    yield from sorted(config.items())


def _change_by_hand(value: str, row: int) -> str:
    """Return half of a value, or its double for every fourth topic: to lower that loses records."""
    changed = float(value) * (_LOWERED if row % 4 else _RAISED)
    return str(int(changed)) if value.isdigit() else f"{changed:g}"


@cache
def _list_defaults() -> Mapping[str, str]:
    from reconciler.spec.configs import catalogue

    keys = catalogue(KAFKA_VERSION).keys
    return {name: key.default for name, key in sorted(keys.items()) if key.default is not None}
