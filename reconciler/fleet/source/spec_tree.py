"""`spec_tree`: the topics of an estate at a git commit, a row for each topic and cluster.

    session.dataSource.register(SpecTree)
    session.read.format("spec_tree").options(estate="topics", commit="main").load()

The files of a commit are read from git once and travel with the job as texts, so that executors
need neither the repository nor git. Without a commit, the machine that runs the task reads its own
files. Any error in the estate ends the reading, because a plan on a part of the specs is wrong.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import tarfile
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from reconciler.errors import Finding, FleetError, Location, escape_unprintable
from reconciler.fleet import tables
from reconciler.fleet.rows import arrow_schema, write_specs

if TYPE_CHECKING:
    from reconciler.spec.estate import Estate


@dataclass(frozen=True, slots=True)
class Tree:
    """The files of an estate: as they are at `path`, or packed as `_pack` does."""

    path: str
    packed: bytes | None = None

    def load(self) -> Estate:
        """Read the estate; locations in it are relative to the start of `path`.

        Errors: SpecError with every mistake; UsageError if there is nothing at the path.
        """
        from reconciler.api.planning import load_estate
        from reconciler.spec.estate import parse_estate

        if self.packed is None:
            return load_estate(self.path)
        return parse_estate(_unpack(self.packed), self.path)

    def list_options(self) -> dict[str, str]:
        """Return the options of `spec_tree` that carry these files."""
        packed = {} if self.packed is None else {"packed": b64encode(self.packed).decode()}
        return {"estate": self.path, **packed}


def find_tree(path: str, commit: str | None = None, repository: str = ".") -> Tree:
    """Return the files of an estate at a commit, or the current files without a commit.

    Errors: FleetError if git does not have the commit, or the estate in it.
    """
    if commit is None:
        return Tree(str(Path(repository) / path))
    if Path(path).is_absolute():
        repository, path = str(Path(path).parent), Path(path).name
    shown = str(Path(path))
    return Tree(shown, _pack(_read_archive(repository, commit, path, shown)))


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
        """Return the reader of the wanted columns. Errors: FleetError for an unknown commit."""
        options = dict(self.options)
        path = options.get("estate", "topics")
        if packed := options.get("packed"):
            tree = Tree(path, b64decode(packed))
        else:
            tree = find_tree(path, options.get("commit"), options.get("repository", "."))
        return SpecTreeReader(tree, schema.names)


class SpecTreeReader(DataSourceReader):
    """Reads an estate in one task, because its rules apply across files."""

    def __init__(self, tree: Tree, columns: Sequence[str]) -> None:
        self._tree = tree
        self._columns = list(columns)

    def partitions(self) -> Sequence[InputPartition]:
        """Return the only task."""
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        """Yield the specs, one cluster after the other. Errors: SpecError, UsageError."""
        estate = self._tree.load()
        empty = arrow_schema(tables.SPECS.name).empty_table()
        yield from empty.select(self._columns).to_batches()
        for cluster in estate.declared:
            rows = write_specs(cluster, estate.topics_for(cluster))
            yield from rows.select(self._columns).to_batches()


def _read_archive(
    repository: str, commit: str, path: str, shown: str
) -> dict[str, bytes | Finding]:
    """Read the estate at `path` of a commit, by the same rules as files on a disk."""
    from reconciler.api.estate_files import read_estate_files

    packing = ["archive", "--format=tar", "--end-of-options", commit, path]
    # Not a repository among the files of a commit: it would have commits and programs of its own.
    command = ["git", "-c", "safe.bareRepository=explicit", "-C", repository, *packing]
    try:
        done = subprocess.run(command, check=True, capture_output=True)  # noqa: S603
    except FileNotFoundError as error:
        raise FleetError("git is not installed; leave the commit out, or install it") from error
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip().splitlines()
        reason = escape_unprintable(" ".join(said[:1]).removeprefix("fatal: "))
        raise FleetError(f"{path} cannot be read at {commit}: {reason}") from error
    # Unpacked, so that links and unreadable files are judged as in any other estate.
    with tempfile.TemporaryDirectory(prefix="reconciler-") as place:
        with tarfile.open(fileobj=BytesIO(done.stdout)) as archive:
            try:
                archive.extractall(place, filter="data")
            except tarfile.FilterError as error:
                raise FleetError(f"{shown}: {error}") from error
        return read_estate_files(Path(place) / shown, shown)


def _pack(files: Mapping[str, bytes | Finding]) -> bytes:
    """Pack files as text: equal files, equal bytes. A finding replaces an unreadable file."""
    described = {
        path: found.decode("utf-8", "surrogateescape")
        if isinstance(found, bytes)
        else [found.rule, found.what, found.way_out, found.where and found.where.file]
        for path, found in files.items()
    }
    text = json.dumps(described, sort_keys=True)
    return gzip.compress(text.encode(), mtime=0)  # otherwise gzip writes the current time


def _unpack(packed: bytes) -> dict[str, bytes | Finding]:
    files: dict[str, bytes | Finding] = {}
    for path, found in json.loads(gzip.decompress(packed)).items():
        if isinstance(found, str):
            files[path] = found.encode("utf-8", "surrogateescape")
        else:
            rule, what, way_out, file = found
            files[path] = Finding(rule, what, way_out, Location(file, 1))
    return files
