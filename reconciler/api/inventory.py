"""What a cluster has, read for people who ask: only as much of it as the answer needs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from reconciler.api.connections import (
    find_cluster,
    open_address,
    open_connection,
    refuse_other_cluster,
)
from reconciler.api.snapshots import identify_topics, read_snapshot
from reconciler.errors import ClusterError, UsageError

if TYPE_CHECKING:
    from reconciler.inventory.configs import Told
    from reconciler.inventory.description import BrokerDescription, Changes, TopicDescription
    from reconciler.inventory.inventory import Choice, Inventory
    from reconciler.kafka.connection import Connection
    from reconciler.kafka.reader import KafkaReader
    from reconciler.model.cluster import ClusterState
    from reconciler.model.configs import ConfigValue
    from reconciler.model.groups import GroupsReading
    from reconciler.spec.estate import Estate

Need = Literal["sizes", "usage", "configs", "brokers"]
"""What costs extra requests: sizes, who writes and reads, configs of topics, dead brokers."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where to read: a cluster of an estate, an address of no estate, or a snapshot."""

    estate: Estate | None = None
    cluster: str | None = None
    bootstrap_servers: str | None = None
    against: Path | None = None

    @property
    def name(self) -> str:
        """The name of the cluster, or what stands for it."""
        servers = (self.bootstrap_servers or "").partition(",")[0]
        return self.cluster or (str(self.against) if self.against else servers)

    def connect(self) -> Connection | None:
        """Connect to the cluster; None for a snapshot. Errors: UsageError without a target."""
        if self.against is not None:
            if self.bootstrap_servers is not None:
                raise UsageError("--against reads a file; leave --bootstrap-servers out")
            return None
        if self.estate is not None and self.cluster is not None:
            return open_connection(self.estate, self.cluster, self.bootstrap_servers)
        if self.bootstrap_servers is None:
            raise UsageError(
                "name the cluster: --cluster NAME, --bootstrap-servers HOST:PORT or --against FILE"
            )
        return open_address(self.bootstrap_servers)

    def describe(self, state: ClusterState) -> Inventory:
        """Join a state with the specs of the cluster. Errors: ClusterError for another cluster."""
        from reconciler.inventory.inventory import Inventory

        if self.estate is None or self.cluster is None:
            return Inventory(self.name, state)
        entry = find_cluster(self.estate, self.cluster)
        refuse_other_cluster(entry, state)
        specs = {spec.name: spec for spec in self.estate.topics_for(self.cluster)}
        layers = self.estate.name_origins(self.cluster)
        return Inventory(self.cluster, state, entry, specs, layers)


