"""What the expressions of rules can speak of: names, kinds, and the values for one subject."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

from reconciler import units

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from reconciler.model import TopicSpec

    ReadConfig = Callable[[str, str], object]
    """Turns a config's key and text into the number, flag, list or text that it is."""

    Facts = Mapping[str, object]


class Kind(StrEnum):
    """The type of a fact. NULLABLE is of any type, and null where nothing is known."""

    FLAG = "flag"
    COUNT = "count"
    TEXT = "text"
    TEXTS = "texts"
    CONFIG = "config"
    NULLABLE = "nullable"


UNITS: Mapping[str, int] = MappingProxyType(
    {
        "second": units.SECOND,
        "minute": units.MINUTE,
        "hour": units.HOUR,
        "day": units.DAY,
        "week": 7 * units.DAY,
        **{name: size for name, size in units.SIZE.units.items() if name != "B"},
    }
)
"""Constants, so that 30 * day and 8 * MiB can be written. Units: milliseconds, and bytes."""

_OF_SPECS: Mapping[str, Kind] = {
    "spec.name": Kind.TEXT,
    "spec.partitions": Kind.NULLABLE,
    "spec.replication_factor": Kind.NULLABLE,
    "spec.config": Kind.CONFIG,
    "spec.owner": Kind.NULLABLE,
    "spec.description": Kind.NULLABLE,
    "spec.profile": Kind.NULLABLE,
    "spec.rack_aware": Kind.FLAG,
    "spec.assigned": Kind.FLAG,
    "spec.acknowledge": Kind.TEXTS,
    "spec.file": Kind.TEXT,
    "cluster.name": Kind.TEXT,
    "cluster.kafka_version": Kind.NULLABLE,
}
_OF_CHANGES: Mapping[str, Kind] = {
    "change.actions": Kind.TEXTS,
    "change.before": Kind.NULLABLE,
    "change.after": Kind.NULLABLE,
    "change.partitions_added": Kind.COUNT,
    "change.config_keys": Kind.TEXTS,
    "change.risks": Kind.TEXTS,
}
FACTS_OF_SPECS: Mapping[str, Kind] = MappingProxyType(
    {**_OF_SPECS, **dict.fromkeys(UNITS, Kind.COUNT)}
)
FACTS_OF_CHANGES: Mapping[str, Kind] = MappingProxyType({**FACTS_OF_SPECS, **_OF_CHANGES})


@dataclass(frozen=True, slots=True)
class Cluster:
    """The cluster that rules are asked about."""

    name: str
    kafka_version: str | None = None


@dataclass(frozen=True, slots=True)
class Image:
    """A topic before or after a change. `config` holds what is in force, as far as it is known."""

    partitions: int
    replication_factor: int
    config: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Change:
    """What a plan does to one topic: create, expand, configure, delete, or several of them."""

    actions: tuple[str, ...]
    before: Image | None
    after: Image | None
    config_keys: tuple[str, ...] = ()
    risks: tuple[str, ...] = ()


def describe_spec(spec: TopicSpec, cluster: Cluster, read: ReadConfig) -> dict[str, object]:
    """Tell the facts of a spec."""
    return {
        **UNITS,
        "spec.name": spec.name,
        "spec.partitions": spec.partitions,
        "spec.replication_factor": spec.replication_factor,
        "spec.config": _read_all(spec.config, read),
        "spec.owner": spec.owner,
        "spec.description": spec.description,
        "spec.profile": spec.profile,
        "spec.rack_aware": spec.rack_aware,
        "spec.assigned": spec.assignment is not None,
        "spec.acknowledge": sorted(spec.acknowledge),
        "spec.file": spec.location.file,
        "cluster.name": cluster.name,
        "cluster.kafka_version": cluster.kafka_version,
    }


def describe_change(change: Change, read: ReadConfig) -> dict[str, object]:
    """Tell the facts of a change, beside those of its spec."""
    before, after = change.before, change.after
    grown = after.partitions - (before.partitions if before else 0) if after else 0
    return {
        "change.actions": list(change.actions),
        "change.before": _describe_image(before, read),
        "change.after": _describe_image(after, read),
        "change.partitions_added": grown,
        "change.config_keys": list(change.config_keys),
        "change.risks": list(change.risks),
    }


def _describe_image(image: Image | None, read: ReadConfig) -> dict[str, object] | None:
    if image is None:
        return None
    return {
        "partitions": image.partitions,
        "replication_factor": image.replication_factor,
        "config": _read_all(image.config, read),
    }


def _read_all(config: Mapping[str, str], read: ReadConfig) -> dict[str, object]:
    return {key: read(key, value) for key, value in config.items()}
