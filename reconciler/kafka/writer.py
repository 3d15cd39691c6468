"""Writes: one request per call, and an answer for every item of it.

Topics are deleted by their ids only, through kafka-python, since librdkafka cannot (KIP-516). A
topic that was created again has another id and cannot be deleted by mistake, so a request whose
answer was lost may be sent again.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import replace
from queue import Empty, SimpleQueue
from threading import Thread
from types import MappingProxyType
from typing import Any
from uuid import UUID

from confluent_kafka import ElectionType, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AclOperation,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from reconciler.errors import ClusterError, Finding
from reconciler.kafka.configs import CORDONED
from reconciler.kafka.connection import REQUEST_S as READ_S
from reconciler.kafka.connection import Connection
from reconciler.kafka.errors import (
    UntranslatableError,
    error_of,
    name_error,
    read_answer,
)
from reconciler.kafka.rights import check_topic_right
from reconciler.kafka.second_client import TIMEOUT_MS, open_second_client
from reconciler.kafka.trace import trace_request
from reconciler.model.cluster import Assignment, is_left_to_brokers
from reconciler.model.outcomes import Answer, AnswerKind
from reconciler.model.steps import (
    ConfigureTopic,
    CreateTopic,
    DeleteTopic,
    ElectLeaders,
    ExpandTopic,
    Step,
    Verb,
)
from reconciler.units import count

Answers = Mapping[str, Future[Any]]

# A broker that hangs costs this time, and the state is read again. What a quota asks to wait is not
# waited for in a request: it can be minutes, and the answer says how many.
REQUEST_S = 45.0
OPERATION_S = 40.0  # for the brokers, which answer by then; so a little less than for the request


class KafkaWriter:
    """A writer of one cluster through its connection; implements ClusterWriter."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def send(self, steps: Sequence[Step], *, validate_only: bool = False) -> Mapping[str, Answer]:
        """Send steps of one kind as one request, and read the answer to each."""
        if not steps:
            return {}
        if steps[0].verb is Verb.DELETE:  # by id, which needs another client
            doomed = [step for step in steps if isinstance(step, DeleteTopic)]
            return delete_by_id(self._connection, doomed, validate_only=validate_only)
        request = REQUESTS[steps[0].verb]
        try:
            client = self._connection.client()
            asked = request(client, steps, validate_only=validate_only)
        except ClusterError as error:  # there is no connection for it
            return _answer_all(steps, Answer(AnswerKind.NOT_DONE, "CONNECTION_LOST", str(error)))
        except (KafkaException, ValueError, TypeError) as error:  # nothing was sent
            return _answer_all(steps, Answer(AnswerKind.REFUSED, "INVALID_REQUEST", str(error)))
        # No retry here: a request without an answer may be queued in a frozen controller, which
        # carries it out later. The caller looks at the cluster before it sends anything again.
        said = f"{steps[0].verb} of {count(len(steps), 'topic')}"
        with trace_request(self._connection.entry.name, said + " (check)" * validate_only):
            wait(asked.values())
        answers = {topic: read_answer(answer.exception()) for topic, answer in asked.items()}
        if wait_s := self._connection.take_throttle(client):
            answers = {topic: replace(each, wait_s=wait_s) for topic, each in answers.items()}
        if any(answer.kind is AnswerKind.LOST for answer in answers.values()):
            self._connection.forget(client)  # the next request finds living brokers
        return answers


def _create_topics(
    client: AdminClient, steps: Sequence[CreateTopic], *, validate_only: bool
) -> Answers:
    """Create topics with every replica placed, or left to the brokers: CreateTopics."""
    # The client takes rows as lists only. It wants the number of partitions next to them, although
    # the protocol has it from the rows.
    topics = [
        NewTopic(
            step.topic,
            num_partitions=len(step.assignment),
            config=dict(step.config),
            **_place(step.assignment),
        )
        for step in steps
    ]
    return client.create_topics(
        topics,
        operation_timeout=OPERATION_S,
        request_timeout=REQUEST_S,
        validate_only=validate_only,
    )


def _place(rows: Assignment) -> dict[str, Any]:
    """Return what a request says of the replicas of new partitions."""
    if is_left_to_brokers(rows):
        return {"replication_factor": len(rows[-1])}
    return {"replica_assignment": [list(row) for row in rows]}


def _create_partitions(
    client: AdminClient, steps: Sequence[ExpandTopic], *, validate_only: bool
) -> Answers:
    """Append partitions with every replica placed, or left to the brokers: CreatePartitions."""
    partitions = []
    for step in steps:
        asked = _place(step.added)
        # The brokers know the number of replicas from the partitions that exist.
        asked.pop("replication_factor", None)
        partitions.append(NewPartitions(step.topic, step.first + len(step.added), **asked))
    return client.create_partitions(
        partitions,
        operation_timeout=OPERATION_S,
        request_timeout=REQUEST_S,
        validate_only=validate_only,
    )


