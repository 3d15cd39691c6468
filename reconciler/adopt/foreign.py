"""Topics that other software creates for itself, and the patterns that leave them to it."""

from __future__ import annotations

from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import TYPE_CHECKING

from reconciler.errors import Finding, Severity
from reconciler.units import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

OWNERS: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        "Amazon MSK": ("__amazon_msk_*",),
        "Confluent Platform": ("_confluent*", "__confluent*"),
        "Cruise Control": ("__CruiseControl*", "__KafkaCruiseControl*", "strimzi.cruisecontrol.*"),
        "Kafka Connect": (
            "connect-*configs",
            "connect-*offsets",
            "connect-*status",
            "*[-_]connect-configs",
            "*[-_]connect-offsets",
            "*[-_]connect-status",
        ),
        "Kafka Streams": ("*-changelog", "*-repartition", "*-KTABLE-FK-JOIN-SUBSCRIPTION-*"),
        "ksqlDB": ("*ksql_processing_log",),
        "MirrorMaker 2": ("heartbeats", "*.heartbeats", "*.checkpoints.internal", "mm2-*.internal"),
        "Schema Registry": ("_schemas", "_schema_encoders"),
        "Strimzi": ("__strimzi*",),
    }
)
"""Patterns of `ignore` by software, as it names its topics unless it is told other names."""

NAMED = 3
"""As many topics of each software are named."""


def suggest_ignores(names: Iterable[str]) -> list[Finding]:
    """Name the new topics that look like other software's, and how to leave them out."""
    found: dict[str, list[str]] = {}
    patterns: set[str] = set()
    for name in sorted(names):
        if match := _match(name):
            owner, pattern = match
            found.setdefault(owner, []).append(name)
            patterns.add(pattern)
    if not found:
        return []
    total = sum(map(len, found.values()))
    said = ", ".join(f"{owner} ({_list(own)})" for owner, own in sorted(found.items()))
    look = "looks like one" if total == 1 else "look like those"
    what = f"{count(total, 'new topic')} {look} that other software creates for itself: {said}"
    options = " ".join(f"--ignore '{pattern}'" for pattern in sorted(patterns))
    way_out = f"to leave them out, remove their documents and import again with {options}"
    return [Finding("import-foreign", what, way_out, severity=Severity.WARNING)]


def _match(name: str) -> tuple[str, str] | None:
    matches = ((o, p) for o, patterns in OWNERS.items() for p in patterns if fnmatchcase(name, p))
    return next(matches, None)


def _list(names: Sequence[str]) -> str:
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more:,} more" if more > 0 else "")
