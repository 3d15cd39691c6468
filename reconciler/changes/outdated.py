"""Whether a branch still asks for what a plan does: a plan of an earlier commit may be approved.

Compared is what the plan acts on: its topics as they are resolved, the settings that decide where
replicas are placed, and the guards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import attrgetter

from reconciler.errors import Finding
from reconciler.model.cluster import TopicSpec
from reconciler.model.plan import Plan, PlannedTopic
from reconciler.model.steps import steps_of
from reconciler.policy.loosening import name_some
from reconciler.spec.base import list_loosened
from reconciler.spec.changes import Changes
from reconciler.spec.entry import ClusterEntry

_PLACING = ("capacity", "drain_brokers", "exclude_brokers", "placement", "strategy")
_MOVING = (*_PLACING, "internal_replication_factor")
_WAY_OUT = "run apply by hand on that branch, which plans what it asks for now"


def find_outdated(
    plan: Plan, entry: ClusterEntry, specs: Iterable[TopicSpec], branch: Changes
) -> tuple[Finding, ...]:
    """Return the points in which a branch does not ask for what a plan does; none if it does.

    `entry` and `specs` are those of the plan's own commit. `branch` holds what is at the tip of the
    branch, and `branch.everything` why that cannot be read.
    """
    found = [
        Finding("plan-outdated", f"{branch.since} {what}", _WAY_OUT)
        for what in _list_reasons(plan, entry, specs, branch)
    ]
    return tuple(found)


def _list_reasons(
    plan: Plan, entry: ClusterEntry, specs: Iterable[TopicSpec], branch: Changes
) -> Iterator[str]:
    if branch.everything:
        yield f"cannot be compared with this plan: {branch.everything}"
        return
    then = branch.then.get(plan.cluster)
    if then is None:
        yield f"has no cluster {plan.cluster}"
        return
    here = {spec.name: spec for spec in specs}
    names = [topic.name for topic in plan.topics if steps_of(topic)]
    # A drain moves topics that no spec names, here or there.
    other = [
        name
        for name in names
        if (branch.touch(here[name], entry) if name in here else name in then.specs)
    ]
    if other:
        yield f"asks for something else for {name_some(other)}"
    # A baseline shrinks often, and says nothing of topics whose specs are the same there.
    loosened = [
        f"{path} ({how})"
        for path, how, _ in list_loosened(then.entry, entry)
        if path != "policy.baseline"
    ]
    if loosened:
        yield f"has tighter guards than this plan: {name_some(loosened)}"
    if plan.moves is not None or any(map(_places, plan.topics)):
        keys: tuple[str, ...] = _PLACING if plan.moves is None else _MOVING
        if plan.moves is not None and plan.moves.balance is not None:
            keys = (*keys, "rebalance")  # other moves may go on whatever it asks for
        altered = [key for key in keys if branch.alter(entry, attrgetter(key))]
        if altered:
            yield f"has another {' and another '.join(altered)} for {plan.cluster}"


def _places(topic: PlannedTopic) -> bool:
    """Return whether a plan puts replicas of a topic on brokers."""
    return any(step.placed for step in steps_of(topic))
