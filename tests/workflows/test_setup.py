"""The set-ups in docs/how-to/, followed literally in a new repository on either code host."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
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

PAGES = "".join(
    (ROOT / "docs" / "how-to" / f"set-up-{host}.md").read_text() for host in ("github", "gitlab")
)
Clusters = Mapping[str, Cluster]
BOTH = ("staging", "prod-eu")
EXAMPLE = "topics/example.yaml"


def read_blocks(heading: str, kind: str) -> list[str]:
    """Return the code blocks of a kind below a heading of the pages, as a person copies them."""
    text = PAGES.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    assert text, heading
    blocks = re.findall(rf"^( *)```{kind}\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL)
    return [re.sub(f"^{indent}", "", block, flags=re.MULTILINE) for indent, block in blocks]


@pytest.fixture
def clusters() -> Iterator[Clusters]:
    """The two clusters of the page, by name."""
    with start_authorized() as staging, start_authorized() as prod:
        yield dict(zip(BOTH, (staging, prod), strict=True))


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    """A new repository, next to a clone of reconciler."""
    source = Clone(tmp_path / "reconciler")
    for part in (".github", ".ci", "schemas"):
        shutil.copytree(ROOT / part, source.directory / part)
    source.begin()
    clone = Clone(tmp_path / "shop")
    clone.directory.mkdir()
    clone.begin()
    return clone


def write(clone: Clone, heading: str, clusters: Clusters, environment: dict[str, str]) -> None:
    """Run the first command of a set-up, and commit what it wrote but the first topic.

    The clients of the two clusters are not those of the page.
    """
    command, *_ = read_blocks(heading, "sh")
    script = ["/bin/bash", "-eu", "-c", command]
    subprocess.run(script, cwd=clone.directory, env=environment, check=True)
    path = clone.directory / "topics" / "clusters.yaml"
    head, *parts = re.split(rf"(?m)^(?=  (?:{'|'.join(BOTH)}):)", path.read_text())
    for number, name in enumerate(BOTH):
        assert parts[number].startswith(f"  {name}:")
        for key, value in describe_client(clusters[name]).items():
            line = f'{key}: "{value}"'
            parts[number], found = re.subn(f"{re.escape(key)}: .*", line, parts[number])
            assert found == 1, key
    path.write_text("".join([head, *parts]))
    (clone.directory / EXAMPLE).rename(clone.directory.parent / "example.yaml")
    drop_queues(clone.directory)
    clone.commit()
    clone.merge()


def set_up_github(
    clone: Clone, host: GitHubHost, program: str, clusters: Clusters, environment: dict[str, str]
) -> OnGitHub:
    heading = "Set up GitHub in ten minutes"
    _, committing, creating, listing = read_blocks(heading, "sh")
    write(clone, heading, clusters, environment)
    assert f"git add --all ':!{EXAMPLE}'" in committing
    assert re.findall(r"in (.*); do$", creating, re.MULTILINE)[0].split() == [
        name for cluster in BOTH for name in (f"{cluster}-plan", cluster)
    ]
    assert """--body '["staging", "prod-eu"]'""" in listing
    runs = Act(program, clone, host, environment)
    source = Clone(clone.directory.parent / "reconciler")
    runs.stand_ins[f"OWNER/reconciler@{source.git('rev-parse', 'HEAD')}"] = source.directory
    return OnGitHub(runs, clone, BOTH)


def set_up_gitlab(
    clone: Clone, host: GitLabHost, program: str, clusters: Clusters, environment: dict[str, str]
) -> OnGitLab:
    write(clone, "Set up GitLab in ten minutes", clusters, environment)
    pipeline = clone.directory / ".gitlab-ci.yml"
    written = pipeline.read_text()
    local = GitLabLocal(program, clone, host, environment)
    address = "https://gitlab.example/platform/reconciler.git"
    local.serve(address, clone.directory.parent / "reconciler")
    pipeline.write_text(written)
    clone.commit()
    local.publish()
    return OnGitLab(local, clone, BOTH)


@pytest.fixture(params=[GitHubHost, GitLabHost], ids=["github", "gitlab"])
def host(request: pytest.FixtureRequest) -> Iterator[CodeHost]:
    with serve(request.param()) as host:
        yield host


@pytest.fixture
def pipelines(
    clone: Clone,
    host: CodeHost,
    clusters: Clusters,
    environment: dict[str, str],
    find_tool: Callable[[str], str],
) -> Pipelines:
    if isinstance(host, GitHubHost):
        return set_up_github(clone, host, find_tool("act"), clusters, environment)
    assert isinstance(host, GitLabHost)
    find_tool("rsync")
    return set_up_gitlab(clone, host, find_tool("gitlab-ci-local"), clusters, environment)


def test_whoever_follows_the_page_plans_and_applies_a_topic(
    clone: Clone, host: CodeHost, pipelines: Pipelines, clusters: Clusters, written: Written
) -> None:
    """The check of the accounts, the first request, its merge, and the night after it."""
    checked = pipelines.night()
    assert checked.code == 0, checked.text
    assert all(cluster.cluster_id in checked.text for cluster in clusters.values())
    assert host.issues == {}

    (topic,) = read_blocks("Set up GitHub in ten minutes", "yaml")
    clone.git("switch", "--quiet", "--create", "request-12", "main")
    (clone.directory.parent / "example.yaml").rename(clone.directory / EXAMPLE)
    assert (clone.directory / EXAMPLE).read_text() == topic
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
    bodies = [note["body"] for note in request.comments]
    for name, cluster in clusters.items():
        assert any(f"### Kafka apply on `{name}`: done" in body for body in bodies), bodies
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
        assert len(admin.list_topics(timeout=15).topics["example.events"].partitions) == 3

    pipelines.publish()
    night = pipelines.night()
    assert night.code == 0, night.text
    assert host.issues == {}
    notes = (note["body"] for note in request.comments)
    assert written.find([PASSWORD, TOKEN], *notes) == []
