"""`reconciler apply` from the shell: interrupted, killed, run again, and what it writes down."""

from __future__ import annotations

import re
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from command import TIMEOUT_S
from proxy import CREATE_TOPICS, Loss
from shell import VALIDATIONS, Shell, told

from reconciler.cli.app import run
from reconciler.cli.journal import Journal
from reconciler.run.events import StepAnswered
from reconciler.sandbox.cluster import start_cluster

if TYPE_CHECKING:
    from proxy import FailingNetwork

METADATA = 3


@pytest.fixture
def wish(shell: Shell, topic_prefix: str) -> Callable[..., None]:
    """Write specs of `old` and, where asked for, of `new`."""

    def write(old: int, *, new: bool = False, retention: str = "1d") -> None:
        counts = f"partitions: {old}\nreplication_factor: 2\nconfig: {{retention.ms: {retention}}}"
        shell.write("old.yaml", f"topic: {topic_prefix}old\n{counts}\n")
        if new:
            counts = "partitions: 2\nreplication_factor: 2"
            shell.write("new.yaml", f"topic: {topic_prefix}new\n{counts}\n")

    return write


def test_a_plan_is_saved_approved_applied_and_found_done(
    shell: Shell, wish: Callable[..., None], topic_prefix: str
) -> None:
    wish(3, new=True)
    assert shell.run("plan", "--cluster", "lab", "--out", "plan.json")[0] == 0
    saved = ("apply", "plan.json", "--auto-approve")
    code, out, err = shell.run(*saved)
    assert (code, told(out), err) == (0, {"new": "done", "old": "done"}, "")
    code, out, err = shell.run(*saved)
    assert (code, told(out), err) == (0, {"new": "already done", "old": "already done"}, "")
    assert shell.run("plan", "--cluster", "lab", "--detailed-exitcode")[0] == 0
    wish(4)
    assert shell.run("plan", "--cluster", "lab", "--detailed-exitcode")[0] == 2
    assert shell.apply()[0] == 0
    code, out, err = shell.run(*saved)
    assert code == 1
    assert err == (
        f"error: topics/old.yaml:1:8: {topic_prefix}old: it was created since "
        "the plan was made with 4 partitions (planned: 3); plan again [plan-stale]\n"
    )


def test_the_journal_holds_every_step_and_outcome(
    shell: Shell, wish: Callable[..., None], topic_prefix: str
) -> None:
    wish(3)
    assert shell.apply()[0] == 0
    wish(4, new=True, retention="2d")
    assert shell.apply()[0] == 0
    steps = [line for line in shell.lines() if line["type"] == "step"]
    phases = [(line["phase"], line["topic"].removeprefix(topic_prefix)) for line in steps]
    assert sorted(phases) == [
        ("configure", "old"),
        ("create", "new"),
        ("create", "old"),
        ("expand", "old"),
        ("validate", "new"),
        ("validate", "old"),
        ("validate", "old"),
        ("validate", "old"),
        ("verify", "new"),
        ("verify", "old"),
        ("verify", "old"),
    ]
    assert {line["kind"] for line in steps} == {"accepted"}
    outcomes = [line for line in shell.lines() if line["type"] == "outcome"]
    assert [(line["topic"].removeprefix(topic_prefix), line["kind"]) for line in outcomes] == [
        ("old", "done"),
        ("new", "done"),
        ("old", "done"),
    ]


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_an_interrupt_ends_in_a_true_report_and_the_rest_is_done_later(
    shell: Shell,
    wish: Callable[..., None],
    network: FailingNetwork,
    number: signal.Signals,
) -> None:
    """The interrupt comes while the brokers create the first of two topics."""
    wish(3)
    assert shell.apply()[0] == 0
    wish(4, new=True, retention="2d")
    fault = network.lose(CREATE_TOPICS, Loss.HELD, skip=VALIDATIONS)
    process = shell.start_apply(network.bootstrap_servers)
    assert fault.struck.wait(TIMEOUT_S)
    process.send_signal(number)
    fault.released.set()
    out, err = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, told(out)) == (130, {"new": "done", "old": "not attempted"})
    assert "interrupted before its turn" in out
    assert out.endswith("\nInterrupted. Applied: 1 done, 1 not attempted\n")
    assert "Traceback" not in err
    code, out, _ = shell.apply()
    assert (code, told(out)) == (0, {"old": "done"})
    assert [line["ended"] for line in shell.lines() if line["type"] == "applied"] == [
        "done",
        "interrupted",
        "done",
    ]


