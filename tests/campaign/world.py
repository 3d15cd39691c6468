"""What a round starts from: topics that live, and an estate that wants them otherwise."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from campaign.child import SCALED_RECORDS, SCALED_TOPICS

BROKERS = (1, 2, 3)
CLUSTER = "lab"
# None is the brokers' own value: reconciler leaves a wish for that unset.
CONFIGS: Mapping[str, Sequence[str]] = {
    "retention.ms": ("86400000", "172800000", "604800001"),
    "retention.bytes": ("1073741824", "2147483648"),
    "flush.messages": ("7", "1000"),
    "flush.ms": ("50", "1000"),
    "segment.bytes": ("1048576", "16777216"),
    "max.message.bytes": ("500000", "2097152"),
    "compression.type": ("zstd", "lz4"),
    "delete.retention.ms": ("3600000", "86400001"),
}
RISKS = ["ordering", "data-loss", "durability", "traffic"]


@dataclass(frozen=True, slots=True)
class Live:
    """A topic that is on the cluster before the round."""

    name: str
    rows: tuple[tuple[int, ...], ...]
    config: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Wish:
    """What the estate says of a topic. `refused`: the plan must refuse it, and why."""

    name: str
    partitions: int
    factor: int
    config: Mapping[str, str]
    absent: bool = False
    refused: str = ""
    acknowledged: bool = True


@dataclass(frozen=True, slots=True)
class World:
    """A round's beginning. `saved`: a saved plan is applied; `scaled`: with less patience."""

    live: tuple[Live, ...]
    wishes: tuple[Wish, ...]
    saved: bool
    scaled: bool
    skip_refused: bool
    prefix: str

    @property
    def writes(self) -> int:
        """How many requests that change something an undisturbed apply sends, about."""
        lives = {live.name: live for live in self.live}
        creates = [w for w in self.wishes if w.name not in lives]
        known = [(lives[w.name], w) for w in self.wishes if w.name in lives and not w.refused]
        expands = [w for live, w in known if w.partitions > len(live.rows) and not w.absent]
        configs = [w for live, w in known if w.config != live.config and not w.absent]
        deletes = any(w.absent for _, w in known)
        topics = SCALED_TOPICS if self.scaled else 2_000
        large = sum(w.partitions // SCALED_RECORDS for w in self.wishes) if self.scaled else 0
        batches = sum(-(-len(kind) // topics) for kind in (creates, expands, configs))
        return max(1, batches + large + deletes)


def draw_world(rng: random.Random, prefix: str) -> World:
    """Draw a round's world; names carry its prefix, so that rounds share a cluster."""
    live = tuple(_draw_live(rng, f"{prefix}live{n}") for n in range(rng.randint(4, 8)))
    wishes = [_wish_of(rng, topic) for topic in live if rng.random() < 0.9]
    wishes += [_draw_new(rng, f"{prefix}new{n}") for n in range(rng.randint(1, 6))]
    refusing = rng.random() < 0.2
    wishes = [_refuse(rng, w, live) if refusing and rng.random() < 0.3 else w for w in wishes]
    refused = any(wish.refused for wish in wishes)
    return World(
        live,
        tuple(wishes),
        saved=rng.random() < 0.25 and not refused,
        scaled=rng.random() < 0.9,
        skip_refused=refused and rng.random() < 0.9,
        prefix=prefix,
    )


def write_estate(world: World, directory: Path, audit: str, *, refused: bool = True) -> None:
    """Write the estate of a world, with or without what is refused of it."""
    topics = directory / "topics"
    topics.mkdir(exist_ok=True)
    cluster = {
        "audit_topic": audit,
        "owns": [f"{world.prefix}*"],
        "guards": {"max_deletes": 20, "unused_for": "1s"},
    }
    estate = {"version": 1, "clusters": {CLUSTER: cluster}}
    (topics / "clusters.yaml").write_text(yaml.safe_dump(estate, sort_keys=False))
    documents = [_spell(wish) for wish in world.wishes if refused or not wish.refused]
    (topics / "topics.yaml").write_text(yaml.safe_dump_all(documents, sort_keys=False))


def _spell(wish: Wish) -> dict[str, object]:
    if wish.absent:
        return {"topic": wish.name, "state": "absent"}
    return {
        "topic": wish.name,
        "partitions": wish.partitions,
        "replication_factor": wish.factor,
        "config": dict(wish.config),
        "acknowledge": RISKS if wish.acknowledged else [],
    }


def _draw_live(rng: random.Random, name: str) -> Live:
    factor = rng.choice((1, 2, 2, 3))
    rows = tuple(tuple(rng.sample(BROKERS, factor)) for _ in range(rng.randint(1, 4)))
    return Live(name, rows, _draw_config(rng))


def _draw_config(rng: random.Random) -> dict[str, str]:
    keys = rng.sample(sorted(CONFIGS), rng.randint(0, 3))
    return {key: rng.choice(CONFIGS[key]) for key in sorted(keys)}


def _draw_new(rng: random.Random, name: str) -> Wish:
    large = rng.random() < 0.2
    partitions = rng.randint(SCALED_RECORDS + 1, 3 * SCALED_RECORDS) if large else rng.randint(1, 4)
    return Wish(name, partitions, rng.choice((1, 2, 3)), _draw_config(rng))


def _wish_of(rng: random.Random, live: Live) -> Wish:
    partitions, factor = len(live.rows), len(live.rows[0])
    if rng.random() < 0.15:
        return Wish(live.name, partitions, factor, live.config, absent=True)
    if rng.random() < 0.6:
        partitions += rng.choice((1, 1, 2, 4, SCALED_RECORDS + 2))
    config = _draw_config(rng) if rng.random() < 0.5 else dict(live.config)
    return Wish(live.name, partitions, factor, config)


def _refuse(rng: random.Random, wish: Wish, lives: Sequence[Live]) -> Wish:
    """Turn a wish for a live topic into one that the plan must refuse."""
    live = next((topic for topic in lives if topic.name == wish.name), None)
    if live is None or wish.absent:
        return wish
    partitions, factor = len(live.rows), len(live.rows[0])
    ways = ["factor", "risk"] + ["fewer"] * (partitions > 1)
    match rng.choice(ways):
        case "fewer":
            return Wish(wish.name, partitions - 1, factor, wish.config, refused="fewer partitions")
        case "factor":
            other = factor % 3 + 1
            return Wish(wish.name, partitions, other, wish.config, refused="replication factor")
        case _:
            lower = {**live.config, "retention.ms": "3600000"}
            why = "data loss not acknowledged"
            return Wish(wish.name, partitions, factor, lower, refused=why, acknowledged=False)
