"""What a reviewer must not miss: refusals first, then risks, each told however many there are."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from reconciler.model import Risk
from reconciler.plan.markdown.folding import Section, Telling
from reconciler.plan.markdown.marks import code, prose
from reconciler.plan.steps import steps_of
from reconciler.plan.text import capital, count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from reconciler.errors import Finding
    from reconciler.model import Plan, PlannedTopic, RiskNote

    Refused = Mapping[str, Sequence[tuple[PlannedTopic, Finding]]]
    Risky = Mapping[tuple[Risk, bool], Sequence[tuple[PlannedTopic, RiskNote]]]

EXAMPLES = 10


def tell_refusals(plan: Plan) -> Section:
    """Tell what is refused, why, and the way out."""
    by_rule: dict[str, list[tuple[PlannedTopic, Finding]]] = defaultdict(list)
    for topic in plan.topics:
        for refusal in topic.refusals:
            by_rule[refusal.rule].append((topic, refusal))
    if not by_rule:
        return Section(Telling(""))
    alarm = _alarm(plan)
    topics = count(sum(bool(topic.refusals) for topic in plan.topics), "refused topic")
    return Section(
        Telling(f"{alarm}\n\n{_count_rules(by_rule)}", f"the names of {topics}"),
        (
            lambda: Telling(f"{alarm}\n\n{_table(plan)}"),
            lambda: Telling(f"{alarm}\n\n{_by_rule(by_rule)}", f"each reason of {topics}"),
            lambda: Telling(f"{alarm}\n\n{_by_rule(by_rule, EXAMPLES)}", f"most names of {topics}"),
        ),
    )


def _alarm(plan: Plan) -> str:
    number = sum(bool(topic.refusals) for topic in plan.topics)
    refused = f"{count(number, 'topic')} {'is' if number == 1 else 'are'} refused"
    rest = "There is nothing else to apply."
    if any(steps_of(topic) for topic in plan.topics):
        rest = (
            "Apply does nothing of this plan until that is settled, unless told `--skip-refused`."
        )
    return f"> [!CAUTION]\n> **{refused}.** {rest}"


def _table(plan: Plan) -> str:
    lines = ["| Refused | Why | Way out | Spec |", "|:--|:--|:--|:--|"]
    for topic in plan.topics:
        for refusal in topic.refusals:
            why = f"{prose(capital(refusal.what))}. {code(refusal.rule)}"
            place = code(f"{topic.location.file}:{topic.location.line}")
            out = f"{prose(capital(refusal.way_out))}." if refusal.way_out else ""
            lines.append(f"| {code(topic.name)} | {why} | {out} | {place} |")
    return "\n".join(lines)


def _by_rule(by_rule: Refused, most: int | None = None) -> str:
    """Tell each rule once, with one reason of many, and the names."""
    return "\n".join(_refused(rule, found, most) for rule, found in sorted(by_rule.items()))


def _refused(rule: str, found: Sequence[tuple[PlannedTopic, Finding]], most: int | None) -> str:
    names = list(dict.fromkeys(topic.name for topic, _ in found))
    reasons = {refusal.what for _, refusal in found}
    first = found[0][1]
    one_of = "" if len(reasons) == 1 else ", for example"
    way_out = f" {prose(capital(first.way_out))}." if first.way_out else ""
    head = f"- **{count(len(names), 'topic')}** {code(rule)}{one_of}: {prose(first.what)}.{way_out}"
    return f"{head} {list_names(names, most)}"


def _count_rules(by_rule: Refused) -> str:
    return "\n".join(
        f"- **{count(len({topic.name for topic, _ in found}), 'topic')}** {code(rule)}"
        for rule, found in sorted(by_rule.items())
    )


def list_names(names: Sequence[str], most: int | None = None) -> str:
    """List names as code, or so many of them and the number of the others."""
    shown = ", ".join(map(code, names[:most]))
    beyond = len(names) - len(names[:most])
    return f"{shown} and {beyond:,} more" if beyond else shown


def tell_risks(plan: Plan) -> Section:
    """Tell what the changes can cost, and whether the specs accept it."""
    risky: dict[tuple[Risk, bool], list[tuple[PlannedTopic, RiskNote]]] = defaultdict(list)
    for topic in plan.topics:
        for note in topic.risks if steps_of(topic) else ():
            risky[note.risk, note.acknowledged].append((topic, note))
    if not risky:
        return Section(Telling(""))
    topics = count(len({t.name for found in risky.values() for t, _ in found}), "topic")
    return Section(
        Telling(_alert(_count_risks(risky)), f"the names of {topics} at risk"),
        (
            lambda: Telling(_alert(_consequences(risky))),
            lambda: Telling(_alert(_names(risky)), f"each consequence for {topics} at risk"),
            lambda: Telling(_alert(_names(risky, EXAMPLES)), f"most names of {topics} at risk"),
        ),
    )


def count_risks(plan: Plan) -> str:
    """Say in a few words which risks there are, the worst first."""
    counts: dict[Risk, set[str]] = defaultdict(set)
    for topic in plan.topics:
        for note in topic.risks if steps_of(topic) else ():
            counts[note.risk].add(topic.name)
    return ", ".join(
        f"**{risk}** in {count(len(counts[risk]), 'topic')}" for risk in _ORDER if risk in counts
    )


_ORDER = (Risk.DATA_LOSS, Risk.ORDERING, Risk.TRAFFIC, Risk.NONE)


def _sorted(risky: Risky) -> Iterator[tuple[str, Sequence[tuple[PlannedTopic, RiskNote]]]]:
    """Yield each kind in words with its topics: the worst first, the unaccepted before the rest."""
    for risk, acknowledged in sorted(risky, key=lambda kind: (_ORDER.index(kind[0]), kind[1])):
        kind = f"**{risk}**, acknowledged" if acknowledged else f"**{risk}, mind this**"
        yield kind, risky[risk, acknowledged]


def _alert(lines: Iterable[str]) -> str:
    return "> [!WARNING]\n" + "\n".join(f"> - {line}" for line in lines)


def _consequences(risky: Risky) -> Iterator[str]:
    for kind, found in _sorted(risky):
        names: dict[str, list[str]] = defaultdict(list)
        for topic, note in found:
            names[note.consequence].append(topic.name)
        for consequence, topics in names.items():
            yield f"{kind}: {prose(consequence)}. {list_names(topics)}"


def _names(risky: Risky, most: int | None = None) -> Iterator[str]:
    for kind, found in _sorted(risky):
        names = list(dict.fromkeys(topic.name for topic, _ in found))
        consequences = {note.consequence for _, note in found}
        example = prose(found[0][1].consequence)
        says = example if len(consequences) == 1 else f"for example {example}"
        yield f"{kind} in {count(len(names), 'topic')}: {says}. {list_names(names, most)}"


def _count_risks(risky: Risky) -> Iterator[str]:
    for kind, found in _sorted(risky):
        yield f"{kind}: {count(len({topic.name for topic, _ in found}), 'topic')}"
