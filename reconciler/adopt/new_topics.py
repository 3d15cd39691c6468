"""New topics as documents in files: next to topics with similar names, or grouped by names."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from reconciler.adopt.amend import append_documents
from reconciler.adopt.desired import DesiredTopic
from reconciler.adopt.draft import EstateDraft
from reconciler.adopt.profiles import choose_profile
from reconciler.adopt.spelling import render_topic, spell_modeline
from reconciler.spec.configs import Catalogue

SPLIT_FROM = 3_000_000
"""No document is added to a file that would grow beyond this. Units: bytes."""


def add_topics(
    desired: Sequence[DesiredTopic],
    draft: EstateDraft,
    cluster: str,
    catalogue: Catalogue,
    owner: str | None = None,
) -> dict[str, str]:
    """Return the text of each file that takes new topics, which get this owner."""
    estate = draft.estate
    profiles = (None, *estate.profiles)
    bases = {name: estate.inherit(cluster, name, catalogue) for name in profiles}
    several = bool(set(estate.declared) - {cluster})
    documents = {}
    for wanted in desired:
        profile, said = choose_profile(wanted, bases, catalogue)
        document: dict[str, object] = {"topic": wanted.name}
        if owner is not None:
            document["owner"] = owner
        if several:
            document["clusters"] = [cluster]
        if profile is not None:
            document["profile"] = profile
        documents[wanted.name] = render_topic(document | said)
    return add_documents(documents, draft.find_files(), draft.texts)


def add_documents(
    documents: Mapping[str, str], written: Mapping[str, str], texts: Mapping[str, str]
) -> dict[str, str]:
    """Add documents to files. In: `written`, the file of each topic that is already written."""
    near = {name: find_neighbours(name, written) for name in documents}
    files = choose_files(name for name in documents if near[name] is None)
    added: defaultdict[str, list[str]] = defaultdict(list)
    for name in sorted(documents):
        path = near[name] or files[name]
        # An estate may use .yml: a second file of the same stem would look like a mistake.
        if path not in texts and f"{path[:-5]}.yml" in texts:
            path = f"{path[:-5]}.yml"
        if len(texts.get(path, "")) > SPLIT_FROM:
            path = f"{path.rpartition('.')[0]}-more.yaml"
        added[path].append(documents[name])
    return {
        path: append_documents(texts.get(path) or spell_modeline(path, "topic"), new)
        for path, new in added.items()
    }


MOST_IN_FILE = 40
"""A file with more topics than this is split by the next part of the names."""

MOST_SINGLES = 12
"""Up to this many topics without a common first part get a file each; more share one."""

OTHER = "other.yaml"
_DEEPEST = 4
_RESERVED = {"clusters", "con", "prn", "aux", "nul"}
"""Names that no file of topics can have: clusters.yaml, and devices of Windows."""


def choose_files(names: Iterable[str]) -> dict[str, str]:
    """Return the path of a file for each topic. Same names in any order, same files."""
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
    """Return the file that holds most of the topics whose names begin like this one.

    In: `files`, the path of each written topic. None if no topic has the same first part.
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
    """Place a group in one file, or in a directory of files if the group is too large."""
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
