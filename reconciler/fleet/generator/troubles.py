"""Small clusters that together have every problem that an audit finds.

They are written by hand, not drawn: the same in every fleet. A cluster has its state, today and a
day before, its lines in clusters.yaml, and the files of its topics.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from types import MappingProxyType
from typing import Any

from reconciler.fleet.generator.shapes import spell_id
from reconciler.model.cluster import (
    Assignment,
    Broker,
    ClusterState,
    LogDirectory,
    RateSource,
    ThrottleRate,
    ThrottleSide,
    TopicState,
    TopicUsage,
)

IN_SYNC = "min.insync.replicas"
UNREAD = ("connect-refused", "trouble-unread.invalid:9092 refuses connections")
"""The status and the error of a cluster that cannot be read."""

_LONG_AGO_MS = 1_735_689_600_000
"""The first of January 2025, a year before these states were read."""

_EVEN = ((1, 2, 3), (2, 3, 1), (3, 1, 2))
_PAIRS = ((1, 2), (2, 3), (3, 1))


@dataclass(frozen=True, slots=True)
class Trouble:
    """A cluster: its state, or None if it cannot be read, and the files of its topics.

    `entry` has its own lines in clusters.yaml. `staged`: it is in the second stage. `unwritten`
    names topics that its file does not have, `unowned` those without an owner in it, and `grown`
    those of half the size a day before. `also` names other clusters that the file is about, and
    `fields` has further lines of a topic.
    """

    name: str
    state: ClusterState | None
    entry: tuple[str, ...] = ()
    staged: bool = False
    unwritten: frozenset[str] = frozenset()
    unowned: frozenset[str] = frozenset()
    grown: frozenset[str] = frozenset()
    also: tuple[str, ...] = ()
    fields: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def cluster_id(self) -> str:
        """The id of the cluster, which follows from its name."""
        return _make_id(self.name)

    def look_back(self) -> ClusterState | None:
        """Return the state of a day before: the same moves are under way, and less is stored."""
        if self.state is None:
            return None
        topics = {
            name: replace(topic, size_bytes=tuple(size // 2 for size in topic.size_bytes))
            if name in self.grown
            else topic
            for name, topic in self.state.topics.items()
        }
        return replace(self.state, topics=topics)

    def write_file(self) -> str:
        """Return the file of its topics, or an empty text."""
        live = self.state.topics if self.state is not None else {}
        counts = {name: len(topic.assignment) for name, topic in live.items()}
        wished = {name: n for name, n in counts.items() if name not in self.unwritten}
        return "---\n".join(
            self._write_topic(name, count) for name, count in sorted(wished.items())
        )

    def _write_topic(self, name: str, partitions: int) -> str:
        owner = () if name in self.unowned else ("owner: trouble",)
        clusters = f"clusters: [{', '.join((self.name, *self.also))}]"
        lines = (f"topic: {name}", *owner, clusters, f"partitions: {partitions}")
        return "\n".join((*lines, *self.fields.get(name, ()))) + "\n"


def list_troubles() -> tuple[Trouble, ...]:
    """Return the clusters, by name."""
    made = (
        _break_topics(),
        _break_racks(),
        _pile_up(),
        _tilt(),
        _close_ring(),
        _leave_moves(),
        _fill_disks(),
        _load_unevenly(),
        Trouble("trouble-unread", None),
        *_make_stage(),
    )
    return tuple(sorted(made, key=lambda one: one.name))


def _topic(name: str, rows: Assignment = _EVEN, least: str = "2", **found: Any) -> TopicState:
    """Return a healthy topic, but for what is `found`. `least`: its min.insync.replicas."""
    config = {IN_SYNC: least, **found.pop("config", {})}
    known = {"in_sync": rows, "leaders": tuple(row[0] for row in rows), **found}
    return TopicState(name, _make_id(name), rows, config, **known)


_loose = partial(_topic, least="1")


def _cluster(nodes: Iterable[Broker], topics: Sequence[TopicState]) -> ClusterState:
    by_name = {topic.name: topic for topic in sorted(topics, key=lambda topic: topic.name)}
    return ClusterState(None, tuple(nodes), by_name)


def _brokers(*racks: str | None) -> tuple[Broker, ...]:
    return tuple(Broker(number, rack) for number, rack in enumerate(racks, 1))


def _defaults(replicas: int) -> str:
    return f"    defaults: {{replication_factor: {replicas}, config: {{{IN_SYNC}: 1}}}}"


def _break_topics() -> Trouble:
    """Make a topic for each rule about topics."""
    short = ((1, 2), *_EVEN[1:])
    topics = (
        _topic("t.offline", leaders=(1, -1, 3)),
        replace(_topic("t.unwritable"), in_sync=((1,), *_EVEN[1:])),
        replace(_topic("t.lagging"), in_sync=short),
        replace(_topic("t.moving"), in_sync=short, reassigning=frozenset({0})),
        _topic("t.astray", leaders=(2, 2, 3)),
        _topic("t.single", ((1,), (2,), (3,))),
        _topic("t.thin", _PAIRS),
        _topic("t.mixed", (*_EVEN, (1, 2))),
        _loose("t.careless"),
        _topic("t.unclean", config={"unclean.leader.election.enable": "true"}),
        _topic("t.wide"),
        _topic("t.lopsided", ((1, 2, 3), (1, 3, 2), (1, 2, 3))),
        _topic("t.heavy", ((1, 2), (1, 3), (2, 1), (3, 1), (1, 2), (2, 1))),
        _topic("t.crash"),
        _topic("t_crash"),
        _topic("t.unowned"),
        _topic("t.expired"),
        _topic("t.idle"),
        _topic("t.read"),
        _topic("t.unasked"),
        _topic("__consumer_offsets", ((1,), (2,), (3,)), internal=True),
    )
    # A topic that is due, by its date or by its use; one that is read; and one of unknown use.
    unused = TopicUsage(_LONG_AGO_MS, newest_ms=_LONG_AGO_MS)
    usage = {
        "t.expired": replace(unused, groups=("g-1", "g-2", "g-3", "g-4")),
        "t.idle": unused,
        "t.read": replace(unused, groups=("g-1",)),
        "t.unasked": TopicUsage(_LONG_AGO_MS, unseen="consumer groups are not visible"),
    }
    rarely = ("idle_after: 90d",)
    return Trouble(
        "trouble-topics",
        replace(_cluster(_brokers("a", "b", "c"), topics), usage=usage),
        ("    policy: {replication_factor: {min: 2}}",),
        unwritten=frozenset({"t_crash", "__consumer_offsets"}),
        unowned=frozenset({"t.unowned"}),
        fields={
            "t.wide": ("replication_factor: 4",),
            "t.expired": ("expires: 2025-03-31", *rarely),
            **dict.fromkeys(("t.idle", "t.read", "t.unasked"), rarely),
        },
    )


def _break_racks() -> Trouble:
    """Make a cluster of two racks, and a broker without one, with a topic in one rack each."""
    nodes = (*_brokers("a", "a", "a", "b", "b", "b"), Broker(7))
    crammed = _topic("racks.crammed", ((1, 2, 3), (4, 5, 6)))
    return Trouble("trouble-racks", _cluster(nodes, [crammed]))


def _pile_up() -> Trouble:
    """Make a cluster in which one broker leads everything, and another is gone."""
    nodes = (*_brokers(None, None), Broker(9, alive=False))
    rows = ((1, 9),) * 30
    piled = replace(_loose("piled.on-one", rows), in_sync=((1,),) * 30)
    return Trouble("trouble-piled", _cluster(nodes, [piled]), (_defaults(2),))


def _tilt() -> Trouble:
    """Make a cluster in which one of two racks leads everything."""
    tilted = _loose("tilted.left", tuple((1 + number % 2, 3) for number in range(60)))
    return Trouble("trouble-tilted", _cluster(_brokers("a", "a", "b"), [tilted]), (_defaults(2),))


def _close_ring() -> Trouble:
    """Make a cluster in which one broker takes over all that another one led."""
    rows = tuple((number % 4 + 1, (number + 1) % 4 + 1) for number in range(40))
    nodes = _brokers("a", "b", "c", "d")
    return Trouble("trouble-ring", _cluster(nodes, [_loose("ring.round", rows)]), (_defaults(2),))


def _leave_moves() -> Trouble:
    """Make a cluster with an unfinished drain, a cordon and throttles that nobody removed."""
    nodes = (*_brokers("a", "b", "c", "b"), Broker(5, "c", cordoned=True))
    sizes = (2**30, 2**30, 2**29)
    held = _topic("moved.held", ((1, 2, 3), (2, 3, 1), (3, 1, 4)), size_bytes=sizes)
    throttled = {"leader.replication.throttled.replicas": "0:1,0:2"}
    slow = _topic("moved.slow", size_bytes=sizes, config=throttled)
    # Sizes are known, so that the drain can be planned: broker 2 will be the fullest.
    room = {node.id: 2**40 for node in nodes} | {2: 2**34}
    directories = {n: (LogDirectory("/a", size, size // 2, 6),) for n, size in room.items()}
    # With the mark of a run of moves that was killed: under another rate no plan could go on.
    rates = ((ThrottleSide.LEADER, 2**20), (ThrottleSide.FOLLOWER, 2**20 + 1))
    default = [ThrottleRate(1, *rate, RateSource.CLUSTER_DEFAULT) for rate in rates]
    state = replace(
        _cluster(nodes, [held, slow]),
        can_cordon=True,
        throttle_rates=(*default, *(replace(rate, broker=2) for rate in default)),
        directories=directories,
    )
    entry = ("    moves: {allow: [drain], rate: 1MiB}", "    drain_brokers: [4]")
    return Trouble("trouble-moves", state, entry)


def _fill_disks() -> Trouble:
    """Make a broker with too many replicas, and a topic that will not fit on it."""
    many = _loose("full.many", ((1,),) * 4_001)
    grown = _loose("full.grown", ((1,),), size_bytes=(2**30,))
    directories = (
        LogDirectory("/a", 2**40, 2**30, 2_001),
        LogDirectory("/b", 2**40, 2**30, 2_001),
        LogDirectory("/c", None, None, online=False),
    )
    state = replace(_cluster(_brokers("a"), [many, grown]), directories={1: directories})
    return Trouble("trouble-full", state, (_defaults(1),), grown=frozenset({"full.grown"}))


def _load_unevenly() -> Trouble:
    """Make brokers and a directory that hold too much or too little, and a topic with a hot key.

    The racks differ in size, and so do the disks. One topic may leave the racks, of some partitions
    no size or no rate is known, and a cordoned broker keeps what it has.
    """
    gib = 2**30 + 7
    hot = _loose(
        "loads.hot",
        ((1, 3), (2, 5), (4, 1)),
        size_bytes=(2 * gib, 40 * gib, gib),
        write_bytes_per_s=(5_003, 900_001, 2_001),
    )
    free = _loose(
        "loads.free",
        ((1, 2), (3, 4), (6, 1)),
        size_bytes=(9 * gib, -1, 4 * gib),
        write_bytes_per_s=(-1, 70_001, 10_003),
    )
    blank = _loose("loads.blank", ((5, 4),))
    nodes = (*_brokers("a", "a", "b", "b", "c"), Broker(6, "c", cordoned=True))
    total = dict.fromkeys(range(1, 7), 2**40) | {3: 2**41}
    used = dict.fromkeys(total, (2**37, 2**37)) | {2: (2**38, 2**36), 6: (2**38, 0)}
    directories = {
        broker: tuple(
            LogDirectory(path, total[broker] // 2, total[broker] // 2 - held, 2)
            for path, held in zip(("/a", "/b"), used[broker], strict=True)
        )
        for broker in total
    }
    state = replace(_cluster(nodes, [hot, free, blank]), directories=directories)
    entry = (_defaults(2), "    balance: {by: [disk, write], within: 15%}")
    lines = {"loads.free": ("rack_aware: false",)}
    return Trouble("trouble-loads", state, entry, fields=lines)


def _make_stage() -> tuple[Trouble, ...]:
    """Make a stage of three clusters: one lacks a topic, and has another value of a config."""
    nodes, shared, tuned = _brokers("a", "b", "c"), _topic("stage.shared"), _topic("stage.tuned")
    other = replace(tuned, config={IN_SYNC: "2", "retention.ms": "3600000"})
    first, second, third = (f"trouble-stage-{letter}" for letter in "abc")
    unwritten = frozenset({shared.name, tuned.name})
    both = _cluster(nodes, [shared, tuned])
    return (
        Trouble(first, both, staged=True, also=(second, third)),
        Trouble(second, both, staged=True, unwritten=unwritten),
        Trouble(third, _cluster(nodes, [other]), staged=True, unwritten=unwritten),
    )


def _make_id(name: str) -> str:
    return spell_id(sha256(name.encode()).digest()[:16])
