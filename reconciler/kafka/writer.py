"""Writing: one request a call, and an honest answer for every item of it."""

from __future__ import annotations

from concurrent.futures import wait
from typing import TYPE_CHECKING, Any, TypeVar

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from reconciler.errors import ClusterError
from reconciler.kafka.deletion import delete_by_id
from reconciler.kafka.errors import read_answer
from reconciler.model import Answer, AnswerKind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from concurrent.futures import Future

    from confluent_kafka.admin import AdminClient

    from reconciler.kafka.connection import Connection
    from reconciler.model import AddPartitions, AlterConfig, CreateTopic, DeleteTopic, Step

S = TypeVar("S", bound="Step")

# A controller that holds a client back (controller_mutation_rate) answers at once and delays the
# next request on the connection: half a minute was seen, and it is no failure. A broker that
# hangs costs as much, and is looked at again.
REQUEST_S = 45.0
OPERATION_S = 40.0


class KafkaWriter:
    """Changes one cluster through its connection; implements ClusterWriter."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def create_topics(
        self, steps: Sequence[CreateTopic], *, validate_only: bool = False
    ) -> Mapping[str, Answer]:
        """Create topics with every replica placed."""
        return self._request(
            steps,
            lambda client: client.create_topics(
                [_new_topic(step) for step in steps],
                operation_timeout=OPERATION_S,
                request_timeout=REQUEST_S,
                validate_only=validate_only,
            ),
        )

    def add_partitions(
        self, steps: Sequence[AddPartitions], *, validate_only: bool = False
    ) -> Mapping[str, Answer]:
        """Append partitions with every replica placed."""
        return self._request(
            steps,
            lambda client: client.create_partitions(
                [_new_partitions(step) for step in steps],
                operation_timeout=OPERATION_S,
                request_timeout=REQUEST_S,
                validate_only=validate_only,
            ),
        )

    def alter_configs(
        self, steps: Sequence[AlterConfig], *, validate_only: bool = False
    ) -> Mapping[str, Answer]:
        """Set and unset overrides, all of a topic's or none."""
        return self._request(
            steps,
            lambda client: {
                resource.name: answer
                for resource, answer in client.incremental_alter_configs(
                    [_alteration(step) for step in steps],
                    request_timeout=REQUEST_S,
                    validate_only=validate_only,
                ).items()
            },
        )

    def delete_topics(
        self, steps: Sequence[DeleteTopic], *, validate_only: bool = False
    ) -> Mapping[str, Answer]:
        """Delete topics by their ids; with `validate_only`, see only that they can be told."""
        if not steps:
            return {}
        return delete_by_id(self._connection, steps, validate_only=validate_only)

    def _request(
        self, steps: Sequence[S], send: Callable[[AdminClient], Mapping[str, Future[Any]]]
    ) -> Mapping[str, Answer]:
        """Send one request and read every answer."""
        if not steps:
            return {}
        try:
            client = self._connection.client()
            asked = send(client)
        except ClusterError as error:  # there is no connection to send it on
            return _answer_all(steps, AnswerKind.NOT_DONE, "CONNECTION_LOST", str(error))
        except (KafkaException, ValueError, TypeError) as error:
            return _answer_all(steps, AnswerKind.REFUSED, "INVALID_REQUEST", str(error))
        wait(asked.values())
        answers = {topic: read_answer(answer.exception()) for topic, answer in asked.items()}
        if any(answer.kind is AnswerKind.LOST for answer in answers.values()):
            self._connection.forget(client)  # the next request finds living brokers
        return answers


def _answer_all(
    steps: Sequence[S], kind: AnswerKind, error: str, text: str
) -> Mapping[str, Answer]:
    return {step.topic: Answer(kind, error, text) for step in steps}


def _new_topic(step: CreateTopic) -> NewTopic:
    """Spell a topic for the client, which wants the count beside the assignment, and lists."""
    rows = [list(row) for row in step.assignment]
    return NewTopic(
        step.topic, num_partitions=len(rows), replica_assignment=rows, config=dict(step.config)
    )


def _new_partitions(step: AddPartitions) -> NewPartitions:
    rows = [list(row) for row in step.added]
    return NewPartitions(step.topic, step.first + len(rows), rows)


def _alteration(step: AlterConfig) -> ConfigResource:
    entries = [
        ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        for key, value in sorted(step.set.items())
    ]
    entries += [
        ConfigEntry(key, None, incremental_operation=AlterConfigOpType.DELETE)
        for key in sorted(step.unset)
    ]
    return ConfigResource(ResourceType.TOPIC, step.topic, incremental_configs=entries)
