"""Brokers that answer with errors which pass: no command crashes on one, and none tells an untruth.

Each command runs as a process of its own, so that a crash of the client's C code is seen as one.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from command import Ran, run_reconciler
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewTopic
from lab import reassign, wait_for
from proxy import (
    ALTER_CONFIGS,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    FailingNetwork,
    failing_network,
)
from shell import VALIDATIONS, told

from reconciler.sandbox.cluster import Cluster, start_cluster

TIMED_OUT, NOT_CONTROLLER, THROTTLED = 7, 41, 89
LOADING, UNAVAILABLE, NOT_COORDINATOR = 14, 15, 16
UNKNOWN_TOPIC, NO_LEADER, NOT_LEADER, STORAGE, BEHIND = 3, 5, 6, 56, 78
FEW_REPLICAS, FEW_REPLICAS_NOW, FENCED, EPOCH, UNSTABLE = 19, 20, 74, 75, 88
OFFSET_FETCH = 9

COORDINATOR = (NOT_COORDINATOR, UNAVAILABLE, LOADING)
CONTROLLER = (NOT_CONTROLLER, TIMED_OUT, THROTTLED)

# What brokers answer requests of each kind with while leaders, coordinators and the controller
# move. The first one stands for all of them in the gate.
READS = {
    2: (NOT_LEADER, NO_LEADER, BEHIND, FENCED, EPOCH, STORAGE),  # ListOffsets
    3: (NO_LEADER,),  # Metadata
    OFFSET_FETCH: (*COORDINATOR, UNSTABLE),
    10: (UNAVAILABLE, LOADING),  # FindCoordinator
    15: COORDINATOR,  # DescribeGroups
    16: (LOADING, UNAVAILABLE),  # ListGroups
    32: (UNKNOWN_TOPIC, TIMED_OUT),  # DescribeConfigs
    46: (NOT_CONTROLLER, TIMED_OUT),  # ListPartitionReassignments
    69: COORDINATOR,  # ConsumerGroupDescribe
}
LOCK = {
    11: COORDINATOR,  # JoinGroup
    12: COORDINATOR,  # Heartbeat
    13: COORDINATOR,  # LeaveGroup
    14: COORDINATOR,  # SyncGroup
}
AUDIT = {
    0: (NOT_LEADER, UNKNOWN_TOPIC, TIMED_OUT, FEW_REPLICAS, FEW_REPLICAS_NOW, STORAGE),  # Produce
    22: COORDINATOR,  # InitProducerId
}
WRITES = {
    CREATE_TOPICS: CONTROLLER,
    CREATE_PARTITIONS: CONTROLLER,
    ALTER_CONFIGS: (NOT_CONTROLLER, TIMED_OUT),
    DELETE_TOPICS: CONTROLLER,
}
# Requests that only check, before the first one of an apply that changes something.
CHECKS = {CREATE_TOPICS: VALIDATIONS, CREATE_PARTITIONS: 1, ALTER_CONFIGS: 1}
API_VERSIONS = 18  # no retriable error is defined for it
FOR_EVER = 1_000_000

PLAN = ("plan", "planned", "--cluster", "lab")
APPLY = ("apply", "applied", "--cluster", "lab", "--auto-approve")
SNAPSHOT = ("snapshot", "planned", "--cluster", "lab", "--out", "state.json")
ALL_DONE = dict.fromkeys(("conf", "grow", "new", "old"), "done")


class Stage:
    """An estate that asks for one change of each kind, beside groups that read something else."""

    def __init__(self, cluster: Cluster, network: FailingNetwork, directory: Path) -> None:
        self.cluster = cluster
        self.network = network
        self.directory = directory
        self.admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
        self.create("audit")
        self.create("read")
        self.create("uneven", partitions=2)
        reassign(cluster, "uneven", {0: [1, 2, 3]})  # so that reassignments are always asked for
        self.readers = [self.read("classic"), self.read("consumer")]

    def create(self, name: str, partitions: int = 1) -> None:
        self.admin.create_topics([NewTopic(name, partitions, 2)])[name].result(15)

    def read(self, protocol: str) -> Consumer:
        consumer = Consumer(
            {
                "bootstrap.servers": self.cluster.bootstrap_servers,
                "group.id": f"readers-{protocol}",
                "group.protocol": protocol,
                "max.poll.interval.ms": 3_600_000,  # nobody polls it
                "log_level": 0,
            }
        )
        consumer.subscribe(["read"])
        wait_for(lambda: consumer.poll(0.1) is None and bool(consumer.assignment()))
        return consumer

    def set(self, estate: str, prefix: str) -> None:
        """Bring the topics that are to be changed, and write what they are to be."""
        for name in ("old", "grow", "conf"):
            self.create(prefix + name)
        entry = f"audit_topic: audit, cluster_id: {self.cluster.cluster_id}"
        clusters = f"version: 1\nclusters: {{lab: {{{entry}, guards: {{max_deletes: 1}}}}}}\n"
        wished = {
            "old": "state: absent",
            "grow": "partitions: 2",
            "new": "partitions: 2\nreplication_factor: 2",
            "conf": "config: {flush.ms: 7s}",
        }
        directory = self.directory / estate
        directory.mkdir(exist_ok=True)
        (directory / "clusters.yaml").write_text(clusters)
        for name, text in wished.items():
            (directory / f"{name}.yaml").write_text(f"topic: {prefix}{name}\n{text}\n")
        wait_for(lambda: len(self.look(prefix)) == 3)
        time.sleep(0.2)  # a broker that lags is no fault of this kind

    def look(self, prefix: str) -> dict[str, int]:
        """Return the partitions of each topic that there is."""
        topics = self.admin.list_topics(timeout=15).topics
        return {n.removeprefix(prefix): len(t.partitions) for n, t in topics.items() if prefix in n}

    def run(self, *arguments: str) -> Ran:
        return run_reconciler(self.directory, self.network.bootstrap_servers, *arguments)

    @contextmanager
    def answering(self, codes: dict[int, int], times: int, *, done: bool) -> Iterator[None]:
        """Answer requests of some kinds with errors."""
        self.network.heal()
        faults = [
            self.network.answer(api, code, skip=CHECKS.get(api, 0), times=times, done=done)
            for api, code in codes.items()
        ]
        try:
            yield
            assert all(fault.struck.is_set() for fault in faults), faults
        finally:
            self.network.heal()


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with (
        start_cluster(brokers=3, racks=3) as cluster,
        failing_network(cluster) as network,
    ):
        stage = Stage(cluster, network, tmp_path_factory.mktemp("stage"))
        yield stage
        for reader in stage.readers:
            reader.close()


@pytest.fixture(scope="module")
def planned(stage: Stage) -> None:
    """Write what all plans are about."""
    stage.set("planned", "plan-")


@pytest.fixture
def calm(stage: Stage, planned: None) -> Ran:
    """Return what a plan says while brokers answer as they should."""
    stage.network.heal()
    ran = stage.run(*PLAN)
    assert (ran.code, ran.err) == (0, "")
    assert "1 to delete, 1 to create, 1 to expand, 1 to configure" in ran.out
    assert stage.network.kinds == {*READS, API_VERSIONS}
    return ran


def check(ran: Ran) -> None:
    """Check that a command ended by itself and with words: docs/reference/exit-codes.md."""
    unknown = "unknown" in told(ran.out).values()
    assert ran.code in ((75,) if unknown else (0, 1)), ran
    assert "Traceback" not in ran.out + ran.err
    assert "Exception in thread" not in ran.err
    assert ran.code == 0 or ran.err.startswith("error: ") or told(ran.out) or "]" in ran.out, ran


def first(*kinds: dict[int, tuple[int, ...]]) -> dict[int, int]:
    return {api: codes[0] for each in kinds for api, codes in each.items()}


def each(*kinds: dict[int, tuple[int, ...]]) -> list[tuple[int, int]]:
    return [(api, code) for each in kinds for api, codes in each.items() for code in codes]


@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.parametrize("code", [NOT_COORDINATOR, UNAVAILABLE])
def test_a_coordinator_that_stays_away_keeps_the_topic(stage: Stage, calm: Ran, code: int) -> None:
    """librdkafka's own request for committed offsets ends the process on either of them."""
    with stage.answering({OFFSET_FETCH: code}, FOR_EVER, done=True):
        ran = stage.run(*PLAN)
    check(ran)
    name = {NOT_COORDINATOR: "NOT_COORDINATOR", UNAVAILABLE: "COORDINATOR_NOT_AVAILABLE"}[code]
    assert ran.code == 1
    assert f"Consumer group readers-classic cannot be described: {name}" in ran.out
    assert "[deletion-unseen]" in ran.out


