"""Valid topic names: the broker's rules, and collisions of names."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from reconciler.errors import Finding
from reconciler.model.cluster import INTERNAL_TOPICS
from reconciler.spec.values import quote

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reconciler.errors import Location

MAX_LENGTH = 249
"""Units: characters. A log directory is named after topic and partition, and file names end at
255 bytes. Source: org.apache.kafka.common.internals.Topic."""

NAME_PATTERN = r"^[a-zA-Z0-9._-]{1,249}$"
"""The part of the rules that a JSON Schema can express; `.` and `..` are refused as well."""

_UNPRINTED = {" ": "a blank", "\t": "a tab", "\n": "a line end"}


def check_name(name: str, where: Location | None) -> list[Finding]:
    """Return every error in a topic's name."""
    if name == "":
        return [Finding("name-empty", "the topic has no name", "give it one", where)]
    if name in {".", ".."}:
        what = f"a topic cannot be called '{name}', which names a directory"
        return [Finding("name-dots", what, "choose another name", where)]
    if name in INTERNAL_TOPICS:
        what = f"'{name}' {INTERNAL_TOPICS[name]}; Kafka creates and configures it by itself"
        return [Finding("name-internal", what, "remove it from the specs", where)]
    findings = check_length(name, where)
    if wrong := dict.fromkeys(re.findall(r"[^a-zA-Z0-9._-]", name)):
        shown = [_UNPRINTED.get(character) or quote(character) for character in wrong]
        listed = ", ".join(shown[:5]) + (" and more" if len(shown) > 5 else "")
        what = f"topic {quote(name)} has characters that Kafka does not take: {listed}"
        way_out = "use only ASCII letters, digits, '.', '_' and '-'"
        findings.append(Finding("name-characters", what, way_out, where))
    return findings


def find_collisions(names: Iterable[str]) -> list[tuple[str, ...]]:
    """Group the names that are equal if '.' becomes '_', as in the names of metrics.

    Returns groups of two or more names, sorted. Kafka refuses such a topic if the other exists, but
    it creates both if they are in one request.
    """
    groups: defaultdict[str, set[str]] = defaultdict(set)
    for name in names:
        groups[name.replace(".", "_")].add(name)
    return sorted(tuple(sorted(group)) for group in groups.values() if len(group) > 1)


def check_length(name: str, where: Location | None) -> list[Finding]:
    """Return an error if a name is too long; otherwise nothing."""
    length = len(name.encode("utf-16-le", "surrogatepass")) // 2  # Java counts UTF-16 units
    if length <= MAX_LENGTH:
        return []
    what = f"topic {quote(name)} has a name of {length} characters"
    return [Finding("name-length", what, f"use at most {MAX_LENGTH}", where)]
