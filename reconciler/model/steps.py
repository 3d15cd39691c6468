"""Steps of a plan: one class for each kind of change, derived from a topic's images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Self

from reconciler.model.cluster import BY_BROKERS, Assignment, Replicas
from reconciler.model.plan import Plan, PlannedTopic


class Verb(StrEnum):
    """What a step does to its topic. Every text, file, record and table uses the same word.

    In the order in which a run executes them.
    """

    CREATE = "create"
    EXPAND = "expand"
    CONFIGURE = "configure"
    REORDER = "reorder"
    MOVE = "move"
    RELOCATE = "relocate"
    ELECT = "elect"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class CreateTopic:
    """Create a topic with every replica placed, by the plan or by the brokers (BY_BROKERS)."""

    verb: ClassVar[Verb] = Verb.CREATE
    topic: str
    assignment: Assignment
    config: Mapping[str, str]

    @classmethod
    def derive(cls, topic: PlannedTopic) -> Self | None:
        """Return the step for a topic that is to be created."""
        if topic.before is not None or topic.after is None:
            return None
        return cls(topic.name, topic.after.assignment, topic.after.config)

    @property
    def placed(self) -> Assignment:
        """The partitions that it adds."""
        return self.assignment


@dataclass(frozen=True, slots=True)
class ExpandTopic:
    """Append partitions; `added[0]` becomes partition number `first`."""

    verb: ClassVar[Verb] = Verb.EXPAND
    topic: str
    first: int
    added: Assignment

    @classmethod
    def derive(cls, topic: PlannedTopic) -> Self | None:
        """Return the step for a topic that is to have more partitions."""
        if topic.before is None or topic.after is None:
            return None
        first = len(topic.before.assignment)
        added = topic.after.assignment[first:]
        return cls(topic.name, first, added) if added else None

    @property
    def placed(self) -> Assignment:
        """The partitions that it adds."""
        return self.added


@dataclass(frozen=True, slots=True)
class ConfigureTopic:
    """Set and unset overrides of a topic, in one request."""

    verb: ClassVar[Verb] = Verb.CONFIGURE
    topic: str
    set: Mapping[str, str]
    unset: frozenset[str]

    @classmethod
    def derive(cls, topic: PlannedTopic) -> Self | None:
        """Return the step for a topic whose overrides are to differ."""
        if topic.before is None or topic.after is None:
            return None
        before, after = topic.before.config, topic.after.config
        wanted = {key: value for key, value in sorted(after.items()) if before.get(key) != value}
        unwanted = frozenset(before.keys() - after.keys())
        return cls(topic.name, wanted, unwanted) if wanted or unwanted else None

    @property
    def placed(self) -> Assignment:
        """The partitions that it adds: none."""
        return ()


@dataclass(frozen=True, slots=True)
class ReorderReplicas:
    """Give partitions another preferred leader; `rows` has the new row of each. No data moves."""

    verb: ClassVar[Verb] = Verb.REORDER
    topic: str
    rows: Mapping[int, Replicas]

    @classmethod
    def derive(cls, topic: PlannedTopic) -> Self | None:
        """Return the step for a topic whose rows have the same replicas in another order."""
        rows = {p: new for p, old, new in _altered_rows(topic) if set(old) == set(new)}
        return cls(topic.name, rows) if rows else None

    @property
    def placed(self) -> Assignment:
        """The partitions that it adds: none."""
        return ()


@dataclass(frozen=True, slots=True)
class MoveReplicas:
    """Move, add or drop replicas of partitions; `rows` has the new row of each (KIP-455)."""

    verb: ClassVar[Verb] = Verb.MOVE
    topic: str
    rows: Mapping[int, Replicas]

    @classmethod
    def derive(cls, topic: PlannedTopic) -> Self | None:
        """Return the step for a topic whose rows have other replicas."""
        rows = {p: new for p, old, new in _altered_rows(topic) if set(old) != set(new)}
        return cls(topic.name, rows) if rows else None

    @property
    def placed(self) -> Assignment:
        """The rows that it puts replicas on."""
        return tuple(self.rows.values())


def _altered_rows(topic: PlannedTopic) -> list[tuple[int, Replicas, Replicas]]:
    """List the partitions that exist before and after with different rows: number, old, new."""
    if topic.before is None or topic.after is None:
        return []
    old, new = topic.before.assignment, topic.after.assignment
    # Most plans alter no row, and a comparison of all rows at once is fast.
    if old == new[: len(old)]:
        return []
    pairs = enumerate(zip(old, new, strict=False))
    return [(partition, *pair) for partition, pair in pairs if pair[0] != pair[1]]


@dataclass(frozen=True, slots=True)
class RelocateReplicas:
    """Move replicas between the log directories of their brokers (KIP-113).

    `paths` has the directory before and after, by partition and broker.
    """

    verb: ClassVar[Verb] = Verb.RELOCATE
    topic: str
    paths: Mapping[tuple[int, int], tuple[str, str]]

    @classmethod
    def derive(cls, topic: PlannedTopic) -> Self | None:
        """Return the step for a topic whose images have replicas in different directories."""
        if topic.before is None or topic.after is None:
            return None
        before = {(each.partition, each.broker): each.path for each in topic.before.directories}
        after = {(each.partition, each.broker): each.path for each in topic.after.directories}
        paths = {
            place: (before[place], path)
            for place, path in after.items()
            if before.get(place, path) != path
        }
        return cls(topic.name, paths) if paths else None

    @property
    def placed(self) -> Assignment:
        """The partitions that it adds: none."""
        return ()


@dataclass(frozen=True, slots=True)
class ElectLeaders:
    """Have partitions led by their preferred leaders again; `leaders` has those by partition."""

    verb: ClassVar[Verb] = Verb.ELECT
    topic: str
    leaders: Mapping[int, int]

    @classmethod
    def derive(cls, topic: PlannedTopic) -> Self | None:
        """Return the step for a topic whose images have different leaders."""
        if topic.before is None or topic.after is None:
            return None
        # Not strict: a file that was changed by hand can hold any number.
        pairs = enumerate(zip(topic.before.leaders, topic.after.leaders, strict=False))
        leaders = {p: wanted for p, (now, wanted) in pairs if now != wanted}
        return cls(topic.name, leaders) if leaders else None

    @property
    def placed(self) -> Assignment:
        """The partitions that it adds: none."""
        return ()


@dataclass(frozen=True, slots=True)
class DeleteTopic:
    """Delete the topic with this id. A later topic of the same name has another id."""

    verb: ClassVar[Verb] = Verb.DELETE
    topic: str
    topic_id: str

    @classmethod
    def derive(cls, topic: PlannedTopic) -> Self | None:
        """Return the step for a topic that is to be deleted: its id is known, and it was unused."""
        if topic.before is None or topic.after is not None or topic.deletion is None:
            return None
        return cls(topic.name, topic.before.topic_id) if topic.before.topic_id else None

    @property
    def placed(self) -> Assignment:
        """The partitions that it adds: none."""
        return ()


Step = (
    CreateTopic
    | ExpandTopic
    | ConfigureTopic
    | ReorderReplicas
    | MoveReplicas
    | RelocateReplicas
    | ElectLeaders
    | DeleteTopic
)

STEPS: tuple[type[Step], ...] = (
    CreateTopic,
    ExpandTopic,
    ConfigureTopic,
    ReorderReplicas,
    MoveReplicas,
    RelocateReplicas,
    ElectLeaders,
    DeleteTopic,
)
"""Every kind, in the order in which the steps of one topic are done."""


def steps_of(topic: PlannedTopic) -> tuple[Step, ...]:
    """Return the steps from `before` to `after`, in order of execution; none if refused."""
    if topic.refusals:
        return ()
    return tuple([step for kind in STEPS if (step := kind.derive(topic)) is not None])


def has_steps(plan: Plan) -> bool:
    """Return whether a plan changes anything."""
    return bool(plan.moves and plan.moves.cordons) or any(map(steps_of, plan.topics))


def is_deletion(topic: PlannedTopic) -> bool:
    """Return whether a topic is to be deleted."""
    return any(step.verb is Verb.DELETE for step in steps_of(topic))


def brokers_of(step: Step) -> frozenset[int]:
    """Return the brokers that a step puts replicas on, as far as the plan chooses them."""
    return frozenset(broker for row in step.placed for broker in row) - {BY_BROKERS}
