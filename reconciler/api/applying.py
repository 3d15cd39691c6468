"""A plan made true on its cluster."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from reconciler.api.connections import open_connection

if TYPE_CHECKING:
    from collections.abc import Callable

    from reconciler.apply import Applied, StepAnswered
    from reconciler.model import Plan
    from reconciler.spec import Estate


def apply_plan(
    plan: Plan,
    estate: Estate,
    *,
    bootstrap_servers: str | None = None,
    skip_refused: bool = False,
    observe: Callable[[StepAnswered], None] = lambda _: None,
) -> Applied:
    """Make the changes of a plan on its cluster, and nothing else.

    Returns an outcome for every topic. Errors: RefusedPlanError, StalePlanError and ClusterError,
    all of them before anything is written.
    """
    from reconciler import apply as stage
    from reconciler.kafka import KafkaReader, KafkaWriter
    from reconciler.plan import is_deletion, steps_of

    deleted = [topic.name for topic in plan.topics if is_deletion(topic)]
    names = {topic.name for topic in plan.topics if steps_of(topic)}.difference(deleted)
    with open_connection(estate, plan.cluster, bootstrap_servers) as connection:
        reader = KafkaReader(connection)
        reader.check_rights(names, for_apply=True, deleted=deleted)
        return stage.apply_plan(
            plan, reader, KafkaWriter(connection), time, observe, skip_refused=skip_refused
        )
