"""Plans for the throwaway cluster: the one that sets it up, and the one that is rehearsed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from reconciler.errors import Location
from reconciler.model.plan import Plan, PlannedTopic, TopicImage
from reconciler.rehearse.setup import Setup

NOWHERE = Location("the setup", 1)


def plan_setup(setup: Setup, cluster_id: str) -> Plan:
    """Return the plan that creates the topics of a setup, each as it is."""
    topics = [
        PlannedTopic(name, NOWHERE, None, TopicImage(None, image.assignment, image.config))
        for name, image in sorted(setup.topics.items())
    ]
    return Plan("rehearsal", cluster_id, setup.brokers, tuple(topics))


def bind_plan(
    plan: Plan, cluster_id: str, ids: Mapping[str, str], left_out: Collection[str] = ()
) -> Plan:
    """Bind a plan to the throwaway cluster: its id, and those of the topics there.

    Brokers, replicas and overrides stay: they are the same on both. Topics are empty there, also
    those to delete. Topics that are left out do not exist, so the plan cannot change them; its
    refusals are still reported.
    """
    topics = []
    for topic in plan.topics:
        if topic.name in left_out and not topic.refusals:
            continue
        topic_id = ids.get(topic.name)
        deletion = topic.deletion
        if deletion is not None and topic.before is not None:
            # Apply compares end offsets with those of the plan. Here nothing was ever written.
            ends = (0,) * len(topic.before.assignment)
            deletion = replace(deletion, ends=ends, records=0, newest_ms=None)
        before, after = _identify(topic.before, topic_id), _identify(topic.after, topic_id)
        # The defaults of the throwaway cluster may be others, and no record rests on them.
        bound = replace(topic, before=before, after=after, deletion=deletion, explicit=())
        topics.append(bound)
    return replace(plan, cluster_id=cluster_id, topics=tuple(topics))


def _identify(image: TopicImage | None, topic_id: str | None) -> TopicImage | None:
    return None if image is None else replace(image, topic_id=topic_id)
