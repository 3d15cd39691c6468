"""A seat in a group that has room for one, and what keeps it: heartbeats beside the work.

Members of a group have to agree on a protocol. Each of ours offers one that nobody else knows, so
the coordinator, which takes one request at a time, lets the first in and refuses every other
(INCONSISTENT_GROUP_PROTOCOL), without disturbing the one that is in.

A new group forms after group.initial.rebalance.delay.ms, 3 s by default, but its first member is
in from the start: the coordinator knows its id, and that is all a lock needs.
"""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from kafka.errors import (
    FencedInstanceIdError,
    GroupMaxSizeReachedError,
    IllegalGenerationError,
    InconsistentGroupProtocolError,
    KafkaError,
    MemberIdRequiredError,
    RebalanceInProgressError,
    RetriableError,
    UnknownBrokerIdError,
    UnknownMemberIdError,
)

from reconciler.kafka.group import NO_GENERATION

if TYPE_CHECKING:
    from reconciler.kafka.group import GroupClient, Seat

BEAT_S = 3.0
RETRY_S = 0.25
JOIN_MS = 120_000  # well over any delay before a group forms
PATIENCE_S = 30.0  # a coordinator that dies is replaced within some ten seconds

_TAKEN = (InconsistentGroupProtocolError, GroupMaxSizeReachedError)
_ASTIR = (RebalanceInProgressError, IllegalGenerationError)
PASSING = (RetriableError, UnknownBrokerIdError)
VOID = (UnknownMemberIdError, MemberIdRequiredError, FencedInstanceIdError)
"""The coordinator does not know the member id, or no longer: its session ran out, or another
coordinator took over and never heard of it."""


class UnseatedError(Exception):
    """The seat is lost; says why."""


class Membership:
    """One seat: asked for, proven, given up. `check` may be called from any thread."""

    def __init__(self, client: GroupClient, seat: Seat) -> None:
        self._client = client
        self._seat = seat
        self._generation = NO_GENERATION
        self._formed = False
        self._end: KafkaError | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep, daemon=True)

    def take(self) -> bool:
        """Ask for the seat. Returns False where another has it.

        Errors: one of VOID where the coordinator forgets the id at once, so that another has to be
        asked for; KafkaError where it refuses for another reason, or does not answer.
        """
        deadline = time.monotonic() + PATIENCE_S
        if not self._register(deadline):
            return False
        self._thread.start()
        while self._end is None:
            try:
                if self._is_seated():
                    return True
            except PASSING:
                if time.monotonic() > deadline:
                    self.leave()
                    raise
            time.sleep(0.01)
        self.leave()
        if isinstance(self._end, _TAKEN):
            return False
        raise self._end

    def check(self) -> None:
        """Ask the coordinator whether the seat is still ours. Errors: UnseatedError."""
        deadline = time.monotonic() + PATIENCE_S
        while self._end is None:
            try:
                if self._is_seated():
                    return
                self._end = UnknownMemberIdError()
            except KafkaError as error:
                if not isinstance(error, PASSING) or time.monotonic() > deadline:
                    self._end = error
            if self._end is None:
                time.sleep(RETRY_S)
        if isinstance(self._end, VOID):
            raise UnseatedError("its session ran out")
        raise UnseatedError(f"the coordinator does not confirm it: {name_kafka_error(self._end)}")

    def leave(self) -> None:
        """Give the seat up, or the id for one; a coordinator that is not told lets it run out."""
        self._over.set()
        try:
            self._client.leave(self._seat)
        except KafkaError:
            return
        if self._thread.is_alive():
            self._thread.join(1.0)

    def _register(self, deadline: float) -> bool:
        """Have a member id given out. Returns False where another has the seat."""
        while True:
            try:
                member_id = self._client.register(self._seat)
            except _TAKEN:
                return False
            except PASSING:
                if time.monotonic() > deadline:
                    raise
                time.sleep(RETRY_S)
            else:
                self._seat = replace(self._seat, member_id=member_id)
                return True

    def _is_seated(self) -> bool:
        """Send a heartbeat. Errors: KafkaError where it is not answered.

        Of a member that the coordinator knows it may say that the group is forming, or is of
        another generation; of one that it let go, that it knows none of this id. Ids are never
        given out twice.
        """
        generation = self._generation
        try:
            self._client.beat(self._seat, generation)
        except _ASTIR:
            if NO_GENERATION != generation == self._generation:
                self._formed = False
        except VOID:
            return False
        return True

    def _keep(self) -> None:
        """Form the group, then send heartbeats, until the seat is given up or lost."""
        while not self._over.is_set() and self._end is None:
            try:
                if not self._formed:
                    self._form()
                elif not self._over.wait(BEAT_S) and not self._is_seated():
                    self._end = UnknownMemberIdError()
            except (*PASSING, *_ASTIR):
                self._over.wait(RETRY_S)
            except KafkaError as error:
                self._end = error

    def _form(self) -> None:
        """Wait until the group has formed, and lead it. A lost answer may be asked for again."""
        generation = self._client.join(self._seat, JOIN_MS)
        self._client.sync(self._seat, generation)
        self._generation = generation
        self._formed = True


def name_kafka_error(error: KafkaError) -> str:
    """Name an error as the Kafka protocol does, or by what became of the connection."""
    return str(getattr(error, "message", None) or type(error).__name__)
