"""What each broker should hold under the rack rule, and the band around it.

The mean of all brokers is not reachable where racks differ in size: three replicas in three racks
put a third of everything into each.

The argument: docs/explanation/placement-moves.md, "Balance by load".
"""

from __future__ import annotations

import numpy as np

from reconciler.placement.loads.problem import Flags, Floats, Ints

_HALVINGS = 200


def share_load(
    weights: Ints, replicas: Ints, racks: Ints, capacity: Floats, able: Flags, racked: Flags
) -> Floats:
    """Return the share (B) of each broker of the load of all replicas, by capacity in its rack.

    In: the load of one replica (P) of each partition and its number of replicas (P), the rack of
    each broker (B), its capacity (B), whether it may hold any (B), and whether the rack rule counts
    for a partition (P). A rack gets at least and at most what the rule gives it of every partition;
    between these, all racks are filled to one level.
    """
    names, of_broker = np.unique(racks, return_inverse=True)
    sizes = np.bincount(of_broker[able], minlength=len(names)).astype(np.int64)
    room = np.zeros(len(names))
    np.add.at(room, of_broker[able], capacity[able])
    least, most = np.zeros(len(names)), np.zeros(len(names))
    for count in np.unique(replicas):
        chosen = replicas == count
        spread = float(weights[chosen & racked].sum())
        fewest, at_most = _bound_racks(sizes, int(count))
        least += spread * fewest
        most += spread * at_most
        # Without the rule, a rack may hold as many replicas as it has brokers.
        free = float(weights[chosen & ~racked].sum())
        rest = np.maximum(count - (sizes.sum() - sizes), 0)
        least += free * np.minimum(rest, sizes)
        most += free * np.minimum(sizes, count)
    total = float((weights * replicas).sum())
    filled = _fill_racks(room, least, most, total)
    shares = np.zeros(len(racks))
    inside = np.divide(filled, room, out=np.zeros_like(filled), where=room > 0)
    shares[able] = (inside[of_broker] * capacity)[able]
    return shares


def _bound_racks(sizes: Ints, replicas: int) -> tuple[Ints, Ints]:
    """Return the fewest and most replicas of a row in each rack, if they are spread evenly."""
    held = np.zeros_like(sizes)
    level = 0
    while held.sum() < replicas and (held < sizes).any():
        level += 1
        held = np.minimum(sizes, level)
    # The last level is full only if the replicas fill it.
    full = np.minimum(sizes, level - 1) if held.sum() > replicas else held
    return full, held


def _fill_racks(room: Floats, least: Floats, most: Floats, total: float) -> Floats:
    """Return what each rack gets: one level by capacity, but within its bounds."""
    low, high = 0.0, float((most / np.where(room > 0, room, 1.0)).max(initial=0.0)) + 1.0
    for _ in range(_HALVINGS):
        level = (low + high) / 2
        if np.clip(level * room, least, most).sum() < total:
            low = level
        else:
            high = level
    return np.clip(high * room, least, most)


def bound_loads(
    load: Ints, shares: Floats, threshold: float, aim: float
) -> tuple[Ints, Ints, Flags]:
    """Return the band (low and high, B each) of a load (B), and which brokers are outside.

    Act outside `threshold`, come within `aim`; both are parts of a share. A broker outside is to
    come within the aim, and one inside to get no further away than the aim, or than it is now. So
    nothing moves if no broker is outside, and a second run has nothing to do.
    """
    low, high = np.ceil(shares * (1 - aim)), np.floor(shares * (1 + aim))
    # A share that is no whole number is met by both neighbours.
    low, high = np.minimum(low, np.floor(shares)), np.maximum(high, np.ceil(shares))
    floor, ceiling = surround_shares(shares, threshold)
    outside = (load < floor) | (load > ceiling)
    low = np.where(outside, low, np.minimum(low, load))
    high = np.where(outside, high, np.maximum(high, load))
    return low.astype(np.int64), high.astype(np.int64), outside


def surround_shares(shares: Floats, threshold: float) -> tuple[Ints, Ints]:
    """Return the least and the most (B each) that a broker may hold before a balance acts."""
    floor, ceiling = np.floor(shares * (1 - threshold)), np.ceil(shares * (1 + threshold))
    return floor.astype(np.int64), ceiling.astype(np.int64)
