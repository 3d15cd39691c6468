"""Which parts of a setup are done: each check is ok, missing, or cannot be seen, with how to do it.

What could not be read is never called missing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from reconciler.rulebook import spell_page
from reconciler.scaffold.answers import APP_SECRETS, REQUEST_TOKEN, REQUESTS, Answers, Host
from reconciler.scaffold.repository import GITLAB_FILE, PRE_COMMIT, Compared, State
from reconciler.scaffold.tasks import (
    CHECK_NAME,
    MOVES_VARIABLE,
    REBALANCE_VARIABLE,
    TOKEN,
    VARIABLE,
    find_owners_file,
    spell_environment,
    spell_owners,
    spell_request_token,
    spell_secret,
    spell_variable,
)


class Seen(StrEnum):
    """The result of a check. What is optional is not done, and need not be."""

    OK = "ok"
    MISSING = "missing"
    OPTIONAL = "optional"
    UNSEEN = "unseen"


@dataclass(frozen=True, slots=True)
class Check:
    """A line of `reconciler doctor`. `about` is the part of the set-up, `do` the way to do it."""

    about: str
    what: str
    seen: Seen
    detail: str = ""
    do: str = ""


@dataclass(frozen=True, slots=True)
class EnvironmentSetup:
    """An environment of a host. What the token may not read is None.

    `asks`: people are asked before a job begins. `main_only`: no other branch can use it.
    """

    secrets: frozenset[str] | None = None
    asks: bool | None = None
    main_only: bool | None = None


@dataclass(frozen=True, slots=True)
class HostSetup:
    """What a code host has for a repository. What the token may not read is None.

    `clusters`: those that are planned. `moved`: those whose replicas move. `rebalanced`: those for
    which requests open by themselves. `green`: the newest check of the night. `scheduled`: a night
    is planned. `has_request_token`: requests can open by themselves. `required`: the status checks
    of the default branch, None without protection.
    """

    environments: Mapping[str, EnvironmentSetup] | None = None
    clusters: tuple[str, ...] | None = None
    moved: tuple[str, ...] | None = None
    rebalanced: tuple[str, ...] | None = None
    green: bool | None = None
    scheduled: bool | None = None
    has_token: bool | None = None
    has_request_token: bool | None = None
    protected: bool | None = None
    required: frozenset[str] | None = None


INIT = "reconciler init"
_FOLLOWING: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"schemas": ("schemas/",), "workflows": (".github/", ".gitlab/", ".ci/")}
)
"""The files that follow a release, by where they are."""


def check_files(
    compared: Sequence[Compared], answers: Answers, *, has_owners: bool
) -> Iterator[Check]:
    """Check the files that follow this release, and those that people write."""
    for kind, folders in _FOLLOWING.items():
        files = [each for each in compared if each.file.path.startswith(folders)]
        missing = [each.file.path for each in files if each.state is State.NEW]
        old = [each.file.path for each in files if each.state is State.DIFFERS]
        said = [f"{path} is missing" for path in missing]
        said += [f"{path} differs from this release" for path in old]
        if said:
            do = f"{INIT} --update" if old else INIT
            yield Check("files", kind, Seen.MISSING, _join(said), do)
        elif files:
            yield Check("files", kind, Seen.OK, "as this release writes them")
    for path in (".gitignore", PRE_COMMIT, GITLAB_FILE):
        for each in (each for each in compared if each.file.path == path):
            if each.state is State.NEW:
                yield Check("files", path, Seen.MISSING, "", INIT)
            elif each.state is State.DIFFERS:
                yield Check("files", path, Seen.MISSING, "it has an old commit", f"{INIT} --update")
            else:
                yield Check("files", path, Seen.OK)
    if answers.host is not Host.NONE:
        path = find_owners_file(answers.host)
        if has_owners:
            yield Check("files", path, Seen.OK)
        else:
            yield Check("files", path, Seen.MISSING, "", spell_owners(answers))


def check_host(setup: HostSetup, answers: Answers) -> Iterator[Check]:
    """Check what a code host has for the clusters of a repository."""
    host = answers.host.value
    for name, secrets in answers.environments.items():
        writes = name in answers.names
        yield from _check_environment(setup, answers.host, name, secrets, writes=writes)
    if answers.host is Host.GITHUB:
        yield _check_clusters(VARIABLE, setup.clusters, answers.names)
        yield _judge(
            host,
            "drift is green",
            setup.green,
            "its newest run did not succeed, or there is none",
            "gh workflow run drift.yml",
        )
    else:
        why = "no merge request gets a note without it"
        do = f"glab variable set {TOKEN} --masked"
        yield _judge(host, f"variable {TOKEN}", setup.has_token, why, do)
        do = "glab schedule create --cron '17 3 * * *' --ref main --description drift"
        yield _judge(host, "nightly schedule", setup.scheduled, "no drift is found", do)
    what, where = "main is protected", "Settings → Branches"
    if setup.protected and answers.host is Host.GITHUB and setup.required is not None:
        required = CHECK_NAME in setup.required
        why = f"the status check {CHECK_NAME} is not required"
        yield _judge(host, what, required, why, where)
    else:
        yield _judge(host, what, setup.protected, "everybody can push to it", where)
    if answers.rebalanced:
        yield from _check_requests(setup, answers)


def _check_environment(
    setup: HostSetup, host: Host, name: str, secrets: Sequence[str], *, writes: bool
) -> Iterator[Check]:
    what = f"environment {name}"
    if setup.environments is None:
        yield Check(host.value, what, Seen.UNSEEN)
        return
    found = setup.environments.get(name)
    if found is None:
        yield Check(host.value, what, Seen.MISSING, "", spell_environment(name))
        return
    if not secrets:
        yield Check(host.value, what, Seen.OK, "its cluster needs no secret")
    elif found.secrets is None:
        yield Check(host.value, what, Seen.UNSEEN, "the token may not list its secrets")
    elif lacking := [secret for secret in secrets if secret not in found.secrets]:
        spell = spell_secret if host is Host.GITHUB else _spell_scope
        commands = "; ".join(spell(secret, name) for secret in lacking)
        yield Check(host.value, what, Seen.MISSING, f"it has no {_join(lacking)}", commands)
    else:
        yield Check(host.value, what, Seen.OK, f"has {_join(secrets)}")
    if writes:
        where = "Settings → Environments" if host is Host.GITHUB else "Settings → CI/CD"
        why = "every apply begins without an approval"
        yield _judge(host.value, f"{name} asks reviewers", found.asks, why, where)
        if host is Host.GITHUB:
            yield _check_branches(name, found)


def _check_clusters(variable: str, listed: Sequence[str] | None, names: Sequence[str]) -> Check:
    what, do = f"variable {variable}", spell_variable(names, variable)
    if listed is None:
        return Check("github", what, Seen.UNSEEN)
    if lacking := [name for name in names if name not in listed]:
        return Check("github", what, Seen.MISSING, f"it does not list {_join(lacking)}", do)
    return Check("github", what, Seen.OK, _join(listed))


def _check_requests(setup: HostSetup, answers: Answers) -> Iterator[Check]:
    """Check what opens requests for clusters that change by themselves, where one allows that."""
    host = answers.host.value
    page = spell_page("how-to/open-rebalance-requests")
    why = f"no request opens where {_join(answers.rebalanced)} changed by itself: {page}"
    if answers.host is Host.GITLAB:
        what, token = f"variable {REQUEST_TOKEN}", setup.has_request_token
        if token is False:
            yield Check(host, what, Seen.OPTIONAL, why, spell_request_token())
        else:
            yield _judge(host, what, token, "", "")
        return
    what = f"variable {REBALANCE_VARIABLE}"
    if setup.rebalanced is None:
        yield Check(host, what, Seen.UNSEEN)
    elif not setup.rebalanced:
        do = spell_variable(answers.rebalanced, REBALANCE_VARIABLE)
        yield Check(host, what, Seen.OPTIONAL, why, do)
    else:
        yield Check(host, what, Seen.OK, _join(setup.rebalanced))
        yield _check_clusters(MOVES_VARIABLE, setup.moved, setup.rebalanced)
        yield from _check_environment(setup, answers.host, REQUESTS, APP_SECRETS, writes=False)
        found = (setup.environments or {}).get(REQUESTS)
        if found is not None:
            yield _check_branches(REQUESTS, found)


def _check_branches(name: str, found: EnvironmentSetup) -> Check:
    what, why = f"{name} is for main only", "a job of any branch gets its account"
    return _judge("github", what, found.main_only, why, "Settings → Environments")


def _judge(about: str, what: str, done: bool | None, why: str, do: str) -> Check:  # noqa: FBT001
    if done is None:
        return Check(about, what, Seen.UNSEEN)
    return Check(about, what, Seen.OK) if done else Check(about, what, Seen.MISSING, why, do)


def _spell_scope(name: str, environment: str) -> str:
    return f"glab variable set {name} --scope {environment}"


def _join(words: Collection[str]) -> str:
    return ", ".join(words)
