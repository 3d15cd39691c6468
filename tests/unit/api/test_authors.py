"""Who is behind a run: what a CI says goes before the name of the account."""

from __future__ import annotations

import getpass
import os
import socket

import pytest

from reconciler.api.authors import find_author

GITHUB = {
    "GITHUB_ACTOR": "ana",
    "GITHUB_SERVER_URL": "https://github.example",
    "GITHUB_REPOSITORY": "shop/topics",
    "GITHUB_RUN_ID": "42",
}
GITLAB = {"GITLAB_USER_LOGIN": "ben", "CI_JOB_URL": "https://gitlab.example/shop/-/jobs/7"}


def test_a_person_is_the_account_at_the_machine() -> None:
    author = find_author({})
    assert (author.user, author.host) == (getpass.getuser(), socket.gethostname())
    assert (author.pid, author.run_url) == (os.getpid(), None)


def test_github_names_the_actor_and_the_run() -> None:
    author = find_author(GITHUB)
    assert author.user == "ana"
    assert author.run_url == "https://github.example/shop/topics/actions/runs/42"


def test_gitlab_names_the_user_and_the_job() -> None:
    author = find_author(GITLAB)
    assert (author.user, author.run_url) == ("ben", "https://gitlab.example/shop/-/jobs/7")


def test_an_account_without_a_name_is_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> str:
        raise OSError("No username set in the environment")

    monkeypatch.setattr(getpass, "getuser", refuse)
    assert find_author({}).user == str(os.getuid())
