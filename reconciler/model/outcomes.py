"""Outcomes: the brokers' answers to a step, and the result for each topic."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from reconciler.errors import hide_secrets


class AnswerKind(StrEnum):
    """The kind of a broker's answer to one item of a request.

    NOT_DONE: it was not carried out, and may be sent again. LOST: it is unknown whether it was, or
    will be, carried out.
    """

    ACCEPTED = "accepted"
    REFUSED = "refused"
    NOT_DONE = "not done"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Answer:
    """A broker's answer for one topic.

    `wait_s` is how long the brokers ask to wait before the next request, since a quota is exceeded;
    they do so in an answer that accepts, too (KIP-599).
    """

    kind: AnswerKind
    error: str = ""
    text: str = ""
    wait_s: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", hide_secrets(self.text))


class OutcomeKind(StrEnum):
    """The result of apply for one topic of a plan.

    HALF_DONE and FAILED: the missing part was not done and will not be done. UNKNOWN: a request got
    no answer, and its effect is not visible; the brokers may still carry it out. IN_FLIGHT and
    WAITING: replicas are being copied, or not yet; another run of the same plan continues.
    """

    DONE = "done"
    ALREADY_DONE = "already done"
    IN_FLIGHT = "in flight"
    WAITING = "waiting"
    HALF_DONE = "half done"
    FAILED = "failed"
    UNKNOWN = "unknown"
    NOT_ATTEMPTED = "not attempted"
    REFUSED = "refused"

    @property
    def is_done(self) -> bool:
        """Return whether the topic is as planned, by this run or before it."""
        return self in (OutcomeKind.DONE, OutcomeKind.ALREADY_DONE)

    @property
    def is_unfinished(self) -> bool:
        """Return whether another run of the same plan continues the topic."""
        return self in (OutcomeKind.IN_FLIGHT, OutcomeKind.WAITING)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one topic's steps, and what is missing, if anything."""

    topic: str
    kind: OutcomeKind
    text: str = ""
    rule: str = ""
