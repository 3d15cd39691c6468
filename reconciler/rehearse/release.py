"""Which Kafka release a rehearsal runs on, where the cluster's own is not to be had."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.errors import Finding, Severity
from reconciler.spec.catalogue import parse_version, spell

if TYPE_CHECKING:
    from collections.abc import Sequence


def choose_release(wanted: str | None, known: Sequence[str]) -> tuple[str, tuple[Finding, ...]]:
    """Choose the release for a cluster's version or line, and say so where it is another one.

    In: `known`, oldest first. Returns the newest one of the line, else of the lines before it,
    else the oldest; the newest of all where nothing is wanted.
    """
    if wanted is None:
        what = f"nothing tells the cluster's Kafka release; rehearsed on {known[-1]}"
        return known[-1], (_note(what, "write kafka_version in clusters.yaml, or say --kafka"),)
    if wanted in known:
        return wanted, ()
    line = parse_version(wanted)
    before = [release for release in known if parse_version(release) <= line]
    release = before[-1] if before else known[0]
    if wanted == spell(line) == spell(parse_version(release)):
        return release, ()
    what = f"the cluster runs Kafka {wanted}, which is not here; rehearsed on {release}"
    return release, (_note(what, "name another with --kafka"),)


def _note(what: str, way_out: str) -> Finding:
    return Finding("rehearsal-differs", what, way_out, severity=Severity.NOTE)
