"""Apply's table of step kinds: cost, parts, effect, and reporting.

The controller commits at most 10,000 metadata records an operation (QuorumController's
MAX_RECORDS_PER_USER_OP); before Kafka 4.4 a CreatePartitions over that was committed in part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from reconciler.model.cluster import Replicas, TopicState
from reconciler.model.plan import TopicImage
from reconciler.model.steps import (
    STEPS,
    ConfigureTopic,
    CreateTopic,
    DeleteTopic,
    ElectLeaders,
    ExpandTopic,
    MoveReplicas,
    RelocateReplicas,
    ReorderReplicas,
    Step,
    Verb,
)
from reconciler.units import count

# A broker shows the topics of one request together, and makes their logs before it reads what
# follows. So everything goes into one request if it fits. If not, the first one is small: while
# brokers make its logs, the controller takes the others, and brokers then read these together.
# From the first request until brokers showed 5,000 topics, it took 83 s in requests of 1,800, and
# 47 s in requests of 500.
MAX_RECORDS = 9_000  # with room for the configs of a topic that fills a request
MAX_TOPICS = 500
MAX_ALONE = 2_000  # of the only request

S = TypeVar("S", bound=Step)


@dataclass(frozen=True, slots=True)
class StepKind(Generic[S]):
    """One kind of step, as a run handles it.

    `progress` is the title of its progress bar. `count_records` says what the step costs the
    controller; `split`, what one request can take of it and what has to follow. `done_error` is
    the refusal that says that the step is done already, by a request whose answer was lost.
    `take_effect` turns what the topic was into what the step makes of it; `is_shown` looks for an
    effect that no image holds. `name_missing` names what is missing while the step is not done.
    `rests_on` is the first partition whose row, like all later ones, must be as planned for the
    step; None if replicas may be anywhere, since a move of another run may go on meanwhile.
    `replicas_each` is the number of replicas that every partition must have before the step.
    """

    progress: str
    count_records: Callable[[S], int]
    take_effect: Callable[[S, TopicImage], TopicImage]
    name_missing: Callable[[S], str]
    split: Callable[[S], tuple[S, Step | None]] = lambda step: (step, None)
    is_shown: Callable[[S, TopicState], bool] = lambda _step, _live: True
    done_error: str | None = None
    rests_on: Callable[[S], int | None] = lambda _: None
    replicas_each: Callable[[S], int | None] = lambda _: None


def _split_creation(step: CreateTopic) -> tuple[CreateTopic, Step | None]:
    rows = step.assignment
    rest = ExpandTopic(step.topic, MAX_RECORDS, rows[MAX_RECORDS:])
    return replace(step, assignment=rows[:MAX_RECORDS]), rest if rest.added else None


def _split_expansion(step: ExpandTopic) -> tuple[ExpandTopic, Step | None]:
    rest = ExpandTopic(step.topic, step.first + MAX_RECORDS, step.added[MAX_RECORDS:])
    return replace(step, added=step.added[:MAX_RECORDS]), rest if rest.added else None


def _split_election(step: ElectLeaders) -> tuple[ElectLeaders, Step | None]:
    leaders = list(step.leaders.items())
    rest = ElectLeaders(step.topic, dict(leaders[MAX_RECORDS:]))
    part = ElectLeaders(step.topic, dict(leaders[:MAX_RECORDS]))
    return part, rest if rest.leaders else None


def _name_partitions(step: ExpandTopic) -> str:
    last = step.first + len(step.added) - 1
    return f"partitions {step.first} to {last}" if last > step.first else f"partition {step.first}"


def _leads(step: ElectLeaders, live: TopicState) -> bool:
    leaders = dict(enumerate(live.leaders))
    return all(leaders.get(p) == leader for p, leader in step.leaders.items())


def _place(rows: Mapping[int, Replicas], image: TopicImage) -> TopicImage:
    kept = enumerate(image.assignment)
    return replace(image, assignment=tuple(rows.get(number, row) for number, row in kept))


def _alter(step: ConfigureTopic, image: TopicImage) -> TopicImage:
    kept = {key: value for key, value in image.config.items() if key not in step.unset}
    return replace(image, config={**kept, **step.set})


def _rest_on_all(_: Step) -> int:
    return 0


CREATE: StepKind[CreateTopic] = StepKind(
    progress="creating topics",
    count_records=lambda step: 1 + len(step.config) + len(step.assignment),  # 1: the topic
    take_effect=lambda step, _: TopicImage(None, step.assignment, step.config),
    name_missing=lambda _: "the topic",
    split=_split_creation,
    done_error="TOPIC_ALREADY_EXISTS",
    rests_on=_rest_on_all,
)
EXPAND: StepKind[ExpandTopic] = StepKind(
    progress="adding partitions",
    count_records=lambda step: len(step.added),
    take_effect=lambda step, image: replace(image, assignment=(*image.assignment, *step.added)),
    name_missing=_name_partitions,
    split=_split_expansion,
    done_error="INVALID_PARTITIONS",  # of a smaller count as well: the views say which
    rests_on=lambda step: step.first,
    # Kafka compares new partitions with one of the existing ones, chosen arbitrarily.
    replicas_each=lambda step: len(step.added[0]),
)
CONFIGURE: StepKind[ConfigureTopic] = StepKind(
    progress="altering configs",
    count_records=lambda step: len(step.set) + len(step.unset),
    take_effect=_alter,
    name_missing=lambda step: ", ".join(sorted({*step.set, *step.unset})),
    # No error says that it is done: the same configs may be set any number of times.
)
REORDER: StepKind[ReorderReplicas] = StepKind(
    progress="reordering replicas",
    count_records=lambda step: len(step.rows),
    take_effect=lambda step, image: _place(step.rows, image),
    name_missing=lambda step: f"the order of {count(len(step.rows), 'partition')}",
    rests_on=_rest_on_all,
)
MOVE: StepKind[MoveReplicas] = StepKind(
    progress="moving replicas",
    count_records=lambda step: len(step.rows),
    take_effect=lambda step, image: _place(step.rows, image),
    name_missing=lambda step: f"the replicas of {count(len(step.rows), 'partition')}",
    rests_on=_rest_on_all,
)
RELOCATE: StepKind[RelocateReplicas] = StepKind(
    progress="moving replicas between log directories",
    count_records=lambda step: len(step.paths),
    take_effect=lambda _, image: image,
    name_missing=lambda step: f"the log directories of {count(len(step.paths), 'replica')}",
    rests_on=_rest_on_all,
)
ELECT: StepKind[ElectLeaders] = StepKind(
    progress="electing leaders",
    count_records=lambda step: len(step.leaders),
    take_effect=lambda _, image: image,  # whoever leads, the topic is the same
    name_missing=lambda step: f"{count(len(step.leaders), 'preferred leader')}",
    split=_split_election,
    is_shown=_leads,
    rests_on=_rest_on_all,
    # No error says that it is done: the writer counts a leader that leads already as elected.
)
DELETE: StepKind[DeleteTopic] = StepKind(
    progress="deleting topics",
    count_records=lambda _: 1,  # the controller drops partitions and configs with the topic
    take_effect=lambda _, image: image,  # whether it is gone is asked of its id
    name_missing=lambda _: "its deletion",
    done_error="UNKNOWN_TOPIC_ID",
)

KINDS: Mapping[Verb, StepKind[Any]] = MappingProxyType(
    {
        Verb.CREATE: CREATE,
        Verb.EXPAND: EXPAND,
        Verb.CONFIGURE: CONFIGURE,
        Verb.REORDER: REORDER,
        Verb.MOVE: MOVE,
        Verb.RELOCATE: RELOCATE,
        Verb.ELECT: ELECT,
        Verb.DELETE: DELETE,
    }
)

PHASES: Mapping[str, str] = MappingProxyType(
    {
        "validate": "asking the brokers",
        **{str(step.verb): KINDS[step.verb].progress for step in STEPS},
        "verify": "seen on every broker",
    }
)
"""Every phase of a run, in order, and the title of its progress bar."""


def kind_of(step: Step) -> StepKind[Any]:
    """Return how a step is handled."""
    return KINDS[step.verb]


def split_step(step: Step) -> tuple[Step, Step | None]:
    """Split a step into what one request can take and what has to follow it."""
    part: tuple[Step, Step | None] = kind_of(step).split(step)
    return part


def comes_before(step: Step, other: Step) -> bool:
    """Return whether a step is done before another, or is an earlier part of it.

    The parts of an expansion end with the same partition, so the earlier one has more left to add.
    """
    order = list(Verb)
    here, there = order.index(step.verb), order.index(other.verb)
    return (here, -len(step.placed)) < (there, -len(other.placed))


def make_batches(steps: Iterable[Step]) -> list[list[Step]]:
    """Cut steps of one kind into requests, in order."""
    steps = list(steps)
    is_alone = sum(kind_of(step).count_records(step) for step in steps) <= MAX_RECORDS
    most = MAX_ALONE if is_alone and len(steps) <= MAX_ALONE else MAX_TOPICS
    batches: list[list[Step]] = []
    room = 0
    for step in steps:
        records = kind_of(step).count_records(step)
        if not batches or records > room or len(batches[-1]) == most:
            batches.append([])
            room = MAX_RECORDS
        batches[-1].append(step)
        room -= records
    return batches
