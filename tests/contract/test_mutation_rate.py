"""Runs under a quota for controller mutations (KIP-599), which counts partitions that come or go.

The controller accepts too many creations, and asks to wait afterwards. It refuses deletions.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lab import limit_account, wait_for
from shorthand import spec
from workbench import Workbench, outcomes, texts

from reconciler.apply import engine
from reconciler.diff.guards import list_refusals
from reconciler.model.cluster import Guards
from reconciler.model.plan import Plan
from reconciler.model.steps import CreateTopic
from reconciler.run.events import StepAnswered, StepsWait
from reconciler.sandbox.cluster import Cluster, start_cluster

pytestmark = pytest.mark.cluster

RATE = 4.0  # partitions per second; the controller lets 11 s worth of them through at once
NAMES = ("a", "b", "c")
PARTITIONS = 24
GUARDS = Guards(max_deletes=9, unused_for_ms=0)
PATIENCE_S = 300


@pytest.fixture(scope="module")
def limited() -> Iterator[Cluster]:
    """Start a broker that limits the client id of reconciler."""
    with start_cluster(brokers=1) as cluster:
        limit_account(cluster, RATE, client_id="reconciler")
        yield cluster


def await_deletable(bench: Workbench, *names: str) -> Plan:
    """Plan deletions once the broker has made the logs, and so shows that nobody wrote."""
    specs = [spec(name, absent=True) for name in names]
    plans: list[Plan] = []

    def plan() -> bool:
        plans.append(bench.plan(*specs, guards=GUARDS))
        return not list_refusals(plans[-1])

    wait_for(plan, PATIENCE_S)
    return plans[-1]


def exhaust(bench: Workbench, prefix: str) -> None:
    """Create partitions until the brokers ask to wait for a while."""
    for number in range(20):
        step = CreateTopic(f"{prefix}filler{number}", ((1,),) * 60, {})
        if bench.writer.send([step])[step.topic].wait_s > 10:
            return
    pytest.fail("no quota was exceeded")


class Watched:
    """What a run says of its waits: the phases that waited, and the longest wait of each."""

    def __init__(self) -> None:
        self.waits: dict[str, float] = {}

    def observe(self, event: StepAnswered | StepsWait) -> None:
        if isinstance(event, StepsWait):
            longest = max(self.waits.get(event.phase, 0.0), event.seconds)
            self.waits[event.phase] = longest


@pytest.mark.slow
def test_every_kind_of_step_waits_as_long_as_the_brokers_ask(
    limited: Cluster, topic_prefix: str
) -> None:
    bench = Workbench(limited)
    names = [topic_prefix + name for name in NAMES]
    done = dict.fromkeys(names, "done")
    row = ((1,),)

    created = Watched()
    wished = [spec(name, assignment=row * PARTITIONS) for name in names]
    applied = bench.apply(bench.plan(*wished), observe=created.observe, patience_s=PATIENCE_S)
    assert outcomes(applied) == done

    grown = Watched()
    wished = [spec(name, assignment=row * (PARTITIONS + 4)) for name in names]
    applied = bench.apply(bench.plan(*wished), observe=grown.observe, patience_s=PATIENCE_S)
    assert outcomes(applied) == done

    deleted = Watched()
    plan = await_deletable(bench, *names)
    applied = bench.apply(plan, observe=deleted.observe, patience_s=PATIENCE_S)
    assert outcomes(applied) == done
    # Each phase that waited says so; the deletions alone are more than the controller lets through.
    assert deleted.waits["delete"] > 0
    assert {*created.waits, *grown.waits} & {"create", "expand", "validate"}


def test_a_run_does_not_wait_for_ever(
    limited: Cluster, topic_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Workbench(limited)
    name = topic_prefix + "large"
    bench.apply(bench.plan(spec(name, assignment=((1,),) * 60)), patience_s=PATIENCE_S)
    plan = await_deletable(bench, name)
    exhaust(bench, topic_prefix)
    monkeypatch.setattr(engine, "QUOTA_S", 0.5)
    applied = bench.apply(plan)
    assert outcomes(applied) == {name: "failed"}
    said = texts(applied)[name]
    assert "the account exceeds controller_mutation_rate: the brokers ask to wait " in said
    assert said.endswith("run the same command again later")
    assert name in bench.topics(name)
