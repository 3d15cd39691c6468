"""What must still hold of the cluster as a whole before a plan may touch it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.errors import Finding
from reconciler.model import AddPartitions, CreateTopic
from reconciler.plan import steps_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from reconciler.model import ClusterState, Plan


def find_moved(plan: Plan, state: ClusterState, ids: Mapping[str, str]) -> Iterator[Finding]:
    """Name what the plan rests on and is no more: the cluster, brokers, racks, topics by id."""
    if plan.cluster_id and state.cluster_id != plan.cluster_id:
        what = f"the plan is for cluster {plan.cluster_id}, this one is {state.cluster_id}"
        way_out = f"apply it to {plan.cluster}, or plan for this cluster"
        yield Finding("plan-cluster", what, way_out)
        return
    yield from _moved_brokers(plan, state)
    for topic in plan.topics:
        then = topic.before.topic_id if topic.before else None
        if then and steps_of(topic) and ids.get(topic.name, then) != then:
            what = f"{topic.name}: it was deleted and created again since the plan was made"
            yield Finding("plan-stale", what, "plan again", topic.location)


def _moved_brokers(plan: Plan, state: ClusterState) -> Iterator[Finding]:
    now = {broker.id: broker for broker in state.brokers}
    then = {broker.id: broker for broker in plan.brokers}
    for broker_id in sorted(_used_brokers(plan)):
        broker = now.get(broker_id)
        if broker is None or not broker.alive or broker.cordoned:
            trouble = "cordoned" if broker and broker.cordoned else "not alive"
            what = f"broker {broker_id} is to take replicas and is {trouble}"
            yield Finding("plan-stale", what, "bring it back, or plan again")
        elif broker_id in then and broker.rack != then[broker_id].rack:
            what = f"broker {broker_id} is in rack {broker.rack}, not {then[broker_id].rack}"
            yield Finding("plan-stale", what, "plan again")


def _used_brokers(plan: Plan) -> set[int]:
    used: set[int] = set()
    for topic in plan.topics:
        for step in steps_of(topic):
            match step:
                case CreateTopic(assignment=rows) | AddPartitions(added=rows):
                    used.update(broker for row in rows for broker in row)
                case _:
                    pass
    return used
