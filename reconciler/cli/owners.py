"""`reconciler owners`: who owns which topics, for people and as a CODEOWNERS file."""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import click

from reconciler.api.planning import load_estate
from reconciler.cli.git import Checkout, GitError
from reconciler.cli.options import Command, estate_argument
from reconciler.cli.terminal import print_note
from reconciler.errors import (
    Finding,
    Location,
    SpecError,
    UsageError,
    escape_unprintable,
    show_path,
)
from reconciler.spec.baseline import BASELINE_FILE
from reconciler.spec.documents import CLUSTERS_FILES, WrittenTopic
from reconciler.styling import set_columns
from reconciler.units import count

if TYPE_CHECKING:
    from reconciler.codehost.requests import ClustersFile
    from reconciler.spec.estate import Estate

Owned = Mapping[str | None, Sequence[WrittenTopic]]

_TEAM = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_ACCOUNT = re.compile(r"@[A-Za-z0-9][A-Za-z0-9_./-]*|[^@\s#]+@[^@\s#]+")
_SPECIAL = frozenset(" *?[]#\\")
"""Characters with a meaning in a pattern of CODEOWNERS. `!` has one only at the start of a line.

Every line of ours starts with a slash. Characters that cannot be printed have a backslash here.
"""
_ESCAPED: Mapping[str, frozenset[str]] = MappingProxyType(
    {"github": frozenset(" *?"), "gitlab": frozenset(" *?[]")}
)
"""What a backslash escapes on each host. GitHub says that it knows no `[ ]` and no escaped `#`."""

PLATFORM_FILES = (".github", ".gitlab", ".gitlab-ci.yml", "CODEOWNERS")
"""What decides how a request is planned and approved, at the top of a repository."""

READ_FIRST = ("CODEOWNERS", "docs/CODEOWNERS")
"""GitLab reads .gitlab/CODEOWNERS only if the repository has neither of these, in this order."""

HEAD = "# Written by reconciler owners --format codeowners. The last line that matches decides."
FILES_NAMED = 3


