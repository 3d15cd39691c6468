"""The copies of a record in the logs of brokers, and with which producer epoch each was written.

Brokers drop a batch that they have already, by its producer, epoch and sequence. Copies of one
epoch are a fault of the brokers. Copies of two were sent twice by the client, which may begin an
epoch after an error although a batch has arrived (confluentinc/librdkafka#4953).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kafka.record import MemoryRecords


class Copy(NamedTuple):
    """A record in a log: its offset, and what its batch says of the client."""

    offset: int
    producer: int
    epoch: int
    sequence: int


def list_copies(directory: Path, partition: str, key: bytes, number: int) -> list[Copy]:
    """List what any broker below a directory has of a numbered record, such as of orders-0."""
    copies = set[Copy]()
    for log in directory.rglob(f"{partition}/*.log"):
        copies |= {copy for n, copy in _read(log, key) if n == number}
    return sorted(copies)


def _read(log: Path, key: bytes) -> Iterator[tuple[int, Copy]]:
    """Yield the records with a key, by their numbers. A file that grows may end in half a batch."""
    records = MemoryRecords(log.read_bytes())
    while (batch := records.next_batch()) is not None:
        for record in batch:
            if record.key == key:
                (number,) = struct.unpack(">Q", record.value[:8])
                sequence = batch.base_sequence + record.offset - batch.base_offset
                client = (batch.producer_id, batch.producer_epoch, sequence)
                yield number, Copy(record.offset, *client)


def describe_copies(directory: Path, partition: str, key: bytes, number: int) -> str:
    """Say who wrote each copy of a record."""
    copies = [
        f"offset {copy.offset} by producer {copy.producer}, epoch {copy.epoch}, "
        f"sequence {copy.sequence}"
        for copy in list_copies(directory, partition, key, number)
    ]
    return f"{partition}: {number} is at {'; '.join(copies)}"
