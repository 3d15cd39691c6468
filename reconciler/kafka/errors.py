"""The client's errors: whether a request may have taken effect, and their names in Kafka."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from confluent_kafka import KafkaError, KafkaException

from reconciler.errors import ClusterError, Finding
from reconciler.model.outcomes import Answer, AnswerKind

# Errors that do not show whether a request took effect. Codes below zero are the client's own,
# except UNKNOWN_SERVER_ERROR (-1), which a broker sends for an unexpected error. Before Kafka 4.4 a
# CreatePartitions that is too large ends with it, after a part of it was committed.
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

# Client errors about the request itself: nothing was sent.
_NEVER_SENT = frozenset({KafkaError._INVALID_ARG, KafkaError._UNSUPPORTED_FEATURE})

DENIED = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
    }
)

# Answers of a broker while leaders or coordinators move, or load their data.
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


_UNOFFERED = re.compile(r"(?P<name>[A-Z]\w+)\b.* not supported by broker")


class UntranslatableError(Exception):
    """A setting of librdkafka has no counterpart in the second client; says which."""


class TokenError(OSError):
    """No OAuth token is available. The message has the source and the reason, without secrets."""

    def __init__(self, what: str, way_out: str = "check that the token endpoint answers") -> None:
        self.way_out = way_out
        super().__init__(what)


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
    """Return whether a request may be sent again after this error."""
    code = error.code()
    return code in _UNDECIDED or (code < 0 and code not in _NEVER_SENT)


def may_pass(error: KafkaError) -> bool:
    """Return whether the same request may succeed a few seconds later.

    The client's own time-outs are not such errors: the client has already retried.
    """
    return error.code() in _PASSING


def may_ask_again(error: KafkaError) -> bool:
    """Return whether a read request may get an answer when it is retried."""
    return leaves_open(error) or may_pass(error)


def name_unoffered(error: KafkaError) -> str:
    """Name the request that librdkafka did not send, since the brokers do not offer it; or ""."""
    told = (
        _UNOFFERED.match(error.str()) if error.code() == KafkaError._UNSUPPORTED_FEATURE else None
    )
    return told["name"] if told else ""


def explain_error(error: KafkaError) -> str:
    """Name an error with its text, or the request that the brokers do not offer."""
    unoffered = name_unoffered(error)
    if unoffered:
        return f"the brokers do not offer {unoffered}"
    return f"{name_error(error)}: {error.str()}"


def read_answer(exception: BaseException | None) -> Answer:
    """Translate the result of one item of a request. None: the broker accepted it."""
    if exception is None:
        return Answer(AnswerKind.ACCEPTED)
    error = error_of(exception)
    if error.code() == KafkaError.THROTTLING_QUOTA_EXCEEDED:  # answered before anything is changed
        kind = AnswerKind.NOT_DONE
    else:
        kind = AnswerKind.LOST if leaves_open(error) else AnswerKind.REFUSED
    unoffered = name_unoffered(error)
    text = f"they do not offer {unoffered}" if unoffered else error.str()
    return Answer(kind, name_error(error), text)


def refuse_request(error: KafkaError, what: str) -> ClusterError:
    """Return the error for a read request that the brokers refused permanently."""
    text = f"{what}: {explain_error(error)}"
    way_out = "the brokers' logs say more"
    if name_unoffered(error):
        way_out = "this cannot be asked of this cluster through Kafka"
    return ClusterError([Finding("cluster-answer", text, way_out)])
