"""Bytes copied by a balance by load, beside two greedy ways, as multiples of what is proven.

The ways are plain versions of rules that are read in the sources of other tools, not these tools:
Cruise Control's goals of resource distribution, and topicmappr's rebalance by free storage. All
three act outside 10 % of a broker's share and aim at 9 %. `make bench-loads` runs it;
`python benchmarks/loads.py 3` makes 3 instances of each kind.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count, islice
from statistics import harmonic_mean, median, quantiles

import numpy as np

from reconciler.placement.loads.check import check_loads
from reconciler.placement.loads.problem import Floats, Ints, LoadProblem
from reconciler.placement.loads.search import balance_loads
from reconciler.placement.loads.shares import bound_loads, share_load

SEEDS = 20
ACT, AIM = 0.10, 0.09
GIB = 2**30


@dataclass(frozen=True, slots=True)
class Kind:
    """Clusters of one kind: `joined` brokers are empty; `hot` ones are balanced by write as well.

    `racks` holds the brokers of each rack, `disks` the relative size of every other broker's disk,
    and `sigma` how unequal the sizes of partitions are.
    """

    name: str
    racks: tuple[int, ...] = (3, 3, 3)
    partitions: int = 400
    replication: int = 3
    joined: int = 0
    disks: int = 1
    sigma: float = 1.0
    hot: bool = False
    spread: int | None = None


KINDS = (
    Kind("uneven history"),
    Kind("brokers joined", (4, 4, 4), joined=3),
    Kind("disks 1 : 2", (4, 4, 4), disks=2),
    Kind("racks of 4, 3, 3", (4, 3, 3)),
    Kind("racks of 5, 2, 2", (5, 2, 2)),
    Kind("3 replicas, 4 racks", (3, 3, 3, 3)),
    Kind("no racks, one joined", (10,), joined=1),
    Kind("few large partitions", (2, 2, 2), partitions=40, sigma=0.7),
    Kind("very unequal sizes", sigma=1.8),
    Kind("topics stay as even", spread=0),
    Kind("disk and write", (4, 4, 4), hot=True),
)


@dataclass(frozen=True, slots=True)
class Instance:
    """A problem, and what the other ways know of it: capacity, and how far each share may go."""

    problem: LoadProblem
    capacity: Floats
    shares: Floats
    """(K, B)"""


def make_instance(kind: Kind, seed: int) -> Instance:
    """Draw a cluster: topics of some size, whose replicas old brokers got without a look."""
    draw = np.random.default_rng([seed, *kind.name.encode()])
    racks = np.repeat(np.arange(len(kind.racks)), kind.racks)
    # The last broker of each rack is the one that joined.
    last = [int(np.flatnonzero(racks == rack)[-1]) for rack in range(len(kind.racks))]
    old = np.setdiff1d(np.arange(len(racks)), last[: kind.joined])
    # History: some brokers were there earlier, so they got more.
    likely = draw.uniform(0.6, 1.4, len(racks))
    rows = np.array([_draw_row(draw, kind, racks, old, likely) for _ in range(kind.partitions)])
    topics = np.sort(draw.integers(0, kind.partitions // 8, kind.partitions))
    of_topic = draw.normal(0, kind.sigma, topics.max() + 1)
    own = draw.normal(0, kind.sigma / 2, kind.partitions)
    sizes = (20 * GIB * np.exp(of_topic[topics] + own)).astype(np.int64) + GIB
    writes = (2**20 * np.exp(draw.normal(0, 1, topics.max() + 1)[topics])).astype(np.int64) + 1
    loads = np.array([sizes, writes] if kind.hot else [sizes])
    capacity = np.where(np.arange(len(racks)) % 2, kind.disks, 1).astype(np.float64)
    able, movable = np.ones(len(racks), dtype=bool), np.ones(len(rows), dtype=bool)
    flat = racks if len(kind.racks) > 1 else np.zeros_like(racks)
    zero = np.zeros((len(loads), len(racks)), dtype=np.int64)
    held = np.full(len(rows), kind.replication)
    shares = np.array([share_load(each, held, flat, capacity, able, movable) for each in loads])
    problem = LoadProblem(
        rows=rows,
        loads=loads,
        fixed=zero,
        cost=sizes,
        low=zero,
        high=zero,
        scale=shares.mean(axis=1),
        racks=flat,
        receivers=able,
        movable=movable,
        topics=topics,
        spread=kind.spread,
    )
    bands = [
        bound_loads(*each, ACT, AIM)[:2] for each in zip(problem.add_up(rows), shares, strict=True)
    ]
    low, high = (np.array([band[side] for band in bands]) for side in (0, 1))
    return Instance(replace(problem, low=low, high=high), capacity, shares)


def _draw_row(
    draw: np.random.Generator, kind: Kind, racks: Ints, old: Ints, likely: Floats
) -> list[int]:
    row: list[int] = []
    chosen = draw.permutation(len(kind.racks))
    for number in range(kind.replication):
        able = old[racks[old] == chosen[number % len(chosen)]]
        able = np.setdiff1d(able, row)
        row.append(int(draw.choice(able, p=likely[able] / likely[able].sum())))
    return row


@dataclass(slots=True)
class Rows:
    """Rows that a greedy way changes, and the loads that follow."""

    instance: Instance
    rows: Ints = field(init=False)
    load: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.rows = self.instance.problem.rows.copy()
        self.load = self.instance.problem.add_up(self.rows).astype(np.float64)

    def list_held(self, broker: int) -> Ints:
        return np.flatnonzero((self.rows == broker).any(axis=1))

    def permits(self, part: int, source: int, target: int) -> bool:
        """Return whether the row stays sound: other brokers, and no rack with more than before."""
        problem, row = self.instance.problem, self.rows[part]
        if target in row:
            return False
        if problem.spread is not None and not self._keeps_topic(part, source, target):
            return False
        racks = problem.racks
        if not racks.any() or racks[source] == racks[target]:
            return True
        before = np.bincount(racks[problem.rows[part]], minlength=racks.max() + 1)
        after = np.bincount(racks[np.where(row == source, target, row)], minlength=len(before))
        return bool(after.max() <= before.max() and (after > 0).sum() >= (before > 0).sum())

    def _keeps_topic(self, part: int, source: int, target: int) -> bool:
        problem = self.instance.problem
        of_topic = problem.topics == problem.topics[part]
        was = np.bincount(problem.rows[of_topic].ravel(), minlength=problem.brokers)
        now = np.bincount(self.rows[of_topic].ravel(), minlength=problem.brokers)
        mean = was.sum() / problem.brokers
        least, most = min(int(mean), was.min()), max(-int(-mean // 1), was.max())
        return bool(now[source] > least and now[target] < most)

    def move(self, part: int, source: int, target: int) -> None:
        self.rows[part] = np.where(self.rows[part] == source, target, self.rows[part])
        amounts = self.instance.problem.loads[:, part]
        self.load[:, source] -= amounts
        self.load[:, target] += amounts


def balance_by_goals(instance: Instance) -> Ints:
    """Balance as Cruise Control's ResourceDistributionGoal does: one pass over brokers for each.

    The band is around the mean use of the cluster. A broker above it moves replicas out, the
    largest first, to the broker with the least use; then it exchanges some. One below it takes
    replicas in. No move may take a broker out of the band of this load or of one before.
    """
    state, capacity = Rows(instance), instance.capacity
    for k in range(len(state.load)):
        mean = state.load.sum(axis=1)[:, None] * capacity / capacity.sum()
        low, high = mean * (1 - AIM), mean * (1 + AIM)
        for broker in range(len(capacity)):
            if state.load[k, broker] > high[k, broker]:
                _move_out(state, k, broker, low, high)
            if state.load[k, broker] > high[k, broker]:
                _swap_out(state, k, broker, low, high)
        for broker in range(len(capacity)):
            if state.load[k, broker] < low[k, broker]:
                _move_in(state, k, broker, low, high)
    return state.rows


def _keeps_bands(
    state: Rows, k: int, part: int, source: int, target: int, low: Floats, high: Floats
) -> bool:
    amounts = state.instance.problem.loads[:, part]
    if state.load[k, target] + amounts[k] > high[k, target]:
        return False
    if state.load[k, source] - amounts[k] < low[k, source]:
        return False
    for other in range(k):
        above = state.load[other, target] + amounts[other] > high[other, target]
        below = state.load[other, source] - amounts[other] < low[other, source]
        if above or below:
            return False
    return state.permits(part, source, target)


def _move_out(state: Rows, k: int, broker: int, low: Floats, high: Floats) -> None:
    sizes, capacity = state.instance.problem.loads[k], state.instance.capacity
    for part in sorted(state.list_held(broker).tolist(), key=lambda each: -sizes[each]):
        if state.load[k, broker] <= high[k, broker]:
            return
        for target in np.argsort(state.load[k] / capacity, kind="stable").tolist():
            if _keeps_bands(state, k, part, broker, target, low, high):
                state.move(part, broker, target)
                break


def _swap_out(state: Rows, k: int, broker: int, low: Floats, high: Floats) -> None:
    sizes, capacity = state.instance.problem.loads[k], state.instance.capacity
    for part in sorted(state.list_held(broker).tolist(), key=lambda each: -sizes[each]):
        if state.load[k, broker] <= high[k, broker]:
            return
        _swap(state, k, part, broker, np.argsort(state.load[k] / capacity, kind="stable"), high)


def _swap(state: Rows, k: int, part: int, broker: int, targets: Ints, high: Floats) -> None:
    sizes = state.instance.problem.loads[k]
    for target in targets.tolist():
        for other in sorted(state.list_held(target).tolist(), key=lambda each: sizes[each]):
            gain = sizes[part] - sizes[other]
            if gain <= 0 or state.load[k, target] + gain > high[k, target]:
                break
            if broker in state.rows[other] or not state.permits(part, broker, target):
                continue
            if state.permits(other, target, broker):
                state.move(part, broker, target)
                state.move(other, target, broker)
                return


def _move_in(state: Rows, k: int, broker: int, low: Floats, high: Floats) -> None:
    sizes, capacity = state.instance.problem.loads[k], state.instance.capacity
    for source in np.argsort(-state.load[k] / capacity, kind="stable").tolist():
        for part in sorted(state.list_held(source).tolist(), key=lambda each: -sizes[each]):
            if state.load[k, broker] >= low[k, broker]:
                return
            if _keeps_bands(state, k, part, source, broker, low, high):
                state.move(part, source, broker)


def balance_by_free_storage(instance: Instance) -> Ints:
    """Balance as topicmappr's rebalance does: the tolerance of 98 with the smallest range of free.

    Brokers with less than 80 % of the harmonic mean of free storage give their 30 largest
    partitions of 512 MiB or more, one a pass, each to the other broker with the most free storage
    in a rack that has no other replica. Neither may pass the mean by more than the tolerance.
    """
    if len(instance.problem.loads) > 1:
        return instance.problem.rows  # it knows no rates
    best, least = instance.problem.rows, np.inf
    for step in range(1, 99):
        state = Rows(instance)
        # Disks are as large as if 70 % of the cluster's were used.
        total = state.load[0].sum() / 0.7 * instance.capacity / instance.capacity.sum()
        _offload(state, np.maximum(total, state.load[0] * 1.05), step / 100)
        free = total - state.load[0]
        if free.max() - free.min() < least:
            best, least = state.rows, free.max() - free.min()
    return best


def _offload(state: Rows, total: Floats, tolerance: float) -> None:
    free = total - state.load[0]
    sources = np.flatnonzero(free < 0.8 * harmonic_mean(free.tolist())).tolist()
    exhausted = 0
    while exhausted < len(sources):
        for source in sources:
            exhausted += not _offload_one(state, total, source, sources, tolerance)


def _offload_one(
    state: Rows, total: Floats, source: int, sources: list[int], tolerance: float
) -> bool:
    sizes, racks = state.instance.problem.cost, state.instance.problem.racks
    free = total - state.load[0]
    mean = float(free.mean())
    held = sorted(state.list_held(source).tolist(), key=lambda each: -sizes[each])
    for part in [each for each in held if sizes[each] >= GIB / 2][:30]:
        others = [broker for broker in state.rows[part].tolist() if broker != source]
        able = [
            broker
            for broker in np.argsort(-free, kind="stable").tolist()
            if broker not in sources
            and broker not in others
            and not (racks.any() and racks[broker] in racks[others])
            and state.permits(part, source, broker)
        ]
        if not able or free[source] + sizes[part] > mean * (1 + tolerance):
            continue
        if free[able[0]] - sizes[part] >= mean * (1 - tolerance):
            state.move(part, source, able[0])
            return True
    return False


def balance_by_search(instance: Instance) -> Ints:
    return balance_loads(instance.problem).rows


WAYS: dict[str, Callable[[Instance], Ints]] = {
    "reconciler": balance_by_search,
    "goals in passes": balance_by_goals,
    "free storage": balance_by_free_storage,
}


def measure(kind: Kind, seeds: int) -> Iterator[str]:
    """Yield the cells of a kind: for each way, in how many the bands are reached, and the bytes."""
    instances = list(islice(_list_uneven(kind), seeds))
    found = [balance_loads(instance.problem) for instance in instances]
    for name, balance in WAYS.items():
        ratios, reached = [], 0
        for instance, ours in zip(instances, found, strict=True):
            problem = instance.problem
            rows = ours.rows if name == "reconciler" else balance(instance)
            if violations := check_loads(problem, rows):
                raise SystemExit(f"{kind.name}, {name}: {violations[0]}")
            apart = np.abs(problem.add_up(rows) - instance.shares) > ACT * instance.shares + 1
            if not apart.any():
                reached += 1
                ratios.append(problem.measure_cost(rows) / max(ours.least_cost, 1))
        if len(ratios) > 1:
            yield f"{reached}/{seeds}: {median(ratios):.3f}, {quantiles(ratios, n=20)[-1]:.3f}"
        else:
            yield f"{reached}/{seeds}"


def _list_uneven(kind: Kind) -> Iterator[Instance]:
    """Yield instances that have something to balance."""
    for seed in count():
        instance = make_instance(kind, seed)
        problem = instance.problem
        if problem.measure_outside(problem.add_up(problem.rows)).any():
            yield instance


def main(seeds: int) -> None:
    """Print the table of docs/explanation/placement-moves.md."""
    print("| clusters | " + " | ".join(WAYS) + " | CPU s |")
    print("|---" * (len(WAYS) + 2) + "|")
    for kind in KINDS:
        start = time.process_time()
        cells = list(measure(kind, seeds))
        cpu = (time.process_time() - start) / seeds
        print(f"| {kind.name} | {' | '.join(cells)} | {cpu:.1f} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS)
