"""Signals that come again, or when the work is over: they cut waits short, and no report."""

from __future__ import annotations

import importlib
import json
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from command import TIMEOUT_S
from proxy import CREATE_TOPICS, Loss
from shell import VALIDATIONS, Shell, told

from reconciler.cli.app import run

if TYPE_CHECKING:
    from proxy import FailingNetwork

    Wish = Callable[[str], None]

PRODUCE, LEAVE_GROUP = 0, 13

MOMENTS = {
    "judge": "reconciler.apply.engine:judge_outcome",
    "leave": "reconciler.kafka.group:Membership.leave",
    "unlock": "reconciler.kafka.group:GroupClient.close",
    "record": "reconciler.kafka.writer:write_audit_record",
    "close": "reconciler.kafka.connection:Connection.close",
}
"""What is called once the work is over, in this order."""


@pytest.fixture
def wish(shell: Shell, topic_prefix: str) -> Wish:
    """Write the spec of a topic; the audit topic of the cluster has one, and is there."""

    def write(name: str) -> None:
        counts = "partitions: 2\nreplication_factor: 2"
        shell.write(f"{name}.yaml", f"topic: {topic_prefix}{name}\n{counts}\n")

    write("audit")
    shell.write(
        "clusters.yaml", f"version: 1\nclusters: {{lab: {{audit_topic: {topic_prefix}audit}}}}\n"
    )
    assert shell.apply()[0] == 0
    return write


def last_end(shell: Shell) -> tuple[str, dict[str, int]]:
    """Return how the journal says that the last run ended, and its outcomes."""
    line: Any = [line for line in shell.lines() if line["type"] == "applied"][-1]
    return line["ended"], line["outcomes"]


@pytest.mark.parametrize(
    "moments",
    [*(pytest.param((each,), marks=pytest.mark.slow) for each in MOMENTS), tuple(MOMENTS)],
)
def test_signals_once_the_work_is_over_change_no_word_of_what_was_done(
    moments: tuple[str, ...],
    shell: Shell,
    wish: Wish,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    wish("new")
    over: list[str] = []

    def interrupt(moment: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any, **named: Any) -> Any:
            if moment in over or not (over or moment == "judge"):
                return call(*arguments, **named)
            over.append(moment)
            if moment not in moments:
                return call(*arguments, **named)
            if moment != "record":  # what is closed is closed
                call(*arguments, **named)
            return signal.raise_signal(signal.SIGINT)

        return called

    for moment, place in MOMENTS.items():
        module, _, name = place.partition(":")
        holder: Any = importlib.import_module(module)
        for part in name.split(".")[:-1]:
            holder = getattr(holder, part)
        name = name.rpartition(".")[2]
        monkeypatch.setattr(holder, name, interrupt(moment, getattr(holder, name)))
    monkeypatch.chdir(shell.directory)
    servers = ("--bootstrap-servers", shell.servers)
    journal = ("--journal", str(shell.journal))
    code = run(["apply", "--cluster", "lab", "--auto-approve", *servers, *journal])
    out, err = capsys.readouterr()
    assert over == list(MOMENTS), err
    assert told(out) == {"new": "done"}
    if "record" in moments:
        assert (code, out.splitlines()[-1]) == (1, "Audit lost. Applied: 1 done")
        assert last_end(shell) == ("audit lost", {"done": 1})
        assert json.loads(err.splitlines()[0])["outcomes"] == {"done": 1}
    else:
        assert (code, out.splitlines()[-1], err) == (0, "Applied: 1 done", "")
        assert last_end(shell) == ("done", {"done": 1})


@pytest.mark.parametrize(
    ("api", "second"),
    [
        (LEAVE_GROUP, signal.SIGINT),
        pytest.param(LEAVE_GROUP, signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param(PRODUCE, signal.SIGINT, marks=pytest.mark.slow),
        (PRODUCE, signal.SIGTERM),
    ],
)
def test_a_second_signal_while_an_interrupted_run_is_wound_up_changes_nothing(
    api: int, second: signal.Signals, shell: Shell, wish: Wish, network: FailingNetwork
) -> None:
    """The brokers answer again once both have come: the record is kept all the same."""
    wish("new")
    created = network.lose(CREATE_TOPICS, Loss.HELD, skip=VALIDATIONS)
    after = network.lose(api, Loss.HELD, skip=0)
    process = shell.start_apply(network.bootstrap_servers)
    assert created.struck.wait(TIMEOUT_S)
    process.send_signal(signal.SIGINT)
    created.released.set()
    assert after.struck.wait(TIMEOUT_S)
    process.send_signal(second)
    after.released.set()
    out, err = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, told(out), err) == (130, {"new": "done"}, "")
    assert out.endswith("\nInterrupted. Applied: 1 done\n")
    assert last_end(shell) == ("interrupted", {"done": 1})
