"""No process of the sandbox outlives what it is for, however that came to its end."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reconciler.errors import SandboxError
from reconciler.sandbox.cluster import start_cluster
from reconciler.sandbox.paths import data_directory
from reconciler.sandbox.request import BrokerState

pytestmark = pytest.mark.cluster

GONE_WITHIN_S = 10

HOLDER = """
import json, os, signal, sys, time
from reconciler.sandbox.cluster import start_cluster
with start_cluster(**json.loads(sys.argv[1])) as cluster:
    if len(sys.argv) > 2:
        os.kill(cluster.process_ids[int(sys.argv[2])], signal.SIGSTOP)
    print(json.dumps(list(set(cluster.process_ids.values()))), flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep runs and records away from a sandbox that the developer may have up."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


@pytest.fixture
def hold() -> Iterator[object]:
    """Run a program that holds a cluster; it is ended with the test, if it has not ended before."""
    holders: list[subprocess.Popen[bytes]] = []

    def run(request: dict[str, object], *arguments: str) -> subprocess.Popen[bytes]:
        program = [sys.executable, "-c", HOLDER, json.dumps(request), *arguments]
        holder = subprocess.Popen(program, stdout=subprocess.PIPE)
        holders.append(holder)
        return holder

    yield run
    for holder in holders:
        holder.kill()
        holder.communicate()


def exists(pid: int) -> bool:
    """Tell whether a process is there; one that has ended and waits to be reaped is not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def children_of(pid: int) -> list[int]:
    found = []
    for directory in Path("/proc").iterdir():
        if directory.name.isdigit() and exists(int(directory.name)):
            parent = (directory / "stat").read_text().rpartition(")")[2].split()[1]
            if int(parent) == pid:
                found.append(int(directory.name))
    return found


def wait_until_gone(pids: list[int]) -> None:
    deadline = time.monotonic() + GONE_WITHIN_S
    while alive := [pid for pid in pids if exists(pid)]:
        assert time.monotonic() < deadline, f"still there: {alive}"
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("ending", "isolate"),
    [
        (signal.SIGKILL, True),
        pytest.param(signal.SIGKILL, False, marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, True, marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, False, marks=pytest.mark.slow),
    ],
)
def test_brokers_end_with_the_process_that_started_them(
    hold, isolate: bool, ending: signal.Signals
) -> None:
    holder = hold({"brokers": 2, "isolate": isolate})
    pids = json.loads(holder.stdout.readline())
    assert len(pids) == (3 if isolate else 1)
    assert all(exists(pid) for pid in pids)
    holder.send_signal(ending)
    wait_until_gone(pids)


@pytest.mark.slow
def test_a_frozen_broker_ends_with_the_process_that_started_it(hold) -> None:
    holder = hold({"brokers": 2, "isolate": True}, "2")
    pids = json.loads(holder.stdout.readline())
    holder.kill()
    wait_until_gone(pids)


def test_brokers_that_are_starting_end_with_the_process_that_started_them(hold) -> None:
    holder = hold({"brokers": 3})
    deadline = time.monotonic() + GONE_WITHIN_S
    while not (hosts := children_of(holder.pid)):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    holder.kill()
    wait_until_gone(hosts)


def test_a_run_leaves_its_logs_and_no_storage() -> None:
    with start_cluster(brokers=1) as cluster:
        assert (cluster.directory / "data").exists()
        pids = list(cluster.process_ids.values())
    assert not any(exists(pid) for pid in pids)
    assert not (cluster.directory / "data").exists()
    assert (cluster.directory / "brokers.log").stat().st_size > 0


@pytest.mark.slow
def test_the_next_run_removes_what_a_killed_one_stored(hold, tmp_path: Path) -> None:
    holder = hold({"brokers": 1})
    pids = json.loads(holder.stdout.readline())
    holder.kill()
    wait_until_gone([holder.pid, *pids])
    (left_behind,) = tmp_path.glob("reconciler/sandbox/runs/*/data")
    with start_cluster(brokers=1):
        assert not left_behind.exists()


@pytest.mark.slow
def test_brokers_whose_process_is_killed_are_reported_dead() -> None:
    with start_cluster(brokers=2) as cluster:
        os.kill(cluster.process_ids[1], signal.SIGKILL)
        deadline = time.monotonic() + GONE_WITHIN_S
        while cluster.process_ids:
            assert time.monotonic() < deadline
        statuses = cluster.statuses()
        assert {status.state for status in statuses} == {BrokerState.DEAD}
        log = cluster.directory / "brokers.log"
        assert f"brokers was ended by SIGKILL; its log: {log}" in statuses[0].reason
        with pytest.raises(SandboxError, match="start the whole cluster again"):
            cluster.start_broker(1)


@pytest.mark.slow
def test_a_broker_that_loses_its_storage_says_so() -> None:
    with start_cluster(brokers=2, isolate=True) as cluster:
        storage = cluster.directory / "data" / "broker-2"
        storage.rename(storage.with_name("elsewhere"))
        deadline = time.monotonic() + 60
        while cluster.statuses()[1].state is not BrokerState.DEAD:
            assert time.monotonic() < deadline
            provoke_writing(cluster.bootstrap_servers)
        first, second = cluster.statuses()
        assert first.state is BrokerState.RUNNING
        assert "all log dirs in" in second.reason
        assert str(cluster.directory / "broker-2.log") in second.reason


def provoke_writing(bootstrap_servers: str) -> None:
    """Create one more topic, which brokers 1 and 2 must store."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    name = f"t{time.monotonic_ns()}"
    topic = NewTopic(name, 1, replica_assignment=[[1, 2]])
    with contextlib.suppress(TimeoutError):  # the request may go to the broker that is dying
        admin.create_topics([topic])[name].exception(2)


@pytest.mark.slow
def test_neither_java_nor_anything_else_on_path_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with start_cluster(brokers=1) as cluster:
        assert cluster.statuses()[0].state is BrokerState.RUNNING


@pytest.fixture
def archive_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Callable[[], set[str]]]:
    """Have an archive of the test's own, and return how to see what there is of it."""
    pattern = f"{tmp_path.name}.*"
    monkeypatch.setattr("reconciler.sandbox.archive._name_archive", lambda _: tmp_path.name)
    yield lambda: {file.suffix for file in data_directory("archives").glob(pattern)}
    for file in data_directory("archives").glob(pattern):
        file.unlink()


