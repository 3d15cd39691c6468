"""The base of a request is what its commit has at the estate's own path: no link chooses another.

Each estate is one that a request can bring, in a real repository. `examples/merged` was merged
before: its clusters.yaml has another address, and looser guards.
"""

from __future__ import annotations

import json
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from repository import Repository, start_repository

from reconciler.api.planning import load_estate
from reconciler.cli.app import run
from reconciler.cli.base import find_changes, read_base, refuse_other_files
from reconciler.errors import ClusterError, SpecError, UsageError

ESTATE = Path("topics")
SNAPSHOT = {"brokers": [{"id": 1}], "topics": [], "config_defaults": {}}
A = "topic: a\npartitions: 1\nreplication_factor: 1\n"
CLUSTERS = """\
version: 1
clusters:
  prod:
    client: {bootstrap.servers: '127.0.0.1:9'}
    guards: {max_changed: 30%}
"""
PLAN = ("plan", "--cluster", "prod", "--against", "s.json", "--base", "main")


def example(repository: Repository, name: str, address: str) -> None:
    """Write an estate that nobody plans: it has another address, and looser guards."""
    directory = repository.root / name
    directory.mkdir(parents=True)
    text = CLUSTERS.replace("127.0.0.1:9", address).replace("30%", "100%")
    (directory / "clusters.yaml").write_text(text)
    (directory / "a.yaml").write_text(A.replace("partitions: 1", "partitions: 2"))


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """Return the address of whoever wants the passwords of the job."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


@pytest.fixture
def repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listener: socket.socket
) -> Repository:
    """Return a repository with an estate and examples on main, on a branch of its own."""
    made = start_repository(tmp_path / "repo")
    example(made, "examples/merged", f"127.0.0.1:{listener.getsockname()[1]}")
    shutil.copytree(made.root / "examples" / "merged", made.root / "examples" / "topics")
    made.commit(clusters=CLUSTERS, a=A)
    made.git("switch", "-qc", "work")
    monkeypatch.chdir(made.root)
    Path("s.json").write_text(json.dumps(SNAPSHOT))
    return made


def link_estate(repository: Repository) -> Path:
    shutil.rmtree(ESTATE)
    ESTATE.symlink_to("examples/merged")
    return ESTATE


def link_above(repository: Repository) -> Path:
    Path("kafka").symlink_to("examples")
    return Path("kafka/topics")


def link_and_back(repository: Repository) -> Path:
    Path("kafka").symlink_to("examples/merged")
    return Path("kafka/../topics")


def link_to_another_repository(repository: Repository) -> Path:
    """Its main is not the main of the repository with the link."""
    other = start_repository(repository.root / ".cache" / "other")
    other.commit(clusters=CLUSTERS.replace("30%", "100%"), a=A)
    shutil.rmtree(ESTATE)
    ESTATE.symlink_to(".cache/other/topics")
    return ESTATE


def link_clusters(repository: Repository) -> Path:
    Path("topics/.mine.yaml").write_text(CLUSTERS.replace("30%", "100%"))
    Path("topics/clusters.yaml").unlink()
    Path("topics/clusters.yaml").symlink_to(".mine.yaml")
    return ESTATE


def link_shouted_clusters(repository: Repository) -> Path:
    link_clusters(repository).joinpath("clusters.yaml").rename("topics/Clusters.YML")
    return ESTATE


LINKS = [
    (link_estate, "topics leads through the symbolic link topics to another directory"),
    (link_above, "kafka/topics leads through the symbolic link kafka to another directory"),
    (link_and_back, "kafka/../topics leads through the symbolic link kafka to another directory"),
    (link_to_another_repository, "topics leads through the symbolic link topics to another"),
    (link_clusters, "clusters.yaml is a symbolic link, so the base of its content is unknown"),
    (
        link_shouted_clusters,
        "Clusters.YML is a symbolic link, so the base of its content is unknown",
    ),
]


@pytest.mark.parametrize("option", ["--base", "--changed-since"])
@pytest.mark.parametrize(("bring", "said"), LINKS, ids=[bring.__name__ for bring, _ in LINKS])
def test_no_link_chooses_what_a_plan_is_compared_with(
    bring: Callable[[Repository], Path],
    said: str,
    option: str,
    repository: Repository,
    listener: socket.socket,
    capsys: pytest.CaptureFixture[str],
) -> None:
    estate = bring(repository)
    repository.commit()
    assert run(["plan", str(estate), "--cluster", "prod", option, "main"]) == 1
    shown = capsys.readouterr()
    assert f"{said}" in shown.err
    assert "[base-link]" in shown.err
    assert shown.out == ""
    with pytest.raises(BlockingIOError):
        listener.accept()


def test_the_shell_knows_a_link_that_the_system_forgets(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`cd kafka` into a link: the current directory of the process is where it leads."""
    link_above(repository)
    monkeypatch.chdir("kafka")
    monkeypatch.setenv("PWD", str(repository.root / "kafka"))
    assert run(["plan", "topics", "--cluster", "prod", "--base", "main"]) == 1
    assert "the symbolic link kafka to another directory" in capsys.readouterr().err
    monkeypatch.setenv("PWD", str(repository.root))  # left over, and of another directory
    assert read_base(Path("topics"), "main").entries["prod"].client


