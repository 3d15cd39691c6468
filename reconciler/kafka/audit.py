"""A topic that takes a record of every apply: checked before, never created, written to after."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AclOperation

from reconciler.errors import ClusterError, Finding
from reconciler.kafka.errors import error_of, keep_interrupts, name_error
from reconciler.kafka.rights import describe_topics, is_denial, missing_on_topic

if TYPE_CHECKING:
    from reconciler.kafka.connection import Connection

PATIENCE_S = 15


def check_audit_topic(connection: Connection, topic: str, *, planned: bool) -> None:
    """Refuse where the topic is missing or may not be written to, unless the plan creates it.

    Errors: ClusterError with the way out.
    """
    what = f"asking for the audit topic of {connection.entry.name}"
    found = connection.ask(lambda client: describe_topics(client, [topic]), what)[topic]
    if isinstance(found, KafkaError):
        if is_denial(found):
            raise ClusterError([missing_on_topic(connection, "Write", topic)])
        if not planned:
            what = f"audit_topic {topic} is not on {connection.entry.name}"
            way_out = "give it a spec and apply that first, or take audit_topic away"
            raise ClusterError([Finding("audit-topic", what, way_out, connection.entry.location)])
    elif AclOperation.WRITE not in (found.authorized_operations or ()):
        raise ClusterError([missing_on_topic(connection, "Write", topic)])


def write_audit_record(connection: Connection, topic: str, key: str, record: str) -> None:
    """Write one record, and wait until all in-sync replicas have it.

    Errors: ClusterError where they do not within 15 s, or where the topic does not take it.
    """
    answers: list[KafkaError | None] = []
    try:
        with keep_interrupts():
            producer = connection.settings.build_producer(
                acks="all", enable_idempotence=True, message_timeout_ms=PATIENCE_S * 1000
            )
            producer.produce(topic, record, key, on_delivery=lambda error, _: answers.append(error))
            producer.flush(PATIENCE_S + 1)
    except (KafkaException, BufferError) as error:
        answers.append(error_of(error))
    except KeyboardInterrupt:
        pass  # the apply is over: what counts is whether the record has arrived by now
    answer = answers[0] if answers else KafkaError(KafkaError._TIMED_OUT)
    if answer is not None:
        reason = f"{name_error(answer)}: {answer.str()}"
        what = f"audit_topic {topic} does not take the record of this apply: {reason}"
        way_out = "keep the record that is printed here instead"
        raise ClusterError([Finding("audit-lost", what, way_out)])
