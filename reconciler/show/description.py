"""A topic or a broker on one screen: its settings, owner, health and users."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap

from reconciler.errors import escape_unprintable
from reconciler.inventory.brokers import BrokerRow
from reconciler.inventory.configs import ConfigRow
from reconciler.inventory.description import (
    CHANGES_SINCE,
    BrokerDescription,
    TopicDescription,
)
from reconciler.inventory.inventory import Inventory
from reconciler.inventory.topics import PartitionRow
from reconciler.model.cluster import SHORT, Broker
from reconciler.model.configs import Origin
from reconciler.show.explain.table import Line, Table
from reconciler.show.inventory import (
    ORIGINS,
    render_rows,
    say_ago,
    say_counts,
    say_flags,
    say_labels,
    say_leader,
    say_origin,
    say_size,
    say_specified,
    say_time,
    say_usage,
    say_value,
)
from reconciler.show.text import paint_outcome
from reconciler.styling import Paint, fold_lines, set_columns
from reconciler.units import approximate_size, count, describe_value

MOST = 40
"""More partitions are listed only if something is wrong with them."""

TOPICS_SHOWN = 15
"""The number of topics of a broker to list, the largest first."""

NO_CHANGE = f"none in the audit topic in {CHANGES_SINCE.days} days"

LABEL = 12
HOT = 2.0
"""A partition of this size in relation to the mean may have a hot key."""


def render_topic(
    found: Inventory,
    about: TopicDescription,
    next_plan: Sequence[str],
    paint: Paint,
    width: int,
    now_ms: int,
) -> str:
    """Render a topic. In: the lines of what the next plan does. Returns: lines with a newline."""
    blocks = [
        _say_topic(about, paint, now_ms),
        [paint("bold", "Configs in force"), *_list_configs(about.configs, paint, width)],
        [paint("bold", "Next plan"), *next_plan] if next_plan else [],
        [paint("bold", "Replicas"), *_draw(about.partitions, found.state.brokers, paint, width)],
        _list_users(about, paint, width),
        _list_changes(about, paint),
    ]
    return _join(blocks, width)


def _say_topic(about: TopicDescription, paint: Paint, now_ms: int) -> list[str]:
    row = about.topic
    standing = f" · {row.standing}" if row.standing else ""
    title = paint("bold", f"{row.topic}{standing}")
    replication = "..".join(map(str, dict.fromkeys((row.replication[0], row.replication[-1]))))
    spec = f"{row.spec.file}:{row.spec.line}" if row.spec else ""
    lines = [
        ("owner", escape_unprintable(row.owner or "")),
        ("labels", escape_unprintable(say_labels(row.labels))),
        ("spec", spec + (f" · profile {about.profile}" if about.profile else "")),
        ("about", escape_unprintable(" ".join((about.about or "").split()))),
        ("id", about.topic_id or ""),
        ("partitions", f"{row.partitions:,} × {replication} replicas"),
        ("health", _tint(say_counts(row.problems), paint)),
        ("size", _say_skew(about)),
        ("written", _say_written(about, now_ms)),
        ("read", _say_read(about)),
        ("producers", _say_producers(about)),
    ]
    return [title, *(f"{label:<{LABEL}}{text}" for label, text in lines if text)]


def _tint(health: str, paint: Paint) -> str:
    return paint("green" if health == "ok" else "yellow" if health == "?" else "red", health)


def _say_skew(about: TopicDescription) -> str:
    total, hottest = about.topic.size_bytes, about.hottest
    if total is None:
        return ""
    said = f"{approximate_size(total)}, each partition counted once"
    if hottest is None or hottest.skew is None:
        return said
    warning = "; a hot key?" if hottest.skew >= HOT else ""
    largest = f"largest: partition {hottest.partition} with {say_size(hottest.size_bytes)}"
    return f"{said} · {largest}, {hottest.skew:.1f} × the mean{warning}"


def _say_written(about: TopicDescription, now_ms: int) -> str:
    usage = about.usage
    if usage is None:
        return "unknown: a snapshot does not hold it"
    if not usage.ends:
        return f"unknown: {usage.unseen}"
    if usage.newest_ms is None:
        return "never" if not sum(usage.ends) else "holds no records any more"
    newest = f"{say_time(usage.newest_ms)} UTC, {say_ago(usage.newest_ms, now_ms)}"
    return f"{newest} (newest timestamp of a record) · up to {usage.records:,} records"


def _say_read(about: TopicDescription) -> str:
    if about.usage is None:
        return ""
    if about.usage.unseen and about.usage.ends:
        return f"unknown: {about.usage.unseen}"
    if not about.usage.groups:
        return "no active group; Kafka does not keep the time of the last read"
    return f"now, by {count(len(about.usage.groups), 'active group')}"


def _say_producers(about: TopicDescription) -> str:
    producers = about.producers
    if producers is None:
        return ""
    if producers.unseen:
        return f"unknown: {producers.unseen}"
    if not producers.count:
        return "none with an id lately; producers without idempotence have no id"
    named = ", ".join(map(escape_unprintable, producers.transactional))
    ids = f" · transactional ids: {named}" if named else ", none of them transactional"
    return f"{count(producers.count, 'producer id')} lately{ids}"


def _list_configs(configs: Sequence[ConfigRow], paint: Paint, width: int) -> Iterator[str]:
    """Yield what somebody set, a line each, then Kafka's defaults together."""
    set_by = [row for row in configs if _is_set(row)]
    lines = [
        (f"  {row.key}", escape_unprintable(say_value(row)), say_origin(row)) for row in set_by
    ]
    for row, line in zip(set_by, set_columns(lines), strict=True):
        yield line
        if differs := say_specified(row):
            yield f"    {paint('yellow', differs)}"
    by_origin: dict[Origin, list[str]] = defaultdict(list)
    for row in (row for row in configs if not _is_set(row)):
        by_origin[row.origin].append(f"{row.key}={row.value}")
    for origin, said in by_origin.items():
        text = f"{ORIGINS[origin]}: {', '.join(said)}"
        yield from (
            paint("dim", line)
            for line in wrap(
                text,
                width,
                initial_indent="  ",
                subsequent_indent="    ",
                break_on_hyphens=False,
                break_long_words=False,
            )
        )


