"""Downloads of pinned jars: several connections, each file checked before it counts.

Which repositories: those of the user's jgo settings, then the one that jgo and Maven default to.
"""

from __future__ import annotations

import hashlib
import http.client
import threading
import urllib.error
import urllib.request
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, BinaryIO

from reconciler.errors import SandboxError, say_install
from reconciler.files import appearing

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from reconciler.sandbox.jars import Jar
    from reconciler.sandbox.progress import Progress

CONNECTIONS = 8
ATTEMPTS = 3
TIMEOUT_S = 30
PAUSE_S = 1.0
CHUNK_BYTES = 1 << 16


def download_jars(jars: Sequence[Jar], directory: Path, progress: Progress) -> None:
    """Download jars into a directory. The first failure, or Ctrl-C, ends all connections.

    Errors: SandboxError naming the jar and the reason.
    """
    total = sum(jar.bytes for jar in jars)
    transfer = _Transfer(_repositories(), directory)
    with ThreadPoolExecutor(CONNECTIONS) as pool:
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
    """What the connections share: where from, where to, how much has arrived, and when to stop."""

    def __init__(self, repositories: Sequence[str], directory: Path) -> None:
        self.repositories = repositories
        self.directory = directory
        self.arrived = 0
        self.halt = threading.Event()
        self._lock = threading.Lock()

    def download(self, jar: Jar) -> None:
        """Download one jar, from the first repository that has it, trying again on bad luck."""
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
                raise _BadJarError(f"{counted} bytes came that are not the pinned jar")

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
    """What arrived is cut off, or is something else than the jar that was pinned."""
