"""One topic or one broker in full: everything that a screen says of it, as a value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Self

from reconciler.inventory.brokers import BrokerRow, list_brokers
from reconciler.inventory.configs import ConfigRow, Told, trace_config
from reconciler.inventory.groups import GroupRow, list_groups
from reconciler.inventory.inventory import Inventory
from reconciler.inventory.topics import PartitionRow, TopicRow, list_partitions, list_topics
from reconciler.model.cluster import TopicState, TopicUsage
from reconciler.model.configs import ConfigValue, Origin
from reconciler.model.groups import GroupsReading, Producers
from reconciler.model.outcomes import OutcomeKind
from reconciler.run.ending import Ended
from reconciler.run.history import Run

CHANGES_SINCE = timedelta(days=90)
"""How far back the audit topic is read for the changes of a topic."""

CHANGES_KEPT = 5


@dataclass(frozen=True, slots=True)
class Change:
    """What one run did to a topic; `ended` is how the run ended, None if that is not known."""

    at: datetime
    verb: str
    outcome: OutcomeKind
    ended: Ended | None
    user: str
    commit: str | None
    run_url: str | None


@dataclass(frozen=True, slots=True)
class Changes:
    """The last changes of a topic by the audit topic, the latest first; or why they are unseen."""

    last: tuple[Change, ...] = ()
    unseen: str = ""

    @classmethod
    def of(cls, topic: str, runs: Iterable[Run]) -> Self:
        """Return the last of the runs that planned a topic."""
        found = [
            Change(
                run.at or run.started,
                run.verb,
                run.topics[topic],
                run.ended,
                run.user,
                run.commit,
                run.run_url,
            )
            for run in runs
            if topic in run.topics
        ]
        found.sort(key=lambda change: change.at, reverse=True)
        return cls(tuple(found[:CHANGES_KEPT]))


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A live topic: its row, partitions, configs in force, and who uses it.

    What a snapshot does not hold is None: `usage`, `groups` and `producers`. So is `changes`, also
    if the cluster has no audit topic.
    """

    topic: TopicRow
    topic_id: str | None
    about: str | None
    profile: str | None
    partitions: tuple[PartitionRow, ...]
    configs: tuple[ConfigRow, ...]
    usage: TopicUsage | None = None
    groups: tuple[GroupRow, ...] | None = None
    producers: Producers | None = None
    changes: Changes | None = None

    @property
    def hottest(self) -> PartitionRow | None:
        """The largest partition, if the sizes of several are known and not all 0."""
        sized = [row for row in self.partitions if row.skew is not None]
        return max(sized, key=lambda row: row.skew or 0.0) if len(sized) > 1 else None


@dataclass(frozen=True, slots=True)
class HeldTopic:
    """What a broker holds of a topic. `size_bytes` is None if it is unknown."""

    topic: str
    preferred: int
    leaders: int
    replicas: int
    size_bytes: int | None


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """A config that somebody set on a broker, or for all; `value` is None if it is withheld."""

    key: str
    value: str | None
    origin: Origin


@dataclass(frozen=True, slots=True)
class BrokerDescription:
    """A broker: its row, what it holds by topic, and what is not as it should be.

    `behind` are the partitions whose replica on it is not in sync, `not_leading` those that it
    should lead and another broker leads. `configs` are those that are set on it, on all brokers or
    in its server.properties; None if they were not read.
    """

    broker: BrokerRow
    topics: tuple[HeldTopic, ...]
    behind: tuple[PartitionRow, ...]
    not_leading: tuple[PartitionRow, ...]
    configs: tuple[BrokerConfig, ...] | None = None


def describe_topic(
    inventory: Inventory,
    topic: TopicState,
    told: Told,
    groups: GroupsReading | None = None,
    producers: Producers | None = None,
    changes: Changes | None = None,
) -> TopicDescription:
    """Describe a live topic. In: what each broker says of its configs, who uses and changed it."""
    (row,) = list_topics(inventory, [topic])
    spec = inventory.specs.get(topic.name)
    keys = {*topic.config, *topic.disputed, *inventory.state.config_defaults}
    keys |= {key for entries in told.values() for key in entries}
    keys |= spec.config.keys() if spec else set()
    used = None if groups is None else tuple(list_groups(groups, {topic.name}))
    return TopicDescription(
        topic=row,
        topic_id=topic.topic_id,
        about=spec.description if spec else None,
        profile=spec.profile if spec else None,
        partitions=tuple(list_partitions(inventory, [topic])),
        configs=tuple(trace_config(inventory, topic, key, told) for key in sorted(keys)),
        usage=inventory.state.usage.get(topic.name),
        groups=used,
        producers=producers,
        changes=changes,
    )


def describe_broker(
    inventory: Inventory, broker: int, configs: Mapping[str, ConfigValue] | None = None
) -> BrokerDescription | None:
    """Describe a broker; None if the cluster has none of this id."""
    row = next((each for each in list_brokers(inventory) if each.broker == broker), None)
    if row is None:
        return None
    partitions = list(list_partitions(inventory, inventory.state.topics.values()))
    held = [each for each in partitions if broker in each.replicas]
    given = None if configs is None else tuple(_list_set(configs))
    return BrokerDescription(
        broker=row,
        topics=tuple(_sum_held(broker, held)),
        behind=tuple(p for p in held if p.in_sync is not None and broker not in p.in_sync),
        not_leading=tuple(
            p for p in held if p.replicas[0] == broker and p.leader not in (None, broker)
        ),
        configs=given,
    )


def _sum_held(broker: int, held: Iterable[PartitionRow]) -> Iterable[HeldTopic]:
    """Sum up what a broker holds by topic, the largest first."""
    by_topic: dict[str, list[PartitionRow]] = {}
    for row in held:
        by_topic.setdefault(row.topic, []).append(row)
    found = []
    for topic, rows in by_topic.items():
        sizes = [row.size_bytes for row in rows if row.size_bytes is not None]
        counts = Counter(row.leader for row in rows)
        preferred = sum(row.replicas[0] == broker for row in rows)
        size = sum(sizes) if len(sizes) == len(rows) else None
        found.append(HeldTopic(topic, preferred, counts[broker], len(rows), size))
    return sorted(found, key=lambda each: (-(each.size_bytes or 0), -each.replicas, each.topic))


def _list_set(configs: Mapping[str, ConfigValue]) -> Iterable[BrokerConfig]:
    unset = (Origin.KAFKA, Origin.UNKNOWN)
    return [
        BrokerConfig(key, one.value, one.origin)
        for key, one in sorted(configs.items())
        if one.origin not in unset
    ]