def test_an_interrupt_does_not_wait_for_an_answer_that_never_comes(
    shell: Shell, wish: Callable[..., None], network: FailingNetwork
) -> None:
    wish(3, new=True)
    fault = network.lose(CREATE_TOPICS, Loss.SILENT_AFTER, skip=VALIDATIONS)
    process = shell.start_apply(network.bootstrap_servers)
    assert fault.struck.wait(TIMEOUT_S)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=20)
    # The brokers have it: that is looked up, and said.
    assert (process.returncode, told(out)) == (130, {"new": "done", "old": "done"})


@pytest.mark.slow
def test_brokers_that_are_gone_before_all_show_the_result_end_the_run_as_an_error(
    shell: Shell,
    wish: Callable[..., None],
    network: FailingNetwork,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """All that the run leaves behind says so: exit code, last line, stderr and journal."""
    wish(3)
    observe = Journal.observe

    def cut_off(journal: Journal, answered: StepAnswered) -> None:
        observe(journal, answered)
        if answered.phase == "create":
            network.close()

    monkeypatch.setattr(Journal, "observe", cut_off)
    monkeypatch.setattr("reconciler.kafka.connection.PAUSES_S", (0.1,))
    monkeypatch.chdir(shell.directory)
    servers = ("--bootstrap-servers", network.bootstrap_servers)
    journal = ("--journal", str(shell.journal))
    code = run(["apply", "--cluster", "lab", "--auto-approve", "--no-lock", *servers, *journal])
    out, err = capsys.readouterr()
    assert (code, told(out)) == (1, {"old": "done"})
    assert out.endswith("\nError. Applied: 1 done\n")
    assert "\nerror: " in err
    assert [line["ended"] for line in shell.lines() if line["type"] == "applied"] == ["error"]
    assert shell.apply("--no-lock")[0] == 0


def test_a_stale_plan_ends_in_a_line_of_its_own(shell: Shell, wish: Callable[..., None]) -> None:
    """The job summary of a workflow is the last line: it must not be the plan's."""
    wish(3)
    assert shell.run("plan", "--cluster", "lab", "--out", "plan.json")[0] == 0
    assert shell.apply()[0] == 0
    wish(4)
    assert shell.apply()[0] == 0
    code, out, _ = shell.run("apply", "plan.json", "--auto-approve")
    assert (code, out.splitlines()[-1]) == (1, "Stale. Nothing was changed.")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_while_the_plan_is_made_ends_without_a_traceback(
    shell: Shell, wish: Callable[..., None], network: FailingNetwork, number: signal.Signals
) -> None:
    wish(3)
    fault = network.lose(METADATA, Loss.HELD, skip=0)
    process = shell.start_apply(network.bootstrap_servers)
    assert fault.struck.wait(TIMEOUT_S)
    process.send_signal(number)
    fault.released.set()
    _, err = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, err.strip()) == (130, "error: interrupted")


def test_who_reads_no_further_does_not_change_the_exit_code(
    shell: Shell, wish: Callable[..., None], network: FailingNetwork
) -> None:
    wish(3)
    fault = network.lose(CREATE_TOPICS, Loss.HELD, skip=VALIDATIONS)
    process = shell.start_apply(network.bootstrap_servers)
    assert fault.struck.wait(TIMEOUT_S)
    assert process.stdout is not None
    process.stdout.close()
    fault.released.set()
    assert process.wait(TIMEOUT_S) == 0
    assert [line["ended"] for line in shell.lines() if line["type"] == "applied"] == ["done"]
    assert process.stderr is not None
    process.stderr.close()


