"""A one-line description and the dimension of each topic config, for schemas and editors."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class Dimension(StrEnum):
    """The dimension of a config: durations in milliseconds, sizes in bytes, with units."""

    DURATION = "duration"
    SIZE = "size"
    COUNT = "count"
    LEVEL = "level"
    RATIO = "ratio"
    FLAG = "flag"
    CHOICE = "choice"
    CHOICES = "choices"
    REPLICAS = "replicas"


_D = Dimension

DOCS: Mapping[str, tuple[Dimension, str]] = MappingProxyType(
    {
        "cleanup.policy": (
            _D.CHOICES,
            "delete: old segments are deleted; compact: the newest record of each key stays; "
            "both, or none.",
        ),
        "compression.gzip.level": (
            _D.LEVEL,
            "The compression level of gzip; -1 is gzip's own default.",
        ),
        "compression.lz4.level": (_D.LEVEL, "The compression level of lz4."),
        "compression.type": (
            _D.CHOICE,
            "How brokers store records; producer keeps what the producer chose.",
        ),
        "compression.zstd.level": (
            _D.LEVEL,
            "The compression level of zstd; below 0 is faster and larger.",
        ),
        "delete.retention.ms": (
            _D.DURATION,
            "How long tombstones of a compacted topic stay for readers to see.",
        ),
        "errors.deadletterqueue.group.enable": (
            _D.FLAG,
            "Whether share groups may use the topic as their dead letter queue.",
        ),
        "file.delete.delay.ms": (
            _D.DURATION,
            "How long a deleted segment's files stay on disk.",
        ),
        "flush.messages": (_D.COUNT, "Force records to disk after this many; usually left unset."),
        "flush.ms": (_D.DURATION, "Force records to disk after this long; usually left unset."),
        "follower.replication.throttled.replicas": (
            _D.REPLICAS,
            "Replicas whose fetching is throttled while partitions move.",
        ),
        "index.interval.bytes": (_D.SIZE, "How many bytes of log are between two index entries."),
        "leader.replication.throttled.replicas": (
            _D.REPLICAS,
            "Replicas whose serving is throttled while partitions move.",
        ),
        "local.retention.bytes": (
            _D.SIZE,
            "How much of a tiered partition stays on the broker; -2 follows retention.bytes.",
        ),
        "local.retention.ms": (
            _D.DURATION,
            "How long tiered records stay on the broker; -2 follows retention.ms.",
        ),
        "max.compaction.lag.ms": (
            _D.DURATION,
            "The maximum time that a record may wait for compaction.",
        ),
        "max.decompressed.message.bytes": (
            _D.SIZE,
            "The largest batch after decompression; never lower it below what is stored.",
        ),
        "max.message.bytes": (_D.SIZE, "The largest batch of records, after compression."),
        "message.downconversion.enable": (
            _D.FLAG,
            "Whether brokers convert records for very old consumers.",
        ),
        "message.format.version": (_D.CHOICE, "The record format; ignored since Kafka 3.0."),
        "message.timestamp.after.max.ms": (
            _D.DURATION,
            "How far a record's timestamp may be ahead of the broker's clock.",
        ),
        "message.timestamp.before.max.ms": (
            _D.DURATION,
            "How far a record's timestamp may be behind the broker's clock.",
        ),
        "message.timestamp.difference.max.ms": (
            _D.DURATION,
            "How far a record's timestamp may differ from the broker's clock, either way.",
        ),
        "message.timestamp.type": (
            _D.CHOICE,
            "CreateTime: the producer's clock; LogAppendTime: the broker's.",
        ),
        "min.cleanable.dirty.ratio": (
            _D.RATIO,
            "The share of uncompacted log at which compaction starts.",
        ),
        "min.compaction.lag.ms": (
            _D.DURATION,
            "The minimum time that a record stays uncompacted.",
        ),
        "min.insync.replicas": (
            _D.COUNT,
            "How many replicas must have a record before acks=all succeeds.",
        ),
        "preallocate": (_D.FLAG, "Whether a segment takes its full size on disk at once."),
        "remote.copy.lag.bytes": (
            _D.SIZE,
            "How much may wait before it is copied to the remote tier; -1: the local limit.",
        ),
        "remote.copy.lag.ms": (
            _D.DURATION,
            "How long a segment may wait before it is copied to the remote tier.",
        ),
        "remote.log.copy.disable": (
            _D.FLAG,
            "Whether a tiered topic stops copying and only reads its remote tier.",
        ),
        "remote.log.delete.on.disable": (
            _D.FLAG,
            "Whether remote records are deleted when tiering is turned off.",
        ),
        "remote.storage.enable": (_D.FLAG, "Whether old segments move to the remote tier."),
        "retention.bytes": (
            _D.SIZE,
            "How much each partition keeps under cleanup.policy delete; -1: no limit.",
        ),
        "retention.ms": (
            _D.DURATION,
            "How long records are kept under cleanup.policy delete; -1: no limit.",
        ),
        "segment.bytes": (_D.SIZE, "The size at which a new segment file begins."),
        "segment.index.bytes": (_D.SIZE, "The largest index of a segment."),
        "segment.jitter.ms": (
            _D.DURATION,
            "How much segment.ms may vary, so that partitions do not roll together.",
        ),
        "segment.ms": (_D.DURATION, "The age at which a new segment file begins."),
        "unclean.leader.election.enable": (
            _D.FLAG,
            "Whether a replica that is not in sync may lead, which can lose records.",
        ),
    }
)
