"""Which commit brought the current spec of a topic, and the report that needs it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from code_host import TOKEN, serve
from code_hosts import GitHubHost
from repository import Repository, start_repository

from reconciler.cli import git
from reconciler.cli.app import run
from reconciler.cli.git import find_origins
from reconciler.errors import UsageError

CLUSTERS = "version: 1\ndefaults: {config: {flush.ms: 5s}}\nclusters: {prod: {}}\n"
ESTATE = Path("topics")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository whose file `shop` has the topics a and b."""
    made = start_repository(tmp_path_factory.mktemp("original"))
    made.commit(clusters=CLUSTERS, shop="topic: a\n---\ntopic: b\n")
    return made.root


@pytest.fixture
def repository(original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    made = Repository(shutil.copytree(original, tmp_path / "repo"))
    monkeypatch.chdir(made.root)
    return made


def origin(topic: str = "a") -> str | None:
    return find_origins(ESTATE, "prod", [topic]).get(topic)


def test_a_commit_that_changes_another_topic_of_the_file_is_no_origin(
    repository: Repository,
) -> None:
    wanted = repository.commit(shop="topic: a\npartitions: 2\n---\ntopic: b\n")
    repository.commit(shop="# sorted\ntopic: b\n---\n{partitions: 2, topic: a}\n")
    last = repository.commit(shop="topic: b\npartitions: 3\n---\ntopic: a\npartitions: 2\n")
    repository.commit(other="topic: other")
    assert find_origins(ESTATE, "prod", ["a", "b", "gone"]) == {"a": wanted, "b": last}


def test_the_first_commit_is_the_origin_of_what_never_changed(repository: Repository) -> None:
    first = repository.git("rev-parse", "HEAD")
    repository.commit(clusters=f"{CLUSTERS}# why\n")
    assert origin() == first


def test_a_default_that_reaches_the_topic_changes_it(repository: Repository) -> None:
    wanted = repository.commit(clusters=CLUSTERS.replace("5s", "6s"))
    repository.commit(
        clusters=CLUSTERS.replace("5s", "6s").replace("{}", "{guards: {max_deletes: 1}}")
    )
    assert origin() == wanted


def test_a_topic_is_followed_into_the_file_that_it_came_from(repository: Repository) -> None:
    wanted = repository.commit(shop="topic: a\npartitions: 2\n---\ntopic: b\n")
    repository.commit(shop="topic: b\n", team__a="topic: a\npartitions: 2\n")
    assert origin() == wanted


def test_a_topic_that_came_back_is_as_new(repository: Repository) -> None:
    repository.commit(shop="topic: b\n")
    wanted = repository.commit(shop="topic: a\n---\ntopic: b\n")
    assert origin() == wanted


def test_a_merge_is_the_origin_of_what_its_branch_changed(repository: Repository) -> None:
    repository.git("switch", "-qc", "work")
    repository.commit(shop="topic: a\npartitions: 2\n---\ntopic: b\n")
    repository.commit(shop="topic: a\npartitions: 3\n---\ntopic: b\n")
    repository.git("switch", "-q", "main")
    repository.commit(other="topic: other")
    repository.git("merge", "-q", "--no-ff", "-m", "Merge", "work")
    assert origin() == repository.git("rev-parse", "HEAD")


def test_the_target_of_a_link_is_the_file_of_a_topic(repository: Repository) -> None:
    (repository.root / "topics" / "shop.yaml").rename(repository.root / "topics" / ".shop")
    (repository.root / "topics" / "shop.yaml").symlink_to(".shop")
    repository.commit()
    (repository.root / "topics" / ".shop").write_text("topic: a\npartitions: 2\n---\ntopic: b\n")
    wanted = repository.commit()
    assert origin() == wanted


def test_what_is_uncommitted_has_no_origin(repository: Repository) -> None:
    repository.write(new="topic: new")
    assert origin("new") is None


def test_errors_in_clusters_yaml_hide_what_was_before_them(repository: Repository) -> None:
    repository.commit(clusters="version: [")
    repository.commit(clusters=CLUSTERS)
    assert origin() is None


def test_only_so_many_commits_are_compared(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit(clusters=f"{CLUSTERS}# 1\n")
    repository.commit(clusters=f"{CLUSTERS}# 2\n")
    monkeypatch.setattr(git, "COMPARED", 2)
    assert origin() is None
    monkeypatch.setattr(git, "COMPARED", 3)
    assert origin() is not None


def test_a_shallow_clone_names_the_way_out(repository: Repository, tmp_path: Path) -> None:
    repository.commit(clusters=f"{CLUSTERS}# why\n")
    repository.git("clone", "-q", "--depth", "1", repository.root.as_uri(), str(tmp_path / "flat"))
    with pytest.raises(UsageError, match=r"are not known; .* fetch-depth: 0 in the workflow"):
        find_origins(tmp_path / "flat" / "topics", "prod", ["a"])


# The report.


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[GitHubHost]:
    (tmp_path / "event.json").write_text("{}")
    with serve(GitHubHost()) as host:
        variables = {
            "GITHUB_ACTIONS": "true",
            "GITHUB_API_URL": host.url,
            "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
            "GITHUB_REPOSITORY": "shop/topics",
            "GITHUB_RUN_ID": "7",
            "GITHUB_SERVER_URL": "https://github.example",
            "GITHUB_SHA": "f" * 40,
            "GITHUB_TOKEN": TOKEN,
        }
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        yield host


def test_the_nightly_run_reports_on_the_request_that_lowered_the_topic(
    repository: Repository, host: GitHubHost, capsys: pytest.CaptureFixture[str]
) -> None:
    lowered = "gradual: true\nconfig: {retention.ms: 1d}\nacknowledge: [data-loss]\n"
    request = host.open_request(12, "d" * 40)
    request.merged_as = repository.commit(shop=f"topic: a\npartitions: 1\n{lowered}")
    later = host.open_request(13, "e" * 40)
    later.merged_as = repository.commit(
        b="topic: b\npartitions: 1\nreplication_factor: 1\n", clusters=f"{CLUSTERS}# why\n"
    )
    live = {"flush.ms": "5000", "retention.ms": str(4 * 86_400_000)}
    topics = [{"name": "a", "partitions": [[1]], "config": live}]
    state = {"cluster_id": "one", "brokers": [{"id": 1}], "topics": topics}
    Path("live.json").write_text(json.dumps(state))
    assert run(["plan", "--cluster", "prod", "--against", "live.json", "--out", "plan.json"]) == 0
    report = ["report", "gradual", "--cluster", "prod", "--plan"]
    capsys.readouterr()
    assert run([*report, "plan.json", "--journal", "none.jsonl"]) == 0
    assert capsys.readouterr() == ("", "comment on request 12 written\n")
    assert "| 4d → 2d | error: apply did not start" in request.comments[0]["body"]
    assert later.comments == []

    assert run([*report, "none.json"]) == 0
    assert capsys.readouterr().err == "no step of a gradual change on prod\n"
