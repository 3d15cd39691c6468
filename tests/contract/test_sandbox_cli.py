"""`reconciler sandbox`, from the shell: what a person sees, and what is left afterwards."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from kafka.admin import KafkaAdminClient

from reconciler.sandbox.record import running_sandbox

pytestmark = pytest.mark.cluster

RECONCILER = (sys.executable, "-c", "from reconciler.cli import main; main()")
GONE_WITHIN_S = 20


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Keep away from a sandbox that the developer may have up, and leave none behind."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    yield
    run("down")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `reconciler sandbox …` and return what it said."""
    program = [*RECONCILER, "sandbox", *arguments]
    return subprocess.run(program, capture_output=True, text=True, check=False, timeout=180)


def start(*arguments: str, **options: object) -> subprocess.Popen[str]:
    program = [*RECONCILER, "sandbox", *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(program, text=True, **pipes, **options)


def descendants_in(state: Path) -> list[int]:
    """Return the supervisors and hosts that work for this test: they have its state directory."""
    found = []
    for directory in Path("/proc").iterdir():
        try:
            environment = (directory / "environ").read_bytes().split(b"\0")
            command = (directory / "cmdline").read_bytes()
        except OSError:
            continue
        if f"XDG_STATE_HOME={state}".encode() in environment and (
            b"supervisor" in command or b"host.py" in command
        ):
            found.append(int(directory.name))
    return found


def wait_until_gone(state: Path) -> None:
    deadline = time.monotonic() + GONE_WITHIN_S
    # A process that is just dying shows its environment no more, but still holds its lock.
    while (left := descendants_in(state)) or running_sandbox() is not None:
        assert time.monotonic() < deadline, f"still there: {left}"
        time.sleep(0.05)


def test_up_status_down(tmp_path: Path) -> None:
    up = run("up", "--brokers", "2", "--racks", "2")
    assert up.returncode == 0, up.stderr
    record = running_sandbox()
    assert record is not None
    assert f"bootstrap servers  {record.bootstrap_servers}\n" in up.stdout
    assert re.match(
        r"sandbox · Kafka 4\.4\.0 · 2 brokers in 2 racks · embedded · ready in \d+\.\d s\n",
        up.stdout,
    )
    admin = AdminClient({"bootstrap.servers": record.bootstrap_servers})
    described = admin.describe_cluster().result(30)
    assert described.cluster_id == record.cluster_id
    assert {node.id: node.rack for node in described.nodes} == {1: "rack0", 2: "rack1"}

    again = run("up")
    assert again.returncode == 1
    assert again.stderr == (
        "error: a sandbox of 2 brokers in 2 racks runs already;"
        " `reconciler sandbox status` shows it, `reconciler sandbox down` ends it\n"
    )

    stopped = run("stop-broker", "2")
    assert re.search(r"^  2 +rack1  127\.0\.0\.1:\d+ +stopped$", stopped.stdout, re.MULTILINE)
    assert "1 of 2 brokers running" in run("status").stdout
    started = run("start-broker", "2")
    assert re.search(r"^  2 +rack1  127\.0\.0\.1:\d+ +running$", started.stdout, re.MULTILINE)

    down = run("down")
    assert (down.returncode, down.stdout) == (0, "The sandbox was removed.\n")
    wait_until_gone(tmp_path)
    again = run("down")
    assert (again.returncode, again.stdout) == (0, "No sandbox runs.\n")
    assert running_sandbox() is None


def test_without_a_sandbox_the_way_out_is_named() -> None:
    for arguments in (["status"], ["stop-broker", "1"], ["start-broker", "1"]):
        answer = run(*arguments)
        assert answer.returncode == 1
        assert answer.stderr == "error: no sandbox runs; `reconciler sandbox up` starts one\n"


@pytest.mark.slow
def test_like_takes_ids_and_racks_from_a_snapshot(tmp_path: Path) -> None:
    snapshot = tmp_path / "snapshot.json"
    brokers = [{"id": 30, "rack": "eu-1ß"}, {"id": 4, "rack": None}]
    snapshot.write_text(json.dumps({"format_version": "1.0", "brokers": brokers, "topics": []}))
    up = run("up", "--like", str(snapshot))
    assert up.returncode == 0, up.stderr
    record = running_sandbox()
    assert record is not None
    admin = AdminClient({"bootstrap.servers": record.bootstrap_servers})
    nodes = admin.describe_cluster().result(30).nodes
    assert {node.id: node.rack for node in nodes} == {4: None, 30: "eu-1ß"}


@pytest.mark.parametrize(
    ("ending", "processes", "pause_s"),
    [
        (signal.SIGINT, 2, 0.4),
        (signal.SIGKILL, 1, 0),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (
                (signal.SIGINT, 1, 0),
                (signal.SIGINT, 2, 0),
                (signal.SIGINT, 2, 0.8),
                (signal.SIGKILL, 2, 0),
                (signal.SIGKILL, 2, 0.4),
                (signal.SIGKILL, 2, 0.8),
            )
        ),
    ],
)
def test_interrupted_while_starting_it_leaves_nothing(
    tmp_path: Path, processes: int, pause_s: float, ending: signal.Signals
) -> None:
    up = start("up", "--brokers", "6", process_group=0)
    deadline = time.monotonic() + GONE_WITHIN_S
    while len(descendants_in(tmp_path)) < processes:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(pause_s)
    os.killpg(up.pid, ending)
    output, messages = up.communicate(timeout=GONE_WITHIN_S)
    assert up.returncode == (130 if ending is signal.SIGINT else -signal.SIGKILL)
    assert not output
    assert "Traceback" not in messages
    wait_until_gone(tmp_path)
    assert not list(tmp_path.glob("reconciler/sandbox/runs/*/data"))


