"""The brokers that a plan drains: cordoned before the first move, and empty after the last one."""

from __future__ import annotations

from dataclasses import dataclass, field

from reconciler.model.moves import MovesReading, PlannedDrain
from reconciler.model.outcomes import AnswerKind
from reconciler.moves.running.notes import Observe, note
from reconciler.moves.running.writes import Writes
from reconciler.run.events import MovesNote
from reconciler.run.ports import ClusterMover
from reconciler.units import count

PATIENCE_S = 60.0
"""How long a broker may take to show its cordon."""


@dataclass(slots=True)
class Drains:
    """Cordons the brokers of a plan, and looks whether they are empty. A cordon stays.

    A broker that is not alive is not cordoned: only the broker itself takes the request. `first_s`
    holds since when a broker does not show its cordon, `failed` why it is not waited for, by
    broker. `empty` has the brokers that hold no replica.
    """

    planned: tuple[PlannedDrain, ...]
    mover: ClusterMover
    writes: Writes
    observe: Observe
    first_s: dict[int, float] = field(default_factory=dict)
    failed: dict[int, str] = field(default_factory=dict)
    empty: set[int] = field(default_factory=set)

    def cordon(self, reading: MovesReading, now: float) -> bool:
        """Cordon what is not. Returns: whether nothing is left to wait for."""
        missing = [b for b in self._list_uncordoned(reading) if b not in self.failed]
        for broker in self.first_s.keys() - missing:
            del self.first_s[broker]  # one reading may miss a cordon that others show
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

    def verify(self, reading: MovesReading, left: dict[str, str]) -> None:
        """Add to `left` each broker that is to be empty after the plan, and is not.

        Metadata and the broker's own log directories must agree. Errors: ClusterError.
        """
        alive = {broker.id for broker in reading.brokers if broker.alive}
        for broker in (drain.broker for drain in self.planned if not drain.stays):
            if broker in self.empty:
                continue
            held = {
                (topic, number)
                for topic, states in reading.partitions.items()
                for number, state in enumerate(states)
                if broker in state.replicas
            }
            stored = self.mover.read_stored(broker) if broker in alive else ()
            held |= set(stored or ())
            if held:
                topic, number = min(held)
                more = f" and {count(len(held) - 1, 'more replica')}" if len(held) > 1 else ""
                text = f"broker {broker} still stores {topic} partition {number}{more}"
                left[f"drain {broker}"] = text
            elif stored is None:
                text = f"broker {broker} does not show what its log directories store"
                left[f"drain {broker}"] = text
            else:
                self.empty.add(broker)
                what = "stores nothing" if broker in alive else "holds no replica"
                note(self.observe, MovesNote.DRAINED, f"broker {broker} {what}")

    def list_cordoned(self, reading: MovesReading) -> list[int]:
        """List the brokers that show the cordon of this plan."""
        asked = {drain.broker for drain in self.planned if drain.cordon}
        return [broker.id for broker in reading.brokers if broker.id in asked and broker.cordoned]

    def name_uncordoned(self, reading: MovesReading) -> dict[str, str]:
        """Say which brokers are not cordoned, and why."""
        return {
            f"cordon {broker}": f"broker {broker} is not cordoned: "
            f"{self.failed.get(broker, 'the run ended before')}"
            for broker in self._list_uncordoned(reading)
        }

    def _list_uncordoned(self, reading: MovesReading) -> list[int]:
        asked = {drain.broker for drain in self.planned if drain.cordon}
        return [b.id for b in reading.brokers if b.id in asked and b.alive and not b.cordoned]

    def _give_up(self, broker: int, text: str) -> None:
        self.failed[broker] = text
        note(self.observe, MovesNote.BLOCKED, f"broker {broker} is not cordoned: {text}")
