"""Valid topic names: the broker's rules, and collisions of names."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from reconciler.errors import Finding
from reconciler.model import INTERNAL_TOPICS
from reconciler.spec.values import quote

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reconciler.errors import Location

MAX_LENGTH = 249
"""Units: characters. A log directory is named after topic and partition, and file names end at
255 bytes. Source: org.apache.kafka.common.internals.Topic."""

NAME_PATTERN = r"^[a-zA-Z0-9._-]{1,249}$"
"""The part of the rules that a JSON Schema can express; `.` and `..` are refused as well."""


def check_name(name: str, where: Location | None) -> list[Finding]:
    """Return every error in a topic's name; nothing for a good one."""
    if name == "":
        return [Finding("name-empty", "the topic has no name", "give it one", where)]
    if name in {".", ".."}:
        what = f"a topic cannot be called '{name}', which names a directory"
        return [Finding("name-dots", what, "choose another name", where)]
    if name in INTERNAL_TOPICS:
        what = f"'{name}' {INTERNAL_TOPICS[name]}; Kafka creates and configures it by itself"
        return [Finding("name-internal", what, "remove it from the specs", where)]
    return [*check_length(name, where), *_check_characters(name, where)]


def find_collisions(names: Iterable[str]) -> list[tuple[str, ...]]:
    """Group the names that become equal once '.' turns into '_', as they do in metric names.

    Groups of two and more, sorted. Kafka refuses such a topic only if the other exists: two in
    one request are both created.
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


def _check_characters(name: str, where: Location | None) -> list[Finding]:
    wrong = dict.fromkeys(re.findall(r"[^a-zA-Z0-9._-]", name))
    if not wrong:
        return []
    what = f"topic {quote(name)} has characters that Kafka does not take: {_show(wrong)}"
    way_out = "use only ASCII letters, digits, '.', '_' and '-'"
    return [Finding("name-characters", what, way_out, where)]


def _show(characters: Iterable[str]) -> str:
    names = {" ": "a blank", "\t": "a tab", "\n": "a line end"}
    shown = [names.get(c) or quote(c) for c in characters]
    return ", ".join(shown[:5]) + (" and more" if len(shown) > 5 else "")
