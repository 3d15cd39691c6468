"""The health of a cluster as text: what is at risk by name, then notes; and all of it in one line.

Lists are bounded: JSON has all names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from reconciler.errors import escape_unprintable
from reconciler.model.health import (
    DeadBroker,
    Fault,
    FaultyPartition,
    FillingDirectory,
    HealthReport,
    MovingPartition,
    OffPreferred,
)
from reconciler.model.identity import say_identity
from reconciler.model.throttles import say_rate
from reconciler.moves.throttles import name_removals
from reconciler.show.wording import say_problems
from reconciler.styling import Paint, fold_lines, set_columns
from reconciler.units import approximate_size, count, name_each

T = TypeVar("T", FaultyPartition, OffPreferred, MovingPartition)

TOPICS_LISTED = 10
NUMBERS_LISTED = 8


@dataclass(frozen=True, slots=True)
class _Section:
    """All findings of one kind: a sentence, rows with names, and what to do."""

    says: str
    rows: tuple[Sequence[str], ...] = ()
    more: str = ""
    way_out: str = ""


def render_health(report: HealthReport, paint: Paint, *, width: int | None = None) -> str:
    """Render a report. Lines are folded to `width`. Returns: lines that end in a newline."""
    lines = [" · ".join(_head(report)), paint(*_judge(report))]
    for title, colour, sections in (
        ("At risk", "red", tuple(_list_risks(report))),
        ("Notes", "yellow", tuple(_list_notes(report))),
    ):
        if sections:
            lines += ["", paint("bold", title)]
        for section in sections:
            lines.append(f"  {paint(colour, section.says)}")
            lines += [f"    {row}" for row in set_columns(section.rows)]
            lines += [f"    {section.more}"] if section.more else []
            lines += [f"    {paint('dim', f'→ {section.way_out}')}"] if section.way_out else []
    if report.state.notes:
        lines += ["", *(f"{note.severity}: {note}" for note in report.state.notes)]
    return "".join(f"{fold_lines(line, width)}\n" for line in lines)


def _head(report: HealthReport) -> Iterator[str]:
    state = report.state
    yield report.cluster
    if identity := say_identity(state.cluster_id):
        yield identity
    yield count(len(state.brokers), "broker")
    yield count(len(state.topics), "topic")
    yield count(sum(len(topic.assignment) for topic in state.topics.values()), "partition")


def _judge(report: HealthReport) -> tuple[str, str]:
    """Return the colour and the text of the summary line."""
    full = sum(each.nearly_full for each in report.health.filling)
    said = [say_problems(report.health.counts)]
    said += [f"{full:,} log director{'y' if full == 1 else 'ies'} nearly full"] if full else []
    if report.health.at_risk:
        return "red", f"At risk: {', '.join(filter(None, said))}"
    if report.is_partial:
        return "yellow", "Not everything could be read; everything that was read is healthy."
    return "green", "Healthy: no data and no availability at risk."


def _list_risks(report: HealthReport) -> Iterator[_Section]:
    """Yield what is at risk, worst first."""
    health = report.health
    if offline := health.list_with(Fault.OFFLINE):
        has = "has" if len(offline) == 1 else "have"
        says = f"{count(len(offline), 'partition')} {has} no leader: no reads, no writes"
        wanted = sorted({b for each in offline for b in each.in_sync or each.replicas})
        gone = {each.broker for each in health.dead}
        back = [broker for broker in wanted if broker in gone] or wanted
        way_out = f"start {name_each('broker', back)}: only a replica in sync leads without loss"
        yield _Section(says, *_name_topics(offline, _name_replicas), way_out)
    if short := health.list_with(Fault.UNWRITABLE):
        take = "takes" if len(short) == 1 else "take"
        says = (
            f"{count(len(short), 'partition')} {take} no writes with acks=all: too few replicas "
            "in sync"
        )
        yield _Section(says, *_name_topics(short, _name_shortage))
    if behind := health.list_with(Fault.UNDER_REPLICATED):
        are = "is" if len(behind) == 1 else "are"
        says = f"{count(len(behind), 'partition')} {are} under-replicated"
        way_out = "start the brokers that are down; where all run, look at disks, network and load"
        yield _Section(says, *_name_topics(behind, _name_lacking), way_out)
    for dead in health.dead:
        rack = f" ({escape_unprintable(dead.rack)})" if dead.rack else ""
        says = f"broker {dead.broker}{rack} is dead and holds {count(dead.replicas, 'replica')}"
        yield _Section(says)
    for failed in health.failed_directories:
        path = escape_unprintable(failed.path)
        says = f"log directory {path} of broker {failed.broker} is offline"
        way_out = (
            "replace the disk and restart the broker; or move its replicas to other brokers: "
            f"{_command(report, 'rebalance')} --offline-replicas"
        )
        yield _Section(says, way_out=way_out)
    if full := [each for each in health.filling if each.nearly_full]:
        is_ = "log directory is" if len(full) == 1 else "log directories are"
        says = f"{len(full):,} {is_} nearly full: a broker stops when its disk is full"
        way_out = f"add room, lower a retention, or move replicas: {_command(report, 'rebalance')}"
        yield _Section(says, *_name_directories(full), way_out)


def _list_notes(report: HealthReport) -> Iterator[_Section]:
    """Yield what is not a risk now, but should be corrected."""
    health = report.health
    if health.fenced:
        yield _say_fenced(health.fenced)
    if health.cordoned:
        are = "is" if len(health.cordoned) == 1 else "are"
        says = f"{name_each('broker', health.cordoned)} {are} cordoned: nothing new is placed there"
        yield _Section(says)
    if filling := [each for each in health.filling if not each.nearly_full]:
        fill = "log directory fills" if len(filling) == 1 else "log directories fill"
        yield _Section(f"{len(filling):,} {fill}", *_name_directories(filling))
    if off := health.off_preferred:
        are, their = ("is", "its") if len(off) == 1 else ("are", "their")
        able = sum(each.electable for each in off)
        says = f"{count(len(off), 'partition')} {are} not led by {their} preferred leader"
        way_out = f"{able:,} can be elected now: {_command(report, 'elect')}" if able else ""
        yield _Section(says, *_name_topics(off, _name_leaders), way_out)
    if moving := health.moving:
        are = "is" if len(moving) == 1 else "are"
        says = f"{count(len(moving), 'partition')} {are} being reassigned"
        way_out = f"how far they are: {_command(report, 'moves status')}"
        yield _Section(says, *_name_topics(moving, lambda _: ""), way_out)
    if health.rates or health.lists:
        yield _say_throttles(report)


def _command(report: HealthReport, verb: str) -> str:
    return f"reconciler {verb} --cluster {report.cluster}"


def _say_fenced(fenced: Sequence[DeadBroker]) -> _Section:
    brokers = name_each("broker", [each.broker for each in fenced])
    are, hold = ("is", "holds") if len(fenced) == 1 else ("are", "hold")
    says = f"{brokers} {are} registered, not alive, and {hold} no replica"
    return _Section(says, way_out="start it, or unregister it: kafka-cluster unregister --id ID")


def _say_throttles(report: HealthReport) -> _Section:
    health = report.health
    unused = {throttle for left in health.leftovers for throttle in left.throttles}
    rows: list[Sequence[str]] = []
    for rate in health.rates:
        name = "cluster default" if rate.broker is None else f"broker {rate.broker}"
        state = "left over" if rate in unused else ""
        rows.append((name, f"{rate.side} rate {say_rate(rate.bytes_per_s)}", state))
    for each in health.lists:
        state = "left over" if each in unused else ""
        rows.append((each.topic, f"{each.side} replicas {each.replicas}", state))
    commands = (f"{each} --cluster {report.cluster}" for each in name_removals(health.leftovers))
    says = "throttles are set"
    if unused:
        says += "; nothing in flight uses those left over"
    shown, more = rows[:TOPICS_LISTED], len(rows) - TOPICS_LISTED
    beyond = f"{more:,} more; --format json lists all" if more > 0 else ""
    return _Section(says, tuple(shown), beyond, "; ".join(commands))


def _name_topics(
    found: Iterable[T], say: Callable[[Sequence[T]], str]
) -> tuple[tuple[Sequence[str], ...], str]:
    """Return a row for each topic with its partitions and what to say of them, and what is left."""
    by_topic: defaultdict[str, list[T]] = defaultdict(list)
    for each in found:
        by_topic[each.topic].append(each)
    rows = []
    for topic, group in list(by_topic.items())[:TOPICS_LISTED]:
        numbers = [each.partition for each in group]
        rows.append((topic, _bound("partition", numbers), say(group)))
    return tuple(rows), _say_more(len(by_topic) - TOPICS_LISTED)


def _say_more(topics: int) -> str:
    return f"… {count(topics, 'more topic')}; --format json lists all" if topics > 0 else ""


def _bound(noun: str, numbers: Sequence[int]) -> str:
    more = len(numbers) - NUMBERS_LISTED
    beyond = f" and {more:,} more" if more > 0 else ""
    plural = "" if len(numbers) == 1 else "s"
    return f"{noun}{plural} {', '.join(map(str, numbers[:NUMBERS_LISTED]))}{beyond}"


def _name_replicas(group: Sequence[FaultyPartition]) -> str:
    return f"on {_bound('broker', sorted({b for each in group for b in each.replicas}))}"


def _name_shortage(group: Sequence[FaultyPartition]) -> str:
    worst = min(group, key=lambda each: len(each.in_sync or ()))
    return f"{len(worst.in_sync or ())} in sync, {worst.needed} needed"


def _name_lacking(group: Sequence[FaultyPartition]) -> str:
    lacking = sorted({broker for each in group for broker in each.lacking})
    return f"lacks {_bound('broker', lacking)}"


def _name_leaders(group: Sequence[OffPreferred]) -> str:
    return f"preferred: {_bound('broker', sorted({each.preferred for each in group}))}"


def _name_directories(
    found: Sequence[FillingDirectory],
) -> tuple[tuple[Sequence[str], ...], str]:
    """Return a row for each directory, the fullest first, and what is left."""
    fullest = sorted(found, key=lambda each: each.free_percent)
    more = len(found) - TOPICS_LISTED
    rows = tuple(
        (
            f"broker {each.broker}",
            escape_unprintable(each.path),
            f"{approximate_size(each.usable_bytes)} of {approximate_size(each.total_bytes)} free "
            f"({each.free_percent:.0f} %)",
        )
        for each in fullest[:TOPICS_LISTED]
    )
    return rows, f"… {more:,} more; --format json lists all" if more > 0 else ""
