"""Level 5: the second replica of a row becomes leader when the broker of the first one dies.

Levels 1 to 4 do not see it: with the most even counts, one broker may still take over all leaders
of another. So every free choice goes to the pair of leader and failover target that was chosen
least often (the scatter width of Cidon et al., "Copysets", USENIX ATC 2013, applied to leaders).

An example, and the cost in different replica sets: docs/placement.md, "Failover targets".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from reconciler.model import Assignment


class NextLeaders:
    """How often each broker is the failover target of each leader. Brokers are indices."""

    def __init__(self, brokers: int) -> None:
        self.after = [[0] * brokers for _ in range(brokers)]

    def count_existing(self, rows: Assignment, index: Mapping[int, int]) -> None:
        """Count rows that stay, as far as their first two brokers are eligible."""
        for row in rows:
            if len(row) > 1 and row[0] in index and row[1] in index:
                self.after[index[row[0]]][index[row[1]]] += 1

    def order(self, leader: int, followers: Iterable[int], ranks: Sequence[int]) -> list[int]:
        """Return a row: the leader, then followers, the least frequent failover target first."""
        after = self.after[leader]
        row = sorted(followers, key=lambda b: (after[b], ranks[b], b))
        if row:
            after[row[0]] += 1
        return [leader, *row]
