"""`apply --default-branch REF`: an approved plan is not applied once the branch asks for less.

Each plan was approved at its own commit, which is checked out. Then main goes on. Without another
reason, apply ends at the question that nobody here can answer, before it connects.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from repository import Repository, start_repository

from reconciler.api.history import read_last_run
from reconciler.cli.app import run

LIVE = {
    "brokers": [{"id": n} for n in (1, 2, 3)],
    "topics": [{"name": "grown", "partitions": [[1], [2]]}, {"name": "kept", "partitions": [[1]]}],
    "config_defaults": {},
}
CLUSTERS = """\
version: 1
defaults: {replication_factor: 1}
profiles: {log: {config: {retention.ms: 7d}}}
policy: {partitions: {max: 20}}
clusters:
  prod:
    cluster_id: one
    guards: {max_changed: 90%}
    moves: {allow: [replication, drain], rate: 30MiB, keep_free: 0%}
  other: {}
"""
NEW = "topic: new\npartitions: 3\nprofile: log\nclusters: [prod]\ndescription: new ones\n"
KEPT = "topic: kept\npartitions: 1\nconfig: {segment.ms: 1d}\n"
GROWN = "topic: grown\npartitions: 2\nreplication_factor: 2\n"
PLAN = ("plan", "--cluster", "prod", "--against", "s.json", "--out", "p.json")
APPLY = ("apply", "p.json", "--default-branch", "main", "--journal", "j.jsonl")
MANY = "---\n".join(f"topic: many.{n:02}\npartitions: 1\n" for n in range(12))


@pytest.fixture
def replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """Return how to plan some specs, let main go on, and apply the plan. It returns stderr."""
    (tmp_path / "repo").mkdir()
    monkeypatch.chdir(tmp_path / "repo")
    snapshot = {**LIVE, "cluster_id": "one"}

    def replay(
        planned: dict[str, str],
        go_on: Callable[[Repository], object],
        *options: str,
    ) -> str:
        made = start_repository(Path.cwd())
        Path(".git/info/exclude").write_text("*.json\n*.jsonl\n")
        made.commit(clusters=CLUSTERS, **planned)
        Path("s.json").write_text(json.dumps(snapshot))
        assert run([*PLAN, *options]) == 0, capsys.readouterr()
        go_on(made)
        made.commit()
        made.git("switch", "-q", "--detach", "HEAD~1")
        capsys.readouterr()
        assert run(APPLY) == 1
        return capsys.readouterr().err

    return replay


def write(**files: str) -> Callable[[Repository], object]:
    return lambda made: made.write(**files)


def change(old: str, new: str) -> Callable[[Repository], object]:
    """Change clusters.yaml."""
    assert old in CLUSTERS
    return write(clusters=CLUSTERS.replace(old, new))


def remove(made: Repository) -> None:
    Path("topics/new.yaml").unlink()


def link_clusters(made: Repository) -> None:
    Path("topics/clusters.yaml").rename("topics/.mine")
    Path("topics/clusters.yaml").symlink_to(".mine")


def link_estate(made: Repository) -> None:
    Path("topics").rename("specs")
    Path("topics").symlink_to("specs")


ELSE = "asks for something else for new"
OTHERWISE = {
    "removed": (remove, ELSE),
    "absent": (write(new=f"{NEW}state: absent\n"), ELSE),
    "partitions": (write(new=NEW.replace("3", "6")), ELSE),
    "another cluster": (write(new=NEW.replace("[prod]", "[other]")), ELSE),
    "override": (write(new=f"{NEW}overrides: {{prod: {{partitions: 4}}}}\n"), ELSE),
    "profile": (change("7d", "6d"), ELSE),
    "acknowledge": (write(new=f"{NEW}acknowledge: [data-loss]\n"), ELSE),
    "no yaml": (write(new="topic: ["), ELSE),
    "guard": (
        change("90%", "80%"),
        "has tighter guards than this plan: guards.max_changed (80% → 90%",
    ),
    "policy": (
        change("max: 20", "max: 9"),
        "has tighter guards than this plan: policy.partitions.max (9 → 20",
    ),
    "id": (
        change("id: one", "id: two"),
        "has tighter guards than this plan: cluster_id (two → one)",
    ),
    "owns": (
        change("policy:", "owns: ['new*', kept]\npolicy:"),
        "has tighter guards than this plan: owns (",
    ),
    "excluded": (
        change("guards:", "exclude_brokers: [3]\n    guards:"),
        "has another exclude_brokers for prod",
    ),
    "drained": (
        change("guards:", "drain_brokers: [3]\n    guards:"),
        "has another drain_brokers and another exclude_brokers for prod",
    ),
    "no cluster": (change("prod:", "prod-eu:"), "has no cluster prod"),
    "link": (
        link_clusters,
        "cannot be compared with this plan: topics/clusters.yaml is a symbolic link at ",
    ),
    "estate": (link_estate, "cannot be compared with this plan: topics is a symbolic link at "),
    "errors": (
        change("version: 1", "version: one"),
        "cannot be compared with this plan: its clusters.yaml has errors",
    ),
    "gone": (lambda made: made.git("rm", "-rq", "topics"), "has no cluster prod"),
}


@pytest.mark.parametrize(("go_on", "said"), OTHERWISE.values(), ids=OTHERWISE)
def test_what_the_branch_no_longer_asks_for_is_not_applied(
    go_on: Callable[[Repository], object],
    said: str,
    replay: Callable[..., str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    err = replay({"new": NEW, "kept": KEPT.replace("1d", "2d")}, go_on)
    branch = f"main ({Repository(Path.cwd()).git('rev-parse', 'main')[:10]})"
    assert f"{branch} {said}" in err
    assert err.count("[plan-outdated]") == 1
    assert "run apply by hand on that branch, which plans what it asks for now" in err
    last = read_last_run(Path("j.jsonl"), "prod")
    assert last is not None
    assert str(last.ending.ended) == "outdated"
    assert (last.ending.error or "") in err


SAME = {
    "comment": write(new=f"# why\n{NEW}"),
    "order": write(new="".join(reversed(NEW.splitlines(keepends=True)))),
    "texts": write(new=NEW.replace("new ones", "newer ones") + "owner: shop\n"),
    "written out": write(new=NEW.replace("profile: log", "config: {retention.ms: 168h}")),
    "other file": lambda made: made.git("mv", "topics/new.yaml", "topics/newer.yaml"),
    "other topic": write(kept=KEPT, more="topic: more\npartitions: 9\n"),
    "looser guard": change("90%", "95%"),
    "looser policy": change("max: 20", "max: 30"),
    "another cluster's": change("other: {}", "other: {exclude_brokers: [1]}"),
    "client": change("guards:", "client: {client.id: ours}\n    guards:"),
}


@pytest.mark.parametrize("go_on", SAME.values(), ids=SAME)
def test_what_reaches_no_planned_topic_is_no_difference(
    go_on: Callable[[Repository], object], replay: Callable[..., str]
) -> None:
    assert replay({"new": NEW}, go_on) == "error: stdin is not a terminal; pass --auto-approve\n"


def test_brokers_do_not_matter_to_a_plan_that_places_nothing(replay: Callable[..., str]) -> None:
    go_on = change("guards:", "exclude_brokers: [3]\n    guards:")
    assert "stdin is not a terminal" in replay({"kept": KEPT}, go_on)


def test_some_topics_are_named_and_the_others_counted(replay: Callable[..., str]) -> None:
    err = replay({"many": MANY}, write(many=""))
    assert "something else for many.00, many.01, many.02, many.03, many.04 and 7 more; run" in err


@pytest.mark.parametrize(
    ("go_on", "said"),
    [
        (write(grown=GROWN.replace("factor: 2", "factor: 1")), "something else for grown"),
        (change("guards:", "drain_brokers: [3]\n    guards:"), "has another drain_brokers and"),
        (change("rate: 30MiB", "rate: 10MiB"), "tighter guards than this plan: moves.rate (10MiB"),
        (write(kept=KEPT), "stdin is not a terminal"),
    ],
)
def test_a_plan_of_moves_follows_the_branch_as_well(
    go_on: Callable[[Repository], object], said: str, replay: Callable[..., str]
) -> None:
    assert said in replay({"grown": GROWN}, go_on, "--moves")


def test_an_unknown_branch_is_a_usage_error_that_the_journal_has(
    replay: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    replay({"new": NEW}, remove)
    other = ["refs/remotes/origin/main" if word == "main" else word for word in APPLY]
    assert run(other) == 64
    said = "there is no commit refs/remotes/origin/main in this repository; fetch it first"
    assert said in capsys.readouterr().err
    last = read_last_run(Path("j.jsonl"), "prod")
    assert last is not None
    assert str(last.ending.ended) == "usage error"
