"""Collections for jobs: a cluster that lacks rows counts as unread.

So a damaged file removes only the clusters in it, each with its reason.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from reconciler.fleet import tables
from reconciler.fleet.lake.attempts import Published
from reconciler.fleet.lake.lake import LAKE_ROWS, Lake
from reconciler.fleet.session import size_shuffles
from reconciler.fleet.tables import LakeTable


def read_collection(lake: Lake, attempt: Published) -> dict[str, DataFrame]:
    """Return the state tables and the specs of a collection, in exactly the declared columns."""
    frames = read_collections(lake, [attempt], (*tables.STATE, tables.SPECS))
    return {name: rows.select(*tables.TABLES[name].columns) for name, rows in frames.items()}


def read_collections(
    lake: Lake, attempts: Sequence[Published], wanted: Sequence[LakeTable] = tables.STATE
) -> dict[str, DataFrame]:
    """Return tables of several collections, `readings` among them; `collection` comes first.

    Sizes the shuffles of the session by the rows. Errors: LakeError if an entire table is missing.
    """
    counts = (attempt.rows.get(table.name, {}) for attempt in attempts for table in wanted)
    size_shuffles(lake.session, sum(sum(of.values()) for of in counts))
    frames, damages = lake.read_complete(wanted, attempts)
    said: dict[tuple[str, str], str] = {}
    for damage in damages:
        what = f"{damage.what}; collect again, or restore the files"
        said.setdefault((damage.collection, damage.cluster), what)
    if said:
        lost = [(*key, LAKE_ROWS, what) for key, what in sorted(said.items())]
        columns = "collection string, cluster string, status string, error string"
        rows = lake.session.createDataFrame(lost, columns)
        readings = frames[tables.READINGS.name].unionByName(rows, allowMissingColumns=True)
        frames[tables.READINGS.name] = readings
    return frames
