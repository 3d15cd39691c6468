"""A plan as text for people: one block per topic, with refusals and risks; and outcomes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from reconciler.errors import Finding, escape_unprintable
from reconciler.model.cluster import Risk
from reconciler.model.outcomes import OutcomeKind
from reconciler.model.plan import Plan, RiskNote
from reconciler.show.view import PlanView, TopicView, view_plan
from reconciler.show.wording import Tone, capital
from reconciler.styling import Paint, fold_lines
from reconciler.units import count

HEAD = 11
"""The widest sign and verb: ~ configure."""

ROWS = 10
"""The number of partitions of a step to list with their old and new rows."""

NAMED = 3
"""The number of topics to name for a value that becomes explicit on many."""

DRIFT_SHOWN = 20
"""The number of topics with existing drift to list."""

NARROW = 100
"""A terminal with fewer columns gets narrower ones."""

_COLOURS = {Tone.ADD: "green", Tone.CHANGE: "yellow", Tone.TUNE: "cyan", Tone.REMOVE: "red"}


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns of a plan. Names and labels are never cut: longer ones move the rest."""

    indent: int
    label: int
    text: int

    def title(self, head: str, name: str, what: str, place: str) -> str:
        """Set the first line of a topic's step or refusal. `head` is as wide as `HEAD`."""
        name_width = self.indent + self.label - HEAD - 1
        return f"{head} {name:<{name_width}} {what:<{self.text}} {place}".rstrip()

    def detail(self, label: str, text: str) -> str:
        """Set a line below a title: a label and its text."""
        return f"{' ' * self.indent}{label:<{self.label}} {text}".rstrip()

    def sentence(self, text: str) -> str:
        """Set a sentence below a title."""
        return f"{' ' * self.indent}{text}"


_WIDE, _SLIM = _Columns(12, 32, 30), _Columns(4, 34, 20)


def paint_outcome(kind: OutcomeKind, paint: Paint) -> str:
    """Return the outcome of a topic in its colour."""
    colour = "green" if kind.is_done else "red" if kind is OutcomeKind.FAILED else "yellow"
    return paint(colour, kind)


def render_text(
    plan: Plan, *, colour: bool = False, unmanaged: bool = False, width: int | None = None
) -> str:
    """Render a plan, with the names of unmanaged topics on request.

    Lines wider than `width` continue on the next line, indented; None does not break lines, for a
    file or a pipe. Returns: lines that end in a newline.
    """
    view = view_plan(plan)
    text = _Text(Paint(colour), _SLIM if width is not None and width < NARROW else _WIDE)
    blocks = (list(block) for block in text.blocks(view, unmanaged=unmanaged))
    return fold_lines("\n\n".join("\n".join(block) for block in blocks) + "\n", width)


def render_planned(plan: Plan, topic: str, paint: Paint) -> list[str]:
    """Return the lines of one topic of a plan; of one that it leaves as it is, that it does so."""
    view = view_plan(plan)
    text = _Text(paint, _SLIM)
    lines = [line for each in view.topics if each.name == topic for line in text._topic(each)]
    return lines or [paint("green", "No changes.")]


