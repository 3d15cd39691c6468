"""Configs of many topics: batches in flight to several brokers, folded as they come in.

Only what a topic overrides is kept; what is in force without an override is the same for nearly
all topics, so it is kept once.
"""

from __future__ import annotations

import gc
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ConfigResource, ConfigSource, ResourceType

from reconciler.kafka.connection import REQUEST_S
from reconciler.kafka.errors import DENIED, error_of, may_ask_again

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from confluent_kafka.admin import AdminClient, ConfigEntry

BATCH = 100  # measured: larger ones only delay the first answer, and cost memory
IN_FLIGHT = 8
ASKED_BROKERS = 5  # before a topic that one broker does not know counts as missing

# The client's type hints promise the member; what comes is its number.
_OVERRIDE = (ConfigSource.DYNAMIC_TOPIC_CONFIG, ConfigSource.DYNAMIC_TOPIC_CONFIG.value)


@dataclass(slots=True)
class TopicConfigs:
    """What the brokers answered.

    `known_by`: a broker that knows the topic, for each topic that any of those asked knows.
    """

    overrides: dict[str, dict[str, str | None]] = field(default_factory=dict)
    known_by: dict[str, int] = field(default_factory=dict)
    denied: set[str] = field(default_factory=set)
    in_force: dict[str, str] = field(default_factory=dict)
    disagreed: set[str] = field(default_factory=set)

    @property
    def defaults(self) -> dict[str, str]:
        """The value in force without an override, for keys on which all answers agree."""
        return {key: v for key, v in self.in_force.items() if key not in self.disagreed}

    def take(self, topic: str, broker: int, entries: Mapping[str, ConfigEntry]) -> None:
        """Fold one topic's answer in."""
        overrides: dict[str, str | None] = {}
        for key, entry in entries.items():
            value = entry.value
            if entry.source in _OVERRIDE:
                overrides[key] = None if entry.is_sensitive else value
            elif value is not None and self.in_force.setdefault(key, value) != value:
                self.disagreed.add(key)
        self.overrides[topic] = overrides
        self.known_by[topic] = broker


def read_configs(
    client: AdminClient, topics: Collection[str], brokers: Sequence[int]
) -> TopicConfigs:
    """Ask for the configs of topics; one that a broker does not know is asked of others.

    Errors: KafkaException where no broker answers for some topic.
    Cost: 0.2 ms a topic, nearly all of it the client's own conversion of the answers.
    """
    found = TopicConfigs()
    homes = {topic: n // BATCH for n, topic in enumerate(sorted(topics))}
    lost: list[KafkaException] = []
    with _without_collection():
        for turn in range(min(len(brokers), ASKED_BROKERS)):
            targets = {t: brokers[(home + turn) % len(brokers)] for t, home in homes.items()}
            again, lost = _ask_round(client, targets, found)
            homes = {topic: homes[topic] for topic in again}
    if lost:
        raise lost[0]
    return found


def _ask_round(
    client: AdminClient, targets: Mapping[str, int], found: TopicConfigs
) -> tuple[list[str], list[KafkaException]]:
    """Ask for each topic at its broker. Returns what to ask elsewhere, and why answers failed."""
    flying: deque[tuple[int, dict[ConfigResource, Future[dict[str, ConfigEntry]]]]] = deque()
    again: list[str] = []
    lost: list[KafkaException] = []
    for broker, batch in _cut_batches(targets):
        if len(flying) == IN_FLIGHT:
            _take_batch(*flying.popleft(), found, again, lost)
        resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in batch]
        asked = client.describe_configs(resources, request_timeout=REQUEST_S, broker=broker)
        flying.append((broker, asked))
    while flying:
        _take_batch(*flying.popleft(), found, again, lost)
    return again, lost


def _cut_batches(targets: Mapping[str, int]) -> Iterator[tuple[int, list[str]]]:
    """Yield batches for the brokers in turn, so that all of them have work at the same time."""
    by_broker: dict[int, list[str]] = {}
    for topic, broker in targets.items():
        by_broker.setdefault(broker, []).append(topic)
    longest = max(map(len, by_broker.values()), default=0)
    for start in range(0, longest, BATCH):
        for broker, topics in by_broker.items():
            if batch := topics[start : start + BATCH]:
                yield broker, batch


def _take_batch(
    broker: int,
    asked: dict[ConfigResource, Future[dict[str, ConfigEntry]]],
    found: TopicConfigs,
    again: list[str],
    lost: list[KafkaException],
) -> None:
    """Fold a batch's answers in, and let go of them."""
    for resource, answer in asked.items():
        try:
            found.take(resource.name, broker, answer.result())
        except KafkaException as exception:
            error = error_of(exception)
            if error.code() in DENIED:
                found.denied.add(resource.name)
            elif error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                again.append(resource.name)
            elif may_ask_again(error):
                again.append(resource.name)
                lost.append(exception)
            else:
                raise


@contextmanager
def _without_collection() -> Iterator[None]:
    """Hold the cyclic collector off: it walks every entry alive, and there are no cycles.

    Measured with 5,000 topics: 0.9 instead of 1.1 s, and 1.7 where answers pile up.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
