"""No container of the sandbox outlives what it is for."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka_image import find_image

from reconciler.errors import SandboxError
from reconciler.sandbox.cluster import start_cluster
from reconciler.sandbox.docker_engine import RUN_LABEL, find_docker, label_run

pytestmark = pytest.mark.cluster

GONE_WITHIN_S = 20

HOLDER = """
import sys, time
from reconciler.sandbox.cluster import start_cluster
with start_cluster(brokers=1, engine="container", image=sys.argv[1]) as cluster:
    print(cluster.directory, flush=True)
    time.sleep(600)
"""


@pytest.fixture(scope="module")
def image() -> str:
    return find_image()


@pytest.fixture
def docker(image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A client of the Docker engine, in a state directory of the test's own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    client = find_docker()
    yield client
    client.close()


def left_of(client: Any, directory: str) -> list[Any]:
    wanted = {"label": f"{RUN_LABEL}={directory}"}
    containers = client.containers.list(all=True, filters=wanted, ignore_removed=True)
    return [*containers, *client.networks.list(filters=wanted)]


def test_containers_end_with_the_process_that_started_them(docker: Any, image: str) -> None:
    program = [sys.executable, "-c", HOLDER, image]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        directory = holder.stdout.readline().strip()
        assert len(left_of(docker, directory)) == 3  # a broker, the controller and their network
        holder.kill()
    deadline = time.monotonic() + GONE_WITHIN_S
    while left := left_of(docker, directory):
        assert time.monotonic() < deadline, f"still there: {left}"
        time.sleep(0.1)


def test_the_next_run_sweeps_what_escaped(docker: Any, image: str, tmp_path: Path) -> None:
    labels = label_run(tmp_path / "a-run-that-is-no-more")
    escaped = docker.containers.create(image, labels=labels)
    network = docker.networks.create("reconciler-escaped", labels=labels)
    with start_cluster(brokers=1, engine="container", image=image) as cluster:
        assert escaped.id not in {c.id for c in docker.containers.list(all=True)}
        assert network.id not in {n.id for n in docker.networks.list()}
        assert left_of(docker, str(cluster.directory))
    assert not left_of(docker, str(cluster.directory))


def test_ports_are_published_on_loopback_only(docker: Any, image: str) -> None:
    with start_cluster(brokers=1, engine="container", image=image) as cluster:
        containers = docker.containers.list(filters={"label": f"{RUN_LABEL}={cluster.directory}"})
        bindings = [b for c in containers for b in c.ports.values() if b]
        assert {binding["HostIp"] for each in bindings for binding in each} == {"127.0.0.1"}
        assert json.dumps(bindings).count(cluster.addresses()[1].split(":")[1]) == 1


def test_an_image_that_cannot_be_had_is_reported(docker: Any) -> None:
    with (
        pytest.raises(SandboxError, match="cannot start the containers"),
        start_cluster(brokers=1, engine="container", image="localhost:1/no/such:image"),
    ):
        pytest.fail("it started")