@dataclass(frozen=True, slots=True)
class _Text:
    """The blocks of a plan, painted and set in columns."""

    paint: Paint
    columns: _Columns

    def blocks(self, view: PlanView, *, unmanaged: bool) -> Iterator[Iterable[str]]:
        """Yield the lines of each block: the cluster, alerts, refusals, topics, notes, closing."""
        idle = (self.paint("yellow", f"{capital(said)}.") for said in view.idle)
        ill = [self._ill(view)] if view.health else []
        yield [self.paint("bold", " · ".join(view.headline)), *ill, *idle]
        if view.alerts:
            yield map(self._alert, view.alerts)
        if view.refusals:
            yield self._refused_plan(view)
        for topic in view.shown:
            yield self._topic(topic)
        if view.explicit_values:
            yield self._explicit(view)
        if view.existing_drift:
            yield self._drift(view)
        if view.notes:
            yield map(self._note, view.notes)
        if unmanaged:
            names = map(self.columns.sentence, map(escape_unprintable, view.unmanaged))
            said = f"{view.unmanaged_words}:" if view.unmanaged else "No live topic is unmanaged."
            yield [said, *names]
        yield self._closing(view)

    def _ill(self, view: PlanView) -> str:
        named = f"reconciler health --cluster {view.cluster}"
        return f"{self.paint('red', f'Unhealthy: {view.health}.')} By name: {named}"

    def _alert(self, alert: Finding) -> str:
        place = f"{alert.where.file}:{alert.where.line}: " if alert.where else ""
        rule = self.paint("dim", f"[{alert.rule}]")
        head = self.paint("red", f"{alert.severity}:")
        return f"{head} {place}{alert.what}; {alert.way_out} {rule}"

    def _refused_plan(self, view: PlanView) -> Iterator[str]:
        for refusal in view.refusals:
            place = f"{refusal.where.file}:{refusal.where.line}" if refusal.where else ""
            yield self._title("red", "x refuse", "the whole plan", "", place)
            yield from self._reason(refusal)

    def _drift(self, view: PlanView) -> Iterator[str]:
        yield self.paint("yellow", f"{capital(view.drift_words)}, which this plan leaves as is:")
        for topic in view.existing_drift[:DRIFT_SHOWN]:
            place = self.paint("dim", topic.origin)
            said = f"{topic.words:<{self.columns.text}} {place}"
            yield self.columns.detail(topic.name, said)
        if more := len(view.existing_drift[DRIFT_SHOWN:]):
            yield self.columns.sentence(f"{count(more, 'more topic')}; --format json lists all")

    def _explicit(self, view: PlanView) -> Iterator[str]:
        yield f"{self.paint('cyan', '~ configure')} {view.explicit_words}:"
        for field, names in view.explicit_values.items():
            more = len(names) - NAMED
            beyond = f" and {count(more, 'more topic')}" if more > 0 else ""
            said = f"{field.words} on {', '.join(names[:NAMED])}{beyond}"
            yield self.columns.detail(field.name, said)
        yield self.columns.sentence("--format json lists all")

    def _topic(self, topic: TopicView) -> Iterator[str]:
        for number, step in enumerate(topic.steps):
            head, place = f"{step.sign} {step.verb}", topic.origin if number == 0 else ""
            yield self._title(_COLOURS[step.tone], head, topic.name, step.words, place)
            if number == 0 and topic.description:
                yield self.columns.detail("description", topic.description)
            if number == 0 and topic.labels:
                yield self.columns.detail("labels", ", ".join(topic.labels))
            yield from (self.columns.detail(*detail) for detail in step.details)
            yield from (self.columns.detail(row.name, row.words) for row in step.rows[:ROWS])
            if beyond := len(step.rows[ROWS:]):
                said = f"{count(beyond, 'more partition')}; --format json lists all"
                yield self.columns.sentence(said)
            if step.places and topic.placement:
                yield self.columns.detail("placement", topic.placement)
        if topic.refusals:
            yield self._title("red", "x refuse", topic.name, topic.refused_words, topic.origin)
        for field in topic.refused_change:
            place = self.paint("dim", field.place)
            said = f"{field.words:<{self.columns.text}} {place}"
            yield self.columns.detail(field.name, said)
        if topic.refusals and topic.labels:
            yield self.columns.detail("labels", ", ".join(topic.labels))
        for risk in topic.risks:
            yield self.columns.detail(f"risk  {risk.risk}", self._risk(risk))
        for refusal in topic.refusals:
            yield from self._reason(refusal)
        if not topic.steps and not topic.refusals:
            yield self._title("dim", "= keep", topic.name, "", topic.origin)
        yield from (self.columns.sentence(self._note(note)) for note in topic.notes)

    def _title(self, tone: str, head: str, name: str, what: str, place: str) -> str:
        painted = self.paint(tone, f"{head:<{HEAD}}")
        return self.columns.title(painted, name, what, self.paint("dim", place))

    def _reason(self, refusal: Finding) -> Iterator[str]:
        rule = self.paint("dim", f"[{refusal.rule}]")
        yield self.columns.sentence(f"{capital(refusal.what)}.")
        yield self.columns.sentence(f"{capital(refusal.way_out)}. {rule}")

    def _risk(self, note: RiskNote) -> str:
        if note.acknowledged:
            return f"{note.consequence}; {self.paint('dim', note.consent)}"
        tone = "red" if note.risk is Risk.DATA_LOSS else "yellow"
        return f"{note.consequence}; {self.paint(tone, note.consent)}"

    def _note(self, note: Finding) -> str:
        way_out = f"; {note.way_out}" if note.way_out else ""
        return self.paint("dim", f"{note.severity}: {note.what}{way_out} [{note.rule}]")

    def _closing(self, view: PlanView) -> Iterator[str]:
        if not view.to_do:
            same = self.paint("green", f"No changes. {view.same_words}")
            yield " · ".join([same, *view.asides])
            # What is near its share, or a drain whose broker is empty, is why nothing moves.
            yield from (f"{label}: {words}" for label, words in view.moves if label != "moves")
        else:
            counts = ", ".join(filter(None, [*view.to_do, view.unchanged_words]))
            yield " · ".join([counts, *view.asides])
            if view.totals.words:
                yield f"size: {view.totals.words}"
            if view.balance:
                yield f"cluster: {view.balance}"
            if view.weighed:
                yield f"by {view.by}: {view.weighed}"
            if view.evenness:
                yield f"placement: {view.evenness}"
            if view.next_leaders:
                yield f"next leaders: {view.next_leaders}"
            yield from (f"{label}: {words}" for label, words in view.moves)
        if view.commit:
            yield self.paint("dim", view.commit)
        if view.to_do:
            yield self.paint("dim", f"fingerprint {view.fingerprint}")
