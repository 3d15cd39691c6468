"""Kafka topics as code: plan in the pull request, apply on merge, balanced by design.

import reconciler

estate = reconciler.load_estate("topics")
state = reconciler.read_cluster(estate, "prod-eu")
plan = reconciler.build_plan(estate, "prod-eu", state)
print(reconciler.render_plan(plan))
reconciler.apply_plan(plan, estate)

`read_snapshot` gives a state without a cluster; `take_snapshot` and `write_snapshot` make one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reconciler.api import (
        apply_plan,
        build_plan,
        load_estate,
        read_cluster,
        read_snapshot,
        render_plan,
        take_snapshot,
        write_snapshot,
    )

__all__ = [
    "apply_plan",
    "build_plan",
    "load_estate",
    "read_cluster",
    "read_snapshot",
    "render_plan",
    "take_snapshot",
    "write_snapshot",
]


def __getattr__(name: str) -> Any:
    """Import what is asked for, and no stage that a part of the package does not need."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from reconciler import api

    return getattr(api, name)
