"""Edits that a way out may name: only those that no rule of validation refuses.

An edit is its words and the spec that it leads to; `Allows` is what validation says of that spec.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from reconciler.model import TopicSpec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from reconciler.model import TopicState

Allows = Callable[[TopicSpec], bool]
Edit = tuple[str, TopicSpec]


def allow_all(_: TopicSpec) -> bool:
    """Allow every spec, where no estate says otherwise."""
    return True


def name_allowed(edits: Iterable[Edit], allows: Allows) -> str:
    """Return the words of the first edit that is allowed; nothing where none is."""
    return next((words for words, edited in edits if allows(edited)), "")


def join_ways(*ways: str) -> str:
    """Say several ways out in a sentence, without those that are empty."""
    return ", or ".join(filter(None, ways))


def set_config(spec: TopicSpec, config: Mapping[str, str]) -> TopicSpec:
    """Return a spec with some configs written into it."""
    return replace(spec, config={**spec.config, **config})


def list_factors(spec: TopicSpec, factor: int, words: str) -> Iterator[Edit]:
    """List edits that give a spec this replication factor, min.insync.replicas with it or not."""
    edited = replace(spec, replication_factor=factor)
    yield words, edited
    key = "min.insync.replicas"
    yield f"{words}, with {key} {factor}", set_config(edited, {key: str(factor)})


def list_live_rows(spec: TopicSpec, state: TopicState) -> TopicSpec | None:
    """Return a spec with manual rows whose first rows are the live ones, and its counts with them.

    None where that is no spec: its rows are all of one length.
    """
    rows = state.assignment + (spec.assignment or ())[len(state.assignment) :]
    if len({*map(len, rows)}) != 1:
        return None
    return replace(spec, assignment=rows, partitions=len(rows), replication_factor=len(rows[0]))
