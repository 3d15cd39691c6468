"""From an empty directory to the first topic, with the commands that `init` prints and no other."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import RECONCILER, TIMEOUT_S
from confluent_kafka.admin import AdminClient, NewTopic

from reconciler.sandbox.cluster import Cluster

pytestmark = pytest.mark.cluster

FOREIGN = ("_schemas", "connect-configs", "connect-offsets", "app-store-changelog")
OWN = ("orders.events", "orders.paid", "payments")


def run(directory: Path, *words: str, code: int = 0, **variables: str) -> str:
    """Run a command of a person, who approves what it asks. Returns what it showed."""
    done = subprocess.run(
        [*RECONCILER, *words],
        cwd=directory,
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def list_commands(said: str) -> list[list[str]]:
    """Return the commands of reconciler that remain, as a person types them."""
    lines = re.findall(r"^     reconciler (.*)$", said.partition("What remains")[2], re.MULTILINE)
    return [shlex.split(line) for line in lines]


def admin(cluster: Cluster) -> AdminClient:
    return AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})


@pytest.fixture
def own_sandbox(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Keep away from a sandbox that the developer may have up, and leave none behind."""
    state = {"XDG_STATE_HOME": str(tmp_path / "state")}
    yield state
    run(tmp_path, "sandbox", "down", **state)


def test_four_commands_lead_from_an_empty_directory_to_the_first_topic(
    tmp_path: Path, own_sandbox: dict[str, str]
) -> None:
    directory = tmp_path / "shop"
    directory.mkdir()
    commands = list_commands(run(directory, "init", **own_sandbox))
    assert len(commands) == 3
    up, plan, apply = commands
    run(directory, *up, **own_sandbox)
    assert "1 to create" in run(directory, *plan, **own_sandbox)
    assert "Applied: 1 done" in run(directory, *apply, "--auto-approve", **own_sandbox)
    assert "No changes." in run(directory, *plan, **own_sandbox)


def test_the_plan_of_what_a_cluster_has_is_empty_and_other_software_is_left_out(
    tmp_path: Path, quiet3: Cluster
) -> None:
    topics = [NewTopic(name, 2, 3) for name in (*OWN, *FOREIGN)]
    client = admin(quiet3)
    for future in client.create_topics(topics).values():
        future.result(timeout=15)
    where = f"lab={quiet3.bootstrap_servers}"
    said = run(tmp_path, "init", "--cluster", where, "--security", "plaintext", "--from-cluster")
    assert "3 topics imported; the next plan is empty" in said
    assert "4 topics of other software left out, by `ignore`" in said
    texts = "".join(path.read_text() for path in sorted((tmp_path / "topics").glob("*.yaml")))
    assert f"cluster_id: {quiet3.cluster_id}" in texts.replace('"', "")
    assert re.findall(r"^topic: (.*)$", texts, re.MULTILINE) == list(OWN)
    run(tmp_path, "plan", "--cluster", "lab", "--detailed-exitcode")


def test_doctor_checks_the_connection_the_id_and_the_rights(
    tmp_path: Path, quiet3: Cluster
) -> None:
    where = f"lab={quiet3.bootstrap_servers}"
    said = run(tmp_path, "init", "--cluster", where, "--security", "plaintext")
    assert "write cluster_id" not in said
    shown = run(tmp_path, "doctor", code=2)
    assert "ok       connection: 3 brokers" in shown
    assert f"ok       cluster_id: {quiet3.cluster_id}" in shown
    assert "ok       rights of this account to apply" in shown
    file = tmp_path / "topics" / "clusters.yaml"
    file.write_text(re.sub(r" +cluster_id: .*\n", "", file.read_text()))
    shown = run(tmp_path, "doctor", code=2)
    assert f"write cluster_id: {quiet3.cluster_id} below lab" in shown
