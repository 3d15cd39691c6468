"""The figures of a plan and a state, and their samples."""

from __future__ import annotations

from shorthand import cluster, plan, spec, topic

from reconciler.metrics.catalogue import Sample
from reconciler.metrics.figures import ClusterFigures, list_samples, measure_plan, measure_state


def samples_of(figures: ClusterFigures) -> dict[tuple[str, ...], float]:
    """Return the value of each sample by its metric and labels."""
    return {
        (name.removeprefix("reconciler_"), *labels): value
        for name, value, labels in (list_samples(figures))
    }


def test_a_plan_gives_drift_skew_and_refusals() -> None:
    state = cluster(topic("1 1 2", "grown"), topic("1 2", "shrunk"), topic("3", "alone"))
    wished = [
        spec("new", partitions=1, replication_factor=1),
        spec("grown", partitions=4),
        spec("shrunk", partitions=1),
    ]
    found = measure_plan(plan(wished, state))
    assert found["drift"] == {"create": 1, "update": 1, "delete": 0, "refuse": 1}
    assert found["refusals"] == {"partitions-never-shrink": 1}
    assert found["unmanaged"] == 1
    assert found["skews"]["leaders", "before"] == 2
    assert found["skews"]["leaders", "after"] == 1


def test_a_healthy_cluster_has_a_zero_for_every_problem_and_every_action() -> None:
    state = cluster(topic("1 2 3", leaders=(1, 2, 3), in_sync=((1,), (2,), (3,))))
    found = measure_state(state) | measure_plan(plan([spec(partitions=3)], state))
    shown = samples_of(ClusterFigures("prod", read_at=5.0, planned_at=6.0, **found))
    assert shown["healthy", "prod"] == 1
    assert shown["read_last_success_timestamp_seconds", "prod"] == 5
    assert shown["plan_last_success_timestamp_seconds", "prod"] == 6
    assert shown["health_problems", "prod", "offline"] == 0
    assert shown["drifted_topics", "prod", "refuse"] == 0
    assert shown["partitions", "prod"] == 3


def test_a_cluster_that_was_not_read_is_not_healthy_and_has_no_other_figures() -> None:
    failed = ClusterFigures("prod", planned=False, failures={"read": "connect-refused"})
    assert set(list_samples(failed)) == {
        Sample("reconciler_read_success", 0, ("prod",)),
        Sample("reconciler_plan_success", 0, ("prod",)),
        Sample("reconciler_healthy", 0, ("prod",)),
        Sample("reconciler_failure", 1, ("prod", "read", "connect-refused")),
    }


def test_internal_topics_count_in_health_only() -> None:
    offsets = topic("1,2", "__consumer_offsets", internal=True, leaders=(-1,), in_sync=((),))
    found = measure_state(cluster(offsets))
    assert (found["topics"], found["partitions"]) == (0, 0)
    assert found["problems"]["offline"] == 1