@pytest.mark.slow
def test_it_starts_without_the_class_archive(
    monkeypatch: pytest.MonkeyPatch, archive_files: Callable[[], set[str]]
) -> None:
    def cannot_make(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("reconciler.sandbox.archive._make_archive", cannot_make)
    with start_cluster(brokers=1) as cluster:
        assert cluster.statuses()[0].state is BrokerState.RUNNING
    assert archive_files() == {".lock", ".failed"}


@pytest.mark.slow
def test_options_of_one_run_do_not_spoil_the_archive_of_all(
    archive_files: Callable[[], set[str]],
) -> None:
    with (
        pytest.raises(SandboxError, match="Unable to start JVM"),
        start_cluster(brokers=1, jvm_options=["-XX:NoSuchOption"]),
    ):
        pytest.fail("it started")
    assert archive_files() == {".lock", ".jsa"}


@pytest.mark.slow
def test_a_port_that_is_taken_is_the_reason(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        listeners = {"listeners": f"PLAINTEXT://{address}"}
        with (
            pytest.raises(SandboxError) as refusal,
            start_cluster(brokers=1, broker_properties={1: listeners}),
        ):
            pytest.fail("it started")
    assert f"Socket server failed to bind to {address}: Address already in use" in str(
        refusal.value
    )
    assert str(tmp_path) in str(refusal.value)  # its log


@pytest.mark.slow
def test_a_full_disk_is_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=48k", "none", str(small)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("a small file system needs the right to mount one")
    try:
        # The log lies elsewhere: on a full disk it would be cut before it tells.
        properties = {n: {"log.dirs": str(small / str(n))} for n in (1, 2, 3, 3000)}
        with (
            pytest.raises(SandboxError, match="No space left on device"),
            start_cluster(brokers=3, broker_properties=properties),
        ):
            pytest.fail("it started")
    finally:
        subprocess.run(["umount", str(small)], check=True)


@pytest.mark.slow
def test_a_host_tells_of_each_node_that_gets_on() -> None:
    with start_cluster(brokers=3) as cluster:
        (host,) = cluster._all_hosts()
        assert host.steps == 2 * 4  # formatted and started: three brokers and a controller
