"""Rows of a cluster as a table: its columns, and what each cell says.

A table that is too wide for the screen loses the columns that matter least, and says which.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, NamedTuple

from reconciler.errors import escape_unprintable
from reconciler.inventory.brokers import BrokerRow, BrokerStatus
from reconciler.inventory.configs import ConfigRow
from reconciler.inventory.groups import GroupRow
from reconciler.inventory.inventory import Choice, Inventory, Kind
from reconciler.inventory.topics import PartitionRow, TopicRow
from reconciler.model.configs import Origin
from reconciler.model.health import Fault
from reconciler.styling import Paint, set_columns
from reconciler.units import approximate_duration, approximate_size, count, describe_value

NOTHING = "-"
UNKNOWN = "?"
GAP = 2

NAMED = 2
"""The number of topics of a group that a table names."""

ORIGINS: Mapping[Origin, str] = MappingProxyType(
    {
        Origin.OVERRIDE: "override of the cluster",
        Origin.SPEC: "spec",
        Origin.PROFILE: "profile",
        Origin.CLUSTER_DEFAULTS: "defaults of the cluster",
        Origin.ESTATE_DEFAULTS: "defaults of the estate",
        Origin.TOPIC: "set on the topic",
        Origin.BROKER: "broker, dynamic",
        Origin.BROKERS: "all brokers, dynamic",
        Origin.STATIC: "broker, static",
        Origin.KAFKA: "Kafka's default",
        Origin.UNKNOWN: "default",
    }
)


_FAULTS: Mapping[Fault, str] = MappingProxyType(
    {
        Fault.OFFLINE: "offline",
        Fault.UNWRITABLE: "below min.insync.replicas",
        Fault.UNDER_REPLICATED: "under-replicated",
    }
)


class Column(NamedTuple):
    """A column. `drop`: those with the highest number go first on a narrow screen; 0 never."""

    title: str
    say: Callable[[Any], str]
    drop: int = 0
    side: str = "<"


def render_rows(kind: Kind, rows: Sequence[object], paint: Paint, width: int | None) -> list[str]:
    """Return the lines of a table: its columns that have anything to say, and fit the width."""
    if not rows:
        return []
    columns = COLUMNS[kind]
    cells = [[escape_unprintable(column.say(row)) for column in columns] for row in rows]
    shown = [n for n, _ in enumerate(columns) if any(line[n] for line in cells)]
    widths = {n: max(len(columns[n].title), *(len(line[n]) for line in cells)) for n in shown}
    dropped: list[int] = []
    while width is not None and sum(widths[n] + GAP for n in shown) - GAP > width:
        spare = [n for n in shown if columns[n].drop]
        if not spare:
            break
        dropped.append(max(spare, key=lambda n: columns[n].drop))
        shown.remove(dropped[-1])
    heads = [paint("bold", columns[n].title) for n in shown]
    table = [heads, *([_tint(line[n], paint) for n in shown] for line in cells)]
    lines = set_columns(table, "".join(columns[n].side for n in shown))
    if dropped:
        names = ", ".join(columns[n].title for n in sorted(dropped))
        lines.append(paint("dim", f"not shown on this width: {names}"))
    return lines


_COLOURS: Mapping[str, str] = MappingProxyType(
    {
        "ok": "green",
        "alive": "green",
        "dead": "red",
        "cordoned": "yellow",
        "unmanaged": "yellow",
    }
)


def _tint(cell: str, paint: Paint) -> str:
    if cell.startswith((_FAULTS[Fault.OFFLINE], _FAULTS[Fault.UNWRITABLE])):
        return paint("red", cell)
    if cell.startswith(_FAULTS[Fault.UNDER_REPLICATED]):
        return paint("yellow", cell)
    return paint(_COLOURS[cell], cell) if cell in _COLOURS else cell


def say_counts(problems: Mapping[Fault, int] | None) -> str:
    """Return how many partitions have each problem."""
    if problems is None:
        return UNKNOWN
    return ", ".join(f"{_FAULTS[fault]} {number:,}" for fault, number in problems.items()) or "ok"


def say_size(size_bytes: int | None) -> str:
    """Return a size, or nothing if it was not read."""
    return "" if size_bytes is None else approximate_size(size_bytes)


def say_labels(labels: Mapping[str, str]) -> str:
    """Return the labels of a topic as a spec has them, by key."""
    return ", ".join(f"{key}: {value}".rstrip() for key, value in sorted(labels.items()))


def say_time(time_ms: int) -> str:
    """Return a time in UTC."""
    return f"{datetime.fromtimestamp(time_ms / 1000, UTC):%Y-%m-%d %H:%M}"


def say_ago(time_ms: int, now_ms: int) -> str:
    """Return how long ago a time is."""
    return f"{approximate_duration(max(now_ms - time_ms, 0) / 1000)} ago"


def say_value(row: ConfigRow) -> str:
    """Return the value of a config; each broker's if they differ."""
    if row.by_broker is not None:
        each = (f"{broker}: {_say_one(row.key, v)}" for broker, v in sorted(row.by_broker.items()))
        return "brokers differ: " + ", ".join(each)
    return _say_one(row.key, row.value)


