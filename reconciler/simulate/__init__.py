"""Simulated placement: a real or imagined cluster, steps in order, and several strategies.

Belongs here: simulated clusters, steps, and the figures that strategies are compared by. Forbidden
here: specs, clients, and anything that changes a cluster. Kafka's own random placement is here for
comparison only.
"""

from reconciler.simulate.cluster import (
    AddBrokers,
    LoseBroker,
    LoseRack,
    Place,
    Rebalance,
    SimulatedCluster,
    SimulationStep,
    WantedTopic,
)
from reconciler.simulate.compare import (
    KAFKA,
    STRATEGIES,
    Comparison,
    CountResult,
    choose_placer,
    compare_counts,
    compare_strategies,
)
from reconciler.simulate.figures import Figures
from reconciler.simulate.text import (
    list_comparison,
    list_counts,
    render_comparison,
    render_counts,
)

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
    "Rebalance",
    "SimulatedCluster",
    "SimulationStep",
    "WantedTopic",
    "choose_placer",
    "compare_counts",
    "compare_strategies",
    "list_comparison",
    "list_counts",
    "render_comparison",
    "render_counts",
]
