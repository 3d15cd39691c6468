"""The broker's jars: their pins in jars.json, and their download into the cache.

Several connections download at once, from the repositories of the user's jgo settings, then from
the one that jgo and Maven default to. A jar enters the cache by a rename after its hash was
checked. Its hash is checked again before each use: others may have written the cache, such as a CI
that restores it from another run. Nothing there can say that a jar is checked.
"""

from __future__ import annotations

import fcntl
import hashlib
import http.client
import json
import os
import threading
import urllib.error
import urllib.request
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from reconciler.errors import SandboxError, say_install
from reconciler.files import appearing
from reconciler.sandbox.paths import cache_directory
from reconciler.sandbox.request import StartObserver

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


def fetch_jars(release: str, progress: StartObserver) -> tuple[Path, ...]:
    """Return the paths of a release's jars, each checked, downloading what the cache lacks.

    Errors: SandboxError if a jar cannot be downloaded, or is not the pinned one.
    Cost: the hash of each jar; 42 MiB and 0.05 s of CPU for a release.
    """
    jars = locked_jars(release)
    directory = cache_directory("jars")
    if not all(_is_cached(jar, directory) for jar in jars):
        progress.enter(f"downloading Kafka {release} (once)")
        # One at a time: a jar that came twice would have a new date, and no archive would fit.
        with (directory / "lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            _fetch_missing(jars, directory, progress)
    return tuple(directory / jar.path for jar in jars)


def _fetch_missing(jars: Sequence[Jar], directory: Path, progress: StartObserver) -> None:
    # Again, now under the lock: another start may have fetched them meanwhile.
    missing = [jar for jar in jars if not _is_cached(jar, directory)]
    absent = [jar for jar in missing if not _take_from_maven(jar, directory)]
    if absent:
        download_jars(absent, directory, progress)


def _is_cached(jar: Jar, directory: Path) -> bool:
    """Return whether the cache holds a jar, by its hash."""
    try:
        with (directory / jar.path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == jar.sha256
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


CONNECTIONS = 8
ATTEMPTS = 3
TIMEOUT_S = 30
PAUSE_S = 1.0
CHUNK_BYTES = 1 << 16


def download_jars(jars: Sequence[Jar], directory: Path, progress: StartObserver) -> None:
    """Download jars into a directory. The first failure, or Ctrl-C, ends all connections.

    Errors: SandboxError naming the jar and the reason.
    """
    total = sum(jar.bytes for jar in jars)
    transfer = _Transfer(_repositories(), directory)
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        # So that no connection is left with a large jar when the others have nothing to do.
        largest_first = sorted(jars, key=lambda jar: -jar.bytes)
        pending = {pool.submit(transfer.download, jar) for jar in largest_first}
        try:
            while pending:
                done, pending = wait(pending, timeout=0.1, return_when=FIRST_EXCEPTION)
                for task in done:
                    task.result()
                progress.count(transfer.arrived, total)
        finally:
            transfer.halt.set()
            pool.shutdown(cancel_futures=True)


def _repositories() -> tuple[str, ...]:
    """Return the addresses of the repositories to ask, in order."""
    try:
        from jgo.config import GlobalSettings
        from jgo.maven import MavenContext
    except ImportError as error:
        raise SandboxError(
            "downloading Kafka needs jgo, which is not installed; " + say_install("sandbox")
        ) from error
    addresses = (
        *GlobalSettings.load().repositories.values(),
        *MavenContext().remote_repos.values(),
    )
    return tuple(dict.fromkeys(address.rstrip("/") for address in addresses))


class _Transfer:
    """The state that the connections share: sources, target, received bytes, and the stop."""

    def __init__(self, repositories: Sequence[str], directory: Path) -> None:
        self.repositories = repositories
        self.directory = directory
        self.arrived = 0
        self.halt = threading.Event()
        self._lock = threading.Lock()

    def download(self, jar: Jar) -> None:
        """Download one jar, from the first repository that has it, with retries."""
        reasons: dict[str, str] = {}
        for attempt in range(ATTEMPTS):
            for repository in self.repositories:
                try:
                    return self._receive(jar, f"{repository}/{jar.path}")
                except (OSError, http.client.HTTPException, _BadJarError) as error:
                    reasons[repository] = str(error) or type(error).__name__
            if self.halt.wait(attempt * PAUSE_S):
                return None
        tried = "; ".join(f"{repository}: {reason}" for repository, reason in reasons.items())
        raise SandboxError(
            f"cannot download {jar.coordinate} ({tried}); check the network and the proxy"
            " settings and start again: jars that have arrived are kept"
        )

    def _receive(self, jar: Jar, url: str) -> None:
        """Bring one jar into its place, or raise and leave nothing."""
        path = self.directory / jar.path
        path.parent.mkdir(parents=True, exist_ok=True)
        with (
            appearing(path) as file,
            urllib.request.urlopen(url, timeout=TIMEOUT_S) as response,  # noqa: S310
        ):
            counted, sha256 = self._copy(response, file)
            if sha256 != jar.sha256:
                self._count(-counted)
                raise _BadJarError(f"{counted} bytes were received that are not the pinned jar")

    def _copy(self, response: BinaryIO, file: BinaryIO) -> tuple[int, str]:
        """Write what comes until it ends or all is halted; return its length and hash."""
        counted = 0
        digest = hashlib.sha256()
        try:
            while not self.halt.is_set() and (chunk := response.read(CHUNK_BYTES)):
                file.write(chunk)
                digest.update(chunk)
                counted += len(chunk)
                self._count(len(chunk))
        except BaseException:
            self._count(-counted)
            raise
        return counted, digest.hexdigest()

    def _count(self, number: int) -> None:
        with self._lock:
            self.arrived += number


class _BadJarError(Exception):
    """The download is incomplete, or is not the pinned jar."""