def _is_set(row: ConfigRow) -> bool:
    quiet = row.origin in (Origin.KAFKA, Origin.UNKNOWN)
    return not quiet or row.specified is not None or row.by_broker is not None


def _draw(
    partitions: Sequence[PartitionRow], brokers: Sequence[Broker], paint: Paint, width: int
) -> Iterator[str]:
    """Yield the matrix: partitions by brokers in their racks, with leader, size and health."""
    shown = partitions
    if len(partitions) > MOST:
        shown = [row for row in partitions if row.problems or row.moving][:MOST]
    if shown:
        legend = "L preferred leader · F follower · * leads instead · ! not in sync"
        yield paint("dim", legend)
        holding = {broker for row in shown for broker in row.replicas}
        racks: dict[str | None, list[Broker]] = defaultdict(list)
        for broker in brokers:
            if broker.id in holding:
                racks[broker.rack].append(broker)
        order = sorted(racks.items(), key=lambda item: (item[0] is None, item[0]))
        names = [("",) if name is None else (escape_unprintable(name),) for name, _ in order]
        lines = [] if not any(filter(None, racks)) else [Line("", (*names, ("",)), across=True)]
        heads = [tuple(str(b.id) if b.alive else f"({b.id})" for b in group) for _, group in order]
        lines.append(Line("broker", (*heads, ("leads", "size", "health"))))
        for number, row in enumerate(shown):
            cells = [tuple(_mark(row, b.id) for b in group) for _, group in order]
            facts = (say_leader(row), say_size(row.size_bytes) or "?", say_flags(row))
            lines.append(Line(str(row.partition), (*cells, facts), rule_above=number == 0))
        for table in Table(tuple(lines)).split(width):
            yield from (line.rstrip() for line in table.render(paint))
    if more := len(partitions) - len(shown):
        yield f"{count(more, 'more partition')}; reconciler get partitions lists all"


def _mark(row: PartitionRow, broker: int) -> str:
    if broker not in row.replicas:
        return "·"
    leads = "*" if row.leader == broker != row.replicas[0] else ""
    lags = "!" if row.in_sync is not None and broker not in row.in_sync else ""
    return f"{leads}{lags}{'L' if broker == row.replicas[0] else 'F'}"


def _list_users(about: TopicDescription, paint: Paint, width: int) -> list[str]:
    if about.groups is None:
        return []
    rows = render_rows("groups", about.groups, paint, width)
    return [paint("bold", "Groups"), *(rows or ["none holds committed offsets on it or reads it"])]


