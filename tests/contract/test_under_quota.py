"""An estate that is brought up, grown, drained and removed by an account under a quota (KIP-599).

The controller counts what an account creates, adds and deletes over a window, and refuses more with
THROTTLING_QUOTA_EXCEEDED (89) and a time to wait. What the runs leave is read by another client,
which no quota holds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from command import run_here
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType
from kafka.admin import KafkaAdminClient
from lab import limit_account, wait_for

from reconciler.sandbox.cluster import Cluster, start_cluster

if TYPE_CHECKING:
    from command import Ran

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.usefixtures("brief_rates")]

RATE = 8.0  # partitions per second
WINDOW_S = 4  # the controller lets this many seconds' worth through at once
TOPICS, PARTITIONS, MORE = 8, 12, 24
DAY_MS = 86_400_000
PATIENCE_S = 240
NAMES = tuple(f"quota.t{number}" for number in range(TOPICS))
CLUSTERS = """\
version: 1
clusters:
  lab:
    moves: {rate: unlimited, allow: [drain]}
    guards: {max_deletes: 8, unused_for: 0s}
    drain_brokers: DRAINED
"""


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Start four brokers that limit the user whom reconciler is to them."""
    window = {"controller.quota.window.num": str(WINDOW_S)}
    with start_cluster(brokers=4, racks=2, properties=window) as cluster:
        limit_account(cluster, RATE, user="ANONYMOUS")
        yield cluster


class Estate:
    """The specs of eight topics, and what another client sees of them."""

    def __init__(self, cluster: Cluster, root: Path) -> None:
        self._cluster, self._root = cluster, root
        self._others = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
        (root / "topics").mkdir()

    def write(self, document: Mapping[str, object], drained: str = "[]") -> None:
        clusters = CLUSTERS.replace("DRAINED", drained)
        (self._root / "topics" / "clusters.yaml").write_text(clusters)
        for name in NAMES:
            path = self._root / "topics" / f"{name}.yaml"
            path.write_text(json.dumps({"topic": name, **document}))

    def run(self, *arguments: str) -> Ran:
        return run_here(self._root, self._cluster.bootstrap_servers, *arguments)

    def plan(self, *more: str) -> Ran:
        return self.run("plan", "--cluster", "lab", "--out", "plan.json", *more)

    def apply(self, topics: int = TOPICS) -> bool:
        """Apply the plan: everything is done. Returns whether it waited for the quota."""
        ran = self.run("apply", "plan.json", "--auto-approve", "--journal", "journal.jsonl")
        assert ran.code == 0, ran
        assert f"Applied: {topics} done" in ran.out, ran
        path = self._root / "journal.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        path.unlink()
        outcomes = {line["kind"] for line in lines if line["type"] == "outcome"}
        assert outcomes == {"done"}, lines
        return any(line["type"] == "quota" for line in lines)

    def bring(self, *more: str, topics: int = TOPICS) -> bool:
        """Plan and apply; then nothing is left to do. Returns whether it waited."""
        assert self.plan(*more).code == 0
        waited = self.apply(topics)
        again = self.plan("--detailed-exitcode", *more)
        assert again.code == 0, again
        return waited

    def rows(self) -> dict[str, list[list[int]]]:
        found = self._others.list_topics(timeout=20).topics
        return {
            name: [topic.partitions[n].replicas for n in sorted(topic.partitions)]
            for name, topic in found.items()
            if name in NAMES
        }

    def retention_ms(self) -> set[str]:
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in NAMES]
        found = self._others.describe_configs(resources).values()
        return {answer.result(20)["retention.ms"].value for answer in found}

    def list_in_flight(self) -> object:
        client = KafkaAdminClient(bootstrap_servers=self._cluster.addresses()[1])
        try:
            return client.list_partition_reassignments()
        finally:
            client.close()


def wish(partitions: int, days: int) -> dict[str, object]:
    config = {"retention.ms": f"{days}d"}
    counts = {"partitions": partitions, "replication_factor": 2}
    return {**counts, "config": config, "acknowledge": ["ordering"]}


def test_topics_come_grow_move_and_go_with_nothing_failed_or_left_by_half(
    cluster: Cluster, tmp_path: Path
) -> None:
    estate = Estate(cluster, tmp_path)
    estate.write(wish(PARTITIONS, 1))
    assert estate.bring()
    assert {name: len(rows) for name, rows in estate.rows().items()} == dict.fromkeys(
        NAMES, PARTITIONS
    )
    assert estate.retention_ms() == {str(DAY_MS)}

    # The controller takes all expansions of a request, and asks to wait afterwards: whether this
    # one waits depends on what is left of the window.
    estate.write(wish(MORE, 2))
    estate.bring()
    grown = estate.rows()
    assert {name: len(rows) for name, rows in grown.items()} == dict.fromkeys(NAMES, MORE)
    assert estate.retention_ms() == {str(2 * DAY_MS)}

    # Kafka counts no moves. They come right after an expansion of more than the window holds.
    assert any(4 in row for rows in grown.values() for row in rows)
    estate.write(wish(MORE, 2), drained="[4]")
    estate.bring("--moves", topics=TOPICS + 1)  # and that of the lock
    drained = [row for rows in estate.rows().values() for row in rows]
    assert len(drained) == TOPICS * MORE
    assert all(len(row) == 2 and 4 not in row for row in drained)
    assert estate.list_in_flight() == {}

    estate.write({"state": "absent", "acknowledge": ["data-loss"]})
    # Brokers show that nobody wrote once they have made the logs.
    wait_for(lambda: estate.plan().code == 0, PATIENCE_S)
    assert estate.apply()
    assert estate.plan("--detailed-exitcode").code == 0
    assert estate.rows() == {}
