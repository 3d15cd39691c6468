"""`plan` and `apply` on several clusters: what is refused first, and where plans go."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.api.planning import load_estate
from reconciler.cli.app import run
from reconciler.cli.apply import INTERRUPTED, ApplyOptions, _apply_each
from reconciler.cli.planning import Planner, Wanted, load_planner
from reconciler.cli.plans import PlanFiles
from reconciler.errors import UsageError
from reconciler.model.plan import Plan
from reconciler.run.ending import Ended, Ending

PLAN = Plan("prod", None, (), ())


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory with an estate of two clusters, a snapshot, and a file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "topics").mkdir()
    (tmp_path / "topics" / "clusters.yaml").write_text("version: 1\nclusters: {a: {}, b: {}}\n")
    (tmp_path / "topics" / "t.yaml").write_text("topic: t\npartitions: 2\nreplication_factor: 1\n")
    (tmp_path / "s.json").write_text('{"brokers": [{"id": 1}], "topics": []}')
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("plan", "name the cluster: --cluster NAME, or --all-clusters"),
        ("apply", "name the cluster: --cluster NAME, or --all-clusters"),
        ("plan --all-clusters --cluster a", "--all-clusters and --cluster exclude each other"),
        ("plan --cluster a --cluster c", "no cluster is called 'c'; the estate knows: a, b, san"),
        ("plan --all-clusters --against s.json", "--against is about one cluster; name only that"),
        ("plan --cluster a --cluster b --bootstrap-servers x:1", "--bootstrap-servers is about on"),
        ("plan --cluster a --cluster b --explain t", "--explain is about one cluster; name only"),
        ("plan --all-clusters --out s.json", "s.json is a file; for several clusters name a dir"),
        ("plan --cluster a --out topics", "topics is a directory; for one cluster name a file"),
        ("apply --all-clusters --expect abc", "--expect is the fingerprint of one plan; name one"),
        ("plan --all-clusters --topic u*", "no topic that goes to a, b matches --topic 'u*'"),
        ("apply p.json --all-clusters", "the plan is for a, not for all clusters"),
        ("apply p.json --cluster a --cluster b", "the plan is for a, not for a, b"),
        (
            "apply p.json --topic t",
            "a saved plan is applied entirely; leave out --topic and --changed-si",
        ),
        (
            "apply p.json --changed-since main",
            "a saved plan is applied entirely; leave out --topic and ",
        ),
        ("plan --cluster a --changed-since main", "git cannot show topics at another commit"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(
    arguments: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["plan", "--cluster", "a", "--against", "s.json", "--out", "p.json"])
    capsys.readouterr()
    assert run(arguments.split()) == 64
    assert capsys.readouterr().err.startswith(f"error: {said}")


def test_a_cluster_that_is_named_twice_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--cluster", "a", "--cluster", "a", "--against", "s.json"]
    assert run(["plan", *arguments]) == 0
    assert capsys.readouterr().out.count("+ create    t") == 1


def test_an_estate_of_the_sandbox_alone_has_no_clusters_to_name(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (directory / "topics" / "clusters.yaml").unlink()
    assert run(["plan", "--all-clusters"]) == 64
    assert "clusters.yaml names no cluster" in capsys.readouterr().err


def test_settings_for_the_sandbox_make_it_none_of_all_clusters(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clusters = directory / "topics" / "clusters.yaml"
    clusters.write_text("version: 1\nclusters: {a: {}, sandbox: {ignore: [x]}}\n")
    assert load_planner(Wanted(Path("topics"), (), all_clusters=True)).clusters == ("a",)
    assert load_planner(Wanted(Path("topics"), ("sandbox",))).clusters == ("sandbox",)
    clusters.write_text("version: 1\nclusters: {sandbox: {ignore: [x]}}\n")
    assert run(["plan", "--all-clusters"]) == 64
    assert "clusters.yaml names no cluster" in capsys.readouterr().err


def test_plans_of_several_clusters_are_files_in_a_directory(directory: Path) -> None:
    files = PlanFiles(directory / "ci" / "plans", is_many=True)
    files.check()
    files.save(PLAN)
    assert files.place("prod").read_text().startswith('{"alerts":[],"cluster":{')
    assert [path.name for path in (directory / "ci" / "plans").iterdir()] == ["prod.json"]


def test_an_earlier_plan_of_a_cluster_that_has_none_now_goes(directory: Path) -> None:
    files = PlanFiles(directory / "plans", is_many=True)
    files.clear("prod")
    files.save(PLAN)
    files.clear("prod")
    assert list((directory / "plans").iterdir()) == []


def test_a_directory_that_cannot_be_made_is_named(directory: Path) -> None:
    with pytest.raises(UsageError, match=r"s.json/plans cannot be made: Not a directory"):
        PlanFiles(directory / "s.json" / "plans", is_many=True).save(PLAN)


def test_an_interrupt_begins_no_other_cluster(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    endings = {"a": Ending(Ended.FAILED), "b": Ending(Ended.INTERRUPTED)}
    monkeypatch.setattr("reconciler.cli.apply._try_to_apply", lambda _p, name, _a: endings[name])
    wanted = Wanted(Path("topics"), (), all_clusters=True)
    planner = Planner(wanted, load_estate(Path("topics")), ("a", "b", "c"), None, None)
    asked = ApplyOptions(True, False, None, None, None, None)
    assert _apply_each(planner, asked) == INTERRUPTED
    assert capsys.readouterr().out.split("\n")[-4:-1] == [
        "a: failed",
        "b: interrupted",
        "c: not begun",
    ]
