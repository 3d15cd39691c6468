"""Branches, several clusters and moved specs, from a real repository to a real cluster."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from lab import connect_to
from repository import start_repository
from terminal import Terminal

from reconciler.cli.app import run
from reconciler.kafka.reader import KafkaReader
from reconciler.sandbox.cluster import Cluster

if TYPE_CHECKING:
    from repository import Repository

COUNTS = "partitions: 2\nreplication_factor: 2"


@pytest.fixture
def nobody() -> Iterator[str]:
    """Return an address at which nobody listens, and that nobody else gets."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


@pytest.fixture
def repository(
    cluster3: Cluster,
    topic_prefix: str,
    nobody: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Repository:
    """Return a branch of a repository: `one` and `two` are a real cluster, `down` is none."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    live = f"client: {{bootstrap.servers: '{cluster3.bootstrap_servers}'}}"
    down = f"client: {{bootstrap.servers: '{nobody}'}}"
    clusters = f"version: 1\nowns: ['{topic_prefix}*']\nclusters:\n"
    clusters += f"  down: {{{down}}}\n  one: {{{live}}}\n  two: {{{live}}}\n"
    made = start_repository(tmp_path)
    (tmp_path / ".gitignore").write_text("*.json\n")
    made.commit(
        clusters=clusters,
        one=f"topic: {topic_prefix}one\nclusters: [one]\n{COUNTS}",
        two=f"topic: {topic_prefix}two\nclusters: [two, down]\n{COUNTS}",
    )
    made.git("switch", "-qc", "work")
    return made


def live_topics(cluster: Cluster, prefix: str) -> set[str]:
    """Return the topics of a test, by what follows its prefix."""
    with connect_to(cluster) as connection:
        topics = KafkaReader(connection).read_cluster(config_of=()).topics
    return {name.removeprefix(prefix) for name in topics if name.startswith(prefix)}


BOTH = ("--cluster", "one", "--cluster", "two")


def test_a_branch_plans_what_it_changed_and_sees_the_rest(
    repository: Repository, topic_prefix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["apply", *BOTH, "--auto-approve"]) == 0
    repository.commit(three=f"topic: {topic_prefix}three\nclusters: [one]\n{COUNTS}")
    (repository.root / "topics" / "one.yaml").unlink()
    capsys.readouterr()
    arguments = ("plan", "--cluster", "one", "--changed-since", "main", "--format", "json")
    assert run(arguments) == 0
    plan = json.loads(capsys.readouterr().out)
    assert [change["name"] for change in plan["resource_changes"]] == [f"{topic_prefix}three"]
    assert plan["unmanaged"] == [f"{topic_prefix}one", f"{topic_prefix}two"]
    assert plan["commit"] == {"sha": repository.git("rev-parse", "HEAD"), "dirty": True}
    scope, left = (note["what"] for note in plan["notes"])
    assert scope.endswith("are planned: 1 of 1 topics")
    assert f" {topic_prefix}one; nothing is done to them" in left
    repository.write(three=f"topic: {topic_prefix.replace('-', '_')}x\nclusters: [one]\n{COUNTS}")
    assert run(arguments) == 1
    assert "[topic-not-owned]" in capsys.readouterr().err


def test_a_merge_applies_what_the_branch_planned(
    repository: Repository,
    cluster3: Cluster,
    topic_prefix: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Another commit, the same plan: the same fingerprint."""
    repository.commit(three=f"topic: {topic_prefix}three\nclusters: [one]\n{COUNTS}")
    scope = ("--cluster", "one", "--changed-since")
    assert run(["plan", *scope, "main", "--format", "json"]) == 0
    approved = json.loads(capsys.readouterr().out)["fingerprint"]
    repository.git("switch", "-q", "main")
    repository.git("merge", "-q", "--no-ff", "-m", "Merge", "work")
    expect = ("--expect", approved, "--auto-approve")
    assert run(["apply", *scope, "HEAD^1", *expect]) == 0
    assert live_topics(cluster3, topic_prefix) == {"three"}


def test_a_cluster_that_is_down_hides_no_other_plan(
    repository: Repository, topic_prefix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    plans = repository.root / "plans"
    plans.mkdir()
    (plans / "down.json").write_text("of an earlier run")
    assert run(["plan", "--all-clusters", "--out", "plans", "--detailed-exitcode"]) == 1
    out, err = capsys.readouterr()
    assert [line.split(" · ")[0] for line in out.splitlines() if " from " in line] == ["one", "two"]
    assert f"+ create    {topic_prefix}one" in out
    assert f"+ create    {topic_prefix}two" in out
    assert "error: down: " in err
    assert "[connect-refused]" in err
    assert "2 of 3 clusters planned" in err
    assert sorted(path.name for path in plans.iterdir()) == ["one.json", "two.json"]


def test_each_form_of_several_plans(
    repository: Repository, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    output = repository.root / "output"
    monkeypatch.setenv("GITHUB_OUTPUT", str(output))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(repository.root / "summary.md"))
    assert run(["plan", *BOTH, "--format", "json", "--detailed-exitcode"]) == 2
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["cluster"]["name"] for line in lines] == ["one", "two"]
    assert run(["plan", *BOTH, "--format", "markdown"]) == 0
    marks = [line for line in capsys.readouterr().out.splitlines() if line.startswith("<!--")]
    assert marks == [f"<!-- reconciler:plan cluster={name} -->" for name in ("one", "two")]
    assert run(["plan", *BOTH, "--format", "github"]) == 0
    assert [line[:16] for line in capsys.readouterr().out.splitlines()] == [
        "one: 1 to create",
        "two: 1 to create",
    ]
    outputs = dict(line.split("=", 1) for line in output.read_text().splitlines())
    assert outputs["changes"] == "2"
    assert json.loads(outputs["fingerprints"]).keys() == {"one", "two"}
    assert (repository.root / "summary.md").read_text().count("### Kafka plan for ") == 2


def test_what_fails_on_one_cluster_does_not_stop_the_others(
    repository: Repository,
    cluster3: Cluster,
    topic_prefix: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["apply", "--all-clusters", "--auto-approve"]) == 1
    out, err = capsys.readouterr()
    assert out.splitlines()[-3:] == [
        "down: error",
        "one: done",
        "two: done",
    ]
    assert "error: down: " in err
    assert live_topics(cluster3, topic_prefix) == {"one", "two"}


def test_each_cluster_is_approved_by_itself(
    repository: Repository, cluster3: Cluster, topic_prefix: str
) -> None:
    """A person says no to the first and yes to the second."""
    apply = [sys.executable, "-m", "reconciler", "apply", *BOTH]
    with Terminal(apply, {}, directory=repository.root) as terminal:
        terminal.wait_for(b"Apply 1 change to one? [y/N]: ")
        terminal.press(b"n\r")
        terminal.wait_for(b"Apply 1 change to two? [y/N]: ")
        terminal.press(b"y\r")
        terminal.wait_for(b"one: not approved\r\ntwo: done\r\n")
        terminal.wait_for_end()
    assert live_topics(cluster3, topic_prefix) == {"two"}


def test_a_saved_plan_is_refused_where_the_specs_have_moved(
    repository: Repository,
    cluster3: Cluster,
    topic_prefix: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    commit = repository.git("rev-parse", "HEAD")
    assert run(["plan", "--cluster", "one", "--out", "plan.json"]) == 0
    repository.commit(two=f"topic: {topic_prefix}two\nclusters: [two, down]\n{COUNTS}1")
    repository.write(new=f"topic: {topic_prefix}new\n{COUNTS}")
    capsys.readouterr()
    apply = ("apply", "plan.json", "--auto-approve")
    assert run(apply) == 1
    assert capsys.readouterr().err == (
        f"error: the plan was made of the specs of commit {commit[:10]}, and others are here: "
        f"topics/new.yaml, topics/two.yaml; check out {commit[:10]}, or plan again [plan-commit]\n"
    )
    assert live_topics(cluster3, topic_prefix) == set()
    (repository.root / "topics" / "new.yaml").unlink()
    repository.git("checkout", "-q", commit)
    assert run(apply) == 0
    assert live_topics(cluster3, topic_prefix) == {"one"}


@pytest.mark.parametrize("place", ["shallow", "exported"])
def test_where_nobody_can_tell_the_specs_that_is_said(
    place: str,
    repository: Repository,
    cluster3: Cluster,
    topic_prefix: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A clone that lacks the commit, and files without a repository."""
    assert run(["plan", "--cluster", "one", "--out", "plan.json"]) == 0
    repository.commit(two="topic: gone\nclusters: [two]")
    other = repository.root.parent / f"{repository.root.name}-{place}"
    repository.git("clone", "-q", "--depth", "1", f"file://{repository.root}", str(other))
    if place == "exported":
        subprocess.run(["rm", "-rf", str(other / ".git")], check=True)
    (repository.root / "plan.json").rename(other / "plan.json")
    monkeypatch.chdir(other)
    (other / "topics" / "two.yaml").unlink()
    capsys.readouterr()
    assert run(["apply", "plan.json", "--auto-approve"]) == 0
    reason = {"shallow": "that commit is not in this repository", "exported": "not a git repo"}
    assert f"not compared with the specs: {reason[place]}" in capsys.readouterr().err
    assert live_topics(cluster3, topic_prefix) == {"one"}
