"""Cordons: Kafka places nothing on a broker that is drained, from before the first move on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from reconciler.apply.moving.events import MovesNote, note
from reconciler.model import AnswerKind

if TYPE_CHECKING:
    from reconciler.apply.moving.events import Observe
    from reconciler.apply.moving.writes import Writes
    from reconciler.model import MovesReading


PATIENCE_S = 60.0
"""How long a broker may take to show its cordon."""


@dataclass(slots=True)
class Cordons:
    """Cordons the brokers of a plan. A cordon stays after the run.

    A broker that is not alive is not cordoned: only the broker itself takes the request. `failed`
    holds the reasons of the others, by broker.
    """

    brokers: frozenset[int]
    writes: Writes
    observe: Observe
    first_s: dict[int, float] = field(default_factory=dict)
    failed: dict[int, str] = field(default_factory=dict)

    def set(self, reading: MovesReading, now: float) -> bool:
        """Cordon what is not. Returns: whether nothing is left to wait for."""
        missing = self._list_missing(reading)
        for broker in missing:
            if now - self.first_s.setdefault(broker, now) >= PATIENCE_S:
                self._give_up(broker, f"it does not show the cordon after {PATIENCE_S:.0f} s")
            elif self.writes.is_due(("", f"cordon {broker}"), "*"):
                answer = self.writes.cordon(broker)
                if answer.kind is AnswerKind.REFUSED:
                    self._give_up(broker, answer.text or answer.error)
                elif answer.kind is AnswerKind.ACCEPTED:
                    text = f"broker {broker} is cordoned, and stays so"
                    note(self.observe, MovesNote.CORDONED, text)
        return not missing

    def list_set(self, reading: MovesReading) -> list[int]:
        """List the brokers that show their cordon."""
        return [b.id for b in reading.brokers if b.id in self.brokers and b.cordoned]

    def name_left(self) -> dict[str, str]:
        """Say which brokers could not be cordoned."""
        return {
            f"cordon {broker}": f"broker {broker} is not cordoned: {text}"
            for broker, text in self.failed.items()
        }

    def _list_missing(self, reading: MovesReading) -> list[int]:
        waited = self.brokers - self.failed.keys()
        return [b.id for b in reading.brokers if b.id in waited and b.alive and not b.cordoned]

    def _give_up(self, broker: int, text: str) -> None:
        self.failed[broker] = text
        note(self.observe, MovesNote.BLOCKED, f"broker {broker} is not cordoned: {text}")
