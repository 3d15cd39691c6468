"""Every figure on the page, recomputed with DuckDB from the lake's files, without our code.

The fleet is generated, with brokers down, lagging replicas and drift. The second collection has
offline partitions and partitions below min.insync.replicas too, and a cluster that is unread.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

from reconciler.api.planning import load_estate
from reconciler.fleet import tables
from reconciler.fleet.generator.job import draw_table, generate_fleet, write_estate
from reconciler.fleet.generator.shapes import FleetSize
from reconciler.fleet.jobs import audit_collection, plan_collection
from reconciler.fleet.lake.lake import Lake
from reconciler.fleet.page.gather import gather_page
from reconciler.fleet.page.html import render_page
from reconciler.fleet.tracing import trace_collections

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# The gate computes the page of another fleet again: test_recomputed.py.
pytestmark = [pytest.mark.fleet, pytest.mark.slow]

SIZE = FleetSize(clusters=4, topics=240, partitions=1_600, seed=11)
FIRST, SECOND = "20261120T030000Z", "20261121T030000Z"
OF = {"plans": "plan", "changes": "plan", "findings": "audit", "balance": "audit"}
OF |= {"events": "history", "trend": "history"}
STATE = ("readings", "brokers", "topics", "partitions", "configs")
TABLES = (*STATE, "specs", *OF)
LOST = "staging-eu-003"


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    directory = tmp_path_factory.mktemp("figures")
    made, estate = Lake(spark, str(directory / "lake")), directory / "estate"
    write_estate(SIZE, estate)
    generate_fleet(made, SIZE, FIRST, root=str(estate))
    with made.begin(SECOND) as draft:
        for table in (*tables.STATE, tables.SPECS):
            rows = draw_table(spark, table, SIZE, str(estate))
            draft.append(table, _make_trouble(table.name, rows))
        draft.publish(SIZE.clusters)
    plan_collection(made, load_estate(estate))
    audit_collection(made, load_estate(estate))
    trace_collections(made)
    return made


def _make_trouble(table: str, rows: DataFrame) -> DataFrame:
    """Take leaders and replicas from some partitions, and let the last cluster be unread."""
    lost = F.col("cluster") == LOST
    if table == "readings":
        status = F.when(lost, F.lit("connect-refused")).otherwise(F.col("status"))
        return rows.withColumn("status", status)
    if table == "partitions":
        number = F.abs(F.hash("topic", "partition"))
        dark, alone = number % 97 == 0, number % 53 == 0
        first = F.slice("in_sync", 1, 1)
        in_sync = F.when(dark, F.slice("in_sync", 1, 0)).when(alone, first)
        leader = F.when(dark, F.lit(-1)).otherwise(F.col("leader"))
        rows = rows.withColumns({"leader": leader, "in_sync": F.coalesce(in_sync, "in_sync")})
    return rows if table == "specs" else rows.where(~lost)


@pytest.fixture(scope="module")
def html(lake: Lake) -> str:
    return render_page(gather_page(lake, SECOND, "now"))


@pytest.fixture(scope="module")
def db(lake: Lake) -> Iterator[duckdb.DuckDBPyConnection]:
    with open_tables(lake, SECOND, TABLES) as connection:
        yield connection


@contextmanager
def open_tables(
    lake: Lake, collection: str, names: Iterable[str]
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open tables of a collection, by the files of its published attempts."""
    published = [json.loads(file.read_text()) for file in Path(lake.root, "collections").iterdir()]
    of_it = [one for one in published if one["collection"] == collection]
    with duckdb.connect() as connection:
        for table in names:
            what = OF.get(table, "state")
            (attempt,) = (one["attempt"] for one in of_it if one["what"] == what)
            files = f"{lake.root}/{table}/attempt={attempt}/*.parquet"
            connection.execute(f"CREATE VIEW {table} AS SELECT * FROM read_parquet('{files}')")
        yield connection


def _strip(markup: str) -> str:
    return re.sub(r"<[^>]*>", "", markup).replace("&#39;", "'").strip()


def _read_table(html: str, name: str) -> list[dict[str, str]]:
    """Return the rows of a table on the page, by the keys of its columns."""
    found = re.search(rf'<table class="list" id="{name}">(.*?)</table>', html, re.DOTALL)
    if found is None:
        return []
    keys = re.findall(r'data-key="([^"]*)"', found[1])
    body = found[1].partition("<tbody>")[2]
    rows = re.findall(r"<tr>(.*?)</tr>", body, re.DOTALL)
    cells = [re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL) for row in rows]
    return [dict(zip(keys, map(_strip_pictures, row), strict=True)) for row in cells]


def _strip_pictures(markup: str) -> str:
    return _strip(re.sub(r"<svg.*?</svg>", "", markup, flags=re.DOTALL))


def _number(text: str) -> int | None:
    return None if text in ("–", "") else int(text.replace(",", ""))


