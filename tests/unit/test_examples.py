"""The examples for schedulers: they compile, and the command line takes their commands."""

from __future__ import annotations

import ast
from pathlib import Path

import click
import pytest

from reconciler.cli.app import group

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))


def list_commands(file: Path) -> list[str]:
    """List the texts of a file that run reconciler; a name in braces stands for its value."""
    tree = ast.parse(file.read_text(), str(file))
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [
                part.value if isinstance(part, ast.Constant) else "/somewhere"
                for part in node.values
            ]
            found.append("".join(map(str, parts)))
    return [text for text in found if text.startswith("reconciler ")]


def parse(command: str) -> None:
    """Parse a command. Errors: click.UsageError."""
    words = command.split()[1:]
    verb: click.Command = group
    context = click.Context(group)
    while isinstance(verb, click.Group):
        name, *words = words
        found = verb.get_command(context, name)
        if found is None:
            raise click.UsageError(f"no command {name}")
        verb, context = found, click.Context(found, parent=context)
    _, rest, _ = verb.make_parser(context).parse_args(words)
    assert rest == []


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.name)
def test_an_example_compiles_and_runs_the_fleet_and_its_metrics(file: Path) -> None:
    compile(file.read_text(), str(file), "exec")
    commands = list_commands(file)
    assert [command.split()[1:3] for command in commands] == [
        ["fleet", "run"],
        ["fleet", "metrics"],
    ]
    for command in commands:
        parse(command)


def test_an_option_that_does_not_exist_is_found() -> None:
    with pytest.raises(click.UsageError):
        parse("reconciler fleet metrics m.prom --lake lake --page fleet.html")


def test_both_schedulers_have_an_example() -> None:
    assert [file.name for file in EXAMPLES] == ["airflow_dag.py", "dagster_assets.py"]
