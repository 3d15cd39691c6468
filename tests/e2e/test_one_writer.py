"""Two applies at once from the shell, the death and the freezing of one, and what is recorded."""

from __future__ import annotations

import getpass
import json
import signal
import socket
import subprocess
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from audit_topic import read_records
from command import TIMEOUT_S
from proxy import CREATE_TOPICS, Loss
from shell import VALIDATIONS, Shell, told

if TYPE_CHECKING:
    from proxy import FailingNetwork, Fault


WHO = f"{getpass.getuser()}@{socket.gethostname()}"


@pytest.fixture
def wish(shell: Shell, topic_prefix: str) -> Callable[[int], None]:
    """Write the spec of a topic."""

    def write(partitions: int, name: str = "old") -> None:
        text = f"topic: {topic_prefix}{name}\npartitions: {partitions}\nreplication_factor: 2\n"
        shell.write(f"{name}.yaml", text)

    return write


@pytest.fixture
def held(
    shell: Shell, wish: Callable[..., None], network: FailingNetwork
) -> tuple[subprocess.Popen[str], Fault]:
    """Start an apply that holds the lock, and waits to hear that `new` is created."""
    wish(2)
    assert shell.apply()[0] == 0
    wish(3)
    wish(2, "new")
    fault = network.lose(CREATE_TOPICS, Loss.HELD, skip=VALIDATIONS)
    process = shell.start_apply(network.bootstrap_servers)
    assert fault.struck.wait(TIMEOUT_S)
    return process, fault


Held = tuple["subprocess.Popen[str]", "Fault"]


def test_the_second_is_refused_and_told_who_is_first(shell: Shell, held: Held) -> None:
    first, fault = held
    code, out, err = shell.apply("--lock-timeout", "0")
    assert (code, told(out)) == (1, {})
    assert err.startswith(f"error: lab is locked by {WHO} (process {first.pid}) since 20")
    assert err.endswith("within 10s [lock-held]\n")
    fault.released.set()
    out, _ = first.communicate(timeout=TIMEOUT_S)
    assert (first.returncode, told(out)) == (0, {"new": "done", "old": "done"})
    ends = [line["ended"] for line in shell.lines() if line["type"] == "applied"]
    assert ends == ["done", "locked", "done"]


def test_the_second_waits_and_finds_it_done(shell: Shell, held: Held) -> None:
    first, fault = held
    second = shell.start_apply("", "--lock-timeout", "1min")
    assert second.stderr is not None
    said = second.stderr.readline()
    assert said.startswith(f"waiting up to 1min for {WHO} (process {first.pid}) since 20")
    fault.released.set()
    first.communicate(timeout=TIMEOUT_S)
    out, err = second.communicate(timeout=TIMEOUT_S)
    assert (second.returncode, err) == (0, "")
    assert told(out) == {"old": "already done"}


@pytest.mark.slow
def test_without_a_lock_nobody_is_waited_for(shell: Shell, held: Held) -> None:
    first, fault = held
    code, out, _ = shell.apply("--no-lock")
    assert (code, told(out)["old"]) == (0, "done")
    fault.released.set()
    first.communicate(timeout=TIMEOUT_S)


@pytest.mark.parametrize("text", ["soon", "10 parsecs", "-1"])
def test_a_timeout_that_is_no_duration_is_a_usage_error(shell: Shell, text: str) -> None:
    code, _, err = shell.apply("--lock-timeout", text)
    assert code == 64
    assert "--lock-timeout" in err


@pytest.mark.slow
def test_the_lock_of_a_killed_run_goes_by_itself(shell: Shell, held: Held) -> None:
    first, fault = held
    first.kill()
    first.communicate()
    fault.released.set()
    code, out, _ = shell.apply()
    assert (code, told(out)) == (0, {"old": "done"})


@pytest.mark.slow
def test_a_run_that_was_frozen_past_its_session_sends_nothing_more(
    shell: Shell, held: Held, wish: Callable[..., None]
) -> None:
    """Another one applies meanwhile; what the first would do next would undo no word of it."""
    first, fault = held
    first.send_signal(signal.SIGSTOP)
    wish(4)
    code, out, _ = shell.apply("--lock-timeout", "30s")
    assert (code, told(out)["old"]) == (0, "done")
    fault.released.set()
    first.send_signal(signal.SIGCONT)
    out, err = first.communicate(timeout=TIMEOUT_S)
    assert (first.returncode, told(out)["old"]) == (1, "not attempted")
    assert "stopped, since the lock of lab is lost: its session ran out, before its turn" in out
    assert err == (
        "error: the lock of lab is lost: its session ran out; "
        "check what another run changed, then plan again [lock-lost]\n"
    )
    ends = [line["ended"] for line in shell.lines() if line["type"] == "applied"]
    assert ends[-1] == "lock lost"


