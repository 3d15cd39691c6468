"""The run that this is part of, from the environment variables of GitHub Actions and GitLab CI."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from reconciler.codehost.github import JOB_ACCOUNT, GitHub
from reconciler.codehost.gitlab import GitLab
from reconciler.codehost.host import Links, PullRequest, Run
from reconciler.errors import UsageError
from reconciler.rulebook import spell_page


def find_run(environment: Mapping[str, str]) -> Run:
    """Return the run that the variables describe. Errors: UsageError for a missing variable."""
    if environment.get("GITHUB_ACTIONS"):
        return _on_github(environment)
    if environment.get("GITLAB_CI"):
        return _on_gitlab(environment)
    raise UsageError("this is not a run of GitHub Actions or GitLab CI")


def _on_github(environment: Mapping[str, str]) -> Run:
    repository = _need(environment, "GITHUB_REPOSITORY")
    host = GitHub(
        _need(environment, "GITHUB_API_URL"),
        repository,
        _need(environment, "GITHUB_TOKEN"),
        environment.get("RECONCILER_AUTHOR") or JOB_ACCOUNT,
    )
    # GITHUB_SHA is a temporary merge commit in a pull request; the event has the branch's commit.
    event = json.loads(Path(_need(environment, "GITHUB_EVENT_PATH")).read_text(encoding="utf-8"))
    pull = event.get("pull_request")
    server, run = _need(environment, "GITHUB_SERVER_URL"), _need(environment, "GITHUB_RUN_ID")
    return Run(
        host=host,
        url=f"{server}/{repository}/actions/runs/{run}",
        commit=_need(environment, "GITHUB_SHA"),
        request=PullRequest(pull["number"], pull["head"]["sha"]) if pull else None,
        is_push=environment.get("GITHUB_EVENT_NAME") == "push",
        branch=environment.get("GITHUB_REF_NAME", ""),
    )


def _on_gitlab(environment: Mapping[str, str]) -> Run:
    project = _need(environment, "CI_PROJECT_ID")
    host = GitLab(
        _need(environment, "CI_API_V4_URL"), project, _need(environment, "RECONCILER_TOKEN")
    )
    commit = _need(environment, "CI_COMMIT_SHA")
    # A pipeline for merged results runs on a temporary merge commit, which is never merged.
    head = environment.get("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA") or commit
    number = environment.get("CI_MERGE_REQUEST_IID")
    return Run(
        host=host,
        url=_need(environment, "CI_JOB_URL"),
        commit=commit,
        request=PullRequest(int(number), head) if number else None,
        is_push=environment.get("CI_PIPELINE_SOURCE") == "push",
        branch=environment.get("CI_COMMIT_BRANCH", ""),
    )


def find_links(environment: Mapping[str, str], run_url: str | None) -> Links:
    """Return the links that the variables of a CI give; outside a CI there are none."""
    request = commit = None
    if environment.get("GITHUB_ACTIONS"):
        if file := environment.get("GITHUB_EVENT_PATH"):
            event = json.loads(Path(file).read_text(encoding="utf-8"))
            request = (event.get("pull_request") or {}).get("html_url")
        commit = _join(environment, "GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "commit/GITHUB_SHA")
    elif environment.get("GITLAB_CI"):
        project, iid = "CI_MERGE_REQUEST_PROJECT_URL", "-/merge_requests/CI_MERGE_REQUEST_IID"
        request = _join(environment, project, iid)
        commit = _join(environment, "CI_PROJECT_URL", "-/commit/CI_COMMIT_SHA")
    return Links(run_url, request, commit)


def _join(environment: Mapping[str, str], *parts: str) -> str | None:
    """Join the values of variables to an address; None if one of them is not set.

    A part may have a path before its variable, such as commit/GITHUB_SHA.
    """
    split = [part.rpartition("/") for part in parts]
    if not all(environment.get(name) for _, _, name in split):
        return None
    return "/".join(f"{path}{slash}{environment[name]}" for path, slash, name in split)


def _need(environment: Mapping[str, str], name: str) -> str:
    value = environment.get(name)
    if not value:
        page = spell_page("reference/environment")
        raise UsageError(f"the environment variable {name} is not set; {page} says what it is")
    return value
