"""The files of an estate on this machine: which YAML files a directory holds, and their bytes.

Hidden files and directories are skipped; directory links are followed once. A link out of the
estate is refused: otherwise a pull request could make a run show any file of its machine. An
unreadable file of the estate is a finding, never ignored.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from reconciler.errors import Finding, Location, UsageError, show_path
from reconciler.files import write_file

_SUFFIXES = (".yaml", ".yml")


def read_estate_files(estate: Path, shown: str | None = None) -> dict[str, bytes | Finding]:
    """Read the YAML files of an estate by their path in it; one that cannot be read is a finding.

    `shown` is what findings call the estate, if that is not its path.
    Errors: UsageError if it is no directory.
    """
    root = str(estate) if shown is None else shown
    return {
        path: found if isinstance(found, Finding) else read_file(found, show_path(root, path))
        for path, found in _find_files(estate, root).items()
    }


def list_estate_files(estate: Path) -> list[Path]:
    """List the YAML files of an estate that can be read. Errors: UsageError."""
    return [path for path in _find_files(estate, str(estate)).values() if isinstance(path, Path)]


def write_texts(estate: Path, texts: Mapping[str, str]) -> None:
    """Write files of an estate, each completely or not at all. Errors: UsageError."""
    for name, text in sorted(texts.items()):
        shown = show_path(str(estate), name)
        if leads_out(estate / name, estate):
            root = show_path(str(estate))
            raise UsageError(f"{shown} cannot be written: it is a link out of {root}")
        path = (estate / name).resolve()  # through a link, to the file that it means
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_file(path, text)
        except OSError as error:
            raise UsageError(f"{shown} cannot be written: {error.strerror}") from error


def read_file(path: Path, shown: str) -> bytes | Finding:
    """Read a file up to just over the size limit, or return why it cannot be read."""
    from reconciler.spec.syntax import FILE_BYTES

    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return _refuse(shown, "is not a regular file", "remove it from the estate")
        # One byte more than the limit: enough to refuse the file without reading all of it.
        with path.open("rb") as file:
            return file.read(FILE_BYTES + 1)
    except FileNotFoundError:
        return _refuse(shown, "is a link to nowhere", "fix the link, or remove it")
    except OSError as error:
        return _refuse(shown, f"cannot be read: {_reason(error)}", "make it readable")


def leads_out(path: Path, top: Path) -> bool:
    """Return whether a path below `top` leads out of it by a link, or into a `.git` directory."""
    target, real_top = Path(os.path.realpath(path)), Path(os.path.realpath(top))
    return not target.is_relative_to(real_top) or ".git" in target.relative_to(real_top).parts


def refuse_link(shown: str, top: str) -> Finding:
    """Refuse a link that leads out of the estate. Its target is not read."""
    what = f"{shown.rpartition('/')[2]} is a link out of {show_path(top)}"
    return Finding("estate-link", what, "put the file itself there", Location(shown, 1))


def _find_files(estate: Path, root: str) -> dict[str, Path | Finding]:
    """Find the YAML files of an estate by their path in it, or why one cannot be read."""
    shown = show_path(root)
    if not estate.exists():
        raise UsageError(f"there is no directory {shown}; name the one of the estate")
    if not estate.is_dir():
        raise UsageError(f"{shown} is a file; name the directory of the estate")
    return dict(_walk(estate, estate, root, set()))


def _walk(
    directory: Path, estate: Path, root: str, seen: set[tuple[int, int]]
) -> Iterator[tuple[str, Path | Finding]]:
    """Yield the YAML files below a directory, and what cannot be listed or leads out."""
    inside = directory.relative_to(estate).as_posix()
    try:
        status = directory.stat()
        # Links can form a cycle, so a directory is known by its inode, not by its path.
        if (status.st_dev, status.st_ino) in seen:
            return
        seen.add((status.st_dev, status.st_ino))
        with os.scandir(directory) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
    except OSError as error:
        what = f"cannot be listed: {_reason(error)}"
        shown = show_path(root, "" if inside == "." else inside)
        yield inside, _refuse(shown, what, "make it readable")
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        path = directory / entry.name
        try:
            is_directory = entry.is_dir()
        except OSError:  # a link that cannot be followed, such as a loop
            is_directory = False
        if not (is_directory or entry.name.lower().endswith(_SUFFIXES)):
            continue
        name = path.relative_to(estate).as_posix()
        if entry.is_symlink() and leads_out(path, estate):
            yield name, refuse_link(show_path(root, name), root)
        elif is_directory:
            yield from _walk(path, estate, root, seen)
        else:
            yield name, path


def _reason(error: OSError) -> str:
    return (error.strerror or "unknown reason").lower()


def _refuse(shown: str, what: str, way_out: str) -> Finding:
    name = shown.rpartition("/")[2]
    return Finding("estate-file", f"{name} {what}", way_out, Location(shown, 1))
