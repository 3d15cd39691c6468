"""Runs under a controller quota (KIP-599) on real brokers: with rates it is not met, and without
rates it is met, waited for, and everything is done all the same.

What is done in the end, a client reads that has no part in the runs.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from command import run_here
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from lab import wait_for
from shorthand import spec
from test_mutation_rate import await_deletable
from test_writer import set_mutation_rate
from workbench import Workbench, outcomes

from reconciler.model.rates import NO_RATES, Rate, Rates
from reconciler.run.events import StepAnswered, StepsWait
from reconciler.sandbox.cluster import Cluster, start_cluster

if TYPE_CHECKING:
    from collections.abc import Callable

PER_S = 40
PACED = Rates(partitions=Rate(PER_S, 1))
NAMES = tuple("abcdef")
SIZE = 30  # partitions of each topic: one keeps to the rate for each second, two do not
PATIENCE_S = 300


@pytest.fixture(scope="module")
def limited() -> Iterator[Cluster]:
    """Brokers that limit reconciler's client id: at once they take what two seconds allow."""
    properties = {"controller.quota.window.num": "2", "controller.quota.window.size.seconds": "1"}
    with start_cluster(brokers=4, racks=4, properties=properties) as cluster:
        set_mutation_rate(cluster, PER_S)
        yield cluster


@pytest.fixture
def rested(limited: Cluster) -> Cluster:
    """The same, once what earlier tests did does not count any more."""
    time.sleep(5)
    return limited


@dataclass
class Watched:
    """How often a run waited, by phase: as brokers asked, and to keep to rates."""

    met: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    hook: Callable[[StepsWait], None] = lambda _: None

    def observe(self, event: StepAnswered | StepsWait) -> None:
        if isinstance(event, StepsWait):
            (self.kept if event.by_rates else self.met).append(event.phase)
            self.hook(event)


