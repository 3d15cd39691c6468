"""A year of nights in one lake: files, bytes and seconds, before and after `keep` and `compact`.

`make bench-lake` runs it; NIGHTS=20 CLUSTERS=10 make a small one. The fleet is small in topics, and
of synthetic clusters: each has some topics that come, go, or have a config changed by hand during
the year, and plans that show the change for two weeks. The nights are written by pyarrow, in the
layout of the lake and as many files as Spark writes on two cores. All else is done by the jobs.
The law is checked too: the history has the same rows after `keep` and after `compact`.
    python benchmarks/lake_years.py [--nights N] [--clusters N] [--days N]
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from reconciler.cli.fleet.page import write_page
from reconciler.fleet import tables
from reconciler.fleet.generator.shapes import FleetSize, draw_shapes
from reconciler.fleet.generator.specs import list_specs
from reconciler.fleet.generator.state import (
    write_brokers,
    write_configs,
    write_partitions,
    write_reading,
    write_topics,
)
from reconciler.fleet.generator.topics import draw_cluster_topics
from reconciler.fleet.lake.attempts import HISTORY, PLAN, STATE, publish_now, start_attempt
from reconciler.fleet.lake.inventory import choose_kept
from reconciler.fleet.lake.lake import Lake
from reconciler.fleet.lake.maintenance import compact_lake
from reconciler.fleet.lake.stores import LocalStore
from reconciler.fleet.rows import make_table, write_specs
from reconciler.fleet.session import Engine, open_session
from reconciler.fleet.tracing import (
    MOST_PARTS,
    fold_history,
    keep_collections,
    read_history,
    trace_collections,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER, MEMORY = "local[2]", "4g"
TOPICS, PARTITIONS = 8, 24
"""Per cluster."""
FILES = 4
"""The files of a table: the parts of a shuffle on two cores."""
PENDING = 14
"""The number of nights for which plans show that a config was changed by hand."""
COMING, GOING, CHANGING = 0.2, 0.1, 0.3
"""The shares of topics that are created and deleted, and of configs that change, in the year."""


@dataclass(frozen=True)
class Year:
    """All rows of a year, each with the nights in which it is there, and changed."""

    rows: Mapping[str, pa.Table]
    nights: int
    clusters: int

    def show(self, night: int) -> Mapping[str, pa.Table]:
        """Return the rows of the state tables and specs of one night."""
        shown = dict(self.rows)
        for name in ("topics", "partitions", "configs"):
            of = shown[name]
            born, gone = self._draw(of, "born"), self._draw(of, "gone")
            is_there = (born >= COMING) | (born / COMING * self.nights <= night)
            is_there &= (gone >= GOING) | (gone / GOING * self.nights > night)
            if name == "configs":
                is_changed = self._find_changed(of) <= night
                values = pc.if_else(pa.array(is_changed), pa.scalar("4242"), of["value"])
                of = of.set_column(of.schema.get_field_index("value"), of.field("value"), values)
            shown[name] = of.filter(pa.array(is_there))
        return shown

    def plan(self, night: int) -> Mapping[str, pa.Table]:
        """Return the rows of the plans of one night."""
        names = self.rows["readings"]["cluster"].to_pylist()
        none, some = [0] * len(names), self.rows["configs"]
        since = self._find_changed(some)
        pending = some.filter(pa.array((since <= night) & (night < since + PENDING)))
        found = pending.group_by(["cluster", "topic"]).aggregate([]).sort_by("cluster")
        cluster, topic = found["cluster"].to_pylist(), found["topic"].to_pylist()
        plans = {
            "cluster": names,
            "status": ["planned"] * len(names),
            "changed": [cluster.count(name) for name in names],
            **dict.fromkeys(("refused", "unchanged", "unmanaged"), none),
            "refusals": [[] for _ in names],
            "plan": ["{}"] * len(names),
        }
        changes = {
            "cluster": cluster,
            "topic": topic,
            "action": ["update"] * len(topic),
            "steps": [["configure"]] * len(topic),
        }
        return {
            "plans": make_table(tables.PLANS, plans),
            "changes": make_table(tables.CHANGES, changes),
        }

    def _find_changed(self, of: pa.Table) -> Any:
        """Return the night in which each config changes; after the year, if it never does."""
        return self._draw(of, "changed", "config") / CHANGING * self.nights

    def _draw(self, of: pa.Table, salt: str, *columns: str) -> Any:
        """Draw a number below 1 for each row, by the topic's name."""
        columns = ("cluster", "topic", *columns)
        names = zip(*(of[column].to_pylist() for column in columns), strict=True)
        return np.array([zlib.crc32(repr((salt, name)).encode()) for name in names]) / 2**32


