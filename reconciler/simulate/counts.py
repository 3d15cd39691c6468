"""One topic with more and more partitions: which counts come out even."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import mean
from typing import TYPE_CHECKING

from reconciler.errors import UsageError
from reconciler.placement import measure_balance
from reconciler.placement.loss import lose_each_broker
from reconciler.simulate.compare import KAFKA, choose_placer
from reconciler.simulate.steps import Place

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from reconciler.model import Balance
    from reconciler.simulate.steps import Wanted
    from reconciler.simulate.world import World


@dataclass(frozen=True, slots=True)
class CountResult:
    """A topic with so many partitions: its balance, and the worst heir of one broker's loss.

    `kafka_mean` and `kafka_worst` are the leaders' max − min over throws of Kafka's dice.
    """

    partitions: int
    balance: Balance
    worst_heir: int
    kafka_mean: float
    kafka_worst: int

    @property
    def evenness(self) -> str:
        """Say what every broker has the same number of."""
        spreads = {"leaders": self.balance.leaders, "replicas": self.balance.replicas}
        return " and ".join(name for name, spread in spreads.items() if not spread.skew)


def compare_counts(
    world: World, wanted: Wanted, counts: Iterable[int], strategy: str, throws: int = 20
) -> Iterator[CountResult]:
    """Place a topic with each of these counts, created or grown, on the same world.

    Errors: UsageError where it cannot be placed, or has more partitions already.
    """
    if wanted.rows is not None:
        raise UsageError(f"{wanted.topic} is assigned by hand, so its count is what it is")
    for count in counts:
        step = Place((replace(wanted, partitions=count),))
        placed = world.take(step, choose_placer(strategy))
        thrown = [
            _balance(world.take(step, choose_placer(KAFKA, throw)), wanted.topic).leaders.skew
            for throw in range(throws)
        ]
        losses = lose_each_broker([placed.topics[wanted.topic]], placed.brokers)
        heir = max((loss.worst_heir for loss in losses.values()), default=0)
        balance = _balance(placed, wanted.topic)
        yield CountResult(count, balance, heir, mean(thrown), max(thrown))


def _balance(world: World, topic: str) -> Balance:
    living = [broker.id for broker in world.brokers if broker.alive and not broker.cordoned]
    return measure_balance([world.topics[topic].assignment], living)
