"""Maintenance of a lake: a check that every collection is complete, and fewer files in each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import Row

from reconciler.fleet.lake.attempts import AUDIT, HISTORY, PLAN, STATE, Published
from reconciler.fleet.lake.lake import Damage, Lake, compare_rows
from reconciler.fleet.lake.storage import PARQUET, MissingError
from reconciler.fleet.tables import TABLES, LakeTable

KINDS = (STATE, PLAN, AUDIT, HISTORY)
ROWS_PER_FILE = 1_000_000
AT_ONCE = 40
"""The attempts whose rows one job counts."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What a check counted, and what it missed."""

    collections: int
    attempts: int
    rows: int
    damaged: tuple[str, ...]


def check_lake(lake: Lake, announce: Callable[[str], None] = lambda _: None) -> Proof:
    """Count the rows of every attempt that counts, by table and cluster, against its publication.

    Errors: LakeError for a publication that cannot be read. Cost: reads one column of everything.
    """
    attempts = [one for what in KINDS for one in lake.list_attempts(what)]
    damaged: list[str] = []
    for first in range(0, len(attempts), AT_ONCE):
        announce(f"counting {first:,} of {len(attempts):,} attempts")
        of_these = attempts[first : first + AT_ONCE]
        for name in sorted({name for one in of_these for name in one.rows if name in TABLES}):
            holders = [one for one in of_these if name in one.rows]
            damaged += _check_table(lake, TABLES[name], holders)
    rows = sum(sum(of.values()) for one in attempts for of in one.rows.values())
    collections = len({one.collection for one in attempts})
    return Proof(collections, len(attempts), rows, tuple(sorted(damaged)))


def _check_table(lake: Lake, table: LakeTable, holders: Sequence[Published]) -> list[str]:
    """Return what is damaged of one table. One that is missing is looked for on its own."""
    try:
        counted = lake.storage.count([table], holders)[table.name]
    except MissingError as error:
        if len(holders) > 1:
            return [said for one in holders for said in _check_table(lake, table, [one])]
        return [f"{error} is missing: {table.name} of {holders[0].collection}"]
    damages: list[Damage] = []
    for one in holders:
        damages += compare_rows(table, one, counted)
    return [damage.what for damage in damages]


@dataclass(frozen=True, slots=True)
class Compacted:
    """How many files a compaction read, how many it wrote instead, and of how many attempts."""

    attempts: int
    files_before: int
    files_after: int


def compact_lake(lake: Lake, announce: Callable[[str], None] = lambda _: None) -> Compacted:
    """Merge the files of each attempt that has more than it needs; the rows stay the same.

    A merged attempt is a copy that takes the place of the first one, by its publication. The first
    one goes a day later, as everything that was replaced. Other formats merge their files
    themselves, and are not counted here. Errors: LakeError for damaged attempts, which stay.
    """
    if lake.form != PARQUET:
        lake.storage.maintain(expire=False)
        return Compacted(0, 0, 0)
    compacted = before = after = 0
    for what in KINDS:
        attempts = lake.list_attempts(what)
        for number, one in enumerate(attempts):
            announce(f"merging files of {what}, {number:,} of {len(attempts):,}")
            held = [TABLES[name] for name in sorted(one.rows)]
            counted = lake.storage.count(held, [one])
            files = sum(_count_files(counted[table.name]) for table in held)
            wanted = sum(_choose_files(one, table) for table in held if counted[table.name])
            if files > wanted:
                _copy(lake, one, held)
                compacted, before, after = compacted + 1, before + files, after + wanted
    return Compacted(compacted, before, after)


def _copy(lake: Lake, one: Published, held: Sequence[LakeTable]) -> None:
    """Publish an attempt's rows once more, in few files. Errors: LakeError if some are missing."""
    with lake.begin(one.collection, one.what) as draft:
        for table in held:
            rows = lake.read(table, one).coalesce(_choose_files(one, table))
            draft.store(table, rows.sortWithinPartitions("cluster"))
        draft.publish_copy(one)


def _count_files(counted: Sequence[Row]) -> int:
    return len({row["file"] for row in counted})


def _choose_files(one: Published, table: LakeTable) -> int:
    return max(1, -(-sum(one.rows[table.name].values()) // ROWS_PER_FILE))
