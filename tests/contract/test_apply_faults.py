"""Apply while nodes freeze and die, and where one request cannot take it all."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from breakable import freeze_node, kill_node, thaw_node
from lab import wait_for
from proxy import CREATE_PARTITIONS, Loss, failing_network
from shorthand import spec
from workbench import Workbench, assert_landed, outcomes, texts

from reconciler.kafka import writer
from reconciler.model.cluster import TopicSpec
from reconciler.run.ending import end_run
from reconciler.run.events import StepAnswered
from reconciler.sandbox.cluster import Cluster, start_cluster

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

FREEZE_S = 8
CONTROLLER = 3000


@pytest.fixture(scope="module")
def isolated() -> Iterator[Cluster]:
    """Start three brokers and a controller, a process each."""
    with start_cluster(brokers=3, racks=3, isolate=True) as cluster:
        yield cluster


def many(prefix: str, count: int, **wished: int) -> list[TopicSpec]:
    return [spec(f"{prefix}{number}", **wished) for number in range(count)]


def once(phase: str, act: Callable[[], None]) -> Callable[[StepAnswered], None]:
    """Act when the first answer of a phase is there."""
    done = threading.Event()

    def observe(answered: StepAnswered) -> None:
        if answered.phase == phase and not done.is_set():
            done.set()
            act()

    return observe


@contextmanager
def thawing(cluster: Cluster, node: int) -> Iterator[Callable[[], None]]:
    """Give a way to freeze a node for a while."""
    timer = threading.Timer(FREEZE_S, thaw_node, (cluster, node))

    def freeze() -> None:
        freeze_node(cluster, node)
        timer.start()

    try:
        yield freeze
    finally:
        timer.cancel()
        thaw_node(cluster, node)


@pytest.mark.parametrize("patience_s", [2.0, 90.0])
def test_a_controller_that_freezes_and_thaws_delays_the_work(
    isolated: Cluster, topic_prefix: str, monkeypatch: pytest.MonkeyPatch, patience_s: float
) -> None:
    """With little patience, requests are given up and repeated; they are done all the same."""
    monkeypatch.setattr(writer, "REQUEST_S", patience_s)
    bench = Workbench(isolated)
    bench.bring(*many(f"{topic_prefix}old", 5, partitions=1, replication_factor=2))
    plan = bench.plan(
        *many(f"{topic_prefix}new", 20, partitions=2, replication_factor=2),
        *many(f"{topic_prefix}old", 5, partitions=3, replication_factor=2),
    )
    lost: list[StepAnswered] = []
    with thawing(isolated, CONTROLLER) as freeze:
        begin = once("validate", freeze)

        def observe(answered: StepAnswered) -> None:
            begin(answered)
            if answered.kind == "lost":
                lost.append(answered)

        applied = bench.apply(plan, observe=observe)
    assert set(outcomes(applied).values()) == {"done"}, texts(applied)
    assert bool(lost) is (patience_s < FREEZE_S)
    assert_landed(bench, plan)


def test_what_a_frozen_controller_does_after_the_thaw_was_reported_as_unknown(
    isolated: Cluster, topic_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run gives up while the controller is frozen; the controller carries the request out."""
    monkeypatch.setattr(writer, "REQUEST_S", 1.0)
    monkeypatch.setattr("reconciler.apply.engine.PAUSES_S", (0.1,))
    bench = Workbench(isolated)
    names = [f"{topic_prefix}new", f"{topic_prefix}old"]
    bench.bring(spec(names[1], partitions=1, replication_factor=2))
    plan = bench.plan(
        spec(names[0], partitions=2, replication_factor=2),
        spec(names[1], partitions=3, replication_factor=2),
    )
    left = len(plan.topics)

    def freeze(answered: StepAnswered) -> None:
        """Freeze it once the brokers were asked about everything."""
        nonlocal left
        left -= answered.phase == "validate"
        if not left:
            freeze_node(isolated, CONTROLLER)

    try:
        applied = bench.apply(plan, observe=freeze)
        assert outcomes(applied) == dict.fromkeys(names, "unknown"), texts(applied)
        assert end_run(applied).exit_code == 75
        assert len(bench.topics(*names)) == 1
    finally:
        thaw_node(isolated, CONTROLLER)
    landed = {topic.name: topic.after.assignment for topic in plan.topics if topic.after}

    def is_shown() -> bool:
        """Return whether every broker shows both topics: the next reading may be of any."""
        views = bench.reader.read_views(names).values()
        shown = [{name: topic.assignment for name, topic in view.items()} for view in views]
        return all(view == landed for view in shown)

    wait_for(is_shown)
    assert_landed(bench, plan)
    wait_for(lambda: set(outcomes(bench.apply(plan)).values()) == {"already done"})


def test_a_broker_that_dies_half_way_holds_nothing_up(isolated: Cluster, topic_prefix: str) -> None:
    bench = Workbench(isolated)
    bench.bring(*many(f"{topic_prefix}old", 20, partitions=1, replication_factor=2))
    plan = bench.plan(
        *many(f"{topic_prefix}new", 40, partitions=2, replication_factor=2),
        *many(f"{topic_prefix}old", 20, partitions=4, replication_factor=2),
    )
    try:
        kill = once("create", lambda: kill_node(isolated, 2))
        applied = bench.apply(plan, observe=kill, patience_s=60.0)
        assert set(outcomes(applied).values()) == {"done"}
        assert_landed(bench, plan)
    finally:
        isolated.start_broker(2)


def test_a_broker_that_freezes_half_way_holds_nothing_up(
    isolated: Cluster, topic_prefix: str
) -> None:
    bench = Workbench(isolated)
    plan = bench.plan(*many(topic_prefix, 40, partitions=2, replication_factor=2))
    try:
        freeze = once("validate", lambda: freeze_node(isolated, 3))
        applied = bench.apply(plan, observe=freeze, patience_s=60.0)
        assert set(outcomes(applied).values()) == {"done"}, texts(applied)
    finally:
        thaw_node(isolated, 3)
    assert_landed(bench, plan)


@pytest.mark.parametrize("version", ["4.1.2", "4.4.0"])
def test_a_change_larger_than_one_request_is_applied_entirely(version: str) -> None:
    """15,000 partitions more, 10,000 of them in one topic, and a new topic of 9,500.

    One answer of the many is lost. Before Kafka 4.4 a CreatePartitions over the controller's limit
    was committed in part, and answered with an error.
    """
    with start_cluster(brokers=3, racks=3, isolate=True, kafka_version=version) as cluster:
        straight = Workbench(cluster)
        old = many("old", 5, partitions=1, replication_factor=1)
        straight.bring(*old, spec("large", partitions=1, replication_factor=1))
        with failing_network(cluster) as network:
            bench = Workbench(cluster, network.bootstrap_servers)
            plan = bench.plan(
                *many("old", 5, partitions=1_001, replication_factor=1),
                spec("large", partitions=10_001, replication_factor=1),
                spec("new", partitions=9_500, replication_factor=1, config={"flush.ms": "7"}),
            )
            fault = network.lose(CREATE_PARTITIONS, Loss.CUT_AFTER, skip=4)
            steps: list[StepAnswered] = []
            applied = bench.apply(plan, observe=steps.append, patience_s=300.0)
        assert fault.struck.is_set()
        assert set(outcomes(applied).values()) == {"done"}, texts(applied)
        refused = Counter((s.phase, s.text) for s in steps if s.kind == "refused")
        assert not [text for _, text in refused if "Excessively" in text or "UNKNOWN" in text]
        assert_landed(straight, plan)
        again = straight.apply(plan)
        assert set(outcomes(again).values()) == {"already done"}
