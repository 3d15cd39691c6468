"""Which rows a plan on request may move, and why others stay."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from reconciler.errors import Finding, Severity
from reconciler.model.cluster import ClusterState, Replicas, ThrottleSide, TopicSpec, TopicState
from reconciler.model.moves import MoveKind
from reconciler.model.plan import is_chosen
from reconciler.moves.differences import MoveDiff, diff_moves
from reconciler.moves.plan import allowed_moves
from reconciler.spec.entry import ClusterEntry
from reconciler.units import count

NAMED = 5
"""The number of topics that a note names; it counts the others."""


class MovableTopics:
    """The topics that may move, and why others may not."""

    def __init__(
        self, entry: ClusterEntry, specs: Mapping[str, TopicSpec], state: ClusterState
    ) -> None:
        self.entry, self.specs, self.state = entry, specs, state
        self.left: dict[str, list[str]] = defaultdict(list)
        self.alive = {broker.id for broker in state.brokers if broker.alive}
        cordoned = {broker.id for broker in state.brokers if broker.cordoned}
        self.frozen = cordoned | entry.drain_brokers
        self.moving = {each.topic for each in state.reassignments}

    def choose(self, topics: str) -> Iterator[MoveDiff]:
        """Yield the rows of every topic that may move, by name."""
        every = frozenset(MoveKind)
        asked = diff_moves(
            self.specs.values(), self.state, replace(allowed_moves(self.entry), allow=every)
        )
        pending = {diff.spec.name for diff in asked}
        for name, topic in sorted(self.state.user_topics.items()):
            if not (is_chosen(name, topics) and self.entry.manages(name)):
                continue
            spec = self.specs.get(name, TopicSpec(name, self.entry.location))
            if why := self._refuse(spec, topic, pending):
                self.left[why].append(name)
                continue
            given = {
                number: row
                for number, row in enumerate(topic.assignment)
                if not self._may_move(topic, number, row)
            }
            if given:
                why = "partitions out of sync, or on a cordoned or drained broker"
                self.left[why].append(name)
            if offline := self.state.find_offline(topic):
                given = {
                    number: self._lead_elsewhere(row, topic.in_sync[number], offline[number])
                    for number, row in given.items()
                }
            kept = replace(spec, partitions=None, replication_factor=None, assignment=None)
            yield MoveDiff(kept, topic, topic.assignment, given, None, ())

    def choose_offline(
        self, topics: str, takers: Collection[int], able: Collection[int]
    ) -> Iterator[MoveDiff]:
        """Yield the topics with replicas on failed log directories; only rows with one may move.

        In: the brokers that take replicas, and all that could. Topics internal to Kafka and those
        of no file count as well: a disk fails for all.
        """
        for name, topic in sorted(self.state.topics.items()):
            offline = self.state.find_offline(topic)
            if not any(offline) or not is_chosen(name, topics):
                continue
            spec = self.specs.get(name, TopicSpec(name, self.entry.location))
            if why := self._refuse(spec, topic, ()):
                self.left[why].append(name)
                continue
            given = {n: row for n, row in enumerate(topic.assignment) if not offline[n]}
            for number, row in enumerate(topic.assignment):
                stays = set(row).difference(offline[number])
                if not offline[number]:
                    continue
                if not self.alive.intersection(topic.in_sync[number]):
                    why = "no replica that is alive and in sync"
                elif not self.frozen.isdisjoint(row):
                    why = "on a cordoned or drained broker"
                elif len(stays.union(able)) < len(row):
                    why = "too few brokers without a failed log directory"
                elif len(stays.union(takers)) < len(row):
                    why = "too few of --brokers can take one"
                else:
                    continue
                given[number] = row
                if name not in self.left[why]:
                    self.left[why].append(name)
            kept = replace(spec, partitions=None, replication_factor=None, assignment=None)
            yield MoveDiff(kept, topic, topic.assignment, given, None, ())

    def _refuse(self, spec: TopicSpec, topic: TopicState, pending: Collection[str]) -> str:
        """Say why a topic may not move; nothing if it may."""
        if spec.absent:
            return "to be deleted"
        if spec.assignment is not None:
            return "manual assignment"
        if topic.name in self.moving or topic.reassigning:
            return "being reassigned"
        if any("*" in (topic.config.get(side.list_key) or "") for side in ThrottleSide):
            return "a throttle list of *, which reconciler did not set"
        if topic.name in pending:
            return "moves are pending: reconciler plan --moves"
        return ""

    def _may_move(self, topic: TopicState, number: int, row: Replicas) -> bool:
        """Return whether a partition is healthy, and on no broker that keeps it."""
        in_sync = topic.in_sync[number] if topic.in_sync else row
        return set(row) <= self.alive & set(in_sync) and self.frozen.isdisjoint(row)

    def _lead_elsewhere(self, row: Replicas, in_sync: Replicas, offline: Replicas) -> Replicas:
        """Return a row that stays, in another order if its preferred leader has a failed disk.

        Brokers refuse another order of a row with a cordoned broker.
        """
        if row[0] not in offline or not self.frozen.isdisjoint(row):
            return row
        able = self.alive.intersection(in_sync)
        leader = next((broker for broker in row if broker in able), row[0])
        return (leader, *(broker for broker in row if broker != leader))

    def note_left(self) -> Iterator[Finding]:
        """Name the topics that stay, by reason."""
        for why, names in self.left.items():
            more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
            what = f"{count(len(names), 'topic')} left as they are ({why})"
            listed = f"{what}: {', '.join(names[:NAMED])}{more}"
            yield Finding("rebalance-left", listed, severity=Severity.NOTE)
