"""The files of an estate: which YAML files a directory holds, and their bytes.

Hidden files and directories are skipped; directory links are followed once. A link out of the
estate is refused: who may change the estate would choose which file of the machine a run shows.
Whatever looks like a file of the estate and cannot be read is a finding, never passed over.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from reconciler.errors import Finding, Location, UsageError, escape_unprintable
from reconciler.spec.load import FILE_BYTES

_SUFFIXES = (".yaml", ".yml")
_CLUSTERS = {"clusters.yaml", "clusters.yml"}


@dataclass(frozen=True, slots=True)
class EstateFiles:
    """What a directory holds, its paths written as the directory's was."""

    clusters: Path | None
    topics: tuple[Path, ...]
    findings: tuple[Finding, ...]


def find_files(estate: Path) -> EstateFiles:
    """List the YAML files of an estate, sorted. Errors: UsageError where it is no directory."""
    if not estate.exists():
        raise UsageError(f"there is no directory {show_path(estate)}; name the one of the estate")
    if not estate.is_dir():
        raise UsageError(f"{show_path(estate)} is a file; name the directory of the estate")
    findings: list[Finding] = []
    found = sorted(_walk(estate, estate, set(), findings))
    clusters = [path for path in found if path.name.lower() in _CLUSTERS]
    chosen = next((path for path in clusters if path.parent == estate), None)
    findings.extend(_refuse_clusters(path, chosen, estate) for path in clusters if path != chosen)
    topics = tuple(path for path in found if path.name.lower() not in _CLUSTERS)
    return EstateFiles(chosen, topics, tuple(findings))


def read_file(path: Path) -> bytes | Finding:
    """Read a file up to just over the size limit, or say why it cannot be read."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return _refuse(path, "is no regular file", "take it out of the estate")
        with path.open("rb") as file:
            return file.read(FILE_BYTES + 1)
    except FileNotFoundError:
        return _refuse(path, "is a link to nowhere", "mend the link, or take it out")
    except OSError as error:
        return _refuse(path, f"cannot be read: {_reason(error)}", "make it readable")


def leads_out(path: Path, estate: Path) -> bool:
    """Tell whether a path of the estate leads out of it by a link, or to what git keeps there."""
    target, top = Path(os.path.realpath(path)), Path(os.path.realpath(estate))
    return not target.is_relative_to(top) or ".git" in target.relative_to(top).parts


def refuse_link(path: Path, top: Path) -> Finding:
    """Refuse a link that leads out, without a look at what it leads to."""
    name = show_path(Path(path.name))
    what = f"{name} is a link out of {show_path(top)}"
    way_out = "put the file itself there"
    return Finding("estate-link", what, way_out, Location(show_path(path), 1))


def show_path(path: Path) -> str:
    """Return a path that can be printed, whatever bytes it is made of."""
    return escape_unprintable(os.fsencode(path).decode("utf-8", "backslashreplace"))


def _walk(
    directory: Path, estate: Path, seen: set[tuple[int, int]], findings: list[Finding]
) -> list[Path]:
    """List the YAML files below a directory; what cannot be listed goes to `findings`."""
    found: list[Path] = []
    try:
        status = directory.stat()
        if (status.st_dev, status.st_ino) in seen:
            return found
        seen.add((status.st_dev, status.st_ino))
        with os.scandir(directory) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
    except OSError as error:
        findings.append(
            _refuse(directory, f"cannot be listed: {_reason(error)}", "make it readable")
        )
        return found
    for entry in entries:
        if entry.name.startswith("."):
            continue
        path, is_directory = directory / entry.name, _is_directory(entry)
        if not (is_directory or entry.name.lower().endswith(_SUFFIXES)):
            continue
        if entry.is_symlink() and leads_out(path, estate):
            findings.append(refuse_link(path, estate))
        elif is_directory:
            found.extend(_walk(path, estate, seen, findings))
        else:
            found.append(path)
    return found


def _is_directory(entry: os.DirEntry[str]) -> bool:
    """Tell whether an entry is a directory; a link that cannot be followed is none."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def _reason(error: OSError) -> str:
    return (error.strerror or "unknown reason").lower()


def _refuse(path: Path, what: str, way_out: str) -> Finding:
    name = show_path(Path(path.name))
    return Finding("estate-file", f"{name} {what}", way_out, Location(show_path(path), 1))


def _refuse_clusters(path: Path, chosen: Path | None, estate: Path) -> Finding:
    if chosen is None:
        what = "clusters.yaml is not at the top of the estate"
        way_out = f"move it to {show_path(estate / 'clusters.yaml')}"
    else:
        what = "this is a second clusters.yaml"
        way_out = f"move what it says into {show_path(chosen)}"
    return Finding("clusters-file", what, way_out, Location(show_path(path), 1))