@pytest.mark.cluster
def test_a_plan_waits_for_what_passes(stage: Stage, calm: Ran) -> None:
    with stage.answering(first(READS), 1, done=True):
        assert stage.run(*PLAN) == calm


@pytest.mark.slow
@pytest.mark.cluster
def test_a_snapshot_waits_for_what_passes(stage: Stage, calm: Ran) -> None:
    assert stage.run(*SNAPSHOT).code == 0
    before = read_snapshot_text(stage)
    with stage.answering({api: READS[api][0] for api in (3, 32, 46)}, 1, done=True):
        assert stage.run(*SNAPSHOT).code == 0
    assert read_snapshot_text(stage) == before


def read_snapshot_text(stage: Stage) -> str:
    """Return the snapshot without its time, and the free space of disks, which others use."""
    text = (stage.directory / "state.json").read_text()
    for varies in (r'"usable_bytes": \d+', r'"read_at": "[^"]+"'):
        assert re.search(varies, text)
        text = re.sub(varies, "", text)
    return text


@pytest.mark.cluster
@pytest.mark.parametrize(
    "done",
    [pytest.param(True, id="done"), pytest.param(False, id="undone", marks=pytest.mark.slow)],
)
def test_an_apply_goes_on_after_what_passes(stage: Stage, topic_prefix: str, done: bool) -> None:
    stage.set("applied", topic_prefix)
    codes = first(WRITES) if not done else first(LOCK, AUDIT, WRITES)
    with stage.answering(codes, 1, done=done):
        ran = stage.run(*APPLY)
    assert (ran.code, told(ran.out), ran.err) == (0, ALL_DONE, "")
    wait_for(lambda: stage.look(topic_prefix) == {"conf": 1, "grow": 2, "new": 2})


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.parametrize(("api", "code"), each(READS))
@pytest.mark.parametrize("times", [1, FOR_EVER], ids=["once", "always"])
def test_each_answer_to_a_plan(stage: Stage, calm: Ran, api: int, code: int, times: int) -> None:
    with stage.answering({api: code}, times, done=True):
        ran = stage.run(*PLAN)
    check(ran)
    if times == 1:
        assert ran == calm
    else:
        assert ran.code == 1 or "[reassignments-unseen]" in ran.out, ran


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.parametrize(("api", "code"), each({api: READS[api] for api in (3, 32, 46)}))
def test_each_answer_to_a_snapshot(stage: Stage, calm: Ran, api: int, code: int) -> None:
    with stage.answering({api: code}, FOR_EVER, done=True):
        check(stage.run(*SNAPSHOT))


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.parametrize(("api", "code"), [*first(READS).items(), *each(LOCK, AUDIT)])
@pytest.mark.parametrize("times", [1, FOR_EVER], ids=["once", "always"])
def test_each_answer_to_what_an_apply_asks(
    stage: Stage, topic_prefix: str, api: int, code: int, times: int
) -> None:
    stage.set("applied", topic_prefix)
    with stage.answering({api: code}, times, done=True):
        ran = stage.run(*APPLY)
    check_applied(stage, topic_prefix, ran)
    if times == 1:
        assert (ran.code, told(ran.out), ran.err) == (0, ALL_DONE, "")


