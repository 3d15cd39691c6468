"""How a host starts its JVM: which runtime, which jars, which options."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.errors import SandboxError, say_install
from reconciler.sandbox.jars import fetch_jars
from reconciler.sandbox.java import find_java

if TYPE_CHECKING:
    from reconciler.sandbox.java import Java
    from reconciler.sandbox.progress import Progress
    from reconciler.sandbox.request import ClusterRequest

LOG_SETTINGS = Path(__file__).with_name("log4j.properties")
HEAP_MB, HEAP_MB_PER_BROKER, HEAP_MB_ISOLATED = 192, 64, 256
SMALL_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
QUIET = "-Dlog4j2.statusLoggerLevel=OFF"  # log4j 2 is on the class path, and not used


@dataclass(frozen=True, slots=True)
class Launch:
    """A JVM's beginning. The class path's order counts, for an archive fits only that order."""

    java: Java
    class_path: tuple[Path, ...]
    options: tuple[str, ...]

    def adding(self, *options: str) -> Launch:
        """Return the same with further options."""
        return replace(self, options=(*self.options, *options))

    def as_command(self) -> dict[str, object]:
        """Return what host.py wants to hear first."""
        return {
            "jvm": str(self.java.jvm),
            "class_path": [str(jar) for jar in self.class_path],
            "options": self.options,
        }


def prepare_launch(request: ClusterRequest, progress: Progress) -> Launch:
    """Find a Java, fetch the jars, and measure the heap; the request's own options come later.

    Errors: SandboxError where something is missing and cannot be had.
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
