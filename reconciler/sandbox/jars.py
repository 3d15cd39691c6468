"""The broker's jars: what jars.json pins, and how they come into the cache.

A jar enters the cache by a rename after its hash was checked. Its hash is checked again before its
first use, and whenever the file is another one than the one that was checked.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reconciler.errors import SandboxError
from reconciler.files import appearing, write_file
from reconciler.sandbox.places import cache_directory

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from reconciler.sandbox.progress import Progress

LOCK_FILE = Path(__file__).with_name("jars.json")


@dataclass(frozen=True, slots=True)
class Jar:
    """A jar as the lock file pins it. `coordinate` is group:artifact:version."""

    coordinate: str
    bytes: int
    sha256: str

    @property
    def path(self) -> str:
        """Where every Maven repository, near or far, keeps this jar."""
        group, artifact, version = self.coordinate.split(":")
        return f"{group.replace('.', '/')}/{artifact}/{version}/{artifact}-{version}.jar"


@cache
def _lock() -> dict[str, Any]:
    lock: dict[str, Any] = json.loads(LOCK_FILE.read_bytes())
    return lock


def known_releases() -> tuple[str, ...]:
    """Return the Kafka releases that the sandbox runs, oldest first; the last is the default."""
    return tuple(_lock()["releases"])


def find_release(wanted: str | None) -> str:
    """Return the release for a full version, a line such as 4.1, or None (the default).

    Errors: SandboxError for a version without locked jars.
    """
    releases = known_releases()
    if wanted is None:
        return releases[-1]
    matching = [r for r in releases if r == wanted or r.startswith(f"{wanted}.")]
    if not matching:
        known = ", ".join(releases)
        raise SandboxError(f"the sandbox does not run Kafka {wanted!r}; it runs {known}")
    return matching[-1]


def locked_jars(release: str) -> tuple[Jar, ...]:
    """Return the class path of a release, in its order."""
    pins = _lock()["jars"]
    return tuple(Jar(name, **pins[name]) for name in _lock()["releases"][release])


def fetch_jars(release: str, progress: Progress) -> tuple[Path, ...]:
    """Return the paths of a release's jars, each checked, downloading what the cache lacks.

    Errors: SandboxError when a jar cannot be had or is not the one that was pinned.
    Cost: the hash of each jar, once; 0.2 s for a release.
    """
    jars = locked_jars(release)
    directory = cache_directory("jars")
    with _remembering(directory / "checked.json") as checked:
        if not all(_is_cached(jar, directory, checked) for jar in jars):
            progress.enter(f"downloading Kafka {release} (once)")
            # One at a time: a jar that came twice would have a new date, and no archive would fit.
            with (directory / "lock").open("a") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                _fetch_missing(jars, directory, checked, progress)
    return tuple(directory / jar.path for jar in jars)


def _fetch_missing(
    jars: Sequence[Jar], directory: Path, checked: dict[str, str], progress: Progress
) -> None:
    missing = [jar for jar in jars if not _is_cached(jar, directory, checked)]
    absent = [jar for jar in missing if not _take_from_maven(jar, directory)]
    if absent:
        from reconciler.sandbox.download import download_jars

        download_jars(absent, directory, progress)
    for jar in missing:
        _is_cached(jar, directory, checked)


@contextmanager
def _remembering(memory: Path) -> Iterator[dict[str, str]]:
    """Yield which files were found to be the pinned jars, and keep what is added to that.

    What was lost or cannot be kept is found out again.
    """
    try:
        known = dict(json.loads(memory.read_bytes()))
    except (OSError, ValueError, TypeError):
        known = {}
    checked = dict(known)
    yield checked
    if checked != known:
        with suppress(OSError):
            write_file(memory, json.dumps(checked, indent=0))


def _is_cached(jar: Jar, directory: Path, checked: dict[str, str]) -> bool:
    """Tell whether the cache holds a jar: by its hash, or as the file that had this hash before.

    Times of change cannot be set back without setting the clock, so a file that was written to is
    another one.
    """
    path = directory / jar.path
    try:
        stat = path.stat()
        identity = (stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
        entry = " ".join([jar.sha256, *map(str, identity)])
        if checked.get(jar.path) == entry:
            return True
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != jar.sha256:
                return False
    except FileNotFoundError:
        return False
    checked[jar.path] = entry
    return True


def _take_from_maven(jar: Jar, directory: Path) -> bool:
    """Copy a jar out of the user's Maven repository if that holds the very same one."""
    repository = os.environ.get("M2_REPO") or Path.home() / ".m2" / "repository"
    path = directory / jar.path
    try:
        content = (Path(repository) / jar.path).read_bytes()
    except FileNotFoundError:
        return False
    if hashlib.sha256(content).hexdigest() != jar.sha256:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    with appearing(path) as file:
        file.write(content)
    return True
