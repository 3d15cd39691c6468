"""The steps of a planned topic, derived from its images: what renderings show and apply does."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from reconciler.model import AddPartitions, AlterConfig, CreateTopic, DeleteTopic

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconciler.model import Plan, PlannedTopic, Step


def steps_of(topic: PlannedTopic) -> tuple[Step, ...]:
    """Return what leads from `before` to `after`, in the order it is done; none if refused."""
    before, after = topic.before, topic.after
    if topic.refusals or (before is None and after is None):
        return ()
    if after is None:
        return _delete(topic)
    if before is None:
        return (CreateTopic(topic.name, after.assignment, after.config),)
    steps: list[Step] = []
    first = len(before.assignment)
    if len(after.assignment) > first:
        steps.append(AddPartitions(topic.name, first, after.assignment[first:]))
    change = alter_config(topic.name, before.config, after.config)
    if change.set or change.unset:
        steps.append(change)
    return tuple(steps)


def count_steps(plan: Plan) -> int:
    """Count the steps of a plan, as its closing line does by kind."""
    return sum(len(steps_of(topic)) for topic in plan.topics)


def _delete(topic: PlannedTopic) -> tuple[Step, ...]:
    """Return the deletion, of a topic whose id is known and that was seen to be unused only."""
    topic_id = topic.before.topic_id if topic.before else None
    return (DeleteTopic(topic.name, topic_id),) if topic_id and topic.deletion else ()


def is_deletion(topic: PlannedTopic) -> bool:
    """Tell whether a topic is to be deleted."""
    return any(isinstance(step, DeleteTopic) for step in steps_of(topic))


def brokers_of(step: Step) -> frozenset[int]:
    """Return the brokers that a step puts replicas on."""
    match step:
        case CreateTopic(assignment=rows) | AddPartitions(added=rows):
            return frozenset(broker for row in rows for broker in row)
        case AlterConfig() | DeleteTopic():
            return frozenset()
        case _:
            assert_never(step)


def alter_config(topic: str, before: Mapping[str, str], after: Mapping[str, str]) -> AlterConfig:
    """Return what to set and unset so that `before` becomes `after`."""
    wanted = {key: value for key, value in sorted(after.items()) if before.get(key) != value}
    return AlterConfig(topic, wanted, frozenset(set(before) - set(after)))
