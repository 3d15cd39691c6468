"""What `reconciler apply` decides about a saved plan before it connects to any cluster."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.api.records import begin_record
from reconciler.cli.app import run
from reconciler.errors import Finding
from reconciler.model.moves import MoveKind, MovePolicy, PlannedDrain, PlannedMoves
from reconciler.model.plan import Plan
from reconciler.planfile.codec import decode_plan, encode_plan

SavePlan = Callable[..., None]
Captured = pytest.CaptureFixture[str]

LIVE = {"brokers": [{"id": 1}], "topics": [{"name": "shrunk", "partitions": [[1], [1]]}]}
NEW = "topic: new{}\npartitions: 1\nreplication_factor: 1\n"
SHRUNK = "topic: shrunk\npartitions: 1\n"


@pytest.fixture
def save_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> SavePlan:
    """Return how to save a plan of some specs as plan.json."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    (tmp_path / "topics").mkdir()
    (tmp_path / "s.json").write_text(json.dumps(LIVE))

    def save(*specs: str, guards: str = "{}") -> None:
        clusters = f"version: 1\nclusters: {{prod: {{guards: {guards}}}}}\n"
        (tmp_path / "topics" / "clusters.yaml").write_text(clusters)
        (tmp_path / "topics" / "all.yaml").write_text("---\n".join(specs))
        run(["plan", "--cluster", "prod", "--against", "s.json", "--out", "plan.json"])
        capsys.readouterr()

    return save


def test_without_a_terminal_the_plan_is_not_approved(save_plan: SavePlan, capsys: Captured) -> None:
    save_plan(NEW.format(1))
    assert run(["apply", "plan.json"]) == 1
    out, err = capsys.readouterr()
    assert out.endswith("\nNot approved. Nothing was changed.\n")
    assert err == "error: stdin is not a terminal; pass --auto-approve\n"


def test_a_plan_that_only_cordons_is_to_be_approved(
    save_plan: SavePlan, tmp_path: Path, capsys: Captured
) -> None:
    save_plan(NEW.format(1))
    policy = MovePolicy(frozenset({MoveKind.DRAIN}), None)
    moves = PlannedMoves(policy, 0, 0, 0, drains=(PlannedDrain(4, cordon=True),))
    plan = Plan("prod", "cluster-1", (), (), moves=moves)
    (tmp_path / "plan.json").write_text(encode_plan(plan))
    assert run(["apply", "plan.json"]) == 1
    assert capsys.readouterr().err == "error: stdin is not a terminal; pass --auto-approve\n"
    assert begin_record(plan).steps == {"cordon": 1}


@pytest.mark.parametrize(
    ("specs", "said"),
    [
        (
            [SHRUNK, NEW.format(1), NEW.format(2)],
            "nothing was done; --skip-refused applies the other 2 changes",
        ),
        ([SHRUNK, NEW.format(1)], "nothing was done; --skip-refused applies the other change"),
        ([SHRUNK], "nothing was done"),
    ],
)
def test_a_refused_apply_says_that_nothing_was_done_and_how_to_do_the_rest(
    specs: list[str], said: str, save_plan: SavePlan, capsys: Captured
) -> None:
    save_plan(*specs)
    assert run(["apply", "plan.json", "--auto-approve"]) == 1
    out, err = capsys.readouterr()
    assert out.endswith("\nRefused. Nothing was changed.\n")
    first, last = err.splitlines()
    assert first.endswith("[partitions-never-shrink]")
    assert last == f"error: {said}"


def test_what_is_refused_as_a_whole_is_not_to_be_skipped(
    save_plan: SavePlan, capsys: Captured
) -> None:
    save_plan("topic: shrunk\nconfig: {segment.ms: 1h}\n", guards="{max_changed: 0%}")
    assert run(["apply", "plan.json", "--auto-approve"]) == 1
    assert capsys.readouterr().err.endswith("[guard-max-changed]\nerror: nothing was done\n")


def test_a_run_without_a_lock_applies_a_plan_that_is_refused_for_that_alone(
    save_plan: SavePlan, tmp_path: Path, capsys: Captured
) -> None:
    save_plan(NEW.format(1))
    file = tmp_path / "plan.json"
    refusal = Finding("lock-unavailable", "the brokers of prod do not offer JoinGroup", "no way")
    file.write_text(encode_plan(replace(decode_plan(file.read_text()), refusals=(refusal,))))
    assert run(["apply", "plan.json", "--auto-approve"]) == 1
    assert capsys.readouterr().err.endswith("[lock-unavailable]\nerror: nothing was done\n")
    assert run(["apply", "plan.json", "--no-lock"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("note: without a lock, nothing prevents a second apply; ")
    assert said.endswith("\nerror: stdin is not a terminal; pass --auto-approve\n")
