"""What `--help` says: defaults of arguments, options that may be repeated, and single wordings."""

from __future__ import annotations

import shlex

import click
import pytest
from verbs import COMMANDS

from reconciler.cli.app import run
from reconciler.cli.examples import EXAMPLES


def help_of(words: str) -> str:
    """Return the help of a command in one line."""
    return " ".join(COMMANDS[words].get_help(click.Context(COMMANDS[words])).split())


@pytest.mark.parametrize("words", COMMANDS)
def test_an_argument_with_a_default_shows_it(words: str) -> None:
    for parameter in COMMANDS[words].params:
        if isinstance(parameter, click.Argument) and isinstance(parameter.default, str):
            name = parameter.make_metavar(click.Context(COMMANDS[words])).strip("[]")
            assert f"{name} defaults to {parameter.default}." in help_of(words)


@pytest.mark.parametrize("words", COMMANDS)
def test_an_option_that_may_be_repeated_says_so(words: str) -> None:
    for parameter in COMMANDS[words].params:
        if isinstance(parameter, click.Option) and parameter.multiple:
            assert "repeatable" in (parameter.help or ""), parameter.opts


@pytest.mark.parametrize("words", COMMANDS)
def test_no_value_of_an_option_is_lost(words: str) -> None:
    """Of two values of an option, click takes the last and says nothing."""
    for parameter in COMMANDS[words].params:
        if not isinstance(parameter, click.Option):
            continue
        if parameter.is_flag or parameter.count or parameter.multiple:
            continue
        name = parameter.opts[0]
        with pytest.raises(click.UsageError) as caught:
            COMMANDS[words].make_context(words, [name, "1", name, "2"])
        assert caught.value.message == f"{name} is given 2 times, and takes one value"


NAME_NOTHING = {
    *("DURATION", "SIZE", "WHEN", "VERSION", "HOST:PORT", "HOST:PORT,…"),
    *("FILE", "DIR", "FILE|DIR", "PATH", "PATH|URL", "URL", "SNAPSHOT", "SHA256", "REF", "REV"),
}
"""Metavars of quantities, times, addresses, files and revisions: a run has one of each."""

NAMED_ONCE = {
    "apply --expect": "the fingerprint of the one plan that this run may apply",
    "fleet --lake-format": "a lake has one format",
    "grants --applier": "the account that writes; both accounts may be one",
    "grants --arn": "the policies are for one cluster",
    "grants --planner": "the account that reads",
    "history --plan": "shows a run in full, with its plan",
    "import --owner": "a topic has one owner",
    "init --commit": "workflows install one release",
    "init --image": "workflows run in one image",
    "init --source": "workflows install from one repository",
    "owners --org": "completes the names of teams, which one organization has",
    "rebalance --over": "one limit for every disk",
    **dict.fromkeys(("rebalance --within", "simulate --within"), "one band for every load"),
    "report --webhook-env": "a notification goes to one address",
    "report --clusters": "a JSON list, as a variable holds it",
    "sandbox --image": "a sandbox runs one release",
    **dict.fromkeys(
        ("elect --cluster", "rebalance --cluster", "moves --cluster", "import --cluster"),
        "one run makes one plan, writes one estate or changes one cluster",
    ),
    **dict.fromkeys(
        ("snapshot --cluster", "report --cluster", "rehearse --cluster"),
        "one file, comment or throwaway cluster is about one cluster",
    ),
    **dict.fromkeys(
        ("get --cluster", "describe --cluster", "health --cluster", "history --cluster"),
        "one table, screen or document is about one cluster",
    ),
    **dict.fromkeys(("grants --cluster", "simulate --cluster"), "the rights or topics of one"),
}
"""Every option that names a thing and may be given once only, by command, with the reason."""


def list_once() -> dict[str, list[click.Option]]:
    """List the options that take a name, and take it once, by command and option."""
    found: dict[str, list[click.Option]] = {}
    for words, command in COMMANDS.items():
        for one in command.params:
            if not isinstance(one, click.Option) or one.multiple or one.is_flag or one.count:
                continue
            if one.type.name == "text" and one.metavar not in NAME_NOTHING:
                found.setdefault(f"{words.split()[0]} {one.opts[0]}", []).append(one)
    return found


def test_an_option_that_names_a_thing_is_repeatable_or_has_a_reason() -> None:
    assert list_once().keys() == NAMED_ONCE.keys()


def test_help_says_that_a_run_takes_one_cluster() -> None:
    clusters = [each for key, ones in list_once().items() if "--cluster" in key.split()
                for each in ones]  # fmt: skip
    assert len(clusters) > 20
    assert all("one per run" in (each.help or "") for each in clusters)


def test_topics_may_be_named_one_by_one() -> None:
    named = [one for c in COMMANDS.values() for one in c.params if "--topic" in one.opts]
    assert len(named) == 14
    assert all(isinstance(one, click.Option) and one.multiple for one in named)


def test_brokers_may_be_named_one_by_one() -> None:
    words = ["--cluster", "prod", "--brokers", "11,10", "--brokers", "12"]
    assert COMMANDS["rebalance"].make_context("rebalance", words).params["brokers"] == (10, 11, 12)


@pytest.mark.parametrize("words", COMMANDS)
def test_every_option_is_explained(words: str) -> None:
    for parameter in COMMANDS[words].params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.opts


def test_every_command_has_examples_and_no_other_has() -> None:
    assert EXAMPLES.keys() == COMMANDS.keys()


@pytest.mark.parametrize("words", COMMANDS)
def test_the_examples_of_a_command_call_it_and_are_shown_in_a_line(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*words.split(), "--help"]) == 0
    shown = capsys.readouterr().out.partition("\nExamples:\n")[2].splitlines()
    assert shown == [f"  {example}" for example in EXAMPLES[words]]
    for example in EXAMPLES[words]:
        assert len(f"  {example}") <= 80
        called = shlex.split(example.partition(" > ")[0])
        assert called[: len(words.split()) + 1] == ["reconciler", *words.split()]
        context = click.Context(COMMANDS[words])
        COMMANDS[words].make_parser(context).parse_args(called[len(words.split()) + 1 :])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("rehearse", "--kafka VERSION Kafka release of the throwaway cluster. [default: the"),
        ("import", "--against SNAPSHOT Write specs for this file instead of the cluster."),
        ("fleet collect", "--bootstrap-servers NAME=HOST:PORT,… Address of the cluster NAME;"),
        (
            "plan",
            "--bootstrap-servers HOST:PORT,… Address of the cluster; overrides clusters.yaml.",
        ),
    ],
)
def test_the_help_of_single_options(words: str, said: str) -> None:
    assert said in help_of(words)
