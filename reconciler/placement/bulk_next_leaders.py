"""Level 5 for thousands of rows at once: failover targets change, counts and leaders do not.

The same rule as in `next_leaders`, part by part instead of row by row. The measure:
docs/placement.md, "Failover targets".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reconciler.placement.bulk_rows import mix

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reconciler.placement.topic_groups import TopicGroup

    Ints = NDArray[np.int64]

_PARTS = 64
_FEW_TOPICS = 256
"""Where a group has fewer topics, their orders alone do not bring enough brokers together."""


def scatter_heirs(group: TopicGroup, rows: Ints) -> None:
    """Change followers and their order in place so that a leader has many failover targets."""
    if group.topics < _FEW_TOPICS:
        for slot in range(1, rows.shape[1]):
            _change_partners(group, rows, slot)
    spread_heirs(rows, len(group.demand.ids))


def _change_partners(group: TopicGroup, rows: Ints, slot: int) -> None:
    """Let pairs of rows of a topic exchange a follower of the same rack, drawn by hash.

    Sorted by topic and rack, then by hash, neighbours are the pairs. A row is in one pair only.
    """
    racks = np.array(group.demand.rule.rack_of)
    place = np.arange(len(rows)) // group.demand.count * (racks.max() + 1) + racks[rows[:, slot]]
    drawn = mix(np.arange(len(rows)).astype(np.uint64) + np.uint64(group.demand.ranks[0]), slot)
    line = np.lexsort((drawn, place))
    one, other = line[:-1:2], line[1::2]
    mine, theirs = rows[one, slot], rows[other, slot]
    fits = place[one] == place[other]
    fits &= (rows[other] != mine[:, None]).all(axis=1)
    fits &= (rows[one] != theirs[:, None]).all(axis=1)
    rows[one[fits], slot], rows[other[fits], slot] = theirs[fits], mine[fits]


def spread_heirs(rows: Ints, brokers: int) -> None:
    """Put the follower second that has been the leader's failover target least, part by part.

    The rows of a part see the counts of the parts before it, but not each other.
    """
    if rows.shape[1] < 3:
        return
    after = np.zeros(brokers * brokers, dtype=np.int64)
    size = max(1, -(-len(rows) // _PARTS))
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        pairs = part[:, :1] * brokers + part[:, 1:]
        least = after[pairs].argmin(axis=1)
        line = np.arange(len(part))
        heir = part[line, 1 + least]
        part[line, 1 + least] = part[:, 1]
        part[:, 1] = heir
        after += np.bincount(part[:, 0] * brokers + heir, minlength=len(after))