class TestAuditTopic:
    @pytest.fixture
    def topic(self, shell: Shell, topic_prefix: str) -> str:
        """Return the audit topic of the cluster, which has a spec."""
        name = f"{topic_prefix}audit"
        shell.write("audit.yaml", f"topic: {name}\npartitions: 1\nreplication_factor: 1\n")
        self.ask_for(shell, name)
        return name

    @staticmethod
    def ask_for(shell: Shell, name: str) -> None:
        text = f"version: 1\nclusters: {{lab: {{audit_topic: {name}}}}}\n"
        shell.write("clusters.yaml", text)

    def test_every_apply_leaves_a_record(
        self, shell: Shell, topic: str, wish: Callable[..., None]
    ) -> None:
        """The first one creates the topic that its record goes to."""
        assert shell.apply()[0] == 0
        wish(2)
        assert shell.apply()[0] == 0
        first, second = read_records(shell.servers, topic, 2)
        assert first["topics"] == {topic: "done"}
        assert (second["ended"], second["steps"]) == ("done", {"create": 1})
        kept = [line for line in shell.lines() if line["type"] == "applied"]
        assert [line["fingerprint"] for line in kept] == [
            first["fingerprint"],
            second["fingerprint"],
        ]

    @pytest.mark.slow
    def test_a_refused_apply_leaves_one_as_well(
        self, shell: Shell, topic: str, wish: Callable[..., None]
    ) -> None:
        assert shell.apply()[0] == 0
        wish(2)
        assert shell.run("plan", "--cluster", "lab", "--out", "plan.json")[0] == 0
        assert shell.apply()[0] == 0
        wish(3)
        assert shell.apply()[0] == 0
        assert shell.run("apply", "plan.json", "--auto-approve")[0] == 1
        assert [record["ended"] for record in read_records(shell.servers, topic, 4)] == [
            *["done"] * 3,
            "stale",
        ]

    def test_a_missing_topic_is_refused_before_anything_is_done(
        self, shell: Shell, topic_prefix: str, wish: Callable[..., None]
    ) -> None:
        self.ask_for(shell, f"{topic_prefix}nowhere")
        wish(2)
        code, out, err = shell.apply()
        assert (code, told(out)) == (1, {})
        assert err.endswith(
            f"audit_topic {topic_prefix}nowhere is not on lab, so apply would refuse this plan; "
            "write a spec for it and plan it as well, or remove audit_topic [audit-topic]\n"
            "error: nothing was done\n"
        )

    def test_a_topic_that_is_missing_since_the_plan_is_refused_as_well(
        self, shell: Shell, topic_prefix: str, wish: Callable[..., None]
    ) -> None:
        wish(2)
        assert shell.run("plan", "--cluster", "lab", "--out", "plan.json")[0] == 0
        self.ask_for(shell, f"{topic_prefix}nowhere")
        code, out, err = shell.run("apply", "plan.json", "--auto-approve")
        assert (code, told(out)) == (1, {})
        assert err.endswith(
            f"audit_topic {topic_prefix}nowhere is not on lab; write a spec for it and apply that "
            "first, or remove audit_topic [audit-topic]\n"
        )

    def test_a_record_that_the_topic_does_not_take_is_printed(
        self, shell: Shell, topic: str, wish: Callable[..., None]
    ) -> None:
        text = f"topic: {topic}\npartitions: 1\nreplication_factor: 1\n"
        shell.write("audit.yaml", text + "config: {max.message.bytes: 100}\n")
        wish(2)
        code, out, err = shell.apply()
        assert (code, told(out)) == (1, {"audit": "done", "old": "done"}), err
        record, _, error = err.partition("\n")
        assert json.loads(record)["ended"] == "audit lost"
        assert [line["ended"] for line in shell.lines() if line["type"] == "applied"] == [
            "audit lost"
        ]
        assert error.startswith(f"error: audit_topic {topic} does not take the record of this")
        assert error.endswith("keep the record that is printed here instead [audit-lost]\n")
