"""Kafka topics as code: plan in the pull request, apply on merge, balanced by design.

import reconciler

estate = reconciler.load_estate("topics")
state = reconciler.read_cluster(estate, "prod-eu")
plan = reconciler.build_plan(estate, "prod-eu", state)
print(reconciler.render_plan(plan))
reconciler.apply_plan(plan, estate)
"""

from reconciler.api import apply_plan, build_plan, load_estate, read_cluster, render_plan

__all__ = ["apply_plan", "build_plan", "load_estate", "read_cluster", "render_plan"]
