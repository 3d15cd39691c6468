"""The class-data-sharing archive: classes that a JVM has parsed and verified once, mapped as is.

It halves the time and the work of a start. It fits one runtime and one class path, so both are in
its name. A start that finds no archive makes one. It goes on without if that fails, or if another
start is making it. The JVM verifies no class of an archive again, so it is not kept in the cache.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from dataclasses import replace
from pathlib import Path

from reconciler.errors import SandboxError
from reconciler.files import appearing
from reconciler.model.cluster import Broker
from reconciler.sandbox.embedded import EmbeddedCluster
from reconciler.sandbox.launch import Java, Launch
from reconciler.sandbox.paths import data_directory
from reconciler.sandbox.request import NOTHING, ClusterRequest, StartObserver

TRY_AGAIN_AFTER_S = 24 * 3600
UNUSED_AFTER_S = 30 * 24 * 3600
WHOLE_SINCE = 25


def use_archive(
    launch: Launch, request: ClusterRequest, directory: Path, progress: StartObserver
) -> Launch:
    """Return the launch with its archive, or unchanged if there is none.

    Cost: some seconds, once for a runtime and a release.
    """
    archive = data_directory("archives") / f"{_name_archive(launch)}.jsa"
    if os.pathsep in str(archive):  # the JVM would read two names
        return launch
    try:
        if archive.exists() or _make_archive_once(archive, launch, request, directory, progress):
            archive.touch()
    except OSError:
        pass  # a directory that cannot be written to costs time, not the start
    return launch.adding(*_to_use(launch.java, archive)) if archive.exists() else launch


def _to_write(java: Java, archive: Path) -> str:
    """Make a JVM write an archive at exit.

    Java 25 writes a complete archive (JEP 514); before, it is laid upon the one that the runtime
    brings, which a runtime of few modules does not bring.
    """
    option = "AOTCacheOutput" if java.major >= WHOLE_SINCE else "ArchiveClassesAtExit"
    return f"-XX:{option}={archive}"


def _to_use(java: Java, archive: Path) -> tuple[str, ...]:
    """Make a JVM use an archive, without warnings about parts that do not fit this machine."""
    if java.major >= WHOLE_SINCE:
        return (f"-XX:AOTCache={archive}", "-Xlog:aot*=off")
    return (f"-XX:SharedArchiveFile={archive}",)


def _name_archive(launch: Launch) -> str:
    """Name what the JVM compares before it accepts an archive."""
    files = (launch.java.jvm, *launch.class_path)
    parts = [launch.java.version]
    for file in files:
        stat = file.stat()
        parts.append(f"{file} {stat.st_size} {stat.st_mtime_ns}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:20]


def _make_archive_once(
    archive: Path, launch: Launch, request: ClusterRequest, directory: Path, progress: StartObserver
) -> bool:
    """Make the archive, unless another process is making it or a recent attempt failed."""
    lock = archive.with_suffix(".lock")
    with lock.open("a") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        if archive.exists():  # another start has made it since the caller looked
            return True
        failure = archive.with_suffix(".failed")
        if failure.exists() and time.time() - failure.stat().st_mtime < TRY_AGAIN_AFTER_S:
            return False
        progress.enter("preparing faster starts (once)")
        try:
            _make_archive(archive, launch, request, directory)
        except (SandboxError, OSError) as error:
            # Otherwise each start would try again, and take some seconds longer.
            failure.write_text(f"{error}\n")
            return False
        # Each runtime and each release leaves an archive of 50 MB; a use renews its date.
        for other in archive.parent.glob("*.jsa"):
            if time.time() - other.stat().st_mtime > UNUSED_AFTER_S:
                other.unlink(missing_ok=True)
        return True


def _make_archive(archive: Path, launch: Launch, request: ClusterRequest, directory: Path) -> None:
    """Run a cluster of one broker whose JVM writes its loaded classes at exit."""
    # Nothing of the request but its release: an archive serves every later cluster, and one bad
    # option would prevent it for a day.
    training = replace(
        request,
        brokers=(Broker(1, "rack0"),),
        isolate=False,
        controllers=1,
        listeners=NOTHING,
        properties=NOTHING,
        broker_properties={},
        scram_users=(),
        log_directories=1,
    )
    training_directory = directory / "training"
    training_directory.mkdir()
    with appearing(archive) as file:
        temporary = Path(file.name)
        temporary.unlink()  # the JVM refuses to write over a file
        recording = launch.adding(_to_write(launch.java, temporary))
        cluster = EmbeddedCluster(training, recording, training_directory)
        try:
            cluster.start()
            cluster.finish()
        finally:
            cluster.close()
