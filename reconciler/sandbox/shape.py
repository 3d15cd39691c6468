"""The shape of a cluster: which broker ids it has, and in which racks."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from reconciler.errors import SandboxError
from reconciler.model import Broker
from reconciler.snapshot import read_snapshot
from reconciler.units import count

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

LARGEST_ID = 2**31 - 1
FIRST_CONTROLLER_ID = 3000


def spread_brokers(brokers: int, racks: int) -> tuple[Broker, ...]:
    """Return brokers 1..n, dealt in turn to rack0, rack1 and so on.

    Errors: SandboxError for counts that make no cluster.
    """
    if not 1 <= racks <= brokers:
        raise SandboxError(
            f"{brokers} brokers cannot fill {racks} racks; take 1 broker or more, and 1 rack or"
            " more but not more racks than brokers"
        )
    return tuple(Broker(n + 1, f"rack{n % racks}") for n in range(brokers))


def read_shape(file: Path) -> tuple[Broker, ...]:
    """Read broker ids and racks from a cluster's snapshot.

    Errors: SnapshotError naming everything that is wrong with the file.
    """
    return read_snapshot(file).brokers


def describe_shape(brokers: Sequence[Broker], controllers: int = 1) -> str:
    """Say in words how large a cluster is, such as "6 brokers in 3 racks"."""
    racks = len({broker.rack for broker in brokers} - {None})
    where = f"in {count(racks, 'rack')}" if racks else "without racks"
    quorum = f", {controllers} controllers" if controllers > 1 else ""
    return f"{count(len(brokers), 'broker')} {where}{quorum}"


def choose_controller_ids(brokers: Sequence[Broker], number: int = 1) -> tuple[int, ...]:
    """Return ids that no broker has, for the controllers: they are nodes of their own."""
    taken = {broker.id for broker in brokers}
    free = (n for n in range(FIRST_CONTROLLER_ID, LARGEST_ID) if n not in taken)
    return tuple(islice(free, number))
