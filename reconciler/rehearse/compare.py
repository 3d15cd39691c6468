"""The state after a rehearsal, compared with the plan and with the unchanged topics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from reconciler.diff.fields import managed_overrides
from reconciler.model.cluster import ClusterState, TopicState, is_left_to_brokers, meets_row
from reconciler.model.outcomes import Outcome
from reconciler.model.plan import Plan, PlannedTopic, TopicImage
from reconciler.model.steps import steps_of
from reconciler.rehearse.setup import Setup


def compare_found(
    plan: Plan, setup: Setup, outcomes: Iterable[Outcome], found: ClusterState
) -> dict[str, tuple[str, ...]]:
    """Return the differences by topic; none if there are none.

    Topics that were done are compared with the plan, and the others with the setup; a failed topic
    has its outcome instead.
    """
    done = {outcome.topic for outcome in outcomes if outcome.kind.is_done}
    expected: dict[str, TopicImage | None] = dict(setup.topics)
    for topic in plan.topics:
        if steps_of(topic) and topic.name in done:
            expected[topic.name] = _expect(topic, setup.topics.get(topic.name))
        elif steps_of(topic):  # it may have stopped at any step
            expected.pop(topic.name, None)
    differences = {
        name: tuple(_compare(image, found.topics.get(name))) for name, image in expected.items()
    }
    return {name: differs for name, differs in sorted(differences.items()) if differs}


def _expect(topic: PlannedTopic, setup: TopicImage | None) -> TopicImage | None:
    """Return a topic as planned, with unplanned overrides as they were.

    A plan knows nothing of keys that its cluster does not offer.
    """
    if topic.after is None or topic.before is None or setup is None:
        return topic.after
    unspoken = {k: value for k, value in setup.config.items() if k not in topic.before.config}
    return replace(topic.after, config={**unspoken, **topic.after.config})


def _compare(expected: TopicImage | None, found: TopicState | None) -> Iterator[str]:
    if expected is None or found is None:
        if found is not None:
            yield "it is still there"
        elif expected is not None:
            yield "it is not there"
        return
    rows = len(found.assignment)
    if rows != len(expected.assignment):
        yield f"it has {rows:,} partitions and should have {len(expected.assignment):,}"
    pairs = enumerate(zip(expected.assignment, found.assignment, strict=False))
    for number, (planned, row) in pairs:
        if not meets_row(row, planned):
            if is_left_to_brokers((planned,)):
                yield f"partition {number} has {len(row)} replicas and should have {len(planned)}"
                continue
            yield f"partition {number} is on brokers {list(row)} and should be on {list(planned)}"
    overrides = managed_overrides(found)
    for key in sorted({*expected.config, *overrides}):
        wanted, value = expected.config.get(key), overrides.get(key)
        if wanted != value:
            shown = "not set" if value is None else value
            yield f"{key} is {shown} and should " + (f"be {wanted}" if wanted else "not be set")
