"""Moves in flight on a cluster: one report, or one after the other until none is left."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reconciler.kafka.connection import Connection
    from reconciler.model.moves import MovesReading
    from reconciler.moves.progress import MovesReport

WINDOW_S = 30.0
"""The time over which rates are measured: a broker may send nothing for ten seconds."""


def read_moves(connection: Connection) -> MovesReport:
    """Report what is in flight, whoever started it. Nothing is written to the cluster.

    Errors: ClusterError if the cluster cannot be read, or the account lacks Describe on it.
    """
    return next(watch_moves(connection, 0))


def watch_moves(connection: Connection, every_s: float) -> Iterator[MovesReport]:
    """Report what is in flight, every `every_s` seconds, until nothing is.

    From the second report on, rates are measured over WINDOW_S, or since the report before if that
    is longer ago. Errors: as `read_moves`.
    """
    from reconciler.kafka.moves import MovesReader
    from reconciler.moves.progress import measure_moves

    reader = MovesReader(connection)
    kept: list[MovesReading] = []
    while True:
        now = reader.read_moves()
        while len(kept) > 1 and now.clock_s - kept[0].clock_s > WINDOW_S:
            kept.pop(0)
        yield measure_moves(now, kept[0] if kept else None)
        if not (now.reassignments or now.is_relocating):
            return
        kept.append(now)
        time.sleep(every_s)
