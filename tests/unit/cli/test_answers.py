"""The JSON of commands fits its schema, and every command that prints JSON has one."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import click
import pytest
from published import read_answer
from verbs import COMMANDS

from reconciler.cli.app import run
from reconciler.cli.sandbox import _encode_status
from reconciler.cli.schema import SCHEMAS
from reconciler.model.cluster import Broker
from reconciler.sandbox.record import SandboxRecord
from reconciler.sandbox.request import (
    BrokerState,
    BrokerStatus,
    ControllerStatus,
    SandboxHealth,
)

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "how-to" / "use-scripts-and-assistants.md").read_text()
SKILL = (ROOT / "docs" / "SKILL.md").read_text()
READS, FILES, SANDBOX = "reads", "writes files", "runs a sandbox"
HOST, CHANGES = "writes to the code host", "changes Kafka"
STATE = {
    "brokers": [{"id": n, "rack": f"r{n}"} for n in (1, 2, 3)],
    "topics": [{"name": "a", "partitions": [[1, 2], [2, 3]]}],
}


class Listed(NamedTuple):
    """A row of the page: what a command does, and the schema of its JSON."""

    effect: str
    schema: str


def read_rows() -> Mapping[str, Listed]:
    """Read the table of the page."""
    row = re.compile(r"^\| `([a-z -]+)` \| ([^|]+?) \| (.*?) \|", re.MULTILINE)
    link = re.compile(r"json\.md#([a-z-]+)")
    return {
        words: Listed(effect, found[1] if (found := link.search(json_of)) else "")
        for words, effect, json_of in row.findall(PAGE)
    }


ROWS = read_rows()


def forms(words: str) -> set[str]:
    """Return the formats of a command."""
    return {
        choice
        for each in COMMANDS[words].params
        if "--format" in each.opts and isinstance(each.type, click.Choice)
        for choice in each.type.choices
    }


def test_the_page_has_every_command() -> None:
    assert ROWS.keys() == COMMANDS.keys()
    assert {row.effect for row in ROWS.values()} <= {READS, FILES, SANDBOX, HOST, CHANGES}


@pytest.mark.parametrize("words", COMMANDS)
def test_a_command_that_prints_json_has_a_schema(words: str) -> None:
    if "json" in forms(words) and words != "report notify":  # a webhook gets that, not stdout
        assert ROWS[words].schema in SCHEMAS
        assert (ROOT / "schemas" / f"{ROWS[words].schema}.schema.json").exists()


@pytest.mark.parametrize("words", COMMANDS)
def test_what_asks_for_approval_is_listed_as_a_change(words: str) -> None:
    names = {name for each in COMMANDS[words].params for name in each.opts}
    assert ("--auto-approve" in names) == (ROWS[words].effect == CHANGES)


def test_the_skill_names_what_must_never_be_run_unattended() -> None:
    never = SKILL.partition("## Never without a person")[2].partition("\n## ")[0]
    for words, row in ROWS.items():
        assert (f"`reconciler {words}`" in never) == (
            row.effect == CHANGES or words in {"fleet lake keep", "fleet lake remove"}
        ), words


def test_the_skill_lists_every_command_that_only_reads() -> None:
    read = SKILL.partition("## Read-only")[2].partition("\n## ")[0]
    listed = set(re.findall(r"^\| `reconciler ([a-z -]+)` \|", read, re.MULTILINE))
    assert listed == {words for words, row in ROWS.items() if row.effect == READS}


@pytest.fixture
def estate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "topics").mkdir()
    (tmp_path / "elsewhere").mkdir()
    clusters = "version: 1\nclusters: {prod: {kafka_version: '4.1'}}\n"
    (tmp_path / "topics" / "clusters.yaml").write_text(clusters)
    (tmp_path / "topics" / "a.yaml").write_text("topic: a\nowner: shop\npartitions: 3\n")
    (tmp_path / "topics" / "b.yaml").write_text("topic: b\n")
    (tmp_path / "s.json").write_text(json.dumps(STATE))
    return tmp_path


@pytest.mark.parametrize(
    ("command", "schema", "key"),
    [
        ("validate", "validation", "clusters"),
        ("owners", "owners", "owners"),
        ("grants --cluster prod", "grants", "rights"),
        ("doctor --offline", "doctor", "checks"),
        ("doctor elsewhere", "doctor", "checks"),
        ("plan --cluster prod --against s.json", "plan", "resource_changes"),
        ("rebalance --cluster prod --against s.json", "plan", "format_version"),
        ("rebalance --cluster prod --against s.json --compare", "compare", "choices"),
        ("show plan.json", "plan", "resource_changes"),
        ("simulate --brokers 3 --topic x=6x2 --lose-broker 1", "simulate", "strategies"),
        ("simulate --against s.json --add-brokers 1 --rebalance", "simulate", "strategies"),
        (
            "simulate --brokers 3 --topic x=3x2 --partitions-from 3 --to 5 --strategy optimal",
            "simulate",
            "counts",
        ),
    ],
)
def test_an_answer_fits_its_schema(
    estate: Path, command: str, schema: str, key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if "rebalance --cluster" in command:
        clusters = "version: 1\nclusters: {prod: {moves: {allow: [rebalance], rate: 1MiB}}}\n"
        (estate / "topics" / "clusters.yaml").write_text(clusters)
    if "plan.json" in command:
        run(["plan", "--cluster", "prod", "--against", "s.json", "--out", "plan.json"])
        capsys.readouterr()
    run([*command.split(), "--format", "json"])
    assert read_answer(schema, capsys.readouterr().out)[key]


def test_the_findings_of_a_mistake_fit_the_schema(
    estate: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (estate / "topics" / "a.yaml").write_text("topic: a\npartitions: 012\n")
    assert run(["validate", "--format", "json"]) == 1
    assert read_answer("validation", capsys.readouterr().out)["findings"][0]["line"] == 2


def test_the_state_of_a_sandbox_fits_the_schema() -> None:
    record = SandboxRecord("b:1", "id", "4.4.0", "embedded", 1, (Broker(1, "r"),), "d", "c")
    health = SandboxHealth(
        (BrokerStatus(1, "r", "b:1", BrokerState.DEAD, "killed"),),
        (ControllerStatus(3000, "b:2", BrokerState.RUNNING, active=True),),
    )
    assert read_answer("sandbox", _encode_status(record, health))["brokers"][0]["state"] == "dead"
