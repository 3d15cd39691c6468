"""What users install, by our script and from this tree, in truth: it evaluates policies."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from act import Act
from gitlab_local import GitLabLocal
from hostile_modules import Planted, list_user_sites
from runner_clone import ROOT, SECRETS, TIMEOUT_S, copy_source

if TYPE_CHECKING:
    from code_hosts import GitHubHost, GitLabHost
    from runner_clone import Repository

RULE = "A topic has 12 partitions at most. Ask #platform for more"
POLICY = f"""\
policy:
  rules:
    small-topics:
      check: spec.partitions <= 12
      message: "{RULE}"
"""


@pytest.fixture
def ruled(repository: Repository) -> Repository:
    """An estate with a rule that needs CEL, and a topic that it allows."""
    with (repository.directory / "topics" / "clusters.yaml").open("a") as file:
        file.write(POLICY)
    repository.wish("orders", 2)
    return repository


@pytest.fixture
def planted(ruled: Repository, tmp_path: Path) -> Planted:
    """Modules that nothing may import: an installation has most of the imports."""
    home = tmp_path / "home"
    places = [ruled.directory, ruled.directory / "topics", home, *list_user_sites(home)]
    return Planted(tmp_path / "imported", places)


def test_the_action_evaluates_the_rules_of_a_request(
    ruled: Repository,
    github: GitHubHost,
    bare: dict[str, str],
    planted: Planted,
    find_tool: Callable[[str], str],
) -> None:
    act = Act(find_tool("act"), ruled, github, bare)
    github.open_request(12, ruled.commit())
    good = act.pull(fork=True)  # only validation, which installs whatever the runner has
    assert planted.list_imported() == []
    assert (good.code, good.jobs) == (0, {"validate", "planned"})
    assert "1 topic in 1 file, 1 cluster: all good" in good.text
    ruled.wish("orders", 13)
    github.talks[12].head = ruled.commit()
    bad = act.pull(fork=True)
    assert bad.code == 1
    ((place, text),) = bad.annotations("error")
    assert place == "topics/orders.yaml:2"
    assert RULE in text


def test_the_template_evaluates_the_rules_of_a_request(
    ruled: Repository,
    gitlab: GitLabHost,
    bare: dict[str, str],
    planted: Planted,
    find_tool: Callable[[str], str],
    tmp_path: Path,
) -> None:
    """Its checkout has no part in what is installed."""
    find_tool("rsync")
    source = copy_source(tmp_path / "source")
    inputs = {"source": source.directory.as_uri(), "commit": source.commit()}
    pipeline = GitLabLocal(find_tool("gitlab-ci-local"), ruled, gitlab, bare, **inputs)
    pipeline.include([{"cluster": "lab", **inputs}])  # each include has the job that validates
    for name in ("requirements.txt", "requirements-cel.txt", "requirements-msk.txt", "install.sh"):
        (ruled.directory / ".ci" / name).write_text("exit 1\n")
    ruled.wish("orders", 13)
    ruled.commit()
    bad = pipeline.validate()
    assert planted.list_imported() == []
    assert bad.code == 1
    assert RULE in bad.text


IAM = "bootstrap.servers: broker.example:9098, security.protocol: SASL_SSL"
NOBODY = "aws.profile nobody is not in the AWS files of this machine"
"""What AWS's library says, if it is installed, before anything connects."""


@pytest.fixture
def on_msk(repository: Repository) -> Repository:
    """An estate for a cluster of Amazon MSK with IAM, on main, and a request with a topic."""
    iam = f"{IAM}, sasl.mechanism: AWS_MSK_IAM, aws.region: eu-west-1, aws.profile: nobody"
    repository.write("clusters.yaml", f"version: 1\nclusters: {{lab: {{client: {{{iam}}}}}}}\n")
    repository.commit()
    repository.merge()
    repository.wish("orders", 2)
    return repository


def test_the_action_installs_the_extras_that_a_variable_names(
    on_msk: Repository,
    github: GitHubHost,
    bare: dict[str, str],
    find_tool: Callable[[str], str],
) -> None:
    act = Act(find_tool("act"), on_msk, github, bare)
    del act.variables["RECONCILER_INSTALL"]
    act.variables["RECONCILER_EXTRAS"] = "cel msk"
    github.open_request(12, on_msk.commit())
    assert NOBODY in act.pull().text


def test_the_template_installs_the_extras_that_an_input_names(
    on_msk: Repository,
    gitlab: GitLabHost,
    bare: dict[str, str],
    find_tool: Callable[[str], str],
    tmp_path: Path,
) -> None:
    find_tool("rsync")
    source = copy_source(tmp_path / "source")
    inputs = {"source": source.directory.as_uri(), "commit": source.commit()}
    pipeline = GitLabLocal(
        find_tool("gitlab-ci-local"), on_msk, gitlab, bare, **inputs, extras="cel msk"
    )
    gitlab.open_request(12, on_msk.commit())
    assert NOBODY in pipeline.plan(12).text


def test_the_script_installs_the_tested_releases(
    ruled: Repository, bare: dict[str, str], installed: Path
) -> None:
    """Nothing of the tests' own environment is there."""

    def run(*words: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words,
            cwd=ruled.directory,
            env={**bare, **more},
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
        )

    freeze = ("-I", "-m", "pip", "freeze", "--exclude", "kafka-reconciler")
    found = set(run(installed / "venv" / "bin" / "python", *freeze).stdout.split())
    constraints = ROOT / ".ci" / "constraints.txt"
    assert found <= set(constraints.read_text().splitlines())
    names = {name.partition("==")[0] for name in found}
    assert {"cel-expr-python", "aws-msk-iam-sasl-signer-python"} <= names

    reconciler = installed / "command" / "reconciler"
    assert run(reconciler, "validate", "topics").returncode == 0
    planned = run(
        reconciler, "plan", "topics", "--cluster", "lab", "--detailed-exitcode", **SECRETS
    )
    assert planned.returncode == 2, planned.stderr
    assert f"+ create    {ruled.prefix}orders" in planned.stdout
    ruled.wish("orders", 13)
    refused = run(reconciler, "validate", "topics")
    assert refused.returncode == 1
    assert RULE in refused.stdout
