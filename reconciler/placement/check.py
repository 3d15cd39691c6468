"""The checker: every hard rule, held against any strategy's answer. It shares no code with one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from reconciler.model.cluster import Assignment, Replicas
from reconciler.placement.problem import Problem, Wish


def check_placement(problem: Problem, placed: Mapping[str, Assignment]) -> tuple[str, ...]:
    """Return every violation as a sentence; nothing if the answer is sound."""
    found: list[str] = []
    wished = {wish.topic for wish in problem.wishes}
    found += [f"{topic}: placed without a wish" for topic in sorted(set(placed) - wished)]
    rule = _Rule(problem)
    for wish in problem.wishes:
        rows = placed.get(wish.topic, ())
        if len(rows) != wish.count:
            found.append(f"{wish.topic}: {len(rows)} rows for {wish.count} new partitions")
        for number, row in enumerate(rows, len(wish.existing)):
            if not rule.is_sound(wish, row):
                found += [f"{wish.topic} partition {number}: {v}" for v in rule.faults(wish, row)]
    return tuple(found)


class _Rule:
    """The hard rules over one problem's brokers. Racks of a row that were even once stay so."""

    def __init__(self, problem: Problem) -> None:
        self._rack = {broker.id: broker.rack or "" for broker in problem.brokers}
        self._size = Counter(self._rack.values())
        self._even: set[tuple[str | None, ...]] = set()

    def is_sound(self, wish: Wish, row: Replicas) -> bool:
        """Return quickly whether a row is certainly valid; False if in doubt."""
        if not len(row) == len(set(row)) == wish.replication:
            return False
        racks = tuple(map(self._rack.get, row))
        return racks in self._even if wish.rack_aware else None not in racks

    def faults(self, wish: Wish, row: Replicas) -> Iterator[str]:
        """Yield every fault of a row."""
        if len(row) != wish.replication:
            yield f"{len(row)} replicas instead of {wish.replication}"
        if len(set(row)) != len(row):
            yield f"a broker twice in {list(row)}"
        ineligible = sorted(set(row) - set(self._rack))
        if ineligible:
            yield f"brokers {ineligible} may take nothing new"
        elif wish.rack_aware and not self._is_even(tuple(self._rack[b] for b in row)):
            yield f"{list(row)} is not spread over the racks as evenly as they allow"

    def _is_even(self, racks: tuple[str, ...]) -> bool:
        """Even: no rack holds two replicas more than another one that still has a broker free.

        That is the entire rule: an uneven division can always be improved by one such step.
        """
        held = Counter(racks)
        most = max(held.values(), default=0)
        even = all(most - held[rack] <= 1 for rack in self._size if held[rack] < self._size[rack])
        if even:
            self._even.add(racks)
        return even
