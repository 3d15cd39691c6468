"""The sizes of the clusters of a synthetic fleet: a few huge clusters, many small ones."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from reconciler.errors import UsageError

if TYPE_CHECKING:
    from reconciler.model.cluster import Broker

STAGES = ("prod", "prod", "prod", "staging", "test")
REGIONS = ("eu", "us", "ap", "sa")
FEWEST_BROKERS, MOST_BROKERS = 3, 60
TYPICAL_BROKERS = 7


@dataclass(frozen=True, slots=True)
class FleetSize:
    """The size of a fleet. The numbers of live topics and live partitions are exact."""

    clusters: int
    topics: int
    partitions: int
    seed: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.clusters <= self.topics <= self.partitions:
            raise UsageError(
                f"{self.clusters:,} clusters, {self.topics:,} topics, {self.partitions:,} "
                "partitions: every cluster needs a topic, and every topic a partition"
            )


@dataclass(frozen=True, slots=True)
class ClusterShape:
    """The size of one cluster, before its topics are drawn.

    `first` counts the topics of the clusters before it. `dead`, `lagging` and `restarted` are
    indices of brokers, or None: `dead` is gone, the replicas of `lagging` are behind, `restarted`
    came back and leads few partitions yet.
    """

    number: int
    name: str
    cluster_id: str
    topics: int
    partitions: int
    first: int
    brokers: int
    racks: int
    lowest_id: int
    dead: int | None = None
    lagging: int | None = None
    restarted: int | None = None

    @property
    def ids(self) -> NDArray[np.int32]:
        """The ids of the brokers, by index."""
        return np.arange(self.lowest_id, self.lowest_id + self.brokers, dtype=np.int32)

    def list_brokers(self) -> list[Broker]:
        """List the brokers: racks alternate, and the rack of a missing broker is unknown."""
        from reconciler.model.cluster import Broker

        brokers = []
        for index, broker in enumerate(self.ids.tolist()):
            lacking = self.racks == 1 or index == self.dead
            rack = None if lacking else f"zone-{'abc'[index % self.racks]}"
            brokers.append(Broker(broker, rack, alive=index != self.dead))
        return brokers


@lru_cache(maxsize=4)
def draw_shapes(size: FleetSize) -> tuple[ClusterShape, ...]:
    """Draw the clusters of a fleet. Cost: a millisecond, so every worker draws them again."""
    rng = np.random.default_rng([size.seed, size.clusters])
    weights = rng.lognormal(0.0, 1.2, size.clusters)
    topics = 1 + divide(size.topics - size.clusters, weights)
    spare = topics * rng.lognormal(0.0, 0.25, size.clusters)
    partitions = topics + divide(size.partitions - size.topics, spare)
    racks = rng.choice([1, 2, 3], size.clusters, p=[0.2, 0.1, 0.7])
    brokers = TYPICAL_BROKERS * (partitions / np.median(partitions)) ** 0.8
    lowest = rng.choice([0, 1, 1, 1001], size.clusters)
    ids = rng.bytes(16 * size.clusters)
    first = np.cumsum(topics) - topics
    return tuple(
        ClusterShape(
            number=n,
            name=f"{STAGES[n % len(STAGES)]}-{REGIONS[n // len(STAGES) % len(REGIONS)]}-{n:03}",
            cluster_id=spell_id(ids[16 * n : 16 * n + 16]),
            topics=int(topics[n]),
            partitions=int(partitions[n]),
            first=int(first[n]),
            brokers=_fit_brokers(float(brokers[n]), int(racks[n])),
            racks=int(racks[n]),
            lowest_id=int(lowest[n]),
            dead=1 if n % 25 == 1 else None,
            lagging=2 if n % 20 == 2 else None,
            restarted=0 if n % 10 == 0 else None,
        )
        for n in range(size.clusters)
    )


def divide(total: int, weights: NDArray[np.float64]) -> NDArray[np.int64]:
    """Divide an integer in proportion to weights; the largest remainders are rounded up."""
    shares = total * weights / weights.sum()
    whole: NDArray[np.int64] = np.floor(shares).astype(np.int64)
    left = total - int(whole.sum())
    whole[np.argsort(whole - shares, kind="stable")[:left]] += 1
    return whole


def spell_id(sixteen: bytes) -> str:
    """Format an id like Kafka: sixteen bytes, base64 for URLs, without padding."""
    return base64.urlsafe_b64encode(sixteen).decode().rstrip("=")


def _fit_brokers(wished: float, racks: int) -> int:
    """Return a number of brokers that the racks divide evenly."""
    fewest = -(-FEWEST_BROKERS // racks) * racks
    return max(fewest, min(MOST_BROKERS, round(wished / racks) * racks))
