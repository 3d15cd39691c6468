"""`owners`: who owns what, and a CODEOWNERS file that a host reads."""

from __future__ import annotations

from pathlib import Path

import pytest
from repository import Repository, start_repository

from reconciler.cli.app import run

CODEOWNERS = ("owners", "--format", "codeowners")
PLATFORM = (*CODEOWNERS, "--org", "acme", "--platform", "platform")
HEAD = "# Written by reconciler owners --format codeowners. The last line that matches decides."


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    made = start_repository(tmp_path / "repo")
    made.write(
        clusters="version: 1\n",
        orders="topic: orders\nowner: orders-team\n---\ntopic: refunds\nowner: money\n",
        team__shop="topic: prices\nowner: '@acme/shop'\n---\ntopic: clicks\nowner: '@acme/shop'\n",
        a="topic: mail\nowner: mail@acme.example\n---\ntopic: nobodys\n",
    )
    monkeypatch.chdir(made.root)
    return made


def lines(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert run(words) == 0
    return capsys.readouterr().out.splitlines()


def test_each_owner_has_a_line_with_its_topics(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    assert lines(capsys, "owners") == [
        "@acme/shop         2 topics  topics/team/shop.yaml",
        "mail@acme.example  1 topic   topics/a.yaml",
        "money              1 topic   topics/orders.yaml",
        "orders-team        1 topic   topics/orders.yaml",
        "no owner           1 topic   topics/a.yaml",
    ]


def test_every_file_has_the_accounts_of_its_topics(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run((*CODEOWNERS, "--org", "@acme/")) == 0
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        HEAD,
        "/topics/a.yaml mail@acme.example",
        "/topics/orders.yaml @acme/money @acme/orders-team",
        "/topics/team/shop.yaml @acme/shop",
    ]
    assert "nobody owns clusters.yaml and the workflows; pass --platform OWNER" in said.err
    assert "1 topic without an owner, such as nobodys" in said.err


def test_the_platform_owns_clusters_and_workflows_last_and_the_rest_first(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    (repository.root / ".github").mkdir()
    (repository.root / ".gitlab-ci.yml").touch()
    found = lines(capsys, *PLATFORM, "--platform", "@lead")
    assert found[:2] == [HEAD, "/topics/ @acme/platform @lead"]
    assert found[-3:] == [
        "/topics/clusters.yaml @acme/platform @lead",
        "/.github/ @acme/platform @lead",
        "/.gitlab-ci.yml @acme/platform @lead",
    ]


def test_paths_are_those_in_the_repository_wherever_it_runs(
    repository: Repository, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = lines(capsys, *PLATFORM)
    monkeypatch.chdir(repository.root / "topics" / "team")
    assert lines(capsys, "owners", "..", *PLATFORM[1:]) == here
    monkeypatch.chdir("/")
    assert lines(capsys, "owners", str(repository.root / "topics"), *PLATFORM[1:]) == here


def test_an_estate_at_the_top_is_every_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    start_repository(tmp_path)
    (tmp_path / "a.yaml").write_text("topic: a\nowner: x\n")
    monkeypatch.chdir(tmp_path)
    assert lines(capsys, "owners", ".", *PLATFORM[1:]) == [
        HEAD,
        "* @acme/platform",
        "/a.yaml @acme/x",
        "/clusters.yaml @acme/platform",
    ]


def test_names_that_no_host_reads_as_they_are(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("topics/b [1] #2!.yaml").write_text("topic: b\nowner: b\n")
    Path("topics/.real.yaml").write_text("topic: c\nowner: c\n")
    Path("topics/link.yaml").symlink_to(".real.yaml")
    found = lines(capsys, *PLATFORM)
    assert "/topics/b\\ ?1?\\ ?2?.yaml @acme/b" in found
    assert "/topics/.real.yaml @acme/c" in found


def test_an_owner_that_is_no_account_is_named_at_its_line(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    repository.write(b="topic: b\nowner: The Orders Team\n")
    assert run(CODEOWNERS) == 1
    assert capsys.readouterr().err.splitlines() == [
        "error: topics/b.yaml:2:8: the owner 'The Orders Team' is not an account that CODEOWNERS "
        "can name; write @org/team, @user or an email address [owner-account]",
        "error: topics/orders.yaml:2:8: the owner 'orders-team' is not an account that CODEOWNERS "
        "can name; write @org/team, @user or an email address, or pass --org NAME for "
        "@NAME/orders-team [owner-account]",
        "error: topics/orders.yaml:5:8: the owner 'money' is not an account that CODEOWNERS can "
        "name; write @org/team, @user or an email address, or pass --org NAME for @NAME/money "
        "[owner-account]",
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("owners", "--org", "acme"), "--org and --platform are for --format codeowners"),
        ((*CODEOWNERS, "--org", "a", "--platform", "a b"), "--platform 'a b' is no account"),
    ],
)
def test_usage(
    repository: Repository,
    words: tuple[str, ...],
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(words) == 64
    assert said in capsys.readouterr().err


def test_without_git_no_path_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("topics").mkdir()
    Path("topics/a.yaml").write_text("topic: a\nowner: '@a'\n")
    assert run(CODEOWNERS) == 64
    assert "git cannot show where topics is in its repository" in capsys.readouterr().err
