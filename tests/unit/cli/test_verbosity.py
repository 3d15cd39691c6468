"""What --verbose and --debug show: requests, times and retries, on stderr only."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import click
import pytest
from verbs import COMMANDS

from reconciler.cli import options
from reconciler.cli.app import run
from reconciler.errors import keep_secret

LOG = logging.getLogger("reconciler.test")


@click.command(cls=options.Command)
def command() -> None:
    """Log what a client would."""
    LOG.info("sent to %s", "b\x1b[2J:9092")
    LOG.debug("with %s", "hunter22")
    logging.getLogger("kafka").error("of another library")


def call(*words: str) -> None:
    command.main([*words], standalone_mode=False)


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_can_be_verbose(words: str) -> None:
    names = [name for each in COMMANDS[words].params for name in each.opts]
    assert {"-v", "--verbose", "--debug"} <= set(names)


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ([], []),
        (["--verbose"], ["sent to b\\x1b[2J:9092"]),
        (["-v"], ["sent to b\\x1b[2J:9092"]),
        (["--debug"], ["sent to b\\x1b[2J:9092", "with ***"]),
        (["--debug", "--verbose"], ["sent to b\\x1b[2J:9092", "with ***"]),
    ],
)
def test_a_log_is_on_stderr_for_one_command(
    asked: list[str], shown: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    keep_secret("hunter22")
    call(*asked)
    said = capsys.readouterr()
    assert said.out == ""
    assert [re.sub(r"^\d\d:\d\d:\d\d\.\d{3} ", "", line) for line in said.err.splitlines()] == shown
    call()
    assert capsys.readouterr().err == ""


def test_a_variable_makes_a_command_verbose(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RECONCILER_DEBUG", "1")
    call()
    assert "with" in capsys.readouterr().err
    monkeypatch.setenv("RECONCILER_DEBUG", "perhaps")
    with pytest.raises(click.UsageError, match="RECONCILER_DEBUG=perhaps is neither 1 nor 0"):
        call()


def test_a_request_without_an_answer_is_named_with_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "topics").mkdir()
    clusters = "version: 1\nclusters: {prod: {client: {bootstrap.servers: '127.0.0.1:1'}}}\n"
    (tmp_path / "topics" / "clusters.yaml").write_text(clusters)
    assert run(["plan", "--cluster", "prod", "--verbose"]) == 1
    said = capsys.readouterr().err
    assert re.search(r"prod: connecting by PLAINTEXT to 127\.0\.0\.1:1: failed after \d+ ms", said)
