"""The changes, one row per topic, or by size, verb or file if there are many; and the notes."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import chain

from reconciler.errors import Finding
from reconciler.model.steps import Verb
from reconciler.show.markdown.folding import Passage, Section
from reconciler.show.markdown.marks import (
    OWNER,
    code,
    folded,
    group_names,
    list_names,
    name_owner,
    prose,
    tabulate,
)
from reconciler.show.view import PlanView, TopicView
from reconciler.show.wording import FieldView, StepView, capital
from reconciler.units import count

ROWS = 50
"""A longer table is folded."""
FLOOR = 8_000
"""Counts by file are always shown if they are not longer than this. Units: bytes."""
KEYS_IN_A_ROW = 3
VALUE_IN_A_ROW = 40
FILES_SHOWN = 10
"""A table of more files is folded."""
FILES_IN_A_TABLE = 100
OWNERS_SHOWN = 10
"""A table of more owners is folded."""


def write_changes(plan: PlanView) -> Section:
    """Return the changes: a row per topic, or names by size or by verb, or counts by file.

    Deletions have a table of their own, above.
    """
    changed = tuple(topic for topic in plan.shown if topic.steps and not topic.is_deletion)
    if not changed:
        return Section(Passage(""))
    topics = count(len(changed), "change")
    table, by_file = _table(changed), Passage(_by_file(changed), f"the names of {topics}")
    return Section(
        by_file if by_file.size <= FLOOR else Passage("", f"the list of {topics}"),
        (
            lambda: Passage(table if len(changed) <= ROWS else folded(topics, table)),
            lambda: Passage(_by_size(changed, list_names), f"the table of {topics}"),
            lambda: Passage(_by_size(changed, group_names), f"the table of {topics}"),
            lambda: Passage(_by_verb(changed), f"the table and the sizes of {topics}"),
            lambda: by_file,
        ),
        details=2,
    )


def write_explicit(plan: PlanView) -> Section:
    """Return the values of many topics that become explicit: counts by value, and the names."""
    by_value = plan.explicit_values
    if not by_value:
        return Section(Passage(""))
    said = f"{capital(plan.explicit_words)}."
    counts = {
        f"{code(field.name)} {_say_change(field)}": names for field, names in by_value.items()
    }
    short = "\n".join(f"- {value}: {count(len(n), 'topic')}" for value, n in counts.items())
    long = "\n".join(f"- {value}: {group_names(names)}" for value, names in counts.items())
    topics = count(plan.explicit, "topic")
    whole = f"{said}\n\n{short}\n\n{folded(f'The names of {topics}', long)}"
    return Section(
        Passage(f"{said}\n\n{short}", f"the names of {topics}"), (lambda: Passage(whole),)
    )


def _table(changed: Sequence[TopicView]) -> str:
    return tabulate(["", "Topic", OWNER, "Change", "Risk", "Spec"], map(_row, changed))


def _row(topic: TopicView) -> Sequence[str]:
    verbs = "<br>".join(map(name_step, topic.steps))
    says = "<br>".join(map(_describe_step, topic.steps))
    # The consequences are above, so two of one kind are one word here.
    risks = "<br>".join(
        dict.fromkeys(
            f"{note.risk}, {note.consent}" if note.acknowledged else f"**{note.risk}**"
            for note in topic.risks
        )
    )
    owner = name_owner(topic.owner, topic.labels)
    return verbs, code(topic.name), owner, says, risks, code(topic.place)


def write_outcome(plan: PlanView) -> Section:
    """Return the balance after the plan: always, since it is short."""
    said = {
        "Size": plan.totals.words,
        "Cluster": plan.balance,
        f"By {plan.by}": plan.weighed,
        "Placement": plan.evenness,
        "Next leaders": plan.next_leaders,
    }
    lines = [f"{name}: {prose(words)}." for name, words in said.items() if words]
    return Section(Passage("<br>\n".join(lines if plan.changed else [])))


def write_owners(plan: PlanView) -> Section:
    """Return the changes of each owner, if the plan changes topics of several owners."""
    owners = [owner for owner in plan.by_owner if owner is not None]
    if len(owners) < 2:
        return Section(Passage(""))
    lines = ["| Owner | Changes | Topics | Partitions | Replicas |", "|:--|--:|--:|--:|--:|"]
    for owner, totals in plan.by_owner.items():
        sizes = " | ".join(totals.show(noun) or "–" for noun in ("topic", "partition", "replica"))
        name = name_owner(owner) or "no owner"
        lines.append(f"| {name} | {totals.topics_changed:,} | {sizes} |")
    said, table = count(len(owners), "owner"), "\n".join(lines)
    whole = table if len(lines) <= OWNERS_SHOWN + 2 else folded(f"Changes by {said}", table)
    return Section(Passage("", f"the changes of {said}"), (lambda: Passage(whole),))


def name_step(step: StepView) -> str:
    """Name a step by its sign and its verb, as the text of a plan does."""
    return f"{mark_sign(step.sign)}&nbsp;{step.verb}"


def mark_sign(sign: str) -> str:
    """Escape a sign, which Markdown would take for structure."""
    return {"~": "&#126;", "-": "&minus;"}.get(sign, sign)


def _describe_step(step: StepView) -> str:
    """Describe a step briefly: in its own words, or by its configs."""
    if not step.words:
        said = [
            f"{code(field.name)} {_say_change(field)}" for field in step.configs[:KEYS_IN_A_ROW]
        ]
        beyond = len(step.configs) - len(said)
        return "<br>".join([*said, *([f"and {count(beyond, 'more config')}"] if beyond else [])])
    brought = sum(field.after is not None for field in step.configs)
    return f"{step.words}, {count(brought, 'config')}" if brought else step.words


def _say_change(field: FieldView) -> str:
    if field.explicit:
        return f"{_short(field, field.after, '')} by default → set"
    return f"{_short(field, field.before, 'not set')} → {_short(field, field.after, 'unset')}"


def _short(field: FieldView, value: str | None, nothing: str) -> str:
    """Format a value for a cell: 7d; or its length if it is long, since the details show it."""
    if value is None:
        return nothing
    said = field.show(value).removesuffix(f" ({value})")
    return prose(said) if len(said) <= VALUE_IN_A_ROW else f"({len(value):,} characters)"


def _by_size(changed: Sequence[TopicView], list_names_by: Callable[[Sequence[str]], str]) -> str:
    """Show each number of partitions and replicas once, with the names of all its topics."""
    return _fold_by_verb(
        changed,
        lambda sizes: "\n".join(
            f"- {f'{size}: ' if size else ''}{list_names_by(names)}"
            for size, names in sizes.items()
        ),
    )


def _by_verb(changed: Sequence[TopicView]) -> str:
    return _fold_by_verb(changed, lambda sizes: group_names(chain(*sizes.values())))


def _fold_by_verb(
    changed: Sequence[TopicView], list_sizes: Callable[[Mapping[str, list[str]]], str]
) -> str:
    """Fold the topics of each verb behind their number. `list_sizes`: names by size to text."""
    steps: dict[tuple[Verb, str], dict[str, list[str]]] = {}
    for topic in changed:
        for step in topic.steps:
            sizes = steps.setdefault((step.verb, mark_sign(step.sign)), defaultdict(list))
            sizes[step.size].append(topic.name)
    order = list(Verb)
    return "\n\n".join(
        folded(
            f"{sign} {verb} {count(sum(map(len, sizes.values())), 'topic')}",
            list_sizes(dict(sorted(sizes.items(), key=lambda item: _numbers(item[0])))),
        )
        for (verb, sign), sizes in sorted(steps.items(), key=lambda item: order.index(item[0][0]))
    )


def _numbers(size: str) -> list[int]:
    """Return the numbers of a size, to sort by: 6 partitions come before 12."""
    return [int(number) for number in re.findall(r"\d+", size)]


def _by_file(changed: Sequence[TopicView]) -> str:
    counts: dict[str, Counter[Verb]] = defaultdict(Counter)
    for topic in changed:
        counts[topic.location.file].update(step.verb for step in topic.steps)
    files = sorted(counts)
    lines = ["| Specs | " + " | ".join(Verb) + " |", "|:--|" + "--:|" * len(Verb)]
    lines += [_file_row(code(file), counts[file]) for file in files[:FILES_IN_A_TABLE]]
    if rest := files[FILES_IN_A_TABLE:]:
        total = sum((counts[file] for file in rest), Counter())
        lines.append(_file_row(f"{count(len(rest), 'more file')}", total))
    table = "\n".join(lines)
    in_files = f"{count(len(changed), 'change')} in {count(len(files), 'file')}"
    return table if len(files) <= FILES_SHOWN else folded(in_files, table)


def _file_row(label: str, counts: Counter[Verb]) -> str:
    return f"| {label} | " + " | ".join(f"{counts[verb]:,}" for verb in Verb) + " |"


def write_notes(plan: PlanView) -> Section:
    """Return the notes on the cluster and on single topics, folded; equal notes once."""
    noted: dict[Finding, list[str]] = defaultdict(list)
    for note in plan.notes:
        noted[note] = []
    for topic in plan.topics:
        for note in topic.notes:
            noted[note].append(topic.name)
    if not noted:
        return Section(Passage(""))
    notes = count(len(noted), "note")
    whole = "\n".join(_note(note, names) for note, names in noted.items())
    rules = Counter(note.rule for note in noted)
    counted = ", ".join(f"{number:,} {code(rule)}" for rule, number in sorted(rules.items()))
    return Section(
        Passage(f"{notes}: {counted}", f"the words of {notes}"),
        (lambda: Passage(folded(notes, whole)),),
        details=1,
    )


def _note(note: Finding, names: Sequence[str]) -> str:
    about = f" {list_names(names)}" if names else ""
    way_out = f"; {prose(note.way_out)}" if note.way_out else ""
    return f"- {note.severity}: {prose(note.what)}{way_out} {code(note.rule)}{about}"


def write_drift(plan: PlanView) -> Section:
    """List the topics outside the scope that differ from their specs, folded."""
    if not plan.existing_drift:
        return Section(Passage(""))
    summary = f"{capital(plan.drift_words)}, which this plan leaves as is"
    rows = (
        (code(t.name), name_owner(t.owner), prose(t.words), code(t.place))
        for t in plan.existing_drift
    )
    table = tabulate(["Topic", OWNER, "Live → spec", "Spec"], rows)
    names = group_names(topic.name for topic in plan.existing_drift)
    without = f"what differs in {count(len(plan.existing_drift), 'topic')} with existing drift"
    return Section(
        Passage("", f"the names of {count(len(plan.existing_drift), 'topic')} with existing drift"),
        (
            lambda: Passage(folded(summary, table)),
            lambda: Passage(folded(summary, names), without),
        ),
        details=1,
    )


def write_unmanaged(plan: PlanView) -> Section:
    """Name the live topics that no spec names, folded; the headline counts them."""
    if not plan.unmanaged:
        return Section(Passage(""))
    topics = count(len(plan.unmanaged), "unmanaged topic")
    return Section(
        Passage("", f"the names of {topics}"),
        (lambda: Passage(folded(topics, list_names(plan.unmanaged))),),
        details=1,
    )