def _say_one(key: str, value: str | None) -> str:
    return UNKNOWN if value is None else describe_value(key, value)


def say_origin(row: ConfigRow) -> str:
    """Return where a value comes from, with its place in a file."""
    said = ORIGINS[row.origin]
    if row.where is not None and row.specified is None and row.origin in _WRITTEN:
        said = f"{said} {row.where.file}:{row.where.line}"
    return said


_WRITTEN = frozenset(list(Origin)[: list(Origin).index(Origin.TOPIC)])


def say_specified(row: ConfigRow) -> str:
    """Return what the spec wants instead; nothing if it agrees."""
    if row.specified is None:
        return ""
    wanted = _say_one(row.key, row.specified) if row.specified else "no override"
    place = f" {row.where.file}:{row.where.line}" if row.where else ""
    return f"spec: {wanted}{place}"


def _say_replication(row: TopicRow) -> str:
    return "..".join(map(str, dict.fromkeys((row.replication[0], row.replication[-1]))))


def _say_written(row: TopicRow) -> str:
    if row.written_ms is None:
        return ""
    return say_time(row.written_ms) if row.written_ms else "no records"


def say_usage(row: BrokerRow) -> str:
    """Return how full the disks of a broker are; nothing if that is unknown."""
    if row.used is None:
        return ""
    used, total = row.used
    return f"{used * 100 // total if total else 0} % of {approximate_size(total)}"


def _say_trouble(row: BrokerRow) -> str:
    said = []
    if row.offline_directories:
        said.append(f"offline disks {row.offline_directories}")
    if row.behind:
        said.append(f"{row.behind:,} out of sync")
    if row.behind is None and row.status is not BrokerStatus.DEAD:
        return UNKNOWN
    return ", ".join(said) or ("ok" if row.status is not BrokerStatus.DEAD else NOTHING)


def say_flags(row: PartitionRow) -> str:
    """Return the problems of a partition, and whether it is being moved."""
    said = [_FAULTS[fault] for fault in row.problems] or [
        "ok" if row.in_sync is not None else UNKNOWN
    ]
    return ", ".join([*said, *["moving"] * row.moving])


def say_leader(row: PartitionRow) -> str:
    """Return who leads a partition."""
    if row.leader is None:
        return UNKNOWN
    return "none" if row.leader < 0 else str(row.leader)


def _list(ids: Iterable[int]) -> str:
    return ",".join(map(str, ids))


def _say_skew(row: PartitionRow) -> str:
    return "" if row.skew is None else f"{row.skew:.1f}"


