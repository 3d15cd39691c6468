"""What a client's error says of a request: refused, or lost, by Kafka's own names."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException

from reconciler.kafka.errors import (
    leaves_open,
    may_ask_again,
    may_pass,
    name_error,
    read_answer,
)
from reconciler.model.outcomes import Answer, AnswerKind

LOST = [
    KafkaError._TIMED_OUT,
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._DESTROY,
    KafkaError.UNKNOWN,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.NOT_CONTROLLER,
    KafkaError.NETWORK_EXCEPTION,
    KafkaError.BROKER_NOT_AVAILABLE,
]
PASSING = [
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.REPLICA_NOT_AVAILABLE,
    KafkaError.OFFSET_NOT_AVAILABLE,
    KafkaError.KAFKA_STORAGE_ERROR,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.UNSTABLE_OFFSET_COMMIT,
]
REFUSED = [
    KafkaError.TOPIC_ALREADY_EXISTS,
    KafkaError.INVALID_PARTITIONS,
    KafkaError.INVALID_CONFIG,
    KafkaError.POLICY_VIOLATION,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._INVALID_ARG,
]


@pytest.mark.parametrize("code", LOST)
def test_what_says_nothing_of_the_request_is_lost(code: int) -> None:
    assert leaves_open(KafkaError(code))
    assert read_answer(KafkaException(KafkaError(code))).kind is AnswerKind.LOST


def test_what_a_quota_holds_back_is_not_done_and_may_be_sent_again() -> None:
    error = KafkaError(KafkaError.THROTTLING_QUOTA_EXCEEDED)
    assert leaves_open(error)
    assert read_answer(KafkaException(error)).kind is AnswerKind.NOT_DONE


@pytest.mark.parametrize("code", REFUSED)
def test_what_the_broker_decided_is_refused(code: int) -> None:
    assert not leaves_open(KafkaError(code))
    assert read_answer(KafkaException(KafkaError(code))).kind is AnswerKind.REFUSED


@pytest.mark.parametrize("code", PASSING)
def test_what_passes_while_leaders_move_is_asked_again(code: int) -> None:
    error = KafkaError(code)
    assert may_pass(error)
    assert may_ask_again(error)


@pytest.mark.parametrize("code", REFUSED)
def test_what_the_broker_decided_is_not_asked_again(code: int) -> None:
    assert not may_ask_again(KafkaError(code))


def test_no_error_is_acceptance() -> None:
    assert read_answer(None) == Answer(AnswerKind.ACCEPTED)


def test_the_brokers_text_is_kept() -> None:
    error = KafkaError(KafkaError.INVALID_CONFIG, "Unknown topic config name: x")
    answer = Answer(AnswerKind.REFUSED, "INVALID_CONFIG", "Unknown topic config name: x")
    assert read_answer(KafkaException(error)) == answer


def test_an_exception_of_another_kind_is_lost_with_its_text() -> None:
    answer = read_answer(RuntimeError("odd"))
    assert (answer.kind, answer.text) == (AnswerKind.LOST, "odd")


def test_names_are_those_of_the_protocol() -> None:
    assert name_error(KafkaError(KafkaError.UNKNOWN)) == "UNKNOWN_SERVER_ERROR"
    assert name_error(KafkaError(KafkaError.TOPIC_EXCEPTION)) == "INVALID_TOPIC_EXCEPTION"
    assert name_error(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)) == "UNKNOWN_TOPIC_OR_PARTITION"
    assert name_error(KafkaError(KafkaError.INVALID_CONFIG)) == "INVALID_CONFIG"