@pytest.mark.slow
def test_a_killed_supervisor_takes_its_brokers_along_and_leaves_no_claim(tmp_path: Path) -> None:
    assert run("up", "--brokers", "1").returncode == 0
    record = running_sandbox()
    assert record is not None
    os.kill(record.pid, signal.SIGKILL)
    wait_until_gone(tmp_path)
    for _ in range(2):
        status = run("status")
        assert status.returncode == 1
        assert status.stderr == (
            "error: the sandbox of 1 broker in 1 rack was lost: its supervisor, process"
            f" {record.pid}, was killed or the machine restarted, and its brokers ended with it;"
            f" its logs: {record.directory}; `reconciler sandbox up` starts another\n"
        )
    assert run("up", "--brokers", "1").returncode == 0
    assert "1 of 1 brokers running" in run("status").stdout


def test_a_lost_sandbox_is_forgotten_once_it_is_taken_down() -> None:
    assert run("up", "--brokers", "1").returncode == 0
    record = running_sandbox()
    assert record is not None
    os.kill(record.pid, signal.SIGKILL)
    wait_until_gone(Path(os.environ["XDG_STATE_HOME"]))
    down = run("down")
    assert (down.returncode, down.stdout) == (0, "No sandbox runs.\n")
    assert run("status").stderr == "error: no sandbox runs; `reconciler sandbox up` starts one\n"


def test_a_failed_start_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    up = run("up", "--brokers", "2", "--racks", "3")
    assert (up.returncode, up.stderr) == (64, "error: 2 brokers cannot fill 3 racks\n")
    assert "the sandbox does not run Kafka '0.9'" in run("up", "--kafka", "0.9").stderr
    assert not descendants_in(tmp_path)


@pytest.mark.slow
def test_a_dead_broker_is_shown_with_its_reason() -> None:
    assert run("up", "--brokers", "2", "--isolate").returncode == 0
    record = running_sandbox()
    assert record is not None
    kill_writer_of("broker-2.log", record.pid)
    status = run("status").stdout
    assert "1 of 2 brokers running" in status
    assert re.search(
        r"^  2 .* dead +broker-2 was ended by SIGKILL; its log: ", status, re.MULTILINE
    )
    assert run("start-broker", "2").returncode == 0
    status = run("status").stdout
    assert "2 of 2 brokers running" in status
    assert re.search(r"^  controller 3000 .* active$", status, re.MULTILINE)
    kill_writer_of("controller-3000.log", record.pid)
    status = run("status").stdout
    assert re.search(
        r"^  controller 3000 .* dead +controller-3000 was ended by SIGKILL; its log: ",
        status,
        re.MULTILINE,
    )


@pytest.mark.slow
def test_a_quorum_is_shown_with_its_active_controller(tmp_path: Path) -> None:
    up = run("up", "--brokers", "2", "--controllers", "3")
    assert up.returncode == 0, up.stderr
    assert "2 brokers in 2 racks, 3 controllers · embedded" in up.stdout
    status = run("status").stdout
    states = re.findall(r"^  controller (300\d)  –  .* (\w+)$", status, re.MULTILINE)
    assert [node for node, _ in states] == ["3000", "3001", "3002"]
    assert sorted(state for _, state in states) == ["active", "running", "running"]
    assert run("down").returncode == 0
    wait_until_gone(tmp_path)


def test_brokers_have_as_many_log_directories_as_asked_for(tmp_path: Path) -> None:
    up = run("up", "--brokers", "1", "--log-dirs", "3")
    assert up.returncode == 0, up.stderr
    record = running_sandbox()
    assert record is not None
    client = KafkaAdminClient(bootstrap_servers=record.bootstrap_servers)
    try:
        (told,) = client.describe_log_dirs(brokers=[1])
    finally:
        client.close()
    assert len({each["log_dir"] for each in told["log_dirs"]}) == 3
    assert run("down").returncode == 0
    wait_until_gone(tmp_path)


def test_several_controllers_are_for_the_embedded_engine() -> None:
    up = run("up", "--controllers", "3", "--engine", "container")
    assert up.returncode == 64
    assert "--controllers is for --engine embedded" in up.stderr


def kill_writer_of(log: str, supervisor: int) -> None:
    """Kill the process that keeps a log, as the system's memory guard might."""
    for process in descendants_in(Path(os.environ["XDG_STATE_HOME"])):
        if process != supervisor and Path(f"/proc/{process}/fd/1").readlink().name == log:
            os.kill(process, signal.SIGKILL)
