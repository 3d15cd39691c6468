"""The question that `reconciler apply` asks on a terminal before it changes anything."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from command import RECONCILER
from terminal import HIDDEN, Terminal

if TYPE_CHECKING:
    from shell import Shell

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
QUESTION = b"Apply 2 changes to lab? [y/N]: "
CTRL_C, ENTER = b"\x03", b"\r"


@pytest.fixture
def terminal(shell: Shell, topic_prefix: str) -> Iterator[Terminal]:
    """Start an apply of two new topics on a terminal."""
    for name in ("a", "b"):
        counts = "partitions: 1\nreplication_factor: 1"
        shell.write(f"{name}.yaml", f"topic: {topic_prefix}{name}\n{counts}\n")
    apply = [*RECONCILER, "apply", "--cluster", "lab", "--bootstrap-servers", shell.servers]
    with Terminal(apply, {}, directory=shell.directory) as terminal:
        yield terminal


def test_the_question_is_shown_whole_with_a_cursor_and_before_any_bar(terminal: Terminal) -> None:
    terminal.wait_for(b"fingerprint", QUESTION)
    assert HIDDEN not in terminal.output
    terminal.press(b"y" + ENTER)
    terminal.wait_for(HIDDEN, b"Applied: 2 done")
    terminal.wait_for_end()
    assert terminal.shows_cursor
    assert terminal.output.count(b"Apply 2 changes") == 1


def test_what_was_typed_before_the_question_is_no_answer(terminal: Terminal) -> None:
    terminal.press(b"y" + ENTER)
    terminal.wait_for(QUESTION)
    terminal.press(b"n" + ENTER)
    terminal.wait_for(b"Not approved. Nothing was changed.")
    terminal.wait_for_end()


def test_an_empty_answer_changes_nothing(terminal: Terminal) -> None:
    terminal.wait_for(QUESTION)
    terminal.press(ENTER)
    terminal.wait_for(b"Not approved. Nothing was changed.")
    terminal.wait_for_end()


def test_ctrl_c_at_the_question_ends_with_a_cursor(terminal: Terminal) -> None:
    terminal.wait_for(QUESTION)
    terminal.press(CTRL_C)
    terminal.wait_for(b"Interrupted. Nothing was changed.", b"interrupted")
    terminal.wait_for_end()
    assert terminal.shows_cursor


def test_a_question_that_nobody_would_see_is_not_asked(shell: Shell, topic_prefix: str) -> None:
    shell.write("a.yaml", f"topic: {topic_prefix}a\npartitions: 1\nreplication_factor: 1\n")
    apply = [*RECONCILER, "apply", "--cluster", "lab", "--bootstrap-servers", shell.servers]
    hidden = ["/bin/sh", "-c", '"$@" 2> stderr.txt', "sh", *apply]
    with Terminal(hidden, {}, directory=shell.directory) as terminal:
        terminal.wait_for(b"Not approved. Nothing was changed.")
        terminal.wait_for_end()
    assert (shell.directory / "stderr.txt").read_text() == (
        "error: stderr is not a terminal; pass --auto-approve\n"
    )


ASK_100_TIMES = """
from reconciler.cli.terminal import ask
for number in range(100):
    try:
        ask(f"question {number}? ")
    except KeyboardInterrupt:
        print(f"interrupted {number}.", flush=True)
"""


def test_ctrl_c_that_comes_before_the_read_ends_the_question(tmp_path: Path) -> None:
    asking = [sys.executable, "-c", ASK_100_TIMES]
    with Terminal(asking, {}, directory=tmp_path) as terminal:
        for number in range(100):
            terminal.wait_for(b"question %d? " % number)
            terminal.press(CTRL_C)
            terminal.wait_for(b"interrupted %d." % number)
        terminal.wait_for_end()