@click.command(cls=Command)
@estate_argument
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "codeowners"]),
    default="text",
    show_default=True,
    help="For a terminal, for programs, or the file CODEOWNERS of GitHub and GitLab.",
)
@click.option(
    "--host",
    type=click.Choice(list(_ESCAPED)),
    help="The host that reads the file. Default: either of them.",
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
def command(
    estate: Path, form: str, host: str | None, org: str | None, platform: tuple[str, ...]
) -> None:
    """Show the owners of the topics in ESTATE, as their specs name them.

    ESTATE defaults to topics.
    """
    loaded = load_estate(estate)
    owned = _group_topics(loaded)
    if form != "codeowners":
        if org is not None or platform or host is not None:
            raise UsageError("--host, --org and --platform are for --format codeowners")
        click.echo(_encode_owners(owned) if form == "json" else "\n".join(_list_owners(owned)))
        return
    click.echo(render_code_owners(loaded, estate, host, org, platform), nl=False)
    if not platform:
        print_note("nobody owns clusters.yaml and the workflows; pass --platform OWNER")
    if None in owned and not platform:
        topics = count(len(owned[None]), "topic")
        print_note(f"{topics} without an owner, such as {owned[None][0].name}; see --format text")


def render_code_owners(
    loaded: Estate, estate: Path, host: str | None, org: str | None, platform: tuple[str, ...]
) -> str:
    """Return the file CODEOWNERS of a repository. Errors: UsageError, SpecError."""
    accounts = _name_accounts(_group_topics(loaded), org)
    platform = tuple(_check_platform(owner, org) for owner in platform)
    lines = list(_list_lines(estate, _group_topics(loaded), accounts, platform))
    if platform and host != "github":  # a request could bring one, and all lines would be void
        lines += ((name, platform) for name in READ_FIRST if (name, platform) not in lines)
    _check_paths((path for path, _ in lines), list(_ESCAPED) if host is None else [host])
    spelled = (" ".join([_spell_path(path), *named]) for path, named in lines)
    return "\n".join([HEAD, *spelled]) + "\n"


def _group_topics(estate: Estate) -> dict[str | None, list[WrittenTopic]]:
    owned: dict[str | None, list[WrittenTopic]] = defaultdict(list)
    for topic in estate.written:
        owner = topic.document.owner
        owned[None if owner is None else str(owner)].append(topic)
    return owned


def _sort_owners(owned: Owned) -> list[tuple[str | None, Sequence[WrittenTopic]]]:
    return sorted(owned.items(), key=lambda item: (item[0] is None, item[0]))


def _encode_owners(owned: Owned) -> str:
    owners = [
        {
            "owner": owner,
            "topics": sorted(topic.name for topic in topics),
            "files": sorted({topic.where.file for topic in topics}),
        }
        for owner, topics in _sort_owners(owned)
    ]
    return json.dumps({"format_version": "1.0", "owners": owners}, indent=2)


def _list_owners(owned: Owned) -> list[str]:
    rows = []
    for owner, topics in _sort_owners(owned):
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


def _list_lines(
    estate: Path, owned: Owned, accounts: Mapping[str, str], platform: Sequence[str]
) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the path and the accounts of each line. The last line that matches a path decides."""
    try:
        checkout = Checkout(estate)
    except GitError as error:
        what = f"git cannot show where {show_path(str(estate))} is in its repository: {error}"
        raise UsageError(what) from error
    owners: dict[str, set[str]] = defaultdict(set)
    for owner, account in accounts.items():
        for topic in owned[owner]:
            for path in _list_places(Path(topic.where.file)):
                owners[path.relative_to(checkout.top).as_posix()].add(account)
    inside = checkout.inside.as_posix()
    if platform:
        yield "" if inside == "." else f"{inside}/", platform
    yield from ((path, sorted(owners[path])) for path in sorted(owners))
    if platform:
        found = (name for name in CLUSTERS_FILES if (estate / name).exists())
        clusters = checkout.inside / next(found, CLUSTERS_FILES[0])
        yield clusters.as_posix(), platform
        if (estate / BASELINE_FILE).exists():
            yield (checkout.inside / BASELINE_FILE).as_posix(), platform
        for name in PLATFORM_FILES:
            place = checkout.top / name
            if place.exists():
                yield f"{name}/" if place.is_dir() else name, platform


def _list_places(file: Path) -> Iterator[Path]:
    """Yield where a file can be changed: where links lead to, and those that another can replace.

    Links of an estate lead to nothing outside of it.
    """
    place = Path(os.path.abspath(file))  # noqa: PTH100 - resolve() follows links
    yield place.resolve()
    if place.is_symlink():
        yield place.parent.resolve() / place.name


def _check_paths(paths: Iterable[str], hosts: Sequence[str]) -> None:
    """Refuse paths that a host reads as a pattern. Errors: SpecError that names each of them."""
    escaped = frozenset.intersection(*(_ESCAPED[host] for host in hosts))
    findings = []
    for path in paths:
        if wrong := sorted(_SPECIAL.intersection(path) - escaped):
            named = ", ".join(f"'{character}'" for character in wrong)
            what = f"CODEOWNERS of {' and '.join(hosts)} cannot name this path: it has {named}"
            way_out = "rename it; as a pattern, it would match other files, or none"
            findings.append(Finding("owner-path", what, way_out, Location(path, 1)))
    if findings:
        raise SpecError(findings)


def _spell_path(path: str) -> str:
    """Spell a path as the pattern that matches only it."""
    escaped = "".join(
        f"\\{character}" if character in _SPECIAL else character for character in path
    )
    return f"/{escaped}" if path else "*"


CODE_OWNERS = (".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS")
"""Where hosts look for the file. The first that exists is read."""


def read_clusters_file(estate: Path, cluster: str) -> ClustersFile:
    """Read the clusters.yaml of an estate in git, with the code owners of the file.

    Errors: UsageError if there is none, or if git cannot show where it is.
    """
    from reconciler.adopt.clusters import ask_of_cluster
    from reconciler.codehost.requests import ClustersFile

    found = next((name for name in CLUSTERS_FILES if (estate / name).is_file()), None)
    if found is None:
        raise UsageError(f"{show_path(str(estate))} has no clusters.yaml that could be changed")
    checkout = Checkout(estate)
    path = (checkout.inside / found).as_posix()
    with (estate / found).open(encoding="utf-8", newline="") as file:
        text = file.read()
    files = (checkout.top / name for name in CODE_OWNERS)
    owners = next((each.read_text(encoding="utf-8") for each in files if each.is_file()), "")
    amend = partial(ask_of_cluster, text, cluster)
    return ClustersFile(path, text, find_code_owners(owners, path), amend)


def find_code_owners(text: str, path: str) -> tuple[str, ...]:
    """Return whom a file CODEOWNERS names for a path: those of its last line that matches."""
    owners: tuple[str, ...] = ()
    for line in text.splitlines():
        # A blank with a backslash before it belongs to the pattern.
        pattern, *named = re.split(r"(?<!\\)\s+", line.partition(" #")[0].strip())
        if pattern and pattern[0] not in "#[^" and _matches(pattern, path):
            owners = tuple(named)
    return owners


def _matches(pattern: str, path: str) -> bool:
    """Return whether a pattern of CODEOWNERS matches a path from the top of the repository."""
    plain = re.sub(r"\\(.)", r"\1", pattern.removeprefix("/").removesuffix("/"))
    parts = path.split("/")
    above = {"/".join(parts[: n + 1]) for n in range(len(parts))}
    # Without a slash in its midst, it matches at any depth.
    names = above if pattern.startswith("/") or "/" in plain else {*above, *parts}
    return plain in names or any(fnmatchcase(name, plain) for name in names)
