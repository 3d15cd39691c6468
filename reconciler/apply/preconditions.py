"""What must still hold of the cluster as a whole before a plan may touch it."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from reconciler.errors import Finding
from reconciler.model import AddPartitions, CreateTopic
from reconciler.plan import steps_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from reconciler.apply.deletions import SecondLook
    from reconciler.apply.remaining import Remaining
    from reconciler.model import Broker, ClusterState, Plan, Step

NAMED = 3


def find_other_cluster(plan: Plan, state: ClusterState) -> Iterator[Finding]:
    """Say so where the plan was made for another cluster: nothing else matters then."""
    if plan.cluster_id and state.cluster_id != plan.cluster_id:
        what = f"the plan is for cluster {plan.cluster_id}, this one is {state.cluster_id}"
        way_out = f"apply it to {plan.cluster}, or plan for this cluster"
        yield Finding("plan-cluster", what, way_out)


def find_moved(
    plan: Plan,
    state: ClusterState,
    ids: Mapping[str, str],
    found: Mapping[str, Remaining],
    second: SecondLook,
) -> Iterator[Finding]:
    """Name everything that moved: topics, what is to be deleted of them, and brokers."""
    yield from find_recreated(plan, ids)
    for remaining in found.values():
        yield from remaining.moved
    for findings in second.used.values():
        yield from findings
    steps = [step for remaining in found.values() for step in remaining.steps]
    yield from find_moved_brokers(steps, plan.brokers, state.brokers)


def find_recreated(plan: Plan, ids: Mapping[str, str]) -> Iterator[Finding]:
    """Name the topics that are others than those planned on; an id that is not told is no sign."""
    for topic in plan.topics:
        then = topic.before.topic_id if topic.before else None
        if then and steps_of(topic) and ids.get(topic.name, then) != then:
            what = f"{topic.name}: it was deleted and created again since the plan was made"
            yield Finding("plan-stale", what, "plan again", topic.location)


def find_moved_brokers(
    steps: Iterable[Step], then: Iterable[Broker], now: Iterable[Broker]
) -> Iterator[Finding]:
    """Name the brokers that are to take replicas and cannot, or not where they were planned."""
    living = {broker.id: broker for broker in now}
    planned = {broker.id: broker for broker in then}
    for broker_id, topics in sorted(_list_takers(steps).items()):
        broker = living.get(broker_id)
        role = f"broker {broker_id} is to take replicas of {_list_some(topics)}"
        if broker is None or not broker.alive or broker.cordoned:
            trouble = "cordoned" if broker and broker.cordoned else "not alive"
            yield Finding("plan-stale", f"{role} and is {trouble}", "bring it back, or plan again")
        elif broker_id in planned and broker.rack != planned[broker_id].rack:
            what = f"{role} and is in rack {broker.rack}, not {planned[broker_id].rack}"
            yield Finding("plan-stale", what, "plan again")


def _list_takers(steps: Iterable[Step]) -> Mapping[int, list[str]]:
    """Return the topics of which each broker is to take replicas."""
    takers: dict[int, list[str]] = defaultdict(list)
    for step in steps:
        match step:
            case CreateTopic(topic=topic, assignment=rows) | AddPartitions(topic=topic, added=rows):
                for broker in {broker for row in rows for broker in row}:
                    takers[broker].append(topic)
            case _:
                pass
    return takers


def _list_some(topics: Sequence[str]) -> str:
    """List topics by name: a few, and how many more."""
    named = sorted(topics)[:NAMED]
    more = len(topics) - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "")
