"""What the client's errors mean: whether a request may have been done, and Kafka's own names."""

from __future__ import annotations

from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException

from reconciler.errors import ClusterError, Finding
from reconciler.model import Answer, AnswerKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# What says nothing about whether a request was done. Codes below zero are the client's own, among
# them UNKNOWN_SERVER_ERROR (-1), which a broker sends for what it did not foresee.
_UNDECIDED = frozenset(
    {
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.NOT_CONTROLLER,
        KafkaError.THROTTLING_QUOTA_EXCEEDED,
    }
)

# Client errors that are about the request itself: nothing was sent.
_NEVER_SENT = frozenset({KafkaError._INVALID_ARG, KafkaError._UNSUPPORTED_FEATURE})

DENIED = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
    }
)

# What a broker answers while the cluster moves leaders or coordinators, or loads what they hold.
_PASSING = _UNDECIDED | {
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.REPLICA_NOT_AVAILABLE,
    KafkaError.OFFSET_NOT_AVAILABLE,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.KAFKA_STORAGE_ERROR,
    KafkaError.UNSTABLE_OFFSET_COMMIT,
}

# librdkafka abbreviates some of the protocol's names.
_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "UNKNOWN": "UNKNOWN_SERVER_ERROR",
        "TOPIC_EXCEPTION": "INVALID_TOPIC_EXCEPTION",
        "UNKNOWN_TOPIC_OR_PART": "UNKNOWN_TOPIC_OR_PARTITION",
        "_TIMED_OUT": "TIMED_OUT",
        "_TRANSPORT": "CONNECTION_LOST",
    }
)


class UntranslatableError(Exception):
    """A setting of librdkafka has no counterpart in the second client; says which."""


def error_of(exception: BaseException) -> KafkaError:
    """Return the error that a client's exception carries."""
    if isinstance(exception, KafkaException) and isinstance(exception.args[0], KafkaError):
        return exception.args[0]
    return KafkaError(KafkaError._FAIL, str(exception))


def name_error(error: KafkaError) -> str:
    """Name an error as the Kafka protocol does."""
    name = error.name()
    return _NAMES.get(name, name)


def leaves_open(error: KafkaError) -> bool:
    """Say whether a request with this error may be sent again: nothing is decided by it."""
    code = error.code()
    return code in _UNDECIDED or (code < 0 and code not in _NEVER_SENT)


def may_pass(error: KafkaError) -> bool:
    """Tell whether a broker may answer the same question otherwise a few seconds later.

    The client's own time-outs are none: it has asked again by then.
    """
    return error.code() in _PASSING


def may_ask_again(error: KafkaError) -> bool:
    """Say whether a question that changes nothing may get an answer when it is asked again."""
    return leaves_open(error) or may_pass(error)


def read_answer(exception: BaseException | None) -> Answer:
    """Translate what became of one item of a request. None: the broker accepted it."""
    if exception is None:
        return Answer(AnswerKind.ACCEPTED)
    error = error_of(exception)
    return Answer(_judge(error), name_error(error), error.str())


def _judge(error: KafkaError) -> AnswerKind:
    if error.code() == KafkaError.THROTTLING_QUOTA_EXCEEDED:  # answered before anything is done
        return AnswerKind.NOT_DONE
    return AnswerKind.LOST if leaves_open(error) else AnswerKind.REFUSED


def refuse_request(error: KafkaError, what: str) -> ClusterError:
    """Say that the brokers answered a reading request with an error that waiting does not mend."""
    text = f"{what}: {name_error(error)}: {error.str()}"
    way_out = "the brokers' logs say more"
    return ClusterError([Finding("cluster-answer", text, way_out)])


@contextmanager
def keep_interrupts() -> Iterator[None]:
    """Raise an interrupt as such that arrives while the client's C code runs.

    That code calls Python, such as each future's methods, where signals are taken. It returns a
    result all the same, and Python then raises a SystemError whose cause is the interrupt.
    """
    try:
        yield
    except SystemError as error:
        if isinstance(error.__cause__, KeyboardInterrupt):
            raise KeyboardInterrupt from error
        raise
