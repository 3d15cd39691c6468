"""`reconciler report`: what it takes from the runner, from files, and what it prints."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from code_host import HEAD, MERGED, TOKEN, serve
from code_hosts import GitHubHost
from shorthand import cluster, plan, spec

from reconciler.cli.app import run
from reconciler.plan import (
    Approval,
    decode_approval,
    encode_plan,
    fingerprint_plan,
    list_new_rows,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PLAN = plan([spec("a", partitions=2, replication_factor=2)], cluster())


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[GitHubHost]:
    event = {"pull_request": {"number": 12, "head": {"sha": HEAD}}}
    (tmp_path / "event.json").write_text(json.dumps(event))
    with serve(GitHubHost()) as host:
        variables = {
            "GITHUB_ACTIONS": "true",
            "GITHUB_API_URL": host.url,
            "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
            "GITHUB_REPOSITORY": "shop/topics",
            "GITHUB_RUN_ID": "7",
            "GITHUB_SERVER_URL": "https://github.example",
            "GITHUB_SHA": MERGED,
            "GITHUB_TOKEN": TOKEN,
        }
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        yield host


@pytest.fixture
def saved(tmp_path: Path) -> str:
    (tmp_path / "plan.json").write_text(encode_plan(PLAN))
    return str(tmp_path / "plan.json")


def test_a_plan_is_told_and_later_known_as_approved(
    host: GitHubHost, saved: str, capsys: pytest.CaptureFixture[str]
) -> None:
    request = host.open_request(12, HEAD)
    assert run(["report", "plan", "--cluster", "prod", "--plan", saved]) == 0
    assert capsys.readouterr() == ("", "comment on request 12 written\n")
    assert "`reconciler apply plan.json`" in request.comments[0]["body"]
    request.merged_as = MERGED
    assert run(["report", "approved", "--cluster", "prod"]) == 0
    assert capsys.readouterr() == (f"{fingerprint_plan(PLAN)}\n", "")


def test_an_approval_is_saved_with_its_rows(
    host: GitHubHost, saved: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request = host.open_request(12, HEAD)
    run(["report", "plan", "--cluster", "prod", "--plan", saved])
    out = tmp_path / "approved.json"
    words = ["report", "approved", "--cluster", "prod", "--out", str(out)]
    assert run(words) == 1
    assert not out.exists()
    request.merged_as = MERGED
    capsys.readouterr()
    assert run(words) == 0
    assert capsys.readouterr() == (f"{fingerprint_plan(PLAN)}\n", "")
    assert decode_approval(out.read_text()) == Approval(fingerprint_plan(PLAN), list_new_rows(PLAN))


def test_nothing_approved_is_an_error_and_no_output(
    host: GitHubHost, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["report", "approved", "--cluster", "prod"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith("[plan-unapproved]\n")


@pytest.mark.parametrize("verb", ["plan", "drift"])
def test_without_a_plan_its_errors_are_told(host: GitHubHost, tmp_path: Path, verb: str) -> None:
    host.open_request(12, HEAD)
    errors = tmp_path / "errors.txt"
    errors.write_text("error: nobody is there [connect-refused]\n")
    missing = str(tmp_path / "none.json")
    words = ["report", verb, "--cluster", "prod", "--plan", missing, "--errors"]
    assert run([*words, str(errors)]) == 0
    told = host.talks[12].comments[0]["body"] if verb == "plan" else host.issues[13].body
    assert "nobody is there [connect-refused]" in told


def test_the_plan_of_another_cluster_is_a_usage_error(
    host: GitHubHost, saved: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["report", "plan", "--cluster", "staging", "--plan", saved]) == 64
    assert "the plan is for prod, not for staging" in capsys.readouterr().err
    assert host.asked == []


def test_a_refused_token_is_said_and_never_shown(
    host: GitHubHost,
    saved: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "expired-token")
    assert run(["report", "drift", "--cluster", "prod", "--plan", saved]) == 1
    err = capsys.readouterr().err
    assert "401 Unauthorized: Bad credentials" in err
    assert "[code-host-access]" in err
    assert "expired-token" not in err
