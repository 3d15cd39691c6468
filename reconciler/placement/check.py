"""The checker: every hard rule, held against any strategy's answer. It shares no code with one."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from reconciler.model import Assignment, Replicas
    from reconciler.placement.problem import Problem, Wish


def check_placement(problem: Problem, placed: Mapping[str, Assignment]) -> tuple[str, ...]:
    """Return every violation as a sentence; nothing where the answer is sound."""
    found: list[str] = []
    wished = {wish.topic for wish in problem.wishes}
    found += [f"{topic}: placed without a wish" for topic in sorted(set(placed) - wished)]
    for wish in problem.wishes:
        rows = placed.get(wish.topic, ())
        if len(rows) != wish.count:
            found.append(f"{wish.topic}: {len(rows)} rows for {wish.count} new partitions")
        for number, row in enumerate(rows, len(wish.existing)):
            found += [f"{wish.topic} partition {number}: {v}" for v in _row(problem, wish, row)]
    return tuple(found)


def _row(problem: Problem, wish: Wish, row: Replicas) -> Iterator[str]:
    eligible = {broker.id: broker for broker in problem.brokers}
    if len(row) != wish.replication:
        yield f"{len(row)} replicas instead of {wish.replication}"
    if len(set(row)) != len(row):
        yield f"a broker twice in {list(row)}"
    strangers = sorted(set(row) - set(eligible))
    if strangers:
        yield f"brokers {strangers} may take nothing new"
    elif wish.rack_aware and not _is_even([eligible[b].rack or "" for b in row], problem):
        yield f"{list(row)} is not spread over the racks as evenly as they allow"


def _is_even(racks_of_row: list[str], problem: Problem) -> bool:
    """Even: no rack holds two replicas more than another rack that still has a broker free."""
    held = Counter(racks_of_row)
    size = Counter(broker.rack or "" for broker in problem.brokers)
    with_room = [held[rack] for rack in size if held[rack] < size[rack]]
    most = max(held.values(), default=0)
    return most - min(with_room, default=most) <= 1
