"""`reconciler owners`: who owns which topics, for people and as a CODEOWNERS file."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler import api
from reconciler.cli.git import CLUSTERS_FILES, Checkout, GitError
from reconciler.cli.options import estate_argument
from reconciler.cli.terminal import print_note
from reconciler.errors import Finding, SpecError, UsageError, escape_unprintable, show_path
from reconciler.styling import set_columns
from reconciler.units import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from reconciler.spec import WrittenTopic

    Owned = Mapping[str | None, Sequence[WrittenTopic]]

_TEAM = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_ACCOUNT = re.compile(r"@[A-Za-z0-9][A-Za-z0-9_./-]*|[^@\s#]+@[^@\s#]+")
_UNSPELLABLE = re.compile(r"[\[\]*?!#\\]")
"""Characters of a path that CODEOWNERS cannot escape, on one host or the other."""

PLATFORM_FILES = (".github", ".gitlab", ".gitlab-ci.yml", "CODEOWNERS")
"""What decides how a request is planned and approved, at the top of a repository."""

FILES_NAMED = 3


@click.command()
@estate_argument
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "codeowners"]),
    default="text",
    show_default=True,
    help="For a terminal, or the file CODEOWNERS of GitHub and GitLab.",
)
@click.option(
    "--org", metavar="NAME", help="The organization or group of owners that name only a team."
)
@click.option(
    "--platform",
    multiple=True,
    metavar="OWNER",
    help="Owner of clusters.yaml, workflows and other files; repeatable.",
)
def command(estate: Path, form: str, org: str | None, platform: tuple[str, ...]) -> None:
    """Show the owners of the topics in ESTATE, as their specs name them.

    ESTATE defaults to topics.
    """
    owned: dict[str | None, list[WrittenTopic]] = defaultdict(list)
    for topic in api.load_estate(estate).written:
        owner = topic.document.owner
        owned[None if owner is None else str(owner)].append(topic)
    if form == "text":
        if org is not None or platform:
            raise UsageError("--org and --platform are for --format codeowners")
        click.echo("\n".join(_list_owners(owned)))
        return
    accounts = _name_accounts(owned, org)
    platform = tuple(_check_platform(owner, org) for owner in platform)
    click.echo("\n".join(_write_codeowners(estate, owned, accounts, platform)))
    if not platform:
        print_note("nobody owns clusters.yaml and the workflows; pass --platform OWNER")
    if None in owned and not platform:
        topics = count(len(owned[None]), "topic")
        print_note(f"{topics} without an owner, such as {owned[None][0].name}; see --format text")


def _list_owners(owned: Owned) -> list[str]:
    rows = []
    for owner, topics in sorted(owned.items(), key=lambda item: (item[0] is None, item[0])):
        files = sorted({topic.where.file for topic in topics})
        more = len(files) - FILES_NAMED
        named = ", ".join(files[:FILES_NAMED]) + (f" and {more:,} more" if more > 0 else "")
        name = "no owner" if owner is None else escape_unprintable(owner)
        rows.append((name, count(len(topics), "topic"), named))
    return set_columns(rows) or ["no topics"]


def _name_accounts(owned: Owned, org: str | None) -> Mapping[str, str]:
    """Return the account of each owner. Errors: SpecError that names each owner without one."""
    accounts, findings = {}, []
    for owner, topics in owned.items():
        if owner is None:
            continue
        account = _find_account(owner, org)
        if account is None:
            what = f"the owner '{owner}' is not an account that CODEOWNERS can name"
            way_out = "write @org/team, @user or an email address"
            if _TEAM.fullmatch(owner):
                way_out += f", or pass --org NAME for @NAME/{owner}"
            written = topics[0].document.owner
            where = topics[0].where if written is None else written.where
            findings.append(Finding("owner-account", what, way_out, where))
        else:
            accounts[owner] = account
    if findings:
        raise SpecError(findings)
    return accounts


def _find_account(owner: str, org: str | None) -> str | None:
    if _ACCOUNT.fullmatch(owner):
        return owner
    if org is not None and _TEAM.fullmatch(owner):
        return f"@{org.removeprefix('@').rstrip('/')}/{owner}"
    return None


def _check_platform(owner: str, org: str | None) -> str:
    account = _find_account(owner, org)
    if account is None:
        said = escape_unprintable(owner)
        raise UsageError(f"--platform {said!r} is no account; write @org/team, @user or an address")
    return account


def _write_codeowners(
    estate: Path, owned: Owned, accounts: Mapping[str, str], platform: Sequence[str]
) -> Iterator[str]:
    """Yield the lines of the file. The last line that matches a path decides."""
    try:
        checkout = Checkout(estate)
    except GitError as error:
        what = f"git cannot show where {show_path(str(estate))} is in its repository: {error}"
        raise UsageError(what) from error
    owners: dict[str, set[str]] = defaultdict(set)
    for owner, account in accounts.items():
        for topic in owned[owner]:
            path = Path(topic.where.file).resolve()  # a link is changed where it leads to
            owners[path.relative_to(checkout.top).as_posix()].add(account)
    inside = checkout.inside.as_posix()
    yield "# Written by reconciler owners --format codeowners. The last line that matches decides."
    if platform:
        yield _own("" if inside == "." else f"{inside}/", platform)
    yield from (_own(path, sorted(owners[path])) for path in sorted(owners))
    if platform:
        found = (name for name in CLUSTERS_FILES if (estate / name).exists())
        clusters = checkout.inside / next(found, CLUSTERS_FILES[0])
        yield _own(clusters.as_posix(), platform)
        for name in PLATFORM_FILES:
            place = checkout.top / name
            if place.exists():
                yield _own(f"{name}/" if place.is_dir() else name, platform)


def _own(path: str, accounts: Iterable[str]) -> str:
    """Spell a line. What cannot be escaped becomes `?`, which matches any character."""
    pattern = _UNSPELLABLE.sub("?", path).replace(" ", "\\ ")
    return f"/{pattern} {' '.join(accounts)}" if path else f"* {' '.join(accounts)}"
