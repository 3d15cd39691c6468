"""The interfaces that the core needs: a reader, a writer, a mover, a lease, a clock.

Planning only gets a reader, so it cannot write. `reconciler.kafka` implements the first four.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from reconciler.model.cluster import (
    ClusterState,
    Place,
    Replicas,
    ThrottleList,
    TopicState,
    TopicUsage,
)
from reconciler.model.moves import MovesReading
from reconciler.model.outcomes import Answer
from reconciler.model.steps import Step


class ClusterReader(Protocol):
    """Reads a cluster in bulk. Errors: ClusterError with the reason and the way out."""

    def read_cluster(self, config_of: Collection[str] | None = None) -> ClusterState:
        """Read brokers, topics and overrides, with a few requests for any number of topics.

        Overrides are read only for the topics in `config_of`; None means all topics. The brokers'
        defaults are known only where the configs of some topic are read.
        Topic ids are not read, because they cost more than everything else together.
        """
        ...

    def read_topic_ids(self, names: Collection[str]) -> Mapping[str, str]:
        """Read the ids of existing topics (KIP-516): a topic that is created again has a new id."""
        ...

    def read_views(
        self, names: Collection[str], with_config: Collection[str] = ()
    ) -> Mapping[int, Mapping[str, TopicState]]:
        """Ask every live broker for its own view of some topics.

        A broker may show a change before the others do, so a topic counts as changed only when
        every view shows it. A view has no entry for a topic that its broker does not show. A
        broker that does not answer has no view. `config` is set only for topics in `with_config`.
        """
        ...

    def read_usage(self, names: Collection[str]) -> Mapping[str, TopicUsage]:
        """Find out who uses topics that will be deleted; missing topics are left out.

        The result of a topic says what could not be seen. No exception is raised for one topic.
        """
        ...


class ClusterWriter(Protocol):
    """Sends one request a call: the caller keeps within the controller's record limit."""

    def send(self, steps: Sequence[Step], *, validate_only: bool = False) -> Mapping[str, Answer]:
        """Send steps of one kind as one request.

        Returns an answer for every step, by topic, and raises nothing for a topic's sake: a
        time-out or a lost connection is an answer of kind LOST, or NOT_DONE if nothing was
        sent. With `validate_only` the broker checks and changes nothing; one that cannot be asked
        about a step is only asked whether it can be reached.
        """
        ...


class ClusterMover(Protocol):
    """Moves replicas. Every call is one request, or one for each broker.

    Writes return an answer for every partition or topic, as those of ClusterWriter do: an answer
    of kind LOST may have been executed, or may be executed later by a controller that was frozen.
    """

    def read(self, topics: Collection[str]) -> MovesReading:
        """Read what is in flight, whoever started it, with the health of all partitions.

        `sizes` covers `topics` and what is in flight. Errors: ClusterError if no broker answers.
        """
        ...

    def read_lists(self, topics: Collection[str]) -> Mapping[int, Collection[ThrottleList]]:
        """Ask every live broker for the throttled replicas of some topics that it shows.

        A broker shows a list a moment after the controller accepted it. A broker that does not
        answer is omitted.
        """
        ...

    def read_stored(self, broker: int) -> Collection[Place] | None:
        """Ask a living broker for the partitions in its log directories; None if it does not say.

        Errors: ClusterError if it does not answer.
        """
        ...

    def reassign(
        self, rows: Mapping[Place, Replicas | None], *, may_resize: bool = False
    ) -> Mapping[Place, Answer]:
        """Ask for new rows; None cancels what is in flight (AlterPartitionReassignments, KIP-455).

        `may_resize` allows another replication factor (KIP-860; brokers before 4.1 do not check).
        """
        ...

    def elect(self, places: Collection[Place]) -> Mapping[Place, Answer]:
        """Have preferred leaders lead, never uncleanly. One that leads already is accepted."""
        ...

    def configure(self, configs: Mapping[str, Mapping[str, str | None]]) -> Mapping[str, Answer]:
        """Set configs of topics; None unsets one. Others stay (IncrementalAlterConfigs)."""
        ...

    def relocate(self, broker: int, paths: Mapping[Place, str]) -> Mapping[Place, Answer]:
        """Move replicas of a living broker to log directories of its own (AlterReplicaLogDirs).

        One that is there drops the copy that it was making elsewhere.
        """
        ...

    def set_directory_rate(self, bytes_per_s: int | None) -> Answer:
        """Set the cluster default of the rate between log directories; None unsets it."""
        ...

    def cordon(self, broker: int) -> Answer:
        """Cordon every log directory of a living broker: Kafka places nothing there (KIP-1066)."""
        ...

    def set_rate(self, bytes_per_s: int | None, *, permanent: bool = False) -> Answer:
        """Set the cluster default of both throttle rates; None unsets it.

        It gets the mark of DefaultRate.of_moves, unless it is `permanent`: no run removes that.
        """
        ...

    def unset_rates(self, broker: int) -> Answer:
        """Unset both throttle rates of a living broker of its own."""
        ...


class Lease(Protocol):
    """The right of a run to change a cluster: a lock that the run can lose."""

    def check(self) -> None:
        """Return if the lock is held. Errors: LockLostError, after which nothing may be sent."""
        ...


class Clock(Protocol):
    """Time as an argument, so the core reads no clock; the module `time` fits. Units: seconds."""

    def monotonic(self) -> float:
        """Return a time that never decreases."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class Unlocked:
    """The lease of a run that takes no lock."""

    def check(self) -> None:
        """Always hold."""
