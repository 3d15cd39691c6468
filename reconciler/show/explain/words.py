"""The terms and numbers that text and picture share."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from reconciler.errors import escape_unprintable
from reconciler.model.moves import LoadKind
from reconciler.show.explain.matrix import Block, Column, Load, Matrix, Rack, Shift
from reconciler.show.explain.odds import Odds, Risked
from reconciler.units import AMOUNTS, count

Carrier = Column | Rack


class Measure(NamedTuple):
    """A number that brokers and racks have before and after the plan."""

    noun: str
    of: Callable[[Carrier], Shift]
    pick: Callable[[Load], int]
    say: Callable[[int], str] = "{:,}".format

    def before(self, carrier: Carrier) -> int:
        """Return the number before the plan."""
        return self.pick(self.of(carrier).before)

    def after(self, carrier: Carrier) -> int:
        """Return the number after the plan."""
        return self.pick(self.of(carrier).after)

    def shift(self, carrier: Carrier, *, new: bool = False) -> str:
        """Format both, or one if they are equal or the entire topic is new."""
        before, after = self.say(self.before(carrier)), self.say(self.after(carrier))
        return after if new or before == after else f"{before} → {after}"


def _topic(carrier: Carrier) -> Shift:
    return carrier.topic


def _cluster(carrier: Carrier) -> Shift:
    return carrier.cluster


def _weight(carrier: Carrier) -> Shift:
    return carrier.weight


def _leaders(load: Load) -> int:
    return load.leaders


def _replicas(load: Load) -> int:
    return load.replicas


TOPIC = (Measure("leaders", _topic, _leaders), Measure("replicas", _topic, _replicas))
CLUSTER = (Measure("leaders", _cluster, _leaders), Measure("replicas", _cluster, _replicas))


def weighed_by(by: LoadKind) -> tuple[Measure, ...]:
    """Return the measures of all topics by an amount, of what bears it."""
    say = AMOUNTS[by]
    return (
        *([Measure("leaders", _weight, _leaders, say)] if by.is_on_leaders else []),
        *([Measure("replicas", _weight, _replicas, say)] if by.is_on_replicas else []),
    )


def headline(matrix: Matrix) -> tuple[str, str]:
    """Return the topic, and its partitions and replication in a few words."""
    total, new = len(matrix.rows), len(matrix.rows) - matrix.first_new
    if new and matrix.first_new:
        partitions = f"{matrix.first_new:,} → {total:,} partitions"
    else:
        partitions = count(total, "new partition" if new else "partition")
    factors = sorted({len(row) for row in matrix.rows})
    replicas = f" × {factors[0]}..{factors[-1]} replicas" if factors else ""
    if len(factors) == 1:
        replicas = f" × {count(factors[0], 'replica')}"
    return matrix.topic, partitions + replicas


def rack_name(rack: Rack) -> str:
    """Name a rack, or return `no rack`."""
    return "no rack" if rack.name is None else escape_unprintable(rack.name)


def has_racks(matrix: Matrix) -> bool:
    """Return whether the cluster has racks."""
    return len(matrix.racks) > 1 or any(rack.name is not None for rack in matrix.racks)


def broker_name(column: Column) -> str:
    """Name a broker, in brackets if it gets no new replicas."""
    return f"({column.broker})" if column.idle else str(column.broker)


def block_name(block: Block) -> str:
    """Name a block by its partitions."""
    return f"{block.first}" if len(block) == 1 else f"{block.first}–{block.last}"


def compare(matrix: Matrix, odds: Odds) -> tuple[tuple[str, int, Risked], ...]:
    """Return leaders and replicas: the planned max − min, and that of Kafka's placement."""
    after = matrix.after
    return (
        ("leaders", after.leaders.skew, odds.leaders),
        ("replicas", after.replicas.skew, odds.replicas),
    )
