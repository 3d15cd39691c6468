"""Levels 1 to 4 of one topic at once, exactly: a minimum-cost flow with convex prices.

Leaders flow from L and followers from F into brokers, from brokers into racks, from racks to the
sink T within the bounds of the rack rule. The price of a leader is paid on the way in, the price of
a replica on the way from broker to rack. Both families of constraints are laminar, so the matrix is
totally unimodular and the optimum is integer; convex prices keep that (Ahuja, Magnanti, Orlin,
"Network Flows", ch. 14). One integer holds the prices of all levels, a higher level above all that
the lower ones can sum up to.

The start is water-filling. Then cycles of negative price are cancelled until there are none, which
is the optimum (Klein 1967). Every path between the hubs L, F, T and the racks crosses one broker,
so Bellman-Ford only needs these hubs, with the cheapest crossing between each two of them.

Network and proof: docs/explanation/placement-proofs.md, "One topic is a flow".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from reconciler.placement.counts import ClusterLoad, Counts, Demand
from reconciler.placement.cycles import find_negative_cycle
from reconciler.placement.level_fill import Basin, Region, fill

Price = Callable[[int, int], int]

_LEADS, _FOLLOWERS, _SINK, _RACKS = 0, 1, 2, 3
"""Hubs by number; rack j is hub `_RACKS + j`."""


class _Crossing(NamedTuple):
    """The way from one hub to another: its price, and what it adds to which broker."""

    source: int
    target: int
    price: int
    broker: int
    leads: int
    replicas: int


def place_topic(demand: Demand, load: ClusterLoad) -> Counts:
    """Return the best counts of one topic on top of `load`, which does not include them.

    Cost: O(brokers) a cycle, and few cycles.
    """
    n = len(demand.ids)
    everyone = [Region(range(n), 0, demand.count)]
    # Ties of level 1 go where levels 2 and 3 want them: the closer the start, the fewer cycles.
    ranks = list(zip(demand.replicas, load.leaders, demand.ranks, strict=True))
    leaders = fill(
        Basin(demand.leaders, [demand.count] * n, ranks, [1] * n), everyone, demand.count
    )
    flow = _Flow(demand, load, Counts(leaders, surround_leaders(demand, load, leaders)))
    while cycle := flow.find_negative_cycle():
        flow.push(cycle)
    return flow.counts


def surround_leaders(demand: Demand, load: ClusterLoad, leaders: Sequence[int]) -> list[int]:
    """Return the most even replicas of the topic for given leaders: exact on that level."""
    heights = [e + n for e, n in zip(demand.replicas, leaders, strict=True)]
    rooms = [demand.count - n for n in leaders]
    regions = []
    for rack, (low, high) in zip(demand.rule.racks, demand.rack_bounds, strict=True):
        led = sum(leaders[b] for b in rack)
        regions.append(Region(rack, max(low - led, 0), high - led))
    ranks = list(zip(load.replicas, demand.ranks, strict=True))
    basin = Basin(heights, rooms, ranks, [1] * len(heights))
    followers = fill(basin, regions, demand.copies - demand.count)
    return [n + f for n, f in zip(leaders, followers, strict=True)]


class _Prices:
    """What the next lead or replica on a broker costs, the four levels in one integer."""

    def __init__(self, demand: Demand, load: ClusterLoad) -> None:
        self._leaders, self._replicas = demand.leaders, demand.replicas
        self._led, self._held, self._scales = load.leaders, load.replicas, load.scales
        self._leader_weight, self._weight = demand.weights
        # Bounds of what all new units together can cost on a level. A level is shifted by the bits
        # of all lower ones, and by two more, because a cycle removes units as well as adding some.
        topic_replicas = demand.copies * 2 * (max(demand.replicas) + demand.count + 1)
        cluster_leaders, cluster_replicas = (
            2 * max(load.scales) * w * units * (max(loads) + w * (demand.count + 1))
            for w, units, loads in (
                (demand.leader_weight, demand.count, load.leaders),
                (demand.weight, demand.copies, load.replicas),
            )
        )
        self._cl = cluster_replicas.bit_length() + 2
        self._r = self._cl + cluster_leaders.bit_length() + 2
        self._l = self._r + topic_replicas.bit_length() + 2

    def lead(self, b: int, n: int) -> int:
        """Price of the lead that follows `n` new ones on broker b."""
        w = self._leader_weight
        cluster = self._scales[b] * w * (2 * (self._led[b] + w * n) + w)
        return ((2 * (self._leaders[b] + n) + 1) << self._l) + (cluster << self._cl)

    def replica(self, b: int, n: int) -> int:
        """Price of the replica that follows `n` new ones on broker b."""
        w = self._weight
        cluster = self._scales[b] * w * (2 * (self._held[b] + w * n) + w)
        return ((2 * (self._replicas[b] + n) + 1) << self._r) + cluster


class _Flow:
    """A feasible flow, and the cheapest crossings of its residual network, kept by rack."""

    def __init__(self, demand: Demand, load: ClusterLoad, counts: Counts) -> None:
        self.counts = counts
        self._ask = demand
        self._prices = prices = _Prices(demand, load)
        leaders, replicas = counts.leaders, counts.replicas
        self._lead = [prices.lead(b, n) for b, n in enumerate(leaders)]
        self._unlead = [-prices.lead(b, n - 1) for b, n in enumerate(leaders)]
        self._add = [prices.replica(b, n) for b, n in enumerate(replicas)]
        self._drop = [-prices.replica(b, n - 1) for b, n in enumerate(replicas)]
        self._held = [sum(replicas[b] for b in rack) for rack in demand.rule.racks]
        self._crossings = [list(self._cross(j)) for j in range(len(demand.rule.racks))]

    def find_negative_cycle(self) -> list[_Crossing] | None:
        """Find a cycle of negative price."""
        crossings = [crossing for rack in self._crossings for crossing in rack]
        return find_negative_cycle(_RACKS + len(self._crossings), crossings)

    def push(self, cycle: Iterable[_Crossing]) -> None:
        """Send units round the cycle: the largest power of two whose last unit still pays.

        Prices are convex, so if the last unit pays, all units before it do.
        """
        leads: Counter[int] = Counter()
        replicas: Counter[int] = Counter()
        for crossing in cycle:
            if crossing.broker >= 0:
                leads[crossing.broker] += crossing.leads
                replicas[crossing.broker] += crossing.replicas
        units = 1
        while self._pays(leads, replicas, 2 * units):
            units *= 2
        counts, prices = self.counts, self._prices
        for b in replicas:
            counts.leaders[b] = n = counts.leaders[b] + units * leads[b]
            counts.replicas[b] = m = counts.replicas[b] + units * replicas[b]
            self._lead[b], self._unlead[b] = prices.lead(b, n), -prices.lead(b, n - 1)
            self._add[b], self._drop[b] = prices.replica(b, m), -prices.replica(b, m - 1)
        for j in {self._ask.rule.rack_of[b] for b in replicas}:
            rack = self._ask.rule.racks[j]
            self._held[j] = sum(self.counts.replicas[b] for b in rack)
            self._crossings[j] = list(self._cross(j))

    def _pays(self, leads: Counter[int], replicas: Counter[int], units: int) -> bool:
        price, racks = 0, Counter[int]()
        for b, dx in replicas.items():
            dl, n, m = leads[b], self.counts.leaders[b], self.counts.replicas[b]
            led, held = n + units * dl, m + units * dx
            if not 0 <= led <= held <= self._ask.count:
                return False
            racks[self._ask.rule.rack_of[b]] += units * dx
            price += _last_unit(self._prices.lead, b, n, dl, units)
            price += _last_unit(self._prices.replica, b, m, dx, units)
        bounds = self._ask.rack_bounds
        fits = all(bounds[j][0] <= self._held[j] + d <= bounds[j][1] for j, d in racks.items())
        return fits and price < 0

    def _cross(self, j: int) -> Iterator[_Crossing]:
        """Yield the cheapest crossing between each two hubs over the brokers of rack j."""
        hub = _RACKS + j
        low, high = self._ask.rack_bounds[j]
        if self._held[j] < high:
            yield _Crossing(hub, _SINK, 0, -1, 0, 0)
        if self._held[j] > low:
            yield _Crossing(_SINK, hub, 0, -1, 0, 0)
        leaders, replicas, rack = self.counts.leaders, self.counts.replicas, self._ask.rule.racks[j]
        roomy = [b for b in rack if replicas[b] < self._ask.count]
        leading = [b for b in rack if leaders[b]]
        following = [b for b in rack if replicas[b] > leaders[b]]
        lead, unlead, add, drop = self._lead, self._unlead, self._add, self._drop
        if roomy:
            price, b = min((lead[b] + add[b], b) for b in roomy)
            yield _Crossing(_LEADS, hub, price, b, 1, 1)
            price, b = min((add[b], b) for b in roomy)
            yield _Crossing(_FOLLOWERS, hub, price, b, 0, 1)
        if leading:
            price, b = min((unlead[b] + drop[b], b) for b in leading)
            yield _Crossing(hub, _LEADS, price, b, -1, -1)
            price, b = min((unlead[b], b) for b in leading)
            yield _Crossing(_FOLLOWERS, _LEADS, price, b, -1, 0)
        if following:
            price, b = min((drop[b], b) for b in following)
            yield _Crossing(hub, _FOLLOWERS, price, b, 0, -1)
            price, b = min((lead[b], b) for b in following)
            yield _Crossing(_LEADS, _FOLLOWERS, price, b, 1, 0)


def _last_unit(price: Price, b: int, start: int, step: int, units: int) -> int:
    """Return the price of going from `units - 1` to `units` steps away from `start`."""
    if step == 0:
        return 0
    near, far = start + (units - 1) * step, start + units * step
    if step > 0:
        return sum(price(b, n) for n in range(near, far))
    return -sum(price(b, n) for n in range(far, near))
