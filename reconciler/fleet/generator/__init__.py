"""A synthetic fleet to test a pipeline: clusters, topics, partitions, specs, drift.

Belongs here: everything that is drawn from a seed. Each cluster is drawn alone, by numpy, from
(seed, number of the cluster), so that clusters are drawn in parallel and do not depend on each
other. Forbidden here: clocks, and anything else that differs between two runs. Every reading is
marked as `synthetic`.
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
else:
    __getattr__ = export_lazily(
        __name__,
        {
            "job": "MOST_TOPICS_IN_FILES GENERATED_ROOT generate_fleet write_estate",
            "shapes": "FleetSize",
        },
    )

__all__ = [
    "GENERATED_ROOT",
    "MOST_TOPICS_IN_FILES",
    "FleetSize",
    "generate_fleet",
    "write_estate",
]
