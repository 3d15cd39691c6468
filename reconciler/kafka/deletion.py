"""Deleting topics by their ids, which librdkafka cannot: told through kafka-python (KIP-516).

The one place that deletes anything, and never by name: a topic that was created again has another
id, so it cannot be hit, and a request whose answer was lost may be sent again.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode
from typing import TYPE_CHECKING, Any
from uuid import UUID

from confluent_kafka import KafkaError, KafkaException

from reconciler.errors import ClusterError
from reconciler.kafka.connection import REQUEST_S
from reconciler.kafka.errors import UntranslatableError, read_answer
from reconciler.kafka.second_client import open_second_client
from reconciler.model import Answer, AnswerKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from reconciler.kafka.connection import Connection
    from reconciler.model import DeleteTopic


def delete_by_id(
    connection: Connection, steps: Sequence[DeleteTopic], *, validate_only: bool
) -> Mapping[str, Answer]:
    """Delete topics in one request, and answer for each.

    With `validate_only` a connection is opened and nothing is sent: brokers do not say
    beforehand whether they would delete. Where the second client cannot connect as the settings
    want it, everything is refused: by name is no way out.
    """
    from kafka.errors import KafkaError as ClientError

    sent = False
    try:
        described = connection.ask(
            lambda client: client.describe_cluster(request_timeout=REQUEST_S).result(),
            f"asking for the brokers of {connection.entry.name}",
        )
        with open_second_client(connection.settings, described.nodes) as client:
            if validate_only:
                return _answer_all(steps, Answer(AnswerKind.ACCEPTED))
            ids = [read_id(step.topic_id) for step in steps]
            sent = True
            told = client.delete_topics(ids, raise_errors=False)["topics"]
    except UntranslatableError as error:
        text = f"topics are deleted by their ids, with a client of its own: {error}"
        return _answer_all(steps, Answer(AnswerKind.REFUSED, "UNSUPPORTED_FEATURE", text))
    except (ClusterError, ClientError, OSError, ValueError, RuntimeError) as error:
        text = f"{type(error).__name__}: {error}"
        kind = AnswerKind.LOST if sent else AnswerKind.NOT_DONE
        return _answer_all(steps, Answer(kind, "CONNECTION_LOST", text))
    return _read_answers(steps, told)


def read_id(topic_id: str) -> UUID:
    """Read an id as Kafka spells it: 22 characters of base64 for URLs."""
    return UUID(bytes=urlsafe_b64decode(f"{topic_id}=="))


def _read_answers(
    steps: Sequence[DeleteTopic], told: Iterable[Mapping[str, Any]]
) -> Mapping[str, Answer]:
    """Read what was said of each id; what nothing was said of is lost."""
    by_id = {str(item["topic_id"]): _read_answer(item) for item in told}
    silence = Answer(AnswerKind.LOST, "CONNECTION_LOST", "the broker said nothing of this topic")
    return {step.topic: by_id.get(str(read_id(step.topic_id)), silence) for step in steps}


def _read_answer(item: Mapping[str, Any]) -> Answer:
    code = item["error_code"]
    if not code:
        return Answer(AnswerKind.ACCEPTED)
    return read_answer(KafkaException(KafkaError(code, item["error_message"] or None)))


def _answer_all(steps: Sequence[DeleteTopic], answer: Answer) -> Mapping[str, Answer]:
    return {step.topic: answer for step in steps}