def _list_changes(about: TopicDescription, paint: Paint) -> list[str]:
    changes = about.changes
    if changes is None:
        return []
    cells = [
        (
            f"  {each.at:%Y-%m-%d %H:%M}",
            escape_unprintable(each.verb),
            paint_outcome(each.outcome, paint),
            escape_unprintable(each.user),
            f"commit {escape_unprintable(each.commit[:SHORT])}" if each.commit else "",
        )
        for each in changes.last
    ]
    nothing = f"unknown: {changes.unseen}" if changes.unseen else NO_CHANGE
    return [paint("bold", "Last changes"), *(set_columns(cells) or [f"  {nothing}"])]


def render_broker(about: BrokerDescription, paint: Paint, width: int) -> str:
    """Render a broker. Returns: lines that end in a newline."""
    row = about.broker
    blocks = [
        list(_say_broker(row, paint)),
        _list_held(about, paint),
        _list_places("Not in sync here", about.behind, paint),
        _list_places("Preferred leader here, led elsewhere", about.not_leading, paint),
        _list_set(about, paint),
    ]
    return _join(blocks, width)


def _say_broker(row: BrokerRow, paint: Paint) -> Iterator[str]:
    yield paint("bold", f"broker {row.broker} · {row.status}")
    leads = "?" if row.leaders is None else f"{row.leaders:,}"
    lines = [
        ("rack", escape_unprintable(row.rack or "")),
        ("leads", f"{leads} as leader, {row.preferred:,} as preferred leader"),
        ("replicas", f"{row.replicas:,}" + (f", {row.behind:,} not in sync" if row.behind else "")),
        ("size", say_size(row.size_bytes)),
        ("disks", say_usage(row)),
    ]
    yield from (f"{label:<{LABEL}}{text}" for label, text in lines if text)
    for each in row.directories:
        free = (
            f"{approximate_size(each.usable_bytes)} of {approximate_size(each.total_bytes)} free"
            if each.usable_bytes is not None and each.total_bytes is not None
            else "free space unknown"
        )
        held = "" if each.replicas is None else f", {count(each.replicas, 'replica')}"
        if each.path in row.directory_bytes:
            held += f" of {approximate_size(row.directory_bytes[each.path])}"
        state = f"{free}{held}" if each.online else paint("red", "offline")
        yield f"{'directory':<{LABEL}}{escape_unprintable(each.path)}: {state}"


def _list_held(about: BrokerDescription, paint: Paint) -> list[str]:
    if not about.topics:
        return ["It holds no replica."]
    heads = ("  topic", "leads", "preferred", "replicas", "size")
    lines = [
        (
            f"  {each.topic}",
            f"{each.leaders:,}",
            f"{each.preferred:,}",
            f"{each.replicas:,}",
            say_size(each.size_bytes),
        )
        for each in about.topics[:TOPICS_SHOWN]
    ]
    more = len(about.topics) - TOPICS_SHOWN
    rest = [f"  {count(more, 'more topic')}; --format json lists all"] if more > 0 else []
    return [paint("bold", "Holds"), *set_columns([heads, *lines], "<>"), *rest]


def _list_places(title: str, rows: Sequence[PartitionRow], paint: Paint) -> list[str]:
    if not rows:
        return []
    shown = [f"  {row.topic} {row.partition}: {say_flags(row)}" for row in rows[:TOPICS_SHOWN]]
    more = len(rows) - TOPICS_SHOWN
    rest = [f"  {count(more, 'more partition')}; --format json lists all"] if more > 0 else []
    return [paint("bold", title), *shown, *rest]


def _list_set(about: BrokerDescription, paint: Paint) -> list[str]:
    if about.configs is None:
        return []
    by_origin: dict[Origin, list[str]] = defaultdict(list)
    for each in about.configs:
        value = "withheld" if each.value is None else describe_value(each.key, each.value)
        by_origin[each.origin].append(f"    {each.key} = {escape_unprintable(value)}")
    lines = [line for o, said in by_origin.items() for line in (f"  {ORIGINS[o]}", *said)]
    return [paint("bold", "Configs that are set"), *lines]


def _join(blocks: Iterable[Sequence[str]], width: int) -> str:
    return fold_lines("\n\n".join("\n".join(block) for block in blocks if block) + "\n", width)