def nest(repository: Repository) -> None:
    """Let `topics` be a submodule, whose origin says what it likes."""
    other = start_repository(repository.root.parent / "other")
    other.commit()
    shutil.copytree(repository.root / "examples" / "merged", other.root, dirs_exist_ok=True)
    other.commit()
    shutil.rmtree(ESTATE)
    repository.git("rm", "-rq", "--cached", "topics")
    allowed = ("-c", "protocol.file.allow=always")
    repository.git(*allowed, "submodule", "--quiet", "add", str(other.root), "topics")
    repository.commit()


def test_a_submodule_has_no_base(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    nest(repository)
    assert run(["plan", "--cluster", "prod", "--base", "refs/remotes/origin/main"]) == 1
    said = "topics is in a submodule, whose branches are not those of this repository"
    assert said in capsys.readouterr().err


def test_a_repository_among_the_files_of_a_request_is_none(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a directory `.git`, all of it can be committed: its branches, and its settings."""
    shutil.rmtree(ESTATE)
    shutil.copytree("examples/merged", ESTATE)
    started = start_repository(repository.root.parent / "bare")
    shutil.copytree(ESTATE, started.root, dirs_exist_ok=True)
    started.commit()
    shutil.copytree(started.root / ".git", ESTATE, dirs_exist_ok=True)
    (ESTATE / "config").write_text(
        "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n"
        f"\tfsmonitor = touch {repository.root}/ran; false\n"
    )
    assert run(["plan", "--cluster", "prod", "--base", "main"]) == 1
    assert "prod is read with its client at" in capsys.readouterr().err  # of the real main
    assert run(["plan", "--cluster", "prod", "--against", "s.json"]) == 0
    assert not Path("ran").exists()


# What the base has.


def at_base(repository: Repository, bring: Callable[[Repository], object]) -> None:
    """Let main have what a request brought, and a new branch have an estate as it should be."""
    repository.git("switch", "-q", "main")
    bring(repository)
    repository.commit()
    repository.git("switch", "-qc", "next")
    if ESTATE.is_symlink() or ESTATE.is_file():
        ESTATE.unlink()
    shutil.rmtree(ESTATE, ignore_errors=True)
    repository.commit()
    repository.commit(clusters=CLUSTERS.replace("30%", "100%"), a=A)


def put_directory(repository: Repository) -> None:
    Path("topics/clusters.yaml").unlink()
    Path("topics/clusters.yaml").mkdir()
    Path("topics/clusters.yaml/b.yaml").write_text("topic: b\n")


def put_file(repository: Repository) -> None:
    shutil.rmtree(ESTATE)
    ESTATE.write_text("a file\n")


def put_two(repository: Repository) -> None:
    shutil.copy("topics/clusters.yaml", "topics/clusters.yml")


def put_text(repository: Repository) -> None:
    """As a link is checked out where there are none."""
    Path("topics/clusters.yaml").write_text("other.yaml")


BASES = [
    (link_estate, "topics is a symbolic link at BASE; merge a directory in its place first"),
    (link_clusters, "topics/clusters.yaml is a symbolic link at BASE; merge the file itself"),
    (nest, "topics is a submodule at BASE; merge a directory in its place first"),
    (put_directory, "topics/clusters.yaml is a directory at BASE; merge the file itself"),
    (put_file, "topics is a file at BASE; merge a directory in its place first"),
    (put_two, "more than one clusters.yaml at BASE: topics/clusters.yaml, topics/clusters.yml"),
    (put_text, "BASE:topics/clusters.yaml:1:1: the document is 'other.yaml', not a map"),
]


@pytest.mark.parametrize(("bring", "said"), BASES, ids=[bring.__name__ for bring, _ in BASES])
def test_a_base_without_a_regular_clusters_yaml_is_no_base_without_clusters(
    bring: Callable[[Repository], object],
    said: str,
    repository: Repository,
    capsys: pytest.CaptureFixture[str],
) -> None:
    at_base(repository, bring)
    assert run(PLAN) == 1
    shown = capsys.readouterr()
    assert said.replace("BASE", repository.git("rev-parse", "main")[:10]) in shown.err
    assert shown.out == ""


def test_the_name_of_a_base_is_spelled_as_that_of_an_estate(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    at_base(repository, lambda made: made.git("mv", "topics/clusters.yaml", "topics/Clusters.YML"))
    assert run(PLAN) == 0
    assert "guards.max_changed of prod: 30% → 100%" in capsys.readouterr().out


def test_everything_changed_since_the_estate_was_no_directory(repository: Repository) -> None:
    """The request that takes such a link away is planned, and everything in it is new."""
    for bring, kind in ((link_estate, "a symbolic link"), (nest, "a submodule")):
        at_base(repository, bring)
        base = repository.git("rev-parse", "main")
        changes = find_changes(ESTATE, ["prod"], "main")
        assert changes.everything == f"topics is {kind} at main ({base[:10]})"
        repository.git("branch", "-qf", "main", "HEAD")
        repository.git("switch", "-q", "main")
        repository.git("branch", "-qD", "next")


def test_an_estate_that_the_base_does_not_have_is_new(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    ESTATE.rename("kafka")
    repository.commit()
    assert read_base(Path("kafka"), "main").entries.keys() == {"sandbox"}
    assert run(["plan", "kafka", "--cluster", "prod", "--base", "main"]) == 1
    assert "[client-new]" in capsys.readouterr().err


# What is no turn: links above the repository, and every spelling of the path.


@pytest.mark.parametrize(
    ("here", "estate"),
    [
        (".", "topics"),
        (".", "./topics/"),
        ("topics", "."),
        ("topics", "../topics"),
        ("examples/merged", "../../topics"),
        (".", "{home}/repo/topics"),
        ("{home}", "repo/topics"),
        ("{home}/repo", "topics"),
    ],
)
def test_the_checkout_is_below_a_link(
    here: str,
    estate: str,
    repository: Repository,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    home = tmp_path / "home"
    home.symlink_to(tmp_path)
    monkeypatch.chdir(here.format(home=home))
    monkeypatch.setenv("PWD", here.format(home=home))
    path = Path(estate.format(home=home))
    base = read_base(path, "main")
    assert base.entries["prod"].guards.max_changed_percent == 30
    assert not find_changes(path, ["prod"], "main").touch(
        load_estate(path).topics_for("prod")[0], base.entries["prod"]
    )


def test_a_worktree_has_the_base_of_its_repository(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.git("worktree", "add", "-q", str(tmp_path / "tree"))
    monkeypatch.chdir(tmp_path / "tree")
    assert "prod" in read_base(ESTATE, "main").entries


def test_a_repository_within_another_one_is_its_own(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a second checkout in the workspace of a job: it is no part of the one around it."""
    inner = start_repository(repository.root / "inner")
    inner.commit(clusters=CLUSTERS.replace("30%", "7%"))
    base = read_base(Path("inner/topics"), "main")
    assert base.entries["prod"].guards.max_changed_percent == 7


def test_without_git_there_is_no_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ESTATE.mkdir()
    with pytest.raises(UsageError, match=r"git cannot show topics at another commit: .*leave out"):
        read_base(ESTATE, "main")


def test_every_link_is_named_at_once(repository: Repository) -> None:
    link_above(repository)
    Path("more").symlink_to("kafka/topics")
    with pytest.raises(SpecError) as refused:
        read_base(Path("more"), "main")
    assert [found.rule for found in refused.value.findings] == ["base-link", "base-link"]


# Files that the client of the base names.


def name_files(repository: Repository, client: str) -> None:
    """Let the client on main name files, of which certs/ca.pem is in the repository."""
    repository.git("switch", "-q", "main")
    (repository.root / "certs").mkdir()
    (repository.root / "certs" / "ca.pem").write_text("ours")
    repository.commit(clusters=CLUSTERS.replace("9'}", f"9', {client}}}"))
    repository.git("switch", "-q", "work")
    repository.git("merge", "-q", "main")


def change_file(repository: Repository) -> None:
    (repository.root / "certs" / "ca.pem").write_text("theirs")


def commit_file(repository: Repository) -> None:
    change_file(repository)
    repository.commit()


def link_file(repository: Repository) -> None:
    (repository.root / "theirs.pem").write_text("theirs")
    (repository.root / "certs" / "ca.pem").unlink()
    (repository.root / "certs" / "ca.pem").symlink_to("../theirs.pem")
    repository.commit()


def link_directory(repository: Repository) -> None:
    shutil.move(repository.root / "certs", repository.root / "other")
    (repository.root / "certs").symlink_to("other")
    repository.commit()


@pytest.mark.parametrize("change", [change_file, commit_file, link_file, link_directory])
@pytest.mark.parametrize("key", ["ssl.ca.location: certs/ca.pem", "sasl.password: '${{file:{}}}'"])
def test_a_request_does_not_choose_the_files_of_the_client(
    key: str, change: Callable[[Repository], None], repository: Repository
) -> None:
    name_files(repository, key.format(repository.root / "certs" / "ca.pem"))
    base = read_base(ESTATE, "main")
    refuse_other_files(ESTATE, base, "prod")
    change(repository)
    with pytest.raises(ClusterError, match=r"ca\.pem.*\[client-file\]"):
        refuse_other_files(ESTATE, base, "prod")


def test_files_outside_the_repository_are_those_of_the_machine(
    repository: Repository, tmp_path: Path
) -> None:
    (tmp_path / "ca.pem").write_text("ours")
    name_files(repository, f"ssl.ca.location: {tmp_path / 'ca.pem'}, ssl.ca.pem: '${{env:CA}}'")
    base = read_base(ESTATE, "main")
    (tmp_path / "ca.pem").write_text("newer")
    refuse_other_files(ESTATE, base, "prod")


def test_a_plan_with_a_base_looks_at_the_files_before_it_connects(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    name_files(repository, "ssl.ca.location: certs/ca.pem")
    change_file(repository)
    assert run(["plan", "--cluster", "prod", "--base", "main"]) == 1
    said = capsys.readouterr().err
    assert "[client-file]" in said
    assert "connect" not in said
