"""A mistyped command gets the nearest one, and a word of another tool the command that does it."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from reconciler.cli.app import group, run
from reconciler.cli.groups import MEANT, Group

USAGE = 64


def list_groups(found: click.Group = group) -> Iterator[click.Group]:
    """List a group and those below it."""
    yield found
    context = click.Context(found)
    for name in found.list_commands(context):
        below = found.get_command(context, name)
        if isinstance(below, click.Group):
            yield from list_groups(below)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("aply", "no command 'aply'; did you mean `reconciler apply`?"),
        ("PLAN", "no command 'PLAN'; did you mean `reconciler plan`?"),
        ("moves stat", "no command 'stat'; did you mean `reconciler moves status`?"),
        ("fleet lake chekc", "no command 'chekc'; did you mean `reconciler fleet lake check`?"),
        ("report xyz", "no command 'xyz'; `reconciler report --help` lists them"),
        ("diff", "no command 'diff'; use `reconciler plan`"),
        ("sandbox start", "no command 'start'; use `reconciler sandbox up`"),
        ("sandbox diff", "no command 'diff'; `reconciler sandbox --help` lists them"),
    ],
)
def test_an_unknown_command_gets_the_nearest_one(
    words: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*words.split(), "--cluster", "prod"]) == USAGE
    assert capsys.readouterr().err.splitlines()[-1] == f"error: {said}"


@pytest.mark.parametrize("word", ["diff", "status", "list"])
def test_words_of_other_tools_are_known(word: str) -> None:
    assert MEANT[word]


@pytest.mark.parametrize("word", MEANT)
def test_what_is_suggested_exists_and_what_is_typed_does_not(word: str) -> None:
    context = click.Context(group)
    *groups, typed = word.split()
    found: click.Command | None = group
    for name in groups:
        assert isinstance(found, click.Group)
        found = found.get_command(context, name)
    assert isinstance(found, click.Group)
    assert found.get_command(context, typed) is None
    for suggested in MEANT[word]:
        command: click.Command | None = group
        for part in suggested.split():
            assert command is not None
            if part.startswith("--"):
                names = [name for each in command.get_params(context) for name in each.opts]
                assert part in names
            else:
                assert isinstance(command, click.Group)
                command = command.get_command(context, part)
        assert command is not None


def test_every_group_suggests() -> None:
    assert all(isinstance(found, Group) for found in list_groups())
