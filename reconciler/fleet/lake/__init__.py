"""Where collections are kept: tables, and the list of what was published in them.

    partitions/attempt=20261121T030000Z-state-1f0c9a2e/part-*.parquet
    collections/20261121T030000Z-state-1f0c9a2e.json

A job that collects, plans or audits makes one attempt. An attempt writes into directories of its
own, so two jobs never share one. Its last act is to write one file into `collections`, which says
how many rows of each cluster each table has. This publishes the attempt: nothing is read before,
and every read counts the rows again. A collection that is made twice has two attempts; the newest
one counts. docs/decisions/0009 says why, and what holds for other stores.

Belongs here: names of attempts, publications, locks, and how tables are written and read, and
the care of all this: what a lake holds, whether it is whole, and what may go.
Forbidden here: what the tables mean.
"""

from reconciler.fleet.lake.attempts import (
    AUDIT,
    HISTORY,
    PLAN,
    STATE,
    Attempt,
    Published,
    decode_commit,
    encode_commit,
    find_ahead,
    read_time,
    start_attempt,
)
from reconciler.fleet.lake.care import Compacted, Proof, check_lake, compact_lake
from reconciler.fleet.lake.inventory import (
    Holding,
    Keeping,
    choose_kept,
    find_chain,
    find_last_readings,
    take_inventory,
)
from reconciler.fleet.lake.lake import LAKE_ROWS, Draft, Lake, remove_collections
from reconciler.fleet.lake.storage import OF_A_CATALOGUE, PARQUET
from reconciler.fleet.lake.stores import LocalStore, Store, is_path

__all__ = [
    "AUDIT",
    "HISTORY",
    "LAKE_ROWS",
    "OF_A_CATALOGUE",
    "PARQUET",
    "PLAN",
    "STATE",
    "Attempt",
    "Compacted",
    "Draft",
    "Holding",
    "Keeping",
    "Lake",
    "LocalStore",
    "Proof",
    "Published",
    "Store",
    "check_lake",
    "choose_kept",
    "compact_lake",
    "decode_commit",
    "encode_commit",
    "find_ahead",
    "find_chain",
    "find_last_readings",
    "is_path",
    "read_time",
    "remove_collections",
    "start_attempt",
    "take_inventory",
]
