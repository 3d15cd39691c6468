"""Configs as rows: what is in force on topics, and where each value comes from."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from reconciler.errors import Location, UsageError
from reconciler.inventory.inventory import Inventory, suggest
from reconciler.model.cluster import TopicState
from reconciler.model.configs import ConfigValue, Origin
from reconciler.spec.catalogue import every_key

Told = Mapping[int, Mapping[str, ConfigValue]]
"""The configs in force on a topic without overrides of their own, by broker and key."""

NOBODY: Told = MappingProxyType({})

_RANK = {origin: rank for rank, origin in enumerate(Origin)}


@dataclass(frozen=True, slots=True)
class ConfigRow:
    """A value in force on a topic, and its origin.

    `value` is None if the brokers withhold it, or disagree: then `by_broker` has each one's value.
    `where` is the place of the spec's value. `specified` is that value if it is not in force; an
    empty text if the spec wants no override where there is one, None if nothing differs.
    `beneath` is the default that an override replaces, if it is known.
    """

    topic: str
    key: str
    value: str | None
    origin: Origin
    where: Location | None = None
    specified: str | None = None
    beneath: str | None = None
    by_broker: Mapping[int, str | None] | None = None


def list_configs(
    inventory: Inventory,
    topics: Iterable[TopicState],
    keys: Collection[str] = (),
    told: Told = NOBODY,
) -> Iterator[ConfigRow]:
    """Yield the overrides of topics, or the values in force of some keys."""
    for topic in topics:
        for key in sorted(keys or {*topic.config, *topic.disputed}):
            yield trace_config(inventory, topic, key, told)


def check_keys(inventory: Inventory, keys: Collection[str]) -> None:
    """Refuse configs that neither Kafka nor a topic has. Errors: UsageError."""
    known = {*every_key(), *inventory.state.config_defaults}
    known.update(key for topic in inventory.state.topics.values() for key in topic.config)
    for key in keys:
        if key not in known:
            raise UsageError(f"no topic has a config {key!r}{suggest(key, known)}")


def trace_config(inventory: Inventory, topic: TopicState, key: str, told: Told) -> ConfigRow:
    """Return the row of one config of a topic. In: what each broker says of its defaults.

    Without an override, brokers may differ: each has its own defaults.
    """
    spec = inventory.specs.get(topic.name)
    wished = spec.config.get(key) if spec else None
    place = spec.fields.get(f"config.{key}") if spec and wished is not None else None
    default = inventory.state.config_defaults.get(key)
    if key in topic.disputed:
        by_broker = topic.disputed[key]
        return ConfigRow(topic.name, key, None, Origin.TOPIC, place, wished, default, by_broker)
    if key in topic.config:
        value = topic.config[key]
        same = inventory.is_same(key, value, wished)
        origin = inventory.layers.get(place, Origin.SPEC) if place and same else Origin.TOPIC
        other = None if same or spec is None else wished or ""
        return ConfigRow(topic.name, key, value, origin, place, other, default)
    seen = {broker: entries[key] for broker, entries in told.items() if key in entries}
    values = {broker: one.value for broker, one in seen.items()}
    differ = len(set(values.values())) > 1
    # If they differ, one of them has a setting that wins over those of the others.
    first = min(seen.values(), key=lambda one: _RANK[one.origin], default=None)
    value = None if differ else first.value if first else default
    same = wished is None or inventory.is_same(key, value, wished)
    return ConfigRow(
        topic=topic.name,
        key=key,
        value=value,
        origin=first.origin if first else Origin.UNKNOWN,
        where=place,
        specified=None if same else wished,
        by_broker=values if differ else None,
    )
