"""How even an assignment is. Shares no code with what made it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from reconciler.model import Balance, Spread

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from reconciler.model import Assignment


def measure_balance(assignments: Iterable[Assignment], brokers: Collection[int]) -> Balance:
    """Measure preferred leaders and replicas over `brokers`, those that hold nothing included."""
    leaders: Counter[int] = Counter()
    replicas: Counter[int] = Counter()
    for assignment in assignments:
        for row in assignment:
            leaders.update(row[:1])
            replicas.update(row)
    return Balance(_spread(leaders, brokers), _spread(replicas, brokers))


def _spread(counts: Mapping[int, int], brokers: Collection[int]) -> Spread:
    held = [counts.get(broker, 0) for broker in brokers]
    return Spread(min(held, default=0), max(held, default=0))
