"""Repositories of specs: what one has, what `init` would write, and what it writes.

Clusters are only read. A file that exists is changed only if the caller names it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from reconciler.api.estate_files import leads_out, write_texts
from reconciler.errors import ClusterError, Finding, UsageError, show_path

if TYPE_CHECKING:
    from reconciler.model.cluster import ClusterState
    from reconciler.scaffold.answers import ClusterAnswer, Pin, WheelPin
    from reconciler.scaffold.repository import WrittenFile

EXECUTABLE = ".sh"
_EXECUTABLE_MODE = 0o755


@dataclass(frozen=True, slots=True)
class ReadCluster:
    """A cluster as it answered, or the findings why it did not."""

    answer: ClusterAnswer
    state: ClusterState | None
    findings: tuple[Finding, ...] = ()


def read_texts(directory: Path, paths: Iterable[str]) -> dict[str, str]:
    """Return those of some files that a repository has, by path.

    Errors: UsageError for one that leads out of it, is no text, or cannot be read.
    """
    found = {}
    for path in paths:
        place, shown = directory / path, show_path(str(directory), path)
        if not (place.exists() or place.is_symlink()):
            continue
        if leads_out(place, directory):
            raise UsageError(f"{shown} is a link out of the repository; put the file itself there")
        try:
            found[path] = place.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{shown} cannot be read: {error}") from error
    return found


def write_repository(directory: Path, files: Iterable[WrittenFile]) -> None:
    """Write these files of a repository, each completely or not at all. Errors: UsageError."""
    texts = {file.path: file.text for file in files}
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        shown = show_path(str(directory))
        raise UsageError(f"{shown} cannot be made: {error.strerror}") from error
    write_texts(directory, texts)
    for path in texts:
        if path.endswith(EXECUTABLE):
            (directory / path).chmod(_EXECUTABLE_MODE)


def read_new_cluster(answer: ClusterAnswer, *, configs: bool) -> ReadCluster:
    """Read a cluster that no clusters.yaml names yet: its id, its size, and its topics.

    One that does not answer, or whose secrets are not set here, is returned with the findings.
    With `configs`, the configs of topics are read as well.
    """
    from reconciler.errors import Location
    from reconciler.kafka.connection import connect
    from reconciler.kafka.reader import KafkaReader
    from reconciler.spec.entry import ClusterEntry

    where = Location("topics/clusters.yaml", 1)
    entry = ClusterEntry(answer.name, where, client=answer.client)
    try:
        with connect(entry) as connection:
            state = KafkaReader(connection).read_cluster(None if configs else ())
    except ClusterError as error:
        return ReadCluster(answer, None, tuple(error.findings))
    known = replace(answer, cluster_id=state.cluster_id, brokers=len(state.brokers))
    return ReadCluster(known, state)


def count_sandbox_brokers() -> int | None:
    """Return the size of the sandbox that runs on this machine, None if none runs."""
    from reconciler.sandbox.record import running_sandbox

    record = running_sandbox()
    return None if record is None else len(record.brokers)


def hash_wheel(directory: Path, place: str) -> WheelPin:
    """Pin a wheel that is in the repository, by its path. Errors: UsageError."""
    from reconciler.scaffold.answers import WheelPin

    path = directory / place
    if not path.is_file():
        raise UsageError(f"there is no wheel {show_path(str(path))}")
    if not path.resolve().is_relative_to(directory.resolve()):
        raise UsageError(
            f"the wheel {show_path(place)} is outside of the repository, and jobs would not have "
            "it; copy it there, or name its https address and --wheel-hash"
        )
    inside = path.resolve().relative_to(directory.resolve()).as_posix()
    return WheelPin(inside, hashlib.sha256(path.read_bytes()).hexdigest())


def find_installed_pin() -> Pin | None:
    """Return what this reconciler was installed from, None if its installer did not record that.

    That is the commit of a git address, or a wheel with an https address and a hash.
    """
    from reconciler.scaffold.answers import CommitPin, WheelPin

    try:
        recorded = distribution("kafka-reconciler").read_text("direct_url.json")
        known = json.loads(recorded or "{}")
    except (PackageNotFoundError, ValueError):
        return None
    address = known.get("url", "")
    if commit := known.get("vcs_info", {}).get("commit_id"):
        return CommitPin(address, commit)
    sha256 = known.get("archive_info", {}).get("hashes", {}).get("sha256")
    if sha256 and urlsplit(address).scheme == "https" and address.endswith(".whl"):
        return WheelPin(address, sha256)
    return None
