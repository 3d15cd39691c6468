"""What placement would do: a cluster as it is or as imagined, steps in order, strategies beside.

Belongs here: worlds, steps, and the figures that strategies are compared by. Forbidden here:
specs, clients, and anything that changes a cluster. Kafka's own dice are thrown here for
comparison only.
"""

from reconciler.simulate.compare import (
    KAFKA,
    STRATEGIES,
    Comparison,
    choose_placer,
    compare_strategies,
)
from reconciler.simulate.counts import CountResult, compare_counts
from reconciler.simulate.figures import Figures
from reconciler.simulate.steps import AddBrokers, LoseBroker, LoseRack, Place, Step, Wanted
from reconciler.simulate.world import World

__all__ = [
    "KAFKA",
    "STRATEGIES",
    "AddBrokers",
    "Comparison",
    "CountResult",
    "Figures",
    "LoseBroker",
    "LoseRack",
    "Place",
    "Step",
    "Wanted",
    "World",
    "choose_placer",
    "compare_counts",
    "compare_strategies",
]
