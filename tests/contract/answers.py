"""Frames of Kafka's protocol decoded, changed, and encoded again: errors that no broker sent."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator, Mapping
from typing import Any
from uuid import UUID

import kafka.protocol.admin.cluster
import kafka.protocol.consumer
import kafka.protocol.metadata
import kafka.protocol.producer  # noqa: F401 - each registers the classes of its answers
from kafka.protocol.admin import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    IncrementalAlterConfigsRequest,
)
from kafka.protocol.api_header import RequestHeader, ResponseClassRegistry
from kafka.protocol.data_container import DataContainer

METADATA = 3
API_VERSIONS = 18
CREATE_TOPICS = 19
DELETE_TOPICS = 20
CREATE_PARTITIONS = 37
ALTER_CONFIGS = 44
ALTER_REASSIGNMENTS = 45
DESCRIBE_CLUSTER = 60
CONSUMER_GROUP_DESCRIBE = 69

_CHANGES: dict[int, Any] = {
    CREATE_TOPICS: CreateTopicsRequest,
    DELETE_TOPICS: DeleteTopicsRequest,
    CREATE_PARTITIONS: CreatePartitionsRequest,
    ALTER_CONFIGS: IncrementalAlterConfigsRequest,
}
_NUMBER = 4
_FIRST_GROUP = 4 + 1 + 4 + 1  # number, no tags, throttle time, count of groups


def put_error(
    api: int, version: int, answer: bytes, code: int, *, harmless: bool, text: str = ""
) -> bytes:
    """Put an error code into an answer, in each place of the outermost level that has one.

    `harmless`: the request was made so, and the answer is to look as if it was not. `text`: the
    message of the error, where the answer has room for one.
    """
    if api == CONSUMER_GROUP_DESCRIBE:  # kafka-python does not know it; one group is asked for
        return answer[:_FIRST_GROUP] + struct.pack(">h", code) + answer[_FIRST_GROUP + 2 :]
    header = RequestHeader(request_api_key=api, request_api_version=version)
    decoded = ResponseClassRegistry.get_response_class(header).decode(answer, header=True)
    if harmless and api == DELETE_TOPICS:
        _swap_ids(decoded.responses)
    # Of Metadata, a retriable error is always a topic's; of reassignments, a partition's.
    inner = {METADATA: "topics", ALTER_REASSIGNMENTS: "responses"}
    level: list[Any] = getattr(decoded, inner[api]) if api in inner else [decoded]
    while level and not any(_has_error(each) for each in level):
        level = [inner for each in level for inner in _list_inner(each)]
    for each in level:
        each.error_code = code
        if text:
            each.error_message = text
    encoded: bytes = decoded.encode(header=True)
    return encoded


def hide_cluster_id(api: int, version: int, answer: bytes) -> bytes:
    """Leave the id of the cluster out of an answer to Metadata or DescribeCluster."""
    header = RequestHeader(request_api_key=api, request_api_version=version)
    decoded = ResponseClassRegistry.get_response_class(header).decode(answer, header=True)
    decoded.cluster_id = None if api == METADATA else ""  # only Metadata can have none
    encoded: bytes = decoded.encode(header=True)
    return encoded


def has_assignment(api: int, version: int, request: bytes) -> bool:
    """Return whether a request for new partitions says where their replicas go."""
    decoded = _CHANGES[api].decode(request, version=version, header=True)
    return any(topic.assignments for topic in decoded.topics)


def drop_assignment(api: int, version: int, request: bytes) -> bytes:
    """Have the broker place new partitions itself: as many, with as many replicas."""
    decoded = _CHANGES[api].decode(request, version=version, header=True)
    for topic in decoded.topics:
        if topic.assignments and api == CREATE_TOPICS:
            topic.num_partitions = len(topic.assignments)
            topic.replication_factor = len(topic.assignments[0].broker_ids)
        topic.assignments = [] if api == CREATE_TOPICS else None
    encoded: bytes = decoded.encode(header=True)
    return encoded


def drop_configs(version: int, request: bytes, keys: Collection[str]) -> bytes:
    """Have the broker change no config of these keys, and answer as if it had."""
    decoded = IncrementalAlterConfigsRequest.decode(request, version=version, header=True)
    for resource in decoded.resources:
        resource.configs = [each for each in resource.configs if each.name not in keys]
    encoded: bytes = decoded.encode(header=True)
    return encoded


def has_replicas(least: int, version: int, request: bytes) -> bool:
    """Return whether a request for new topics lists at least so many brokers for a partition."""
    decoded = _CHANGES[CREATE_TOPICS].decode(request, version=version, header=True)
    rows = (row.broker_ids for topic in decoded.topics for row in topic.assignments)
    return any(len(row) >= least for row in rows)


def replace_wishes(version: int, request: bytes, replicas: int, config: Mapping[str, str]) -> bytes:
    """Have new topics get a number of replicas and configs, whatever the request asks for.

    Rows that have as many replicas stay.
    """
    decoded = _CHANGES[CREATE_TOPICS].decode(request, version=version, header=True)
    for topic in decoded.topics:
        if any(len(row.broker_ids) != replicas for row in topic.assignments):
            topic.num_partitions, topic.assignments = len(topic.assignments), []
        if not topic.assignments:
            topic.replication_factor = replicas
        kept = [each for each in topic.configs if each.name not in config]
        entry = CreateTopicsRequest.CreatableTopic.CreatableTopicConfig
        topic.configs = [*kept, *(entry(name=key, value=value) for key, value in config.items())]
    encoded: bytes = decoded.encode(header=True)
    return encoded


def limit_versions(version: int, answer: bytes, newest: Mapping[int, int]) -> bytes:
    """Have an answer to ApiVersions offer requests up to a version only, those below 0 not at all.

    Its header has no tags whatever the version (KIP-511), and each entry has them from version 3
    on. An answer with an error offers nothing.
    """
    body = answer[_NUMBER:]
    if body[:2] != b"\0\0":
        return answer
    flexible = version >= 3
    count, at = _read_varint(body, 2) if flexible else (struct.unpack_from(">i", body, 2)[0], 6)
    entries = []
    for _ in range(count - flexible):
        api, least, most = struct.unpack_from(">hhh", body, at)
        at += 6 + flexible  # no entry has had tags so far
        if (most := min(most, newest.get(api, most))) >= least:
            entries.append(struct.pack(">hhh", api, least, most) + b"\0" * flexible)
    counted = _write_varint(len(entries) + 1) if flexible else struct.pack(">i", len(entries))
    return answer[: _NUMBER + 2] + counted + b"".join(entries) + body[at:]


def _read_varint(body: bytes, at: int) -> tuple[int, int]:
    """Return an unsigned number of variable length, and where it ends."""
    value = shift = 0
    while True:
        byte = body[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _write_varint(value: int) -> bytes:
    encoded = b""
    while value >= 0x80:
        encoded += bytes([value & 0x7F | 0x80])
        value >>= 7
    return encoded + bytes([value])


def make_harmless(api: int, version: int, request: bytes) -> bytes:
    """Have the broker only check a request that would change a topic."""
    decoded = _CHANGES[api].decode(request, version=version, header=True)
    if api == DELETE_TOPICS:
        _swap_ids(decoded.topics)
    else:
        decoded.validate_only = True
    encoded: bytes = decoded.encode(header=True)
    return encoded


def _swap_ids(topics: list[Any]) -> None:
    """Give topics ids that no topic has; a second time, their own again."""
    for topic in topics:
        topic.topic_id = UUID(int=topic.topic_id.int ^ (1 << 128) - 1)


def _has_error(each: DataContainer) -> bool:
    field = each.fields.get("error_code")
    return field is not None and field.for_version_q(each.version)


def _list_inner(each: DataContainer) -> Iterator[DataContainer]:
    for name in each.fields:
        value = getattr(each, name)
        if isinstance(value, list):
            yield from (inner for inner in value if isinstance(inner, DataContainer))
