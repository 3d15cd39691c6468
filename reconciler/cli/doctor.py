"""`reconciler doctor`: which parts of the setup of a repository are done."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.cli.options import Command
from reconciler.cli.terminal import fold_to_screen, paint, print_error, working
from reconciler.errors import ClusterError, CodeHostError
from reconciler.scaffold.answers import Answers, Host
from reconciler.scaffold.checks import INIT, Check, HostSetup, Seen, check_files, check_host
from reconciler.scaffold.tasks import spell_check
from reconciler.units import count

if TYPE_CHECKING:
    from reconciler.cli.repositories import Repository
    from reconciler.spec.estate import Estate

_COLOURS = {
    Seen.OK: "green",
    Seen.MISSING: "red",
    Seen.OPTIONAL: "dim",
    Seen.UNSEEN: "yellow",
}
_HOSTS = {Host.GITHUB: "GitHub", Host.GITLAB: "GitLab"}


@click.command(cls=Command)
@click.argument(
    "directory", default=Path(), type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option("--offline", is_flag=True, help="Check files only: no cluster and no code host.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="For a terminal, or for programs.",
)
def command(directory: Path, *, offline: bool, form: str) -> int:
    """Show which parts of the setup of a repository are done, and how to do the missing ones.

    DIRECTORY is that of `reconciler init`, by default this one. Each line is ok, missing, optional,
    or unseen: this machine, its account or the token may not read it. Nothing
    is changed. On GitHub, the token is GITHUB_TOKEN or GH_TOKEN; on GitLab, RECONCILER_TOKEN or
    GITLAB_TOKEN.

    Exits 2 if something is missing, and 1 if the specs have an error.
    """
    from reconciler.cli.repositories import Repository

    repository = Repository(directory)
    if not repository.has_estate:
        if form == "json":
            missing = Check("files", "topics/clusters.yaml", Seen.MISSING, "", INIT)
            click.echo(_encode([missing]))
        else:
            print_error(f"topics/clusters.yaml is missing; run: {INIT}")
        return 2
    checks = _collect(repository, offline=offline)
    click.echo(_encode(checks) if form == "json" else "\n".join(_render(checks)))
    return 2 if any(check.seen is Seen.MISSING for check in checks) else 0


def _collect(repository: Repository, *, offline: bool) -> list[Check]:
    """Check the repository, and unless `offline` its clusters and its code host."""
    answers = repository.recall()
    checks = list(_check_repository(repository, answers))
    if not offline:
        estate = repository.load_estate()
        for name in estate.declared:
            with working(f"asking {name}"):
                checks += _check_cluster(estate, name)
        if repository.find_host() is not None:
            with working("asking the code host"):
                checks += _check_code_host(repository)
    return checks


def _encode(checks: Sequence[Check]) -> str:
    answer = {"format_version": "1.0", "checks": [asdict(check) for check in checks]}
    return json.dumps(answer, indent=2, ensure_ascii=False)


def _render(checks: Sequence[Check]) -> Iterator[str]:
    for about, group in groupby(checks, key=lambda check: check.about):
        yield paint("bold", about)
        for check in group:
            yield from _show(check)
    missing = sum(check.seen is Seen.MISSING for check in checks)
    unseen = sum(check.seen is Seen.UNSEEN for check in checks)
    optional = sum(check.seen is Seen.OPTIONAL for check in checks)
    done = len(checks) - missing - unseen - optional
    line = f"{count(done, 'check')} ok, {missing} missing, {unseen} cannot be seen from here"
    yield line + (f", {optional} optional" if optional else "")


def _show(check: Check) -> Iterator[str]:
    mark = paint(_COLOURS[check.seen], f"{check.seen:9}")
    yield fold_to_screen(f"  {mark}{check.what}" + (f": {check.detail}" if check.detail else ""))
    if check.do:
        yield f"           {check.do}"


def _check_repository(repository: Repository, answers: Answers) -> Iterator[Check]:
    host = repository.find_host() or Host.NONE
    answers = replace(answers, host=host, pin=repository.pin)
    yield Check("files", "specs", Seen.OK, f"{count(len(answers.clusters), 'cluster')}")
    _, compared = repository.compare(answers, {})
    yield from check_files(compared, answers, has_owners=repository.has_owners(host))
    remote = repository.find_remote()
    do = "git remote add origin ADDRESS"
    if remote is None:
        yield Check("files", "remote origin", Seen.MISSING, "", do)
    else:
        yield Check("files", "remote origin", Seen.OK, "/".join(remote))
    yield _check_hook(repository)


def _check_hook(repository: Repository) -> Check:
    from reconciler.cli.git import GitError

    try:
        hook = repository.open_git().find_hook("pre-commit")
    except GitError:
        return Check(
            "files", "hook of pre-commit", Seen.MISSING, "there is no repository", "git init"
        )
    if hook is not None and "pre-commit" in hook.read_text(encoding="utf-8", errors="replace"):
        return Check("files", "hook of pre-commit", Seen.OK)
    return Check("files", "hook of pre-commit", Seen.MISSING, "", "pre-commit install")


def _check_cluster(estate: Estate, name: str) -> Iterator[Check]:
    """Check the connection of a cluster, its id, and the rights of the account that is set here."""
    from reconciler.api.applying import check_apply
    from reconciler.api.planning import read_cluster

    about = f"cluster {name}"
    try:
        state = read_cluster(estate, name)
    except ClusterError as error:
        first = error.findings[0]
        if first.rule == "secret-unresolved":
            yield Check(about, "connection", Seen.UNSEEN, first.what, first.way_out)
        else:
            yield Check(about, "connection", Seen.MISSING, first.what, first.way_out)
        return
    yield Check(about, "connection", Seen.OK, f"{count(len(state.brokers), 'broker')}")
    if estate.clusters[name].cluster_id is None:
        do = f"write cluster_id: {state.cluster_id} below {name} in topics/clusters.yaml"
        yield Check(about, "cluster_id", Seen.MISSING, "another cluster would be accepted", do)
    else:
        yield Check(about, "cluster_id", Seen.OK, str(state.cluster_id))
    yield Check(about, "rights of this account to plan", Seen.OK)
    try:
        check_apply(estate, name)
    except ClusterError as error:
        first = error.findings[0]
        if first.rule == "lock-unavailable":  # whatever the account
            yield Check(about, "lock of apply", Seen.MISSING, first.what, first.way_out)
            return
        said = first.what
        do = spell_check(name, "applier")
        what = "rights of this account to apply"
        yield Check(about, what, Seen.UNSEEN, f"it reads only: {said}", do)
    else:
        yield Check(about, "rights of this account to apply", Seen.OK)


def _check_code_host(repository: Repository) -> Iterator[Check]:
    """Check what the host has, as far as a token can read it."""
    host = repository.find_host()
    if host is None:
        return
    answers = replace(repository.recall(), host=host)
    setup, why = _read_setup(repository, host, answers)
    if why:
        do = "GH_TOKEN=$(gh auth token) reconciler doctor" if host is Host.GITHUB else (
            "GITLAB_TOKEN=… reconciler doctor"
        )  # fmt: skip
        yield Check(host.value, _HOSTS[host], Seen.UNSEEN, why, do)
    yield from check_host(setup, answers)


def _read_setup(repository: Repository, host: Host, answers: Answers) -> tuple[HostSetup, str]:
    """Return what the host has, or nothing and the reason."""
    from reconciler.codehost.setup import read_github_setup, read_gitlab_setup

    remote = repository.find_remote()
    names = (
        ("GITHUB_TOKEN", "GH_TOKEN")
        if host is Host.GITHUB
        else ("RECONCILER_TOKEN", "GITLAB_TOKEN")
    )
    token = next((os.environ[name] for name in names if os.environ.get(name)), None)
    if token is None:
        return HostSetup(), f"{' or '.join(names)} is not set"
    if remote is None:
        return HostSetup(), "there is no remote origin"
    server, path = remote
    try:
        if host is Host.GITHUB:
            default = (
                "https://api.github.com" if server == "github.com" else f"https://{server}/api/v3"
            )
            return read_github_setup(os.environ.get("GITHUB_API_URL") or default, path, token), ""
        base = os.environ.get("CI_API_V4_URL") or f"https://{server}/api/v4"
        return read_gitlab_setup(base, path, token, tuple(answers.environments)), ""
    except CodeHostError as error:
        return HostSetup(), error.findings[0].what
