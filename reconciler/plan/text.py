"""A plan as text that a person reads: one block a topic, refusals and risks in plain words."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from reconciler.diff import describe_time
from reconciler.errors import escape_unprintable
from reconciler.model import (
    SHORT,
    AddPartitions,
    AlterConfig,
    CreateTopic,
    DeleteTopic,
    Risk,
    Spread,
)
from reconciler.plan.codec import fingerprint_plan, summarise
from reconciler.plan.refused import describe_field, locate_field, name_field
from reconciler.plan.steps import steps_of
from reconciler.units import count, describe_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from reconciler.errors import Finding
    from reconciler.model import (
        Balance,
        Broker,
        LevelResult,
        Plan,
        PlannedTopic,
        RiskNote,
        Step,
        TopicImage,
    )

    Racks = tuple[set[int], ...]

NAME_WIDTH = 34
DETAIL = " " * 12
LABEL_WIDTH = 32
TEXT_WIDTH = 30
IDLE_NAMED = 20
"""As many dead or cordoned brokers are named, and the others counted."""


@dataclass(frozen=True, slots=True)
class Paint:
    """ANSI colours, or nothing: what is painted reads the same without."""

    wanted: bool

    def __call__(self, colour: str, text: str) -> str:
        """Paint `text`, one of green, yellow, red, cyan, bold, dim."""
        codes = {"green": 32, "yellow": 33, "red": 31, "cyan": 36, "bold": 1, "dim": 2}
        return f"\x1b[{codes[colour]}m{text}\x1b[0m" if self.wanted and text else text


def render_text(plan: Plan, *, colour: bool = False, unmanaged: bool = False) -> str:
    """Render a plan for a terminal, with the names of unmanaged topics where those are asked for.

    Returns lines ending in a newline.
    """
    paint = Paint(colour)
    idle = (paint("yellow", f"{capital(said)}.") for said in describe_idle(plan))
    blocks = [[paint("bold", describe_cluster(plan)), *idle]]
    if plan.refusals:
        blocks.append(list(_whole(plan.refusals, paint)))
    racks = group_racks(plan.brokers)
    blocks += [list(_topic(topic, racks, paint)) for topic in plan.topics]
    if plan.notes:
        blocks.append([_note(note, paint) for note in plan.notes])
    if unmanaged:
        blocks.append(list(_strangers(plan)))
    blocks.append(list(_closing(plan, paint)))
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def describe_cluster(plan: Plan) -> str:
    """Say in a line what is planned on: the cluster, its brokers, the specs."""
    racks = {broker.rack for broker in plan.brokers if broker.rack is not None}
    brokers = count(len(plan.brokers), "broker")
    where = f"{brokers} in {count(len(racks), 'rack')}" if racks else brokers
    topics = plan.unchanged + sum(bool(steps_of(t) or t.refusals) for t in plan.topics)
    specs = f"{count(topics, 'topic')} from {count(plan.files, 'file')}"
    return " · ".join(filter(None, [plan.cluster, plan.cluster_id, where, specs]))


def describe_idle(plan: Plan) -> Iterator[str]:
    """Say which brokers of the cluster are dead and which are cordoned."""
    dead = [broker.id for broker in plan.brokers if not broker.alive]
    cordoned = [broker.id for broker in plan.brokers if broker.alive and broker.cordoned]
    for kind, ids in (("dead", dead), ("cordoned", cordoned)):
        beyond = f" and {len(ids) - IDLE_NAMED:,} more" if len(ids) > IDLE_NAMED else ""
        listed = ", ".join(map(str, ids[:IDLE_NAMED])) + beyond
        if len(ids) == 1:
            yield f"broker {listed} is {kind} and takes nothing new"
        elif ids:
            yield f"brokers {listed} are {kind} and take nothing new"


def _topic(topic: PlannedTopic, racks: Racks, paint: Paint) -> Iterator[str]:
    steps = steps_of(topic)
    for number, step in enumerate(steps):
        sign, verb, tone, what = _describe(step, topic)
        place = _place(topic) if number == 0 else ""
        yield _title(paint(tone, f"{sign} {verb:<7}"), topic.name, what, paint("dim", place))
        yield from _details(step, topic, racks, paint)
    if topic.refusals:
        what = describe_refused(topic)
        yield _title(paint("red", "x refuse "), topic.name, what, paint("dim", _place(topic)))
    for field in topic.refused_change:
        place = paint("dim", locate_field(field))
        yield _detail(name_field(field), f"{describe_field(field):<{TEXT_WIDTH}} {place}")
    for risk in topic.risks if steps else ():
        yield _detail(f"risk  {risk.risk}", _risk(risk, paint))
    for refusal in topic.refusals:
        yield from _reason(refusal, paint)
    if not steps and not topic.refusals:
        yield _title(paint("dim", "= keep   "), topic.name, "", paint("dim", _place(topic)))
    for note in topic.notes:
        yield DETAIL + _note(note, paint)


def _whole(refusals: Iterable[Finding], paint: Paint) -> Iterator[str]:
    """Say first what is refused of the plan as a whole."""
    for refusal in refusals:
        place = f"{refusal.where.file}:{refusal.where.line}" if refusal.where else ""
        yield _title(paint("red", "x refuse "), "the whole plan", "", paint("dim", place))
        yield from _reason(refusal, paint)


def _reason(refusal: Finding, paint: Paint) -> Iterator[str]:
    yield DETAIL + f"{capital(refusal.what)}."
    yield DETAIL + f"{capital(refusal.way_out)}. {paint('dim', f'[{refusal.rule}]')}"


def describe_refused(topic: PlannedTopic) -> str:
    """Say what a refused topic is where that is not a change of fields: new, or to be deleted."""
    if any(field.path == "state" for field in topic.refused_change):
        return describe_size(topic)
    return "new topic" if topic.before is None else ""


def _place(topic: PlannedTopic) -> str:
    return f"{topic.location.file}:{topic.location.line}"


def _title(head: str, name: str, what: str, place: str) -> str:
    return f"{head} {name:<{NAME_WIDTH}} {what:<{TEXT_WIDTH}} {place}".rstrip()


def _detail(label: str, text: str) -> str:
    return f"{DETAIL}{label:<{LABEL_WIDTH}} {text}".rstrip()


def _describe(step: Step, topic: PlannedTopic) -> tuple[str, str, str, str]:
    """Return the sign, the verb, its colour, and the step in a few words."""
    match step:
        case CreateTopic(assignment=rows):
            what = f"{count(len(rows), 'partition')} × {count(len(rows[0]), 'replica')}"
            return "+", "create", "green", what
        case AddPartitions(first=first, added=rows):
            return "~", "expand", "yellow", f"{first} → {first + len(rows)} partitions"
        case AlterConfig():
            return "~", "config", "cyan", "" if len(steps_of(topic)) == 1 else "and its config"
        case DeleteTopic():
            return "-", "delete", "red", describe_size(topic)
        case _:
            assert_never(step)


def _details(step: Step, topic: PlannedTopic, racks: Racks, paint: Paint) -> Iterator[str]:
    listed = bool(topic.refused_change)  # every field follows with its place
    match step:
        case CreateTopic(config=config):
            for key, value in () if listed else sorted(config.items()):
                yield _detail(key, describe_value(key, value))
            yield from _placement(topic, racks)
        case AddPartitions():
            yield from _placement(topic, racks)
        case AlterConfig():
            before = topic.before.config if topic.before else {}
            yield from () if listed else _config(step, before, paint)
        case DeleteTopic():
            yield _detail("records", describe_records(topic))
        case _:
            assert_never(step)


def describe_size(topic: PlannedTopic) -> str:
    """Say how large a topic is that is to go: its partitions and their replicas."""
    rows = topic.before.assignment if topic.before else ()
    replicas = sum(map(len, rows))
    return f"{count(len(rows), 'partition')}, {count(replicas, 'replica')}"


def describe_records(topic: PlannedTopic) -> str:
    """Say what a topic that is to go holds, and from when; offsets may count more than is there."""
    deletion = topic.deletion
    if deletion is None or not deletion.records:
        return "none" if deletion and not sum(deletion.ends) else "none any more"
    newest = deletion.newest_ms
    since = f", the newest of {describe_time(newest)}" if newest is not None else ""
    return f"up to {deletion.records:,}{since}"


def _config(step: AlterConfig, before: Mapping[str, str], paint: Paint) -> Iterator[str]:
    for key in sorted({*step.set, *step.unset}):
        old = describe_value(key, before[key]) if key in before else paint("dim", "not set")
        new = describe_value(key, step.set[key]) if key in step.set else paint("dim", "unset")
        yield _detail(key, f"{old} → {new}")


def _placement(topic: PlannedTopic, racks: Racks) -> Iterator[str]:
    if says := describe_placement(topic, racks):
        yield _detail("placement", says)


def describe_placement(topic: PlannedTopic, racks: Racks) -> str:
    """Say how evenly a topic will lie, and lay before; nothing where nobody measured."""
    after, before = topic.balance_after, topic.balance_before
    if after is None or topic.after is None:
        return ""
    says = [f"{describe_balance(after)} a broker", *_describe_racks(topic.after, after, racks)]
    beside = f" (before: {describe_balance(before)})" if before and before != after else ""
    return ", ".join(says) + beside


def group_racks(brokers: Sequence[Broker]) -> Racks:
    """Return the ids of each rack that can take something; nothing where there is one at most."""
    able = {b.rack for b in brokers if b.rack is not None and b.alive and not b.cordoned}
    racks = tuple({b.id for b in brokers if b.rack == rack} for rack in sorted(able))
    return racks if len(racks) > 1 else ()


def _describe_racks(after: TopicImage, balance: Balance, racks: Racks) -> Iterator[str]:
    """Say how even the racks are, with the number where that is at the cost of brokers."""
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
    """Say how many leaders and replicas a broker has: one number, or the least and the most."""
    return f"leaders {_spread(balance.leaders)}, replicas {_spread(balance.replicas)}"


def _spread(spread: Spread) -> str:
    return str(spread.most) if spread.skew == 0 else f"{spread.least}..{spread.most}"


def _risk(note: RiskNote, paint: Paint) -> str:
    state = "acknowledged" if note.acknowledged else "mind this"
    tone = "dim" if note.acknowledged else "red" if note.risk is Risk.DATA_LOSS else "yellow"
    return f"{note.consequence}; {paint(tone, state)}"


def _note(note: Finding, paint: Paint) -> str:
    way_out = f"; {note.way_out}" if note.way_out else ""
    return paint("dim", f"{note.severity}: {note.what}{way_out} [{note.rule}]")


def capital(text: str) -> str:
    """Begin a sentence with a capital, unless it begins with the name of a field."""
    return text[:1].upper() + text[1:] if text.partition(" ")[0].isalpha() else text


def count_changes(plan: Plan) -> list[str]:
    """Count what is to do and what is refused: 1 to create, 2 refused; nothing that is zero."""
    summary = summarise(plan)
    counts = {
        "to delete": summary.delete,
        "to create": summary.create,
        "to expand": summary.expand,
        "to configure": summary.configure,
        "refused": summary.refused,
    }
    whole = ["refused as a whole"] if plan.refusals else []
    return [*(f"{number:,} {what}" for what, number in counts.items() if number), *whole]


def count_unchanged(plan: Plan) -> list[str]:
    """Count the topics that are as specified; nothing where there are none."""
    return [f"{plan.unchanged:,} unchanged"] if plan.unchanged else []


def _strangers(plan: Plan) -> Iterator[str]:
    yield f"{count_strangers(plan)}:" if plan.unmanaged else "No live topic is in no file."
    yield from (DETAIL + escape_unprintable(name) for name in plan.unmanaged)


def count_strangers(plan: Plan) -> str:
    """Count the live topics that are in no file; nothing where there are none."""
    return f"{count(len(plan.unmanaged), 'live topic')} in no file" if plan.unmanaged else ""


def _closing(plan: Plan, paint: Paint) -> Iterator[str]:
    said = count_changes(plan)
    unmanaged = count_strangers(plan)
    if not said:
        line = f"No changes. {count(plan.unchanged, 'topic')} as specified"
        yield " · ".join(filter(None, [paint("green", line), unmanaged]))
        yield from (paint("dim", line) for line in describe_commit(plan))
        return
    yield " · ".join(filter(None, [", ".join([*said, *count_unchanged(plan)]), unmanaged]))
    yield from describe_outcome(plan)
    yield from (paint("dim", line) for line in describe_commit(plan))
    yield paint("dim", f"fingerprint {fingerprint_plan(plan)}")


def describe_commit(plan: Plan) -> Iterator[str]:
    """Say at which commit the specs were read, where they were under version control."""
    if plan.commit is not None:
        beyond = ", and changes that are not committed" if plan.commit.dirty else ""
        yield f"specs of commit {plan.commit.sha[:SHORT]}{beyond}"


def describe_outcome(plan: Plan) -> Iterator[str]:
    """Say how even the plan leaves the cluster, if it moves that, and whether better exists."""
    if plan.balance_before and plan.balance_after and plan.balance_before != plan.balance_after:
        yield f"cluster: {describe_shift(plan.balance_before, plan.balance_after)}"
    if plan.levels:
        yield f"placement: {_proof(plan.levels)}"


def _proof(levels: Iterable[LevelResult]) -> str:
    """Say whether anything better exists, and how far off it could be where that is open."""
    short = [
        f"{result.level} within {(result.reached - result.bound) / result.bound:.2%} of the bound"
        for result in levels
        if not result.proven
    ]
    proven = "the best there is, leaders before replicas, each topic before the cluster"
    return f"{', '.join(short)}, not proven to be the least" if short else proven


def describe_shift(before: Balance, after: Balance) -> str:
    """Say how even a cluster was, and how even it is: leaders 1..4 → 2..3, replicas …"""
    leaders = f"leaders {_spread(before.leaders)} → {_spread(after.leaders)}"
    return f"{leaders}, replicas {_spread(before.replicas)} → {_spread(after.replicas)} a broker"
