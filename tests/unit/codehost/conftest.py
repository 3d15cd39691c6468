"""Both code hosts, and a run on each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from code_host import HEAD, MERGED, TOKEN, CodeHost, serve
from code_hosts import GitHubHost, GitLabHost

from reconciler.codehost.github import GitHub
from reconciler.codehost.gitlab import GitLab
from reconciler.codehost.host import PullRequest, Run


@pytest.fixture(params=[GitHubHost, GitLabHost])
def host(request: pytest.FixtureRequest) -> Iterator[CodeHost]:
    with serve(request.param()) as host:
        yield host


@pytest.fixture
def run(host: CodeHost) -> Run:
    """A run for pull request 12."""
    if isinstance(host, GitHubHost):
        client: GitHub | GitLab = GitHub(host.url, "shop/topics", TOKEN, wait=_at_once)
    else:
        client = GitLab(host.url, "1217", TOKEN, wait=_at_once)
    return Run(client, "https://ci.shop.example/runs/7", MERGED, PullRequest(12, HEAD))


def _at_once(_: float) -> None:
    """Wait for nothing: the server of these tests is never busy."""
