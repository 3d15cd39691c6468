"""The id of a rule is a link on a terminal that shows links, and plain text elsewhere."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from reconciler.rulebook import RULES, spell_page
from reconciler.styling import strip_colours

COMMAND = (sys.executable, "-m", "reconciler", "validate")
ADDRESS = "https://kafka-reconciler.github.io/reconciler/latest/reference/rules.html#key-unknown"
LINKED = f"[\x1b]8;;{ADDRESS}\x1b\\key-unknown\x1b]8;;\x1b\\]"
CLOSING = "What the ids in brackets mean: " + spell_page("reference/rules")
NOTHING = (
    *("NO_COLOR", "FORCE_COLOR", "FORCE_HYPERLINK", "TERM_PROGRAM", "VTE_VERSION", "WT_SESSION"),
    *("DOMTERM", "KITTY_WINDOW_ID", "KONSOLE_VERSION", "WEZTERM_PANE"),
    *("COLUMNS", "LINES"),  # where lines are folded
)


@pytest.fixture
def estate(tmp_path: Path) -> Path:
    (tmp_path / "topics").mkdir()
    text = "topic: a\npartition: 3\n# [rf-le-brokers]\n"
    (tmp_path / "topics" / "a.yaml").write_text(text)
    return tmp_path


def set_environment(chosen: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in NOTHING}
    return {**kept, "TERM": "xterm-256color", **chosen}


def show(estate: Path, chosen: Mapping[str, str]) -> str:
    """Run a command on a terminal. Returns: what it writes there."""
    ours, its = pty.openpty()
    streams = {"stdin": its, "stdout": its, "stderr": its}
    with subprocess.Popen(COMMAND, cwd=estate, env=set_environment(chosen), **streams) as process:
        os.close(its)
        written = b""
        try:
            while read := os.read(ours, 65_536):
                written += read
        except OSError:  # Linux: the other end is closed
            pass
        assert process.wait() == 1
    os.close(ours)
    return written.decode()


@pytest.mark.parametrize(
    "chosen",
    [
        {"TERM_PROGRAM": "iTerm.app"},
        pytest.param({"VTE_VERSION": "7600"}, marks=pytest.mark.slow),
        pytest.param({"TERM": "xterm-kitty"}, marks=pytest.mark.slow),
        pytest.param({"WT_SESSION": "x"}, marks=pytest.mark.slow),
        pytest.param({"FORCE_HYPERLINK": "1"}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_a_terminal_that_shows_links_gets_them(estate: Path, chosen: Mapping[str, str]) -> None:
    shown = show(estate, chosen)
    assert LINKED in shown
    assert CLOSING not in shown


@pytest.mark.parametrize(
    "chosen",
    [
        {},
        pytest.param({"VTE_VERSION": "4600"}, marks=pytest.mark.slow),
        pytest.param({"TERM_PROGRAM": "vscode", "NO_COLOR": "1"}, marks=pytest.mark.slow),
        pytest.param({"TERM_PROGRAM": "vscode", "FORCE_HYPERLINK": "0"}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_another_terminal_is_told_once_where_rules_are_explained(
    estate: Path, chosen: Mapping[str, str]
) -> None:
    shown = strip_colours(show(estate, chosen))
    assert "\x1b" not in shown
    assert "[key-unknown]" in shown
    assert shown.rstrip().endswith(CLOSING)
    assert shown.count(CLOSING) == 1


def test_a_pipe_gets_the_text_alone(estate: Path) -> None:
    chosen = set_environment({"TERM_PROGRAM": "iTerm.app", "FORCE_COLOR": "1"})
    ran = subprocess.run(COMMAND, cwd=estate, env=chosen, capture_output=True, check=False)
    assert strip_colours(ran.stdout.decode()) == (
        "topics/a.yaml:2:1: error: unknown key 'partition'\n"
        "    did you mean partitions? [key-unknown]\n\n"
        "1 error in 1 file; no cluster was touched\n"
    )
    assert ran.stderr == b""


def test_the_ids_of_all_rules_can_be_links() -> None:
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)+", rule) for rule in RULES)
