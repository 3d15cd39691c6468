"""The same steps by one strategy after the other, and by Kafka's own dice, thrown often."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from statistics import mean
from typing import TYPE_CHECKING

from reconciler.placement import STRATEGIES as PLACING
from reconciler.placement import place_replicas
from reconciler.placement.dice import throw_dice
from reconciler.simulate.figures import Figures, Measured, measure_world
from reconciler.simulate.steps import Place

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from reconciler.model import Assignment, Broker
    from reconciler.placement import Problem
    from reconciler.placement.measure import Quality
    from reconciler.simulate.steps import Step
    from reconciler.simulate.world import Placer, World

KAFKA = "kafka"
"""Kafka's own placement. It is compared with, and no plan can be made with it."""

AS_IT_IS = "as it is"
"""What stands in a strategy's place where nothing is placed."""

STRATEGIES: tuple[str, ...] = (*PLACING, KAFKA)
"""What can be compared, the default of plans first."""

_FAR_APART = 0x9E3779B97F4A7C15  # the first draws of neighbouring seeds are alike


@dataclass(frozen=True, slots=True)
class Comparison:
    """One strategy's outcome: measured once, or as often as the dice were thrown."""

    strategy: str
    outcomes: tuple[Measured, ...]
    world: World

    @property
    def mean(self) -> Figures:
        """Every figure's mean over the outcomes."""
        return self._fold(mean)

    @property
    def worst(self) -> Figures:
        """Every figure's largest value, each from whichever outcome."""
        return self._fold(max)

    def _fold(self, fold: Callable[[Sequence[float]], float]) -> Figures:
        rows = [asdict(outcome.figures) for outcome in self.outcomes]
        return Figures(**{name: fold([row[name] for row in rows]) for name in rows[0]})


def compare_strategies(
    world: World,
    steps: Sequence[Step],
    strategies: Iterable[str] = STRATEGIES,
    throws: int = 20,
) -> tuple[Comparison, ...]:
    """Take the steps by each strategy. Same input, same answer, the dice included.

    Where nothing is placed, all strategies are one: `AS_IT_IS`.
    Errors: UsageError for a step that cannot be taken.
    """
    seen: dict[Assignment, Quality] = {}
    if not any(isinstance(step, Place) for step in steps):
        return (_compare(world, steps, AS_IT_IS, [choose_placer(STRATEGIES[0])], seen),)
    return tuple(
        _compare(world, steps, strategy, _list_placers(strategy, throws), seen)
        for strategy in strategies
    )


def _list_placers(strategy: str, throws: int) -> list[Placer]:
    return [choose_placer(strategy, throw) for throw in range(throws if strategy == KAFKA else 1)]


def _compare(
    world: World,
    steps: Sequence[Step],
    strategy: str,
    placers: Iterable[Placer],
    seen: dict[Assignment, Quality],
) -> Comparison:
    worlds = [_take_all(world, steps, placer) for placer in placers]
    return Comparison(strategy, tuple(measure_world(one, seen) for one in worlds), worlds[0])


def _take_all(world: World, steps: Iterable[Step], place: Placer) -> World:
    for step in steps:
        world = world.take(step, place)
    return world


def choose_placer(strategy: str, throw: int = 0) -> Placer:
    """Return what places by a strategy; `throw` numbers the throws of Kafka's dice."""
    if strategy == KAFKA:
        return _Dice(throw)
    return lambda problem, _: place_replicas(problem, strategy)


class _Dice:
    """One throw of the dice: a seed for each request of it."""

    def __init__(self, throw: int) -> None:
        self._next = throw << 32

    def __call__(self, problem: Problem, down: Collection[Broker]) -> Mapping[str, Assignment]:
        self._next += 1
        return throw_dice(problem, self._next * _FAR_APART, down)
