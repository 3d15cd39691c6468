"""Throttles of a run of moves: which entries a topic lists, and which rate is in force.

The lists name the replicas in flight only. `*` would throttle ordinary replication too, and the
healing of brokers. The rate is the cluster default, which reaches dead and future brokers.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf

from reconciler.errors import ClusterError, Finding, Severity
from reconciler.model.cluster import RateSource, ThrottleList, ThrottleSide
from reconciler.model.moves import UNLIMITED, DefaultRate, MovesReading, find_unused_lists
from reconciler.model.outcomes import AnswerKind
from reconciler.model.throttles import say_rate
from reconciler.moves.guards import judge_lists
from reconciler.moves.running.notes import Observe, note
from reconciler.moves.running.rows import SETTLED_S, Row, Rows, RowState
from reconciler.moves.running.writes import Writes
from reconciler.moves.throttles import say_default
from reconciler.run.events import MovesNote
from reconciler.run.ports import ClusterMover

Entries = frozenset[str]
Lists = dict[tuple[str, ThrottleSide], Entries]

EVERY = "*"

LATE_S = 10.0
"""How late a broker may see a change of a list: 8 s were seen under load."""


def list_entries(rows: Iterable[Row]) -> Lists:
    """Return the throttle entries of rows in flight, by topic and side.

    An added replica that is in sync may lead before the others are, so the leaders' list has the
    added replicas too.
    """
    found: dict[tuple[str, ThrottleSide], set[str]] = defaultdict(set)
    for row in rows:
        topic, partition = row.place
        if row.adding:
            found[topic, ThrottleSide.LEADER] |= {f"{partition}:{b}" for b in row.brokers}
            found[topic, ThrottleSide.FOLLOWER] |= {f"{partition}:{b}" for b in row.adding}
    return {key: frozenset(entries) for key, entries in found.items()}


def read_lists(lists: Iterable[ThrottleList]) -> Lists:
    """Return the entries of lists as read."""
    return {(each.topic, each.side): frozenset(each.entries) for each in lists}


def spell_list(entries: Collection[str]) -> str | None:
    """Spell the entries of a list as Kafka takes them, None for no list."""
    return ",".join(sorted(entries, key=_sort_entry)) if entries else None


def _sort_entry(entry: str) -> tuple[int, int, str]:
    partition, _, broker = entry.partition(":")
    if partition.isdecimal() and broker.isdecimal():
        return int(partition), int(broker), entry
    return -1, -1, entry


def is_rate_shown(reading: MovesReading, default: DefaultRate) -> bool:
    """Return whether every living broker shows the default rate, or one of its own."""
    shown = {(rate.broker, rate.side): rate for rate in reading.rates}
    for broker in reading.brokers:
        for side in ThrottleSide:
            rate = shown.get((broker.id, side))
            if not broker.alive or (rate is not None and rate.source is RateSource.BROKER):
                continue
            wanted = default.of_side(side)
            if wanted is not None and (rate is None or rate.bytes_per_s != wanted):
                return False
    return True


def is_rate_gone(reading: MovesReading) -> bool:
    """Return whether no broker shows a default rate."""
    return all(rate.source is not RateSource.CLUSTER_DEFAULT for rate in reading.rates)


def _find_half(before: DefaultRate | None, now: DefaultRate) -> ThrottleSide | None:
    """Return the side of a default of moves that stayed when somebody set or removed the other."""
    if before is None or not before.is_of_moves or now.leader == now.follower:
        return None
    same = (side for side in ThrottleSide if now.of_side(side) == before.of_side(side))
    return next(same, None)


def name_missing_lists(
    views: Mapping[int, Collection[ThrottleList]],
    wanted: Mapping[tuple[str, ThrottleSide], Entries],
    living: Collection[int],
) -> str:
    """Name a broker that does not show the wanted entries yet; empty if all of them do."""
    for broker in sorted(living):
        if broker not in views:
            return f"broker {broker} does not answer"
        shown = read_lists(views[broker])
        for (topic, side), entries in wanted.items():
            if not entries <= shown.get((topic, side), frozenset()):
                return f"broker {broker} does not show the {side} list of {topic}"
    return ""


@dataclass(slots=True)
class Throttles:
    """Sets and removes the throttles of a run.

    `policy_rate` is that of the plan in bytes per second, None for no limit. `unthrottled`: brokers
    take neither rates nor lists, so none are set nor waited for. `default` is the
    default rate that is in force, as set or adopted; None if there is none. A run removes one that
    is of moves, and leaves any other. `is_seen`: a broker showed one since the last write.
    `removed_s`: when this run last removed one. `withdrawn` has when it last took an entry out of a
    list, by topic, side and entry; of a plan that was begun before, when it took it over: the run
    before may have taken any of them out.
    `is_begun`: this plan has rows in flight or throttled. `ours` has every entry that a run of
    this plan writes.
    """

    policy_rate: int | None
    rows: Rows
    mover: ClusterMover
    writes: Writes
    observe: Observe
    unthrottled: bool = False
    default: DefaultRate | None = None
    is_seen: bool = False
    is_begun: bool = False
    removed_s: float = -inf
    withdrawn: dict[tuple[str, ThrottleSide, str], float] = field(default_factory=dict)
    ours: Lists = field(init=False)

    def __post_init__(self) -> None:
        self.ours = self._list_entries(self.rows)

    @property
    def rate(self) -> int | None:
        """The default rate that is in force; None if there is none."""
        return self.default.bytes_per_s if self.default else None

    @property
    def limit(self) -> int | None:
        """The rate that is in force, or will be for the first row; None for no limit."""
        if self.rate is None:
            return self.policy_rate
        return None if self.rate >= UNLIMITED else self.rate

    @property
    def allowed(self) -> int | None:
        """The highest rate of a broker: that of the plan, or one set since; None for any."""
        if self.policy_rate is None or self.limit is None:
            return None
        return max(self.policy_rate, self.limit)

    def take_over(self, reading: MovesReading) -> bool:
        """Take the default rate at the start as it is.

        Returns: whether a run of this plan has begun it: it has rows in flight or throttled.
        """
        self.default, lists = reading.default_rate, read_lists(reading.lists)
        self.is_begun = any(
            entries & lists.get(key, frozenset()) for key, entries in self.ours.items()
        ) or bool(self.rows.list_in(RowState.UNDER_WAY, RowState.UNCLEAR))
        if self.is_begun:
            self._note_withdrawn(self.ours)
        return self.is_begun

    def adopt_rate(self, reading: MovesReading) -> None:
        """Take the default rate that somebody set while this run is under way, and say so.

        One of moves that is gone is set again by `keep_rate`. A pause that is gone has ended.
        """
        found = reading.default_rate
        is_kept = self.rate and self.default and self.default.is_of_moves
        if is_rate_gone(reading) and (self.policy_rate is None or not is_kept):
            self.default = None
        self.is_seen |= found is not None
        if found is None or found == self.default:
            return
        before, self.default = self.default, found
        said = "paused: the rate is 0"
        if found.bytes_per_s:
            said = f"the rate is now {say_default(found)}"
        is_open = None in (found.leader, found.follower)
        if self.policy_rate is not None and (is_open or found.highest > self.policy_rate):
            said += f", more than the {self.policy_rate} B/s of the plan"
        if not found.is_of_moves:
            half = _find_half(before, found)
            whose = f"set only the half for {half}s" if half else "did not set it"
            command = f"reconciler moves unthrottle --default --cluster {reading.cluster}"
            said += (
                f"; reconciler {whose}, so it stays after the moves; to remove it then: {command}"
            )
        note(self.observe, MovesNote.RATE_CHANGED, said)

    def find_slowed(self, reading: MovesReading) -> list[Finding]:
        """Name lists of throttled replicas that nothing uses, and that the rate of a run slows.

        Once it has begun, named replicas of the topics of the plan may be its own.
        """
        if self.policy_rate is None or (self.default and not self.default.is_of_moves):
            return []  # the run sets no rate
        ours = {topic for topic, _ in self.ours} if self.is_begun else set()
        unused = find_unused_lists(reading.lists, reading.reassignments)
        left = [each for each in unused if each.is_of_all or each.topic not in ours]
        found = judge_lists(left, reading.cluster)
        return [replace(each, severity=Severity.ERROR) for each in found]

    def lift(self, reading: MovesReading) -> None:
        """Remove a rate of moves that limits nothing now, until a row begins; not a pause."""
        ours = self.default is not None and self.default.is_of_moves and self.rate
        if self.rows.foreign:
            return
        if ours and not is_rate_gone(reading) and self.writes.is_due(("", "rate"), None):
            self._write_rate(None)

    def list_due(
        self, reading: MovesReading, rows: Iterable[Row]
    ) -> dict[str, dict[str, str | None]]:
        """Return the lists to write now, as configs by topic."""
        configs: dict[str, dict[str, str | None]] = {}
        for (topic, side), value in self._list_wanted(reading, rows).items():
            if self.writes.is_due((topic, side.list_key), value):
                configs.setdefault(topic, {})[side.list_key] = value
        return configs

    def measure_others(self, reading: MovesReading) -> Counter[str]:
        """Return the bytes that entries of others take in the longer list of each topic."""
        taken: Counter[str] = Counter()
        for (topic, side), entries in read_lists(reading.lists).items():
            others = entries - self.ours.get((topic, side), frozenset())
            taken[topic] = max(taken[topic], sum(len(entry) + 1 for entry in others))
        return taken

    def keep_rate(self, reading: MovesReading) -> None:
        """Set the default rate if there is none. Errors: ClusterError if the brokers refuse."""
        if self.policy_rate is None or not is_rate_gone(reading):
            return
        wanted = self.policy_rate if self.rate is None else self.rate
        if self.writes.is_due(("", "rate"), str(wanted)):
            was_lifted = self.writes.written.get(("", "rate"), ("", 0.0))[0] is None
            if self.is_seen and not was_lifted:
                said = f"the rate was removed, and is set again to {say_rate(wanted)}"
                way_out = "`reconciler moves rate unlimited` takes the limit away"
                note(self.observe, MovesNote.RATE_CHANGED, f"{said}; {way_out}")
            self._write_rate(wanted)

    def name_unready_rate(self, reading: MovesReading) -> str:
        """Say that a living broker does not show the rate yet; empty if all of them do.

        A rate that was removed a moment ago counts as not shown: brokers whose view is late may
        still show it, although it is gone.
        """
        if self.writes.clock.monotonic() - self.removed_s < SETTLED_S:
            return "a rate that was removed a moment ago may still be shown"
        if self.default is None:
            shown = self.policy_rate is None
        else:
            shown = is_rate_shown(reading, self.default)
        return "" if shown else "not every broker shows the rate"

    def name_unready_lists(self, reading: MovesReading, copying: Sequence[Row]) -> str:
        """Name a living broker that does not show a list yet; empty if all of them do.

        An entry that was out a moment ago counts as not shown: a broker whose view is late may
        still show it from before, and is then to see that it is out.
        """
        wanted, now = self._list_entries(copying), self.writes.clock.monotonic()
        for (topic, side), entries in wanted.items():
            if any(now - self.withdrawn.get((topic, side, e), -inf) < LATE_S for e in entries):
                return f"entries of the {side} list of {topic} may have been out a moment ago"
        topics = sorted({topic for topic, _ in wanted})
        living = [broker.id for broker in reading.brokers if broker.alive]
        return name_missing_lists(self.mover.read_lists(topics), wanted, living) if wanted else ""

    def _list_entries(self, rows: Iterable[Row]) -> Lists:
        return {} if self.unthrottled else list_entries(rows)

    def remove_rate(
        self, moving: Sequence[Row], reading: MovesReading, left: dict[str, str]
    ) -> bool:
        """Remove a rate of moves if nothing uses it. `left` gets why it is still set.

        Returns: whether none is left that is to be removed.
        """
        if self.default is None or not self.default.is_of_moves:
            return True
        if moving or (self.rate == 0 and self.rows.list_in(RowState.NOT_BEGUN)):
            return True  # it stays: for what is in flight, or as the pause of an operator
        if self.rows.foreign:
            left[""] = "the throttle rate stays, since another tool or run moves replicas"
            return False
        if is_rate_gone(reading):
            return True
        if self.writes.is_due(("", "rate"), None):
            self._write_rate(None)
        left[""] = "the throttle rate is still set"
        return False

    def remove_lists(
        self, moving: Sequence[Row], reading: MovesReading, left: dict[str, str]
    ) -> None:
        """Remove the entries that nothing in flight needs. `left` gets the topics that have some.

        Of topics that were configured, all brokers are asked, once nothing else is left.
        """
        configs: dict[str, dict[str, str | None]] = {}
        for (topic, side), value in self._list_wanted(reading, moving).items():
            left[topic] = f"throttle lists of {topic} are still set"
            if self.writes.is_due((topic, side.list_key), value):
                configs.setdefault(topic, {})[side.list_key] = value
        if configs:
            self.writes.configure(configs)
        if not left and self.writes.configured:
            needed = list_entries(moving)
            for lists in self.mover.read_lists(sorted(self.writes.configured)).values():
                for key, entries in read_lists(lists).items():
                    if entries & self.ours.get(key, frozenset()) - needed.get(key, frozenset()):
                        left[key[0]] = f"throttle lists of {key[0]} are still set"

    def _list_wanted(
        self, reading: MovesReading, rows: Iterable[Row]
    ) -> dict[tuple[str, ThrottleSide], str | None]:
        """Return the lists that differ from those that some rows need; None removes a list.

        Entries of others stay.
        """
        needed, shown = list_entries(rows), read_lists(reading.lists)
        wanted: dict[tuple[str, ThrottleSide], str | None] = {}
        for key, entries in self.ours.items():
            now = shown.get(key, frozenset())
            if EVERY in now:
                continue
            then = (now - entries) | needed.get(key, frozenset())
            if then != now:
                wanted[key] = spell_list(then)
                self._note_withdrawn({key: now - then})
        return wanted

    def _note_withdrawn(self, lists: Mapping[tuple[str, ThrottleSide], Entries]) -> None:
        now = self.writes.clock.monotonic()
        self.withdrawn |= {
            (*key, entry): now for key, entries in lists.items() for entry in entries
        }

    def _write_rate(self, value: int | None) -> None:
        """Set or remove the default rate.

        Errors: ClusterError if the brokers refuse it: nothing can be throttled then.
        """
        self.writes.check_right()
        self.writes.mark(("", "rate"), None if value is None else str(value))
        if value is None:
            self.removed_s = self.writes.clock.monotonic()
        self.is_seen = False
        if value is not None:
            # Before the request: it may be carried out although its answer is lost.
            self.default = DefaultRate.of_moves(value)
        answer = self.mover.set_rate(value)
        if answer.kind is AnswerKind.REFUSED:
            said = answer.text or answer.error
            what = f"the brokers refuse the throttle rate of the cluster: {said}"
            way_out = "grant AlterConfigs on the cluster, then run the same command again"
            raise ClusterError([Finding("cluster-answer", what, way_out)])
