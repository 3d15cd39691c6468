"""The JSON of `get`, declared once for each kind of rows: printed, and published as a schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

from reconciler.errors import Finding, Location
from reconciler.inventory.brokers import BrokerRow, BrokerStatus
from reconciler.inventory.configs import ConfigRow
from reconciler.inventory.description import (
    BrokerConfig,
    BrokerDescription,
    Change,
    Changes,
    HeldTopic,
    TopicDescription,
)
from reconciler.inventory.groups import GroupRow
from reconciler.inventory.inventory import Inventory, Kind, Standing
from reconciler.inventory.topics import PartitionRow, TopicRow
from reconciler.model.cluster import LogDirectory, TopicUsage
from reconciler.model.configs import Origin
from reconciler.model.groups import Producers
from reconciler.model.health import Fault
from reconciler.model.plan import Plan
from reconciler.planfile.documents import Derived, Document, Held, document_of
from reconciler.planfile.plan_document import ResourceDocument

FORMAT_VERSION = "1.0"
"""Major: a field changed its meaning or is gone. Minor: added fields, which a reader may skip."""


def write_time(time_ms: int | None) -> datetime | None:
    """Return a time of Kafka as JSON has it; None if it is unknown, or 0 for none."""
    return datetime.fromtimestamp(time_ms / 1000, UTC) if time_ms else None


class Rows(Document):
    """What was read of a cluster. `cluster` is its name, or the address or the file instead."""

    format_version: Annotated[str, Derived(lambda _: FORMAT_VERSION)]
    cluster: str
    cluster_id: Annotated[str | None, Held("state.cluster_id")]
    notes: Annotated[tuple[Finding, ...], Held("state.notes")]


class TopicItem(Document):
    """A topic. What was not read is null: sizes need --sizes, writes and readers --idle.

    `problems` counts the partitions that are offline, unwritable or under_replicated; null if the
    in-sync replicas are unknown. `size_bytes` counts each partition once. `last_written` is null,
    too, if the topic holds no records. `readers` are the active consumer groups.
    """

    made_of: ClassVar[type | None] = TopicRow

    topic: str
    partitions: int
    replication_factors: Annotated[tuple[int, ...], Held("replication")]
    owner: str | None
    labels: Mapping[str, str]
    standing: Standing | None
    spec: Location | None
    problems: Mapping[Fault, int] | None
    size_bytes: int | None
    holds_records: Annotated[
        bool | None, Derived(lambda row: None if row.written_ms is None else row.written_ms > 0)
    ]
    last_written: Annotated[datetime | None, Derived(lambda row: write_time(row.written_ms))]
    readers: tuple[str, ...] | None


class BrokerItem(Document):
    """A broker. Counts are of all topics, internal ones too; null is unknown.

    `behind` counts its replicas that are not in sync. `size_bytes` sums its replicas, each at the
    size of the largest replica of its partition. `directory_bytes` sums the replicas in each of
    several log directories, by path.
    """

    made_of: ClassVar[type | None] = BrokerRow

    broker: int
    rack: str | None
    status: BrokerStatus
    preferred: int
    leaders: int | None
    replicas: int
    behind: int | None
    size_bytes: int | None
    directories: tuple[LogDirectory, ...]
    directory_bytes: Mapping[str, int]


class PartitionItem(Document):
    """A partition. `replicas` begins with the preferred leader; `leader` is -1 if there is none.

    `skew` is its size in relation to the mean of its topic.
    """

    made_of: ClassVar[type | None] = PartitionRow

    topic: str
    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...] | None
    problems: tuple[Fault, ...]
    moving: bool
    size_bytes: int | None
    skew: float | None


class ConfigItem(Document):
    """A config in force on a topic. `where` is the place of the spec's value.

    `value` is null if the brokers withhold it, or if they differ: then `by_broker` has each value.
    `specified` is the spec's value if it is not in force, and empty if the spec wants no override
    where there is one. `beneath` is the default that an override replaces, if it is known.
    """

    made_of: ClassVar[type | None] = ConfigRow

    topic: str
    key: str
    value: str | None
    origin: Origin
    where: Location | None
    specified: str | None
    beneath: str | None
    by_broker: Mapping[int, str | None] | None


class PlaceItem(Document):
    """A partition of a topic."""

    topic: Annotated[str, Derived(lambda place: place[0])]
    partition: Annotated[int, Derived(lambda place: place[1])]


class GroupItem(Document):
    """A consumer group. `topics` are those that it reads now, or holds committed offsets on.

    `lag` sums end offsets minus committed ones; null if it commits nothing, or an end is unknown.
    `most_behind` is the partition with the largest lag. `uncommitted` counts partitions that
    members read without a committed offset. `unseen` says why something is missing.
    """

    made_of: ClassVar[type | None] = GroupRow

    group: str
    kind: str
    state: str
    members: int
    topics: tuple[str, ...]
    lag: int | None
    most_behind: Annotated[
        PlaceItem | None, Derived(lambda row: row.most and PlaceItem.write(row.most))
    ]
    uncommitted: int
    unseen: str


class TopicRows(Rows):
    """The topics of a cluster, as `get topics` lists them."""

    topics: tuple[TopicItem, ...]


class BrokerRows(Rows):
    """The brokers of a cluster, as `get brokers` lists them."""

    brokers: tuple[BrokerItem, ...]


class PartitionRows(Rows):
    """The partitions of topics, as `get partitions` lists them."""

    partitions: tuple[PartitionItem, ...]


class ConfigRows(Rows):
    """The configs of topics, as `get configs` lists them."""

    configs: tuple[ConfigItem, ...]


class GroupRows(Rows):
    """The consumer groups of a cluster, as `get groups` lists them."""

    groups: tuple[GroupItem, ...]


_KINDS: Mapping[Kind, tuple[type[Rows], type[Document]]] = MappingProxyType(
    {
        "topics": (TopicRows, TopicItem),
        "brokers": (BrokerRows, BrokerItem),
        "partitions": (PartitionRows, PartitionItem),
        "groups": (GroupRows, GroupItem),
        "configs": (ConfigRows, ConfigItem),
    }
)


def write_rows(inventory: Inventory, kind: Kind, rows: Iterable[object]) -> Rows:
    """Return the document of rows of one kind, under the name of the kind."""
    document, item = _KINDS[kind]
    return document.write(inventory, **{kind: tuple(map(item.write, rows))})


class UsageItem(Document):
    """What Kafka knows of writes and reads. `readers` are the active groups.

    `records` is an upper bound. `last_written` is the newest timestamp of a record; null if there
    is none. `unseen` says why it is not known: then there may be readers that are not named.
    """

    made_of: ClassVar[type | None] = TopicUsage

    records: int
    last_written: Annotated[datetime | None, Derived(lambda usage: write_time(usage.newest_ms))]
    readers: Annotated[tuple[str, ...], Held("groups")]
    unseen: str


class ProducersItem(Document):
    """Producers with an id that leaders remember. `unseen` says why they are not known."""

    made_of: ClassVar[type | None] = Producers

    count: int
    transactional: tuple[str, ...]
    unseen: str


@document_of(Change)
class ChangeItem(Document):
    """What one run did to a topic; `ended` is how the run ended."""


class ChangesItem(Document):
    """The last changes of a topic by the audit topic, the latest first; or why they are unseen."""

    made_of: ClassVar[type | None] = Changes

    last: tuple[ChangeItem, ...]
    unseen: str


class TopicAbout(Document):
    """A topic in full. What a snapshot does not hold is null; `changes` without an audit topic."""

    made_of: ClassVar[type | None] = TopicDescription

    topic: TopicItem
    topic_id: str | None
    about: str | None
    profile: str | None
    partitions: tuple[PartitionItem, ...]
    configs: tuple[ConfigItem, ...]
    usage: UsageItem | None
    groups: tuple[GroupItem, ...] | None
    producers: ProducersItem | None
    changes: ChangesItem | None


class TopicDocument(Rows):
    """A topic, as `describe` shows it; `about` is null if only a spec names it.

    `next_plan` is what `plan --topic` does to it, as in a plan; null without a spec, and without
    steps if it is as specified.
    """

    name: str
    about: TopicAbout | None
    next_plan: ResourceDocument | None


class HeldItem(Document):
    """What a broker holds of a topic; `size_bytes` is null if it is unknown."""

    made_of: ClassVar[type | None] = HeldTopic

    topic: str
    preferred: int
    leaders: int
    replicas: int
    size_bytes: int | None


class BrokerConfigItem(Document):
    """A config that somebody set; `value` is null if the broker withholds it."""

    made_of: ClassVar[type | None] = BrokerConfig

    key: str
    value: str | None
    origin: Origin


class BrokerAbout(Document):
    """A broker in full. `behind` are partitions whose replica on it is not in sync.

    `not_leading` are those that it should lead and another broker leads. `configs` is null if they
    were not read.
    """

    made_of: ClassVar[type | None] = BrokerDescription

    broker: BrokerItem
    topics: tuple[HeldItem, ...]
    behind: tuple[PartitionItem, ...]
    not_leading: tuple[PartitionItem, ...]
    configs: tuple[BrokerConfigItem, ...] | None


class BrokerDocument(Rows):
    """A broker, as `describe broker` shows it."""

    about: BrokerAbout


def write_topic(
    inventory: Inventory, about: TopicDescription | None, plan: Plan | None, name: str
) -> TopicDocument:
    """Return the document of a topic, with what a plan does to it."""
    planned = next((each for each in plan.topics if each.name == name), None) if plan else None
    return TopicDocument.write(
        inventory,
        name=name,
        about=None if about is None else TopicAbout.write(about),
        next_plan=None if planned is None else ResourceDocument.write(planned),
    )


def write_broker(inventory: Inventory, about: BrokerDescription) -> BrokerDocument:
    """Return the document of a broker."""
    return BrokerDocument.write(inventory, about=BrokerAbout.write(about))


def build_describe_schema() -> dict[str, Any]:
    """Return the JSON Schema of what `describe` prints: a topic or a broker."""
    from pydantic import TypeAdapter

    return TypeAdapter(TopicDocument | BrokerDocument).json_schema(mode="serialization")


def build_get_schema() -> dict[str, Any]:
    """Return the JSON Schema of what `get` prints: one of the kinds."""
    from pydantic import TypeAdapter

    kinds = TypeAdapter(TopicRows | BrokerRows | PartitionRows | GroupRows | ConfigRows)
    return kinds.json_schema(mode="serialization")
