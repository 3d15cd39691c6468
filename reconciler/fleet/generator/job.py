"""Write a synthetic fleet into a lake, as a collection that was finished, and its estate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from reconciler.errors import UsageError
from reconciler.files import write_file
from reconciler.fleet import tables
from reconciler.fleet.generator.shapes import FleetSize, draw_shapes
from reconciler.fleet.generator.specs import (
    CLUSTERS_FILE,
    list_specs,
    list_trouble_specs,
    write_clusters_file,
    write_topic_files,
    write_trouble_files,
)
from reconciler.fleet.generator.state import (
    write_brokers,
    write_configs,
    write_partitions,
    write_reading,
    write_topics,
    write_trouble,
)
from reconciler.fleet.generator.topics import draw_cluster_topics
from reconciler.fleet.generator.troubles import Trouble
from reconciler.fleet.lake.attempts import Published, read_time
from reconciler.fleet.lake.lake import Lake
from reconciler.fleet.rows import write_specs
from reconciler.fleet.tables import LakeTable

MOST_TOPICS_IN_FILES = 5_000
"""A larger fleet has its specs only in the lake, not in hundreds of thousands of files."""

MOST_TASKS = 64
BATCH_ROWS = 50_000
GENERATED_ROOT = "topics"
"""The path that files of the specs would have, in a fleet without files."""


def generate_fleet(
    lake: Lake,
    size: FleetSize,
    collection: str,
    *,
    root: str = GENERATED_ROOT,
    troubles: Sequence[Trouble] = (),
    announce: Callable[[str], None] = lambda _: None,
) -> Published:
    """Add a synthetic fleet to the lake: every state table, and the specs.

    With `troubles`, their clusters are added, and a collection of a day before is written first:
    an audit compares the two. The rows depend on `size`, `root` and `troubles` alone. Cost:
    7 million partitions in a minute of two cores.
    """
    if troubles:
        day_before = f"{read_time(collection) - timedelta(days=1):%Y%m%dT%H%M%SZ}"
        draw = partial(_draw_with_troubles, size=size, root=root, troubles=troubles, before=True)
        _write(lake, day_before, draw, size.clusters + len(troubles), announce)
    draw = partial(_draw_with_troubles, size=size, root=root, troubles=troubles)
    return _write(lake, collection, draw, size.clusters + len(troubles), announce)


def _write(
    lake: Lake,
    collection: str,
    draw: Callable[[SparkSession, LakeTable], DataFrame],
    clusters: int,
    announce: Callable[[str], None],
) -> Published:
    with lake.begin(collection) as draft:
        for table in (*tables.STATE, tables.SPECS):
            announce(f"writing {table.name}")
            draft.append(table, draw(lake.session, table))
        return draft.publish(clusters)


def _draw_with_troubles(
    session: SparkSession,
    table: LakeTable,
    size: FleetSize,
    root: str = GENERATED_ROOT,
    *,
    troubles: Sequence[Trouble] = (),
    before: bool = False,
) -> DataFrame:
    """Return one table of a synthetic fleet with the clusters of `troubles`; of a day `before`."""
    drawn = draw_table(session, table, size, root)
    if not troubles:
        return drawn
    if table.name == tables.SPECS.name:
        specs = list_trouble_specs(root, draw_shapes(size), troubles)
        rows = [write_specs(name, of) for name, of in specs.items()]
    else:
        rows = [write_trouble(trouble, before=before)[table.name] for trouble in troubles]
    # In one chunk: Spark loses what comes after an empty one.
    together = pa.concat_tables(rows).combine_chunks()
    return drawn.unionByName(session.createDataFrame(together, table.schema).coalesce(1))


def draw_table(
    session: SparkSession, table: LakeTable, size: FleetSize, root: str = GENERATED_ROOT
) -> DataFrame:
    """Return one table of a synthetic fleet. Shuffles: none; a cluster is drawn in one task."""
    numbers = session.range(0, size.clusters, 1, min(size.clusters, MOST_TASKS))
    draw = partial(_draw_rows, name=table.name, size=size, root=root)
    return numbers.mapInArrow(draw, schema=table.schema)


def write_estate(size: FleetSize, directory: Path, troubles: Sequence[Trouble] = ()) -> int:
    """Write the clusters of a fleet, and its topics if they are few. Returns: files of topics.

    Errors: UsageError if the directory holds something, or cannot be written to.
    """
    files = 0
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise UsageError(f"{directory} is not empty; name a new directory")
        shapes = draw_shapes(size)
        write_file(directory / CLUSTERS_FILE, write_clusters_file(shapes, troubles))
        for number, shape in enumerate(shapes if size.topics <= MOST_TOPICS_IN_FILES else ()):
            (directory / shape.name).mkdir()
            topics = draw_cluster_topics(size, number)
            for path, text in write_topic_files(str(directory), shape, topics).items():
                write_file(Path(path), text)
                files += 1
        for path, text in (write_trouble_files(troubles) if files else {}).items():
            (directory / path).parent.mkdir()
            write_file(directory / path, text)
            files += 1
    except OSError as error:
        raise UsageError(f"{directory} cannot be written to: {error.strerror}") from error
    return files


def _draw_rows(
    batches: Iterable[pa.RecordBatch], *, name: str, size: FleetSize, root: str
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one table for clusters by number, in a worker."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from _draw_cluster(name, size, number, root).to_batches(BATCH_ROWS)


def _draw_cluster(name: str, size: FleetSize, number: int, root: str) -> pa.Table:
    shape = draw_shapes(size)[number]
    if name == tables.READINGS.name:
        return write_reading(shape)
    if name == tables.BROKERS.name:
        return write_brokers(shape)
    topics = draw_cluster_topics(size, number)
    if name == tables.TOPICS.name:
        return write_topics(shape, topics)
    if name == tables.CONFIGS.name:
        return write_configs(shape, topics)
    if name == tables.PARTITIONS.name:
        return write_partitions(size.seed, shape, topics)
    return write_specs(shape.name, [*list_specs(root, shape, topics)])
