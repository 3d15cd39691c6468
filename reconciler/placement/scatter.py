"""Who inherits whose leaders: the second replica of a row leads when the first one's broker dies.

Counts do not see it: the most even placement may still let one broker inherit everything that
another led. So wherever realising counts leaves a free choice, it goes to the pair of leader and
heir that has been chosen least (the scatter width of Cidon et al., "Copysets", USENIX ATC 2013,
read for leaders). Fewer distinct replica sets would be safer when as many brokers as a row has
replicas die at once; one broker's death is the everyday case, and racks bound the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from reconciler.model import Assignment


class Heirs:
    """How often each broker comes second after each leader. Brokers are indices."""

    def __init__(self, brokers: int) -> None:
        self.after = [[0] * brokers for _ in range(brokers)]

    def count_existing(self, rows: Assignment, index: Mapping[int, int]) -> None:
        """Count rows that stay, as far as their first two brokers are eligible."""
        for row in rows:
            if len(row) > 1 and row[0] in index and row[1] in index:
                self.after[index[row[0]]][index[row[1]]] += 1

    def order(self, leader: int, followers: Iterable[int], ranks: Sequence[int]) -> list[int]:
        """Return a row: the leader, the follower that has been its heir least, then the others."""
        after = self.after[leader]
        row = sorted(followers, key=lambda b: (after[b], ranks[b], b))
        if row:
            after[row[0]] += 1
        return [leader, *row]
