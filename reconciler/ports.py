"""What the core needs of the world, and no more: a reader, a writer, a lease, a clock.

Planning is handed a reader only, so it cannot write. `reconciler.kafka` implements the first three.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from reconciler.model import (
        AddPartitions,
        AlterConfig,
        Answer,
        ClusterState,
        CreateTopic,
        DeleteTopic,
        TopicState,
        TopicUsage,
    )


class ClusterReader(Protocol):
    """Reads a cluster in bulk. Errors: ClusterError with the reason and the way out."""

    def read_cluster(self, config_of: Collection[str] | None = None) -> ClusterState:
        """Read brokers, topics and overrides: a handful of requests, however many topics.

        Overrides are read for the topics of `config_of` only; None reads them for all.
        Topic ids are left out: they cost more than the rest together.
        """
        ...

    def read_topic_ids(self, names: Collection[str]) -> Mapping[str, str]:
        """Read the ids of topics that exist (KIP-516): a topic created again has another one."""
        ...

    def read_views(
        self, names: Collection[str], with_config: Collection[str] = ()
    ) -> Mapping[int, Mapping[str, TopicState]]:
        """Ask every living broker for its own view of some topics.

        Brokers answer before the others know, so a topic counts as changed once every view shows
        it. A topic that a broker does not show is left out of its view; a broker that does not
        answer is left out altogether. `config` is filled for the topics of `with_config` only.
        """
        ...

    def read_usage(self, names: Collection[str]) -> Mapping[str, TopicUsage]:
        """Find out who uses topics that are to be deleted; a topic that is gone is left out.

        What cannot be seen is said of the topic: it raises nothing for a topic's sake.
        """
        ...


class ClusterWriter(Protocol):
    """Sends one request a call: the caller keeps within the controller's record limit.

    Each method returns an answer for every step, by topic, and raises nothing for a topic's sake:
    a time-out or a lost connection is an answer of kind LOST, or NOT_DONE where nothing was sent.
    With `validate_only` the broker checks and changes nothing.
    """

    def create_topics(
        self, steps: Sequence[CreateTopic], *, validate_only: bool = False
    ) -> Mapping[str, Answer]:
        """Create topics with explicit assignments (CreateTopics)."""
        ...

    def add_partitions(
        self, steps: Sequence[AddPartitions], *, validate_only: bool = False
    ) -> Mapping[str, Answer]:
        """Append partitions with explicit assignments (CreatePartitions)."""
        ...

    def alter_configs(
        self, steps: Sequence[AlterConfig], *, validate_only: bool = False
    ) -> Mapping[str, Answer]:
        """Set and unset overrides (IncrementalAlterConfigs, KIP-339)."""
        ...

    def delete_topics(
        self, steps: Sequence[DeleteTopic], *, validate_only: bool = False
    ) -> Mapping[str, Answer]:
        """Delete topics by their ids, never by name (DeleteTopics, KIP-516).

        Brokers cannot be asked whether they would: `validate_only` checks that they can be told.
        """
        ...


class Lease(Protocol):
    """What entitles a run to change a cluster: a lock that can be lost meanwhile."""

    def check(self) -> None:
        """Return where it still stands. Errors: LockLostError, after which nothing may be sent."""
        ...


class Clock(Protocol):
    """Time, so that the core reads none of its own; the module `time` is one. Units: seconds."""

    def monotonic(self) -> float:
        """Return a time that never goes back."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...
