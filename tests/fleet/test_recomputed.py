"""Every finding and every figure of a page, computed again from the lake's files, without our code.

DuckDB reads the files, and SQL and plain Python count. The fleet is generated with every problem.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree.ElementTree import Element

import pytest
from recomputed_findings import (
    FACTOR,
    LOADS,
    Judge,
    add_up,
    count_takeovers,
    fill_in,
    hold,
    say_bytes,
)
from recomputed_messages import THROTTLES, Fixes, Found, rank_causes
from recomputed_page import (
    EXPECTED,
    TODAY,
    YESTERDAY,
    compute_table,
    list_rows,
    open_lake,
    read_loads,
    read_page,
    read_racks,
    read_table,
    say_value,
    show_table,
    spell,
    words,
)

from reconciler.api.planning import load_estate
from reconciler.cli.app import run
from reconciler.fleet import tables
from reconciler.fleet.audit.rules import AUDIT_RULES
from reconciler.fleet.jobs import audit_collection, plan_collection
from reconciler.fleet.lake.lake import Lake
from reconciler.fleet.page.gather import gather_page
from reconciler.fleet.page.html import render_page
from reconciler.fleet.tracing import trace_collections

if TYPE_CHECKING:
    import duckdb
    from pyspark.sql import SparkSession
    from recomputed_findings import Cluster

    Row = dict[str, Any]

pytestmark = pytest.mark.fleet

SIZE = "--clusters 3 --topics 60 --partitions 400 --seed 5"
STATE = ("readings", "brokers", "topics", "partitions", "configs", "specs")
DOCS = Path(__file__).parents[2] / "docs" / "reference" / "audit.md"


class Made(NamedTuple):
    root: Path
    html: str


def make_fleet(spark: SparkSession, directory: Path) -> Made:
    """Run every job of a night once."""
    lake, estate = directory / "lake", directory / "e"
    asked = f"--troubles --lake {lake} --estate {estate} --collection {TODAY} {SIZE}"
    assert run(["fleet", "generate", *asked.split()]) == 0
    made, loaded = Lake(spark, str(lake)), load_estate(str(estate))
    plan_collection(made, loaded, YESTERDAY, clusters=["trouble-stage-c", "trouble-unread"])
    plan_collection(made, loaded, TODAY)
    audit_collection(made, loaded)
    trace_collections(made)
    return Made(lake, render_page(gather_page(made, None, "now")))


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make_fleet(spark, tmp_path_factory.mktemp("recomputed"))


@pytest.fixture(scope="module")
def db(made: Made) -> Iterator[duckdb.DuckDBPyConnection]:
    with open_lake(made.root) as connection:
        yield connection


@pytest.fixture(scope="module")
def page(made: Made) -> Element:
    return read_page(made.html)


@pytest.fixture(scope="module")
def findings(db: duckdb.DuckDBPyConnection) -> list[Row]:
    return list_rows(db, "findings")


@pytest.fixture(scope="module")
def judge(db: duckdb.DuckDBPyConnection) -> Judge:
    now = {table: list_rows(db, table) for table in STATE}
    return Judge(now, list_rows(db, "before.partitions"), YESTERDAY)


@pytest.fixture(scope="module")
def expected(judge: Judge) -> list[Found]:
    return list(judge.find())


@pytest.fixture(scope="module")
def rules() -> Mapping[str, list[str]]:
    """Return severity, concern, and what to do, as the docs say of each rule."""
    cells = [line.strip("| \n").split(" | ") for line in DOCS.read_text().splitlines()]
    return {row[0].strip("`"): [*row[1:3], row[4]] for row in cells if len(row) == 5}


@pytest.fixture(scope="module")
def complete(
    db: duckdb.DuckDBPyConnection, expected: list[Found], rules: Mapping[str, list[str]]
) -> list[Row]:
    """Return all that a finding says, but for its evidence: by the columns of the table."""
    specs = {(row["cluster"], row["topic"]): row for row in list_rows(db, "specs")}
    kinds = {rule: (severity, concern) for rule, (severity, concern, _) in rules.items()}
    ranks, fixes = rank_causes(expected, kinds), Fixes(lambda name: list_rows(db, name))
    return [
        {
            **{key: getattr(one, key) for key in ("rule", "cluster", "topic", "subject")},
            **{key: getattr(one, key) for key in ("affected", "what", "cause", "evidence")},
            **{key: spec.get(key) for key in ("owner", "file", "line")},
            "severity": rules[one.rule][0],
            "way_out": rules[one.rule][2],
            "rank": ranks[one.cause],
            "fixed_by": fixes.find(one),
        }
        for one in expected
        for spec in [specs.get((one.cluster, one.topic), {})]
    ]


def test_a_fleet_with_troubles_breaks_every_rule(findings: list[Row]) -> None:
    assert {row["rule"] for row in findings} == set(AUDIT_RULES)


def test_every_finding_is_found_again(findings: list[Row], expected: list[Found]) -> None:
    keys = ("rule", "cluster", "topic", "subject", "affected")
    found = Counter(tuple(row[key] for key in keys) for row in findings)
    assert found == Counter(tuple(getattr(one, key) for key in keys) for one in expected)


@pytest.mark.parametrize(
    "column",
    [
        name
        for name in tables.FINDINGS.columns
        if name not in ("cluster", "topic", "subject", "rule")
    ],
)
def test_every_column_of_findings(findings: list[Row], complete: list[Row], column: str) -> None:
    keys = ("cluster", "topic", "subject", "rule")
    shown, wanted = (
        {tuple(row[key] for key in keys): row[column] for row in rows}
        for rows in (findings, complete)
    )
    assert shown == wanted


def test_findings_are_fixed_by_plans_and_by_moves(complete: list[Row]) -> None:
    assert {row["fixed_by"] for row in complete} == {None, "plan", "moves"}


def test_the_files_of_troubles_say_what_the_specs_table_says(
    made: Made, db: duckdb.DuckDBPyConnection
) -> None:
    estate = load_estate(str(made.root.parent / "e"))
    shown = {
        (row["cluster"], row["topic"]): (row["owner"], row["file"], row["line"])
        for row in list_rows(db, "specs")
    }
    assert shown == {
        (cluster, spec.name): (spec.owner, spec.location.file, spec.location.line)
        for cluster in estate.declared
        for spec in estate.topics_for(cluster)
    }


def test_the_day_before_has_the_same_clusters_and_topics(db: duckdb.DuckDBPyConnection) -> None:
    for table in (tables.READINGS, tables.TOPICS, tables.SPECS):
        before, now = (
            {tuple(row[key] for key in table.key) for row in list_rows(db, day + table.name)}
            for day in ("before.", "")
        )
        assert before == now


@pytest.mark.parametrize("name", EXPECTED)
def test_every_table_of_the_page(page: Element, db: duckdb.DuckDBPyConnection, name: str) -> None:
    wanted = compute_table(db, name)
    assert show_table(page, name, EXPECTED[name][0]) == wanted
    assert wanted, "a table without rows shows nothing"


def test_findings_on_the_page(page: Element, expected: list[Found], complete: list[Row]) -> None:
    keys = "rank severity cluster topic owner rule what evidence way_out cause fixed_by"
    wanted = []
    for one, row in zip(expected, complete, strict=True):
        key, values = one.values.get("key", ""), dict(one.values)
        values |= {n: say_value(key, values[n]) for n in ("value", "usual") if n in values}
        said = Found(one.rule, one.cluster, one.topic, one.subject, one.affected, values)
        shown = {**row, "topic": one.topic or one.subject, "what": said.what}
        pairs = sorted(said.evidence.items())
        shown["evidence"] = ", ".join(f"{name} {held}" for name, held in pairs).strip()
        wanted.append(tuple(spell(shown[key]) for key in keys.split()))
    assert show_table(page, "findings", keys) == sorted(wanted)


def test_counts_of_findings_on_the_page(page: Element, complete: list[Row]) -> None:
    for name, keys in (("rules", ("severity", "rule")), ("causes", ("rank", "cause"))):
        clusters: dict[tuple[str, ...], list[str]] = {}
        for row in complete:
            clusters.setdefault(tuple(spell(row[key]) for key in keys), []).append(row["cluster"])
        wanted = [(*key, spell(len(of)), spell(len(set(of)))) for key, of in clusters.items()]
        assert show_table(page, name, f"{' '.join(keys)} findings clusters") == sorted(wanted)
    cells = Counter((row["cluster"], row["rule"]) for row in complete)
    cells += Counter((row["cluster"], "all") for row in complete)
    shown = {
        (row["cluster"], rule): number
        for row in read_table(page, "matrix")
        for rule, number in row.items()
        if rule != "cluster" and number
    }
    assert shown == {key: spell(number) for key, number in cells.items()}


def test_next_leaders_on_the_page(page: Element, judge: Judge) -> None:
    def list_most(cluster: Cluster) -> tuple[str, ...]:
        each = [(max(of.values(), default=0), n) for _, of, n in count_takeovers(cluster)]
        return cluster.name, *(spell(number) for pair in each for number in pair)

    keys = "cluster broker broker-bound rack rack-bound"
    assert show_table(page, "next-leaders", keys) == sorted(map(list_most, judge.clusters))


def test_brokers_by_rack(page: Element, db: duckdb.DuckDBPyConnection) -> None:
    rows = db.execute(
        """SELECT cluster, coalesce(rack, 'no rack'), id || CASE WHEN NOT alive THEN ' down'
            WHEN cordoned THEN ' cordoned' ELSE '' END, leaders, replicas, say_size(bytes)
        FROM loads JOIN brokers USING (cluster, id, alive, rack)
        UNION ALL
        SELECT cluster, 'no rack', id || CASE WHEN NOT alive THEN ' down'
            WHEN cordoned THEN ' cordoned' ELSE '' END, leaders, replicas, say_size(bytes)
        FROM loads JOIN brokers USING (cluster, id, alive) WHERE loads.rack IS NULL"""
    ).fetchall()
    assert sorted(read_racks(page)) == sorted(tuple(map(spell, row)) for row in rows)
    sums = """SELECT count(*), sum(leaders)::bigint, sum(replicas)::bigint FROM loads
        GROUP BY cluster, rack"""
    wanted = Counter((spell(a), spell(b)) for _, a, b in db.execute(sums).fetchall())
    captions = page.iterfind(".//section[@id='brokers']//caption")
    numbers = [words(one).removeprefix(words(one.find("b"))).split() for one in captions]
    assert Counter((one[0], one[2]) for one in numbers) == wanted


def test_loads_of_brokers(page: Element, judge: Judge, expected: list[Found]) -> None:
    outside = {
        (one.cluster, one.values["broker"], one.rule): f"{one.values['off']} %"
        for one in expected
        if one.rule in ("broker-disk-uneven", "broker-writes-uneven")
    }
    wanted, drawn = {}, {}
    for cluster in judge.clusters:
        for title, (load, column) in zip(("on disk", "writes"), LOADS.items(), strict=True):
            held = fill_in(cluster, column)
            if held is None:
                continue
            loads, per = add_up(held), "/s" if load == "write" else ""
            drawn[cluster.name] = drawn.get(cluster.name, 0) + len(cluster.brokers)
            for row in cluster.brokers:
                rule = f"broker-{'writes' if per else load}-uneven"
                off = outside.get((cluster.name, row["id"], rule), "")
                amount = say_bytes(loads[row["id"]])
                wanted[cluster.name, row["id"], title] = f"{amount}{per}{off}"
    assert {(name, b, title): said for name, b, title, said in read_loads(page)} == wanted
    assert len(outside) > 2
    shown = {
        words(details.find("summary/b")): len(
            list(details.iterfind(".//div[@class='loads']//title"))
        )
        for details in page.iterfind(".//section[@id='brokers']/details")
    }
    assert {name: bars for name, bars in shown.items() if bars} == drawn


def test_clusters_on_the_map_and_above_their_racks(
    page: Element, db: duckdb.DuckDBPyConnection
) -> None:
    sql = "SELECT cluster, state, topics, partitions, brokers, racks"
    rows = db.execute(f"{sql} FROM states JOIN counts USING (cluster)").fetchall()
    tiles = [one.attrib["title"] for one in page.iterfind(".//ul[@class='map']/li/a")]
    assert sorted(tiles) == sorted(
        f"{row[0]}: {row[1]}, {say(row[3], 'partition')}" for row in rows
    )
    legend = page.iterfind(".//section[@id='map']/ul[@class='legend']/li")
    states = Counter(row[1] for row in rows)
    assert {words(one) for one in legend} == {f"{state} {n}" for state, n in states.items()}
    wanted = {
        (
            row[0],
            f"{row[1]} · {say(row[4], 'broker')} in {racks} · {say(row[2], 'topic')}"
            f" · {say(row[3], 'partition')}",
        )
        for row in rows
        if row[4]
        for racks in [say(row[5], "rack") if row[5] else "no racks"]
    }
    shown = set()
    for one in page.iterfind(".//section[@id='brokers']/details/summary"):
        said = words(one.find("span")).split(" · ")
        shown.add((words(one.find("b")), " · ".join(said[:4])))
    assert shown == wanted


def test_tiles_and_headlines(page: Element, db: duckdb.DuckDBPyConnection) -> None:
    tiles = {
        words(one.find("span")): (words(one.find("b")), words(one.findall("span")[1]))
        for one in page.iterfind(".//ul[@class='tiles']/li/a")
    }
    sql = """SELECT 'partitions ' || problem, sum(affected)::bigint,
            count(DISTINCT cluster) FILTER (affected > 0) FROM problems GROUP BY ALL
        UNION ALL SELECT 'brokers down', count(*), count(DISTINCT cluster) FROM brokers
        WHERE NOT alive
        UNION ALL SELECT 'log directories offline',
            coalesce(sum(len(failed_directories)), 0)::bigint,
            count(DISTINCT cluster) FILTER (len(failed_directories) > 0)
            FROM brokers WHERE alive"""
    wanted = {
        noun: (spell(number), f"on {say(clusters, 'cluster')}" if number else "none")
        for noun, number, clusters in db.execute(sql).fetchall()
    }
    (unread,) = db.execute("SELECT count(*) FROM readings WHERE status <> 'read'").fetchone()
    wanted["clusters unread"] = (spell(unread), "health unknown")
    assert tiles == wanted
    (row,) = db.execute(
        """SELECT count(*) FILTER (read), count(*), sum(topics)::bigint, sum(brokers)::bigint,
            sum(partitions)::bigint FROM states JOIN counts USING (cluster)"""
    ).fetchall()
    (plan,) = db.execute(
        """SELECT changed, refused, changed + refused, changed + refused + unchanged,
            say_share(changed + refused, changed + refused + unchanged), planned,
            (SELECT sum(unmanaged)::bigint FROM plans) FROM drift"""
    ).fetchall()
    figures = list(page.find(".//main/dl[@class='figures']"))
    assert [words(one) for one in figures] == [
        f"clusters read{row[0]}of {row[1]}",
        f"topics{spell(row[2])}on {say(row[3], 'broker')}",
        f"partitions{spell(row[4])}",
        f"changes pending{spell(plan[0])}in {say(plan[5], 'plan')}",
        f"refused{spell(plan[1])}reasons below",
        f"drift{plan[4]}{spell(plan[2])} of {say(plan[3], 'topic')}",
        f"unmanaged{spell(plan[6])}live, without a spec",
    ]


def test_charts(page: Element, db: duckdb.DuckDBPyConnection) -> None:
    titles, totals = set(), []
    for when, day in (("2026-11-21", ""), ("2026-11-20", "before.")):
        changed, refused, unchanged, _, unplanned = list_rows(db, f"{day}drift")[0].values()
        title = f"{when} 03:00 UTC: {changed:,} to change, {refused:,} refused,"
        title += f" {unchanged:,} as specified"
        titles.add(f"{title}; {say(unplanned, 'cluster')} not planned" if unplanned else title)
        totals.append(changed + refused)
    chart = page.find(".//section[@id='drift']/div[@class='chart']")
    assert {one.text for one in chart.iter("title")} == titles
    said = f"{say(totals[0], 'topic')} not as specified at the last of 2 collections;"
    said += f" {totals[1]:,} at the first, {max(totals):,} at most"
    assert said in words(page.find(".//section[@id='drift']/p"))
    assert said in chart.find("svg").attrib["aria-label"]
    trends = page.iterfind(".//section[@id='trends']/dl/div")
    shown = {words(one.find("dt")): words(one.find("dd/b")) for one in trends}
    sql = "SELECT offline, unwritable, short, down, topics, partitions, say_size(bytes) FROM totals"
    nouns = ("offline", "below min.insync.replicas", "under-replicated", "brokers down")
    nouns += ("topics", "partitions", "bytes")
    (row,) = db.execute(sql).fetchall()
    assert shown == {noun: spell(number) for noun, number in zip(nouns, row, strict=True)}


def test_what_a_topic_differs_in(page: Element) -> None:
    keys = ("cluster", "topic")
    changes = {tuple(row[k] for k in keys): row["change"] for row in read_table(page, "changes")}
    for row in read_table(page, "inventory"):
        assert row["differs"] == changes.get(tuple(row[k] for k in keys), "")
        assert (row["changed"], row["event"]) == ("–", "–"), "both days have the same topics"


def test_plans_of_the_lake(db: duckdb.DuckDBPyConnection, judge: Judge) -> None:
    plans = {row["cluster"]: row for row in list_rows(db, "plans")}
    changes = {(row["cluster"], row["topic"]): row["action"] for row in list_rows(db, "wanted")}
    wanted = {}
    for cluster in judge.clusters:
        users, actions = cluster.users, Counter[str]()
        for topic in cluster.specs:
            action = find_action(cluster, topic)
            actions[action] += 1
            if action:
                wanted[cluster.name, topic] = action
        plan = plans[cluster.name]
        shown = [plan[name] for name in ("changed", "refused", "unchanged", "unmanaged")]
        changed = actions["create"] + actions["update"]
        unmanaged = len(users.keys() - cluster.specs.keys())
        assert shown == [changed, actions["refuse"], actions[""], unmanaged], cluster.name
        held = hold(cluster, (row for rows in users.values() for row in rows))
        skews = [plan[f"{name}_skew_before"] for name in ("leader", "replica")]
        assert skews == [max(each) - min(each) for each in held], cluster.name
    assert changes == wanted


def find_action(cluster: Cluster, topic: str) -> str:
    spec, rows = cluster.specs[topic], cluster.users.get(topic)
    if rows is None:
        return "create"
    factor = spec["replication_factor"] or FACTOR.get(cluster.name, 3)
    if len(rows) > spec["partitions"] or {len(row["replicas"]) for row in rows} != {factor}:
        return "refuse"
    config = {k: held for k, held in cluster.configs[topic].items() if k not in THROTTLES}
    same = len(rows) == spec["partitions"] and config == dict(spec["config"])
    return "" if same else "update"


def say(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + "s" * (number != 1)
