"""Plans for the throwaway cluster: the one that sets it up, and the one that is rehearsed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reconciler.errors import Location
from reconciler.model import Plan, PlannedTopic, TopicImage

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from reconciler.model import Deletion
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

    All else stays: brokers, replicas and overrides are the same on both; but topics are empty
    there, also those that are to be deleted. Topics that are left out do not exist, so the plan
    cannot change them; its refusals are still reported.
    """
    topics = [
        replace(
            topic,
            before=_identify(topic.before, ids.get(topic.name)),
            after=_identify(topic.after, ids.get(topic.name)),
            deletion=_empty(topic),
        )
        for topic in plan.topics
        if topic.name not in left_out or topic.refusals
    ]
    return replace(plan, cluster_id=cluster_id, topics=tuple(topics))


def _empty(topic: PlannedTopic) -> Deletion | None:
    """Return the usage behind a deletion of a topic without any writes."""
    if topic.deletion is None or topic.before is None:
        return topic.deletion
    ends = (0,) * len(topic.before.assignment)
    return replace(topic.deletion, ends=ends, records=0, newest_ms=None)


def _identify(image: TopicImage | None, topic_id: str | None) -> TopicImage | None:
    return None if image is None else replace(image, topic_id=topic_id)
