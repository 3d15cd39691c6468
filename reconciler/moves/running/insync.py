"""min.insync.replicas of topics: lowered while their replicas move, and restored afterwards."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from reconciler.model.cluster import ClusterState, TopicState
from reconciler.model.health import is_below_min
from reconciler.model.moves import MIN_INSYNC, MovesReading
from reconciler.model.plan import PlannedTopic
from reconciler.moves.running.notes import Observe, skip
from reconciler.moves.running.rows import Row, Rows, RowState
from reconciler.moves.running.writes import Writes
from reconciler.run.ports import ClusterReader


@dataclass(slots=True)
class MinInsync:
    """Lowers and restores min.insync.replicas.

    `lowered` has the value during the move by topic, `least` is the default of the cluster. `shown`
    has the overrides as the brokers show them, and `wanted` those that the run wants; None for no
    override.
    """

    lowered: Mapping[str, int]
    least: int
    topics: Mapping[str, PlannedTopic]
    rows: Rows
    reader: ClusterReader
    writes: Writes
    shown: dict[str, str | None] = field(default_factory=dict)
    wanted: dict[str, str | None] = field(default_factory=dict)

    def check(self, state: ClusterState, observe: Observe) -> None:
        """Skip topics whose value is neither that of the plan nor the lowered one."""
        for name, lowered in self.lowered.items():
            if name not in self.topics or name not in state.topics:
                continue
            now, planned = state.topics[name].config.get(MIN_INSYNC), self._find_restored(name)
            self.shown[name] = now
            if now not in (planned, str(lowered)):
                what = f"{MIN_INSYNC}: {planned or 'not set'} → {now or 'not set'}"
                for row in self.rows.of_topics([name]):
                    if row.state is RowState.NOT_BEGUN:
                        skip(observe, row, f"{what} since the plan was made")

    def list_due(
        self, rows: Iterable[Row], reading: MovesReading, *, ending: bool = False
    ) -> dict[str, str | None]:
        """Return the values to set now, by topic; None unsets one.

        A value stays lowered until the last row of the topic has ended and is in sync.
        """
        busy = {row.place[0] for row in rows if row.adding}
        if not ending:
            waiting = self.rows.list_in(RowState.NOT_BEGUN)
            lowered = {t for t, v in self.shown.items() if v != self._find_restored(t)}
            busy |= {row.place[0] for row in waiting if row.place[0] in lowered}
        due: dict[str, str | None] = {}
        for topic, value in self.lowered.items():
            if topic not in self.topics or topic in self.rows.replaced:
                continue
            target = str(value) if topic in busy else self._find_restored(topic)
            if topic not in busy and not self._is_restorable(topic, target, reading):
                continue
            self.wanted[topic] = target
            if self.shown.get(topic) != target:
                due[topic] = target
        return {t: v for t, v in due.items() if self.writes.is_due((t, MIN_INSYNC), v)}

    def take_accepted(self, due: Mapping[str, str | None], accepted: Collection[str]) -> None:
        """Take the values that brokers accepted for what they show, until they are read."""
        self.shown.update({topic: value for topic, value in due.items() if topic in accepted})

    def name_unready(self, topics: Iterable[str]) -> str:
        """Name a topic of which not every broker shows the lowered value; empty for none."""
        lowered = [topic for topic in topics if topic in self.lowered]
        if lowered:
            self._read(lowered)
        for topic in lowered:
            if self.shown.get(topic) != str(self.lowered[topic]):
                return f"not every broker shows {MIN_INSYNC} of {topic}"
        return ""

    def restore(self, moving: Sequence[Row], reading: MovesReading, left: dict[str, str]) -> None:
        """Restore the values of topics that have nothing in flight. `left` gets what is not."""
        busy = {row.place[0] for row in moving}
        if due := self.list_due(moving, reading, ending=True):
            configs = {topic: {MIN_INSYNC: value} for topic, value in due.items()}
            self.take_accepted(due, self.writes.configure(configs))
        for topic in self.list_lowered(reading, busy):
            left[topic] = f"{MIN_INSYNC} of {topic} is still lowered"

    def list_lowered(self, reading: MovesReading, busy: Collection[str] = ()) -> tuple[str, ...]:
        """Ask all brokers, and list the topics that have the lowered value, but for `busy` ones."""
        topics = [t for t in self.lowered if t in reading.partitions and t not in busy]
        topics = [t for t in topics if t in self.topics and t not in self.rows.replaced]
        if topics:
            self._read(topics)
        lowered = {t for t in topics if self.shown.get(t) == str(self.lowered[t])}
        return tuple(sorted(t for t in lowered if self.shown[t] != self._find_restored(t)))

    def _find_restored(self, name: str) -> str | None:
        """Return the override of a topic after the plan, None for none."""
        after = self.topics[name].after
        return after.config.get(MIN_INSYNC) if after else None

    def _is_restorable(self, topic: str, target: str | None, reading: MovesReading) -> bool:
        """Return whether to give a topic back its value: the lowered one is what all brokers show.

        Another value was set by another tool or run meanwhile, and stays.
        """
        if self.shown.get(topic) == target:
            return True
        if topic not in reading.partitions or not self._is_in_sync(topic, target, reading):
            return False
        self._read([topic])
        return self.shown.get(topic) in (target, str(self.lowered[topic]))

    def _is_in_sync(self, topic: str, value: str | None, reading: MovesReading) -> bool:
        """Return whether all partitions of a topic have enough in-sync replicas for a value."""
        needed = int(value) if value else self.least
        return not any(
            is_below_min(each.replicas, each.in_sync, needed)
            for each in reading.partitions.get(topic, ())
        )

    def _read(self, topics: Collection[str]) -> None:
        """Ask all brokers for the values; one that differs from what is wanted counts."""
        views = self.reader.read_views(topics, topics)
        for topic in topics:
            wanted = self.wanted.get(topic, self._find_restored(topic))
            seen = {_find_insync(view.get(topic)) for view in views.values()}
            others = sorted(seen - {wanted}, key=str)
            self.shown[topic] = others[0] if others or not seen else wanted


def _find_insync(topic: TopicState | None) -> str | None:
    return topic.config.get(MIN_INSYNC) if topic else None