def say_lag(row: GroupRow) -> str:
    """Return how far a group is behind."""
    return (UNKNOWN if row.topics or row.unseen else NOTHING) if row.lag is None else f"{row.lag:,}"


def _say_topics(row: GroupRow) -> str:
    more = len(row.topics) - NAMED
    return ", ".join(row.topics[:NAMED]) + (f" and {more:,} more" if more > 0 else "")


_TOPICS = (
    Column("topic", lambda row: row.topic),
    Column("partitions", lambda row: f"{row.partitions:,}", 0, ">"),
    Column("replicas", _say_replication, 2, ">"),
    Column("size", lambda row: say_size(row.size_bytes), 1, ">"),
    Column("last written", _say_written, 1),
    Column("standing", lambda row: row.standing or "", 3),
    Column("owner", lambda row: row.owner or "", 4),
    Column("health", lambda row: say_counts(row.problems)),
    Column("spec", lambda row: f"{row.spec.file}:{row.spec.line}" if row.spec else "", 5),
    Column("labels", lambda row: say_labels(row.labels), 6),
)

_BROKERS = (
    Column("broker", lambda row: str(row.broker), 0, ">"),
    Column("rack", lambda row: row.rack or "", 4),
    Column("status", lambda row: row.status),
    Column("leads", lambda row: UNKNOWN if row.leaders is None else f"{row.leaders:,}", 2, ">"),
    Column("preferred", lambda row: f"{row.preferred:,}", 3, ">"),
    Column("replicas", lambda row: f"{row.replicas:,}", 0, ">"),
    Column("size", lambda row: say_size(row.size_bytes), 0, ">"),
    Column("disks", say_usage, 1, ">"),
    Column("health", _say_trouble),
)

_PARTITIONS = (
    Column("topic", lambda row: row.topic),
    Column("partition", lambda row: f"{row.partition}", 0, ">"),
    Column("leader", say_leader, 1, ">"),
    Column("replicas", lambda row: _list(row.replicas), 2),
    Column("in sync", lambda row: UNKNOWN if row.in_sync is None else _list(row.in_sync), 3),
    Column("size", lambda row: say_size(row.size_bytes), 1, ">"),
    Column("× mean", _say_skew, 4, ">"),
    Column("health", say_flags),
)

_GROUPS = (
    Column("group", lambda row: row.group),
    Column("kind", lambda row: row.kind, 4),
    Column("state", lambda row: row.state),
    Column("members", lambda row: f"{row.members:,}", 1, ">"),
    Column("lag", say_lag, 0, ">"),
    Column("most behind", lambda row: f"{row.most[0]} {row.most[1]}" if row.most else "", 2),
    Column("topics", _say_topics, 3),
    Column("unseen", lambda row: row.unseen),
)

_CONFIGS = (
    Column("topic", lambda row: row.topic),
    Column("config", lambda row: row.key),
    Column("value", say_value),
    Column("from", say_origin, 2),
    Column("differs", say_specified, 1),
)

COLUMNS: Mapping[Kind, Sequence[Column]] = MappingProxyType(
    {
        "topics": _TOPICS,
        "brokers": _BROKERS,
        "partitions": _PARTITIONS,
        "groups": _GROUPS,
        "configs": _CONFIGS,
    }
)


def close_rows(
    found: Inventory, kind: Kind, rows: Sequence[object], choice: Choice
) -> Iterator[str]:
    """Yield what is said below a table: how many rows it has, and what it leaves out."""
    yield count(len(rows), kind.removesuffix("s")) if rows else f"no {kind}"
    if kind in ("brokers", "groups") or choice != Choice():
        return
    topics = found.state.topics
    if internal := sum(topic.internal for topic in topics.values()):
        yield f"{count(internal, 'internal topic')} not listed; --internal lists them"
    absent = [n for n, spec in found.specs.items() if n not in topics and not spec.absent]
    if kind == "topics" and absent:
        yield f"{count(len(absent), 'topic')} of specs not on the cluster yet; see plan"
