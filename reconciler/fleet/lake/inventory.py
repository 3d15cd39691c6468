"""What a lake holds, by collection, and what may go: from publications alone, without Spark."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from reconciler.fleet.lake.attempts import HISTORY, PLAN, STATE, Published, choose_newest, read_time
from reconciler.fleet.lake.stores import Size

READINGS, BROKERS = "readings", "brokers"
"""The tables whose published rows say which clusters a collection names, and which it read."""


@dataclass(frozen=True, slots=True)
class Holding:
    """A collection: its attempts that count, and the files and bytes of all of its attempts.

    `attempts` counts by kind, with those that a newer one replaced.
    """

    collection: str
    commit: str | None
    clusters_read: int
    clusters_unread: int
    attempts: Mapping[str, int]
    size: Size


def take_inventory(
    published: Sequence[Published], sizes: Mapping[str, Size]
) -> tuple[Holding, ...]:
    """Return what a lake holds, the oldest collection first."""
    of: dict[str, list[Published]] = defaultdict(list)
    for one in published:
        of[one.collection].append(one)
    return tuple(_describe(name, of[name], sizes) for name in sorted(of))


def _describe(
    collection: str, published: Sequence[Published], sizes: Mapping[str, Size]
) -> Holding:
    state = choose_newest([one for one in published if one.what == STATE])
    named, read = (
        set().union(*(list_clusters(one, table) for one in state)) for table in (READINGS, BROKERS)
    )
    kinds: dict[str, int] = defaultdict(int)
    for one in published:
        kinds[one.what] += 1
    held = [sizes.get(one.id, Size()) for one in published]
    size = Size(sum(one.files for one in held), sum(one.size_bytes for one in held))
    commit = state[0].commit if state else None
    return Holding(collection, commit, len(read), len(named - read), dict(kinds), size)


def list_clusters(attempt: Published, table: str) -> set[str]:
    """Return the clusters of which an attempt published rows of a table."""
    return {cluster for cluster, rows in attempt.rows.get(table, {}).items() if rows}


@dataclass(frozen=True, slots=True)
class Keeping:
    """What `keep` does: collections that go, old ones that stay, and for which clusters.

    `oldest` is the oldest collection that is young enough, or the latest of all.
    """

    oldest: str
    going: tuple[str, ...]
    needed: Mapping[str, tuple[str, ...]]


def choose_kept(published: Sequence[Published], before: datetime) -> Keeping | None:
    """Choose the collections that go: those before a time, unless a history needs them.

    History compares the next reading of a cluster with the last one, so the collection of that
    stays until a kept one has read the cluster. Returns: None for a lake without collections.
    """
    states = choose_newest([one for one in published if one.what == STATE])
    if not states:
        return None
    young = [one.collection for one in states if read_time(one.collection) >= before]
    oldest = young[0] if young else states[-1].collection
    needed: dict[str, set[str]] = defaultdict(set)
    for name, last in find_last_readings(states, oldest).items():
        for collection in last:
            if collection < oldest:
                needed[collection].add(name)
    names = {one.collection for one in published if one.collection < oldest}
    return Keeping(
        oldest,
        tuple(sorted(names - needed.keys())),
        {name: tuple(sorted(needed[name])) for name in sorted(needed)},
    )


def find_last_readings(states: Sequence[Published], until: str) -> Mapping[str, set[str]]:
    """Return the collections of each cluster that a history continues from.

    They are the last one that read the cluster, and the last one that names it, read or not.
    In: the newest states. `until` is the last collection that counts.
    """
    last: dict[str, dict[str, str]] = defaultdict(dict)
    for one in sorted(states, key=lambda one: one.collection):
        if one.collection <= until:
            for table in (READINGS, BROKERS):
                for cluster in list_clusters(one, table):
                    last[cluster][table] = one.collection
    return {cluster: set(of.values()) for cluster, of in last.items()}


def is_sound(
    history: Published, newest: Mapping[tuple[str, str], Published], before: Published | None
) -> bool:
    """Return whether a history still is what its collections and plans say.

    In: the newest attempts by collection and kind, and the history that it continues, if it is
    sound. It is not sound any more if a collection or plan was made again, came in between, or was
    removed. A history that continues none and is of removed collections cannot be made again, so
    it counts.
    """
    if history.continues is not None and before is None:
        return False
    present = {one.content for one in newest.values() if one.what in (STATE, PLAN)}
    if history.continues is None and not present.issuperset(history.made_of):
        return True
    span = {
        one.content
        for one in newest.values()
        if one.what in (STATE, PLAN)
        and (history.continues or "") < one.collection <= history.collection
    }
    return span <= set(history.made_of) <= present


def keeps_removed(history: Published, published: Sequence[Published]) -> bool:
    """Return whether a history alone holds the events of collections that were removed."""
    if history.what != HISTORY or history.continues is not None:
        return False
    made_of = set(history.made_of)
    later = (one for one in published if one.what == HISTORY)
    is_held = any(
        one.collection > history.collection and made_of.issubset(one.made_of) for one in later
    )
    return not is_held and not made_of.issubset(one.content for one in published)


def find_chain(published: Sequence[Published], until: str | None = None) -> list[Published]:
    """Return the sound histories that follow each other, the first one first.

    Each continues the one before. `until` is the last collection that counts.
    """
    newest = {
        (one.collection, one.what): one
        for what in (STATE, PLAN, HISTORY)
        for one in choose_newest([each for each in published if each.what == what])
    }
    sound: dict[str, Published] = {}
    histories = (one for (_, what), one in newest.items() if what == HISTORY)
    for one in sorted(histories, key=lambda one: one.collection):
        if until is not None and one.collection > until:
            break
        if is_sound(one, newest, sound.get(one.continues or "")):
            sound[one.collection] = one
    chain: list[Published] = []
    link = sound[max(sound)] if sound else None
    while link is not None:
        chain.insert(0, link)
        link = sound.get(link.continues or "")
    return chain
