"""The steps of a simulation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reconciler.model import Assignment


@dataclass(frozen=True, slots=True)
class Wanted:
    """A topic to create, or to grow to so many partitions.

    `replication` is None for a topic that grows, whose replication is what it is. `rows` lists
    the replicas of every partition where a spec does; nothing is left to place then.
    """

    topic: str
    partitions: int
    replication: int | None = None
    min_in_sync: int = 1
    rack_aware: bool = True
    rows: Assignment | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Create and grow topics, all of them placed together."""

    topics: tuple[Wanted, ...]


@dataclass(frozen=True, slots=True)
class AddBrokers:
    """Add brokers with the next ids, all in one rack, or else each where fewest are."""

    count: int
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class LoseBroker:
    """Lose a broker; its replicas stay assigned to it."""

    broker: int


@dataclass(frozen=True, slots=True)
class LoseRack:
    """Lose every broker of a rack at once."""

    rack: str


Step = Place | AddBrokers | LoseBroker | LoseRack
