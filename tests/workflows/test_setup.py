"""The set-up in docs/ci.md, followed literally in a new repository on either code host."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from act import Act
from authorized import PASSWORD, describe_client, start_authorized
from code_host import TOKEN, serve
from code_hosts import GitHubHost, GitLabHost
from confluent_kafka.admin import AdminClient
from gitlab_local import GitLabLocal
from runner_clone import ROOT, Clone, drop_queues
from team import OnGitHub, OnGitLab

from reconciler.sandbox.cluster import Cluster

if TYPE_CHECKING:
    from code_host import CodeHost
    from team import Pipelines
    from written import Written

PAGE = (ROOT / "docs" / "ci.md").read_text()
BOTH = ("staging", "prod-eu")


def read_blocks(heading: str, kind: str) -> list[str]:
    """Return the code blocks of a kind below a heading of the page, as a person copies them."""
    text = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    assert text, heading
    blocks = re.findall(rf"^( *)```{kind}\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL)
    return [re.sub(f"^{indent}", "", block, flags=re.MULTILINE) for indent, block in blocks]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """One cluster, which both names of the page stand for: the second finds nothing to do."""
    with start_authorized() as cluster:
        yield cluster


@pytest.fixture
def clone(tmp_path: Path, cluster: Cluster) -> Clone:
    """A new repository next to a clone of reconciler, with the clusters.yaml of the page."""
    source = Clone(tmp_path / "reconciler")
    for part in (".github", ".ci", "schemas"):
        shutil.copytree(ROOT / part, source.directory / part)
    source.begin()
    clone = Clone(tmp_path / "shop")
    (clone.directory / "topics").mkdir(parents=True)
    (text,) = read_blocks("Before you begin", "yaml")
    for key, value in describe_client(cluster).items():
        text, found = re.subn(f"{re.escape(key)}: .*", f"{key}: {value}", text)
        assert found == len(BOTH), key
    clone.write("clusters.yaml", text)
    return clone


def run(clone: Clone, script: str) -> None:
    subprocess.run(["/bin/bash", "-eu", "-c", script], cwd=clone.directory, check=True)


def set_up_github(
    clone: Clone, host: GitHubHost, program: str, environment: dict[str, str]
) -> OnGitHub:
    copying, creating, listing = read_blocks("Set up GitHub in ten minutes", "sh")
    run(clone, copying)
    assert re.findall(r"in (.*); do$", creating, re.MULTILINE)[0].split() == [
        name for cluster in BOTH for name in (f"{cluster}-plan", cluster)
    ]
    assert """--body '["staging", "prod-eu"]'""" in listing
    drop_queues(clone.directory)
    clone.begin()
    runs = Act(program, clone, host, environment)
    source = Clone(clone.directory.parent / "reconciler")
    runs.stand_ins[f"OWNER/reconciler@{source.git('rev-parse', 'HEAD')}"] = source.directory
    return OnGitHub(runs, clone, BOTH)


def set_up_gitlab(
    clone: Clone, host: GitLabHost, program: str, environment: dict[str, str]
) -> OnGitLab:
    (copying,) = read_blocks("Set up GitLab in ten minutes", "sh")
    run(clone, copying)
    clone.begin()
    local = GitLabLocal(program, clone, host, environment)
    (text,) = read_blocks("Set up GitLab in ten minutes", "yaml")
    named = r"project: platform/reconciler\n +ref: COMMIT\n +file: .ci/gitlab-ci.yml"
    text, found = re.subn(named, "local: .ci/gitlab-ci.yml", text)
    assert found == len(BOTH)
    source = Clone(clone.directory.parent / "reconciler")
    text, found = re.subn("commit: COMMIT", f"commit: {source.git('rev-parse', 'HEAD')}", text)
    assert found == len(BOTH)
    address = "https://gitlab.example/platform/reconciler.git"
    assert text.count(f"source: {address}\n") == len(BOTH)
    local.serve(address, source.directory)
    (clone.directory / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "gitlab-ci.yml", clone.directory / ".ci")
    (clone.directory / ".gitlab-ci.yml").write_text(text)
    clone.commit()
    local.publish()
    return OnGitLab(local, clone, BOTH)


@pytest.fixture(params=[GitHubHost, GitLabHost], ids=["github", "gitlab"])
def host(request: pytest.FixtureRequest) -> Iterator[CodeHost]:
    with serve(request.param()) as host:
        yield host


@pytest.fixture
def pipelines(
    clone: Clone, host: CodeHost, environment: dict[str, str], find_tool: Callable[[str], str]
) -> Pipelines:
    if isinstance(host, GitHubHost):
        return set_up_github(clone, host, find_tool("act"), environment)
    assert isinstance(host, GitLabHost)
    find_tool("rsync")
    return set_up_gitlab(clone, host, find_tool("gitlab-ci-local"), environment)


def test_whoever_follows_the_page_plans_and_applies_a_topic(
    clone: Clone, host: CodeHost, pipelines: Pipelines, cluster: Cluster, written: Written
) -> None:
    """The check of the accounts, the first request, its merge, and the night after it."""
    checked = pipelines.night()
    assert checked.code == 0, checked.text
    assert cluster.cluster_id in checked.text
    assert host.issues == {}

    topic = read_blocks("Set up GitHub in ten minutes", "yaml")[-1]
    clone.git("switch", "--quiet", "--create", "request-12", "main")
    clone.write("orders.yaml", topic)
    named = topic.splitlines()[0].rpartition("$schema=")[2]
    assert (clone.directory / "topics" / named).exists()
    request = host.open_request(12, clone.commit())
    planned = pipelines.plan(12)
    assert planned.code == 0, planned.text
    assert {note["body"].splitlines()[1] for note in request.comments} == {
        f"### Kafka plan for `{name}`: 1 to create" for name in BOTH
    }
    request.review("alice")
    clone.git("switch", "--quiet", "main")
    clone.git("merge", "--quiet", "--no-ff", "--message", "Merge 12", "request-12")
    request.merged_as = clone.git("rev-parse", "HEAD")
    merged = pipelines.push()
    assert merged.code == 0, merged.text
    assert "### Kafka apply on `staging`: done" in request.comments[2]["body"]
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    assert len(admin.list_topics(timeout=15).topics["orders.events"].partitions) == 6

    pipelines.publish()
    night = pipelines.night()
    assert night.code == 0, night.text
    assert host.issues == {}
    notes = (note["body"] for note in request.comments)
    assert written.find([PASSWORD, TOKEN], *notes) == []
