"""Completion in the shells themselves: commands, options, and the names of an estate."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete
from verbs import COMMANDS

from reconciler.cli import options
from reconciler.cli.app import group
from reconciler.cli.options import _Named

ASK = {
    "bash": 'source ./script; COMP_WORDS=({words} ""); COMP_CWORD={count}; '
    '_reconciler_completion reconciler; printf "%s\\n" "${{COMPREPLY[@]}}"',
    "zsh": "compdef() {{ }}; compadd() {{ print -l $completions; }}; "
    'source ./script; words=({words} ""); CURRENT=$(({count} + 1)); _reconciler_completion',
    "fish": 'source ./script; complete -C "{words} "',
}
"""How each shell is asked for what follows some words; zsh has no way without a terminal."""


@pytest.fixture(autouse=True)
def estate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "topics").mkdir()
    clusters = "version: 1\nprofiles: {event-log: {}}\nclusters: {prod-eu: {}, staging: {}}\n"
    (tmp_path / "topics" / "clusters.yaml").write_text(clusters)
    specs = "topic: orders.events\nowner: shop\nlabels: {tier: gold}\n---\ntopic: orders.prices\n"
    specs += "---\ntopic: pay\n"
    (tmp_path / "topics" / "a.yaml").write_text(specs)
    return tmp_path


def complete(words: list[str], incomplete: str, command: click.Command = group) -> list[str]:
    """Return what completes a word, as every shell gets it."""
    found = ShellComplete(command, {}, "reconciler", "_RECONCILER_COMPLETE")
    return [each.value for each in found.get_completions(words, incomplete)]


@pytest.mark.parametrize(
    ("words", "incomplete", "expected"),
    [
        (["plan", "--cluster"], "", ["prod-eu", "sandbox", "staging"]),
        (["plan", "--cluster"], "st", ["staging"]),
        (["elect", "--cluster"], "p", ["prod-eu"]),
        (["plan", "--topic"], "orders.", ["orders.events", "orders.prices"]),
        (["plan", "--explain"], "pay", ["pay"]),
        (["simulate", "--topic"], "", []),
        (["plan", "topics", "--format"], "m", ["markdown"]),
        ([], "elec", ["elect"]),
        (["moves"], "set", ["settle"]),
        (["plan"], "--detailed", ["--detailed-exitcode"]),
    ],
)
def test_a_word_is_completed(words: list[str], incomplete: str, expected: list[str]) -> None:
    assert complete(words, incomplete) == expected


@pytest.mark.parametrize(
    ("option", "name"), [("--owner", "shop"), ("--label", "tier"), ("--profile", "event-log")]
)
def test_owners_and_profiles_are_completed_wherever_an_option_takes_them(
    option: str, name: str
) -> None:
    @click.command(cls=options.Command)
    @click.option(option, "named", multiple=True)
    def command(named: tuple[str, ...]) -> None:
        """Take names."""

    assert complete([option], "", command) == [name]


def test_an_estate_with_errors_completes_nothing(estate: Path) -> None:
    (estate / "topics" / "a.yaml").write_text("topic: [\n")
    assert complete(["plan", "--cluster"], "") == []


@pytest.mark.parametrize("words", COMMANDS)
def test_every_option_that_names_a_cluster_is_completed(words: str) -> None:
    for each in COMMANDS[words].params:
        if "--cluster" in each.opts and each.name != "clusters":  # init names new ones
            assert isinstance(each.type, _Named)


@pytest.mark.parametrize("shell", ASK)
def test_a_shell_completes_clusters(shell: str, estate: Path) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    scripts = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{scripts}:{os.environ['PATH']}", "HOME": str(estate)}
    script = subprocess.run(
        ["reconciler", "completion", shell],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    (estate / "script").write_text(script.stdout)
    words = "reconciler plan --cluster"
    asked = ASK[shell].format(words=words, count=len(words.split()))
    done = subprocess.run(
        [program, "-c", asked],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert done.stdout.split() == ["prod-eu", "sandbox", "staging"]
