"""What changes, a row a topic; by verb or by file where those are too many; and what is noted."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, assert_never

from reconciler.model import AddPartitions, AlterConfig, CreateTopic, DeleteTopic
from reconciler.plan.markdown.dangers import list_names
from reconciler.plan.markdown.folding import Section, Telling
from reconciler.plan.markdown.marks import code, folded, prose
from reconciler.plan.markdown.names import group_names
from reconciler.plan.steps import steps_of
from reconciler.plan.text import count_strangers, describe_outcome, describe_size
from reconciler.units import count, describe_value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reconciler.errors import Finding
    from reconciler.model import Plan, PlannedTopic, Step

ROWS = 50
"""A longer table is folded."""
FLOOR = 8_000
"""Counts by file are told whatever else there is, where they are no longer. Units: bytes."""
KEYS_IN_A_ROW = 3
VALUE_IN_A_ROW = 40
FILES_SHOWN = 10
"""A table of more files is folded."""
FILES_IN_A_TABLE = 100


def tell_changes(plan: Plan) -> Section:
    """Tell what changes: rows, or names by verb, or counts by file."""
    changed = [topic for topic in plan.topics if steps_of(topic)]
    if not changed:
        return Section(Telling(""))
    topics = count(len(changed), "change")
    table, by_file = _table(changed), Telling(_by_file(changed), f"the names of {topics}")
    return Section(
        by_file if by_file.size <= FLOOR else Telling("", f"the list of {topics}"),
        (
            lambda: Telling(table if len(changed) <= ROWS else folded(topics, table)),
            lambda: Telling(_by_verb(changed, list_names), f"the words on {topics}"),
            lambda: Telling(_by_verb(changed, group_names), f"the words on {topics}"),
            lambda: by_file,
        ),
    )


def _table(changed: Sequence[PlannedTopic]) -> str:
    lines = ["| | Topic | Change | Risk | Spec |", "|:--|:--|:--|:--|:--|"]
    lines += [_row(topic) for topic in changed]
    return "\n".join(lines)


def _row(topic: PlannedTopic) -> str:
    steps = steps_of(topic)
    verbs = "<br>".join(f"{SIGNS[verb_of(step)]}&nbsp;{verb_of(step)}" for step in steps)
    says = "<br>".join(describe_step(step, topic) for step in steps)
    risks = "<br>".join(
        f"{note.risk}, acknowledged" if note.acknowledged else f"**{note.risk}**"
        for note in topic.risks
    )
    place = code(f"{topic.location.file}:{topic.location.line}")
    return f"| {verbs} | {code(topic.name)} | {says} | {risks} | {place} |"


def tell_outcome(plan: Plan) -> Section:
    """Tell how even the plan leaves the cluster: always, since it is short."""
    changes = any(steps_of(topic) for topic in plan.topics)
    lines = [f"{prose(line.capitalize())}." for line in describe_outcome(plan)] if changes else []
    return Section(Telling("<br>\n".join(lines)))


SIGNS = {"create": "+", "expand": "&#126;", "config": "&#126;", "delete": "&minus;"}


def verb_of(step: Step) -> str:
    """Name what a step does, as the text of a plan does."""
    match step:
        case CreateTopic():
            return "create"
        case AddPartitions():
            return "expand"
        case AlterConfig():
            return "config"
        case DeleteTopic():
            return "delete"
        case _:
            assert_never(step)


def describe_step(step: Step, topic: PlannedTopic) -> str:
    """Say a step in a few words of markdown."""
    match step:
        case CreateTopic(assignment=rows, config=config):
            size = f"{count(len(rows), 'partition')} × {count(len(rows[0]), 'replica')}"
            return f"{size}, {count(len(config), 'config')}" if config else size
        case AddPartitions(first=first, added=rows):
            return f"{first:,} → {first + len(rows):,} partitions"
        case AlterConfig():
            return _describe_config(step, topic)
        case DeleteTopic():
            return describe_size(topic)
        case _:
            assert_never(step)


def _describe_config(step: AlterConfig, topic: PlannedTopic) -> str:
    before = topic.before.config if topic.before else {}
    keys = sorted({*step.set, *step.unset})
    said = [
        f"{code(key)} {_short(key, before.get(key), 'not set')} → "
        f"{_short(key, step.set.get(key), 'unset')}"
        for key in keys[:KEYS_IN_A_ROW]
    ]
    beyond = len(keys) - len(said)
    return "<br>".join([*said, *([f"and {count(beyond, 'more config')}"] if beyond else [])])


def _short(key: str, value: str | None, nothing: str) -> str:
    """Say a value in a cell: 7d; its length, where it is long; the details have it whole."""
    if value is None:
        return nothing
    said = describe_value(key, value).removesuffix(f" ({value})")
    return prose(said) if len(said) <= VALUE_IN_A_ROW else f"({len(value):,} characters)"


def _by_verb(changed: Sequence[PlannedTopic], tell_names: Callable[[Sequence[str]], str]) -> str:
    names: dict[str, list[str]] = defaultdict(list)
    for topic in changed:
        for step in steps_of(topic):
            names[verb_of(step)].append(topic.name)
    listed = ((verb, names[verb]) for verb in SIGNS if verb in names)
    return "\n\n".join(
        folded(f"{SIGNS[verb]} {verb} {count(len(some), 'topic')}", tell_names(some))
        for verb, some in listed
    )


def _by_file(changed: Sequence[PlannedTopic]) -> str:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for topic in changed:
        counts[topic.location.file].update(verb_of(step) for step in steps_of(topic))
    files = sorted(counts)
    lines = ["| Specs | " + " | ".join(SIGNS) + " |", "|:--|" + "--:|" * len(SIGNS)]
    lines += [_file_row(code(file), counts[file]) for file in files[:FILES_IN_A_TABLE]]
    if rest := files[FILES_IN_A_TABLE:]:
        total = sum((counts[file] for file in rest), Counter())
        lines.append(_file_row(f"{count(len(rest), 'more file')}", total))
    table = "\n".join(lines)
    in_files = f"{count(len(changed), 'change')} in {count(len(files), 'file')}"
    return table if len(files) <= FILES_SHOWN else folded(in_files, table)


def _file_row(label: str, counts: Counter[str]) -> str:
    return f"| {label} | " + " | ".join(f"{counts[verb]:,}" for verb in SIGNS) + " |"


def tell_notes(plan: Plan) -> Section:
    """Tell what was noted of the cluster and of single topics, folded; equal notes once."""
    noted: dict[Finding, list[str]] = defaultdict(list)
    for note in plan.notes:
        noted[note] = []
    for topic in plan.topics:
        for note in topic.notes:
            noted[note].append(topic.name)
    if not noted:
        return Section(Telling(""))
    notes = count(len(noted), "note")
    whole = "\n".join(_note(note, names) for note, names in noted.items())
    rules = Counter(note.rule for note in noted)
    counted = ", ".join(f"{number:,} {code(rule)}" for rule, number in sorted(rules.items()))
    return Section(
        Telling(f"{notes}: {counted}", f"the words of {notes}"),
        (lambda: Telling(folded(notes, whole)),),
    )


def _note(note: Finding, names: Sequence[str]) -> str:
    about = f" {list_names(names)}" if names else ""
    way_out = f"; {prose(note.way_out)}" if note.way_out else ""
    return f"- {note.severity}: {prose(note.what)}{way_out} {code(note.rule)}{about}"


def tell_strangers(plan: Plan) -> Section:
    """Name the live topics that are in no file, folded; the headline counts them."""
    if not plan.unmanaged:
        return Section(Telling(""))
    topics = count_strangers(plan)
    return Section(
        Telling("", f"the names of {topics}"),
        (lambda: Telling(folded(topics, list_names(plan.unmanaged))),),
    )
