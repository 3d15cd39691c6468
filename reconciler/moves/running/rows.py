"""The rows of a plan of moves, and where each is: the one judge of a run and of a cancel.

| state     | seen                                          | a run          | a cancel       |
|-----------|-----------------------------------------------|----------------|----------------|
| NOT_BEGUN | shown as before, not listed, never accepted   | sends it       | elects leaders |
| UNDER_WAY | listed with the target of the plan: ours      | watches it     | cancels it     |
| FOREIGN   | listed with another target                    | waits          | leaves it      |
| UNCLEAR   | not listed, and shown neither begun nor ended | waits          | waits          |
| DONE      | not listed, and a broker shows it as planned  | elects leaders | leaves it      |
| CANCELLED | was accepted; all brokers show old replicas   | leaves it      | restores it    |
| ELSEWHERE | all brokers show other replicas or order      | leaves it      | leaves it      |
| GONE      | the topic was deleted, or created again       | leaves it      | leaves it      |
| REFUSED   | the brokers, or this run, refuse the row      | leaves it      | leaves it      |

What is listed outweighs everything that was seen before, except that a topic is GONE: a request
that a frozen controller carries out late makes a row UNDER_WAY from any other state. Brokers show
the end of a reassignment some seconds after the controller has it, so UNCLEAR is decided by all
views that agree for SETTLED_S. A row that is DONE and then shown otherwise is UNCLEAR again, since
somebody else may have moved it; this run does not move it a second time.

A cancel leaves the old replicas in another order. A row that is shown so is turned, whatever its
state: a run waits until it is CANCELLED or ELSEWHERE, a cancel restores its order.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from reconciler.model.cluster import Place, Reassignment, Replicas, TopicState
from reconciler.model.moves import MovesReading, PartitionState
from reconciler.model.plan import Plan
from reconciler.model.steps import steps_of

SETTLED_S = 30.0
"""How long all brokers must agree that a row is not as planned: views lag 8 s under load."""


TOO_LATE = "more than is left of --stop-after"
"""How the reason ends for a row that no wait can help: the time only gets less."""


class RowState(StrEnum):
    """The state of a row; the table above has the meanings."""

    NOT_BEGUN = "not begun"
    UNDER_WAY = "in flight"
    FOREIGN = "foreign"
    UNCLEAR = "unclear"
    DONE = "done"
    CANCELLED = "cancelled"
    ELSEWHERE = "elsewhere"
    GONE = "gone"
    REFUSED = "refused"


ENDED_OTHERWISE = frozenset(
    {RowState.CANCELLED, RowState.ELSEWHERE, RowState.GONE, RowState.REFUSED}
)
"""States in which this run sends nothing more for a row."""


@dataclass(slots=True)
class Row:
    """One partition that the plan alters.

    `unanswered` counts requests that may still be carried out. `known`: this run has seen it under
    way, or a request was accepted; `seen`: it was under way. `shown` is what metadata shows,
    `flight` what is listed.
    `was_done` is set if it was as planned when the run began, and `has_ended` once it was seen so;
    `done_s` is the time of its end in this run. `synced` are the replicas that were in sync when it
    last had a leader, and `led_bytes` the bytes of that leader, None if it did not tell.
    `cut_short` is the broker that became the leader before its copy was complete, if one did.
    `agreed` is the row that all brokers show since `agreed_since_s`: () if they disagree, None if
    they do not show it, or were not asked.
    """

    place: Place
    before: Replicas
    after: Replicas
    state: RowState = RowState.NOT_BEGUN
    unanswered: int = 0
    known: bool = False
    seen: bool = False
    text: str = ""
    shown: PartitionState | None = None
    flight: Reassignment | None = None
    asked_s: float = 0.0
    done_s: float | None = None
    agreed: Replicas | None = None
    agreed_since_s: float | None = None
    elections: int = 0
    was_done: bool = False
    has_ended: bool = False
    synced: Replicas = ()
    led_bytes: int | None = None
    cut_short: int | None = None
    noun: ClassVar[str] = "partition"

    @property
    def name(self) -> str:
        """Name it among the partitions of its topic."""
        return f"partition {self.place[1]}"

    @property
    def key(self) -> Place:
        """What it is called among all rows of the plan."""
        return self.place

    @property
    def preferred(self) -> int:
        """The broker that is to lead it."""
        return self.after[0]

    @property
    def adding(self) -> Replicas:
        """The replicas that are copied."""
        return tuple(broker for broker in self.after if broker not in self.before)

    @property
    def is_reorder(self) -> bool:
        """Return whether only the order of its replicas changes."""
        return set(self.before) == set(self.after)

    @property
    def in_doubt(self) -> bool:
        """Return whether a request without an answer may still begin it."""
        return self.state is RowState.NOT_BEGUN and self.unanswered > 0

    @property
    def may_copy(self) -> bool:
        """Return whether its replicas are being copied, or may be a moment later or earlier."""
        ends = self.state is RowState.UNCLEAR and self.known and not self.has_ended
        return ends or self.state is RowState.UNDER_WAY or self.in_doubt

    @property
    def brokers(self) -> tuple[int, ...]:
        """Every broker that takes part, in order."""
        return tuple(sorted({*self.before, *self.after}))

    @property
    def leader(self) -> int:
        """The leader that its copies read from, -1 if there is none or it is not known."""
        if self.flight is not None and self.flight.leader is not None:
            return self.flight.leader
        return self.shown.leader if self.shown else -1

    @property
    def is_turned(self) -> bool:
        """Whether it is shown with its old replicas in another order, as a cancel leaves them."""
        return self.flight is None and self.shown is not None and self.turns(self.shown.replicas)

    @property
    def where(self) -> str:
        """Say in the words of a cancel where it is."""
        if self.is_turned:
            return "in another order"
        known = self.state in (RowState.NOT_BEGUN, RowState.UNDER_WAY, RowState.DONE)
        return str(self.state if known else RowState.ELSEWHERE)

    def is_misled(self, *, back: bool) -> bool:
        """Whether its preferred leader can lead and does not, shown as planned, or as before."""
        wanted, shown = self.before if back else self.after, self.shown
        if shown is None or shown.replicas != wanted:
            return False
        return shown.leader != wanted[0] and wanted[0] in shown.in_sync

    def turns(self, replicas: Replicas) -> bool:
        """Return whether these are the replicas before the plan in another order."""
        return replicas != self.before and set(replicas) == set(self.before) and not self.is_reorder

    def end(self, state: RowState, text: str) -> None:
        """Give it a state from which this run does not begin it again."""
        self.state, self.text = state, text


@dataclass(slots=True)
class Rows:
    """All rows of a plan by place, as of the last reading, and what else is in flight.

    `replaced` has the topics of the plan whose names belong to other topics by now. `given_up` has
    the rows that every broker shows elsewhere since the run last asked.
    """

    by_place: dict[Place, Row]
    foreign: tuple[Reassignment, ...] = ()
    given_up: list[Row] = field(default_factory=list)
    replaced: set[str] = field(default_factory=set)

    @classmethod
    def of_plan(cls, plan: Plan) -> Rows:
        """Take the rows that differ between the images of a plan."""
        rows = {}
        for topic in plan.topics:
            if topic.before is None or not steps_of(topic):
                continue
            old, new = topic.before.assignment, topic.after.assignment if topic.after else ()
            for partition, pair in enumerate(zip(old, new, strict=False)):
                if pair[0] != pair[1]:
                    rows[topic.name, partition] = Row((topic.name, partition), *pair)
        return cls(rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.by_place.values())

    def list_in(self, *states: RowState) -> list[Row]:
        """List the rows in some states, in the order of the plan."""
        return [row for row in self if row.state in states]

    def of_topics(self, topics: Iterable[str]) -> list[Row]:
        """List the rows of some topics."""
        wanted = set(topics)
        return [row for row in self if row.place[0] in wanted]

    def find_busy(self) -> set[int]:
        """Return the brokers that copies need, of rows that wait or are under way."""
        open_rows = self.list_in(RowState.NOT_BEGUN, RowState.UNDER_WAY, RowState.UNCLEAR)
        return {broker for row in open_rows if row.adding for broker in row.brokers}

    def update(self, reading: MovesReading, now_s: float) -> None:
        """Judge every row by a reading. `unclear` rows then need `resolve`."""
        flights = {(each.topic, each.partition): each for each in reading.reassignments}
        alive = {broker.id for broker in reading.brokers if broker.alive}
        for row in self:
            topic, partition = row.place
            row.flight = flights.pop(row.place, None)
            shown = reading.partitions.get(topic, ())
            row.shown = shown[partition] if partition < len(shown) else None
            _look_at_leader(row, alive, reading.sizes)
            _judge(row, now_s)
            if row.flight is not None and row.state is not RowState.UNDER_WAY:
                flights[row.place] = row.flight
        self.foreign = tuple(flights[place] for place in sorted(flights))

    def resolve(self, views: Mapping[int, Mapping[str, TopicState]], now_s: float) -> None:
        """Decide unclear rows by the views of all brokers, once these agree for long enough."""
        for row in self.list_in(RowState.UNCLEAR):
            if row.after in compare_views(row, views, now_s):
                _finish(row, now_s)
            elif row.agreed != () and now_s - (row.agreed_since_s or now_s) >= SETTLED_S:
                self.given_up.append(row)
                _conclude(row, row.agreed)


def compare_views(
    row: Row, views: Mapping[int, Mapping[str, TopicState]], now_s: float
) -> list[Replicas | None]:
    """Note whether all brokers agree on a row, and since when. Returns: what each shows."""
    topic, partition = row.place
    seen = [_show(view.get(topic), partition) for view in views.values()]
    alike = seen[0] if len(set(seen)) == 1 else ()
    if alike == () or alike != row.agreed or row.agreed_since_s is None:
        row.agreed, row.agreed_since_s = alike, now_s
    return seen


def _show(topic: TopicState | None, partition: int) -> Replicas | None:
    """Return the row that a view shows, None if it does not know the partition."""
    known = topic is not None and partition < len(topic.assignment)
    return topic.assignment[partition] if topic and known else None


def _look_at_leader(
    row: Row, alive: Container[int], sizes: Mapping[int, Mapping[Place, int]]
) -> None:
    """Notice an unclean election of a replica that was being copied: what it lacks is lost.

    No request shows one. But every replica that was in sync is gone at once, dead or out of sync,
    and a new one leads that has fewer bytes than the leader had. A copy that ends in between drops
    replicas that live, or is as large.
    """
    shown = row.shown
    if shown is None or shown.leader < 0:
        return
    lost = [
        broker not in alive or broker in set(shown.replicas) - set(shown.in_sync)
        for broker in row.synced
    ]
    held = sizes.get(shown.leader, {}).get(row.place)
    is_whole = held is not None and row.led_bytes is not None and held >= row.led_bytes
    is_new = shown.leader in row.adding and shown.leader not in row.synced
    if is_new and lost and all(lost) and not is_whole:
        row.cut_short = shown.leader
    row.synced = shown.in_sync
    if held is not None:
        row.led_bytes = held


def _judge(row: Row, now_s: float) -> None:
    if row.state is RowState.GONE:
        return
    if row.flight is not None:
        row.agreed_since_s = None
        if row.flight.target == row.after:
            row.state, row.known, row.seen, row.unanswered = RowState.UNDER_WAY, True, True, 0
        elif row.state not in ENDED_OTHERWISE:
            row.state = RowState.FOREIGN
        return
    if row.state in ENDED_OTHERWISE:
        return
    shown = row.shown.replicas if row.shown else None
    if shown == row.after:
        if row.state is not RowState.DONE:
            _finish(row, now_s)
    elif shown == row.before and not row.known and not row.has_ended:
        row.state, row.agreed_since_s = RowState.NOT_BEGUN, None
    else:
        if row.state is not RowState.UNCLEAR:
            row.agreed_since_s, row.agreed = now_s, None
        row.state = RowState.UNCLEAR


def _finish(row: Row, now_s: float) -> None:
    row.state, row.agreed_since_s, row.has_ended = RowState.DONE, None, True
    row.done_s = now_s if row.known else None


def _conclude(row: Row, alike: Replicas | None) -> None:
    """Say why an unclear row is over: all brokers agree, and not on the row of the plan."""
    if alike is None:
        row.end(RowState.GONE, "the brokers do not show it any more")
    elif row.has_ended:
        what = f"it was as planned, and another tool or run moved it to brokers {list(alike)}"
        row.end(RowState.ELSEWHERE, what)
    elif row.known and set(alike) == set(row.before):
        back = f"its replicas are {list(alike)}"
        # Some services accept a reassignment and do nothing (franz-go's kfake does).
        ignored = "the brokers accepted the move, but never listed it: they ignored it, or it was "
        what = (
            "it was cancelled by another tool or run" if row.seen else f"{ignored}cancelled at once"
        )
        row.end(RowState.CANCELLED, f"{what}, and {back}")
    else:
        what = f"it is on brokers {list(alike)}, not {list(row.before)}, since the plan was made"
        row.end(RowState.ELSEWHERE, what)
