"""`init` and `doctor` without a cluster: nothing is overwritten, and what differs is said."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from repository import Repository, start_repository

from reconciler.cli.app import run

COMMIT = "0123456789abcdef0123456789abcdef01234567"
NEWER = "76543210fedcba9876543210fedcba9876543210"
# Port 1: nothing listens there.
CLUSTERS = ("--cluster", "staging=127.0.0.1:1", "--cluster", "prod=127.0.0.1:1")
PINNED = ("--source", "acme/reconciler", "--commit", COMMIT)
GITHUB = ("init", *CLUSTERS, "--host", "github", *PINNED, "--platform", "@acme/platform")
TOOLS = Path(sys.prefix) / "tools" / "bin"
"""Where `make test-workflows` installs actionlint."""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    for name in ("KAFKA_USER", "GITHUB_TOKEN", "GH_TOKEN", "RECONCILER_TOKEN", "GITLAB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    made = start_repository(tmp_path / "shop")
    made.git("remote", "add", "origin", "git@github.com:shop/topics.git")
    monkeypatch.chdir(made.root)
    return made


def list_files(root: Path) -> dict[str, bytes]:
    found = (path for path in sorted(root.rglob("*")) if path.is_file())
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in found
        if ".git/" not in path.as_posix()
    }


def ask(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    """Run a command. Returns its output."""
    found = run(words)
    out, err = capsys.readouterr()
    assert found == code, err
    return out + err


def test_a_repository_has_what_its_requests_need(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    said = ask(capsys, *GITHUB)
    files = list_files(repository.root)
    assert {"topics/clusters.yaml", "topics/example.yaml", "schemas/topic.schema.json",
            ".gitignore", ".pre-commit-config.yaml", ".github/CODEOWNERS",
            ".github/workflows/plan.yml"} <= set(files)  # fmt: skip
    assert f"jobs install commit {COMMIT[:12]} of acme/reconciler, before they have secrets" in said
    assert "staging is not read" in said
    assert 'gh variable set RECONCILER_CLUSTERS --body \'["staging", "prod"]\'' in said
    assert ask(capsys, "validate").endswith("all good\n")
    for spec in (repository.root / "topics").glob("*.yaml"):
        schema = spec.read_text().partition("$schema=")[2].partition("\n")[0]
        assert (spec.parent / schema).resolve().is_file()


@pytest.mark.parametrize("host", ["github", "gitlab", "none"])
def test_what_remains_begins_with_the_rights_of_the_accounts(
    host: str, repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    source = "https://a.example/reconciler.git" if host == "gitlab" else "acme/reconciler"
    pin = () if host == "none" else ("--source", source, "--commit", COMMIT)
    said = ask(capsys, "init", *CLUSTERS, "--host", host, *pin)
    assert (
        "     reconciler grants --cluster staging\n     reconciler grants --cluster prod\n" in said
    )
    assert said.index("reconciler grants") < said.index("KAFKA_PASSWORD")
    assert ask(capsys, "grants", "--cluster", "prod").count("kafka-acls") > 1


@pytest.mark.parametrize("host", ["github", "gitlab", "none"])
def test_clusters_without_sasl_have_no_account_to_store(
    host: str, repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    source = "https://a.example/reconciler.git" if host == "gitlab" else "acme/reconciler"
    pin = () if host == "none" else ("--source", source, "--commit", COMMIT)
    said = ask(capsys, "init", *CLUSTERS, "--host", host, "--security", "plaintext", *pin)
    assert "What remains" in said
    assert not any(word in said for word in ("KAFKA_USER", "KAFKA_PASSWORD", "reconciler grants"))
    assert ("environments/$environment" in said) == (host == "github")


def test_codeowners_is_what_the_command_owners_writes(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    ask(capsys, *GITHUB)
    command = ("owners", "--format", "codeowners", "--host", "github")
    assert (
        ask(capsys, *command, "--platform", "@acme/platform")
        == (repository.root / ".github" / "CODEOWNERS").read_text()
    )


def test_run_again_it_changes_nothing(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    ask(capsys, *GITHUB)
    before = list_files(repository.root)
    assert ask(capsys, "init") == "0 files written\n"
    assert ask(capsys, "init", "--update") == "0 files written\n"
    assert list_files(repository.root) == before


def test_what_people_wrote_is_left_as_it_is(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = {
        ".gitignore": "*.log\n",
        ".pre-commit-config.yaml": "repos: []\n",
        ".github/CODEOWNERS": "* @me\n",
        "topics/clusters.yaml": "version: 1\nclusters: {lab: {}}\n",
    }
    for path, text in mine.items():
        (repository.root / path).parent.mkdir(parents=True, exist_ok=True)
        (repository.root / path).write_text(text)
    said = ask(capsys, "init", "--host", "github", *PINNED, "--platform", "@acme/platform")
    assert "2 yours, not changed" in said
    assert {path: (repository.root / path).read_text() for path in mine} == mine
    assert not (repository.root / "topics" / "example.yaml").exists()


def test_a_workflow_of_another_release_is_named_and_written_on_request(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    ask(capsys, *GITHUB)
    old = repository.root / ".github" / "workflows" / "plan.yml"
    written = old.read_text()
    old.write_text(written.replace("timeout-minutes: 20", "timeout-minutes: 30"))
    edited = old.read_text()
    said = ask(capsys, "init")
    assert "~ .github/workflows/plan.yml  +1 -1" in said
    assert old.read_text() == edited

    said = ask(capsys, "init", "--update", code=64)
    assert "git does not have these files as they are: .github/workflows/plan.yml" in said
    assert old.read_text() == edited

    repository.commit()
    said = ask(capsys, "init", "--update", "--dry-run")
    assert "-    timeout-minutes: 30" in said
    assert old.read_text() == edited
    ask(capsys, "init", "--update")
    assert old.read_text() == written


def test_a_newer_commit_reaches_every_file_that_names_it(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    ask(capsys, *GITHUB)
    hooks = repository.root / ".pre-commit-config.yaml"
    hooks.write_text(hooks.read_text() + "  # mine\n")
    repository.commit()
    ask(capsys, "init", "--update", "--commit", NEWER)
    texts = [text.decode() for text in list_files(repository.root).values()]
    assert not any(COMMIT in text for text in texts)
    assert sum(NEWER in text for text in texts) == 8
    assert hooks.read_text().endswith("# mine\n")


def test_what_people_switched_on_in_gitlab_stays_on(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    source = ("--source", "https://a.example/reconciler.git", "--commit", COMMIT)
    ask(capsys, "init", *CLUSTERS, "--host", "gitlab", *source)
    path = repository.root / ".gitlab" / "reconciler.yml"
    own = "      moves: true\n      rebalance: true # by platform\n"
    written = path.read_text()
    path.write_text(written + own)  # the last cluster is prod
    assert ask(capsys, "init") == "0 files written\n"
    repository.commit()
    ask(capsys, "init", "--update", "--commit", NEWER)
    assert path.read_text() == written.replace(COMMIT, NEWER) + own


def test_a_wheel_of_the_repository_is_pinned_by_its_hash(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    wheel = repository.root / "kafka_reconciler-0.1.0-py3-none-any.whl"
    wheel.write_bytes(b"wheel")
    sha256 = hashlib.sha256(b"wheel").hexdigest()
    said = ask(capsys, "init", *CLUSTERS, "--host", "github", "--wheel", wheel.name)
    assert f"(sha256 {sha256[:12]}…)" in said
    listed = (repository.root / ".ci" / "wheel.txt").read_text()
    assert listed == (
        f"kafka-reconciler @ file://${{RECONCILER_TREE}}/{wheel.name} --hash=sha256:{sha256}\n"
    )
    assert (repository.root / ".ci" / "install.sh").stat().st_mode & 0o111
    assert ask(capsys, "init") == "0 files written\n"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((*CLUSTERS, "--host", "github"), "say what the jobs install"),
        ((*CLUSTERS, "--host", "github", "--commit", COMMIT), "--commit needs --source"),
        ((*CLUSTERS, *PINNED[:3], "abc123", "--host", "github"), "no full id"),
        ((*CLUSTERS, *PINNED, "--host", "gitlab"), "jobs of GitLab need its https address"),
        ((*CLUSTERS, *PINNED, "--wheel", "a.whl"), "exclude each other"),
        ((*CLUSTERS, "--host", "github", "--wheel", "a.whl"), "there is no wheel a.whl"),
        ((*CLUSTERS, "--host", "github", "--wheel", "https://a.example/a.whl"), "needs its hash"),
        ((*CLUSTERS, "--host", "gitlab", "--wheel", "a.whl"), "--wheel is for GitHub"),
        ((*CLUSTERS, "--host", "github", "--image", "a"), "--image is for GitLab"),
        ((*CLUSTERS, "--wheel-hash", "ab" * 32), "is the hash of --wheel"),
        (("--cluster", "staging"), "has no address; write NAME=HOST:PORT"),
        ((*CLUSTERS, "--stage", "staging"), "--stage must name each cluster once"),
        ((*CLUSTERS, *CLUSTERS), "--cluster names staging twice"),
        (("--from-cluster",), "--from-cluster needs --cluster"),
    ],
    ids=str,
)
def test_a_mistake_is_refused_before_anything_is_written(
    words: tuple[str, ...], why: str, repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    assert why in ask(capsys, "init", *words, code=64)
    assert list_files(repository.root) == {}


def test_clusters_of_a_repository_that_has_some_are_added_by_hand(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    ask(capsys, "init")
    assert "add others there" in ask(capsys, "init", *CLUSTERS, code=64)


def test_a_link_out_of_the_repository_is_not_followed(
    repository: Repository, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (repository.root / "schemas").symlink_to(outside)
    assert "is a link out of" in ask(capsys, "init", code=64)
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("pin", [PINNED, ("--wheel", "a.whl")], ids=["commit", "wheel"])
def test_the_workflows_have_no_mistake_that_linters_know(
    pin: tuple[str, ...], repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    (repository.root / "a.whl").touch()
    ask(capsys, "init", *CLUSTERS, "--host", "github", *pin)
    zizmor = Path(sys.executable).with_name("zizmor")
    command = [zizmor, "--offline", "--quiet", repository.root / ".github"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    if (actionlint := shutil.which("actionlint", path=TOOLS)) is None:
        pytest.skip("actionlint is not installed")
    done = subprocess.run([actionlint], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_doctor_says_what_is_done_what_is_missing_and_what_nobody_can_see_here(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    ask(capsys, *GITHUB)
    (repository.root / ".github" / "workflows" / "drift.yml").unlink()
    said = ask(capsys, "doctor", code=2)
    assert "ok       schemas" in said
    assert "missing  workflows: .github/workflows/drift.yml is missing" in said
    assert "unseen   connection: sasl." in said
    assert "unseen   GitHub: GITHUB_TOKEN or GH_TOKEN is not set" in said
    assert "GH_TOKEN=$(gh auth token) reconciler doctor" in said
    ask(capsys, "init")
    (repository.root / ".git" / "hooks").mkdir(exist_ok=True)
    (repository.root / ".git" / "hooks" / "pre-commit").write_text("#!/bin/sh\npre-commit run\n")
    assert "missing" not in ask(capsys, "doctor", "--offline").replace("0 missing", "")


def test_requests_for_clusters_that_change_are_optional_where_a_rebalance_is_allowed(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    clusters = {
        name: {"client": {"bootstrap.servers": "a:1"}, "moves": {"allow": [kind], "rate": "1MiB"}}
        for name, kind in (("staging", "drain"), ("prod", "rebalance"))
    }
    estate = {"version": 1, "clusters": clusters, "stages": [["staging"], ["prod"]]}
    repository.write(clusters=json.dumps(estate))
    said = ask(capsys, "init", "--host", "github", *PINNED)
    assert "Optional: a request opens by itself" in said
    assert "gh secret set RECONCILER_APP_ID --env reconciler-requests" in said
    assert "gh variable set RECONCILER_REBALANCE --body '[\"prod\"]'" in said
    assert "reconciler-requests" not in ask(capsys, "init")  # printed once


def test_doctor_of_an_empty_directory_says_how_to_begin(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "run: reconciler init" in ask(capsys, "doctor", code=2)
