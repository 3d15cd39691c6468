"""The view of a plan for people and tables: one value that every rendering only formats.

No rendering reads a step. The name of a change, its sign, its colour, its words and its numbers
are decided here, so that text, comments and tables agree.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import assert_never

from reconciler.errors import Finding, Location, escape_unprintable
from reconciler.model.cluster import SHORT, Broker
from reconciler.model.identity import find_address
from reconciler.model.moves import PlannedMoves
from reconciler.model.plan import (
    DriftedTopic,
    Level,
    LevelResult,
    Plan,
    PlannedTopic,
    RiskNote,
    Scope,
)
from reconciler.model.steps import Verb, steps_of
from reconciler.planfile.codec import fingerprint_plan
from reconciler.planfile.totals import Totals, count_by_owner, count_topic
from reconciler.show.moves import detail_step, say_moves
from reconciler.show.wording import (
    FieldView,
    Racks,
    StepView,
    Tone,
    capital,
    describe_balance,
    describe_shift,
    describe_weighed,
    group_racks,
    say_placement,
    say_problems,
    say_records,
    say_refused,
    say_size,
    view_refused,
    view_step,
)
from reconciler.units import count

__all__ = [
    "FieldView",
    "PlanView",
    "StepView",
    "Tone",
    "TopicView",
    "Totals",
    "capital",
    "describe_balance",
    "describe_shift",
    "view_plan",
]

DIFFERENCES_SHOWN = 3
"""The number of fields of a topic with existing drift to name; JSON has all of them."""

DESCRIPTION_SHOWN = 300
"""The characters of a description that are shown. A spec may have thousands of lines of it."""

EXPLICIT_SHOWN = 5
"""More topics on which only defaults become explicit are shown together, by value."""

IDLE_NAMED = 20
"""The number of dead or cordoned brokers to name; the others are counted."""


BEFORE_NAMED = 20
"""The number of clusters of earlier stages to name; the others are counted."""


@dataclass(frozen=True, slots=True)
class WrittenView:
    """A topic with a spec: its name, its owner, and where the spec is."""

    name: str
    owner: str | None
    location: Location

    @property
    def place(self) -> str:
        """The file and line of its spec."""
        return f"{self.location.file}:{self.location.line}"

    @property
    def origin(self) -> str:
        """The file and line of its spec, and its owner if it has one."""
        return " · ".join(filter(None, [self.place, escape_unprintable(self.owner or "")]))


@dataclass(frozen=True, slots=True)
class TopicView(WrittenView):
    """One topic of a plan: its steps, its refusals, or its notes.

    `labels` are as people write them. `description` is one line, and empty unless the topic is new.
    `risks` are those of steps: a refused change has none. `refused_change` lists the fields of a
    refused change; `refused_words` describes a refused topic without such fields.
    """

    labels: tuple[str, ...]
    description: str
    steps: tuple[StepView, ...]
    risks: tuple[RiskNote, ...]
    refusals: tuple[Finding, ...]
    notes: tuple[Finding, ...]
    refused_words: str
    refused_change: tuple[FieldView, ...]
    placement: str
    size: str
    records: str
    totals: Totals

    @property
    def is_deletion(self) -> bool:
        """Return whether it is deleted."""
        return any(step.verb is Verb.DELETE for step in self.steps)

    @property
    def only_explicit(self) -> bool:
        """Return whether it only gets values that are in force already, and there is no more."""
        more = self.refusals or self.notes or self.refused_change
        configs = [field for step in self.steps for field in step.configs]
        return (
            not more
            and all(step.verb is Verb.CONFIGURE for step in self.steps)
            and bool(configs)
            and all(field.explicit for field in configs)
        )

    @property
    def places(self) -> bool:
        """Return whether it gets new replicas."""
        return any(step.places for step in self.steps)

    @property
    def action(self) -> str:
        """Its action for tables: a verb of Terraform, refuse or note."""
        if self.refusals:
            return "refuse"
        verbs = [step.verb for step in self.steps]
        alone = next((str(verb) for verb in verbs if verb in (Verb.CREATE, Verb.DELETE)), "update")
        return alone if verbs else "note"

    @property
    def words(self) -> str:
        """Return all its steps in one line."""
        return ", ".join(
            f"{step.verb} {step.words or ', '.join(field.name for field in step.configs)}"
            for step in self.steps
        )


@dataclass(frozen=True, slots=True)
class DriftView(WrittenView):
    """A topic outside the scope of a plan that differs from its spec, and how, in one line."""

    words: str


@dataclass(frozen=True, slots=True)
class PlanView:
    """A plan for display: its subject, topics, counts and quality.

    `headline` begins with the cluster. `alerts` come before everything else. `idle` names the
    brokers that get no new replicas. `balance` is empty if it does not change, and so is `weighed`,
    the same by bytes or traffic, which is also empty by default; `evenness` and `next_leaders` if
    nothing is placed. `moves` has labels and texts about the cost of a plan of moves, and is empty
    for any other plan; `cordons` counts the brokers that it cordons. `made_by` is the command that
    makes the plan. `existing_drift` lists the topics outside its scope that differ from their
    specs. `stage` says when a merge reaches the cluster; it is empty if the estate has no stages.
    `explicit` counts the topics on which only defaults become explicit, which `counts` omits.
    `health` says what is wrong with the cluster besides dead brokers; it is empty if nothing is.
    """

    cluster: str
    headline: tuple[str, ...]
    idle: tuple[str, ...]
    alerts: tuple[Finding, ...]
    topics: tuple[TopicView, ...]
    refusals: tuple[Finding, ...]
    notes: tuple[Finding, ...]
    counts: Mapping[Verb, int]
    unchanged: int
    unmanaged: tuple[str, ...]
    totals: Totals
    by_owner: Mapping[str | None, Totals]
    balance: str
    by: str
    weighed: str
    evenness: str
    next_leaders: str
    commit: str
    scope: Scope
    fingerprint: str
    moves: tuple[tuple[str, str], ...] = ()
    cordons: int = 0
    made_by: str = "plan"
    existing_drift: tuple[DriftView, ...] = ()
    stage: str = ""
    explicit: int = 0
    health: str = ""

    @property
    def changed(self) -> tuple[TopicView, ...]:
        """The topics with steps."""
        return tuple(topic for topic in self.topics if topic.steps)

    @property
    def shown(self) -> tuple[TopicView, ...]:
        """The topics to show one by one."""
        folded = self.explicit > EXPLICIT_SHOWN
        return tuple(t for t in self.topics if not (folded and t.only_explicit))

    @property
    def explicit_values(self) -> Mapping[FieldView, list[str]]:
        """The other topics, by the value that becomes explicit on them."""
        by_value: defaultdict[FieldView, list[str]] = defaultdict(list)
        for topic in self.topics if self.explicit > EXPLICIT_SHOWN else ():
            for step in topic.steps if topic.only_explicit else ():
                for field in step.configs:
                    by_value[field].append(topic.name)
        return dict(sorted(by_value.items(), key=lambda item: (-len(item[1]), item[0].name)))

    @property
    def explicit_words(self) -> str:
        """Say what becomes of the topics on which only defaults become explicit."""
        return (
            f"on {count(self.explicit, 'topic')}, values of the specs are in force by the brokers' "
            "defaults, and are set explicitly so that they stay in force"
        )

    @property
    def refused(self) -> tuple[TopicView, ...]:
        """The topics that are refused."""
        return tuple(topic for topic in self.topics if topic.refusals)

    @property
    def to_do(self) -> tuple[str, ...]:
        """Return counts of steps and refusals as text, without zeros: 1 to create, 2 refused."""
        verbs = sorted(self.counts, key=lambda verb: verb is not Verb.DELETE)  # deletions are first
        counted = {f"to {verb}": self.counts[verb] for verb in verbs} | {
            "refused": len(self.refused)
        }
        counted["to make explicit"] = self.explicit
        counted["to cordon"] = self.cordons
        said = (f"{number:,} {what}" for what, number in counted.items() if number)
        return (*said, *(["refused as a whole"] if self.refusals else []))

    @property
    def unchanged_words(self) -> str:
        """Return the number of topics that match their specs as text; empty for zero."""
        return f"{self.unchanged:,} unchanged" if self.unchanged else ""

    @property
    def pending(self) -> tuple[TopicView, ...]:
        """The topics of which something is left to a plan of moves."""
        return tuple(
            topic
            for topic in self.topics
            if any(note.rule == "moves-pending" for note in topic.notes)
        )

    @property
    def same_words(self) -> str:
        """Return what an empty plan says of its topics: only `plan` compares them with specs."""
        same = self.unchanged - sum(not (t.steps or t.refusals) for t in self.pending)
        seen = "as specified" if self.made_by.startswith("plan") else "considered"
        return f"{count(same, 'topic')} {seen}"

    @property
    def pending_words(self) -> str:
        """Return the number of topics with pending moves as text; empty for zero."""
        number = len(self.pending)
        return f"moves of {count(number, 'topic')} are pending" if number else ""

    @property
    def drift_words(self) -> str:
        """Return the number of topics with existing drift as text; empty for zero."""
        number = len(self.existing_drift)
        return f"existing drift of {count(number, 'other topic')}" if number else ""

    @property
    def asides(self) -> tuple[str, ...]:
        """Return what the plan does not do, for the line of its counts."""
        said = (self.pending_words, self.drift_words, self.unmanaged_words)
        return tuple(filter(None, said))

    @property
    def unmanaged_words(self) -> str:
        """Return the number of unmanaged live topics as text; empty for zero."""
        number = len(self.unmanaged)
        are = "is" if number == 1 else "are"
        return f"{count(number, 'live topic')} {are} unmanaged" if number else ""


def view_plan(plan: Plan) -> PlanView:
    """Turn a plan into the view that every rendering shows."""
    racks = group_racks(plan.brokers)
    topics = tuple(_view_topic(topic, racks, plan.moves) for topic in plan.topics)
    by_owner = count_by_owner(plan.topics)
    commit = ""
    if plan.commit is not None:
        beyond = ", and changes that are not committed" if plan.commit.dirty else ""
        commit = f"specs of commit {plan.commit.sha[:SHORT]}{beyond}"
    weighed = plan.weighed if plan.weighed and plan.weighed.before != plan.weighed.after else None
    explicit = sum(topic.only_explicit for topic in topics)
    verbs = Counter(
        step.verb for topic in topics for step in topic.steps if not topic.only_explicit
    )
    return PlanView(
        cluster=plan.cluster,
        headline=_say_cluster(plan, sum(bool(t.steps or t.refusals) for t in topics)),
        idle=tuple(_name_idle(plan.brokers)),
        alerts=plan.alerts,
        topics=topics,
        refusals=plan.refusals,
        notes=plan.notes,
        counts=MappingProxyType({verb: verbs[verb] for verb in Verb}),
        unchanged=plan.unchanged,
        unmanaged=plan.unmanaged,
        totals=sum(by_owner.values(), Totals()),
        by_owner=by_owner,
        balance=_say_balance(plan),
        by=weighed.by if weighed else "",
        weighed=describe_weighed(weighed) if weighed else "",
        evenness=_say_evenness(plan.levels),
        next_leaders=_say_next_leaders(plan.levels),
        commit=commit,
        scope=plan.scope,
        fingerprint=fingerprint_plan(plan),
        moves=say_moves(plan),
        cordons=len(plan.moves.cordons) if plan.moves else 0,
        made_by=plan.moves.made_by if plan.moves else "plan",
        existing_drift=tuple(map(_view_drift, plan.existing_drift)),
        stage=_say_stage(plan.cluster, plan.stages),
        explicit=explicit,
        health=say_problems(plan.health, brokers=False) if plan.health else "",
    )


def _say_balance(plan: Plan) -> str:
    """Return the balance before and after; only as it is now if the brokers place replicas."""
    before, after = plan.balance_before, plan.balance_after
    if before and after is None:
        return f"{describe_balance(before)} per broker now; the brokers place what is new"
    return describe_shift(before, after) if before and after and before != after else ""


def _say_cluster(plan: Plan, planned: int) -> tuple[str, ...]:
    racks = {broker.rack for broker in plan.brokers if broker.rack is not None}
    brokers = count(len(plan.brokers), "broker")
    where = f"{brokers} in {count(len(racks), 'rack')}" if racks else brokers
    topics = count(plan.unchanged + planned, "topic")
    # Elections and rebalances are planned of live topics, whatever files there are.
    live = not plan.files and (planned or plan.moves)
    specs = topics if live else f"{topics} from {count(plan.files, 'file')}"
    address = find_address(plan.cluster_id)
    known_by = (
        plan.cluster_id if address is None else f"no cluster id: bound to its address {address}"
    )
    return tuple(filter(None, [plan.cluster, known_by, where, specs]))


def _say_stage(cluster: str, stages: Sequence[Sequence[str]]) -> str:
    """Return the stage of a cluster, and the clusters of the stages before it."""
    number = next((n for n, stage in enumerate(stages, start=1) if cluster in stage), 0)
    if not number:  # the sandbox
        return ""
    before = [name for stage in stages[: number - 1] for name in stage]
    beyond = f" and {len(before) - BEFORE_NAMED:,} more" if len(before) > BEFORE_NAMED else ""
    after = f"after {', '.join(before[:BEFORE_NAMED])}{beyond}" if before else "the first"
    return f"stage {number} of {len(stages)}, {after}"


def _name_idle(brokers: Sequence[Broker]) -> Iterator[str]:
    """Yield the dead and the cordoned brokers of the cluster, in sentences."""
    dead = [broker.id for broker in brokers if not broker.alive]
    cordoned = [broker.id for broker in brokers if broker.alive and broker.cordoned]
    for kind, ids in (("dead", dead), ("cordoned", cordoned)):
        beyond = f" and {len(ids) - IDLE_NAMED:,} more" if len(ids) > IDLE_NAMED else ""
        listed = ", ".join(map(str, ids[:IDLE_NAMED])) + beyond
        if len(ids) == 1:
            yield f"broker {listed} is {kind} and takes nothing new"
        elif ids:
            yield f"brokers {listed} are {kind} and take nothing new"


def _say_evenness(levels: Sequence[LevelResult]) -> str:
    """Return how even leaders and replicas are. The figures and bounds are in the explanation."""
    uneven = [str(one.level) for one in levels if one.skew_bound is None and not one.proven]
    if uneven:
        return f"nearly as even as possible ({', '.join(uneven)})"
    return "as even as possible" if levels else ""


def _say_next_leaders(levels: Sequence[LevelResult]) -> str:
    """Return the most leaders that one broker takes over, with the least possible."""
    lost = {Level.NEXT_LEADERS: "broker", Level.RACK_NEXT_LEADERS: "rack"}
    says = [
        f"{one.skew:,} if a {lost[one.level]} is lost (bound {one.skew_bound:,})"
        for one in levels
        if one.level in lost and one.skew
    ]
    return f"one broker takes over at most {', '.join(says)}" if says else ""


def _view_drift(topic: DriftedTopic) -> DriftView:
    """Describe how a topic differs: its first fields from the live value to that of the spec."""
    match topic.action:
        case "create":
            words = "does not exist"
        case "delete":
            words = "exists, and its spec has state: absent"
        case "update":
            fields = [view_refused(field) for field in topic.differs]
            said = [f"{field.name} {field.words}" for field in fields[:DIFFERENCES_SHOWN]]
            more = len(fields) - len(said)
            words = ", ".join([*said, *([f"and {more:,} more"] if more else [])])
        case _:
            assert_never(topic.action)
    return DriftView(topic.name, topic.owner, topic.location, words)


def _say_description(description: str) -> str:
    """Return a description as one line; the JSON of the plan has all of a long one."""
    line = escape_unprintable(" ".join(description.split()))
    return line if len(line) <= DESCRIPTION_SHOWN else f"{line[: DESCRIPTION_SHOWN - 1]}…"


def _view_topic(topic: PlannedTopic, racks: Racks, moves: PlannedMoves | None) -> TopicView:
    steps = steps_of(topic)
    return TopicView(
        name=topic.name,
        owner=topic.owner,
        labels=tuple(f"{key}: {value}".rstrip() for key, value in topic.labels.items()),
        description=_say_description(topic.description or ""),
        location=topic.location,
        steps=tuple(detail_step(view_step(step, topic), topic, moves) for step in steps),
        risks=topic.risks if steps else (),
        refusals=topic.refusals,
        notes=topic.notes,
        refused_words=say_refused(topic),
        refused_change=tuple(map(view_refused, topic.refused_change)),
        placement=say_placement(topic, racks),
        size=say_size(topic),
        records=say_records(topic),
        totals=count_topic(topic),
    )
