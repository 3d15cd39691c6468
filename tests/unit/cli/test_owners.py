"""`owners`: who owns what, and a CODEOWNERS file that a host reads."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from repository import Repository, start_repository

from reconciler.cli.app import run

CODEOWNERS = ("owners", "--format", "codeowners")
COUNTS = "partitions: 1\nreplication_factor: 1\n"
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
    found = lines(capsys, *PLATFORM, "--platform", "@lead", "--host", "github")
    assert found[:2] == [HEAD, "/topics/ @acme/platform @lead"]
    assert found[-3:] == [
        "/topics/clusters.yaml @acme/platform @lead",
        "/.github/ @acme/platform @lead",
        "/.gitlab-ci.yml @acme/platform @lead",
    ]


def test_the_platform_owns_what_is_exempt_from_the_policy(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("topics/policy-baseline.yaml").write_text("")
    assert "/topics/policy-baseline.yaml @acme/platform" in lines(capsys, *PLATFORM)


@pytest.mark.parametrize("host", [(), ("--host", "gitlab")])
def test_the_platform_owns_the_files_that_gitlab_reads_before_this_one(
    repository: Repository, capsys: pytest.CaptureFixture[str], host: tuple[str, ...]
) -> None:
    """A request that brings one would make all other lines void."""
    (repository.root / ".gitlab").mkdir()
    expected = ["/CODEOWNERS @acme/platform", "/docs/CODEOWNERS @acme/platform"]
    assert lines(capsys, *PLATFORM, *host)[-3:] == ["/.gitlab/ @acme/platform", *expected]
    (repository.root / "CODEOWNERS").touch()
    assert lines(capsys, *PLATFORM, *host)[-3:] == ["/.gitlab/ @acme/platform", *expected]


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
    (tmp_path / "a.yaml").write_text(f"topic: a\nowner: x\n{COUNTS}")
    monkeypatch.chdir(tmp_path)
    assert lines(capsys, "owners", ".", *PLATFORM[1:]) == [
        HEAD,
        "* @acme/platform",
        "/a.yaml @acme/x",
        "/clusters.yaml @acme/platform",
        "/CODEOWNERS @acme/platform",
        "/docs/CODEOWNERS @acme/platform",
    ]


def test_names_that_no_host_reads_as_they_are(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("topics/b 1!  (a){b}@^$.yaml").write_text("topic: b\nowner: b\n")
    Path("topics/*?.yaml").write_text("topic: d\nowner: d\n")
    Path("topics/.real.yaml").write_text("topic: c\nowner: c\n")
    Path("topics/link.yaml").symlink_to(".real.yaml")
    found = lines(capsys, *PLATFORM)
    assert "/topics/b\\ 1!\\ \\ (a){b}@^$.yaml @acme/b" in found
    assert "/topics/\\*\\?.yaml @acme/d" in found
    assert "/topics/.real.yaml @acme/c" in found
    assert "/topics/link.yaml @acme/c" in found  # another file can replace the link


ODD = ("*", "**", "or?ers", "[a-z]rders", "!orders", "#orders", "b [1]", "a  b", "o\\rders")
DECOYS = (
    "orders",
    "xorders",
    "a",
    "b 1",
    "b",
    "a b",
    "a/orders",
    "orders/x",
    "1",
    "o\\\\rders",
    "ab",
    "b x1y",
    "oxrders",
    "xa-zxrders",
)


@pytest.mark.parametrize("host", ["github", "gitlab"])
@pytest.mark.parametrize("name", [*ODD, "line\nend", "tab\tbed"])
def test_a_line_matches_its_own_file_only_or_is_refused(
    name: str, host: str, repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """Git reads the patterns here: both hosts match paths as it does, apart from what is below."""
    Path(f"topics/{name}.yaml").write_text("topic: odd\nowner: odd\n")
    code = run((*PLATFORM, "--host", host))
    said = capsys.readouterr()
    if code == 1:
        assert "[owner-path]" in said.err
        assert not said.out
        return
    (line,) = (line for line in said.out.splitlines() if line.endswith(" @acme/odd"))
    pattern = line.removesuffix(" @acme/odd")
    assert not re.search(r"[\[\]#]", pattern) or host == "gitlab"
    assert not re.search(r"(?<!\\)\s", pattern)
    files = [f"topics/{one}.yaml" for one in (name, *ODD, *DECOYS)]
    assert match(pattern, files) == {f"topics/{name}.yaml"}


def match(pattern: str, files: list[str]) -> set[str]:
    """Return the files that git finds for a pattern."""
    Path(".git/info/exclude").write_text(f"{pattern}\n")
    asked = "\0".join(files).encode()
    command = ("git", "check-ignore", "--no-index", "-z", "--stdin")
    answer = subprocess.run(command, input=asked, capture_output=True, check=True)
    return set(answer.stdout.decode().rstrip("\0").split("\0"))


@pytest.mark.parametrize(
    ("words", "refused"),
    [
        ((), "github and gitlab cannot name this path: it has '#', '[', ']'; rename it; "),
        (("--host", "github"), "CODEOWNERS of github cannot name this path: it has '#', '[', ']'"),
        (("--host", "gitlab"), "CODEOWNERS of gitlab cannot name this path: it has '#'; rename"),
    ],
)
def test_a_path_that_a_host_cannot_escape_is_named(
    words: tuple[str, ...],
    refused: str,
    repository: Repository,
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("topics/b [1] #2.yaml").write_text("topic: b\nowner: b\n")
    assert run((*PLATFORM, *words)) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert refused in said.err
    assert "topics/b [1] #2.yaml:1:1: " in said.err


def test_the_directory_of_the_estate_has_a_line_too(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("topics").rename("topics [eu]")
    assert run((*PLATFORM[:1], "topics [eu]", *PLATFORM[1:])) == 1
    assert "topics [eu]/:1:1: CODEOWNERS of github and gitlab" in capsys.readouterr().err
    assert "/topics\\ \\[eu\\]/ @acme/platform" in lines(
        capsys, *PLATFORM[:1], "topics [eu]", *PLATFORM[1:], "--host", "gitlab"
    )


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
        (("owners", "--host", "github"), "--host, --org and --platform are for --format codeo"),
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
    Path("topics/a.yaml").write_text(f"topic: a\nowner: '@a'\n{COUNTS}")
    assert run(CODEOWNERS) == 64
    assert "git cannot show where topics is in its repository" in capsys.readouterr().err
