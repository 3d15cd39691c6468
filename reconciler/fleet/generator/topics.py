"""The topics of one synthetic cluster: its live topics, its specs, and their differences.

Rows are topics. Steps of the golden ratio over all topics of the fleet choose those that drift:
unlike random numbers they are spread evenly, so even a small fleet has each kind of drift.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from reconciler.fleet.generator.shapes import ClusterShape, FleetSize, divide, draw_shapes, spell_id

Counts = NDArray[np.int64]


class Drift(IntEnum):
    """How a topic and its spec differ."""

    NONE = 0
    MISSING = 1  # specified, missing
    GROW = 2  # more partitions specified
    SHRINK = 3  # fewer specified, which Kafka cannot do
    CONFIG = 4  # a specified value was changed by hand
    OVERRIDE = 5  # an unmanaged value was set by hand
    UNMANAGED = 6  # exists, unmanaged
    REPLICATION = 7  # fewer replicas than specified
    MIXED = 8  # one partition has fewer replicas than the others
    MOVING = 9  # more partitions specified while it is being reassigned


SHARES: Mapping[Drift, float] = MappingProxyType(
    {
        Drift.MISSING: 0.004,
        Drift.GROW: 0.005,
        Drift.SHRINK: 0.001,
        Drift.CONFIG: 0.010,
        Drift.OVERRIDE: 0.005,
        Drift.UNMANAGED: 0.020,
        Drift.REPLICATION: 0.002,
        Drift.MIXED: 0.001,
        Drift.MOVING: 0.001,
    }
)
"""The number of topics with each kind of drift, per live topic."""

PROFILES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "audit": {"compression.type": "zstd", "retention.ms": "31536000000"},
        "changelog": {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.2"},
        "dead-letter": {"retention.ms": "1209600000"},
        "event-log": {"compression.type": "zstd", "retention.ms": "604800000"},
        "metrics": {"compression.type": "lz4", "retention.ms": "86400000"},
    }
)
POPULARITY = (0.05, 0.15, 0.1, 0.6, 0.1)

OWNERS = (
    *("accounts", "ads", "billing", "carts", "catalog", "checkout", "devices", "fraud"),
    *("identity", "inventory", "loyalty", "media", "orders", "payments", "pricing", "returns"),
    *("reviews", "search", "sessions", "shipping", "stock", "support", "tracking", "warehouse"),
)
THINGS = ("changed", "clicks", "commands", "created", "events", "facts", "requests", "state")
INTERNAL = "__consumer_offsets"
USUAL_REPLICATION = 3

_FEW = (1, 2, 3, 4, 6, 8, 9, 10, 12, 15, 16, 18, 20, 24, 30, 32, 36, 48, 50, 60, 64, 72, 96)
_MANY = (100, 120, 128, 144, 192, 200, 240, 256, 300, 384, 400, 480, 500, 512, 600, 768, 1000)
_LADDER = np.array((*_FEW, *_MANY))
"""The partition counts that people choose."""

_GOLDEN = 0.6180339887498949


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of a cluster, one per row: first the live ones, then the missing ones.

    `partitions` and `replication` are 0 for a missing topic, `wished_…` for an unmanaged one.
    `profile` and `owner` are indices.
    """

    names: list[str]
    drift: NDArray[np.int8]
    partitions: Counts
    replication: Counts
    wished_partitions: Counts
    wished_replication: Counts
    profile: Counts
    owner: Counts
    ids: list[str]
    internal: int | None

    @property
    def live(self) -> int:
        """The number of live topics."""
        return len(self.ids)


def draw_cluster_topics(size: FleetSize, number: int) -> Topics:
    """Draw the topics of a cluster of a fleet."""
    return _draw_topics(size.seed, draw_shapes(size)[number])


