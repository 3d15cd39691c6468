"""The facts that expressions of rules can use: names, types, and the values for one subject."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

from reconciler import units

if TYPE_CHECKING:
    from reconciler.model.cluster import TopicSpec
    from reconciler.model.steps import Verb

ReadConfig = Callable[[str, str], object]
"""Converts a config's key and text to its typed value: number, flag, list or text."""
Facts = Mapping[str, object]


class FactType(StrEnum):
    """The type of a fact. A NULLABLE fact has any type; it is null if it is unknown."""

    FLAG = "flag"
    COUNT = "count"
    TEXT = "text"
    TEXTS = "texts"
    CONFIG = "config"
    LABELS = "labels"
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
"""Constants for expressions such as 30 * day and 8 * MiB. Units: milliseconds, and bytes."""

_OF_SPECS: Mapping[str, FactType] = {
    "spec.name": FactType.TEXT,
    "spec.partitions": FactType.NULLABLE,
    "spec.replication_factor": FactType.NULLABLE,
    "spec.config": FactType.CONFIG,
    "spec.owner": FactType.NULLABLE,
    "spec.description": FactType.NULLABLE,
    "spec.profile": FactType.NULLABLE,
    "spec.labels": FactType.LABELS,
    "spec.absent": FactType.FLAG,
    "spec.rack_aware": FactType.FLAG,
    "spec.assigned": FactType.FLAG,
    "spec.acknowledge": FactType.TEXTS,
    "spec.file": FactType.TEXT,
    "spec.path": FactType.TEXT,
    "cluster.name": FactType.TEXT,
    "cluster.kafka_version": FactType.NULLABLE,
}
_OF_CHANGES: Mapping[str, FactType] = {
    "change.actions": FactType.TEXTS,
    "change.before": FactType.NULLABLE,
    "change.after": FactType.NULLABLE,
    "change.partitions_added": FactType.COUNT,
    "change.config_keys": FactType.TEXTS,
    "change.risks": FactType.TEXTS,
}
VALUES = frozenset(
    {
        *("spec.partitions", "spec.replication_factor", "spec.config"),
        *("spec.rack_aware", "spec.assigned"),
    }
)
"""The facts that a topic to be deleted does not have: it will not exist with any value."""
FACTS_OF_SPECS: Mapping[str, FactType] = MappingProxyType(
    {**_OF_SPECS, **dict.fromkeys(UNITS, FactType.COUNT)}
)
FACTS_OF_CHANGES: Mapping[str, FactType] = MappingProxyType({**FACTS_OF_SPECS, **_OF_CHANGES})


@dataclass(frozen=True, slots=True)
class PolicyCluster:
    """The cluster for which rules are evaluated. `estate` is the directory of its topic files."""

    name: str
    kafka_version: str | None = None
    estate: str = ""


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """A topic before or after a change. `config` holds the known configs in force."""

    partitions: int
    replication_factor: int
    config: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ChangeFacts:
    """The change of one topic in a plan. `actions` holds the verbs of its steps."""

    actions: tuple[Verb, ...]
    before: TopicFacts | None
    after: TopicFacts | None
    config_keys: tuple[str, ...] = ()
    risks: tuple[str, ...] = ()


def state_spec_facts(
    spec: TopicSpec, cluster: PolicyCluster, read: ReadConfig
) -> dict[str, object]:
    """Return the facts of a spec."""
    return {
        **UNITS,
        "spec.name": spec.name,
        "spec.partitions": spec.partitions,
        "spec.replication_factor": spec.replication_factor,
        "spec.config": _read_all(spec.config, read),
        "spec.owner": spec.owner,
        "spec.description": spec.description,
        "spec.profile": spec.profile,
        "spec.labels": dict(spec.labels),
        "spec.absent": spec.absent,
        "spec.rack_aware": spec.rack_aware,
        "spec.assigned": spec.assignment is not None,
        "spec.acknowledge": sorted(spec.acknowledge.union(c.risk for c in spec.accepts)),
        "spec.file": spec.location.file,
        "spec.path": spec.location.file.removeprefix(f"{cluster.estate}/"),
        "cluster.name": cluster.name,
        "cluster.kafka_version": cluster.kafka_version,
    }


def omit_values(facts: Facts) -> dict[str, object]:
    """Return the facts of a topic to be deleted."""
    return {name: fact for name, fact in facts.items() if name not in VALUES}


def state_change_facts(change: ChangeFacts, read: ReadConfig) -> dict[str, object]:
    """Return the facts of a change. `state_spec_facts` returns those of its spec."""
    before, after = change.before, change.after
    grown = after.partitions - (before.partitions if before else 0) if after else 0
    return {
        "change.actions": list(map(str, change.actions)),
        "change.before": _describe_image(before, read),
        "change.after": _describe_image(after, read),
        "change.partitions_added": grown,
        "change.config_keys": list(change.config_keys),
        "change.risks": list(change.risks),
    }


def _describe_image(image: TopicFacts | None, read: ReadConfig) -> dict[str, object] | None:
    if image is None:
        return None
    return {
        "partitions": image.partitions,
        "replication_factor": image.replication_factor,
        "config": _read_all(image.config, read),
    }


def _read_all(config: Mapping[str, str], read: ReadConfig) -> dict[str, object]:
    return {key: read(key, value) for key, value in config.items()}
