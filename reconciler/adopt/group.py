"""Which file a topic goes into: by the first parts of its name, as a person would sort them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MOST_IN_FILE = 40
"""A file with more topics than this is split by the next part of the names."""

MOST_SINGLES = 12
"""As many topics that share their first part with no other get a file each; more share one."""

OTHER = "other.yaml"
_DEEPEST = 4
_RESERVED = {"clusters", "con", "prn", "aux", "nul"}


def group_topics(names: Iterable[str]) -> dict[str, str]:
    """Return the path of a file for each topic. Same names, same files, whatever their order."""
    files: dict[str, str] = {}
    groups = _split(sorted(names), 0)
    singles = [group for group in groups.values() if len(group) == 1]
    for first, group in groups.items():
        if len(group) == 1 and len(singles) > MOST_SINGLES:
            files[group[0]] = OTHER
        else:
            files |= _place(group, first, 1)
    return files


def find_neighbours(name: str, files: Mapping[str, str]) -> str | None:
    """Return the file that holds most of the topics whose names begin as this one does.

    In: `files`, the path of each topic that is written already. None where no first part agrees.
    """
    parts = split_name(name)
    for depth in range(len(parts), 0, -1):
        near = Counter(
            path
            for other, path in sorted(files.items())
            if split_name(other)[:depth] == parts[:depth]
        )
        if near:
            return near.most_common(1)[0][0]
    return None


def split_name(name: str) -> tuple[str, ...]:
    """Split a name into its parts, in lower case: orders.events-v2 is orders, events, v2."""
    return tuple(re.findall(r"[a-z0-9]+", name.lower()))


def _place(group: list[str], path: str, depth: int) -> dict[str, str]:
    """Place a group in one file, or split it into a directory where it is too large for that."""
    inner = _split(group, depth)
    if len(group) <= MOST_IN_FILE or depth >= _DEEPEST:
        return dict.fromkeys(group, f"{path}.yaml")
    if len(inner) == 1:
        return _place(group, path, depth + 1)
    lonely = sum(len(names) == 1 for names in inner.values())
    if lonely > MOST_SINGLES:
        rest = [names[0] for names in inner.values() if len(names) == 1]
        inner = {part: names for part, names in inner.items() if len(names) > 1}
        inner["other"] = sorted([*inner.get("other", []), *rest])
    if list(inner) == ["other"]:
        return dict.fromkeys(group, f"{path}.yaml")
    files: dict[str, str] = {}
    for part, names in inner.items():
        files |= _place(names, f"{path}/{part}", depth + 1)
    return files


def _split(names: Iterable[str], depth: int) -> dict[str, list[str]]:
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        parts = split_name(name)
        part = parts[depth][:60] if len(parts) > depth else "other"
        groups[f"{part}-topics" if part in _RESERVED else part].append(name)
    return dict(groups)
