"""What brokers say of themselves: which are cordoned, and what they make of topics' configs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import KafkaException
from confluent_kafka.admin import ConfigResource, ResourceType

from reconciler.kafka.connection import REQUEST_S
from reconciler.spec.catalogue import every_key

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from confluent_kafka.admin import AdminClient

    from reconciler.kafka.configs import TopicConfigs

# What a controller asks of its own settings before it takes a topic, or deletes one. All else that
# it holds a topic's configs against are its defaults for them (LogConfig.validate, 3.9 to 4.4).
_FLAGS = ("delete.topic.enable", "remote.log.storage.system.enable")

_MS = {"minutes": 60_000, "hours": 3_600_000}

# Up to Kafka 3.9 these do not follow their synonyms alone: the metadata version fixes the first,
# and log.message.timestamp.difference.max.ms stands in for the others.
_TANGLED = {
    "message.format.version",
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
}
_UP_TO_3_9 = "log.message.format.version"


def read_broker_configs(
    client: AdminClient, brokers: Sequence[int]
) -> dict[int, dict[str, str | None]]:
    """Return each broker's own configs.

    A broker that does not tell, for want of the right or of an answer, is left out.
    """
    asked = {
        broker: client.describe_configs(
            [ConfigResource(ResourceType.BROKER, str(broker))], request_timeout=REQUEST_S / 2
        )
        for broker in brokers
    }
    found = {}
    for broker, answers in asked.items():
        for answer in answers.values():
            try:
                found[broker] = {key: entry.value for key, entry in answer.result().items()}
            except KafkaException:
                continue
    return found


def find_cordoned(configs: Mapping[int, Mapping[str, str | None]]) -> frozenset[int]:
    """Return the brokers whose log directories are all cordoned (KIP-1066, Kafka 4.3).

    A broker that does not tell counts as not cordoned: the brokers themselves refuse what would
    be placed there.
    """
    return frozenset(broker for broker, values in configs.items() if _is_cordoned(values))


def find_settings(configs: Mapping[int, Mapping[str, str | None]]) -> dict[str, str]:
    """Return the flags that decide what topics may be; one that nobody tells is left out."""
    found = {}
    for flag in _FLAGS:
        told = {values[flag] for values in configs.values() if values.get(flag) is not None}
        if told:
            found[flag] = "true" if told == {"true"} else "false"
    return found


def complete_defaults(
    topics: TopicConfigs, brokers: Collection[Mapping[str, str | None]]
) -> dict[str, str]:
    """Return what is in force without an override, for every key that the topics show.

    A key that all of them override shows no default; the brokers tell it. One on which brokers
    disagree is left out, whichever of them the topics were asked of.
    """
    shown = topics.in_force.keys() | {key for each in topics.overrides.values() for key in each}
    told = {key: _list_defaults(key, brokers) for key in shown}
    disagreed = topics.disagreed | {key for key, values in told.items() if len(values) > 1}
    agreed = {key: value for key, values in told.items() for value in values}
    return {k: v for k, v in sorted({**agreed, **topics.defaults}.items()) if k not in disagreed}


def _list_defaults(key: str, brokers: Collection[Mapping[str, str | None]]) -> set[str]:
    """List the different values that brokers give topics without an override."""
    found = {_derive_default(key, values) for values in brokers}
    return {value for value in found if value is not None}


def _derive_default(key: str, broker: Mapping[str, str | None]) -> str | None:
    """Derive what a broker gives topics from its own configs, spelt as on the topic."""
    if key not in every_key() or (key in _TANGLED and _UP_TO_3_9 in broker):
        return None
    known = every_key()[key]
    if not known.synonyms:  # no broker config stands for it: it is the same everywhere
        return known.default
    for synonym in known.synonyms:
        value = broker.get(synonym)
        if value is not None:
            return _spell_as_topic(key, synonym, value)
    return None


def _spell_as_topic(key: str, synonym: str, value: str) -> str:
    """Brokers spell their own configs as those of topics, but for the unit, and no retention."""
    if key == "retention.ms" and value.startswith("-"):  # -1, in whatever unit it is written
        return "-1"
    factor = _MS.get(synonym.rpartition(".")[2])
    return value if factor is None else str(int(value) * factor)


def _is_cordoned(values: Mapping[str, str | None]) -> bool:
    cordoned = _read_list(values.get("cordoned.log.dirs"))
    directories = _read_list(values.get("log.dirs")) or _read_list(values.get("log.dir"))
    return "*" in cordoned or (bool(directories) and directories <= cordoned)


def _read_list(value: str | None) -> set[str]:
    return {part.strip() for part in (value or "").split(",") if part.strip()}
