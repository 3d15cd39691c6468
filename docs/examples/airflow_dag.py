"""A DAG for Airflow: a night of the fleet, and its metrics."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

LAKE = "/srv/fleet/lake"
ESTATE = "/srv/fleet/estate/topics"

with DAG(
    "reconciler_fleet",
    schedule="0 3 * * *",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    # A second attempt is another collection: jobs never write to each other's files.
    default_args={"retries": 1, "retry_delay": timedelta(minutes=10)},
) as dag:
    # Exits with 1 also if a cluster could not be read: the task fails, and the lake is complete.
    night = BashOperator(
        task_id="run",
        bash_command=(
            f"reconciler fleet run {ESTATE} --lake {LAKE} --out /srv/fleet/plans"
            " --page /srv/fleet/fleet.html"
        ),
    )
    # Metrics are about trouble, so they are written after a night that failed as well.
    metrics = BashOperator(
        task_id="metrics",
        bash_command=(f"reconciler fleet metrics /var/lib/node_exporter/fleet.prom --lake {LAKE}"),
        trigger_rule="all_done",
    )
    night >> metrics