def _alter_configs(
    client: AdminClient, steps: Sequence[ConfigureTopic], *, validate_only: bool
) -> Answers:
    """Set and unset overrides, all of a topic's or none: IncrementalAlterConfigs (KIP-339)."""
    resources = []
    for step in steps:
        entries = [
            ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
            for key, value in sorted(step.set.items())
        ]
        entries += [
            ConfigEntry(key, None, incremental_operation=AlterConfigOpType.DELETE)
            for key in sorted(step.unset)
        ]
        resource = ConfigResource(ResourceType.TOPIC, step.topic, incremental_configs=entries)
        resources.append(resource)
    asked = client.incremental_alter_configs(
        resources, request_timeout=REQUEST_S, validate_only=validate_only
    )
    return {resource.name: answer for resource, answer in asked.items()}


def _elect_leaders(
    client: AdminClient, steps: Sequence[ElectLeaders], *, validate_only: bool
) -> Answers:
    """Elect preferred leaders, never unclean ones: ElectLeaders (KIP-460).

    Brokers cannot be asked without electing: with `validate_only` nothing is sent.
    """
    answers: dict[str, Future[None]] = {step.topic: Future() for step in steps}
    if validate_only:
        for answer in answers.values():
            answer.set_result(None)
        return answers
    partitions = [TopicPartition(step.topic, p) for step in steps for p in step.leaders]
    # Any keyword, such as request_timeout, is a SystemError in confluent-kafka 2.16.1. Without one
    # the answer is waited for until the client's socket.timeout.ms, of 60 s by default.
    asked = client.elect_leaders(ElectionType.PREFERRED, partitions)
    wait([asked])
    refused: dict[str, BaseException] = {}
    if (failure := asked.exception()) is not None:
        refused = dict.fromkeys(answers, failure)
    else:
        for partition, error in asked.result().items():
            # A partition that its preferred leader leads already is as planned.
            if error is not None and error.code() != KafkaError.ELECTION_NOT_NEEDED:
                refused.setdefault(partition.topic, KafkaException(error))
    for topic, answer in answers.items():
        if topic in refused:
            answer.set_exception(refused[topic])
        else:
            answer.set_result(None)
    return answers


REQUESTS: Mapping[Verb, Callable[..., Answers]] = MappingProxyType(
    {
        Verb.CREATE: _create_topics,
        Verb.EXPAND: _create_partitions,
        Verb.CONFIGURE: _alter_configs,
        Verb.ELECT: _elect_leaders,
    }
)
"""The request of each kind of step that the first client can send."""


def delete_by_id(
    connection: Connection, steps: Sequence[DeleteTopic], *, validate_only: bool
) -> Mapping[str, Answer]:
    """Delete topics in one request, and return an answer for each.

    With `validate_only` a connection is opened and nothing is sent: brokers do not validate
    deletions. If the second client cannot connect with the settings, everything is refused:
    deleting by name is not an alternative.
    """
    from kafka.errors import KafkaError as ClientError
    from kafka.protocol.admin import DeleteTopicsRequest as Request

    sent = False
    try:
        described = connection.ask(
            lambda client: client.describe_cluster(request_timeout=READ_S).result(),
            f"asking for the brokers of {connection.entry.name}",
        )
        with open_second_client(connection.settings, described.nodes) as client:
            if validate_only:
                return _answer_all(steps, Answer(AnswerKind.ACCEPTED))
            doomed = Request.DeleteTopicState
            topics = [doomed(topic_id=read_id(step.topic_id)) for step in steps]
            sent = True
            # The client's own method drops how long a quota asks to wait.
            request = Request(topics=topics, timeout_ms=TIMEOUT_MS)
            told = client._manager.run(
                client._send_request_to_controller,
                request,
                _list_errors,
                False,  # noqa: FBT003
            )
    except UntranslatableError as error:
        text = f"topics are deleted by id, with a second client: {error}"
        return _answer_all(steps, Answer(AnswerKind.REFUSED, "UNSUPPORTED_FEATURE", text))
    except (ClusterError, ClientError, OSError, ValueError, RuntimeError) as error:
        text = f"{type(error).__name__}: {error}"
        kind = AnswerKind.LOST if sent else AnswerKind.NOT_DONE
        return _answer_all(steps, Answer(kind, "CONNECTION_LOST", text))
    # The brokers answer by id; an id without an answer is lost.
    by_id = {}
    for item in told.responses:
        code, said = item.error_code, item.error_message
        failure = KafkaException(KafkaError(code, said or None)) if code else None
        answer = read_answer(failure)
        by_id[str(item.topic_id)] = replace(answer, wait_s=told.throttle_time_ms / 1000)
    silence = Answer(AnswerKind.LOST, "CONNECTION_LOST", "the broker said nothing of this topic")
    return {step.topic: by_id.get(str(read_id(step.topic_id)), silence) for step in steps}


