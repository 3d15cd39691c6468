"""The audit topic of a cluster, read from its start or from a time to its present end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime
from functools import partial

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AclOperation

from reconciler.errors import ClusterError, Finding
from reconciler.kafka.connection import REQUEST_S, Connection
from reconciler.kafka.errors import error_of, name_error, refuse_request
from reconciler.kafka.rights import check_topic_right
from reconciler.model.rights import HISTORY_GROUP

SILENCE_S = 15.0
"""Without a record or an end for this time, the topic does not answer."""
AT_ONCE = 500


def read_audit_topic(connection: Connection, since: datetime | None = None) -> Iterator[bytes]:
    """Yield the values of the records since a time, by partition. It joins no group.

    Errors: ClusterError if the cluster has no audit topic, if the account may not read it, or if
    an answer is lost.
    """
    entry = connection.entry
    topic = entry.audit_topic
    if topic is None:
        what = f"{entry.name} has no audit_topic"
        way_out = (
            "name one in clusters.yaml, so that applies are recorded from now on; --journal reads "
            "the journal of a run"
        )
        raise ClusterError([Finding("audit-topic", what, way_out, entry.location)])
    what = f"audit_topic {topic} is not on {entry.name}"
    absent = Finding("audit-topic", what, "write a spec for it and apply that", entry.location)
    check_topic_right(connection, topic, AclOperation.READ, absent)
    # Brokers are asked for no coordinator: without a subscription nothing is done with the group.
    consumer = connection.settings.build_consumer(
        group_id=HISTORY_GROUP,
        enable_auto_commit=False,
        enable_partition_eof=True,
        auto_offset_reset="earliest",
        allow_auto_create_topics=False,
    )
    try:
        starts = connection.ask(
            lambda _: _find_starts(consumer, topic, since), f"reading audit_topic {topic}"
        )
        yield from _read(consumer, starts, f"reading audit_topic {topic}")
    finally:
        consumer.close()


def _find_starts(consumer: Consumer, topic: str, since: datetime | None) -> list[TopicPartition]:
    """Return where each partition is read from, but for those without records since then."""
    told = consumer.list_topics(topic, timeout=REQUEST_S).topics[topic]
    if told.error is not None:
        raise KafkaException(told.error)
    at = partial(TopicPartition, topic)
    ends = {}
    for partition in told.partitions:
        first, end = consumer.get_watermark_offsets(at(partition), timeout=REQUEST_S)
        if first < end:
            ends[partition] = first
    if since is None:
        return [at(partition, first) for partition, first in ends.items()]
    since_ms = int(since.timestamp() * 1000)
    asked = [at(partition, since_ms) for partition in ends]
    found = consumer.offsets_for_times(asked, timeout=REQUEST_S) if asked else []
    return [place for place in found if place.offset >= 0]


def _read(consumer: Consumer, starts: list[TopicPartition], what: str) -> Iterator[bytes]:
    open_partitions = {place.partition for place in starts}
    consumer.assign(starts)
    last_s = time.monotonic()
    while open_partitions:
        for message in consumer.consume(AT_ONCE, timeout=0.5):
            error = message.error()
            if error is None:
                last_s = time.monotonic()
                if value := message.value():
                    yield value
            elif error.code() == KafkaError._PARTITION_EOF:
                last_s = time.monotonic()
                open_partitions.discard(message.partition())
            elif error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED or error.fatal():
                raise refuse_request(error, what)
        if time.monotonic() - last_s > SILENCE_S:
            last = error_of(KafkaException(KafkaError(KafkaError._TIMED_OUT)))
            text = f"{what}: no answer in {SILENCE_S:.0f} s ({name_error(last)})"
            way_out = "check that the brokers are healthy, then run it again"
            raise ClusterError([Finding("connect-lost", text, way_out)])
