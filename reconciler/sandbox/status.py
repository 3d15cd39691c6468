"""How a broker is, seen from outside Kafka."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class BrokerState(StrEnum):
    """What has become of a broker."""

    RUNNING = "running"
    STOPPED = "stopped"
    FROZEN = "frozen"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class BrokerStatus:
    """A broker, where it answers, and how it is; `reason` says why it died."""

    id: int
    rack: str | None
    address: str
    state: BrokerState
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ControllerStatus:
    """A controller; without an active one nothing of the cluster can be changed."""

    id: int
    address: str
    state: BrokerState
    reason: str = ""
    active: bool = False


@dataclass(frozen=True, slots=True)
class SandboxHealth:
    """Every node of the sandbox."""

    brokers: tuple[BrokerStatus, ...]
    controllers: tuple[ControllerStatus, ...]
