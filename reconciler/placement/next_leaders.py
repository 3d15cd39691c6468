"""Levels 5 and 6: who leads next when a broker or a rack is lost, counted over the whole cluster.

The second replica of a row becomes leader when the broker of the first one dies. Levels 1 to 4 do
not see it: with the most even counts, one broker may still take over all leaders of another. Level
5 is the sum of squares of n(a, b), how often b is next after leader a. Level 6 is that of m(j, b),
how often b leads next if all of rack j is lost (the scatter width of Cidon et al., "Copysets",
USENIX ATC 2013, applied to leaders).

An example, the bounds, and the cost in different replica sets:
docs/explanation/placement-proofs.md, "Next leaders".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from reconciler.model.plan import Level, LevelResult
from reconciler.placement.problem import Problem

LEVEL_5 = 1 << 48
"""The weight of level 5 next to level 6: one integer holds both prices."""


class Succession(NamedTuple):
    """Where a row counts: `following` leads after `leader`, and `beyond` after all of `rack`.

    Indices; -1 stands for no broker, or no rack.
    """

    leader: int
    following: int
    rack: int
    beyond: int


class NextLeaderBounds(NamedTuple):
    """The least squares that both levels could reach, and the least that their largest count could.

    See `bounds.bound_next_leaders`.
    """

    brokers: int
    most_from_broker: int
    racks: int
    most_from_rack: int


class NextLeaders:
    """The counts n(a, b) as `after[a][b]`, and m(j, b) as `beyond[j][b]`. Brokers are indices.

    `rack_of` is -1 for a broker without a rack: no loss of a rack takes it. If all brokers are in
    one rack, nobody would be left to lead, and nothing is counted in m.
    """

    def __init__(self, rack_of: Sequence[int]) -> None:
        self.rack_of = rack_of if len(set(rack_of)) > 1 else [-1] * len(rack_of)
        self.after = [[0] * len(rack_of) for _ in rack_of]
        self.beyond = [[0] * len(rack_of) for _ in range(max(self.rack_of, default=-1) + 1)]

    @classmethod
    def count(cls, problem: Problem) -> NextLeaders:
        """Count the rows that a problem finds: those of other topics, and of wished ones.

        A dead broker leads nothing: the living replica behind it counts instead, as in
        `loss.measure_losses`. Leaders on a living broker that takes nothing new are in no count,
        and neither is what it takes over.
        """
        brokers = sorted(problem.brokers, key=lambda broker: broker.id)
        names = sorted({broker.rack for broker in brokers if broker.rack is not None})
        numbers = {name: j for j, name in enumerate(names)}
        table = cls([-1 if b.rack is None else numbers[b.rack] for b in brokers])
        index = {broker.id: number for number, broker in enumerate(brokers)}
        home = {broker.id: broker.rack for broker in (*brokers, *problem.also_alive)}
        existing = (wish.existing for wish in problem.wishes)
        rows = Counter(chain.from_iterable(chain(problem.others, existing)))
        for row, times in rows.items():
            living = [b for b in row if b in home]
            if not living or living[0] not in index:
                continue
            leader = index[living[0]]
            following = next(iter(living[1:]), -1)
            outside = (b for b in living[1:] if home[b] != home[living[0]])
            beyond = next(outside, -1) if table.rack_of[leader] >= 0 else -1
            counted = index.get(following, -1), table.rack_of[leader], index.get(beyond, -1)
            table.add(Succession(leader, *counted), times)
        return table

    def copy(self) -> NextLeaders:
        table = NextLeaders(self.rack_of)
        table.after = [line.copy() for line in self.after]
        table.beyond = [line.copy() for line in self.beyond]
        return table

    def find(self, row: Sequence[int]) -> Succession:
        """Return where a new row counts. Its brokers are indices."""
        leader, rack = row[0], self.rack_of[row[0]]
        following = row[1] if len(row) > 1 else -1
        if rack < 0:
            return Succession(leader, following, -1, -1)
        outside = (b for b in row[1:] if self.rack_of[b] != rack)
        return Succession(leader, following, rack, next(outside, -1))

    def add(self, one: Succession, times: int = 1) -> None:
        """Count a row `times` times; -1 takes it away."""
        if one.following >= 0:
            self.after[one.leader][one.following] += times
        if one.beyond >= 0:
            self.beyond[one.rack][one.beyond] += times

    def refund(self, one: Succession) -> int:
        """Return by how much the price falls when a counted row is taken away."""
        price = 0
        if one.following >= 0:
            price = LEVEL_5 * (2 * self.after[one.leader][one.following] - 1)
        if one.beyond >= 0:
            price += 2 * self.beyond[one.rack][one.beyond] - 1
        return price

    def choose(
        self, leader: int, followers: Sequence[int], ranks: Sequence[int]
    ) -> tuple[int, Succession]:
        """Return the best order of a row's followers: by how much it raises the price, and where
        the row then counts. Ties go by rank.

        Behind a follower of the leader's own rack, the best one outside is the next.
        """
        after, rack = self.after[leader], self.rack_of[leader]
        if not followers:
            return 0, Succession(leader, -1, rack, -1)
        beyond = self.beyond[rack] if rack >= 0 else None
        outside = [b for b in followers if beyond and self.rack_of[b] != rack]
        last = min(outside, key=lambda b: (beyond[b], ranks[b])) if beyond and outside else -1
        best = (-1, -1, -1, -1)
        for b in followers:
            c = b if b in outside else last
            price = LEVEL_5 * (2 * after[b] + 1)
            if beyond and c >= 0:
                price += 2 * beyond[c] + 1
            if best[0] < 0 or (price, ranks[b]) < best[:2]:
                best = price, ranks[b], b, c
        return best[0], Succession(leader, best[2], rack, best[3])

    def price(self) -> int:
        """Return both levels in one integer."""
        brokers, racks = self.squares()
        return LEVEL_5 * brokers + racks

    def squares(self) -> tuple[int, int]:
        """Return the sums of squares of level 5 and of level 6."""
        both = (
            sum(n * n for n in chain.from_iterable(table)) for table in (self.after, self.beyond)
        )
        return next(both), next(both)

    def measure(self, bounds: NextLeaderBounds) -> tuple[LevelResult, ...]:
        """Return the results of both levels. Without racks to lose, all of level 6 is 0."""
        brokers, racks = self.squares()
        most_after = max(chain.from_iterable(self.after), default=0)
        most_beyond = max(chain.from_iterable(self.beyond), default=0)
        first, second = Level.NEXT_LEADERS, Level.RACK_NEXT_LEADERS
        return (
            LevelResult(first, brokers, bounds.brokers, most_after, bounds.most_from_broker),
            LevelResult(second, racks, bounds.racks, most_beyond, bounds.most_from_rack),
        )


def arrange(one: Succession, followers: Sequence[int], ranks: Sequence[int]) -> list[int]:
    """Return a row of indices that counts as `one` does; the other followers go by rank."""
    front = [b for b in dict.fromkeys((one.following, one.beyond)) if b >= 0]
    return [one.leader, *front, *sorted(set(followers).difference(front), key=ranks.__getitem__)]
