"""What the page of a collection shows, and the same computed with DuckDB from a lake's files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, TreeBuilder

import duckdb

YESTERDAY, TODAY = "20261120T030000Z", "20261121T030000Z"
TABLES_OF = {
    "state": ("readings", "brokers", "topics", "partitions", "configs", "specs"),
    "plan": ("plans", "changes", "move_plans", "moves"),
    "audit": ("findings",),
}


def open_lake(root: Path) -> duckdb.DuckDBPyConnection:
    """Open both days by the files of their published attempts: the tables, and `before.…`."""
    db = duckdb.connect()
    db.execute("CREATE SCHEMA before")
    for file in (root / "collections").iterdir():
        one = json.loads(file.read_text())
        for table in TABLES_OF.get(one["what"], ()):
            files = f"{root}/{table}/attempt={one['attempt']}/*.parquet"
            name = table if one["collection"] == TODAY else f"before.{table}"
            db.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{files}')")
    db.create_function("say_value", say_value, ["VARCHAR", "VARCHAR"], "VARCHAR")  # type: ignore[list-item,arg-type]
    db.execute(VIEWS)
    return db


def list_rows(db: duckdb.DuckDBPyConnection, table: str) -> list[dict[str, Any]]:
    rows = db.execute(f"SELECT * FROM {table}")
    names = [column[0] for column in rows.description]
    return [dict(zip(names, row, strict=True)) for row in rows.fetchall()]


def _view_day(day: str) -> str:
    return f"""
    CREATE VIEW {day}faults AS
    SELECT p.cluster, p.topic, replicas, in_sync, coalesce(leader < 0, false) AS offline,
        NOT moving AND len(in_sync) < len(replicas) AS short,
        NOT offline AND len(in_sync) < least(
            coalesce(
                try_cast(c.value AS int), try_cast(r.defaults['min.insync.replicas'] AS int), 1
            ),
            len(list_distinct(replicas || in_sync))
        ) AS unwritable
    FROM {day}partitions p JOIN {day}readings r USING (cluster) LEFT JOIN {day}configs c
        ON c.cluster = p.cluster AND c.topic = p.topic AND c.config = 'min.insync.replicas';
    CREATE VIEW {day}totals AS SELECT
        (SELECT count(*) FROM {day}readings WHERE status = 'read') AS clusters,
        (SELECT count(*) FROM {day}faults WHERE offline) AS offline,
        (SELECT count(*) FROM {day}faults WHERE unwritable) AS unwritable,
        (SELECT count(*) FROM {day}faults WHERE short) AS short,
        (SELECT count(*) FROM {day}brokers WHERE NOT alive) AS down,
        (SELECT count(*) FROM {day}topics) AS topics,
        (SELECT count(*) FROM {day}partitions) AS partitions,
        (SELECT sum(size_bytes)::bigint FROM {day}partitions) AS bytes;
    CREATE VIEW {day}drift AS SELECT
        coalesce(sum(changed), 0)::bigint AS changed, coalesce(sum(refused), 0)::bigint AS refused,
        coalesce(sum(unchanged), 0)::bigint AS unchanged,
        count(*) FILTER (status = 'planned') AS planned,
        count(*) FILTER (status <> 'planned') AS unplanned
    FROM {day}plans;
    """


VIEWS = f"""
CREATE MACRO say_size(n) AS CASE WHEN n IS NULL THEN NULL
    WHEN n < 1024 THEN format('{{:d}} B', n::bigint)
    WHEN n < 1024 ** 2 THEN format('{{:.1f}} KiB', n / 1024)
    WHEN n < 1024 ** 3 THEN format('{{:.1f}} MiB', n / 1024 ** 2)
    WHEN n < 1024 ** 4 THEN format('{{:.1f}} GiB', n / 1024 ** 3)
    ELSE format('{{:.1f}} TiB', n / 1024 ** 4) END;
CREATE MACRO say_share(part, whole) AS CASE WHEN whole = 0 THEN NULL ELSE regexp_replace(
    format('{{:.1f}}', CASE WHEN part IN (0, whole) THEN 100.0 * part / whole
        ELSE greatest(0.1, least(99.9, 100.0 * part / whole)) END), '\\.0$', '') || ' %' END;
{_view_day("")}
{_view_day("before.")}
CREATE VIEW users AS
    SELECT p.* FROM partitions p JOIN topics t USING (cluster, topic) WHERE NOT internal;
CREATE VIEW held AS SELECT cluster, topic, size_bytes, unnest(replicas) AS id,
    generate_subscripts(replicas, 1) AS place FROM users;
