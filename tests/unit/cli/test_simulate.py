"""`reconciler simulate`: the tables, the order of steps, and what is refused."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from reconciler.cli.app import run

PAGE = (Path(__file__).parents[3] / "docs" / "how-to" / "simulate.md").read_text()
NINE = ("simulate", "--brokers", "9", "--racks", "3")
BY_HAND = {
    "brokers": [{"id": n, "rack": "abc"[n % 3]} for n in (1, 2, 3)],
    "topics": [{"name": "t", "partitions": [[1, 2], [2, 3]]}],
}


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.json").write_text(json.dumps(BY_HAND))
    (tmp_path / "topics").mkdir()
    (tmp_path / "topics" / "clusters.yaml").write_text("version: 1\nclusters: {prod: {}}\n")
    (tmp_path / "topics" / "a.yaml").write_text(
        "topic: t\npartitions: 6\n---\ntopic: u\nassignment: [[1, 2], [2, 1]]\n---\n"
        "topic: kept\n---\ntopic: gone\nstate: absent\n"
    )
    return tmp_path


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert run([*arguments, "--format", "json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_the_page_shows_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"^```\n\$ reconciler (simulate .*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 3
    for block in blocks:
        joined = block.replace("\\\n", " ")
        command, _, shown = joined.partition("\n")
        assert run(shlex.split(command)) == 0
        printed = capsys.readouterr().out
        assert printed.startswith(shown), command
        assert all(len(line) <= 80 for line in printed.splitlines())


def test_strategies_are_in_two_tables(capsys: pytest.CaptureFixture[str]) -> None:
    shown = ("--strategy", "striped", "--strategy", "kafka", "--draws", "3")
    assert run([*NINE, "--topic", "orders=9x3", *shown]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "9 brokers in 3 racks · 1 topic, 9 partitions, 27 replicas"
    lost = ["taken over", "under min"]
    for first, heads, figures in (
        (3, ["topic", "cluster", "topic", "cluster"], "0000"),
        (9, ["violations", *lost, *lost], "01010"),
    ):
        assert lines[first].split() == " ".join(["strategy", *heads]).split()
        assert [line[:17].strip() for line in lines[first + 1 : first + 4]] == [
            "striped",
            "kafka, mean of 3",
            "kafka, worst",
        ]
        assert lines[first + 1].split() == ["striped", *figures]
    assert all(len(line) <= 80 for line in lines)


def test_without_racks_nothing_is_said_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", "--brokers", "3", "--topic", "t=3x1"]) == 0
    assert "rack" not in capsys.readouterr().out


def test_losses_have_columns_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--topic", "t=9x3", "--min-insync", "3", "--lose-rack", "rack0")
    assert run([*NINE, *arguments, "--strategy", "striped"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("9 brokers in 3 racks, 3 of them lost")
    assert lines[4].split() == ["striped", *"1100"]
    assert lines[8].split() == ["striped", *"0190"]


def test_steps_are_taken_in_the_order_in_which_they_are_given(
    capsys: pytest.CaptureFixture[str],
) -> None:
    order = ("--create=t=9x1", "--lose-broker", "1", "--create", "u=8x1", "--lose-broker=2")
    (found,) = answer(capsys, *NINE, *order, "--strategy", "striped")["strategies"]
    assert [loss["leaders_moved"] for loss in found["losses"]] == [1, 2]


def test_json_says_what_each_loss_does(capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = answer(capsys, "simulate", "--against", "s.json")["strategies"]
    assert found["strategy"] == "as it is"
    assert found["topics"]["t"]["balance"]["leaders"] == {"least": 0, "most": 1}
    assert found["if_broker_is_lost"]["2"] == {
        "brokers": [2],
        "leaders_moved": 1,
        "worst_heir": 1,
        "heirs": {"3": 1},
        "under_min_in_sync": 0,
        "offline": 0,
    }
    assert found["if_rack_is_lost"]["a"]["brokers"] == [3]


def test_an_estate_brings_its_topics(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("topics", "--cluster", "prod", "--against", "s.json", "--strategy", "striped")
    (found,) = answer(capsys, "simulate", *arguments)["strategies"]
    assert {name: topic["partitions"] for name, topic in found["topics"].items()} == {
        "t": 6,
        "u": 2,
    }


def test_a_rebalance_is_a_step_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    steps = ("--topic", "o=12x3", "--add-brokers", "3", "--rebalance")
    assert run([*NINE, *steps, "--strategy", "optimal"]) == 0
    assert "rebalance: 9 replicas are copied, of unknown size" in capsys.readouterr().out
    found = answer(capsys, *NINE, *steps, "--rebalance", "--strategy", "optimal")
    (strategy,) = found["strategies"]
    assert strategy["rebalances"] == [
        {"replicas": 9, "bytes": None},
        {"replicas": 0, "bytes": 0},
    ]


def test_counts_are_tried_for_one_topic(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*NINE, "--create", "o=10x3", "--partitions-from", "8", "--to", "10"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "o on 9 brokers in 3 racks, next to 0 other topics"
    assert lines[5].split()[:3] == ["9", "1", "3"]
    assert lines[5].endswith("both")
    assert lines[6].startswith("→ 10")


def test_counts_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    before = ("--create", "other=9x3", "--create", "o=9x3")
    found = answer(capsys, *NINE, *before, "--partitions-from", "9", "--to", "9")
    assert found["topic"] == "o"
    (count,) = found["counts"]
    assert (count["partitions"], count["same_on_every_broker"]) == (9, "leaders and replicas")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--brokers 9", "there are no topics on these brokers; add --topic NAME=PxR, or ESTATE"),
        ("", "start with either --against SNAPSHOT or --brokers N"),
        ("--brokers 3 --against s.json", "start with either --against SNAPSHOT or --brokers N"),
        ("--racks 3 --against s.json", "--against defines the racks"),
        ("--brokers 2 --racks 3", "2 brokers cannot fill 3 racks"),
        ("--brokers 3 --topic a", "'a' is not a topic; write NAME=PARTITIONSxREPLICATION"),
        ("--brokers 3 --topic a=0x1", "'a=0x1' is not a topic"),
        ("--brokers 3 --create a=3x1 --grow a", "'a' is not a growth; write NAME=PARTITIONS"),
        ("--brokers 3 --add-brokers x", "'x' is not a number of brokers; write N or N:RACK"),
        ("topics --brokers 3", "topics differ by cluster: name both ESTATE and --cluster"),
        ("--brokers 3 --cluster prod", "topics differ by cluster"),
        ("topics --cluster nowhere --brokers 3", "no cluster is called 'nowhere'"),
        ("--brokers 3 --topic a=3x1 --to 4", "--partitions-from and --to go together"),
        ("--brokers 3 --topic a=3x1 --partitions-from 4 --to 3", "--to is at least"),
        (
            "--brokers 3 --topic a=3x1 --topic b=3x1 --partitions-from 3 --to 4",
            "counts are tried for one topic",
        ),
        (
            "--brokers 3 --topic a=3x1 --strategy kafka --partitions-from 3 --to 4",
            "counts are tried with one strategy",
        ),
        (
            "--against s.json --by disk --grow t=4 --partitions-from 4 --to 5",
            "no size is known of any partition; use --against with a snapshot that has size_bytes",
        ),
        ("--brokers 3 --topic a=3x1 --within 5%", "--within is about a rebalance; add the step"),
        (
            "--brokers 3 --topic a=3x1 --rebalance --even-topics --leaders-only",
            "--even-topics and --leaders-only exclude each other",
        ),
        ("--brokers 3 --by disk --topic a=3x1", "--by disk needs a snapshot with sizes or rates"),
    ],
)
def test_usage(arguments: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", *arguments.split()]) == 64
    assert capsys.readouterr().err.startswith(f"error: {message}")


def place_by_brokers(directory: Path) -> None:
    clusters = "version: 1\nclusters: {prod: {placement: broker}}\n"
    (directory / "topics" / "clusters.yaml").write_text(clusters)
    (directory / "topics" / "a.yaml").write_text("topic: t\npartitions: 6\nreplication_factor: 2\n")


def test_where_brokers_place_only_their_placement_is_simulated(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place_by_brokers(directory)
    command = ["simulate", "topics", "--cluster", "prod", "--brokers", "3"]
    assert run(command) == 0
    shown = capsys.readouterr()
    assert "kafka, mean of 20" in shown.out
    assert "optimal" not in shown.out
    assert "the brokers of prod place replicas (placement: broker in clusters.yaml): only" in (
        shown.err
    )
    assert run([*command, "--strategy", "optimal"]) == 0
    shown = capsys.readouterr()
    assert ("optimal" in shown.out, shown.err) == (True, "")


def test_where_brokers_place_counts_are_tried_only_with_a_strategy_that_is_named(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place_by_brokers(directory)
    counts = ["--partitions-from", "3", "--to", "4"]
    command = ["simulate", "topics", "--cluster", "prod", "--brokers", "3", *counts]
    assert run(command) == 64
    assert "to try counts with a strategy of reconciler, name --strategy" in capsys.readouterr().err
    assert run([*command, "--strategy", "optimal"]) == 0