def _say_size(amount: int | None) -> str:
    if amount is None:
        return "–"
    power = 0
    while amount / 1024**power >= 1024 and power < 4:
        power += 1
    return (
        f"{amount / 1024**power:,.{1 if power else 0}f} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[power]}"
    )


FAULTS = """
SELECT p.cluster, p.topic,
    p.leader < 0 AS offline,
    NOT moving AND len(in_sync) < len(replicas) AS short,
    NOT offline AND len(in_sync) < least(
        coalesce(try_cast(c.value AS int), try_cast(r.defaults['min.insync.replicas'] AS int), 1),
        len(list_distinct(replicas || in_sync))
    ) AS unwritable
FROM partitions p JOIN readings r USING (cluster) LEFT JOIN configs c
    ON c.cluster = p.cluster AND c.topic = p.topic AND c.config = 'min.insync.replicas'
"""
NAMES = {
    "offline": "offline",
    "unwritable": "below min.insync.replicas",
    "short": "under-replicated",
}


def test_tiles(html: str, db: duckdb.DuckDBPyConnection) -> None:
    tiles = re.findall(r"<li><a [^>]*><b>([\d,]+)</b><span>(.*?)</span>", html)
    shown = {noun: _number(number) for number, noun in tiles}
    counts = ", ".join(f"count(*) FILTER ({name})" for name in NAMES)
    faults = db.execute(f"SELECT {counts} FROM ({FAULTS})").fetchone()
    expected = {f"partitions {noun}": n for noun, n in zip(NAMES.values(), faults, strict=True)}
    (down,) = db.execute("SELECT count(*) FROM brokers WHERE NOT alive").fetchone()
    (unread,) = db.execute("SELECT count(*) FROM readings WHERE status <> 'read'").fetchone()
    held = "SELECT coalesce(sum(len(failed_directories)), 0) FROM brokers WHERE alive"
    (failed,) = db.execute(held).fetchone()
    assert shown == {
        **expected,
        "brokers down": down,
        "log directories offline": failed,
        "clusters unread": unread,
    }
    assert all(faults), "a fleet without these problems shows nothing"
    assert down


def test_problems(html: str, db: duckdb.DuckDBPyConnection) -> None:
    rows = _read_table(html, "problems")
    shown = {(r["problem"], r["cluster"], r["topic"], _number(r["affected"])) for r in rows}
    owners = {(r["cluster"], r["topic"]): r["owner"] for r in rows}
    expected = set()
    for name, noun in NAMES.items():
        sql = f"SELECT cluster, topic, count(*) FROM ({FAULTS}) WHERE {name} GROUP BY ALL"
        expected |= {(noun, *row) for row in db.execute(sql).fetchall()}
    assert shown == expected
    specs = {
        row[:2]: row[2] for row in db.execute("SELECT cluster, topic, owner FROM specs").fetchall()
    }
    assert owners == {key: specs.get(key) or "–" for key in owners}


def test_headlines(html: str, db: duckdb.DuckDBPyConnection) -> None:
    found = re.findall(r"<div><dt>([^<]*)</dt><dd><b>([^<]*)</b>(?:<span[^>]*>([^<]*))?", html)
    shown = {noun: number for noun, number, _ in found[:7]}
    users = "SELECT count(*), sum(partitions) FROM topics WHERE NOT internal"
    topics, partitions = db.execute(users).fetchone()
    sums = ", ".join(
        f"sum({name})::bigint" for name in ("changed", "refused", "unchanged", "unmanaged")
    )
    changed, refused, unchanged, unmanaged = db.execute(f"SELECT {sums} FROM plans").fetchone()
    share = 100 * (changed + refused) / (changed + refused + unchanged)
    assert shown.pop("drift") == f"{share:.1f}".removesuffix(".0") + " %"
    assert {noun: _number(number) for noun, number in shown.items()} == {
        "clusters read": SIZE.clusters - 1,
        "topics": topics,
        "partitions": partitions,
        "changes pending": changed,
        "refused": refused,
        "unmanaged": unmanaged,
    }


def test_plans_and_their_skews(html: str, db: duckdb.DuckDBPyConnection) -> None:
    names = ("changed", "refused", "unchanged", "unmanaged")
    sql = f"SELECT cluster, {', '.join(names)} FROM plans"
    rows = db.execute(sql).fetchall()
    keys = ("pending", "refused", "unchanged", "unmanaged")
    shown = {
        (r["cluster"], *(_number(r[key]) for key in keys)) for r in _read_table(html, "clusters")
    }
    assert shown == set(rows)
    skews = [f"{of}_skew_{when}" for of in ("leader", "replica") for when in ("before", "after")]
    sql = f"SELECT cluster, {', '.join(skews)} FROM plans WHERE status = 'planned'"
    rows = db.execute(sql).fetchall()
    keys = [f"{of}s-{when}" for of in ("leader", "replica") for when in ("before", "after")]
    shown = {(r["cluster"], *(_number(r[key]) for key in keys)) for r in _read_table(html, "skew")}
    assert shown == set(rows)