CREATE VIEW loads AS SELECT b.cluster, b.id, b.rack, b.alive,
    count(*) FILTER (place = 1) AS leaders, count(place) AS replicas,
    CASE WHEN count(place) = 0 THEN 0 ELSE sum(size_bytes)::bigint END AS bytes
    FROM brokers b LEFT JOIN held USING (cluster, id) GROUP BY ALL;
CREATE VIEW wanted AS SELECT * FROM changes WHERE action <> 'note';
CREATE VIEW problems AS SELECT cluster, topic,
        unnest(['offline', 'below min.insync.replicas', 'under-replicated']) AS problem,
        unnest([count(*) FILTER (offline), count(*) FILTER (unwritable), count(*) FILTER (short)])
            AS affected,
        list_sort(list_distinct(flatten(list(
            list_filter(replicas, lambda one: NOT list_contains(in_sync, one))
        )))) AS lagging
    FROM faults WHERE offline OR short GROUP BY cluster, topic;
CREATE VIEW states AS WITH broken AS (
        SELECT cluster, bool_or(offline) AS offline, bool_or(unwritable) AS unwritable,
            bool_or(short) AS short FROM faults GROUP BY cluster
    ), down AS (
        SELECT cluster, bool_or(NOT alive OR len(failed_directories) > 0) AS down
        FROM brokers GROUP BY cluster
    )
    SELECT cluster, r.status = 'read' AS read,
    CASE WHEN NOT read THEN 'unread' WHEN offline THEN 'partitions offline'
        WHEN unwritable THEN 'below min.insync.replicas'
        WHEN short OR down THEN 'degraded' ELSE 'healthy' END AS health,
    CASE WHEN p.status IS DISTINCT FROM 'planned' THEN 'not planned' WHEN refused > 0 THEN 'refused'
        WHEN changed > 0 THEN 'changes pending' ELSE 'as specified' END AS standing,
    CASE WHEN NOT read THEN 'unreadable' WHEN health = 'healthy' THEN standing ELSE health END
        AS state
    FROM readings r LEFT JOIN broken USING (cluster) LEFT JOIN down USING (cluster)
    LEFT JOIN plans p USING (cluster);
CREATE VIEW sizes AS SELECT cluster, count(DISTINCT topic) AS topics, count(*) AS partitions
    FROM users GROUP BY ALL;
CREATE VIEW counts AS SELECT cluster, coalesce(s.topics, 0) AS topics,
    coalesce(s.partitions, 0) AS partitions,
    (SELECT count(*) FROM brokers b WHERE b.cluster = r.cluster) AS brokers,
    (SELECT count(DISTINCT rack) FROM brokers b WHERE b.cluster = r.cluster) AS racks
    FROM readings r LEFT JOIN sizes s USING (cluster);