class Source:
    """A target that is read once, or again and again over one connection."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._connection = target.connect()
        self._reader: KafkaReader | None = None
        if self._connection is not None:
            from reconciler.kafka.reader import KafkaReader

            self._reader = KafkaReader(self._connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._connection is not None:
            self._connection.close()

    def read(self, choice: Choice, *needs: Need) -> Inventory:
        """Read the brokers, and what the topics of a choice need.

        Errors: UsageError for names that nothing has, and for what a snapshot does not hold; else
        as `read_cluster` and `read_snapshot`. Cost: metadata and one request for each broker, and
        what each of the `needs` costs.
        """
        reader = self._reader
        if reader is None:
            if "usage" in needs:
                raise UsageError("a snapshot does not hold who writes and reads; name a cluster")
            found = self._target.describe(read_snapshot(self._target.against or ""))
            found.check(choice)
            return found
        found = self._target.describe(reader.read_cluster(config_of=()))
        found.check(choice)
        state = found.state
        # Of a topic whose replicas are all in sync, no value of min.insync.replicas is a problem.
        named = {name for name, topic in state.topics.items() if any(found.find_faults(topic))}
        found = replace(found, state=reader.read_configs(state, named))
        # What is asked of the cluster below decides on no topic but by its last write.
        listed = [topic.name for topic in found.choose(replace(choice, idle_since_ms=None))]
        if "configs" in needs:
            found = replace(found, state=reader.read_configs(found.state, listed))
        if "brokers" in needs:
            found = replace(found, state=reader.read_fenced(found.state))
        if "sizes" in needs:
            found = replace(found, state=reader.read_sizes(found.state))
        if "usage" in needs:
            from reconciler.inventory.topics import note_usage

            found = replace(found, state=replace(found.state, usage=reader.read_usage(listed)))
            found = found.note(note_usage(found.state))
        return found

    def read_groups(self, topics: Collection[str] | None = None) -> GroupsReading:
        """Read the groups that have to do with some topics; None: every group.

        Errors: UsageError for a snapshot; else as `read_cluster`.
        """
        if self._reader is None:
            raise UsageError("a snapshot does not hold consumer groups; name a cluster")
        return self._reader.read_groups(topics)

    def read_defaults(self, inventory: Inventory, keys: Collection[str]) -> Told:
        """Read the origins of some keys where no topic overrides them; nothing of a snapshot.

        A default is the same for all topics, so one without an override of a key is asked.
        """
        told: dict[int, dict[str, ConfigValue]] = {}
        if self._reader is None:
            return told
        asked: dict[str, list[str]] = {}
        alive = _list_alive(inventory.state)
        for key in keys:
            free = (name for name, t in inventory.state.topics.items() if key not in t.config)
            if (name := next(free, None)) is not None:
                asked.setdefault(name, []).append(key)
        for name, wanted in asked.items():
            for broker, values in self._reader.read_config_values(name, alive).items():
                entries = {key: values[key] for key in wanted if key in values}
                told.setdefault(broker, {}).update(entries)
        return told

    def describe_topic(self, name: str) -> tuple[Inventory, TopicDescription | None]:
        """Read all about a topic; no description if only a spec names it.

        Errors: UsageError if nothing does; else as `read`. Cost: 1 s, more with many groups.
        """
        from reconciler.inventory.description import describe_topic
        from reconciler.inventory.inventory import Choice, find_topic

        found = self.read(Choice(), "sizes")
        topic = find_topic(found, name)
        if topic is None:
            return found, None
        reader = self._reader
        if reader is None:
            return found, describe_topic(found, topic, {})
        state = reader.read_configs(found.state, [name])
        ids = reader.read_topic_ids([name])
        found = replace(
            found, state=replace(identify_topics(state, ids), usage=reader.read_usage([name]))
        )
        told = reader.read_config_values(name, _list_alive(state))
        groups = reader.read_groups({name})
        producers = reader.read_producers(topic)
        found = found.note(groups.notes)
        topic = found.state.topics[name]
        changes = self._read_changes(name)
        return found, describe_topic(found, topic, told, groups, producers, changes)

    def _read_changes(self, topic: str) -> Changes | None:
        """Read the last runs that planned a topic; None if the cluster has no audit topic."""
        from reconciler.api.history import read_audit_runs
        from reconciler.inventory.description import CHANGES_SINCE, Changes

        connection = self._connection
        if connection is None or connection.entry.audit_topic is None:
            return None
        try:
            runs, _ = read_audit_runs(connection, datetime.now(UTC) - CHANGES_SINCE)
        except ClusterError as error:
            return Changes(unseen="; ".join(found.what for found in error.findings))
        return Changes.of(topic, runs)

    def describe_broker(self, broker: int) -> tuple[Inventory, BrokerDescription]:
        """Read all about a broker.

        Errors: UsageError if there is none of this id; else as `read`.
        """
        from reconciler.inventory.description import describe_broker
        from reconciler.inventory.inventory import Choice

        found = self.read(Choice(), "sizes", "brokers")
        configs = None
        if self._reader is not None and broker in _list_alive(found.state):
            configs = self._reader.read_config_values(None, [broker]).get(broker)
        described = describe_broker(found, broker, configs)
        if described is None:
            known = ", ".join(str(each.id) for each in found.state.brokers)
            raise UsageError(f"{found.cluster} has no broker {broker}; it has: {known}")
        return found, described


def _list_alive(state: ClusterState) -> list[int]:
    return [broker.id for broker in state.brokers if broker.alive]
