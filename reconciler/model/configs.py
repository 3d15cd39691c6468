"""The configs in force on a topic, and where each value comes from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Origin(StrEnum):
    """Where a value in force comes from; an earlier origin wins over a later one.

    The first five are values of specs that the topic has. `TOPIC`: set on the topic, by no spec.
    `BROKER`, `BROKERS` and `STATIC` are set on one broker, as the default of all brokers, and in
    server.properties. `UNKNOWN`: no override, and nobody was asked where the default is from.
    """

    OVERRIDE = "override"
    SPEC = "spec"
    PROFILE = "profile"
    CLUSTER_DEFAULTS = "cluster-defaults"
    ESTATE_DEFAULTS = "estate-defaults"
    TOPIC = "topic"
    BROKER = "broker"
    BROKERS = "all-brokers"
    STATIC = "static"
    KAFKA = "kafka-default"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ConfigValue:
    """A value as one broker reports it. `value` is None if the broker withholds it."""

    value: str | None
    origin: Origin
