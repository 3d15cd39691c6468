"""A broker as a judge of configs and names: what it would take, and what it says afterwards."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from reconciler.spec.configs import Catalogue

TOPICS_A_REQUEST = 250
TIMEOUT_S = 60
VERDICTS = {
    KafkaError.INVALID_CONFIG,
    KafkaError.INVALID_REQUEST,
    KafkaError.TOPIC_EXCEPTION,
}


def _read_verdict(error: KafkaException | None) -> str:
    """Return why a broker refuses; an answer that is no verdict on the topic fails the test."""
    if error is None:
        return ""
    assert error.args[0].code() in VERDICTS, error
    return str(error.args[0].str())


@dataclass(frozen=True)
class Judge:
    """A running release, and the catalogue that should agree with it."""

    release: str
    servers: str
    known: Catalogue
    admin: AdminClient

    def judge(self, topics: Sequence[tuple[str, Mapping[str, str]]]) -> list[str]:
        """Return for each topic why the broker would not create it; nothing where it would."""
        reasons: list[str] = []
        for first in range(0, len(topics), TOPICS_A_REQUEST):
            reasons += self._judge_request(topics[first : first + TOPICS_A_REQUEST])
        return reasons

    def _judge_request(self, topics: Sequence[tuple[str, Mapping[str, str]]]) -> list[str]:
        wishes = [NewTopic(name, 1, 1, config=dict(config)) for name, config in topics]
        try:
            answers = self.admin.create_topics(wishes, validate_only=True)
        except KafkaException as error:  # the client itself takes no such request
            assert len(wishes) == 1
            return [str(error)]
        return [_read_verdict(answers[name].exception(TIMEOUT_S)) for name, _ in topics]

    def judge_values(self, pairs: Sequence[tuple[str, str]]) -> list[str]:
        """Return for each key and value why the broker would refuse it."""
        return self.judge([(f"v{n}", {key: value}) for n, (key, value) in enumerate(pairs)])

    def create(self, configs: Mapping[str, Mapping[str, str]]) -> None:
        """Create topics of one partition, and wait until the broker knows them."""
        wishes = [NewTopic(name, 1, 1, config=dict(config)) for name, config in configs.items()]
        for answer in self.admin.create_topics(wishes).values():
            answer.result(TIMEOUT_S)
        deadline = time.monotonic() + TIMEOUT_S
        while not configs.keys() <= self.admin.list_topics(timeout=TIMEOUT_S).topics.keys():
            assert time.monotonic() < deadline
            time.sleep(0.1)

    def report(self, names: Sequence[str]) -> dict[str, dict[str, str]]:
        """Return what the broker says each topic's overrides are."""
        resources = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in names]
        answers = self.admin.describe_configs(resources)
        return {
            resource.name: {
                name: entry.value
                for name, entry in answer.result(TIMEOUT_S).items()
                if entry.source == 1
            }
            for resource, answer in answers.items()
        }
