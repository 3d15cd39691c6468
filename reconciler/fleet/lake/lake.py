"""The lake: attempts write tables, and readers see the tables of published attempts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

from reconciler.errors import Finding, LakeError
from reconciler.fleet.lake.attempts import (
    STATE,
    Attempt,
    Published,
    choose_newest,
    publish_copy,
    publish_now,
    start_attempt,
)
from reconciler.fleet.lake.inventory import keeps_removed
from reconciler.fleet.lake.storage import MissingError, Storage
from reconciler.fleet.lake.stores import Store, choose_store
from reconciler.fleet.tables import LakeTable

LAKE_ROWS = "lake-rows"
"""The rule that a damaged cluster breaks."""

NAMED = 5
"""The number of clusters named in a message."""


@dataclass(frozen=True, slots=True)
class Damage:
    """A cluster with missing rows: a table lacks rows that were published."""

    collection: str
    attempt: str
    cluster: str
    what: str


@dataclass(frozen=True, slots=True)
class Lake:
    """A directory of tables, local or of any file system that Spark reaches; or a namespace.

    Every read counts the rows of its attempts first. With `counts_once`, an attempt is counted by
    its first read, or when it is published here: for a job that reads a collection many times.
    """

    session: SparkSession
    root: str
    form: str = "parquet"
    counts_once: bool = False
    _counted: dict[tuple[str, str], list[Row]] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )
    store: Store = field(init=False, repr=False)
    storage: Storage = field(init=False, repr=False)

    def __post_init__(self) -> None:
        store = choose_store(self.session, self.root, self.form)
        object.__setattr__(self, "store", store)
        object.__setattr__(self, "storage", Storage(self.session, store.root, self.form))

    @contextmanager
    def begin(self, collection: str, what: str = STATE) -> Iterator[Draft]:
        """Begin an attempt. It is discarded unless it is published before the block ends."""
        attempt = start_attempt(collection, what)
        draft = Draft(self, attempt)
        with self.store.hold(attempt):
            try:
                yield draft
            finally:
                if draft.published is None:
                    self.store.discard(attempt)

    def list_attempts(self, what: str = STATE) -> tuple[Published, ...]:
        """List the newest attempt of every collection, the oldest first. Errors: LakeError."""
        return tuple(choose_newest(self.store.list_published(what)))

    def list_published(self) -> tuple[Published, ...]:
        """List every publication, also those that a newer one replaced. Errors: LakeError."""
        return tuple(self.store.list_published())

    def find_attempt(self, collection: str | None = None, what: str = STATE) -> Published:
        """Return a collection, the latest unless one is named. Errors: LakeError."""
        attempts = self.list_attempts(what)
        if not attempts:
            verb = "collect" if what == STATE else what
            way_out = f"start with: reconciler fleet {verb}"
            raise _fail("lake-collection-unknown", f"{self.root} holds no {what}", way_out)
        if collection is None:
            return attempts[-1]
        for attempt in attempts:
            if attempt.collection == collection:
                return attempt
        known = ", ".join(attempt.collection for attempt in attempts[-NAMED:])
        said = f"{self.root} holds no {what} of {collection}"
        raise _fail("lake-collection-unknown", said, f"the latest are: {known}")

    def read(self, table: LakeTable, attempt: Published) -> DataFrame:
        """Return a table of a collection, with exactly the declared columns.

        Errors: LakeError if a row of it is missing.
        """
        return self.read_all(table, [attempt]).select(*table.columns)

    def read_all(self, table: LakeTable, attempts: Sequence[Published]) -> DataFrame:
        """Return a table of several collections; `collection` comes first. Errors: LakeError."""
        return self.read_each([table], attempts)[table.name]

    def read_each(
        self, wanted: Sequence[LakeTable], attempts: Sequence[Published]
    ) -> dict[str, DataFrame]:
        """Return several tables as `read_all` does. Errors: LakeError. Cost: a job for all."""
        frames, damages = self.read_complete(wanted, attempts)
        if damages:
            more = [f"and {len(damages) - NAMED:,} more"] if len(damages) > NAMED else []
            said = "; ".join([*(damage.what for damage in damages[:NAMED]), *more])
            raise _fail(LAKE_ROWS, said, self._suggest({one.collection for one in damages}))
        return frames

    def read_complete(
        self, wanted: Sequence[LakeTable], attempts: Sequence[Published]
    ) -> tuple[dict[str, DataFrame], list[Damage]]:
        """Return tables of collections without damaged clusters, and the damages.

        A damaged cluster lacks some of its rows. Rows are counted, and then read from the files
        that were counted. Errors: LakeError if an entire table is missing.
        Cost: a job for all tables, which reads one column.
        """
        for attempt in attempts:
            for table in wanted:
                if table.name not in attempt.rows:
                    raise self._miss(f"{table.name} of {attempt.id}", [attempt])
        try:
            counted = self._count(wanted, attempts)
        except MissingError as error:
            raise self._miss(str(error), attempts) from error
        damages: list[Damage] = []
        frames: dict[str, DataFrame] = {}
        for table in wanted:
            for attempt in attempts:
                damages += compare_rows(table, attempt, counted[table.name])
        # A cluster without some rows of one table is left out of all tables: its topics without
        # their partitions, for example, would look like another state of the cluster.
        hurt: dict[str, set[str]] = defaultdict(set)
        for damage in damages:
            hurt[damage.attempt].add(damage.cluster)
        collection = F.split_part("attempt", F.lit("-"), F.lit(1)).alias("collection")
        for table in wanted:
            rows = self.storage.load(table, attempts, counted[table.name])
            for attempt_id, clusters in sorted(hurt.items()):
                is_hurt = F.col("cluster").isin(sorted(clusters))
                rows = rows.where(~((F.col("attempt") == attempt_id) & is_hurt))
            frames[table.name] = rows.select(collection, *table.columns)
        return frames, damages

    def remember(
        self,
        wanted: Sequence[LakeTable],
        attempts: Sequence[Attempt],
        counted: Mapping[str, Sequence[Row]],
    ) -> None:
        """Keep the counted rows of attempts for later reads, with `counts_once`."""
        for table in wanted:
            of: dict[str, list[Row]] = defaultdict(list)
            for row in counted[table.name]:
                of[row["attempt"]].append(row)
            self._counted.update({(table.name, one.id): of[one.id] for one in attempts})

    def _count(
        self, wanted: Sequence[LakeTable], attempts: Sequence[Attempt]
    ) -> Mapping[str, list[Row]]:
        """Count the rows of each table. Errors: MissingError."""
        if not self.counts_once:
            self._counted.clear()
        new = [a for a in attempts if any((t.name, a.id) not in self._counted for t in wanted)]
        self.remember(wanted, new, self.storage.count(wanted, new))
        return {
            table.name: [row for one in attempts for row in self._counted[table.name, one.id]]
            for table in wanted
        }

    def remove(
        self, collections: Sequence[str], announce: Callable[[str], None] = lambda _: None
    ) -> tuple[Published, ...]:
        """Remove collections and what was made of them. Errors: LakeError at one not there."""
        return remove_collections(self.store, collections, self.root, announce)

    def _miss(self, what: str, attempts: Iterable[Published]) -> LakeError:
        named = self._suggest({attempt.collection for attempt in attempts})
        return _fail("lake-table-missing", f"{what} is missing from {self.root}", named)

    def _suggest(self, collections: set[str]) -> str:
        name = min(collections) if len(collections) == 1 else "COLLECTION"
        remove = f"reconciler fleet lake remove {name} --lake {self.root}"
        return f"restore it from a backup, or make it again, or remove the collection: {remove}"


@dataclass(slots=True)
class Draft:
    """An attempt that is being written. No one reads its rows before it is published."""

    lake: Lake
    attempt: Attempt
    published: Published | None = None
    _handed: dict[LakeTable, int] = field(default_factory=dict)

    def append(self, table: LakeTable, rows: DataFrame) -> None:
        """Add rows: a few files, sorted by cluster. Shuffles: once, by cluster."""
        self.write(table, rows.repartition("cluster").sortWithinPartitions("cluster"))

    def store(self, table: LakeTable, rows: DataFrame) -> DataFrame:
        """Add rows by the tasks that read them from their source, and return the stored rows.

        So a source whose answers vary is read once: later steps use the stored rows, even if Spark
        loses an executor and retries.
        """
        self.write(table, rows)
        counted = self._count([table])[table.name]
        return self.lake.storage.load(table, [self.attempt], counted).select(*table.columns)

    def drop(self, table: LakeTable) -> None:
        """Remove a table that was only needed to make others."""
        del self._handed[table]
        self.lake.store.drop(table, self.attempt)

    def publish(
        self,
        clusters: int,
        commit: str | None = None,
        *,
        continues: str | None = None,
        made_of: Iterable[str] = (),
    ) -> Published:
        """Publish the attempt, in place of earlier ones of the same collection.

        A history says what it `continues`, and what it was `made_of`.
        Errors: LakeError if a table lacks rows that were written to it.
        """
        # Counted again before the publication: a file that Spark lost must not become a state in
        # which topics are missing.
        counted = self._count([*self._handed])
        self.lake.remember([*self._handed], [self.attempt], counted)
        rows = {table.name: _sum_rows(counted[table.name], self.attempt) for table in self._handed}
        return self._publish(
            publish_now(self.attempt, clusters, rows, commit, continues=continues, made_of=made_of)
        )

    def publish_copy(self, of: Published) -> Published:
        """Publish the attempt in place of one that has the same rows. Errors: as `publish`."""
        self._count([*self._handed])
        return self._publish(publish_copy(self.attempt, of))

    def _publish(self, published: Published) -> Published:
        self.lake.store.publish(published)
        self.published = published
        # The attempt is published: trouble with an older one must not fail this job.
        with suppress(OSError, LakeError):
            self.lake.store.clean(datetime.now(UTC))
        return published

    def write(self, table: LakeTable, rows: DataFrame) -> None:
        """Add rows by the tasks that make them. Shuffles: none."""
        self.lake.store.touch(self.attempt)
        self._handed[table] = self.lake.storage.write(table, rows, self.attempt)

    def _count(self, wanted: Sequence[LakeTable]) -> Mapping[str, Sequence[Row]]:
        """Count the written rows. Errors: LakeError if one was lost."""
        with suppress(MissingError):
            counted = self.lake.storage.count(wanted, [self.attempt])
            lost = [t for t in wanted if sum(r["rows"] for r in counted[t.name]) != self._handed[t]]
            if not lost:
                return counted
            wanted = lost
        names = ", ".join(table.name for table in wanted)
        said = f"{self.lake.root} lacks rows of {names} that {self.attempt.id} has written"
        way_out = (
            "make sure that nothing else writes there and that every executor can reach it, then "
            "run it again"
        )
        raise _fail("lake-write", said, way_out)


def remove_collections(
    store: Store,
    collections: Sequence[str],
    root: str,
    announce: Callable[[str], None] = lambda _: None,
) -> tuple[Published, ...]:
    """Remove collections and what was made of them. Errors: LakeError at one that is not there.

    Attempts that are being written stay, and a history that alone knows removed collections.
    Returns: what was removed. Cost: lists the publications once.
    """
    published = store.list_published()
    removed: list[Published] = []
    for number, collection in enumerate(collections):
        announce(f"removing {number:,} of {len(collections):,} collections")
        chosen = [one for one in published if one.collection == collection]
        if not chosen:
            known = sorted({one.collection for one in published})[-NAMED:]
            way_out = f"the latest are: {', '.join(known)}" if known else "there is none at all"
            what = f"{root} holds no collection {collection}"
            raise _fail("lake-collection-unknown", what, way_out)
        # Asked for again, when nothing else is left of the collection, it goes as well.
        chosen = [one for one in chosen if not keeps_removed(one, published)] or chosen
        for one in chosen:
            store.withdraw(one)
        published = [one for one in published if one not in chosen]
        removed += chosen
    store.clean(datetime.now(UTC))
    return tuple(removed)


def compare_rows(table: LakeTable, attempt: Published, counted: Iterable[Row]) -> Iterator[Damage]:
    """Yield the clusters whose number of rows differs from the published number."""
    expected, found = attempt.rows[table.name], _sum_rows(counted, attempt)
    for cluster in sorted({*expected, *found}):
        wanted, got = expected.get(cluster, 0), found.get(cluster, 0)
        if wanted != got:
            said = f"{table.name} of {cluster} in {attempt.collection} has {got:,} readable rows"
            what = f"{said}, but {wanted:,} were published"
            yield Damage(attempt.collection, attempt.id, cluster, what)


def _sum_rows(counted: Iterable[Row], attempt: Attempt) -> dict[str, int]:
    """Return the rows of each cluster in one table of an attempt."""
    rows: dict[str, int] = defaultdict(int)
    for row in counted:
        if row["attempt"] == attempt.id:
            rows[row["cluster"]] += row["rows"]
    return dict(rows)


def _fail(rule: str, what: str, way_out: str) -> LakeError:
    return LakeError([Finding(rule, what, way_out)])
