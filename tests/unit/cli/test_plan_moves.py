"""`reconciler plan --moves`: which clusters it covers, what it saves, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.cli.app import run
from reconciler.cli.plan import exit_code
from reconciler.cli.planning import Made, Planned
from reconciler.model.cluster import ClusterState
from reconciler.model.moves import MoveKind, MovePolicy, PlannedDrain, PlannedMoves
from reconciler.model.plan import Plan
from reconciler.model.steps import steps_of
from reconciler.planfile.codec import decode_plan

MOVES = "moves: {allow: [replication], rate: 30MiB, keep_free: 0%}"
CLUSTERS = f"version: 1\nclusters:\n  a: {{{MOVES}}}\n  b: {{}}\n"
TOPICS = """\
topic: grown
partitions: 3
replication_factor: 2
---
topic: other
partitions: 2
replication_factor: 1
"""
LIVE = {
    "brokers": [{"id": n} for n in range(1, 4)],
    "topics": [
        {"name": "grown", "partitions": [[1], [2]]},
        {"name": "other", "partitions": [[1]]},
    ],
}
PLAN = ("plan", "--moves", "--cluster", "a", "--against", "s.json")


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "topics").mkdir()
    (tmp_path / "topics" / "clusters.yaml").write_text(CLUSTERS)
    (tmp_path / "topics" / "t.yaml").write_text(TOPICS)
    (tmp_path / "s.json").write_text(json.dumps(LIVE))
    return tmp_path


def test_a_plan_of_moves_has_only_moves_and_is_saved() -> None:
    assert run([*PLAN, "--detailed-exitcode", "--out", "p.json"]) == 2
    plan = decode_plan(Path("p.json").read_text())
    assert plan.moves is not None
    assert [(t.name, [step.verb for step in steps_of(t)]) for t in plan.topics] == [
        ("grown", ["move"])
    ]


def test_the_plan_of_changes_on_the_same_cluster_has_the_rest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["plan", "--cluster", "a", "--against", "s.json", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    steps = {change["name"]: change["steps"] for change in document["resource_changes"]}
    assert steps == {"grown": ["expand"], "other": ["expand"]}


def test_a_glob_chooses_the_topics_that_move(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*PLAN, "--topic", "other", "--detailed-exitcode"]) == 0
    assert "grown" not in capsys.readouterr().out


def test_all_clusters_are_those_that_allow_moves(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (directory / "topics" / "clusters.yaml").write_text(CLUSTERS.replace(MOVES, ""))
    assert run(["plan", "--moves", "--all-clusters"]) == 64
    assert "no cluster allows moves; write moves: {allow" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            "--cluster b",
            "b allows no moves; write moves: {allow: [replication], rate: 30MiB} below",
        ),
        ("--cluster sandbox", "sandbox allows no moves; write moves: "),
        ("--cluster a --cluster b", "b allows no moves; write moves: "),
        ("--cluster a --against s.json --by disk", "--moves balances replicas by count; leave"),
        ("--cluster a --explain grown", "--explain is about new replicas, and --moves adds none"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(
    arguments: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["plan", "--moves", *arguments.split()]) == 64
    assert said in capsys.readouterr().err


def test_a_refused_plan_of_moves_exits_1(directory: Path) -> None:
    unseen = CLUSTERS.replace(", keep_free: 0%", "")
    (directory / "topics" / "clusters.yaml").write_text(unseen)
    assert run([*PLAN]) == 1


@pytest.mark.parametrize(("cordon", "code"), [(True, 2), (False, 0)])
def test_a_plan_that_only_cordons_is_pending(*, cordon: bool, code: int) -> None:
    policy = MovePolicy(frozenset({MoveKind.DRAIN}), None)
    moves = PlannedMoves(policy, 0, 0, 0, drains=(PlannedDrain(4, cordon=cordon),))
    plan = Plan("a", "cluster-1", (), (), moves=moves)
    made = Made((Planned("a", ClusterState("cluster-1", (), {}), plan),))
    assert exit_code(made, detailed=True) == code
    assert exit_code(made, detailed=False) == 0


@pytest.mark.parametrize(
    "command",
    [
        ["plan", "--moves", "--cluster", "theirs", "--against", "s.json"],
        ["rebalance", "--cluster", "theirs", "--against", "s.json"],
    ],
    ids=lambda command: command[0],
)
def test_where_brokers_place_replicas_reconciler_moves_none(
    command: list[str], directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clusters = "version: 1\nclusters: {theirs: {placement: broker}}\n"
    (directory / "topics" / "clusters.yaml").write_text(clusters)
    assert run(command) == 64
    assert capsys.readouterr().err.endswith(
        "the brokers of theirs place replicas (placement: broker in clusters.yaml), so reconciler "
        "moves none; use the service's own tools\n"
    )