# A quota that stays exceeded is waited for up to 15 minutes: contract/test_mutation_rate.
CHANGED = [
    (api, code, times)
    for api, code in each(WRITES)
    for times in (1, FOR_EVER)
    if (code, times) != (THROTTLED, FOR_EVER)
]
WAITED = (
    "the account exceeded controller_mutation_rate: 1 step left, waiting 1 s as the brokers ask\n"
)


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.parametrize(("api", "code", "times"), CHANGED)
@pytest.mark.parametrize("done", [True, False], ids=["done", "undone"])
def test_each_answer_to_what_an_apply_changes(
    stage: Stage, topic_prefix: str, api: int, code: int, done: bool, times: int
) -> None:
    stage.set("applied", topic_prefix)
    with stage.answering({api: code}, times, done=done):
        ran = stage.run(*APPLY)
    check_applied(stage, topic_prefix, ran)
    if times == 1:
        assert (ran.code, told(ran.out)) == (0, ALL_DONE)
        assert ran.err == (WAITED if code == THROTTLED else "")


def check_applied(stage: Stage, prefix: str, ran: Ran) -> None:
    """Hold what an apply says against the cluster as it is."""
    check(ran)
    outcomes = told(ran.out)
    found = stage.look(prefix)
    is_done = {"old": "old" not in found, "new": found.get("new") == 2, "grow": found["grow"] == 2}
    for name, happened in is_done.items():
        if outcomes.get(name) == "done":
            assert happened, (name, ran)
        else:  # not said, or said not to be done
            assert not happened, (name, ran)
    is_kept = "[audit-lost]" not in ran.err
    assert (ran.code == 0) is (outcomes == ALL_DONE and is_kept), ran
