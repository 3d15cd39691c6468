"""Moves on brokers that answer as Redpanda says that it does.

The stand-in is a proxy in front of real brokers. What it does is quoted:

- "When there are two identical partition reassignment requests, Kafka cancels the first one without
  returning an error code, while Redpanda rejects the second one with `Partition configuration
  update in progress` or `update_in_progress`" (docs.redpanda.com, cluster balancing, 2026-08);
- its code skips the lists of throttled replicas of a topic without an error
  (`allowlist_topic_noop_confs` in src/v/kafka/server/handlers/topics/types.h).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from command import run_here
from lab import connect_to, create
from proxy import ALTER_CONFIGS, ALTER_REASSIGNMENTS, FailingNetwork, failing_network
from workbench import ENTRY

from reconciler.kafka.connection import connect
from reconciler.kafka.mover import KafkaMover
from reconciler.kafka.reader import KafkaReader
from reconciler.model.cluster import ThrottleSide
from reconciler.model.outcomes import AnswerKind
from reconciler.model.steps import CreateTopic
from reconciler.sandbox.cluster import Cluster

if TYPE_CHECKING:
    from command import Ran

pytestmark = pytest.mark.usefixtures("brief_rates")

REASSIGNMENT_IN_PROGRESS, UNKNOWN_SERVER_ERROR = 60, -1
IN_PROGRESS = [
    (REASSIGNMENT_IN_PROGRESS, ""),
    (UNKNOWN_SERVER_ERROR, "Partition configuration update in progress"),
    (UNKNOWN_SERVER_ERROR, "update_in_progress"),
]
SERVICE = "    service: redpanda\n"
MOVES = "    moves: {allow: [replication], rate: unlimited, keep_free: 0%, balancer_off: true}\n"


class Panda:
    """Real brokers behind a proxy, and an estate whose one topic is to have three replicas."""

    def __init__(self, cluster: Cluster, network: FailingNetwork, root: Path, topic: str) -> None:
        self.cluster = cluster
        self.network = network
        self.root = root
        self.topic = topic
        (root / "topics").mkdir()
        (root / "topics" / "topic.yaml").write_text(f"topic: {topic}\nreplication_factor: 3\n")
        self.is_of(SERVICE)
        with connect_to(cluster) as connection:
            create(connection, CreateTopic(topic, ((1, 2), (2, 3)), {}))

    def is_of(self, service: str) -> None:
        """Have clusters.yaml name a service, or none."""
        text = f"version: 1\nclusters:\n  lab:\n{service}{MOVES}"
        (self.root / "topics" / "clusters.yaml").write_text(text)

    def run(self, *arguments: str) -> Ran:
        return run_here(self.root, self.network.bootstrap_servers, *arguments)

    def move(self) -> Ran:
        """Plan the moves, and apply them."""
        chosen = ("--cluster", "lab", "--topic", self.topic, "--moves", "--out", "moves.json")
        planned = self.run("plan", *chosen)
        assert planned.code == 0, planned
        return self.run(
            *(
                "apply",
                "moves.json",
                "--auto-approve",
                "--journal",
                "journal",
                "--stop-after",
                "30s",
            )
        )

    def list_notes(self) -> list[str]:
        lines = (self.root / "journal").read_text().splitlines()
        return [note["text"] for line in lines if "text" in (note := json.loads(line))]

    @property
    def factors(self) -> frozenset[int]:
        with connect_to(self.cluster) as connection:
            state = KafkaReader(connection).read_cluster([])
        return frozenset(state.topics[self.topic].replication_factors)


@pytest.fixture
def panda(cluster3: Cluster, topic_prefix: str, tmp_path: Path) -> Iterator[Panda]:
    with failing_network(cluster3) as network:
        yield Panda(cluster3, network, tmp_path, f"{topic_prefix}moved")


@pytest.mark.parametrize(("code", "text"), IN_PROGRESS)
def test_what_is_in_flight_already_is_neither_refused_nor_lost(
    panda: Panda, code: int, text: str
) -> None:
    panda.network.answer(ALTER_REASSIGNMENTS, code, text=text)
    mover = KafkaMover(connect(ENTRY, bootstrap_servers=panda.network.bootstrap_servers))
    place = (panda.topic, 0)
    answer = mover.reassign({place: (3, 2)})[place]
    mover.close()
    assert answer.kind is AnswerKind.NOT_DONE


@pytest.mark.parametrize(("code", "text"), IN_PROGRESS[:2])
def test_a_request_that_comes_twice_ends_as_what_the_first_one_did(
    panda: Panda, code: int, text: str
) -> None:
    fault = panda.network.answer(ALTER_REASSIGNMENTS, code, text=text)
    ran = panda.move()
    assert fault.struck.is_set()
    assert (ran.code, "Applied: 1 done" in ran.out, panda.factors) == (0, True, {3}), ran
    assert not [said for said in panda.list_notes() if "cancelled" in said or "refuse" in said]


def test_a_run_sets_no_throttle_and_waits_for_none(panda: Panda) -> None:
    panda.network.ignore_configs(side.list_key for side in ThrottleSide)
    ran = panda.move()
    assert (ran.code, "Applied: 1 done" in ran.out, panda.factors) == (0, True, {3}), ran
    assert ALTER_CONFIGS not in panda.network.kinds


def test_a_run_sets_no_list_either_where_configs_cannot_be_changed(panda: Panda) -> None:
    """Without a rate no list is needed: the plan says that rate: unlimited is enough."""
    panda.is_of("")
    panda.network.offer(ALTER_CONFIGS)
    ran = panda.move()
    assert (ran.code, "Applied: 1 done" in ran.out, panda.factors) == (0, True, {3}), ran


def test_no_rate_can_be_set_and_so_no_pause(panda: Panda) -> None:
    for verb in (["pause"], ["rate", "1MiB"]):
        ran = panda.run("moves", *verb, "--cluster", "lab", "--auto-approve")
        assert (ran.code, ran.out) == (1, "")
        assert ran.err == (
            "error: topics/clusters.yaml:4:5: Redpanda has no throttles of moves, so no rate of "
            "lab can be set; use the tools of the service: raft_learner_recovery_rate of the "
            "cluster limits copies [service-throttle]\n"
        )
    assert ALTER_CONFIGS not in panda.network.kinds


def test_kafka_itself_would_have_been_asked_for_lists(panda: Panda) -> None:
    """Otherwise the tests above show nothing."""
    panda.is_of("")
    assert panda.move().code == 0
    assert ALTER_CONFIGS in panda.network.kinds
