"""The format of a snapshot file, declared once: it is written, read and published as a schema.

Only brokers are required: anything else that is missing counts as healthy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AliasChoices,
    AwareDatetime,
    ConfigDict,
    Field,
    PlainSerializer,
    StrictBool,
    StrictInt,
    StrictStr,
)

from reconciler.errors import Finding
from reconciler.model.cluster import (
    INTERNAL_TOPICS,
    Broker,
    ClusterState,
    LeaderLog,
    LogDirectory,
    Place,
    StoredReplica,
    TopicState,
)
from reconciler.model.requests import KafkaRequest
from reconciler.planfile.documents import OMIT_EMPTY, Derived, Document, Held

FORMAT_VERSION = "1.1"
"""Major: a reader refuses an unknown one. Minor: added keys, which a reader leaves out.

1.1 has null for an unknown number, where 1.0 left the numbers of the topic out.
"""

BrokerId = Annotated[StrictInt, Field(ge=0, le=2**31 - 1)]
NOT_EMPTY = Field(json_schema_extra={"minItems": 1})
"""For the schema only. `check_document` refuses it: pydantic would count only valid items."""

_OMIT_NULL = Field(exclude_if=lambda value: value is None)
_OMIT_TRUE = Field(exclude_if=lambda value: value is True)

Row = Annotated[tuple[BrokerId, ...], NOT_EMPTY]
Version = Annotated[StrictStr, Field(pattern=r"^[0-9]{1,3}\.[0-9]{1,3}(\.[0-9]{1,3})?$")]
Amount = Annotated[StrictInt, Field(ge=0, le=2**63 - 1)]
Numbers = tuple[Amount | None, ...]
"""One number per partition, null if it is unknown: -1 in the class."""


def _write_numbers(numbers: Iterable[int]) -> Numbers:
    return tuple(None if number < 0 else number for number in numbers)


def _read_numbers(written: Numbers) -> tuple[int, ...]:
    return tuple(-1 if number is None else number for number in written)


Amounts = Annotated[Numbers, PlainSerializer(_write_numbers), OMIT_EMPTY]
PartitionNumbers = Annotated[
    tuple[Annotated[StrictInt, Field(ge=0)], ...], PlainSerializer(sorted), OMIT_EMPTY
]


Number = Annotated[StrictStr, Field(pattern=r"^[0-9]{1,10}$")]
StoredBytes = dict[StrictStr, dict[Number, Amount]]


class _Entry(Document):
    model_config = ConfigDict(extra="forbid")


class LogDirectoryEntry(_Entry):
    """A log directory of a broker: its size and its free space in bytes, and its replicas.

    One that is not `online` has failed. Where a broker has several, `stored` holds the bytes of
    each replica in it, by topic and partition, and `arriving` those that are being moved to it from
    another directory of the broker.
    """

    made_of: ClassVar[type | None] = LogDirectory

    path: Annotated[StrictStr, Field(min_length=1)]
    total_bytes: Annotated[Amount | None, _OMIT_NULL] = None
    usable_bytes: Annotated[Amount | None, _OMIT_NULL] = None
    replicas: Annotated[Amount | None, _OMIT_NULL] = None
    online: Annotated[StrictBool, _OMIT_TRUE] = True
    # A state has them by broker.
    stored: Annotated[StoredBytes, Derived(lambda _: {}), OMIT_EMPTY] = Field(default_factory=dict)
    arriving: Annotated[StoredBytes, Derived(lambda _: {}), OMIT_EMPTY] = Field(
        default_factory=dict
    )


class BrokerEntry(_Entry):
    """A broker: its id, its rack, and whether it can get replicas."""

    made_of: ClassVar[type | None] = Broker

    id: BrokerId
    rack: Annotated[StrictStr, Field(min_length=1)] | None = None
    alive: Annotated[StrictBool, _OMIT_TRUE] = True
    cordoned: Annotated[StrictBool, OMIT_EMPTY] = False
    # A state has them by broker.
    log_directories: Annotated[
        tuple[LogDirectoryEntry, ...], Derived(lambda _: ()), OMIT_EMPTY
    ] = ()


Log = Annotated[
    tuple[BrokerId, Amount, Amount, Amount],
    Field(description="The leader, and of its log: the first offset, the end offset, the bytes."),
]


class TopicEntry(_Entry):
    """A topic: row p of `partitions` lists the brokers of partition p, preferred leader first.

    `config` holds overrides only; null is the value of a key that the brokers do not know.
    `reassigning` names the partitions under reassignment, whose rows are their targets.
    `size_bytes`, `write_bytes_per_s` and `read_bytes_per_s` hold one number per partition, null if
    it is unknown: the stored bytes, the rate of producers, and that of consumers. `guessed_rates`
    names the partitions whose write rate is a guess. `logs` is what a later one is compared with.
    """

    made_of: ClassVar[type | None] = TopicState

    name: Annotated[StrictStr, Field(min_length=1)]
    topic_id: Annotated[StrictStr | None, OMIT_EMPTY] = None
    partitions: Annotated[tuple[Row, ...], Held("assignment")]
    config: Annotated[dict[StrictStr, StrictStr | None], OMIT_EMPTY] = Field(default_factory=dict)
    in_sync: Annotated[tuple[tuple[BrokerId, ...], ...], OMIT_EMPTY] = ()
    reassigning: PartitionNumbers = ()
    internal: Annotated[StrictBool, OMIT_EMPTY] = False
    size_bytes: Amounts = ()
    # `rate_bytes_per_s` was its name before there were rates of reads.
    write_bytes_per_s: Annotated[
        Amounts, Field(validation_alias=AliasChoices("write_bytes_per_s", "rate_bytes_per_s"))
    ] = ()
    read_bytes_per_s: Amounts = ()
    guessed_rates: PartitionNumbers = ()
    logs: Annotated[tuple[Log | None, ...], OMIT_EMPTY] = ()

    @classmethod
    def write(cls, value: TopicState, **given: Any) -> Self:
        """Return the entry of a topic, with its config in order."""
        config = dict(sorted(value.config.items()))
        return super().write(value, config=config, **given)

    def list_fields(self) -> Iterator[tuple[str, object]]:
        """Yield each field that it holds, with its value."""
        yield from super().list_fields()
        for key in ("size_bytes", "write_bytes_per_s", "read_bytes_per_s"):
            yield key, _read_numbers(getattr(self, key))
        yield "reassigning", frozenset(self.reassigning)
        yield "guessed_rates", frozenset(self.guessed_rates)
        yield "logs", tuple(log and LeaderLog(*log) for log in self.logs)
        yield "internal", self.internal or self.name in INTERNAL_TOPICS


def _write_brokers(state: ClusterState) -> tuple[BrokerEntry, ...]:
    entries = []
    for broker in sorted(state.brokers):
        stored = sorted(state.stored.get(broker.id, {}).items())
        held = tuple(
            LogDirectoryEntry.write(
                each,
                stored=_list_bytes((p, r.size_bytes) for p, r in stored if r.path == each.path),
                arriving=_list_bytes(
                    (p, r.copied_bytes) for p, r in stored if r.target == each.path
                ),
            )
            for each in state.directories.get(broker.id, ())
        )
        entries.append(BrokerEntry.write(broker, log_directories=held))
    return tuple(entries)


def _write_committed(state: ClusterState) -> dict[str, dict[str, Numbers]] | None:
    if state.committed_offsets is None:
        return None
    return {
        group: {topic: _write_numbers(offsets) for topic, offsets in sorted(topics.items())}
        for group, topics in sorted(state.committed_offsets.items())
    }


def _read_time(state: ClusterState) -> datetime | None:
    at_ms = state.read_at_ms
    return datetime.fromtimestamp(at_ms / 1000, UTC) if at_ms else None


def _list_bytes(replicas: Iterable[tuple[Place, int]]) -> StoredBytes:
    listed: StoredBytes = {}
    for (topic, number), size in replicas:
        listed.setdefault(topic, {})[str(number)] = size
    return listed


def _read_stored(broker: BrokerEntry) -> dict[Place, StoredReplica]:
    arriving = {
        (topic, int(number)): (each.path, size)
        for each in broker.log_directories
        for topic, sizes in each.arriving.items()
        for number, size in sizes.items()
    }
    return {
        place: StoredReplica(each.path, size, *arriving.get(place, ()))
        for each in broker.log_directories
        for topic, sizes in each.stored.items()
        for number, size in sizes.items()
        for place in [(topic, int(number))]
    }


def _write_topics(state: ClusterState) -> tuple[TopicEntry, ...]:
    return tuple(TopicEntry.write(state.topics[name]) for name in sorted(state.topics))


class SnapshotDocument(_Entry):
    """The state of one Kafka cluster. `config_defaults` holds the effective values without
    overrides.

    `broker_settings` holds flags of the brokers that limit topics, such as
    remote.log.storage.system.enable: "true" if all brokers have it, else "false". `can_cordon`:
    they know cordoned.log.dirs (Kafka 4.3). `unoffered`: the requests that they do not offer, of
    those that changes and moves need. Brokers that appear only in rows are dead.

    `read_at` is when sizes were read, by the clock of the reader. `measured_s` is the time over
    which rates were measured. `committed_offsets` holds those of groups, by group and topic, one
    for each partition.
    """

    made_of: ClassVar[type | None] = ClusterState

    schema_address: Annotated[StrictStr | None, Derived(lambda _: None), OMIT_EMPTY] = Field(
        default=None, alias="$schema"
    )
    format_version: Annotated[
        StrictStr, Field(pattern=r"^\d{1,9}\.\d{1,9}$"), Derived(lambda _: FORMAT_VERSION)
    ] = FORMAT_VERSION
    cluster_id: StrictStr | None = None
    read_at: Annotated[AwareDatetime | None, Derived(_read_time), _OMIT_NULL] = None
    measured_s: Annotated[Amount, OMIT_EMPTY] = 0
    kafka_version: Annotated[Version | None, OMIT_EMPTY] = None
    brokers: Annotated[tuple[BrokerEntry, ...], NOT_EMPTY, Derived(_write_brokers)]
    config_defaults: Annotated[dict[StrictStr, StrictStr], OMIT_EMPTY] = Field(default_factory=dict)
    broker_settings: Annotated[dict[StrictStr, Literal["true", "false"]], OMIT_EMPTY] = Field(
        default_factory=dict
    )
    can_cordon: Annotated[StrictBool, OMIT_EMPTY] = False
    unoffered: Annotated[tuple[KafkaRequest, ...], PlainSerializer(sorted), OMIT_EMPTY] = ()
    topics: Annotated[tuple[TopicEntry, ...], Derived(_write_topics)] = ()
    committed_offsets: Annotated[
        dict[StrictStr, dict[StrictStr, Numbers]] | None, Derived(_write_committed), _OMIT_NULL
    ] = None
    notes: Annotated[tuple[Finding, ...], OMIT_EMPTY] = ()

    def list_fields(self) -> Iterator[tuple[str, object]]:
        """Yield each field that it holds, with its value."""
        yield from super().list_fields()
        yield "unoffered", frozenset(self.unoffered)
        yield "read_at_ms", round(self.read_at.timestamp() * 1000) if self.read_at else 0
        if self.committed_offsets is not None:
            read = {
                group: {topic: _read_numbers(offsets) for topic, offsets in topics.items()}
                for group, topics in self.committed_offsets.items()
            }
            yield "committed_offsets", read
        topics: dict[str, TopicState] = {t.name: t.read() for t in self.topics}
        yield "topics", dict(sorted(topics.items()))
        named = {b for topic in topics.values() for row in topic.assignment for b in row}
        known: dict[int, Broker] = {broker.id: broker.read() for broker in self.brokers}
        dead = {number: Broker(number, alive=False) for number in named}
        yield "brokers", tuple(sorted((dead | known).values()))
        yield (
            "directories",
            {
                broker.id: tuple(each.read() for each in broker.log_directories)
                for broker in sorted(self.brokers, key=lambda broker: broker.id)
                if broker.log_directories
            },
        )
        stored = {broker.id: _read_stored(broker) for broker in self.brokers}
        yield "stored", {number: held for number, held in sorted(stored.items()) if held}
