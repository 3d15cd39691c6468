"""`spec_tree`: the topics of an estate at a git commit, a row for each cluster they belong on.

    session.dataSource.register(SpecTree)
    session.read.format("spec_tree").options(repository=".", commit="main", estate="topics").load()

Without a commit the files are read as they lie there. Every mistake of the estate ends the
reading: a fleet is not planned on half of its specs.
"""

from __future__ import annotations

import subprocess
import tarfile
import tempfile
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from reconciler.errors import FleetError
from reconciler.fleet import tables
from reconciler.fleet.rows import arrow_schema, write_specs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from reconciler.spec import Estate


class SpecTree(DataSource):
    """The specs of an estate. Source: the Python Data Source API of Spark 4."""

    @classmethod
    def name(cls) -> str:
        """Name the format."""
        return "spec_tree"

    def schema(self) -> StructType:
        """Return the columns of the table `specs`."""
        return tables.SPECS.schema

    def reader(self, schema: StructType) -> SpecTreeReader:
        """Return the reader of the wanted columns."""
        return SpecTreeReader(dict(self.options), schema.names)


class SpecTreeReader(DataSourceReader):
    """Reads an estate in one task: its rules reach across files."""

    def __init__(self, options: Mapping[str, str], columns: Sequence[str]) -> None:
        self._options = options
        self._columns = list(columns)

    def partitions(self) -> Sequence[InputPartition]:
        """Return the one task."""
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        """Yield the specs, a cluster at a time. Errors: SpecError, FleetError."""
        options = self._options
        path = options.get("estate", "topics")
        with open_estate(options.get("repository", "."), options.get("commit"), path) as estate:
            empty = arrow_schema(tables.SPECS.name).empty_table()
            yield from empty.select(self._columns).to_batches()
            for cluster in estate.declared:
                rows = write_specs(cluster, estate.topics_for(cluster))
                yield from rows.select(self._columns).to_batches()


@contextmanager
def open_estate(repository: str, commit: str | None, path: str) -> Iterator[Estate]:
    """Load an estate as it was at a commit, or as it lies there where none is named.

    Errors: SpecError with every mistake; FleetError where git does not have the commit.
    """
    from reconciler.api import load_estate

    if commit is None:
        yield load_estate(Path(repository) / path)
        return
    with tempfile.TemporaryDirectory(prefix="reconciler-") as place:
        with tarfile.open(fileobj=BytesIO(_archive(repository, commit, path))) as archive:
            archive.extractall(place, filter="data")
        yield load_estate(Path(place) / path)


def _archive(repository: str, commit: str, path: str) -> bytes:
    """Return the tree below `path` at a commit as a tar file."""
    command = ["git", "-C", repository, "archive", "--format=tar", "--end-of-options", commit, path]
    try:
        done = subprocess.run(command, check=True, capture_output=True)  # noqa: S603
    except FileNotFoundError as error:
        raise FleetError("git is not installed; leave the commit out, or install it") from error
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip().splitlines()
        raise FleetError(f"{path} at {commit} of {repository}: {' '.join(said[:1])}") from error
    return done.stdout