def draw_year(nights: int, clusters: int) -> Year:
    size = FleetSize(clusters, clusters * TOPICS, clusters * PARTITIONS, 1)
    drawn: dict[str, list[pa.Table]] = {table.name: [] for table in (*tables.STATE, tables.SPECS)}
    for number, shape in enumerate(draw_shapes(size)):
        topics = draw_cluster_topics(size, number)
        drawn["readings"].append(write_reading(shape))
        drawn["brokers"].append(write_brokers(shape))
        drawn["topics"].append(write_topics(shape, topics))
        drawn["configs"].append(write_configs(shape, topics))
        drawn["partitions"].append(write_partitions(size.seed, shape, topics))
        drawn["specs"].append(write_specs(shape.name, [*list_specs("topics", shape, topics)]))
    rows = {name: pa.concat_tables(of).combine_chunks() for name, of in drawn.items()}
    return Year(rows, nights, clusters)


def write_night(store: LocalStore, collection: str, year: Year, night: int) -> None:
    """Publish the collection of a night, and its plans."""
    for what, rows in ((STATE, year.show(night)), (PLAN, year.plan(night))):
        attempt, counts = start_attempt(collection, what), {}
        for name, of in rows.items():
            place = store.path / name / f"attempt={attempt.id}"
            place.mkdir(parents=True)
            numbers = of["cluster"].dictionary_encode().combine_chunks()
            part = np.asarray(numbers.indices) * FILES // max(1, len(numbers.dictionary))
            for number in range(FILES):
                pq.write_table(
                    of.filter(pa.array(part == number)), place / f"part-{number}.parquet"
                )
            counted = pc.value_counts(of["cluster"]).to_pylist()
            counts[name] = {row["values"]: row["counts"] for row in counted}
        store.publish(publish_now(attempt, year.clusters, counts, "0" * 40))


def name_night(night: int, nights: int) -> str:
    """Name a collection. Night 0 is a year ago."""
    at = datetime.now(UTC) - timedelta(days=nights - night)
    return at.strftime("%Y%m%dT030000Z")


@dataclass
class Bench:
    """A lake, and the year that is written into it."""

    session: SparkSession
    path: Path
    year: Year
    night: int = 0

    def open(self) -> Lake:
        """Open the lake as the command line does, once for each command."""
        return Lake(self.session, str(self.path), counts_once=True)

    def add_night(self) -> None:
        store = LocalStore(self.path)
        # Some more nights follow after the year, so it ends some days ago.
        write_night(store, name_night(self.night, self.year.nights + 5), self.year, self.night)
        self.night += 1

    def tell(self) -> dict[str, list[str]]:
        """Return all rows of the history, sorted."""
        history = read_history(self.open())
        return {name: sorted(map(str, rows.collect())) for name, rows in history.items()}

    def wait_a_day(self) -> None:
        """Clean as the first job does a day later: what was replaced goes."""
        self.open().store.clean(datetime.now(UTC) + timedelta(days=1, hours=1))

    def count_files(self) -> int:
        return sum(1 for path in self.path.rglob("*") if path.is_file() and path.name[0] != ".")

    def count_bytes(self) -> int:
        return sum(path.stat().st_size for path in self.path.rglob("*") if path.is_file())

    def trace_anew(self) -> float:
        """Return the seconds of a history from scratch, in a copy of the lake without any."""
        with tempfile.TemporaryDirectory(prefix="bench-lake-") as directory:
            copy = replace(self, path=Path(directory) / "lake")
            shutil.copytree(self.path, copy.path, ignore=shutil.ignore_patterns(f"*-{HISTORY}-*"))
            return take(lambda: trace_collections(copy.open()))

    def measure(self, label: str, anew: float | None = None) -> None:
        """Print a row of the table, and add a night. In: the seconds of a history from scratch."""
        files, held = self.count_files(), self.count_bytes()
        collections = len(self.open().list_attempts())
        anew = self.trace_anew() if anew is None else anew
        self.add_night()
        one = take(lambda: trace_collections(self.open()))
        page = self.path.parent / "fleet.html"
        shown = take(lambda: write_page(self.open(), None, page, lambda _: None))
        cells = f"{collections:>11,} {files:>8,} {held / 1e6:>7.1f} MB {one:>9.1f} {anew:>9.1f}"
        print(f"{label:<22} {cells} {shown:>6.1f}", flush=True)