def test_what_a_killed_run_did_not_do_is_done_by_the_next(
    shell: Shell, wish: Callable[..., None], network: FailingNetwork
) -> None:
    wish(3)
    assert shell.apply()[0] == 0
    wish(4, new=True, retention="2d")
    assert shell.run("plan", "--cluster", "lab", "--out", "plan.json")[0] == 0
    fault = network.lose(CREATE_TOPICS, Loss.HELD, skip=VALIDATIONS)
    saved = ("apply", "plan.json", "--auto-approve")
    process = shell.start(*saved, servers=network.bootstrap_servers)
    assert fault.struck.wait(TIMEOUT_S)
    process.kill()
    process.communicate()
    code, out, _ = shell.run(*saved, "--no-lock")  # which the dead one has for a while yet
    assert (code, told(out)) == (0, {"new": "already done", "old": "done"})


def test_a_journal_that_cannot_be_opened_is_said_before_anything_is_done(
    shell: Shell, wish: Callable[..., None]
) -> None:
    wish(3)
    shell.journal = shell.directory / "nowhere" / "journal.jsonl"
    code, out, err = shell.apply()
    assert (code, told(out)) == (64, {})
    assert err.endswith(f"cannot write the journal {shell.journal}: No such file or directory\n")
    assert shell.run("plan", "--cluster", "lab", "--detailed-exitcode")[0] == 2


def test_a_journal_on_a_full_disk_does_not_stop_the_work(
    shell: Shell, wish: Callable[..., None]
) -> None:
    wish(3)
    shell.journal = Path("/dev/full")
    code, out, err = shell.apply("--no-lock")  # a run that was killed before may have it yet
    assert (code, told(out)) == (0, {"old": "done"}), err
    assert err.startswith("the journal /dev/full ends here: No space left on device\n")


@pytest.mark.slow
@pytest.mark.cluster
def test_a_large_apply_is_interrupted_killed_and_finished(tmp_path: Path) -> None:
    """3,000 topics in requests of 500: what is reported is what is there, each time."""
    count = 3_000
    with start_cluster(brokers=3, racks=3) as cluster:
        shell = Shell(tmp_path, cluster.bootstrap_servers)
        bodies = [
            f"topic: t{number:04}\npartitions: 1\nreplication_factor: 1\n"
            for number in range(count)
        ]
        shell.write("all.yaml", "---\n".join(bodies))
        assert shell.run("plan", "--cluster", "lab", "--out", "plan.json")[0] == 0

        first = shell.start_saved()
        shell.await_phase(first, "create")
        first.send_signal(signal.SIGINT)
        assert first.wait(TIMEOUT_S) == 130
        out = shell.printed.read_text()
        done = re.search(r"Interrupted\. Applied: (\d+) done, (\d+) not attempted\n$", out)
        assert done, out[-200:]
        assert int(done[1]) + int(done[2]) == count
        assert 0 < int(done[1]) < count
        assert shell.await_topics(int(done[1])) == int(done[1])

        second = shell.start_saved()
        shell.await_phase(second, "create")
        second.kill()
        second.wait()
        assert "outcome" not in {line["type"] for line in shell.lines()}

        third = shell.start_saved("--lock-timeout", "30s")
        assert third.wait(TIMEOUT_S) == 0
        out = shell.printed.read_text()
        # How much the killed one got done is its luck.
        assert re.search(r"Applied: \d+ already done(, \d+ done)?\n$", out)
        assert Counter(line["type"] for line in shell.lines())["outcome"] == count
        assert shell.run("plan", "--cluster", "lab", "--detailed-exitcode")[0] == 0