@lru_cache(maxsize=1)
def _draw_topics(seed: int, shape: ClusterShape) -> Topics:
    rng = np.random.default_rng([seed, shape.number, 0])
    partitions = draw_partition_counts(rng, shape.topics, shape.partitions)
    drift = _choose_drift(shape, partitions)
    replaced = np.flatnonzero(drift == Drift.MISSING)  # each has a missing successor
    internal = _choose_internal(partitions, drift)
    drift[replaced] = Drift.NONE
    drift = np.concatenate([drift, np.full(len(replaced), Drift.MISSING)])
    if internal is not None:
        drift[internal] = Drift.UNMANAGED
    partitions = np.concatenate([partitions, np.zeros_like(replaced)])
    wished_replication = rng.choice([3, 2, 1], len(drift), p=[0.93, 0.05, 0.02])
    wished_replication[np.isin(drift, (Drift.REPLICATION, Drift.MIXED))] = USUAL_REPLICATION
    replication = wished_replication - (drift == Drift.REPLICATION)
    replication[drift == Drift.MISSING] = 0
    wished = _wish_partitions(rng, partitions, drift)
    wished_replication[wished == 0] = 0
    profile = rng.choice(len(PROFILES), len(drift), p=POPULARITY)
    owner = (rng.pareto(1.2, len(drift)) * 2).astype(np.int64) % len(OWNERS)
    ids = rng.bytes(16 * shape.topics)
    numbers = shape.first + np.concatenate([np.arange(shape.topics), replaced])
    return Topics(
        names=_name_topics(numbers.tolist(), drift, owner, internal),
        drift=drift.astype(np.int8),
        partitions=partitions,
        replication=replication,
        wished_partitions=wished,
        wished_replication=wished_replication,
        profile=profile,
        owner=owner,
        ids=[spell_id(ids[16 * n : 16 * n + 16]) for n in range(shape.topics)],
        internal=internal,
    )


def draw_partition_counts(rng: np.random.Generator, topics: int, total: int) -> Counts:
    """Draw a popular partition count for each topic; the largest topics adjust the total."""
    raw = 1 + divide(total - topics, rng.lognormal(0.0, 1.1, topics))
    at = np.searchsorted(_LADDER, raw, side="right") - 1
    counts = np.where(raw > _LADDER[-1], raw, _LADDER[at])
    largest = np.argsort(-counts, kind="stable")
    sign = 1 if total >= counts.sum() else -1
    room = counts[largest] if sign > 0 else counts[largest] - 1
    left = abs(total - int(counts.sum()))
    counts[largest] += sign * np.clip(left - (np.cumsum(room) - room), 0, room)
    return counts


def _choose_drift(shape: ClusterShape, partitions: Counts) -> NDArray[np.int64]:
    """Choose the drift of each topic; a topic of one partition cannot shrink or be mixed."""
    place = (shape.first + np.arange(1, shape.topics + 1)) * _GOLDEN % 1.0
    edges = np.cumsum([*SHARES.values()])
    kinds = np.array([*SHARES, Drift.NONE])
    drift = kinds[np.searchsorted(edges, place, side="right")]
    single = partitions == 1
    drift[single & (drift == Drift.SHRINK)] = Drift.GROW
    drift[single & (drift == Drift.MIXED)] = Drift.REPLICATION
    return drift


def _choose_internal(partitions: Counts, drift: NDArray[np.int64]) -> int | None:
    """Choose the topic for consumer offsets: one without drift and with about 50 partitions."""
    free = np.flatnonzero(drift == Drift.NONE)
    if len(partitions) < 10 or not len(free):
        return None
    return int(free[np.argmin(np.abs(partitions[free] - 50))])


def _wish_partitions(
    rng: np.random.Generator, partitions: Counts, drift: NDArray[np.int64]
) -> Counts:
    new = _LADDER[rng.choice([2, 4, 8, 13], len(drift), p=[0.3, 0.4, 0.2, 0.1])]
    half = np.maximum(partitions // 2, 1)
    wished = np.where(np.isin(drift, (Drift.GROW, Drift.MOVING)), partitions + half, partitions)
    wished = np.where(drift == Drift.SHRINK, half, wished)
    wished = np.where(drift == Drift.MISSING, new, wished)
    return np.where(drift == Drift.UNMANAGED, 0, wished)


def _name_topics(
    numbers: Iterable[int], drift: NDArray[np.int64], owner: Counts, internal: int | None
) -> list[str]:
    """Name the topics after their numbers; a missing topic has the number of a live one."""
    names = []
    for number, kind, who in zip(numbers, drift.tolist(), owner.tolist(), strict=True):
        prefix = "scratch" if kind == Drift.UNMANAGED else OWNERS[who]
        suffix = "-v2" if kind == Drift.MISSING else ""
        names.append(f"{prefix}.{THINGS[number % len(THINGS)]}-{number:06}{suffix}")
    if internal is not None:
        names[internal] = INTERNAL
    return names
