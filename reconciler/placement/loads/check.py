"""The checker of rows by load: every hard rule. It shares no code with the search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from reconciler.placement.loads.problem import NOBODY, Ints, LoadProblem


def check_loads(problem: LoadProblem, rows: Ints) -> tuple[str, ...]:
    """Return every violation of a hard rule as a sentence; nothing if the rows are sound."""
    if rows.shape != problem.rows.shape:
        return (f"rows of shape {rows.shape} instead of {problem.rows.shape}",)
    before, after = _list(problem.rows), _list(rows)
    found = [
        f"partition {number}: {fault}"
        for number, (old, new) in enumerate(zip(before, after, strict=True))
        if old != new
        for fault in _find_faults(problem, number, old, new)
    ]
    crowded = _find_crowded(problem, problem.rows, rows)
    return (*found, *crowded, *_find_full(problem, before, after))


def _list(rows: Ints) -> list[list[int]]:
    return [[broker for broker in row if broker != NOBODY] for row in rows.tolist()]


def _find_faults(
    problem: LoadProblem, number: int, old: Sequence[int], new: Sequence[int]
) -> Iterator[str]:
    if not problem.movable[number]:
        yield f"{old} may not change"
    if len(new) != len(old) or len(set(new)) != len(new):
        yield f"{old} became {new}"
    if ineligible := [b for b in set(new) - set(old) if not problem.receivers[b]]:
        yield f"brokers {sorted(ineligible)} may take nothing"
    if problem.within is not None:
        if not set(new) <= set(problem.within[number].tolist()):
            yield f"{new} is not among {problem.within[number].tolist()}"
        return
    was, is_ = (Counter(problem.racks[b] for b in row) for row in (old, new))
    if set(old) != set(new) and (len(is_) < len(was) or max(is_.values()) > max(was.values())):
        yield f"{new} is less spread over the racks than {old}"


def _find_crowded(problem: LoadProblem, before: Ints, after: Ints) -> Iterator[str]:
    """Yield the topics that have fewer or more replicas on a broker than the spread allows."""
    if problem.spread is None or problem.within is not None:
        return
    was, is_ = (_count_by_topic(problem, rows) for rows in (before, after))
    total = was.sum(axis=1, keepdims=True)
    least = np.minimum(total // problem.brokers, was.min(axis=1, keepdims=True)) - problem.spread
    most = -(-total // problem.brokers)
    most = np.maximum(most, was.max(axis=1, keepdims=True)) + problem.spread
    for topic, broker in np.argwhere((is_ != was) & ((is_ < least) | (is_ > most))).tolist():
        yield f"topic {topic} has {is_[topic, broker]} replicas on broker {broker}"


def _count_by_topic(problem: LoadProblem, rows: Ints) -> Ints:
    """Return the replicas (T, B) of each topic on each broker."""
    held = rows != NOBODY
    topics = np.repeat(problem.topics, held.sum(axis=1))
    counts = np.bincount(
        topics * problem.brokers + rows[held],
        minlength=(int(problem.topics.max(initial=-1)) + 1) * problem.brokers,
    )
    return np.asarray(counts.reshape(-1, problem.brokers))


def _find_full(
    problem: LoadProblem, before: Sequence[Sequence[int]], after: Sequence[Sequence[int]]
) -> Iterator[str]:
    """Yield the brokers to which more is copied than they have room for."""
    if problem.room is None:
        return
    copied: Counter[int] = Counter()
    for cost, old, new in zip(problem.cost.tolist(), before, after, strict=True):
        copied.update(dict.fromkeys(set(new) - set(old), cost))
    for broker, room in enumerate(problem.room.tolist()):
        if copied[broker] > room:
            yield f"broker {broker} has room for {room}, and takes {copied[broker]}"
