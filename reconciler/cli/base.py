"""The base of a request in git: the clusters and the specs that an earlier commit has.

The commit is read at the estate's own path. If a link on this path were followed first, a request
could choose which files of the commit count as its base: those of an example with another address.
So links are refused here, and so are submodules, whose branches a request can choose.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from reconciler.cli.git import LINK, SUBMODULE, Checkout, Entry, GitError
from reconciler.errors import (
    ClusterError,
    Finding,
    Location,
    SpecError,
    UsageError,
    show_path,
)
from reconciler.model.cluster import SHORT
from reconciler.spec.base import Base
from reconciler.spec.baseline import BASELINE_FILE
from reconciler.spec.changes import Changes, recall_clusters
from reconciler.spec.documents import CLUSTERS_FILES, load_clusters

_ID_LENGTHS = (40, 64)
_FILE = re.compile(r"\$\{file:([^}]+)\}")
"""A reference to a secret in a file."""
_SETTINGS = (*CLUSTERS_FILES, BASELINE_FILE)
"""The files of an estate that limit its topics."""
_PUT = "put the {} itself there"


def read_base(path: Path, ref: str) -> Base:
    """Read the clusters of an estate at a commit; none if there is no clusters.yaml.

    Errors: UsageError if git fails; SpecError for a link or a submodule that decides what is read,
    or if that clusters.yaml is invalid.
    """
    checkout = open_checkout(path, "--base")
    refuse_submodule(checkout)
    commit = checkout.find_here(ref)
    found = find_settings(checkout, commit)
    read = [(b"", "") if entry is None else _read_entry(checkout, commit, entry) for entry in found]
    (content, file), baseline = read
    return Base(commit, load_clusters(content if found[0] else None, file, *baseline))


def _read_entry(checkout: Checkout, commit: str, entry: Entry) -> tuple[bytes, str]:
    """Return a file of a commit, and its name in messages."""
    return checkout.read_entry(entry), show_path(f"{commit[:SHORT]}:{entry.path}")


def find_changes(path: Path, clusters: Iterable[str], ref: str) -> Changes:
    """Find the base of a branch that forked from `ref`, and read the estate as it was there.

    `ref` may be the id of no commit, 000…: a push event has it if there was nothing before.
    Errors: UsageError if git fails; SpecError for an estate that is a link.
    """
    if not ref.strip("0") and len(ref) in _ID_LENGTHS:
        return Changes(ref, ref, everything="there was no commit before this push")
    checkout = open_checkout(path, "--changed-since")
    base = checkout.find_merge_base(ref)
    changes = Changes(ref, base)
    if what := next(_list_turns(checkout, base), ""):
        # A request that puts a directory in the place of a link changes everything in it.
        return replace(changes, everything=f"{what} at {changes.since}")
    then = recall_clusters(checkout.read_estate(base), clusters)
    if then is None:
        return replace(changes, everything=f"clusters.yaml at {changes.since} has errors")
    return Changes(ref, base, then)


def refuse_other_files(path: Path, base: Base, cluster: str) -> None:
    """Refuse a client that names files of the repository which are not those of the base.

    A request could choose the authority that vouches for a server, beside the password of the job.
    Errors: ClusterError that names the files; UsageError if git fails.
    """
    entry = base.entries[cluster]
    named = {
        file
        for key, value in entry.client.items()
        for file in [value] * key.endswith((".location", ".file")) + _FILE.findall(value)
        if not file.startswith("${")
    }
    changed = open_checkout(path, "--base").list_changed(base.commit, sorted(named))
    if changed:
        what = (
            f"the client of {cluster} at {base.short} names files that have changed since then: "
            f"{', '.join(map(show_path, changed))}"
        )
        way_out = "merge them first, or keep them outside the repository"
        raise ClusterError([Finding("client-file", what, way_out, entry.location)])


def read_branch(path: Path, cluster: str, ref: str) -> Changes:
    """Read a cluster of an estate as it is at the tip of a branch.

    `everything` of the answer says why its clusters.yaml cannot be read. Errors: UsageError if git
    fails; SpecError for a link or a submodule that decides what is read of the estate.
    """
    checkout = open_checkout(path, "--default-branch")
    refuse_submodule(checkout)
    commit = checkout.find_here(ref)
    branch = Changes(ref, commit)
    try:
        find_settings(checkout, commit)
    except SpecError as error:
        return replace(branch, everything=", ".join(found.what for found in error.findings))
    then = recall_clusters(checkout.read_estate(commit), [cluster])
    if then is None:
        return replace(branch, everything="its clusters.yaml has errors")
    return Changes(ref, commit, then)


def open_checkout(path: Path, option: str) -> Checkout:
    """Open the repository of an estate to read another commit of it, if no link leads there.

    Errors: UsageError without a repository; SpecError for each link of the repository on the path
    of the estate, and for a clusters.yaml or a baseline that is a link.
    """
    shown = show_path(str(path))
    findings = []
    for link in _list_links(path):
        what = f"{shown} leads through the symbolic link {show_path(link)} to another directory"
        way_out = f"{_PUT.format('directory')}, or name the one that it leads to"
        findings.append(Finding("base-link", what, way_out, Location(shown, 1)))
    for name in sorted(each.name for each in path.iterdir()) if path.is_dir() else ():
        if name.lower() in _SETTINGS and (path / name).is_symlink():
            what = f"{name} is a symbolic link, so the base of its content is unknown"
            where = Location(show_path(str(path), name), 1)
            findings.append(Finding("base-link", what, _PUT.format("file"), where))
    if findings:
        raise SpecError(findings)
    try:
        return Checkout(path)
    except GitError as error:
        what = f"git cannot show {shown} at another commit: {error}"
        raise UsageError(f"{what}; leave out {option}") from error


def refuse_submodule(checkout: Checkout) -> None:
    """Refuse an estate in a submodule: a request chooses its commit, and can choose its origin."""
    if checkout.is_submodule:
        shown = show_path(str(checkout.estate))
        what = f"{shown} is in a submodule, whose branches are not those of this repository"
        way_out = "keep the specs in this repository, or run in a clone of the other one"
        raise SpecError([Finding("base-link", what, way_out, Location(shown, 1))])


def find_settings(checkout: Checkout, commit: str) -> tuple[Entry | None, Entry | None]:
    """Find clusters.yaml and the baseline of a policy that the estate has in a commit.

    The name of the first is spelled as in an estate. Errors: SpecError if a link, a submodule or
    another kind of file is in the place of one, or two files.
    """
    short = commit[:SHORT]
    findings = [
        Finding("base-link", f"{what} at {short}", "merge a directory in its place first")
        for what in _list_turns(checkout, commit)
    ]
    below = [(Path(entry.path).name, entry) for entry in checkout.list_below(commit)]
    found = [entry for name, entry in below if name.lower() in CLUSTERS_FILES]
    baseline = next((entry for name, entry in below if name == BASELINE_FILE), None)
    for entry in [*found, *filter(None, [baseline])]:
        if what := _say_kind(entry, "blob"):
            way_out = "merge the file itself in its place first"
            findings.append(Finding("base-link", f"{what} at {short}", way_out))
    if len(found) > 1 and not findings:
        what = f"there is more than one clusters.yaml at {short}: "
        what += ", ".join(show_path(entry.path) for entry in found)
        findings.append(Finding("clusters-file", what, "merge the removal of all but one first"))
    if findings:
        raise SpecError(findings)
    return found[0] if found else None, baseline


def _list_turns(checkout: Checkout, commit: str) -> Iterator[str]:
    """Say what is no directory in a commit on the way to the estate."""
    return filter(None, (_say_kind(entry, "tree") for entry in checkout.list_way(commit)))


def _say_kind(entry: Entry, wanted: str) -> str:
    """Say what an entry is that is not of the kind that is wanted; empty if it is."""
    if entry.mode == LINK:
        what = "a symbolic link"
    elif entry.mode == SUBMODULE:
        what = "a submodule"
    elif entry.kind != wanted:
        what = "a directory" if entry.kind == "tree" else "a file"
    else:
        return ""
    return f"{show_path(entry.path)} is {what}"


def _list_links(path: Path) -> Iterator[str]:
    """Yield the links on the way to a path that exists, each by its path in its repository.

    The checkout itself may be below a link, such as /home: no commit has that link.
    """
    place, rest = Path(), list(reversed((_find_here() / path).parts))
    while rest:
        part = rest.pop()
        if part == "..":
            place = place.parent
        elif (place / part).is_symlink():
            if top := _find_top(place):
                yield str((place / part).relative_to(top))
            rest += reversed((place / part).readlink().parts)
        else:
            place /= part


def _find_here() -> Path:
    """Return the current directory as the shell calls it: its links are part of a path as well."""
    called = Path(os.environ.get("PWD", ""))
    try:
        is_here = called.is_absolute() and called.samefile(".")
    except OSError:
        is_here = False
    return called if is_here else Path.cwd()


def _find_top(directory: Path) -> Path | None:
    """Return the top of the repository that has a directory; itself if git does not say."""
    try:
        return Checkout(directory).top
    except GitError as error:
        return directory if error.is_surprising else None
