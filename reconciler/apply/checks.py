"""Preconditions of a plan before it changes a cluster, and before each deletion."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from reconciler.apply.convergence import Remaining, compare_views
from reconciler.changes.deletions import object_to_use
from reconciler.diff.moving import object_to_min_insync
from reconciler.errors import Finding
from reconciler.model.cluster import EMPTY, Broker, ClusterState, TopicUsage
from reconciler.model.health import read_min_insync
from reconciler.model.plan import Plan, PlannedTopic
from reconciler.model.steps import Step, Verb, brokers_of, steps_of
from reconciler.run.checks import say_rack
from reconciler.run.ports import Clock, ClusterReader
from reconciler.spec.configs import choose_catalogue
from reconciler.units import count, describe_value

NAMED = 3


def find_moved(
    plan: Plan,
    state: ClusterState,
    ids: Mapping[str, str],
    found: Mapping[str, Remaining],
    deletions: DeletionCheck,
    unsynced: Mapping[str, Finding],
) -> Iterator[Finding]:
    """Name everything that changed: topics, their usage, replicas in sync, defaults, brokers."""
    # Brokers count for what is left to do only: a plan that is done does not become stale if one of
    # its brokers dies.
    yield from find_recreated(plan, ids)
    for remaining in found.values():
        yield from remaining.moved
    for findings in deletions.in_use.values():
        yield from findings
    for name, objection in unsynced.items():
        yield replace(objection, rule="plan-stale", what=f"{name}: {objection.what}")
    left = {
        name for name, each in found.items() if any(s.verb is Verb.CONFIGURE for s in each.steps)
    }
    yield from find_moved_defaults(plan, left, state.config_defaults)
    steps = [step for remaining in found.values() for step in remaining.steps]
    yield from find_moved_brokers(steps, plan.brokers, state.brokers)


def find_recreated(plan: Plan, ids: Mapping[str, str]) -> Iterator[Finding]:
    """Name the topics whose id differs from the plan; an unknown id does not count."""
    for topic in plan.topics:
        then = topic.before.topic_id if topic.before else None
        if then and steps_of(topic) and ids.get(topic.name, then) != then:
            what = f"{topic.name}: it was deleted and created again since the plan was made"
            yield Finding("plan-stale", what, "plan again", topic.location)


def find_moved_defaults(
    plan: Plan, left: Collection[str], defaults: Mapping[str, str]
) -> Iterator[Finding]:
    """Name the defaults that changed, of those that a plan makes explicit on topics that are left.

    The plan says that such a step changes nothing, so it was not asked about its risk. A default on
    which the brokers differ is unknown, and counts as changed.
    """
    catalogue = choose_catalogue()  # a key has the same type in every release that has it
    moved: dict[tuple[str, str], list[PlannedTopic]] = defaultdict(list)
    for topic in plan.topics:
        wanted = topic.after.config if topic.after and topic.name in left else EMPTY
        for key in wanted.keys() & set(topic.explicit):
            if not catalogue.same(key, wanted[key], defaults.get(key)):
                moved[key, wanted[key]].append(topic)
    for (key, then), topics in sorted(moved.items(), key=lambda item: item[0]):
        now = "brokers differ in it"
        if key in defaults:
            now = f"it is {describe_value(key, defaults[key])}"
        what = (
            f"{_name_some([topic.name for topic in topics])}: the brokers' default of {key} was "
            f"{describe_value(key, then)} when the plan was made, and {now} now"
        )
        yield Finding("plan-stale", what, "plan again", topics[0].location)


def find_moved_brokers(
    steps: Iterable[Step], then: Iterable[Broker], now: Iterable[Broker]
) -> Iterator[Finding]:
    """Name the brokers that should get replicas but cannot, or not in the planned rack."""
    living = {broker.id: broker for broker in now}
    planned = {broker.id: broker for broker in then}
    takers: dict[int, list[str]] = defaultdict(list)
    for step in steps:
        for broker_id in brokers_of(step):
            takers[broker_id].append(step.topic)
    for broker_id, topics in sorted(takers.items()):
        broker = living.get(broker_id)
        role = f"broker {broker_id} is to take replicas of {_name_some(topics)}"
        # Kafka accepts a dead broker in a manual assignment if another replica is alive. The topic
        # would start with fewer copies than the plan promised.
        if broker is None or not broker.alive or broker.cordoned:
            trouble = "cordoned" if broker and broker.cordoned else "not alive"
            yield Finding("plan-stale", f"{role} and is {trouble}", "bring it back, or plan again")
        elif broker_id in planned and broker.rack != planned[broker_id].rack:
            what = f"{role} and is {say_rack(broker.rack)}, not {say_rack(planned[broker_id].rack)}"
            yield Finding("plan-stale", what, "plan again")


def _name_some(topics: Collection[str]) -> str:
    more = f" and {len(topics) - NAMED} more" if len(topics) > NAMED else ""
    return ", ".join(sorted(topics)[:NAMED]) + more


def find_unsynced(
    reader: ClusterReader, topics: Mapping[str, PlannedTopic], defaults: Mapping[str, str]
) -> dict[str, Finding]:
    """Find the topics whose min.insync.replicas must not rise now, since replicas are out of sync.

    Every broker is asked, and the worst view counts: one that was cut off may show an older state.
    In: the brokers' defaults. Returns: an objection by topic, without its name.
    """
    raised = {}
    for name, topic in topics.items():
        if topic.before is not None and topic.after is not None:
            images = (topic.before, topic.after)
            now, wanted = (read_min_insync(image.config, defaults) for image in images)
            if now != wanted:
                raised[name] = (now, wanted)
    views = reader.read_views(raised).values() if raised else ()
    found = {}
    for name, values in raised.items():
        shown = (view[name] for view in views if name in view)
        objections = (each for live in shown for each in object_to_min_insync(live, *values))
        if (objection := next(objections, None)) is not None:
            found[name] = replace(objection, where=topics[name].location)
    return found


@dataclass(slots=True)
class DeletionCheck:
    """The state of topics since their deletion was planned: in use, already deleted, or neither."""

    in_use: dict[str, list[Finding]] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)


def recheck_deletions(
    reader: ClusterReader,
    clock: Clock,
    topics: Mapping[str, PlannedTopic],
    pauses_s: Sequence[float],
) -> DeletionCheck:
    """Find the topics that must not be deleted any more, and those that are deleted already.

    A topic that only some brokers still show is being deleted; the check waits for that, and counts
    the topic as used if it stays. Errors: ClusterError if no one answers.
    """
    found = DeletionCheck()
    waiting = dict(topics)
    for pause in (*pauses_s, None):
        usage = reader.read_usage(waiting) if waiting else {}
        for name in usage:
            if objections := list(list_objections(waiting.pop(name), usage[name])):
                found.in_use[name] = objections
        gone = {
            name for name, left in compare_views(reader, clock, waiting).items() if left.is_done
        }
        found.gone |= gone
        waiting = {name: topic for name, topic in waiting.items() if name not in gone}
        if not waiting or pause is None:
            break
        clock.sleep(pause)
    for name, topic in waiting.items():
        found.in_use[name] = [_stale(topic, "some brokers show it, others do not know it")]
    return found


def list_objections(topic: PlannedTopic, usage: TopicUsage) -> Iterator[Finding]:
    """Return an objection if a topic is no longer as unused as when its deletion was planned."""
    deletion = topic.deletion
    if deletion is None:
        return
    # End offsets and not timestamps: producers choose those, and may write old ones.
    written = not usage.unseen and usage.ends != deletion.ends
    if written:
        writes = _describe_writes(deletion.ends, usage.ends)
        yield _stale(topic, f"{writes} since the plan was made")
    for objection in object_to_use(usage, deletion.unused_for_ms):
        if not (written and objection.rule == "deletion-written"):
            yield _stale(topic, objection.what, objection.way_out)


def _describe_writes(before: Sequence[int], after: Sequence[int]) -> str:
    """Return which partitions were written to, or the number of them if that changed.

    How much was written is unknown: transaction markers advance an end offset as well.
    """
    if len(before) != len(after):
        return f"it now has {count(len(after), 'partition')}, not {len(before)},"
    moved = [n for n, (then, now) in enumerate(zip(before, after, strict=True)) if then != now]
    noun = "partition" if len(moved) == 1 else "partitions"
    listed = ", ".join(map(str, moved[:3])) + (f" and {len(moved) - 3} more" * (len(moved) > 3))
    return f"it was written to ({noun} {listed})"


def _stale(topic: PlannedTopic, what: str, way_out: str = "plan again") -> Finding:
    return Finding("plan-stale", f"{topic.name}: {what}", way_out, topic.location)
