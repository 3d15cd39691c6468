"""What to start: a cluster as it was asked for, whatever the engine."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reconciler.model import Broker

NOTHING: Mapping[str, str] = MappingProxyType({})


class EngineName(StrEnum):
    """What the brokers run in."""

    EMBEDDED = "embedded"
    CONTAINER = "container"


@dataclass(frozen=True, slots=True)
class ClusterRequest:
    """A cluster that someone wants.

    `controllers`: how many nodes keep the metadata. `listeners`: further listeners of every broker,
    name to security protocol. `properties`: for every node, over the sandbox's own;
    `broker_properties`: for single nodes. `scram_users`: as `kafka-storage format --add-scram`
    takes them. `isolate` and `jvm_options` are for the embedded engine, `image` for the container
    engine.
    """

    brokers: tuple[Broker, ...]
    kafka_version: str
    isolate: bool
    image: str | None
    controllers: int
    listeners: Mapping[str, str]
    properties: Mapping[str, str]
    broker_properties: Mapping[int, Mapping[str, str]]
    scram_users: Sequence[str]
    jvm_options: Sequence[str]
    log_directories: int
    timeout_s: float