def take(run: Callable[[], Any]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def keep(bench: Bench, days: int) -> None:
    lake = bench.open()
    keeping = choose_kept(lake.list_published(), datetime.now(UTC) - timedelta(days=days))
    assert keeping is not None
    keep_collections(lake, keeping)


def compact(bench: Bench) -> None:
    lake = bench.open()
    fold_history(lake, at_least=MOST_PARTS)
    compact_lake(lake)


def require_same(
    before: Mapping[str, list[str]], after: Mapping[str, list[str]], what: str
) -> None:
    """Errors: SystemExit if a table of the history has other rows."""
    for name, rows in before.items():
        if rows != after[name]:
            gone, new = set(rows) - set(after[name]), set(after[name]) - set(rows)
            raise SystemExit(f"{name} has other rows after {what}: -{len(gone)} +{len(new)}")
    counts = ", ".join(f"{len(rows):,} rows of {name}" for name, rows in sorted(before.items()))
    print(f"  the same after {what}: {counts}", flush=True)


def run_bench(bench: Bench, days: int) -> None:
    nights, clusters = bench.year.nights, bench.year.clusters
    print(f"{MASTER}, a heap of {MEMORY}; load of this machine {os.getloadavg()[0]:.1f}")
    print(f"{nights} nights of {clusters} clusters with {TOPICS} topics each")
    written = take(lambda: [bench.add_night() for _ in range(nights)])
    print(f"  written by pyarrow in {written:.1f} s", flush=True)
    first = take(lambda: trace_collections(bench.open()))
    heads = f"{'collections':>11} {'files':>8} {'size':>10} {'one night':>9} {'anew':>9}"
    print(f"{'history in seconds':<22} {heads} {'page':>6}", flush=True)
    bench.measure("all nights", first)
    told = bench.tell()
    taken = take(lambda: keep(bench, days))
    require_same(told, bench.tell(), f"keep --days {days} in {taken:.1f} s")
    bench.wait_a_day()
    bench.measure(f"keep --days {days}")
    told = bench.tell()
    taken = take(lambda: compact(bench))
    require_same(told, bench.tell(), f"compact in {taken:.1f} s")
    bench.wait_a_day()
    require_same(told, bench.tell(), "a day more")
    bench.measure("compact, a day later")


def main() -> None:
    """Measure a lake of the size that the command line says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--nights", type=int, default=365)
    parser.add_argument("--clusters", type=int, default=150)
    parser.add_argument("--days", type=int, default=90)
    chosen = parser.parse_args()
    year = draw_year(chosen.nights, chosen.clusters)
    session = open_session(Engine(master=MASTER, memory=MEMORY))
    with tempfile.TemporaryDirectory(prefix="bench-lake-") as directory:
        days = min(chosen.days, max(1, chosen.nights // 2))
        run_bench(Bench(session, Path(directory) / "lake", year), days)


if __name__ == "__main__":
    main()
