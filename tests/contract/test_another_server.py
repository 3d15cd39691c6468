"""A server that is not Apache Kafka's code: configs of a service, and requests that it lacks.

franz-go's kfake takes any config on a topic, as a service with configs of its own does.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from command import run_here
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType
from proxy import ALTER_CONFIGS, FailingNetwork

from reconciler.moves.running import rows

if TYPE_CHECKING:
    from command import Ran

    from reconciler.sandbox.cluster import Cluster

pytestmark = pytest.mark.workflows

SERVER = "kfake-server"
REMOTE = "redpanda.remote.read"
DAY = "86400000"
PLAIN = "version: 1\nclusters: {lab: {}}\n"
KNOWN = f"version: 1\nclusters: {{lab: {{known_configs: [retention.ms, {REMOTE}]}}}}\n"
MOVING = (
    "version: 1\nclusters: {lab: {moves: {allow: [replication], rate: unlimited, keep_free: 0%}}}\n"
)
BY_BROKERS = "version: 1\nclusters: {lab: {placement: broker}}\n"


class Server:
    """The server, what is set on its topics, and the command line before it."""

    def __init__(self, servers: str) -> None:
        self._servers = servers
        self._admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})

    def offer_less(self) -> FailingNetwork:
        """Return a proxy before the server that can leave requests out."""
        addresses = SimpleNamespace(addresses=lambda _: {0: self._servers})
        return FailingNetwork(cast("Cluster", addresses))

    def create(self, *topics: str, **config: str) -> None:
        wanted = {key.replace("_", "."): value for key, value in config.items()}
        made = [NewTopic(topic, 2, 1, config=wanted) for topic in topics]
        for done in self._admin.create_topics(made).values():
            done.result(20)

    def overrides(self, topic: str) -> dict[str, str]:
        """Return what is set on a topic itself."""
        resource = ConfigResource(ResourceType.TOPIC, topic)
        entries = self._admin.describe_configs([resource])[resource].result(20)
        on_topic = 1
        return {key: e.value for key, e in entries.items() if e.source == on_topic}

    def run(self, directory: Path, *arguments: str) -> Ran:
        return run_here(directory, self._servers, *arguments)

    def apply(self, directory: Path, clusters: str, topics: str) -> str:
        """Plan and apply an estate; the next plan is empty. Returns the text of the first."""
        (directory / "topics").mkdir(exist_ok=True)
        (directory / "topics" / "clusters.yaml").write_text(clusters)
        (directory / "topics" / "topics.yaml").write_text(topics)
        planned = self.run(directory, "plan", "--cluster", "lab", "--out", "plan.json")
        assert planned.code == 0, planned
        applied = self.run(directory, "apply", "plan.json", "--auto-approve")
        assert applied.code == 0, applied
        again = self.run(directory, "plan", "--cluster", "lab", "--detailed-exitcode")
        assert again.code == 0, again
        return planned.out


@contextmanager
def start_server(brokers: int) -> Iterator[Server]:
    """Start the server, or skip by its name; `make test-workflows` builds it where Go is."""
    program = shutil.which(SERVER)
    if program is None:
        pytest.skip(f"{SERVER} is not installed")
    pipe = subprocess.PIPE
    with subprocess.Popen([program, str(brokers)], stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        yield Server(process.stdout.readline().strip())
        assert process.poll() is None, "the server ended in the middle of the tests"
        process.communicate(timeout=20)  # it ends with its input


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with start_server(brokers=1) as server:
        yield server


@pytest.fixture(scope="module")
def choosy() -> Iterator[Server]:
    """Of several brokers, the server chooses those of new partitions, whatever is asked for."""
    with start_server(brokers=3) as server:
        yield server


def test_a_config_that_no_spec_names_is_kept_and_named_once(server: Server, tmp_path: Path) -> None:
    names = ("kept.one", "kept.two")
    server.create(*names, retention_ms=DAY, redpanda_remote_read="true")
    for clusters, days in ((PLAIN, 2), (KNOWN, 3)):
        config = f"{{retention.ms: {days}d}}"
        specs = "---\n".join(f"topic: {name}\nconfig: {config}\n" for name in names)
        said = server.apply(tmp_path, clusters, specs)
        assert said.count(REMOTE) == 1
        assert f"note: {REMOTE} is set on kept.one, kept.two; " in said
        expected = {"retention.ms": str(days * int(DAY)), REMOTE: "true"}
        assert [server.overrides(name) for name in names] == [expected, expected]


def test_a_spec_sets_a_known_config_and_null_removes_it(server: Server, tmp_path: Path) -> None:
    server.create("told", retention_ms=DAY)
    spec = f"topic: told\nconfig: {{{REMOTE}: true}}\n"
    assert "not set → true" in server.apply(tmp_path, KNOWN, spec)
    assert server.overrides("told")[REMOTE] == "true"
    assert "true → unset" in server.apply(tmp_path, KNOWN, spec.replace("true", "null"))
    assert REMOTE not in server.overrides("told")


def test_a_new_topic_has_the_configs_of_its_spec(server: Server, tmp_path: Path) -> None:
    spec = "topic: new\npartitions: 2\nreplication_factor: 1\n"
    spec += f"config: {{retention.ms: 1d, {REMOTE}: true}}\n"
    server.apply(tmp_path, KNOWN, spec)
    assert server.overrides("new") == {"retention.ms": DAY, REMOTE: "true"}


def test_what_it_does_not_offer_is_named_and_the_rest_is_made(
    server: Server, tmp_path: Path
) -> None:
    server.create("held", retention_ms=DAY)
    (tmp_path / "topics").mkdir()
    (tmp_path / "topics" / "clusters.yaml").write_text(PLAIN)
    new = "topic: fresh\npartitions: 1\nreplication_factor: 1\n"
    held = "topic: held\nconfig: {retention.ms: 2d}\n---\n"
    (tmp_path / "topics" / "topics.yaml").write_text(held + new)
    with closing(server.offer_less()) as network:
        network.offer(ALTER_CONFIGS)
        apply = ("apply", "--cluster", "lab", "--auto-approve", "--skip-refused")
        ran = run_here(tmp_path, network.bootstrap_servers, *apply)
    assert "refused       held  the brokers do not offer IncrementalAlterConfigs, so" in ran.out
    assert "done          fresh\n" in ran.out
    assert server.overrides("held") == {"retention.ms": DAY}
    assert server.overrides("fresh") == {}


def test_an_import_writes_the_topic_and_names_what_it_leaves(
    server: Server, tmp_path: Path
) -> None:
    server.create("found", retention_ms=DAY, redpanda_remote_read="true")
    ran = server.run(tmp_path, "import", "topics", "--cluster", "lab", "--topic", "found")
    assert ran.code == 0, ran
    assert REMOTE in ran.out + ran.err
    written = "".join(path.read_text() for path in (tmp_path / "topics").rglob("*.yaml"))
    assert "found" in written
    assert REMOTE not in written


def test_moves_that_the_server_accepts_and_ignores_are_reported_as_that(
    choosy: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, brief_rates: None
) -> None:
    """It answers AlterPartitionReassignments without an error, and does nothing."""
    monkeypatch.setattr(rows, "SETTLED_S", 2.0)
    choosy.create("ignored")
    (tmp_path / "topics").mkdir()
    (tmp_path / "topics" / "clusters.yaml").write_text(MOVING)
    (tmp_path / "topics" / "topics.yaml").write_text("topic: ignored\nreplication_factor: 2\n")
    planned = choosy.run(tmp_path, "plan", "--moves", "--cluster", "lab", "--out", "plan.json")
    assert planned.code == 0, planned
    applied = choosy.run(tmp_path, "apply", "plan.json", "--auto-approve")
    assert applied.code == 1, applied
    assert "the brokers accepted the move, but never listed it: they ignored it" in applied.out
    assert "another tool or run" not in applied.out + applied.err


def write_placed(partitions: int) -> str:
    counts = f"partitions: {partitions}\nreplication_factor: 2\n"
    return f"topic: placed\n{counts}acknowledge: [ordering]\n"


def test_what_the_server_places_otherwise_is_done_and_named(choosy: Server, tmp_path: Path) -> None:
    estate = tmp_path / "topics"
    estate.mkdir()
    (estate / "clusters.yaml").write_text(PLAIN)
    (estate / "topics.yaml").write_text(write_placed(30))
    applied = choosy.run(tmp_path, "apply", "--cluster", "lab", "--auto-approve")
    assert applied.code == 0, applied
    assert "created, but the brokers placed it otherwise: partition " in applied.out
    assert "if they always do, write placement: broker below this cluster" in applied.out
    assert "Applied: 1 done" in applied.out
    again = choosy.run(tmp_path, "plan", "--cluster", "lab", "--detailed-exitcode")
    assert again.code == 0, again


def test_what_is_left_to_the_server_is_created_and_expanded(choosy: Server, tmp_path: Path) -> None:
    for partitions in (30, 60):
        spec = write_placed(partitions).replace("placed", "left")
        planned = choosy.apply(tmp_path, BY_BROKERS, spec)
        assert "by the brokers: 30 partitions × 2 replicas" in planned
