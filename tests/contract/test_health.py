"""Health as real brokers tell it, beside what Kafka's other client reads of the same cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from breakable import kill_node
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaConnectionError
from lab import connect_to, create, set_config, wait_for

from reconciler.api.health import report_health
from reconciler.api.planning import build_plan, load_estate, read_cluster
from reconciler.cli.app import run
from reconciler.model.health import HealthReport
from reconciler.model.steps import CreateTopic
from reconciler.sandbox.cluster import Cluster, start_cluster
from reconciler.show.text import render_text

LOST = 3
RATE = "leader.replication.throttled.rate"
TOPICS = {
    "whole": (((1, 2), (2, 1)), {}),
    "thin": (((1, 2, 3), (2, 3, 1)), {"min.insync.replicas": "2"}),
    "short": (((1, 3), (3, 2)), {"min.insync.replicas": "2"}),
    "single": (((3,), (1,)), {}),
    "slow": (((2, 1),), {"follower.replication.throttled.replicas": "0:1"}),
}


@pytest.fixture(scope="module")
def broken() -> Iterator[Cluster]:
    """Three brokers, of which the last one was killed: some partitions lost their only replica."""
    with start_cluster(brokers=3, racks=3, isolate=True) as cluster:
        connection = connect_to(cluster)
        create(connection, *(CreateTopic(name, *given) for name, given in TOPICS.items()))
        kill_node(cluster, LOST)
        wait_for(lambda: is_without_leader(cluster), 60)
        yield cluster


def is_without_leader(cluster: Cluster) -> bool:
    """Return whether the other client sees it: until then it may ask the broker that was killed."""
    try:
        return read_by_other_client(cluster)["single", 0][0] == -1
    except KafkaConnectionError:
        return False


def read_by_other_client(cluster: Cluster) -> dict[tuple[str, int], tuple[int, set[int], set[int]]]:
    """Return the leader, the replicas and those in sync of each partition, as kafka-python says."""
    client = KafkaAdminClient(bootstrap_servers=cluster.addresses()[1])
    try:
        described = client.describe_topics(list(TOPICS))
    finally:
        client.close()
    return {
        (topic["name"], each["partition_index"]): (
            each["leader_id"],
            set(each["replica_nodes"]),
            set(each["isr_nodes"]),
        )
        for topic in described
        for each in topic["partitions"]
    }


@pytest.fixture
def estate(tmp_path: Path) -> Path:
    (tmp_path / "topics").mkdir()
    (tmp_path / "topics" / "clusters.yaml").write_text("version: 1\nclusters: {lab: {}}\n")
    (tmp_path / "topics" / "t.yaml").write_text("topic: whole\npartitions: 2\n")
    return tmp_path


def remove_rate(cluster: Cluster) -> None:
    """Remove the throttle rate of broker 1."""
    entry = ConfigEntry(RATE, "", incremental_operation=AlterConfigOpType.DELETE)
    resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    for answer in admin.incremental_alter_configs([resource]).values():
        answer.result(15)


def report(cluster: Cluster, estate: Path) -> HealthReport:
    loaded = load_estate(estate / "topics")
    return report_health(loaded, "lab", bootstrap_servers=cluster.bootstrap_servers)


def run_health(cluster: Cluster, estate: Path, *options: str) -> tuple[int, str]:
    servers = cluster.bootstrap_servers
    command = ["health", "--cluster", "lab", "--bootstrap-servers", servers, *options]
    with chdir(estate), redirect_stdout(StringIO()) as out:
        code = run(command)
    return code, out.getvalue()


def test_a_dead_broker_leaves_the_partitions_that_the_other_client_names(
    broken: Cluster, estate: Path
) -> None:
    code, out = run_health(broken, estate, "--format", "json")
    document: dict[str, Any] = json.loads(out)
    shown = read_by_other_client(broken)
    needed = {name: int(given[1].get("min.insync.replicas", 1)) for name, given in TOPICS.items()}
    expected = {
        "offline": {place for place, (leader, _, _) in shown.items() if leader < 0},
        "unwritable": {
            place
            for place, (leader, replicas, synced) in shown.items()
            if leader >= 0 and len(synced) < min(needed[place[0]], len(replicas))
        },
        "under_replicated": {
            place for place, (_, replicas, synced) in shown.items() if len(synced) < len(replicas)
        },
    }
    assert expected["offline"] == {("single", 0)}
    assert expected["unwritable"] == {("short", 0), ("short", 1)}
    assert expected["under_replicated"] >= {("thin", 0), ("thin", 1)}
    found = {
        fault: {
            (each["topic"], each["partition"])
            for each in document["partitions"]
            if fault in each["faults"]
        }
        for fault in expected
    }
    assert found == expected
    assert document["counts"] == {
        **{fault: len(places) for fault, places in expected.items()},
        "brokers_down": 1,
        "directories_offline": 0,
    }
    assert [each["broker"] for each in document["dead"]] == [LOST]
    assert (code, document["at_risk"], document["partial"]) == (2, True, False)
    off = {(e["topic"], e["partition"]): e["leader"] for e in document["off_preferred"]}
    assert off == {
        place: leader
        for place, (leader, _, _) in shown.items()
        if leader >= 0 and leader != TOPICS[place[0]][0][place[1]][0]
    }
    assert [each["replicas"] for each in document["lists"]] == ["0:1"]
    assert document["lists"][0]["left_over"]


def test_the_text_names_what_is_offline_and_the_plan_says_so_in_one_line(
    broken: Cluster, estate: Path
) -> None:
    code, out = run_health(broken, estate)
    assert code == 2
    assert "single  partition 0  on broker 3" in out
    assert "start broker 3" in out
    loaded = load_estate(estate / "topics")
    state = read_cluster(loaded, "lab", bootstrap_servers=broken.bootstrap_servers)
    plan = build_plan(loaded, "lab", state)
    said = "Unhealthy: 1 partition offline"
    lines = render_text(plan).splitlines()
    assert lines[1].startswith(said)
    assert lines[2] == "Broker 3 is dead and takes nothing new."


def test_healthy_brokers_with_moves_and_throttles_are_at_no_risk(
    cluster3: Cluster, topic_prefix: str, estate: Path
) -> None:
    name = f"{topic_prefix}moves"
    create(connect_to(cluster3), CreateTopic(name, ((1,),), {}))
    set_config(cluster3, ResourceType.BROKER, "1", **{RATE: "1"})
    try:
        found = report(cluster3, estate)
        assert found.health.counts.healthy
        assert not found.health.at_risk
        assert not found.is_partial
        assert [(e.broker, e.bytes_per_s) for e in found.health.rates] == [(1, 1)]
        assert [e.broker for e in found.health.leftovers] == [1]
        assert found.state.directories.keys() == {1, 2, 3}
    finally:
        remove_rate(cluster3)


def test_a_cluster_that_does_not_answer_exits_1(estate: Path) -> None:
    command = ["health", "--cluster", "lab", "--bootstrap-servers", "127.0.0.1:1"]
    with chdir(estate), redirect_stdout(StringIO()) as out:
        assert run(command) == 1
    assert out.getvalue() == ""
