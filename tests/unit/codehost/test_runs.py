"""The run, as the two runners tell it in the environment."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.codehost.host import Links, PullRequest
from reconciler.codehost.runs import find_links, find_run
from reconciler.errors import UsageError


@pytest.fixture
def on_github(tmp_path: Path) -> dict[str, str]:
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 12, "head": {"sha": "abc"}}}))
    return {
        "GITHUB_ACTIONS": "true",
        "GITHUB_API_URL": "https://api.github.example",
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_REPOSITORY": "shop/topics",
        "GITHUB_RUN_ID": "7",
        "GITHUB_SERVER_URL": "https://github.example",
        "GITHUB_SHA": "def",
        "GITHUB_TOKEN": "secret",
    }


ON_GITLAB = {
    "GITLAB_CI": "true",
    "CI_API_V4_URL": "https://gitlab.example/api/v4",
    "CI_COMMIT_SHA": "def",
    "CI_JOB_URL": "https://gitlab.example/shop/topics/-/jobs/7",
    "CI_MERGE_REQUEST_IID": "12",
    "CI_PROJECT_ID": "1217",
    "RECONCILER_TOKEN": "secret",
}


def test_a_pull_request_on_github(on_github: dict[str, str]) -> None:
    run = find_run(on_github)
    assert run.url == "https://github.example/shop/topics/actions/runs/7"
    assert (run.commit, run.request) == ("def", PullRequest(12, "abc"))


def test_a_push_on_github(on_github: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "event.json").write_text("{}")
    assert find_run(on_github).request is None


def test_a_merge_request_on_gitlab() -> None:
    assert find_run(ON_GITLAB).request == PullRequest(12, "def")
    merged_results = {**ON_GITLAB, "CI_MERGE_REQUEST_SOURCE_BRANCH_SHA": "abc"}
    assert find_run(merged_results).request == PullRequest(12, "abc")


def test_a_branch_on_gitlab() -> None:
    branch = {name: value for name, value in ON_GITLAB.items() if name != "CI_MERGE_REQUEST_IID"}
    assert find_run(branch).request is None


def test_what_is_missing_is_named(on_github: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="GITHUB_TOKEN is not set"):
        find_run({**on_github, "GITHUB_TOKEN": ""})
    with pytest.raises(UsageError, match="RECONCILER_TOKEN is not set"):
        find_run({**ON_GITLAB, "RECONCILER_TOKEN": ""})


def test_elsewhere_there_is_nobody_to_tell() -> None:
    with pytest.raises(UsageError, match="not a run of GitHub Actions or GitLab CI"):
        find_run({})


def test_links_need_no_token(on_github: dict[str, str], tmp_path: Path) -> None:
    run, commit = "https://ci.example/7", "https://github.example/shop/topics/commit/def"
    del on_github["GITHUB_TOKEN"]
    assert find_links(on_github, run) == Links(run, None, commit)
    pull = {"number": 12, "html_url": "https://github.example/shop/topics/pull/12"}
    (tmp_path / "event.json").write_text(json.dumps({"pull_request": pull}))
    assert find_links(on_github, run) == Links(run, pull["html_url"], commit)


def test_links_on_gitlab() -> None:
    project = "https://gitlab.example/shop/topics"
    pushed = {"GITLAB_CI": "true", "CI_PROJECT_URL": project, "CI_COMMIT_SHA": "def"}
    commit = f"{project}/-/commit/def"
    assert find_links(pushed, None) == Links(None, None, commit)
    asked = {**pushed, "CI_MERGE_REQUEST_PROJECT_URL": project, "CI_MERGE_REQUEST_IID": "12"}
    assert find_links(asked, None) == Links(None, f"{project}/-/merge_requests/12", commit)


def test_elsewhere_there_are_no_links() -> None:
    assert find_links({"CI_COMMIT_SHA": "def"}, None) == Links()
