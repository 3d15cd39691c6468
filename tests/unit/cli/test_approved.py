"""`--approved`: the rows of an approved plan, on a cluster that has changed since."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reconciler.cli.app import run

Captured = pytest.CaptureFixture[str]
Saved = dict[str, Any]

PLAN = ("plan", "--cluster", "prod", "--against", "s.json")
APPROVED = ("--approved", "approved.json")
SAVED = (*PLAN, "--out", "plan.json")
USED = (
    "note: the approved rows are used: leaders and replicas are as even as with new rows "
    "[approved-rows]"
)


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return how to write the snapshot of a cluster with some topics."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "topics").mkdir()
    (tmp_path / "topics" / "clusters.yaml").write_text("version: 1\nclusters: {prod: {}}\n")

    def write(**topics: list[list[int]]) -> None:
        brokers = [{"id": 1}, {"id": 2}, {"id": 3}]
        named = [{"name": name, "partitions": rows} for name, rows in topics.items()]
        text = json.dumps({"cluster_id": "one", "brokers": brokers, "topics": named})
        (tmp_path / "s.json").write_text(text)

    write()
    return write


def wish(directory: Path, partitions: int) -> None:
    (directory / "topics" / "stock.yaml").write_text(
        f"topic: stock\npartitions: {partitions}\nreplication_factor: 2\n"
    )


def approve(directory: Path, capsys: Captured) -> Saved:
    """Plan, and keep what a request would show. Returns the plan."""
    assert run(SAVED) == 0
    capsys.readouterr()
    made: Saved = json.loads((directory / "plan.json").read_text())
    (change,) = made["resource_changes"]
    rows = {"stock": change["change"]["after"]["assignment"]}
    approval = {"fingerprint": made["fingerprint"], "rows": rows}
    (directory / "approved.json").write_text(json.dumps(approval))
    return made


def rows_of(made: Saved) -> Any:
    return made["resource_changes"][0]["change"]["after"]["assignment"]


def test_a_plan_uses_the_approved_rows_and_says_so(
    live: Callable[..., None], tmp_path: Path, capsys: Captured
) -> None:
    wish(tmp_path, 3)
    approved = approve(tmp_path, capsys)
    live(other=rows_of(approved))
    assert run(SAVED) == 0
    fresh = json.loads((tmp_path / "plan.json").read_text())
    assert rows_of(fresh) != rows_of(approved)
    capsys.readouterr()

    assert run([*SAVED, *APPROVED]) == 0
    assert USED in capsys.readouterr().out
    kept = json.loads((tmp_path / "plan.json").read_text())
    assert rows_of(kept) == rows_of(approved)
    assert kept["fingerprint"] == approved["fingerprint"]
    assert run(["show", "plan.json", "--format", "markdown"]) == 0
    assert "the approved rows are used" in capsys.readouterr().out


def test_a_plan_says_what_is_better_than_the_approved_rows(
    live: Callable[..., None], tmp_path: Path, capsys: Captured
) -> None:
    wish(tmp_path, 1)
    approved = approve(tmp_path, capsys)
    live(other=rows_of(approved))
    assert run([*SAVED, *APPROVED]) == 0
    assert (
        "note: the approved rows are not used: new rows spread the leaders of the cluster more "
        "evenly (max − min 1 instead of 2, sum of squares 50 % lower) [approved-rows]"
    ) in capsys.readouterr().out
    fresh = json.loads((tmp_path / "plan.json").read_text())
    assert rows_of(fresh) != rows_of(approved)


def test_a_malformed_approval_is_an_error(
    live: Callable[..., None], tmp_path: Path, capsys: Captured
) -> None:
    live()
    wish(tmp_path, 1)
    (tmp_path / "approved.json").write_text("{}")
    assert run([*PLAN, *APPROVED]) == 1
    assert capsys.readouterr().err == (
        "error: approved.json is not an approval: fingerprint: Field required; write it with: "
        "reconciler report approved --out [plan-form]\n"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("plan", "--all-clusters"), "--approved is about one cluster; name only that"),
        (
            ("apply", "--cluster", "prod", "--expect", "0" * 64),
            "--approved has the fingerprint to expect; leave out --expect",
        ),
        (("apply", "plan.json"), "a saved plan has its own rows; pass --expect"),
    ],
)
@pytest.mark.usefixtures("live")
def test_usage(words: tuple[str, ...], said: str, tmp_path: Path, capsys: Captured) -> None:
    wish(tmp_path, 1)
    approve(tmp_path, capsys)
    assert run([*words, *APPROVED]) == 64
    assert said in capsys.readouterr().err
