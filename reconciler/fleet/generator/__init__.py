"""A synthetic fleet to test a pipeline: clusters, topics, partitions, specs, drift.

Belongs here: everything that is drawn from a seed, and the clusters of `troubles`. Each cluster is
drawn alone, by numpy, from (seed, number of the cluster), so that clusters are drawn in parallel
and do not depend on each other. Forbidden here: clocks, and anything else that differs between two
runs. Every reading is marked as `synthetic`.
"""

from typing import TYPE_CHECKING

from reconciler.exports import export_lazily

if TYPE_CHECKING:
    from reconciler.fleet.generator.job import (
        GENERATED_ROOT,
        MOST_TOPICS_IN_FILES,
        generate_fleet,
        write_estate,
    )
    from reconciler.fleet.generator.shapes import FleetSize
    from reconciler.fleet.generator.troubles import Trouble, list_troubles
else:
    __getattr__ = export_lazily(
        __name__,
        {
            "job": "MOST_TOPICS_IN_FILES GENERATED_ROOT generate_fleet write_estate",
            "shapes": "FleetSize",
            "troubles": "Trouble list_troubles",
        },
    )

__all__ = [
    "GENERATED_ROOT",
    "MOST_TOPICS_IN_FILES",
    "FleetSize",
    "Trouble",
    "generate_fleet",
    "list_troubles",
    "write_estate",
]
