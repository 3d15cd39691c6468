"""The same steps by each strategy, and by Kafka's own random placement.

For one topic also the partition counts that make every broker equal.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import mean

from reconciler.errors import UsageError
from reconciler.model.cluster import Assignment, Broker
from reconciler.model.plan import Balance
from reconciler.placement.kafka_placement import place_like_kafka
from reconciler.placement.loss import lose_each_broker
from reconciler.placement.measure import Quality, measure_balance
from reconciler.placement.problem import Problem
from reconciler.placement.strategies import STRATEGIES as PLACING
from reconciler.placement.strategies import place_replicas
from reconciler.simulate.cluster import Place, Placer, SimulatedCluster, SimulationStep, WantedTopic
from reconciler.simulate.figures import Figures, Measured, measure_simulated

KAFKA = "kafka"
"""Kafka's own placement, for comparison only: no plan can be made with it."""

AS_IT_IS = "as it is"
"""The name that replaces a strategy if nothing is placed."""

STRATEGIES: tuple[str, ...] = (*PLACING, KAFKA)
"""The strategies to compare, the default of plans first."""

_FAR_APART = 0x9E3779B97F4A7C15
"""The factor between seeds: 2**64 divided by the golden ratio, since close seeds draw alike."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The outcomes of one strategy: one, or one per draw of Kafka's random placement."""

    strategy: str
    outcomes: tuple[Measured, ...]
    simulated: SimulatedCluster

    @property
    def mean(self) -> Figures:
        """The mean of each figure over the outcomes."""
        return self._fold(mean)

    @property
    def worst(self) -> Figures:
        """The largest value of each figure, each from any outcome."""
        return self._fold(max)

    def _fold(self, fold: Callable[[Sequence[float]], float]) -> Figures:
        rows = [asdict(outcome.figures) for outcome in self.outcomes]
        return Figures(**{name: fold([row[name] for row in rows]) for name in rows[0]})


def compare_strategies(
    simulated: SimulatedCluster,
    steps: Sequence[SimulationStep],
    strategies: Iterable[str] = STRATEGIES,
    draws: int = 20,
) -> tuple[Comparison, ...]:
    """Take the steps by each strategy. Same input, same answer, Kafka's random placement included.

    If nothing is placed, all strategies are one: `AS_IT_IS`.
    Errors: UsageError for a step that cannot be taken.
    """
    seen: dict[Assignment, Quality] = {}
    if not any(isinstance(step, Place) for step in steps):
        return (_compare(simulated, steps, AS_IT_IS, [choose_placer(STRATEGIES[0])], seen),)
    compared = []
    for strategy in strategies:
        numbers = range(draws if strategy == KAFKA else 1)
        placers = [choose_placer(strategy, number) for number in numbers]
        compared.append(_compare(simulated, steps, strategy, placers, seen))
    return tuple(compared)


def _compare(
    simulated: SimulatedCluster,
    steps: Sequence[SimulationStep],
    strategy: str,
    placers: Iterable[Placer],
    seen: dict[Assignment, Quality],
) -> Comparison:
    placed = []
    for placer in placers:
        after = simulated
        for step in steps:
            after = after.take(step, placer)
        placed.append(after)
    return Comparison(strategy, tuple(measure_simulated(one, seen) for one in placed), placed[0])


def choose_placer(strategy: str, draw: int = 0) -> Placer:
    """Return the placer of a strategy; `draw` numbers the draws of Kafka's random placement."""
    if strategy == KAFKA:
        return _KafkaPlacer(draw)
    return lambda problem, _: place_replicas(problem, strategy).rows


class _KafkaPlacer:
    """One draw of Kafka's random placement: a seed for each request."""

    def __init__(self, draw: int) -> None:
        self._next = draw << 32

    def __call__(self, problem: Problem, down: Collection[Broker]) -> Mapping[str, Assignment]:
        self._next += 1
        return place_like_kafka(problem, self._next * _FAR_APART, down)


@dataclass(frozen=True, slots=True)
class CountResult:
    """A topic with this number of partitions: its balance, and the most leaders that one
    broker takes over if another is lost.

    `kafka_mean` and `kafka_worst` are the leaders' max − min over the draws of Kafka's placement.
    """

    partitions: int
    balance: Balance
    worst_heir: int
    kafka_mean: float
    kafka_worst: int

    @property
    def evenness(self) -> str:
        """Return what is the same on every broker: leaders, replicas, both, or nothing."""
        spreads = {"leaders": self.balance.leaders, "replicas": self.balance.replicas}
        return " and ".join(name for name, spread in spreads.items() if not spread.skew)


def compare_counts(
    simulated: SimulatedCluster,
    wanted: WantedTopic,
    counts: Iterable[int],
    strategy: str,
    draws: int = 20,
) -> Iterator[CountResult]:
    """Place a topic with each of these counts, created or grown, on the same cluster.

    Errors: UsageError if it cannot be placed, or has more partitions already.
    """
    if wanted.rows is not None:
        raise UsageError(
            f"{wanted.topic} has its replicas assigned by hand, so its partitions are fixed"
        )
    for count in counts:
        step = Place((replace(wanted, partitions=count),))
        placed = simulated.take(step, choose_placer(strategy))
        thrown = [
            _balance(simulated.take(step, choose_placer(KAFKA, draw)), wanted.topic).leaders.skew
            for draw in range(draws)
        ]
        losses = lose_each_broker([placed.topics[wanted.topic]], placed.brokers)
        heir = max((loss.worst_heir for loss in losses.values()), default=0)
        balance = _balance(placed, wanted.topic)
        yield CountResult(count, balance, heir, mean(thrown), max(thrown))


def _balance(simulated: SimulatedCluster, topic: str) -> Balance:
    living = [broker.id for broker in simulated.brokers if broker.alive and not broker.cordoned]
    return measure_balance([simulated.topics[topic].assignment], living)
