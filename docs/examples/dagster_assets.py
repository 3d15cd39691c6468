"""An asset for Dagster: a collection of the fleet with its plans, audit and metrics."""

from __future__ import annotations

import shlex
import subprocess

import dagster as dg

LAKE = "/srv/fleet/lake"
ESTATE = "/srv/fleet/estate/topics"
RUN = f"reconciler fleet run {ESTATE} --lake {LAKE} --out /srv/fleet/plans"
METRICS = f"reconciler fleet metrics /var/lib/node_exporter/fleet.prom --lake {LAKE}"


@dg.asset(group_name="kafka")
def fleet_collection(context: dg.AssetExecutionContext) -> None:
    """Collect, plan and audit every cluster; the metrics follow also if something needs a look."""
    night = subprocess.run(
        shlex.split(RUN), check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    context.log.info(night.stdout)
    subprocess.run(shlex.split(METRICS), check=True)
    # 1: a cluster was not read or planned, something is refused, or the audit found an error.
    night.check_returncode()


every_night = dg.ScheduleDefinition(
    name="every_night", target=dg.AssetSelection.assets(fleet_collection), cron_schedule="0 3 * * *"
)
defs = dg.Definitions(assets=[fleet_collection], schedules=[every_night])