def read_sizes(cluster: Cluster, prefix: str) -> Mapping[str, int]:
    """Return the partitions of the topics that there are, as an independent client reads them."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    found = admin.list_topics(timeout=20).topics
    return {name: len(found[name].partitions) for name in found if name.startswith(prefix)}


@pytest.mark.parametrize(
    "rates", [PACED, pytest.param(NO_RATES, marks=pytest.mark.slow)], ids=["paced", "not paced"]
)
def test_topics_are_created_expanded_and_deleted_under_a_quota(
    rested: Cluster, topic_prefix: str, rates: Rates
) -> None:
    bench = Workbench(rested)
    names = [topic_prefix + name for name in NAMES]
    watched = Watched()
    row = ((1,),)

    def apply(size: int) -> None:
        plan = bench.plan(*(spec(name, assignment=row * size) for name in names))
        applied = bench.apply(plan, observe=watched.observe, patience_s=PATIENCE_S, rates=rates)
        assert outcomes(applied) == dict.fromkeys(names, "done")
        assert read_sizes(rested, topic_prefix) == dict.fromkeys(names, size)

    apply(SIZE)
    apply(SIZE + 6)
    plan = await_deletable(bench, *names)
    applied = bench.apply(plan, observe=watched.observe, patience_s=PATIENCE_S, rates=rates)
    assert outcomes(applied) == dict.fromkeys(names, "done")
    assert read_sizes(rested, topic_prefix) == {}
    if rates.are_limited:
        assert not watched.met
        assert {*watched.kept} == {"validate", "create", "expand", "delete"}
    else:
        assert watched.met
        assert not watched.kept


def test_an_interrupt_in_a_pause_ends_with_a_report(limited: Cluster, topic_prefix: str) -> None:
    bench = Workbench(limited)
    names = [topic_prefix + name for name in NAMES[:3]]

    def interrupt(wait: StepsWait) -> None:
        if wait.phase == "create" and wait.left == 2:
            raise KeyboardInterrupt

    plan = bench.plan(*(spec(name, assignment=((1,),) * SIZE) for name in names))
    applied = bench.apply(plan, observe=Watched(hook=interrupt).observe, rates=PACED)
    assert applied.interrupted
    became = outcomes(applied)
    assert became == {names[0]: "done", names[1]: "not attempted", names[2]: "not attempted"}
    assert read_sizes(limited, topic_prefix) == {names[0]: SIZE}
    again = bench.apply(plan, patience_s=PATIENCE_S, rates=PACED)
    assert {*outcomes(again).values()} == {"already done", "done"}
    assert read_sizes(limited, topic_prefix) == dict.fromkeys(names, SIZE)


def test_a_topic_that_is_used_during_a_pause_is_not_deleted(
    limited: Cluster, topic_prefix: str
) -> None:
    bench = Workbench(limited)
    names = [topic_prefix + name for name in NAMES[:3]]
    bench.bring(*(spec(name, assignment=((1,),) * SIZE) for name in names))
    plan = await_deletable(bench, *names)

    def write(_: StepsWait) -> None:
        producer = Producer({"bootstrap.servers": limited.bootstrap_servers, "log_level": 0})
        producer.produce(names[2], b"used", partition=0)
        assert producer.flush(20) == 0

    applied = bench.apply(plan, observe=Watched(hook=write).observe, rates=PACED)
    became = outcomes(applied)
    assert became == {names[0]: "done", names[1]: "done", names[2]: "not attempted"}
    assert read_sizes(limited, topic_prefix) == {names[2]: SIZE}


def test_rates_of_clusters_yaml_are_kept_to_and_said(
    rested: Cluster, topic_prefix: str, tmp_path: Path
) -> None:
    """A cluster that no service names: its plan says what the pauses take, its apply makes them."""
    (tmp_path / "topics").mkdir()
    (tmp_path / "topics" / "clusters.yaml").write_text(
        "version: 1\nclusters:\n  lab:\n    rates: {partitions: 40/2s}\n"
    )
    topics = [f"topic: {topic_prefix}{n}\npartitions: 30\nreplication_factor: 1\n" for n in "abcd"]
    (tmp_path / "topics" / "topics.yaml").write_text("---\n".join(topics))
    planned = run_here(tmp_path, rested.bootstrap_servers, "plan", "--cluster", "lab")
    assert planned.code == 0, planned
    said = (
        "apply keeps to at most 40 partitions in 2 s on lab: it takes about 14 s at least, because"
    )
    assert said in " ".join(planned.out.split()), planned
    applied = run_here(
        tmp_path,
        rested.bootstrap_servers,
        *("apply", "--cluster", "lab", "--auto-approve", "--journal", "journal.jsonl"),
    )
    assert (applied.code, "Applied: 4 done" in applied.out) == (0, True), applied
    assert "keeping to the rates of the cluster: 3 steps left, waiting 2 s" in applied.err, applied
    lines = [json.loads(line) for line in (tmp_path / "journal.jsonl").read_text().splitlines()]
    assert {line["type"] for line in lines} >= {"rates"}
    assert not [line for line in lines if line["type"] == "quota"]
    assert read_sizes(rested, topic_prefix) == {f"{topic_prefix}{name}": 30 for name in "abcd"}


@pytest.mark.slow
@pytest.mark.usefixtures("brief_rates")
def test_a_drain_under_a_quota_moves_everything(
    limited: Cluster, topic_prefix: str, tmp_path: Path
) -> None:
    """Kafka counts no reassignment (KIP-599), so a drain is neither held back nor counted."""
    bench = Workbench(limited)
    names = [f"{topic_prefix}{name}" for name in "ab"]
    bench.bring(*(spec(name, assignment=((1, 4), (4, 2)) * 15) for name in names))
    (tmp_path / "topics").mkdir()
    (tmp_path / "topics" / "clusters.yaml").write_text(
        "version: 1\nclusters:\n  lab:\n    drain_brokers: [4]\n"
        "    moves: {allow: [drain, assignment], rate: unlimited, keep_free: 0%}\n"
        "    rates: {partitions: 40/1s}\n"
    )
    topics = [f"topic: {name}\npartitions: 30\nreplication_factor: 2\n" for name in names]
    (tmp_path / "topics" / "topics.yaml").write_text("---\n".join(topics))
    # It takes the lock once: its group has Kafka create a topic, which is to be drained as well.
    checked = run_here(tmp_path, limited.bootstrap_servers, "apply", "--check", "--cluster", "lab")
    assert checked.code == 0, checked
    plan = ("plan", "--moves", "--cluster", "lab", "--out", "moves.json")
    planned = run_here(tmp_path, limited.bootstrap_servers, *plan)
    assert planned.code == 0, planned
    apply = ("apply", "moves.json", "--auto-approve")
    applied = run_here(tmp_path, limited.bootstrap_servers, *apply)
    assert applied.code == 0, applied
    assert "drained: broker 4 stores nothing" in applied.out + applied.err, applied
    admin = AdminClient({"bootstrap.servers": limited.bootstrap_servers, "log_level": 0})

    def list_rows() -> list[list[int]]:
        found = admin.list_topics(timeout=20).topics
        return [each.replicas for name in names for each in found[name].partitions.values()]

    wait_for(lambda: not [row for row in list_rows() if 4 in row])
    assert [len(row) for row in list_rows()] == [2] * 60