"""

DRIFT = "changed, refused, unchanged, say_share(changed + refused, changed + refused + unchanged)"
DRIFT += ", planned, unplanned"
TREND = "clusters, offline, unwritable, short, down, topics, partitions, say_size(bytes)"
DAYS = (("2026-11-21 03:00 UTC", ""), ("2026-11-20 03:00 UTC", "before."))

# By the table of the page: its columns that are compared, and the query of the same.
EXPECTED = {
    "problems": (
        "problem cluster topic owner affected partitions lagging",
        """SELECT problem, cluster, topic, owner, affected, t.partitions,
            CASE WHEN lagging = [] THEN NULL ELSE array_to_string(lagging, ', ') END
        FROM problems JOIN topics t USING (cluster, topic) LEFT JOIN specs USING (cluster, topic)
        WHERE affected > 0""",
    ),
    "brokers-down": (
        "cluster broker rack leaders replicas size",
        "SELECT cluster, id::text, rack, leaders, replicas, say_size(bytes) FROM loads"
        " WHERE NOT alive",
    ),
    "unreadable": (
        "cluster state rule reason",
        """SELECT cluster, if(r.status = 'read', standing, 'unreadable'),
            if(r.status = 'read', p.status, r.status), if(r.status = 'read', p.error, r.error)
        FROM readings r JOIN states USING (cluster) LEFT JOIN plans p USING (cluster)
        WHERE r.status <> 'read' OR p.status <> 'planned'""",
    ),
    "skew": (
        "cluster leaders-before leaders-after replicas-before replicas-after",
        "SELECT cluster, leader_skew_before, leader_skew_after, replica_skew_before,"
        " replica_skew_after FROM plans WHERE status = 'planned'",
    ),
    "drift-table": (
        "collection pending refused unchanged drift planned unplanned",
        " UNION ALL ".join(f"SELECT '{when}', {DRIFT} FROM {day}drift" for when, day in DAYS),
    ),
    "clusters": (
        "cluster health state pending refused unchanged unmanaged drift topics partitions brokers",
        """SELECT cluster, health, standing, p.changed, p.refused, p.unchanged, p.unmanaged,
            CASE WHEN p.changed IS NULL THEN NULL
                WHEN b.changed IS NULL OR p.changed + p.refused = b.changed + b.refused THEN '±0'
                ELSE format('{:+d}', p.changed + p.refused - b.changed - b.refused) END,
            if(read, topics, NULL), if(read, partitions, NULL), if(read, brokers, NULL)
        FROM states JOIN counts USING (cluster) LEFT JOIN plans p USING (cluster)
        LEFT JOIN before.plans b USING (cluster)""",
    ),
    "changes": (
        "topic cluster owner action risks reasons file",
        """SELECT topic, cluster, s.owner, action,
            array_to_string(list_filter(risks, lambda one: one <> 'none'), ', '),
            array_to_string(list_transform(list_zip(reasons, refusals),
                lambda one: one[1] || ' [' || one[2] || ']'), '; '),
            w.file || ':' || w.line
        FROM wanted w LEFT JOIN specs s USING (cluster, topic)""",
    ),
    "moves": (
        "cluster moving moving-partitions copies bytes time peak drained moves-refused"
        " moves-reasons",
        # At 1 MiB/s, to one broker: the other disks are less full.
        """WITH copies AS (
            SELECT cluster, topic, size_bytes,
                list_filter(after, lambda one: NOT list_contains(before, one)) AS added FROM moves
        ), fullest AS (
            SELECT b.cluster, max((d.total_bytes - d.usable_bytes + coalesce(
                (SELECT sum(size_bytes) FROM copies c WHERE c.cluster = b.cluster
                    AND list_contains(added, b.id)), 0)) / d.total_bytes) AS share
            FROM brokers b, unnest(log_directories) AS of_it(d) GROUP BY ALL
        )
        SELECT cluster, count(DISTINCT topic), count(*), sum(len(added))::bigint,
            say_size(sum(size_bytes * len(added))),
            round(sum(size_bytes * len(added)) / 1024 ** 2 / 60)::int || ' min',
            round(100 * any_value(share))::int || '%', array_to_string(any_value(drained), ', '),
            any_value(p.refused), array_to_string(any_value(p.refusals), '; ')
        FROM copies JOIN move_plans p USING (cluster) JOIN fullest USING (cluster)
        GROUP BY cluster""",
    ),
    "topics": (
        "topic cluster owner partitions leaders replicas plan",
        """WITH each AS (
            SELECT t.cluster, t.topic, t.partitions, b.id, count(*) FILTER (place = 1) AS led,
                count(place) AS has
            FROM topics t JOIN brokers b USING (cluster) LEFT JOIN held h
                ON h.cluster = t.cluster AND h.topic = t.topic AND h.id = b.id
            WHERE b.alive AND NOT internal GROUP BY ALL
        )
        SELECT e.topic, e.cluster, any_value(owner), e.partitions, max(led) - min(led) AS leaders,
            max(has) - min(has) AS replicas, any_value(action)
        FROM each e LEFT JOIN specs USING (cluster, topic) LEFT JOIN wanted USING (cluster, topic)
        GROUP BY ALL HAVING sum(has) > 0 AND (leaders > 1 OR replicas > 1)""",
    ),
    "inventory": (
        "topic cluster owner partitions replication size overrides",
        """SELECT topic, cluster, any_value(owner), count(*),
            CASE WHEN min(len(replicas)) = max(len(replicas)) THEN min(len(replicas))::text
                ELSE min(len(replicas)) || '–' || max(len(replicas)) END,
            say_size(sum(size_bytes)), any_value(coalesce(overrides, ''))
        FROM users LEFT JOIN specs USING (cluster, topic) LEFT JOIN (
            SELECT cluster, topic, string_agg(config || ' ' || say_value(config, value), ', '
                ORDER BY config) AS overrides FROM configs GROUP BY ALL
        ) USING (cluster, topic) GROUP BY cluster, topic""",
    ),
    "due": (
        "cluster topic owner rule after last-write readers file",
        """WITH told AS (
            SELECT *, spec->>'expires' AS expires, (spec->>'idle_after_ms')::bigint AS idle_ms,
                expires <= strftime(read_at::timestamptz, '%Y-%m-%d') AS expired,
                epoch_ms(read_at::timestamptz) - last_write_ms >= idle_ms AND len(readers) = 0
                    AS idle
            FROM specs s JOIN topics USING (cluster, topic) JOIN readings USING (cluster)
        )
        SELECT cluster, topic, owner, if(expired, 'topic-expired', 'topic-idle'),
            if(expired, expires, idle_ms // 86400000 || 'd'),
            strftime(make_timestamp(last_write_ms * 1000), '%Y-%m-%d %H:%M UTC'),
            if(len(readers) > 0, array_to_string(readers, ', '), '–'), file || ':' || line
        FROM told WHERE expired OR idle""",
    ),
    "trend": (
        "collection clusters offline unwritable under-replicated brokers-down topics partitions"
        " size",
        " UNION ALL ".join(f"SELECT '{when}', {TREND} FROM {day}totals" for when, day in DAYS),
    ),
}

UNITS = {
    ".ms": (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000)),
    ".bytes": (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)),
}


def say_value(key: str, value: str) -> str:
    """Say the value of a config in the largest unit that is exact."""
    for suffix, units in UNITS.items():
        if key.endswith(suffix) and value.isdigit() and int(value):
            return next((f"{int(value) // n}{u}" for u, n in units if int(value) % n == 0), value)
    return value


def spell(value: object) -> str:
    return "–" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def compute_table(db: duckdb.DuckDBPyConnection, name: str) -> list[tuple[str, ...]]:
    return sorted(tuple(map(spell, row)) for row in db.execute(EXPECTED[name][1]).fetchall())


class _Reader(HTMLParser):
    """Reads a page into a tree."""

    def __init__(self) -> None:
        super().__init__()
        self.tree, self.depth = TreeBuilder(), 0

    def handle_starttag(self, tag: str, attrs: Iterable[tuple[str, str | None]]) -> None:
        self.tree.start(tag, {name: value or "" for name, value in attrs})
        self.depth += 1
        if tag in ("meta", "link"):
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        self.tree.end(tag)
        self.depth -= 1

    def handle_data(self, data: str) -> None:
        if self.depth:
            self.tree.data(data)


def read_page(html: str) -> Element:
    reader = _Reader()
    reader.feed(html)
    return reader.tree.close()


def text(node: Element) -> str:
    """Return the text of a part of the page, without its pictures."""
    inner = (("" if one.tag == "svg" else text(one)) + (one.tail or "") for one in node)
    return (node.text or "") + "".join(inner)


def words(node: Element) -> str:
    return " ".join(text(node).split())


def read_table(page: Element, name: str) -> list[dict[str, str]]:
    """Return the rows of a table, by the keys of its columns; none if the page does not show it."""
    table = page.find(f".//table[@id='{name}']")
    if table is None:
        return []
    keys = [head.attrib["data-key"] for head in table.iterfind("thead/tr/th")]
    rows = table.iterfind("tbody/tr")
    return [dict(zip(keys, map(words, row.iterfind("td")), strict=True)) for row in rows]


def show_table(page: Element, name: str, keys: str) -> list[tuple[str, ...]]:
    return sorted(tuple(row[key] for key in keys.split()) for row in read_table(page, name))


def _read_brokers(page: Element) -> Iterator[tuple[str, str, str, dict[str, str]]]:
    """Yield cluster, rack and broker of the section on brokers, and its cells by their titles."""
    for details in page.iterfind(".//section[@id='brokers']/details"):
        cluster = words(details.find("summary/b"))
        for table in details.iterfind(".//table"):
            rack = words(table.find("caption/b"))
            rows = [[words(one) for one in row] for row in table.iterfind("tr")]
            titles = [row[0] for row in rows]
            for cells in zip(*(row[1:] for row in rows), strict=True):
                yield cluster, rack, cells[0], dict(zip(titles, cells, strict=True))


def read_racks(page: Element) -> Iterator[tuple[str, str, str, str, str, str]]:
    """Yield cluster, rack, broker, leaders, replicas and size of the section on brokers."""
    for cluster, rack, broker, cells in _read_brokers(page):
        yield cluster, rack, broker, cells["leaders"], cells["replicas"], cells["size"]


def read_loads(page: Element) -> Iterator[tuple[str, int, str, str]]:
    """Yield cluster, broker, title and text of the loads of the section on brokers."""
    for cluster, _, broker, cells in _read_brokers(page):
        for title in ("on disk", "writes"):
            if title in cells:
                yield cluster, int(broker.split()[0]), title, cells[title]
