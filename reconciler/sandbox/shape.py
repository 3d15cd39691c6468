"""The shape of a cluster: which broker ids it has, and in which racks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from reconciler.errors import SandboxError
from reconciler.model import Broker

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
    """Read broker ids and racks from a cluster's snapshot; everything else in it is ignored.

    Errors: SandboxError naming what is wrong with the file.
    """
    try:
        snapshot = json.loads(file.read_bytes())
    except OSError as error:
        raise SandboxError(f"cannot read {file}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise SandboxError(f"{file} is not JSON: {error}; {_EXPECTED}") from error
    entries = snapshot.get("brokers") if isinstance(snapshot, dict) else None
    if not isinstance(entries, list) or not entries:
        raise SandboxError(f"{file} names no brokers; {_EXPECTED}")
    brokers = tuple(_read_broker(entry, file, number) for number, entry in enumerate(entries))
    _refuse_duplicates(brokers, file)
    return tuple(sorted(brokers))


_EXPECTED = 'expected {"brokers": [{"id": 1, "rack": "a"}, …]}, as `reconciler snapshot` writes'


def _read_broker(entry: Any, file: Path, number: int) -> Broker:
    where = f"{file}: brokers[{number}]"
    if not isinstance(entry, dict):
        raise SandboxError(f"{where} is no object; {_EXPECTED}")
    broker_id, rack = entry.get("id"), entry.get("rack")
    if type(broker_id) is not int or not 0 <= broker_id <= LARGEST_ID:
        raise SandboxError(f"{where}.id is {broker_id!r}; broker ids are whole numbers from 0")
    if rack is not None and (not isinstance(rack, str) or not rack.isprintable() or not rack):
        raise SandboxError(f"{where}.rack is {rack!r}; a rack is a name, or null for none")
    return Broker(broker_id, rack)


def _refuse_duplicates(brokers: tuple[Broker, ...], file: Path) -> None:
    seen: set[int] = set()
    for broker in brokers:
        if broker.id in seen:
            raise SandboxError(f"{file} names broker {broker.id} twice; ids are unique")
        seen.add(broker.id)


def describe_shape(brokers: Sequence[Broker]) -> str:
    """Say in words how large a cluster is, such as "6 brokers in 3 racks"."""
    racks = len({broker.rack for broker in brokers} - {None})
    where = f"in {_count(racks, 'rack')}" if racks else "without racks"
    return f"{_count(len(brokers), 'broker')} {where}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def choose_controller_id(brokers: Sequence[Broker]) -> int:
    """Return an id that no broker has, for the controller that stands apart from them."""
    taken = {broker.id for broker in brokers}
    return next(n for n in range(FIRST_CONTROLLER_ID, LARGEST_ID) if n not in taken)
