"""Pin the jars of every Kafka release the sandbox runs: `python schemas/pin_jars.py`.

Resolves a short list of coordinates as Maven would (jgo, in pure Python) and writes jars.json:
each release's class path, and size and SHA-256 of each jar. Run it when a release is added.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType
from typing import Any

from reconciler.sandbox.jars import LOCK_FILE

RELEASES = ("3.9.2", "4.0.2", "4.1.2", "4.2.1", "4.3.1", "4.4.0")
"""The newest of each line, oldest first; the last one is the default."""

LOGGER_BINDING = "org.slf4j:slf4j-reload4j:1.7.36"
"""The broker's POM names no binding; this is the smallest that fits every release."""

EXCLUSIONS = MappingProxyType({"4.4.0": (("org.apache.kafka", "kafka-tools-api"),)})
"""4.4.0 names kafka-tools-api:4.4.0, which was never published; brokers run without it."""


def resolve_release(context: Any, release: str) -> list[Any]:
    """Return the artifacts of a broker's class path, the broker itself first."""
    unwanted = [context.project(*project) for project in EXCLUSIONS.get(release, ())]
    wanted = [
        context.create_dependency(f"org.apache.kafka:kafka_2.13:{release}", exclusions=unwanted),
        context.create_dependency(LOGGER_BINDING),
    ]
    direct, transitive = context.resolver.resolve(wanted)
    return [dependency.artifact for dependency in (*direct, *transitive)]


def describe_jar(artifact: Any) -> dict[str, object]:
    """Download one artifact, or find it in the local repository, and take its measure."""
    content = artifact.resolve().read_bytes()
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def lock_releases(releases: Iterable[str] = RELEASES) -> dict[str, Any]:
    """Return the content of the lock file. Cost: minutes where nothing is cached."""
    from jgo.maven import MavenContext

    context = MavenContext()
    class_paths: dict[str, list[str]] = {}
    artifacts: dict[str, Any] = {}
    for release in releases:
        found = {
            str(artifact.component): artifact for artifact in resolve_release(context, release)
        }
        class_paths[release] = list(found)
        artifacts.update(found)
    with ThreadPoolExecutor(8) as pool:
        jars = dict(zip(artifacts, pool.map(describe_jar, artifacts.values()), strict=True))
    return {"releases": class_paths, "jars": dict(sorted(jars.items()))}


if __name__ == "__main__":
    LOCK_FILE.write_text(json.dumps(lock_releases(), indent=1) + "\n")
