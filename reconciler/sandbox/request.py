"""The nouns of the sandbox: the request, the shape of a cluster, the state of its nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from reconciler.errors import SandboxError
from reconciler.model.cluster import Broker
from reconciler.planfile.snapshot import decode_snapshot, refuse_file
from reconciler.units import count

LARGEST_ID = 2**31 - 1
FIRST_CONTROLLER_ID = 3000


def spread_brokers(brokers: int, racks: int) -> tuple[Broker, ...]:
    """Return brokers 1..n, dealt in turn to rack0, rack1 and so on.

    Errors: SandboxError for counts that make no cluster.
    """
    if not 1 <= racks <= brokers:
        raise SandboxError(
            f"{count(brokers, 'broker')} cannot fill {racks} racks; racks must be between 1 and "
            "the number of brokers"
        )
    return tuple(Broker(n + 1, f"rack{n % racks}") for n in range(brokers))


def read_shape(file: Path) -> tuple[Broker, ...]:
    """Read broker ids and racks from a cluster's snapshot.

    Errors: SnapshotError naming everything that is wrong with the file.
    """
    try:
        content = file.read_bytes()
    except OSError as error:
        raise refuse_file(str(file), f"cannot be read: {error.strerror}") from error
    return decode_snapshot(content, str(file)).brokers


def describe_shape(brokers: Sequence[Broker], controllers: int = 1) -> str:
    """Return the size of a cluster as text, such as "6 brokers in 3 racks"."""
    racks = len({broker.rack for broker in brokers} - {None})
    where = f"in {count(racks, 'rack')}" if racks else "without racks"
    quorum = f", {controllers} controllers" if controllers > 1 else ""
    return f"{count(len(brokers), 'broker')} {where}{quorum}"


def choose_controller_ids(brokers: Sequence[Broker], number: int = 1) -> tuple[int, ...]:
    """Return ids that no broker has, for the controllers: they are nodes of their own."""
    taken = {broker.id for broker in brokers}
    free = (n for n in range(FIRST_CONTROLLER_ID, LARGEST_ID) if n not in taken)
    return tuple(islice(free, number))


NOTHING: Mapping[str, str] = MappingProxyType({})


class EngineName(StrEnum):
    """The engine that runs the brokers."""

    EMBEDDED = "embedded"
    CONTAINER = "container"


@dataclass(frozen=True, slots=True)
class ClusterRequest:
    """The options of a cluster to start.

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


class BrokerState(StrEnum):
    """The state of a broker."""

    RUNNING = "running"
    STOPPED = "stopped"
    FROZEN = "frozen"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class BrokerStatus:
    """A broker, its addresses, and its state; `reason` is the cause of its death."""

    id: int
    rack: str | None
    address: str
    state: BrokerState
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ControllerStatus:
    """A controller and its state. Without an active one, the cluster accepts no changes."""

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


class StartObserver(Protocol):
    """Receives the progress of a start, from one thread at a time."""

    def enter(self, stage: str) -> None:
        """Receive the stage that begins, such as "starting 3 brokers"."""
        ...

    def count(self, done: int, total: int) -> None:
        """Receive the progress of the current stage. Units: bytes; only downloads report it."""
        ...


class Silence:
    """A StartObserver that ignores everything."""

    def enter(self, stage: str) -> None:
        """Ignore it."""

    def count(self, done: int, total: int) -> None:
        """Ignore it."""
