"""`plan --base REV`: a request cannot choose where its plan connects."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from repository import Repository, start_repository

from reconciler.cli.app import run
from reconciler.sandbox.cluster import Cluster

SECRET = "c0rrect-h0rse-battery"
PLAN = ("plan", "topics", "--cluster", "lab", "--base", "main")


def clusters(servers: str, more: str = "", name: str = "lab") -> str:
    client = f"{{bootstrap.servers: '{servers}', sasl.username: '${{env:KAFKA_USER}}'{more}}}"
    return f"version: 1\nclusters: {{{name}: {{client: {client}}}}}\n"


@pytest.fixture
def repository(
    tmp_path: Path, cluster3: Cluster, topic_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> Repository:
    """Return a repository on a branch of its own; its main has an estate for a real cluster."""
    made = start_repository(tmp_path / "repo")
    topic = f"topic: {topic_prefix}a\npartitions: 2\nreplication_factor: 2\n"
    made.commit(clusters=clusters(cluster3.bootstrap_servers), a=topic)
    made.git("switch", "-qc", "work")
    monkeypatch.chdir(made.root)
    monkeypatch.setenv("KAFKA_USER", SECRET)
    return made


@contextmanager
def listening() -> Iterator[socket.socket]:
    """Listen on loopback as a server that a request brings would."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.01)
        yield server


def was_reached(server: socket.socket) -> bool:
    try:
        server.accept()[0].close()
    except TimeoutError:
        return False
    return True


def test_a_request_that_names_another_server_is_planned_on_the_old_one(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with listening() as theirs:
        port = theirs.getsockname()[1]
        repository.commit(clusters=clusters(f"127.0.0.1:{port}", ", client.id: other"))
        assert run(PLAN) == 0
        assert not was_reached(theirs)
        monkeypatch.setattr("reconciler.kafka.connection.PATIENCE_S", 2.0)  # nobody answers there
        run(PLAN[:-2])  # as it was without the option
        assert was_reached(theirs)
    said = capsys.readouterr().out
    assert "+ create" in said
    base = repository.git("rev-parse", "main")[:10]
    assert (
        f"lab is read with its client at {base}, which differs in bootstrap.servers, client.id; "
        "the client written here is used as soon as this is merged; review it [client-changed]"
    ) in " ".join(said.split())


def test_a_request_is_rehearsed_from_its_saved_plan_without_its_client(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    with listening() as theirs:
        port = theirs.getsockname()[1]
        repository.commit(clusters=clusters(f"127.0.0.1:{port}"))
        assert run((*PLAN, "--out", "plan.json")) == 0
        assert run(("rehearse", "plan.json")) == 0
        assert not was_reached(theirs)
    assert "Rehearsed: 1 done." in capsys.readouterr().out


@pytest.mark.parametrize("form", ["json", "markdown", "github"])
def test_every_form_of_a_plan_says_that_the_client_differs(
    repository: Repository, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    repository.commit(clusters=clusters("127.0.0.1:9", ", security.protocol: SASL_PLAINTEXT"))
    assert run((*PLAN, "--format", form)) == 0
    said = capsys.readouterr().out
    assert "bootstrap.servers, security.protocol" in said
    assert SECRET not in said


def test_a_plan_has_the_fingerprint_that_it_has_after_the_merge(repository: Repository) -> None:
    text = Path("topics/clusters.yaml").read_text()
    repository.commit(clusters=text.replace("{bootstrap", "{client.id: other, bootstrap"))
    assert run((*PLAN, "--out", "before.json")) == 0
    assert run((*PLAN[:-2], "--out", "after.json")) == 0
    before, after = (json.loads(Path(f"{n}.json").read_text()) for n in ("before", "after"))
    assert before["fingerprint"] == after["fingerprint"]


def test_an_unchanged_client_is_nothing_to_remark(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run((*PLAN, "--format", "json")) == 0
    assert json.loads(capsys.readouterr().out)["notes"] == []


def test_a_cluster_that_a_request_adds_is_not_connected_to(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    with listening() as theirs:
        text = clusters(f"127.0.0.1:{theirs.getsockname()[1]}", name="new")
        repository.commit(clusters=text)
        assert run(("plan", "--cluster", "new", "--base", "main")) == 1
        assert not was_reached(theirs)
    base = repository.git("rev-parse", "main")[:10]
    assert capsys.readouterr().err == (
        f"error: topics/clusters.yaml:2:12: new is not in clusters.yaml at {base}, so nothing "
        "connects to it before this is merged; merge its entry first, then plan its topics "
        "[client-new]\n"
    )


def test_of_several_clusters_the_new_one_hides_no_plan(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    text = Path("topics/clusters.yaml").read_text()
    repository.commit(clusters=text.replace("{lab:", "{new: {}, lab:"))
    assert run(("plan", "--all-clusters", "--base", "main")) == 1
    said = capsys.readouterr()
    assert "+ create" in said.out
    assert "error: new: " in said.err
    assert "[client-new]" in said.err


def test_where_the_old_client_fails_it_is_said_that_it_is_the_old_one(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    good = Path("topics/clusters.yaml").read_text()
    repository.git("switch", "-q", "main")
    repository.commit(clusters=clusters("127.0.0.1:9"))
    repository.git("switch", "-qc", "mended")
    repository.commit(clusters=good)
    assert run(PLAN) == 1
    said = capsys.readouterr().err
    assert "127.0.0.1:9 refuses the connection" in said
    assert "which differs in bootstrap.servers" in said


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--base", "nosuch"), "there is no commit nosuch in this repository; fetch it"),
        (("--base", "--help"), "there is no commit --help in this repository"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(
    repository: Repository,
    more: tuple[str, ...],
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(("plan", "--cluster", "lab", *more)) == 64
    assert said in capsys.readouterr().err


def test_an_estate_without_git_has_no_other_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "topics").mkdir()
    (tmp_path / "topics" / "a.yaml").write_text("topic: a\npartitions: 1\n")
    assert run(("plan", "--cluster", "sandbox", "--base", "main")) == 64
    assert "leave out --base" in capsys.readouterr().err


def test_clusters_that_did_not_hold_then_are_named_by_their_commit(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    repository.git("switch", "-q", "main")
    base = repository.commit(clusters=clusters("a:1", ", plugin.library.paths: evil"))
    repository.git("switch", "-q", "work")
    assert run(PLAN) == 1
    said = capsys.readouterr().err
    assert f"error: {base[:10]}:topics/clusters.yaml:2:" in said
    assert "[client-property-runs]" in said


def test_a_link_of_another_commit_leads_nowhere(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    text = Path("topics/clusters.yaml").read_text()
    repository.git("switch", "-q", "main")
    Path("topics/clusters.yaml").unlink()
    Path("topics/.there.yaml").write_text(text)
    Path("topics/clusters.yaml").symlink_to(".there.yaml")
    base = repository.commit()
    repository.git("switch", "-q", "work")
    assert run(PLAN) == 1
    assert f"clusters.yaml is a symbolic link at {base[:10]}" in capsys.readouterr().err
