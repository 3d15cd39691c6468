"""Requests and answers that get lost on the way, before real brokers: done all the same, and once.

The network loses what it is told to; the brokers behind it are real.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from proxy import (
    ALTER_CONFIGS,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    FailingNetwork,
    Loss,
    failing_network,
)
from shorthand import spec
from workbench import Workbench, assert_landed, outcomes, texts

from reconciler.kafka import writer
from reconciler.model.plan import Plan
from reconciler.run.events import StepAnswered
from reconciler.sandbox.cluster import Cluster

LOSSES = (Loss.SILENT_BEFORE, Loss.SILENT_AFTER, Loss.CUT_BEFORE, Loss.CUT_AFTER)
STEPS = {"create": CREATE_TOPICS, "expand": CREATE_PARTITIONS, "configure": ALTER_CONFIGS}


@pytest.fixture
def network(cluster3: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[FailingNetwork]:
    """A network before the shared brokers, and no patience with it."""
    monkeypatch.setattr(writer, "REQUEST_S", 1.0)
    with failing_network(cluster3) as network:
        yield network


@pytest.fixture
def bench(cluster3: Cluster, network: FailingNetwork) -> Workbench:
    return Workbench(cluster3, network.bootstrap_servers)


def plan_three(bench: Workbench, prefix: str) -> Plan:
    """Plan a creation, an expansion and a config."""
    counts = {"partitions": 2, "replication_factor": 2}
    bench.bring(spec(f"{prefix}expand", **counts), spec(f"{prefix}configure", **counts))
    return bench.plan(
        spec(f"{prefix}create", **counts),
        spec(f"{prefix}expand", partitions=4, replication_factor=2),
        spec(f"{prefix}configure", **counts, config={"retention.ms": "604800001"}),
    )


# A loss of each kind in the gate: the fourth one is that of a deletion, in test_deletion.py.
GATE = {
    ("create", Loss.SILENT_AFTER),
    ("expand", Loss.CUT_BEFORE),
    ("configure", Loss.CUT_AFTER),
}


@pytest.mark.parametrize(
    ("step", "loss"),
    [
        pytest.param(
            step,
            loss,
            id=f"{step}-{loss.name.lower()}",
            marks=() if (step, loss) in GATE else pytest.mark.slow,
        )
        for step in STEPS
        for loss in LOSSES
    ],
)
def test_a_lost_step_is_done_in_the_end(
    bench: Workbench, network: FailingNetwork, topic_prefix: str, step: str, loss: Loss
) -> None:
    plan = plan_three(bench, topic_prefix)
    fault = network.lose(STEPS[step], loss)
    answers: list[StepAnswered] = []
    applied = bench.apply(plan, observe=answers.append)
    assert fault.struck.is_set()
    assert next(a.kind for a in answers if a.phase == step) == "lost"
    assert outcomes(applied) == {topic.name: "done" for topic in plan.topics}
    assert_landed(bench, plan)


@pytest.mark.parametrize(
    "loss",
    [
        pytest.param(Loss.CUT_BEFORE, id="cut_before"),
        pytest.param(Loss.CUT_AFTER, id="cut_after", marks=pytest.mark.slow),
    ],
)
def test_a_lost_validation_is_asked_again(
    bench: Workbench, network: FailingNetwork, topic_prefix: str, loss: Loss
) -> None:
    plan = plan_three(bench, topic_prefix)
    fault = network.lose(CREATE_TOPICS, loss, skip=0)
    applied = bench.apply(plan)
    assert fault.struck.is_set()
    assert outcomes(applied) == {topic.name: "done" for topic in plan.topics}


def test_a_step_that_is_lost_again_and_again_is_unknown_alone_and_is_finished_later(
    bench: Workbench,
    network: FailingNetwork,
    topic_prefix: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("reconciler.apply.engine.PAUSES_S", (0.1,))
    plan = plan_three(bench, topic_prefix)
    create, expand, configure = (f"{topic_prefix}{step}" for step in STEPS)
    network.lose(CREATE_PARTITIONS, Loss.CUT_BEFORE, times=2)
    applied = bench.apply(plan)
    assert outcomes(applied) == {create: "done", expand: "unknown", configure: "done"}
    assert texts(applied)[expand].startswith("no answer: ")
    assert "run the same command again" in texts(applied)[expand]
    assert not applied.succeeded
    again = bench.apply(plan)
    assert outcomes(again) == {create: "already done", expand: "done", configure: "already done"}
    assert_landed(bench, plan)


def test_a_step_whose_every_answer_is_lost_is_seen_to_be_done(
    bench: Workbench,
    network: FailingNetwork,
    topic_prefix: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("reconciler.apply.engine.PAUSES_S", (0.1,))
    plan = plan_three(bench, topic_prefix)
    network.lose(CREATE_TOPICS, Loss.CUT_AFTER, times=9)
    assert set(outcomes(bench.apply(plan)).values()) == {"done"}
    assert_landed(bench, plan)


def test_a_cluster_that_is_lost_half_way_is_reported_on(
    bench: Workbench,
    network: FailingNetwork,
    topic_prefix: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The network ends for good after the creation: what is known is said, the rest is not."""
    monkeypatch.setattr("reconciler.apply.engine.PAUSES_S", (0.1,))
    monkeypatch.setattr("reconciler.kafka.connection.PAUSES_S", (0.1,))
    plan = plan_three(bench, topic_prefix)
    create, expand, configure = (f"{topic_prefix}{step}" for step in STEPS)

    def cut_off(answered: StepAnswered) -> None:
        if answered.phase == "create":
            network.close()

    applied = bench.apply(plan, observe=cut_off)
    assert outcomes(applied) == {create: "done", expand: "unknown", configure: "not attempted"}
    said = texts(applied)
    assert said[create] == "accepted; not every broker was seen to show it"
    assert said[configure].startswith("stopped, since ")
    assert said[configure].endswith(", before its turn")
    assert not applied.succeeded


@pytest.mark.slow
def test_a_cluster_that_is_lost_before_every_broker_shows_the_result_is_no_success(
    bench: Workbench,
    network: FailingNetwork,
    topic_prefix: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("reconciler.kafka.connection.PAUSES_S", (0.1,))
    plan = bench.plan(spec(f"{topic_prefix}create", partitions=2, replication_factor=2))
    applied = bench.apply(plan, observe=lambda _: network.close() if _.phase == "create" else None)
    assert outcomes(applied) == {f"{topic_prefix}create": "done"}
    assert applied.cause is not None
    assert not applied.succeeded
