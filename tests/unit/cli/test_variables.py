"""Environment variables stand for a few options only, and yield to the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import click
import pytest
from verbs import COMMANDS

from reconciler.cli.app import run
from reconciler.cli.variables import PREFIX, VARIABLES, find_variable

ROOT = Path(__file__).parents[3]
ALLOWED = {
    "ESTATE",
    "SOURCE",
    "--estate",
    "--cluster",
    "--bootstrap-servers",
    "--format",
    "--verbose",
    "--debug",
}
"""The only parameters that a variable may set. What approves, skips or loosens is never here."""

STATE = {"brokers": [{"id": 1}], "topics": [{"name": "a", "partitions": [[1]]}]}


@pytest.fixture(autouse=True)
def estate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("topics", "specs"):
        (tmp_path / name).mkdir()
        clusters = "version: 1\nclusters: {prod: {}, staging: {}}\n"
        (tmp_path / name / "clusters.yaml").write_text(clusters)
        (tmp_path / name / "a.yaml").write_text("topic: a\npartitions: 1\n")
    (tmp_path / "s.json").write_text(json.dumps(STATE))
    (tmp_path / "plan.json").write_text("{}")
    return tmp_path


def parse(words: str, *arguments: str) -> dict[str, Any]:
    """Return the values of a command's parameters."""
    return COMMANDS[words].make_context(words, list(arguments)).params


def name(parameter: click.Parameter) -> str:
    if isinstance(parameter, click.Argument):
        return str(parameter.name).upper()
    return parameter.opts[0]


