"""Texts for steps and topics of a plan: the one place that defines how each kind is shown.

A new kind of step has an entry in WORDINGS, and every rendering shows it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from reconciler.changes.deletions import describe_time
from reconciler.errors import Location, escape_unprintable
from reconciler.model.cluster import Assignment, Broker, Replicas, is_left_to_brokers
from reconciler.model.health import HealthCounts
from reconciler.model.plan import (
    Balance,
    FieldValue,
    PlannedTopic,
    RefusedField,
    Spread,
    TopicImage,
    Weighed,
)
from reconciler.model.steps import Step, Verb
from reconciler.placement.weigh import name_estimates
from reconciler.units import AMOUNTS, count, describe_value

Racks = tuple[set[int], ...]


class Tone(StrEnum):
    """The tone of a change; a rendering with colours has one colour for each."""

    ADD = "add"
    CHANGE = "change"
    TUNE = "tune"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class FieldView:
    """A field that changes. `before` and `after` are None where it is not set.

    `explicit`: the value is in force already, by the brokers' defaults. `why` says why it changes,
    where that is not in a spec.
    """

    name: str
    before: str | None
    after: str | None
    where: Location | None = None
    explicit: bool = False
    why: str = ""

    @property
    def words(self) -> str:
        """Return the change from → to, each value in full."""
        if self.explicit:
            return f"{self.show(self.after)} by default → set"
        words = f"{self.show(self.before, 'not set')} → {self.show(self.after, 'unset')}"
        return f"{words} · {self.why}" if self.why else words

    @property
    def place(self) -> str:
        """The file and line that request it."""
        return f"{self.where.file}:{self.where.line}" if self.where else ""

    def show(self, value: str | None, nothing: str = "") -> str:
        """Show one of its values with its unit: 7d (604800000)."""
        return nothing if value is None else escape_unprintable(describe_value(self.name, value))


@dataclass(frozen=True, slots=True)
class StepView:
    """One step of a topic. `words` describe it briefly; `details` are lines of a label and a text.

    `size` is `words` with the number of replicas, and empty for a change of configs.
    `configs` are the overrides that it sets, unsets or deletes, `rows` the partitions that get
    another row. `places`: it adds replicas.
    """

    verb: Verb
    sign: str
    tone: Tone
    words: str
    size: str
    details: tuple[tuple[str, str], ...]
    configs: tuple[FieldView, ...]
    places: bool
    rows: tuple[FieldView, ...] = ()


@dataclass(frozen=True, slots=True)
class Wording:
    """How a kind of step is shown; each function takes a step and its topic."""

    sign: str
    tone: Tone
    say: Callable[[Any, PlannedTopic], str]
    list_configs: Callable[[Any, PlannedTopic], Iterable[FieldView]] = lambda _step, _topic: ()
    list_details: Callable[[PlannedTopic, Sequence[FieldView]], Iterable[tuple[str, str]]] = (
        lambda _topic, _configs: ()
    )
    list_rows: Callable[[Any, PlannedTopic], Iterable[FieldView]] = lambda _step, _topic: ()
    add_size: Callable[[Any], str] = lambda _step: ""


def view_step(step: Step, topic: PlannedTopic) -> StepView:
    wording = WORDINGS[step.verb]
    configs, words = tuple(wording.list_configs(step, topic)), wording.say(step, topic)
    return StepView(
        verb=step.verb,
        sign=wording.sign,
        tone=wording.tone,
        words=words,
        size=f"{words}{wording.add_size(step)}",
        details=tuple(wording.list_details(topic, configs)),
        configs=configs,
        places=bool(step.placed),
        rows=tuple(wording.list_rows(step, topic)),
    )


def view_configs(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[FieldView]:
    """Yield the overrides that differ, by name."""
    for key in sorted({*before, *after}):
        if before.get(key) != after.get(key):
            yield FieldView(key, before.get(key), after.get(key))


def _compare_images(_: Step, topic: PlannedTopic) -> Iterator[FieldView]:
    before, after = (image.config if image else {} for image in (topic.before, topic.after))
    for field in view_configs(before, after):
        yield replace(field, explicit=True) if field.name in topic.explicit else field


def _list_values(topic: PlannedTopic, configs: Iterable[FieldView]) -> Iterator[tuple[str, str]]:
    """List configs of a new topic, unless each field follows with its place."""
    yield from () if topic.refused_change else ((f.name, f.show(f.after)) for f in configs)


def _list_changes(topic: PlannedTopic, configs: Iterable[FieldView]) -> Iterator[tuple[str, str]]:
    """List configs from → to, unless each field follows with its place."""
    yield from () if topic.refused_change else ((f.name, f.words) for f in configs)


def _list_elections(topic: PlannedTopic) -> Iterator[tuple[str, str]]:
    """List which brokers give up the lead to which, and how often."""
    before, after = (image.leaders if image else () for image in (topic.before, topic.after))
    changes = Counter(pair for pair in zip(before, after, strict=False) if pair[0] != pair[1])
    for (old, new), number in sorted(changes.items()):
        was = f"broker {old}" if old >= 0 else "no leader"
        yield "leads", f"{was} → broker {new} ({count(number, 'partition')})"


def _list_rows(step: Any, topic: PlannedTopic) -> Iterator[FieldView]:
    """List the partitions that get another row, each from the old row to the new one."""
    before = topic.before.assignment if topic.before else ()
    for number, row in sorted(step.rows.items()):
        yield FieldView(f"partition {number}", _spell_row(before[number]), _spell_row(row))


def _list_relocated(step: Any, _: PlannedTopic) -> Iterator[FieldView]:
    """List the replicas that get another log directory, each from the old one to the new one."""
    for (number, broker), paths in sorted(step.paths.items()):
        yield FieldView(f"partition {number} on broker {broker}", *paths)


def _say_relocated(paths: Mapping[tuple[int, int], object]) -> str:
    brokers = count(len({broker for _, broker in paths}), "broker")
    return f"{count(len(paths), 'replica')} to other log directories of {brokers}"


def _spell_row(row: Replicas) -> str:
    return ", ".join(map(str, row))


def _say_moved(rows: Mapping[int, Replicas], topic: PlannedTopic) -> str:
    """Return the partitions that get other replicas, and the number of these if it changes."""
    before = topic.before.assignment if topic.before else ()
    partitions = count(len(rows), "partition")
    sizes = {(len(before[number]), len(row)) for number, row in rows.items()}
    if len(sizes) == 1:
        old, new = next(iter(sizes))
        if old != new:
            return f"{partitions}, {old} → {count(new, 'replica')}"
    return f"replicas of {partitions}"


def _say_rows(rows: Assignment) -> str:
    return f"{count(len(rows), 'partition')} × {count(len(rows[0]), 'replica')}"


WORDINGS: Mapping[Verb, Wording] = MappingProxyType(
    {
        Verb.CREATE: Wording(
            "+", Tone.ADD, lambda step, _: _say_rows(step.placed), _compare_images, _list_values
        ),
        Verb.EXPAND: Wording(
            "~",
            Tone.CHANGE,
            lambda step, _: f"{step.first:,} → {step.first + len(step.placed):,} partitions",
            add_size=lambda step: f", {count(sum(map(len, step.placed)), 'replica')} added",
        ),
        Verb.CONFIGURE: Wording("~", Tone.TUNE, lambda *_: "", _compare_images, _list_changes),
        Verb.REORDER: Wording(
            "~",
            Tone.TUNE,
            lambda step, _: f"preferred order of {count(len(step.rows), 'partition')}",
            list_rows=_list_rows,
        ),
        Verb.MOVE: Wording(
            "~",
            Tone.CHANGE,
            lambda step, topic: _say_moved(step.rows, topic),
            list_rows=_list_rows,
        ),
        Verb.RELOCATE: Wording(
            "~",
            Tone.CHANGE,
            lambda step, _: _say_relocated(step.paths),
            list_rows=_list_relocated,
        ),
        Verb.ELECT: Wording(
            "~",
            Tone.TUNE,
            lambda step, _: f"preferred leader of {count(len(step.leaders), 'partition')}",
            list_details=lambda topic, _: _list_elections(topic),
        ),
        Verb.DELETE: Wording(
            "-",
            Tone.REMOVE,
            lambda _, topic: say_size(topic),
            _compare_images,
            lambda topic, _: [("records", say_records(topic))],
        ),
    }
)


def say_refused(topic: PlannedTopic) -> str:
    """Return the state of a refused topic without changed fields: new, or to be deleted."""
    if not topic.refusals:
        return ""
    if any(field.path == "state" for field in topic.refused_change):
        return say_size(topic)
    return "new topic" if topic.before is None else ""


def view_refused(field: RefusedField) -> FieldView:
    """Name a field as a person reads it: partitions, retention.ms, assignment of partition 3."""
    kind, _, rest = field.path.partition(".")
    name = {"config": rest, "assignment": f"assignment of partition {rest}"}.get(kind, field.path)
    return FieldView(name, _spell(field.before), _spell(field.after), field.where)


def _spell(value: FieldValue | None) -> str | None:
    return None if value is None else str(list(value) if isinstance(value, tuple) else value)


def say_size(topic: PlannedTopic) -> str:
    """Return the size of a topic to be deleted: its partitions and their replicas."""
    rows = topic.before.assignment if topic.before else ()
    return f"{count(len(rows), 'partition')}, {count(sum(map(len, rows)), 'replica')}"


def say_records(topic: PlannedTopic) -> str:
    """Return the records of a topic to be deleted, and the time of the newest.

    The number comes from offsets, in which compaction and transactions leave gaps: it is an upper
    bound.
    """
    deletion = topic.deletion
    if deletion is None or not deletion.records:
        return "none" if deletion and not sum(deletion.ends) else "none any more"
    newest = deletion.newest_ms
    since = f", the newest of {describe_time(newest)}" if newest is not None else ""
    return f"up to {deletion.records:,}{since}"


def say_placement(topic: PlannedTopic, racks: Racks) -> str:
    """Return the balance of a topic before and after, or that the brokers place what is new.

    Empty if nothing is placed.
    """
    if not topic.refusals and topic.after and is_left_to_brokers(topic.after.assignment):
        existing = len(topic.before.assignment) if topic.before else 0
        return f"by the brokers: {_say_rows(topic.after.assignment[existing:])}"
    after, before = topic.balance_after, topic.balance_before
    if after is None or topic.after is None:
        return ""
    said = [f"{describe_balance(after)} per broker", *_say_racks(topic.after, after, racks)]
    was = f" (before: {describe_balance(before)})" if before and before != after else ""
    return ", ".join(said) + was


def group_racks(brokers: Sequence[Broker]) -> Racks:
    """Return the eligible brokers by rack; empty if there is at most one rack."""
    able = {b.rack for b in brokers if b.rack is not None and b.alive and not b.cordoned}
    racks = tuple({b.id for b in brokers if b.rack == rack} for rack in sorted(able))
    return racks if len(racks) > 1 else ()


def _say_racks(after: TopicImage, balance: Balance, racks: Racks) -> Iterator[str]:
    """Return the balance of the racks, with numbers if brokers are uneven for its sake."""
    if not racks:
        return
    held = Counter(broker for row in after.assignment for broker in row)
    sums = [sum(held[broker] for broker in rack) for rack in racks]
    spread = Spread(min(sums), max(sums))
    if spread.skew > 1:
        yield f"racks {_spread(spread)}"
    else:
        uneven = balance.replicas.skew > 1
        yield f"racks even ({_spread(spread)} each)" if uneven else "racks even"


def describe_balance(balance: Balance) -> str:
    """Return the leaders and replicas per broker: one number, or the minimum and the maximum."""
    return f"leaders {_spread(balance.leaders)}, replicas {_spread(balance.replicas)}"


def describe_shift(before: Balance, after: Balance) -> str:
    """Return the balance of a cluster before and after: leaders 1..4 → 2..3, replicas …"""
    leaders = f"leaders {_spread(before.leaders)} → {_spread(after.leaders)}"
    return f"{leaders}, replicas {_spread(before.replicas)} → {_spread(after.replicas)} per broker"


def describe_weighed(weighed: Weighed) -> str:
    """Return the balance of a cluster by an amount, before and after, and what is estimated."""
    by, before, after = weighed.by, weighed.before, weighed.after
    sides = [
        *([("leaders", before.leaders, after.leaders)] if by.is_on_leaders else []),
        *([("replicas", before.replicas, after.replicas)] if by.is_on_replicas else []),
    ]
    say = AMOUNTS[by]
    shifts = ", ".join(
        f"{side} {_spread(was, say)} → {_spread(is_, say)}" for side, was, is_ in sides
    )
    return f"{shifts} per broker ({name_estimates(by, weighed.unknown)})"


def _spread(spread: Spread, say: Callable[[int], str] = str) -> str:
    least, most = say(spread.least), say(spread.most)
    return most if least == most else f"{least}..{most}"


def say_problems(counts: HealthCounts, *, brokers: bool = True) -> str:
    """Return what is wrong in one line; empty if nothing is. `brokers`: name dead ones, too."""
    partitions = {
        "offline": counts.offline,
        "below min.insync.replicas": counts.unwritable,
        "under-replicated": counts.under_replicated,
    }
    said = [f"{number:,} {what}" for what, number in partitions.items() if number]
    if said:
        first = next(filter(None, partitions.values()))
        said[0] = said[0].replace(f"{first:,}", count(first, "partition"), 1)
    if counts.brokers_down and brokers:
        said.append(f"{count(counts.brokers_down, 'broker')} dead")
    if counts.directories_offline:
        many = "y" if counts.directories_offline == 1 else "ies"
        said.append(f"{counts.directories_offline:,} log director{many} offline")
    return ", ".join(said)


def capital(text: str) -> str:
    """Begin a sentence with a capital, unless it begins with the name of a field."""
    return text[:1].upper() + text[1:] if text.partition(" ")[0].isalpha() else text
