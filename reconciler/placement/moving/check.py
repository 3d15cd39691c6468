"""The checker of moves: hard rules and the fewest moves. It shares no code with the solver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from reconciler.model.cluster import Assignment, Replicas
from reconciler.placement.moving.problem import MoveGoal, MoveProblem, MoveWish


class _Racks:
    """Which brokers live, their racks, and how many brokers of each rack a row may have."""

    def __init__(self, problem: MoveProblem) -> None:
        self._problem = problem
        self._names = {broker.id: broker.rack or "" for broker in problem.brokers}
        self._eligible: dict[tuple[frozenset[int], bool], Counter[str]] = {}
        self.alive = frozenset(broker.id for broker in problem.brokers if broker.alive)

    def name(self, wish: MoveWish, broker: int) -> str:
        """Return the rack of a broker; racks are all the same to some topics."""
        return self._names.get(broker, "") if wish.rack_aware else ""

    def count_candidates(self, wish: MoveWish, number: int) -> Counter[str]:
        """Return how many brokers of each rack may hold a partition: the eligible and its own."""
        eligible, given_up = self._problem.eligible, self._problem.give_up(wish, number)
        key = given_up, wish.rack_aware  # most rows differ in nothing else
        if key not in self._eligible:
            self._eligible[key] = Counter(self.name(wish, b) for b in eligible - given_up)
        own = set(wish.rows[number]) - given_up - eligible
        return self._eligible[key] + Counter(self.name(wish, b) for b in own)


def check_moves(problem: MoveProblem, rows: Mapping[str, Assignment]) -> tuple[str, ...]:
    """Return every violation as a sentence; nothing if the rows are sound."""
    wishes = {wish.topic: wish for wish in problem.wishes}
    racks = _Racks(problem)
    found = [f"{topic}: moved without a wish" for topic in sorted(rows.keys() - wishes.keys())]
    for topic, wish in sorted(wishes.items()):
        moved = rows.get(topic, ())
        if len(moved) != len(wish.rows):
            found.append(f"{topic}: {len(moved)} rows for {len(wish.rows)} partitions")
            continue
        for number, new in enumerate(moved):
            found += [
                f"{topic} partition {number}: {fault}"
                for fault in _faults(problem, racks, wish, number, new)
            ]
    return (*found, *_find_crowded(problem, rows))


def _find_crowded(problem: MoveProblem, rows: Mapping[str, Assignment]) -> Iterator[str]:
    held = Counter(problem.replicas)
    for wish in problem.wishes:
        held.subtract(b for row in wish.rows for b in row)
        held.update(b for row in rows.get(wish.topic, ()) for b in row)
    for broker, most in sorted(problem.most.items()):
        if held[broker] > max(most, problem.replicas.get(broker, 0)):
            yield f"broker {broker} holds {held[broker]} replicas instead of {most} at most"


def count_moves(problem: MoveProblem, rows: Mapping[str, Assignment]) -> int:
    """Return how many replicas are copied to a broker that does not have them."""
    return sum(
        len(set(new) - set(old))
        for wish in problem.wishes
        for old, new in zip(wish.rows, rows[wish.topic], strict=True)
    )


def least_moves(problem: MoveProblem) -> int:
    """Return the fewest replicas that any rows of these wishes copy.

    With `MoveGoal.BALANCE` that is what the hard rules alone demand: balance may need more.
    """
    racks = _Racks(problem)
    return sum(
        wish.count_wanted(row) - _most_kept(problem, racks, wish, number)
        for wish in problem.wishes
        for number, row in enumerate(wish.rows)
        if _must_copy(problem, wish, number)
    )


def _must_copy(problem: MoveProblem, wish: MoveWish, number: int) -> bool:
    """Return whether a row may have to copy a replica: it needs more, or breaks the rack rule."""
    if problem.goal is MoveGoal.BALANCE:
        return True
    row = wish.rows[number]
    return len(set(row) - problem.give_up(wish, number)) < wish.count_wanted(row)


def _most_kept(problem: MoveProblem, racks: _Racks, wish: MoveWish, number: int) -> int:
    """Return how many replicas of a row can stay: one by one, as the racks allow."""
    row, given_up = wish.rows[number], problem.give_up(wish, number)
    rest = set(row) - given_up
    sizes = racks.count_candidates(wish, number)
    wanted = wish.count_wanted(row)
    division = dict.fromkeys(sizes, 0)
    for _ in range(wanted):  # the most even division gives to an emptiest rack with room
        rack = min((r for r in sizes if division[r] < sizes[r]), key=lambda r: (division[r], r))
        division[rack] += 1
    most = max(division.values())
    fewest = {r: min(size, most - 1) for r, size in sizes.items()}
    extra = wanted - sum(fewest.values())  # racks that have one more than their fewest
    present = Counter(racks.name(wish, b) for b in rest)
    kept = sum(min(present[r], fewest[r]) for r in sizes)
    return kept + min(extra, sum(present[r] > fewest[r] for r in sizes))


def _faults(
    problem: MoveProblem,
    racks: _Racks,
    wish: MoveWish,
    number: int,
    new: Replicas,
) -> Iterator[str]:
    old, given_up = wish.rows[number], problem.give_up(wish, number)
    in_sync = wish.in_sync[number] if wish.in_sync else old
    wanted, rest = wish.count_wanted(old), set(old) - given_up
    balances = problem.goal is MoveGoal.BALANCE
    if not balances and len(old) == wanted == len(rest):
        if set(old) != set(new):
            yield f"{list(old)} had {len(old)} replicas and became {list(new)}"
        return
    if len(new) != wanted:
        yield f"{len(new)} replicas instead of {wanted}"
    if len(set(new)) != len(new):
        yield f"a broker twice in {list(new)}"
    if kept := sorted(given_up.intersection(new)):
        yield f"brokers {kept} are to hold no replica"
    added = set(new) - set(old)
    if ineligible := sorted(added - problem.eligible):
        yield f"brokers {ineligible} may take nothing new"
    if not balances and len(rest) >= wanted and added:
        yield f"{sorted(added)} are new in a row that shrinks"
    stays = problem.most and set(old) == set(new)  # the bounds may leave the racks as they are
    if (balances or len(rest) < wanted) and not (stays or _is_even(racks, wish, number, new)):
        yield f"{list(new)} is not spread over the racks as evenly as they allow"
    if not balances and rest & set(in_sync) and not set(new) & set(in_sync):
        yield f"none of the in-sync replicas {list(in_sync)} stays in {list(new)}"
    if not balances and len(old) > wanted <= len(rest):
        leader = next((b for b in old if b in rest & racks.alive & set(in_sync)), None)
        if leader not in (None, *new):
            yield f"broker {leader} is able to lead {list(old)}, and not in {list(new)}"


def _is_even(racks: _Racks, wish: MoveWish, number: int, new: Replicas) -> bool:
    size = racks.count_candidates(wish, number)
    held = Counter(racks.name(wish, b) for b in new)
    most = max(held.values())
    return all(most - held[rack] <= 1 for rack in size if held[rack] < size[rack])