@pytest.mark.parametrize("words", COMMANDS)
def test_no_other_parameter_has_a_variable(
    words: str, estate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_variable = {name(each) for each in COMMANDS[words].params if find_variable(each)}
    assert with_variable <= ALLOWED
    assert all(each.envvar is None for each in COMMANDS[words].params)
    for each in COMMANDS[words].params:
        if name(each) not in ALLOWED:
            variable = PREFIX + name(each).strip("-").upper().replace("-", "_")
            monkeypatch.setenv(variable, "1")
    given: dict[str, Any] = {
        name(each): ["1"] if isinstance(each, click.Argument) else [each.opts[0], "1"]
        for each in COMMANDS[words].params
        if each.required and not isinstance(each.type, click.Choice)
    }
    context = click.Context(COMMANDS[words], resilient_parsing=True)
    COMMANDS[words].parse_args(context, [word for words in given.values() for word in words])
    for each in COMMANDS[words].params:
        source = context.get_parameter_source(str(each.name))
        assert source is not click.core.ParameterSource.ENVIRONMENT
        assert source is not click.core.ParameterSource.DEFAULT_MAP


def test_the_page_lists_every_variable_and_no_workflow_uses_its_name() -> None:
    page = (ROOT / "docs" / "reference" / "environment.md").read_text()
    others = [
        *(ROOT / ".github").rglob("*"),
        *(ROOT / ".ci").rglob("*"),
        ROOT / "docs" / "reference" / "workflows.md",
        ROOT / "Makefile",
    ]
    used = {
        found
        for path in others
        if path.is_file()
        for found in re.findall(rf"{PREFIX}[A-Z_]+", path.read_text(errors="replace"))
    }
    assert "RECONCILER_CLUSTERS" in used
    for variable in VARIABLES.values():
        assert f"| `{variable}` |" in page
        assert variable not in used


@pytest.mark.parametrize(
    ("words", "arguments", "variables", "expected"),
    [
        ("validate", "", {"ESTATE": "specs"}, {"estate": Path("specs")}),
        ("validate", "topics", {"ESTATE": "specs"}, {"estate": Path("topics")}),
        ("validate", "", {"FORMAT": "json"}, {"form": "json"}),
        ("validate", "", {"FORMAT": "markdown"}, {"form": "text"}),
        ("plan", "", {"FORMAT": "markdown"}, {"form": "markdown"}),
        ("plan", "--format text", {"FORMAT": "markdown"}, {"form": "text"}),
        ("plan", "", {"CLUSTER": "prod,staging"}, {"clusters": ("prod", "staging")}),
        ("plan", "--cluster prod", {"CLUSTER": "staging"}, {"clusters": ("prod",)}),
        ("plan", "--all-clusters", {"CLUSTER": "prod"}, {"clusters": ()}),
        ("elect", "", {"CLUSTER": "prod"}, {"cluster": "prod"}),
        ("apply", "", {"CLUSTER": "prod", "ESTATE": "specs"}, {"source": Path("specs")}),
        (
            "apply",
            "plan.json",
            {"CLUSTER": "prod", "ESTATE": "specs"},
            {"clusters": (), "source": Path("plan.json"), "estate": Path("specs")},
        ),
        ("import", "--from strimzi", {"CLUSTER": "prod"}, {"cluster": None}),
        ("import", "", {"CLUSTER": "prod"}, {"cluster": "prod"}),
        ("moves status", "", {"ESTATE": "specs"}, {"estate": None, "cluster": None}),
        (
            "moves status",
            "",
            {"ESTATE": "specs", "CLUSTER": "prod"},
            {"estate": Path("specs"), "cluster": "prod"},
        ),
        ("moves status", "--bootstrap-servers b:1", {"CLUSTER": "prod"}, {"cluster": None}),
        ("moves cancel", "--plan plan.json", {"CLUSTER": "prod"}, {"cluster": None}),
        ("simulate", "--brokers 3", {"CLUSTER": "prod", "ESTATE": "specs"}, {"estate": None}),
        ("simulate", "--cluster prod", {"ESTATE": "specs"}, {"estate": Path("specs")}),
        ("plan", "--cluster prod", {"BOOTSTRAP_SERVERS": "b:1"}, {"bootstrap_servers": "b:1"}),
        ("plan", "--against s.json", {"BOOTSTRAP_SERVERS": "b:1"}, {"bootstrap_servers": None}),
        ("plan", "--all-clusters", {"BOOTSTRAP_SERVERS": "b:1"}, {"bootstrap_servers": None}),
        (
            "plan",
            "--cluster prod --cluster staging",
            {"BOOTSTRAP_SERVERS": "b:1"},
            {"bootstrap_servers": None},
        ),
        ("fleet plan", "--lake lake", {"BOOTSTRAP_SERVERS": "b:1", "CLUSTER": "prod"}, {}),
        ("report notify", "drift --cluster a --plan p", {"FORMAT": "json"}, {"form": "slack"}),
    ],
)
def test_a_variable_is_used_where_the_command_line_says_nothing_else(
    words: str,
    arguments: str,
    variables: dict[str, str],
    expected: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = parse(words, *arguments.split()) if not expected else {}
    for variable, value in variables.items():
        monkeypatch.setenv(f"{PREFIX}{variable}", value)
    params = parse(words, *arguments.split())
    if not expected:
        same = {each: value for each, value in before.items() if each != "asked"}
        assert {each: params[each] for each in same} == same
    assert {each: params[each] for each in expected} == expected


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("FORMAT", "jsno", "RECONCILER_FORMAT=jsno is no format; use one of codeowners, github,"),
        ("ESTATE", "nowhere", "Path 'nowhere' does not exist"),
    ],
)
def test_an_invalid_value_of_a_variable_is_a_usage_error(
    variable: str,
    value: str,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(f"{PREFIX}{variable}", value)
    assert run(["validate"]) == 64
    assert said in capsys.readouterr().err


def test_a_plan_of_variables_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RECONCILER_ESTATE", "specs")
    monkeypatch.setenv("RECONCILER_CLUSTER", "prod")
    monkeypatch.setenv("RECONCILER_FORMAT", "json")
    assert run(["plan", "--against", "s.json"]) == 0
    assert json.loads(capsys.readouterr().out)["cluster"]["name"] == "prod"
