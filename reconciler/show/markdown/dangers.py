"""The dangers of a plan for its reviewer: alerts, deletions, refusals and risks."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from reconciler.errors import Finding
from reconciler.model.cluster import Risk
from reconciler.model.plan import RiskNote
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
from reconciler.show.wording import capital
from reconciler.units import count

Refused = Mapping[str, Sequence[tuple[TopicView, Finding]]]

EXAMPLES = 10
"""The number of names in a line; the others are folded below it."""
FEW_LINES, FEW_EXAMPLES = 4, 3
"""More lines of consequences have room for fewer names in each."""
ROWS = 20
"""More refusals than this are folded, with a line for each rule above."""
LINES = 12
"""More consequences than this are folded, with a line for each kind of risk above."""


def write_alerts(plan: PlanView) -> Section:
    """Return what the request changes besides topics, such as a looser guard or another client."""
    if not plan.alerts:
        return Section(Passage(""))
    ways: dict[str, list[Finding]] = defaultdict(list)
    for alert in plan.alerts:
        ways[alert.way_out].append(alert)
    parts = []
    for way_out, alerts in ways.items():
        places = (f"{a.where.file}:{a.where.line}" if a.where else "" for a in alerts)
        lines = [
            f"> - **{prose(capital(alert.what))}.** {code(alert.rule)} {place and code(place)}"
            for alert, place in zip(alerts, places, strict=True)
        ]
        parts.append("\n".join([*map(str.rstrip, lines), ">", f"> {prose(capital(way_out))}."]))
    alarm = "> [!CAUTION]\n"
    rules = Counter(alert.rule for alert in plan.alerts)
    counted = ", ".join(f"{number:,} {code(rule)}" for rule, number in sorted(rules.items()))
    number = count(len(plan.alerts), "alert")
    return Section(
        Passage(f"{alarm}> **{number}**: {counted}", f"the words of {number}"),
        (lambda: Passage(alarm + "\n>\n".join(parts)),),
    )


def write_deletions(plan: PlanView) -> Section:
    """Return the deletions: each topic with its size and records, or the names, or the number."""
    going = [topic for topic in plan.changed if topic.is_deletion]
    if not going:
        return Section(Passage(""))
    names, topics = [topic.name for topic in going], count(len(going), "topic")
    are, they = ("is", "it holds") if len(going) == 1 else ("are", "they hold")
    alarm = f"> [!CAUTION]\n> **{topics} {are} deleted for good**, with every record {they}."
    few = f"{alarm} {list_names(names, EXAMPLES)}"
    table = tabulate(
        ["Deleted", OWNER, "Size", "Records", "Spec"],
        (
            (code(t.name), name_owner(t.owner, t.labels), t.size, prose(t.records), code(t.place))
            for t in going
        ),
    )
    short = len(names) <= EXAMPLES
    return Section(
        Passage(few, "" if short else f"most names of {topics} to delete"),
        (
            lambda: Passage(f"{alarm}\n\n{table if short else folded(topics, table)}"),
            lambda: Passage(f"{alarm} {list_names(names)}", f"the sizes of {topics} to delete"),
        ),
        details=1,
    )


def write_refusals(plan: PlanView) -> Section:
    """Return each refused field, with the reason and the way out."""
    by_rule: dict[str, list[tuple[TopicView, Finding]]] = defaultdict(list)
    for topic in plan.topics:
        for refusal in topic.refusals:
            by_rule[refusal.rule].append((topic, refusal))
    if not by_rule:
        return Section(Passage(""))
    alarm = _alarm(plan)
    topics = count(len(plan.refused), "refused topic")
    few = sum(map(len, by_rule.values())) <= ROWS
    above = f"{alarm}\n\n{_by_rule(by_rule)}"
    concerned = {rule: {topic.name for topic, _ in by_rule[rule]} for rule in sorted(by_rule)}
    all_names = "\n".join(f"- {code(r)}: {group_names(names)}" for r, names in concerned.items())
    counts = "\n".join(
        f"- **{count(len(names), 'topic')}** {code(rule)}" for rule, names in concerned.items()
    )
    fields = any(topic.refused_change for topic in plan.refused)
    beyond, changes = (" and change", f"the changes of {topics}") if fields else ("", "")
    return Section(
        Passage(f"{alarm}\n\n{counts}", f"the names of {topics}"),
        (
            lambda: Passage(
                f"{alarm}\n\n{_table(plan)}" if few else _below(above, topics, _table(plan))
            ),
            lambda: Passage(_below(above, topics, _by_change(plan))),
            lambda: Passage(_below(above, topics, _by_reason(by_rule)), changes),
            lambda: Passage(_below(above, topics, all_names), f"each reason{beyond} of {topics}"),
            lambda: Passage(above, f"most names of {topics}"),
        ),
        details=2,
    )


def _below(above: str, summary: str, body: str) -> str:
    return f"{above}\n\n{folded(summary, body)}"


def write_refused_plan(plan: PlanView) -> Section:
    """Return the refusals of the plan as a whole: always, since they are short."""
    lines = [
        f"> **The entire plan is refused.** {prose(capital(refusal.what))}. "
        f"{prose(capital(refusal.way_out))}. {code(refusal.rule)}"
        for refusal in plan.refusals
    ]
    return Section(Passage("> [!CAUTION]\n" + "\n>\n".join(lines) if lines else ""))


def _alarm(plan: PlanView) -> str:
    number = len(plan.refused)
    refused = f"{count(number, 'topic')} {'is' if number == 1 else 'are'} refused"
    rest = "There is nothing else to apply."
    if plan.refusals:
        rest = "No part of this plan is applied."
    elif plan.changed:
        rest = (
            "Apply makes no change of this plan until this is resolved. "
            "`--skip-refused` applies the rest."
        )
    return f"> [!CAUTION]\n> **{refused}.** {rest}"


def _table(plan: PlanView) -> str:
    heads = ["Refused", OWNER, "Change", "Why", "Way out", "Spec"]
    return tabulate(heads, (row for topic in plan.topics for row in _list_rows(topic)))


def _list_rows(topic: TopicView) -> Iterator[Sequence[str]]:
    change, owner = _change(topic, "<br>"), name_owner(topic.owner, topic.labels)
    for refusal in topic.refusals:
        why = f"{prose(capital(refusal.what))}. {code(refusal.rule)}"
        out = f"{prose(capital(refusal.way_out))}." if refusal.way_out else ""
        yield code(topic.name), owner, change, why, out, code(topic.place)
        change = ""  # shown once per topic


def _change(topic: TopicView, between: str) -> str:
    """Show every field of a refused change from → to, each with the line that requests it."""
    return between.join(
        f"{code(field.name)} {prose(field.words)} {code(field.place)}"
        for field in topic.refused_change
    )


def _by_change(plan: PlanView) -> str:
    """Show each change and its reasons once, with the names of all its topics."""
    names: dict[str, list[str]] = defaultdict(list)
    for topic in plan.topics:
        if topic.refusals:
            reasons = " ".join(
                f"{code(refusal.rule)}: {prose(refusal.what)}."
                + (f" {prose(capital(refusal.way_out))}." if refusal.way_out else "")
                for refusal in topic.refusals
            )
            change = _change(topic, ", ")
            names[f"{change}. {reasons}" if change else reasons].append(topic.name)
    return "\n".join(f"- {says} {group_names(some)}" for says, some in names.items())


def _by_rule(by_rule: Refused) -> str:
    """Show each rule once, with one example reason and some names."""
    lines = []
    for rule, found in sorted(by_rule.items()):
        names = list(dict.fromkeys(topic.name for topic, _ in found))
        reasons = {refusal.what for _, refusal in found}
        first = found[0][1]
        one_of = "" if len(reasons) == 1 else ", for example"
        way_out = f" {prose(capital(first.way_out))}." if first.way_out else ""
        head = f"- **{count(len(names), 'topic')}** {code(rule)}{one_of}: {prose(first.what)}."
        lines.append(f"{head}{way_out} {list_names(names, EXAMPLES)}")
    return "\n".join(lines)


def _by_reason(by_rule: Refused) -> str:
    """Show each reason and way out once, with the names of all its topics."""
    lines = []
    for rule, found in sorted(by_rule.items()):
        names: dict[tuple[str, str], list[str]] = defaultdict(list)
        for topic, refusal in found:
            names[refusal.what, refusal.way_out].append(topic.name)
        for (what, way_out), concerned in names.items():
            out = f" {prose(capital(way_out))}." if way_out else ""
            lines.append(f"- {code(rule)}: {prose(what)}.{out} {group_names(concerned)}")
    return "\n".join(lines)


def write_risks(plan: PlanView) -> Section:
    """Return the risks of the changes, and whether the specs accept them; deletions are above."""
    risky: dict[tuple[Risk, bool, str], list[tuple[TopicView, RiskNote]]] = defaultdict(list)
    for topic in plan.topics:
        for note in () if topic.is_deletion else topic.risks:
            risky[note.risk, note.acknowledged, note.consent].append((topic, note))
    if not risky:
        return Section(Passage(""))
    # The worst risk first, and of each the topics that do not acknowledge it first.
    ordered = sorted(risky, key=lambda kind: (_ORDER.index(kind[0]), *kind[1:]))
    kinds = [_Kind(*kind, risky[kind]) for kind in ordered]
    topics = count(len({t.name for kind in kinds for t, _ in kind.found}), "topic")
    alert = _alert(kinds)

    def beyond(told: int) -> Passage:
        blocks = [folded(kind.summary, group_names(kind.names)) for kind in kinds[:told]]
        without = "most names" if told < len(kinds) else "each consequence"
        return Passage("\n\n".join([alert, *blocks]), f"{without} of {topics} at risk")

    counted = _warn(f"{kind.title} in {count(len(kind.names), 'topic')}" for kind in kinds)
    return Section(
        Passage(counted, f"the names of {topics} at risk"),
        (
            lambda: Passage("\n\n".join([alert, *_consequences(kinds, list_names)])),
            lambda: Passage("\n\n".join([alert, *_consequences(kinds, group_names)])),
            *(partial(beyond, told) for told in range(len(kinds), -1, -1)),
        ),
        details=1,
    )


def count_risks(plan: PlanView) -> str:
    """Return a short list of the risks, the worst first."""
    counts: dict[Risk, set[str]] = defaultdict(set)
    for topic in plan.topics:
        for note in topic.risks:
            counts[note.risk].add(topic.name)
    return ", ".join(
        f"**{risk}** in {count(len(counts[risk]), 'topic')}" for risk in _ORDER if risk in counts
    )


_ORDER = (Risk.DATA_LOSS, Risk.DURABILITY, Risk.ORDERING, Risk.TRAFFIC, Risk.NONE)


@dataclass(frozen=True, slots=True)
class _Kind:
    """The topics that share a risk, and whether their specs accept it."""

    risk: Risk
    acknowledged: bool
    consent: str
    found: Sequence[tuple[TopicView, RiskNote]]

    @property
    def title(self) -> str:
        if self.acknowledged:
            return f"**{self.risk}**, {self.consent}"
        return f"**{self.risk}, {self.consent}**"

    @property
    def summary(self) -> str:
        return f"{self.title.replace('*', '')}: {count(len(self.names), 'topic')}"

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys(topic.name for topic, _ in self.found))

    def by_consequence(self) -> dict[str, list[str]]:
        names: dict[str, list[str]] = defaultdict(list)
        for topic, note in self.found:
            names[note.consequence].append(topic.name)
        return names


def _alert(kinds: Sequence[_Kind]) -> str:
    """Show one line per consequence, or one example per kind of risk if there are many."""
    if _is_many(kinds):
        return _warn(map(_exemplify, kinds))
    most = _count_examples(kinds)
    return _warn(
        f"{kind.title}: {prose(consequence)}. {list_names(names, most)}"
        for kind in kinds
        for consequence, names in kind.by_consequence().items()
    )


def _exemplify(kind: _Kind) -> str:
    consequences = kind.by_consequence()
    example = prose(next(iter(consequences)))
    says = example if len(consequences) == 1 else f"for example {example}"
    names = kind.names
    return f"{kind.title} in {count(len(names), 'topic')}: {says}. {list_names(names, EXAMPLES)}"


def _is_many(kinds: Sequence[_Kind]) -> bool:
    return _count_consequences(kinds) > LINES


def _count_examples(kinds: Sequence[_Kind]) -> int:
    return EXAMPLES if _count_consequences(kinds) <= FEW_LINES else FEW_EXAMPLES


def _count_consequences(kinds: Sequence[_Kind]) -> int:
    return sum(len(kind.by_consequence()) for kind in kinds)


def _consequences(
    kinds: Sequence[_Kind], list_names_by: Callable[[Sequence[str]], str]
) -> Iterator[str]:
    """Fold the full list behind the alert: all names, by consequence."""
    many, most = _is_many(kinds), _count_examples(kinds)
    for kind in kinds:
        named = kind.by_consequence()
        if many or any(len(names) > most for names in named.values()):
            lines = (f"- {prose(says)}. {list_names_by(names)}" for says, names in named.items())
            yield folded(kind.summary, "\n".join(lines))


def _warn(lines: Iterable[str]) -> str:
    return "> [!WARNING]\n" + "\n".join(f"> - {line}" for line in lines)
