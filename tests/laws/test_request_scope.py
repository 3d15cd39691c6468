"""Laws of requests: each plans its own changes, and nothing that differs is lost between them."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import event, given
from hypothesis import strategies as st
from shorthand import HERE
from worlds import World, worlds

from reconciler.changes.plan import plan_cluster
from reconciler.model.plan import Plan
from reconciler.model.steps import steps_of
from reconciler.planfile.codec import fingerprint_plan
from reconciler.spec.changes import Changes, ClusterThen
from reconciler.spec.entry import ClusterEntry


def plan(world: World, touched: frozenset[str] | None) -> Plan:
    """Plan the estate of a world: all of it, or as a request that changed some topics."""
    entry = ClusterEntry(
        "prod", HERE, exclude_brokers=world.excluded, guards=world.guards, kafka_version="4.1"
    )
    changes = None
    if touched is not None:
        specs = {spec.name: spec for spec in world.specs if spec.name not in touched}
        changes = Changes("main", "1a2b3c4", {"prod": ClusterThen(entry, specs)})
    return plan_cluster(entry, world.specs, world.state, changes=changes)


def concerned(plan: Plan) -> set[str]:
    """Return the topics that a plan changes or refuses."""
    return {topic.name for topic in plan.topics if steps_of(topic) or topic.refusals}


@st.composite
def requests(draw: st.DrawFn) -> tuple[World, frozenset[str]]:
    """Draw a world, and the topics that a request changed."""
    world = draw(worlds())
    names = st.sampled_from(sorted(spec.name for spec in world.specs))
    return world, draw(st.frozensets(names))


@given(requests())
def test_every_difference_is_in_the_plan_or_listed_as_drift(
    request: tuple[World, frozenset[str]],
) -> None:
    world, touched = request
    own, whole = plan(world, touched), plan(world, None)
    drift = {topic.name for topic in own.existing_drift}
    event(f"{len(drift)} topics with existing drift")
    assert concerned(own) <= touched
    assert drift.isdisjoint(touched)
    assert concerned(own) | drift == concerned(whole)
    assert whole.existing_drift == ()


@given(requests(), st.data())
def test_other_configs_on_other_topics_change_no_fingerprint(
    request: tuple[World, frozenset[str]], data: st.DataObject
) -> None:
    """Between a request and its merge, drift comes and goes."""
    world, touched = request
    topics = dict(world.state.topics)
    for name in sorted(topics.keys() - touched):
        value = data.draw(st.sampled_from(("1", "2")))
        config = {**topics[name].config, "flush.ms": value}
        topics[name] = replace(topics[name], config=config)
    later = replace(world, state=replace(world.state, topics=topics))
    assert fingerprint_plan(plan(later, touched)) == fingerprint_plan(plan(world, touched))