def _list_errors(told: Any) -> list[Any]:
    """List the errors of an answer, of which the client only looks for another controller."""
    from kafka.errors import for_code

    return [for_code(item.error_code) for item in told.responses]


def read_id(topic_id: str) -> UUID:
    """Read an id as Kafka spells it: 22 characters of base64 for URLs."""
    return UUID(bytes=urlsafe_b64decode(f"{topic_id}=="))


def _answer_all(steps: Sequence[Step], answer: Answer) -> Mapping[str, Answer]:
    return {step.topic: answer for step in steps}


PATIENCE_S = 15
GRACE_S = 2.0
"""The timeout of a record after a signal to end the run: CI kills after about 10 s."""

KEEP_PRINTED = "keep the record that is printed here instead"


def check_audit_topic(connection: Connection, topic: str, *, planned: bool) -> None:
    """Refuse if the topic is missing or may not be written to, unless the plan creates it.

    Errors: ClusterError with the way out.
    """
    absent = None
    if not planned:
        what = f"audit_topic {topic} is not on {connection.entry.name}"
        way_out = "write a spec for it and apply that first, or remove audit_topic"
        absent = Finding("audit-topic", what, way_out, connection.entry.location)
    check_topic_right(connection, topic, AclOperation.WRITE, absent)


def write_audit_record(connection: Connection, topic: str, key: str, record: str) -> None:
    """Write one record, and wait until all in-sync replicas have it.

    An interrupt shortens the wait to GRACE_S, a second one ends it. Errors: ClusterError if the
    replicas do not have the record by then or within 15 s, or if the topic refuses it.
    """
    answers: list[KafkaError | None] = []
    over: SimpleQueue[None] = SimpleQueue()

    def write() -> None:
        try:
            producer = connection.settings.build_producer(
                acks="all",
                enable_idempotence=True,
                message_timeout_ms=PATIENCE_S * 1000,
                # A run that does not look for the topic before must not have it created either.
                allow_auto_create_topics=False,
            )
            producer.produce(topic, record, key, on_delivery=lambda error, _: answers.append(error))
            producer.flush(PATIENCE_S + 1)  # longer than the record's own timeout, which answers
        except (KafkaException, BufferError, ClusterError) as error:
            answers.append(error_of(error))
        except SystemError as error:
            # A fatal error, such as that brokers do not offer InitProducerId, is raised by flush on
            # top of on_delivery, which has the answer by then (confluent-kafka 2.16.1).
            answers.append(error_of(error.__cause__ or error))
        over.put(None)

    # Not in the main thread: confluent-kafka 2.16.1 loses an interrupt that comes while it calls
    # on_delivery, and flush ends in a SystemError without a cause.
    Thread(target=write, daemon=True).start()
    answer = _await_answer(answers, over)
    if answer is not None:
        reason = f"{name_error(answer)}: {answer.str()}"
        what = f"audit_topic {topic} does not take the record of this run: {reason}"
        raise ClusterError([Finding("audit-lost", what, KEEP_PRINTED)])


def _await_answer(
    answers: Sequence[KafkaError | None], over: SimpleQueue[None]
) -> KafkaError | None:
    # The second wait follows an interrupt. Without one it only makes the first one longer: the
    # producer has answered by then, by its message_timeout_ms. An interrupt that comes with the
    # answer can take an item out of the queue and lose it, so the answer itself is in the list.
    for patience_s in (PATIENCE_S + 1, GRACE_S):
        with suppress(KeyboardInterrupt, Empty):
            over.get(timeout=patience_s)
        if answers:
            return answers[0]
    return KafkaError(KafkaError._TIMED_OUT)


CORDON_S = 15.0


def cordon_brokers(connection: Connection, brokers: Iterable[int]) -> None:
    """Cordon every log directory of some brokers. Errors: ClusterError. Kafka 4.3 or newer."""
    every = ConfigEntry(CORDONED, "*", incremental_operation=AlterConfigOpType.SET)
    asked = [
        ConfigResource(ResourceType.BROKER, str(broker), incremental_configs=[every])
        for broker in brokers
    ]

    def alter(client: AdminClient) -> None:
        for answer in client.incremental_alter_configs(asked, request_timeout=CORDON_S).values():
            answer.result()

    if asked:
        connection.ask(alter, f"cordoning brokers of {connection.entry.name}")
