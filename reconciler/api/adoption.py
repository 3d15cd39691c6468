"""Estates written for existing clusters and files."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.api.connections import find_cluster, refuse_other_cluster
from reconciler.api.estate_files import (
    leads_out,
    read_estate_files,
    read_file,
    refuse_link,
    write_texts,
)
from reconciler.api.snapshots import read_snapshot, take_snapshot
from reconciler.errors import Finding, UsageError, show_path

if TYPE_CHECKING:
    from reconciler.adopt.draft import Adoption, EstateDraft
    from reconciler.adopt.formatting import Formatted
    from reconciler.model.cluster import ClusterState

_SUFFIXES = {".yaml", ".yml", ".json"}


def adopt_cluster(
    path: str | Path,
    cluster: str,
    *,
    bootstrap_servers: str | None = None,
    against: str | Path | None = None,
    assignments: bool = False,
    topics: str = "*",
    ignore: Sequence[str] = (),
    owner: str | None = None,
) -> Adoption:
    """Make the texts of an estate whose plan on a cluster is empty; nothing is written yet.

    `path` may hold an estate: its topics are kept and amended. `against` names a snapshot to read
    instead of the cluster. `ignore` leaves topics out and adds them to `ignore` of clusters.yaml.
    `owner` becomes that of every chosen topic without one.
    Errors: as `load_estate` and `take_snapshot`; UsageError if the cluster's address is unknown, or
    for a glob of `topics` that no live topic matches.
    """
    from reconciler.adopt.live import AdoptionRequest, adopt_topics
    from reconciler.model.plan import list_unmatched

    request = AdoptionRequest(
        cluster, topics, assignments, bootstrap_servers, ignore=tuple(ignore), owner=owner
    )
    draft = _open_draft(Path(path))
    state = _read_state(draft, cluster, bootstrap_servers, against)
    if topics != "*" and (unmatched := list_unmatched(state.topics, topics)):
        raise UsageError(f"no live topic of {cluster} matches --topic {unmatched[0]!r}")
    return adopt_topics(draft, state, request)


def adopt_leftovers(
    path: str | Path,
    cluster: str,
    globs: Sequence[str],
    *,
    bootstrap_servers: str | None = None,
    against: str | Path | None = None,
    owner: str | None = None,
) -> Adoption:
    """Make requests to delete the live topics that match globs and that no file names.

    Nothing is written yet. Errors: as `adopt_cluster`; UsageError for a cluster that the estate
    does not name, and for a glob without such a topic.
    """
    from reconciler.adopt.leftovers import request_deletions

    draft = _open_draft(Path(path))
    find_cluster(draft.estate, cluster)
    state = _read_state(draft, cluster, bootstrap_servers, against)
    return request_deletions(draft, state, cluster, globs, owner)


def convert_files(tool: str, source: str | Path, path: str | Path) -> Adoption:
    """Make the texts of an estate from the files of another tool; nothing is written yet.

    Errors: as `load_estate`, also for the files of the tool.
    """
    from reconciler.adopt.convert import convert_topics

    draft = _open_draft(Path(path))
    return convert_topics(draft, tool, _read_foreign_files(Path(source)), _follow)


def find_estate(path: Path) -> Path:
    """Return the estate that a file or a directory belongs to.

    It is the nearest directory, itself or above it, with clusters.yaml; otherwise the directory
    itself. No directory above the repository counts.
    """
    from reconciler.spec.documents import CLUSTERS_FILES

    own = path if path.is_dir() else path.parent
    for directory in (own, *own.absolute().parents):
        if any((directory / name).is_file() for name in CLUSTERS_FILES):
            return own if directory is own else Path(os.path.relpath(directory))
        if (directory / ".git").exists():
            break
    return own


def format_specs(path: str | Path, only: Collection[Path] = ()) -> Formatted:
    """Make the texts of an estate in the usual form; nothing is written yet.

    `only` chooses files of it, and directories with all files below them.
    Errors: as `load_estate`; UsageError for a file that is none of the estate.
    """
    from reconciler.adopt.formatting import format_estate

    estate = Path(path)
    draft = _open_draft(estate)
    every = {name: (estate / name).resolve() for name in draft.texts}
    chosen = set() if only else set(every)
    for each in only:
        target = each.resolve()
        below = {name for name, file in every.items() if file.is_relative_to(target)}
        if not below:
            raise UsageError(f"{show_path(str(each))} has no specs of {show_path(str(estate))}")
        chosen |= below
    return format_estate(draft, chosen)


def write_adoption(adoption: Adoption, path: str | Path) -> None:
    """Write the files of an adoption into its estate, each completely or not at all."""
    write_texts(Path(path), adoption.texts)


def _open_draft(path: Path) -> EstateDraft:
    """Read the estate to change; a missing directory counts as empty."""
    from reconciler.adopt.draft import open_draft

    return open_draft(read_estate_files(path) if path.exists() else {}, str(path))


def _read_state(
    draft: EstateDraft, cluster: str, bootstrap_servers: str | None, against: str | Path | None
) -> ClusterState:
    """Read every topic of a cluster, or of a snapshot."""
    known = draft.estate.clusters.get(cluster)
    if against is not None:
        state = read_snapshot(against)
    elif known is not None:
        state = take_snapshot(draft.estate, cluster, bootstrap_servers=bootstrap_servers)
    else:
        state = _read_unknown(cluster, Path(draft.root), bootstrap_servers)
    if known is not None:
        refuse_other_cluster(known, state)
    return state


def _read_foreign_files(path: Path) -> dict[str, bytes | Finding]:
    """Read every YAML or JSON file of another tool below a path. Errors: UsageError."""
    if not path.exists():
        raise UsageError(f"there is no {show_path(str(path))}; name a file or a directory")
    if path.is_file():
        shown = show_path(str(path))
        return {shown: read_file(path, shown)}
    found = sorted(
        file
        for file in path.rglob("*")
        if file.suffix.lower() in _SUFFIXES and file.is_file()
        if not any(part.startswith(".") for part in file.relative_to(path).parts)
    )
    shown_files = {show_path(str(file)): file for file in found}
    return {
        shown: refuse_link(shown, str(path)) if leads_out(file, path) else read_file(file, shown)
        for shown, file in shown_files.items()
    }


def _follow(file: str, named: str) -> tuple[str, bytes | Finding | None]:
    """Read the file that `file` refers to as `named`, relative to its own directory."""
    path = Path(file).parent / named
    shown = show_path(str(path))
    return shown, read_file(path, shown) if path.is_file() else None


def _read_unknown(cluster: str, path: Path, bootstrap_servers: str | None) -> ClusterState:
    """Read an entire cluster that is not in clusters.yaml, without security settings."""
    from reconciler.errors import Location
    from reconciler.kafka.connection import connect
    from reconciler.kafka.reader import KafkaReader
    from reconciler.spec.entry import ClusterEntry

    if bootstrap_servers is None:
        way_out = "add it there, or pass --bootstrap-servers or --against"
        raise UsageError(f"clusters.yaml has no cluster {cluster!r}; {way_out}")
    entry = ClusterEntry(cluster, Location(str(path / "clusters.yaml"), 1))
    with connect(entry, bootstrap_servers=bootstrap_servers) as connection:
        reader = KafkaReader(connection)
        reader.check_rights([], for_apply=False)
        return reader.read_cluster()
