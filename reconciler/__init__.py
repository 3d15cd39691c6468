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

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reconciler.api.applying import apply_plan
    from reconciler.api.planning import build_plan, load_estate, read_cluster
    from reconciler.api.rendering import render_plan
    from reconciler.api.snapshots import read_snapshot, take_snapshot, write_snapshot

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

_OWNERS = {
    "applying": "apply_plan",
    "planning": "build_plan load_estate read_cluster",
    "rendering": "render_plan",
    "snapshots": "read_snapshot take_snapshot write_snapshot",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for, and no stage that a part of the package does not need."""
    for module, names in _OWNERS.items():
        if name in names.split():
            return getattr(import_module(f"{__name__}.api.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
