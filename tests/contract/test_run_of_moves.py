"""Plans of moves applied to real brokers, by the command line: data, throttles, kills."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer
from holding import NEWEST, SIZE, Holding
from lab import connect_to, create, wait_for

from reconciler.cli.app import run
from reconciler.kafka.reader import KafkaReader
from reconciler.model.cluster import ThrottleSide
from reconciler.model.moves import DefaultRate
from reconciler.model.steps import CreateTopic
from reconciler.sandbox.cluster import start_cluster

if TYPE_CHECKING:
    from moving import Moving

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("brief_rates")]


@pytest.fixture
def holding(moving: Moving) -> Iterator[Holding]:
    holding = Holding(moving.cluster, NEWEST)
    yield holding
    holding.mover.close()


@dataclass
class Estate:
    """An estate with one topic, and its plan of moves."""

    holding: Holding
    root: Path
    topic: str

    @property
    def plan(self) -> str:
        return str(self.root / "plan.json")

    def make_plan(self, wished: str, rate: str, more: str = "") -> None:
        self.write(rate, more)
        (self.root / "topics.yaml").write_text(f"topic: {self.topic}\n{wished}\n")
        planned = ["plan", str(self.root), "--cluster", "lab", "--moves", "--out", self.plan]
        assert run(planned) == 0

    def write(self, rate: str, more: str = "") -> None:
        client = f"{{bootstrap.servers: '{self.holding.cluster.bootstrap_servers}'}}"
        allow = f"{{allow: [replication, assignment], rate: {rate}, keep_free: 0%{more}}}"
        (self.root / "clusters.yaml").write_text(
            f"version: 1\nclusters:\n  lab:\n    client: {client}\n    moves: {allow}\n"
        )

    @property
    def command(self) -> list[str]:
        return ["apply", self.plan, "--estate", str(self.root), "--auto-approve"]

    def find_leftovers(self) -> list[object]:
        reading = self.holding.mover.read([self.topic])
        return [*reading.reassignments, *reading.rates, *reading.lists]


@pytest.fixture
def estate(holding: Holding, tmp_path: Path, topic_prefix: str) -> Estate:
    return Estate(holding, tmp_path, f"{topic_prefix}moved")


def test_a_topic_grows_without_refusing_a_write_and_nothing_is_left(
    estate: Estate, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topic, holding = estate.topic, estate.holding
    holding.create(topic, (1,), (2,), size=SIZE, min_insync_replicas="2")
    estate.make_plan("replication_factor: 3\nconfig: {min.insync.replicas: 2}", "4MiB")
    journal = tmp_path / "journal.jsonl"
    with holding.writing(topic, (0,), 200_000) as written:
        code = run([*estate.command, "--journal", str(journal)])
        wait_for(lambda: written() > 0)
    out = capsys.readouterr().out
    assert code == 0, out
    assert "2 done" in out
    assert estate.find_leftovers() == []
    partitions = holding.mover.read([]).partitions[topic]
    assert {len(each.replicas) for each in partitions} == {3}
    assert all(each.leader == each.replicas[0] for each in partitions)
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    assert {"apply", "moves", "step", "progress", "outcome", "applied"} == {
        line["type"] for line in lines
    }
    assert lines[-1]["moves"]["done"] == 2
    assert run([*estate.command]) == 0
    assert "already done" in capsys.readouterr().out


def test_a_killed_run_leaves_throttled_copies_that_the_same_command_ends(
    estate: Estate, capsys: pytest.CaptureFixture[str]
) -> None:
    topic, holding = estate.topic, estate.holding
    place = holding.create(topic, (1, 2), (2, 1), size=SIZE)
    estate.make_plan("assignment: {0: [1, 3], 1: [2, 4]}", "100KiB")
    program = [sys.executable, "-m", "reconciler", *estate.command]
    with subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as killed:
        wait_for(lambda: holding.find(place) is not None, 120)
        killed.send_signal(signal.SIGKILL)
    reading = holding.mover.read([topic])
    entries = {each.side: each.entries for each in reading.lists}
    assert "0:3" in entries[ThrottleSide.FOLLOWER]
    assert reading.default_rate == DefaultRate.of_moves(100 << 10)
    code = run([*estate.command, "--stop-after", "1s"])
    said = capsys.readouterr().out
    assert (code, holding.find(place) is not None) == (2, True), said
    assert "1 in flight" in said
    assert "reconciler moves settle --cluster lab" in said
    assert holding.mover.set_rate(50 << 20).error == ""
    assert run(estate.command) == 0
    assert holding.look(place).replicas == (1, 3)
    assert estate.find_leftovers() == []


def test_nothing_begins_that_would_end_too_late(
    estate: Estate, capsys: pytest.CaptureFixture[str]
) -> None:
    place = estate.holding.create(estate.topic, (1, 2), size=SIZE)
    estate.make_plan("assignment: {0: [1, 3]}", "10KiB")
    capsys.readouterr()
    assert run([*estate.command, "--stop-after", "1m"]) == 2
    assert "more than is left of --stop-after" in capsys.readouterr().out
    assert estate.holding.look(place).replicas == (1, 2)
    assert estate.find_leftovers() == []


def spell_window(begins_s: int, ends_s: int) -> str:
    """Return a key: the window from so many seconds after now to so many, by the minute."""
    now = datetime.now(UTC)
    begins, ends = (now + timedelta(seconds=each) for each in (begins_s, ends_s))
    return f", windows: {{w: {{from: '{begins:%H:%M}', to: '{ends:%H:%M}', zone: UTC}}}}"


def test_outside_its_window_nothing_begins_and_the_next_one_is_named(
    estate: Estate, capsys: pytest.CaptureFixture[str]
) -> None:
    place = estate.holding.create(estate.topic, (1, 2), size=SIZE)
    later, opens = spell_window(7200, 10800), datetime.now(UTC) + timedelta(hours=2)
    estate.make_plan("assignment: {0: [1, 3]}", "4MiB", later)
    capsys.readouterr()
    assert run(estate.command) == 1
    said = capsys.readouterr().err
    assert f"the next one opens {opens:%A %Y-%m-%d %H:}" in said, said
    assert "[moves-window]" in said
    assert estate.holding.look(place).replicas == (1, 2)
    assert estate.find_leftovers() == []
    # The approved plan is the same in another window.
    estate.write("4MiB", spell_window(-3600, 3600))
    assert run(estate.command) == 0
    assert estate.holding.look(place).replicas == (1, 3)


@pytest.mark.slow
def test_at_the_end_of_its_window_what_is_in_flight_ends_and_nothing_else_begins(
    estate: Estate,
) -> None:
    topic, holding = estate.topic, estate.holding
    holding.create(topic, (1, 2), (1, 2), size=4 * SIZE)
    places = [(topic, 0), (topic, 1)]
    window = spell_window(-3600, 120)
    closes = (datetime.now(UTC) + timedelta(seconds=120)).replace(second=0, microsecond=0)
    limits = f", at_once: {{cluster: 1}}{window}"
    estate.make_plan("assignment: {0: [1, 3], 1: [1, 3]}", "10KiB", limits)
    program = [sys.executable, "-m", "reconciler", *estate.command]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as running:
        wait_for(lambda: any(holding.find(place) for place in places), 120)
        wait_for(lambda: datetime.now(UTC) > closes + timedelta(seconds=2), 180)
        assert holding.mover.set_rate(50 << 20).error == ""
        said, _ = running.communicate()
    assert running.returncode == 2, said
    assert "the window of moves is over" in said
    assert sorted(holding.look(place).replicas for place in places) == [(1, 2), (1, 3)]
    assert estate.find_leftovers() == []


def test_internal_topics_with_one_replica_are_raised(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The lock of apply is a member of a group, so its own topic moves under it."""
    name, properties = "__consumer_offsets", {"offsets.topic.replication.factor": "1"}
    with start_cluster(brokers=3, properties=properties) as cluster, connect_to(cluster) as lab:
        consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "readers"})
        consumer.subscribe(["shop.orders"])
        reader = KafkaReader(lab)
        wait_for(lambda: bool(consumer.poll(0.1)) or name in reader.read_cluster().topics, 60)
        consumer.close()
        assert reader.read_cluster().topics[name].replication_factors == {1}
        create(lab, CreateTopic("shop.orders", ((1, 2, 3), (2, 3, 1)), {}))
        (tmp_path / "clusters.yaml").write_text(
            "version: 1\nclusters:\n  lab:\n"
            f"    client: {{bootstrap.servers: '{cluster.bootstrap_servers}'}}\n"
            "    internal_replication_factor: 3\n"
            "    moves: {allow: [replication], rate: unlimited, keep_free: 0%}\n"
        )
        (tmp_path / "topics.yaml").write_text("topic: shop.orders\npartitions: 2\n")
        plan, estate = str(tmp_path / "plan.json"), str(tmp_path)
        assert run(["plan", estate, "--cluster", "lab"]) == 0
        pending = f"internal_replication_factor 3 is pending for {name}"
        assert pending in " ".join(capsys.readouterr().out.split())
        assert run(["plan", estate, "--cluster", "lab", "--moves", "--out", plan]) == 0
        assert run(["apply", plan, "--estate", estate, "--auto-approve"]) == 0
        assert reader.read_cluster().topics[name].replication_factors == {3}
        assert run(["plan", estate, "--cluster", "lab", "--moves", "--detailed-exitcode"]) == 0
