"""The broker's jars: what jars.json pins, and how they come into the cache.

A jar enters the cache by a rename after its hash was checked, so a jar that is there is whole.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reconciler.errors import SandboxError
from reconciler.files import appearing
from reconciler.sandbox.places import cache_directory

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    """Return the paths of a release's jars, downloading what the cache lacks.

    Errors: SandboxError when a jar cannot be had or is not the one that was pinned.
    """
    jars = locked_jars(release)
    directory = cache_directory("jars")
    if not all(_is_cached(jar, directory) for jar in jars):
        progress.enter(f"downloading Kafka {release} (once)")
        # One at a time: a jar that came twice would have a new date, and no archive would fit it.
        with (directory / "lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            _fetch_missing(jars, directory, progress)
    return tuple(directory / jar.path for jar in jars)


def _fetch_missing(jars: Sequence[Jar], directory: Path, progress: Progress) -> None:
    missing = [jar for jar in jars if not _is_cached(jar, directory)]
    missing = [jar for jar in missing if not _take_from_maven(jar, directory)]
    if missing:
        from reconciler.sandbox.download import download_jars

        download_jars(missing, directory, progress)


def _is_cached(jar: Jar, directory: Path) -> bool:
    """Tell whether the cache holds a jar. Its hash was checked on its way in; size is enough."""
    try:
        return (directory / jar.path).stat().st_size == jar.bytes
    except FileNotFoundError:
        return False


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
