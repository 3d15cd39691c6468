"""Brokers with several log directories: which replica is where, and what moves between them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from directories import add_up, ask_for, fill, find_paths, list_paths, put, slow_down
from lab import connect_to, create, wait_for

from reconciler.api.planning import load_estate
from reconciler.api.snapshots import read_snapshot, take_snapshot, write_snapshot
from reconciler.cli.app import run
from reconciler.kafka.mover import KafkaMover
from reconciler.kafka.reader import KafkaReader
from reconciler.model.cluster import ClusterState
from reconciler.model.outcomes import AnswerKind
from reconciler.model.steps import CreateTopic
from reconciler.sandbox.cluster import Cluster, start_cluster

pytestmark = pytest.mark.cluster

ROWS = ((1, 2), (2, 1), (1, 2), (1, 2))
SIZE = 500_000


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with start_cluster(brokers=2, racks=1, log_directories=3) as cluster:
        with connect_to(cluster) as connection:
            create(connection, CreateTopic("t", ROWS, {}))
        fill(cluster, "t", {number: SIZE * (number + 1) for number in range(4)})
        yield cluster


def read(cluster: Cluster) -> ClusterState:
    with connect_to(cluster) as connection:
        reader = KafkaReader(connection)
        return reader.read_sizes(reader.read_cluster())


@pytest.fixture
def estate(cluster: Cluster, tmp_path: Path) -> Path:
    root = tmp_path / "topics"
    root.mkdir()
    (root / "clusters.yaml").write_text(
        f"version: 1\nclusters: {{lab: {{cluster_id: {cluster.cluster_id}, "
        f"client: {{bootstrap.servers: '{cluster.bootstrap_servers}'}}}}}}\n"
    )
    return root


def test_each_replica_is_in_its_directory_with_its_own_size(cluster: Cluster) -> None:
    state = read(cluster)
    for broker in (1, 2):
        stored = state.stored[broker]
        assert {place: each.path for place, each in stored.items()} == find_paths(cluster, broker)
        assert not any(each.target for each in stored.values())
        for (topic, number), each in stored.items():
            assert each.size_bytes == pytest.approx(SIZE * (number + 1), rel=0.1), topic


def test_what_moves_between_directories_is_known_with_its_target(cluster: Cluster) -> None:
    path = find_paths(cluster, 1)["t", 3]
    target = next(each for each in list_paths(cluster, 1) if each != path)
    slow_down(cluster, 50_000)
    ask_for(cluster, 1, {("t", 3): target})
    mover = KafkaMover(connect_to(cluster))
    try:
        wait_for(lambda: mover.read([]).stored[1]["t", 3].copied_bytes > 0)
        found = mover.read([]).stored[1]["t", 3]
        assert (found.path, found.target) == (path, target)
        assert found.copied_bytes < found.size_bytes
        assert read(cluster).stored[1]["t", 3].target == target
    finally:
        mover.close()
        slow_down(cluster, 2**40)
        put(cluster, 1, {("t", 3): target})


def test_snapshots_and_descriptions_show_what_is_in_each_directory(
    cluster: Cluster, estate: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "lab.json"
    write_snapshot(take_snapshot(load_estate(estate), "lab"), path)
    assert read_snapshot(path).stored == read(cluster).stored
    assert (
        run(["describe", "broker", "1", str(estate), "--cluster", "lab", "--format", "json"]) == 0
    )
    shown = json.loads(capsys.readouterr().out)["about"]["broker"]
    assert shown["directory_bytes"] == add_up(cluster, 1)


def test_a_cancelled_move_drops_its_copy(cluster: Cluster) -> None:
    path = find_paths(cluster, 2)["t", 2]
    target = next(each for each in list_paths(cluster, 2) if each != path)
    slow_down(cluster, 50_000)
    mover = KafkaMover(connect_to(cluster))
    try:
        assert mover.relocate(2, {("t", 2): target})["t", 2].kind is AnswerKind.ACCEPTED
        wait_for(lambda: mover.read([]).stored[2]["t", 2].target == target)
        assert mover.relocate(2, {("t", 2): path})["t", 2].kind is AnswerKind.ACCEPTED
        found = mover.read([]).stored[2]["t", 2]
        assert (found.path, found.target) == (path, "")
    finally:
        mover.close()
        slow_down(cluster, 2**40)


def test_what_a_broker_does_not_hold_or_have_is_refused(cluster: Cluster) -> None:
    path, *_ = list_paths(cluster, 1)
    mover = KafkaMover(connect_to(cluster))
    try:
        answers = mover.relocate(1, {("t", 0): "/no/such", ("none", 0): path})
    finally:
        mover.close()
    assert {place: answer.error for place, answer in answers.items()} == {
        ("t", 0): "LOG_DIR_NOT_FOUND",
        ("none", 0): "UNKNOWN_TOPIC_OR_PARTITION",
    }
    assert {answer.kind for answer in answers.values()} == {AnswerKind.REFUSED}


def test_a_broker_with_a_failed_directory_moves_nothing_between_the_others(
    cluster: Cluster, estate: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The last test: the broker does not recover."""
    first, second, third = list_paths(cluster, 2)
    paths = {("t", n): second if n < 3 else third for n in range(4)}
    put(cluster, 2, paths)
    Path(third).rename(f"{third}-failed")
    Path(third).touch()
    wait_for(lambda: bool(read_for_moves(cluster).failed_directories), 60)
    mover = KafkaMover(connect_to(cluster))
    try:
        answer = mover.relocate(2, {("t", 0): first})["t", 0]
    finally:
        mover.close()
    assert (answer.kind, answer.error) == (AnswerKind.REFUSED, "KAFKA_STORAGE_ERROR")
    assert find_paths(cluster, 2)["t", 0] == second
    (estate / "clusters.yaml").write_text(
        f"version: 1\nclusters: {{lab: {{cluster_id: {cluster.cluster_id}, "
        f"client: {{bootstrap.servers: '{cluster.bootstrap_servers}'}}, "
        "moves: {allow: [rebalance], rate: unlimited, keep_free: 0%}}}\n"
    )
    asked = ["rebalance", str(estate), "--cluster", "lab"]
    assert run([*asked, "--disks", "--brokers", "2"]) == 0
    out = capsys.readouterr().out
    assert "left as they are (a log directory has failed; see --offline-replicas): broker 2" in out
    assert run([*asked, "--empty-dir", f"2:{second}"]) == 64
    assert f"log directory {third} of broker 2 has failed" in " ".join(
        capsys.readouterr().err.split()
    )


def read_for_moves(cluster: Cluster) -> ClusterState:
    with connect_to(cluster) as connection:
        reader = KafkaReader(connection)
        return reader.read_moves(reader.read_cluster(), interval_s=0)


def test_a_broker_with_one_directory_is_kept_small(cluster3: Cluster) -> None:
    assert read(cluster3).stored == {}