def test_the_inventory(html: str, db: duckdb.DuckDBPyConnection) -> None:
    sql = """
    SELECT t.cluster, t.topic, any_value(s.owner), count(*), min(len(replicas)),
        max(len(replicas)), sum(size_bytes)::bigint
    FROM topics t JOIN partitions p USING (cluster, topic) LEFT JOIN specs s USING (cluster, topic)
    WHERE NOT internal GROUP BY ALL
    """
    expected = {
        (cluster, topic, owner or "–", f"{count:,}", spread(least, most), _say_size(size))
        for cluster, topic, owner, count, least, most, size in db.execute(sql).fetchall()
    }
    keys = ("cluster", "topic", "owner", "partitions", "replication", "size")
    assert {tuple(r[key] for key in keys) for r in _read_table(html, "inventory")} == expected


def spread(least: int, most: int) -> str:
    return str(least) if least == most else f"{least}–{most}"


def test_findings_by_rule_and_cluster(html: str, db: duckdb.DuckDBPyConnection) -> None:
    by_both = "SELECT cluster, rule, count(*) FROM findings GROUP BY ALL"
    expected = {(row[0], row[1]): row[2] for row in db.execute(by_both).fetchall()}
    rows = _read_table(html, "matrix")
    apart = {"cluster", "all"}
    shown = {
        (row["cluster"], rule): _number(text)
        for row in rows
        for rule, text in row.items()
        if rule not in apart and text
    }
    assert shown == expected
    for row in rows:
        of_it = [n for (cluster, _), n in expected.items() if cluster == row["cluster"]]
        assert _number(row["all"]) == sum(of_it)
    by_rule = "SELECT severity, rule, count(*), count(DISTINCT cluster) FROM findings GROUP BY ALL"
    keys = ("findings", "clusters")
    assert {
        (r["severity"], r["rule"], *(_number(r[key]) for key in keys))
        for r in _read_table(html, "rules")
    } == set(db.execute(by_rule).fetchall())


def test_brokers_and_what_they_hold(html: str, db: duckdb.DuckDBPyConnection) -> None:
    sql = """
    SELECT b.cluster, b.id, count(p.id) FILTER (p.place = 1), count(p.id), sum(p.size_bytes)::bigint
    FROM brokers b LEFT JOIN (
        SELECT cluster, size_bytes,
            unnest(replicas) AS id, generate_subscripts(replicas, 1) AS place
        FROM partitions JOIN topics USING (cluster, topic) WHERE NOT internal
    ) p USING (cluster, id) GROUP BY ALL
    """
    rows = db.execute(sql).fetchall()
    held = {(row[0], str(row[1])): (*row[2:4], _say_size(row[4] or 0)) for row in rows}
    assert dict(_read_racks(html)) == held


def _read_racks(html: str) -> Iterator[tuple[tuple[str, str], tuple[Any, ...]]]:
    """Yield each broker of the section on racks: leaders, replicas and size."""
    for details in re.findall(r'<details id="cluster-\d+">(.*?)</details>', html, re.DOTALL):
        (cluster,) = re.findall(r"<b>(.*?)</b>\n<span", details)
        for rack in re.findall(r'<table class="rack">(.*?)</table>', details, re.DOTALL):
            ids = re.findall(r'scope="col">(\d+)', rack)
            values = [
                re.findall(r"<td>([^<]*)</td>", row)
                for name in ("leaders", "replicas", "size")
                for row in re.findall(rf'scope="row">{name}</th>(.*?)</tr>', rack)
            ]
            for broker, leaders, replicas, size in zip(ids, *values, strict=True):
                yield (cluster, broker), (_number(leaders), _number(replicas), size)


def test_trends(html: str, lake: Lake) -> None:
    counts = ", ".join(f"count(*) FILTER ({name})" for name in NAMES)
    keys = ("offline", "unwritable", "under-replicated", "brokers-down", "topics", "partitions")
    rows = _read_table(html, "trend")
    assert [row["collection"] for row in rows] == ["2026-11-21 03:00 UTC", "2026-11-20 03:00 UTC"]
    for row, collection, read in zip(rows, (SECOND, FIRST), (3, 4), strict=True):
        with open_tables(lake, collection, STATE) as db:
            faults = db.execute(f"SELECT {counts} FROM ({FAULTS})").fetchone()
            held = db.execute("SELECT count(*), sum(partitions) FROM topics").fetchone()
            size = db.execute("SELECT sum(size_bytes)::bigint FROM partitions").fetchone()
            down = db.execute("SELECT count(*) FROM brokers WHERE NOT alive").fetchone()
        assert tuple(_number(row[key]) for key in keys) == (*faults, *down, *held)
        assert (row["clusters"], row["size"]) == (str(read), _say_size(*size))


def test_changes(html: str, db: duckdb.DuckDBPyConnection) -> None:
    sql = "SELECT cluster, topic, action FROM changes WHERE action <> 'note'"
    rows = _read_table(html, "changes")
    assert {(r["cluster"], r["topic"], r["action"]) for r in rows} == set(
        db.execute(sql).fetchall()
    )
