"""Every finding of an audit, computed again from the lake's files, without our code.

DuckDB reads the files, and plain Python counts. The fleet is generated with every problem.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from itertools import chain
from math import ceil, floor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from reconciler.api import load_estate
from reconciler.cli import main
from reconciler.fleet import tables
from reconciler.fleet.audit import AUDIT_RULES
from reconciler.fleet.jobs import audit_collection
from reconciler.fleet.lake import Lake

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql import SparkSession

    Found = tuple[str, str, str | None, str, int]
    Row = dict[str, Any]

pytestmark = pytest.mark.fleet

SIZE = "--clusters 3 --topics 60 --partitions 400 --seed 5"
YESTERDAY, TODAY = "20261120T030000Z", "20261121T030000Z"
STATE = ("readings", "brokers", "topics", "partitions", "configs", "specs")
IN_SYNC = "min.insync.replicas"
THROTTLES = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")

# As clusters.yaml has them: the others inherit three replicas and have no policy.
POLICY = {"trouble-topics": 2}
FACTOR = {"trouble-piled": 2, "trouble-tilted": 2, "trouble-ring": 2, "trouble-full": 1}
DRAINED = {"trouble-moves": {4}}
SECOND_STAGE = {"trouble-stage-a", "trouble-stage-b", "trouble-stage-c"}


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    directory = tmp_path_factory.mktemp("recomputed")
    lake, estate = str(directory / "lake"), directory / "e"
    asked = f"--troubles --lake {lake} --estate {estate} --collection {TODAY} {SIZE}"
    with pytest.raises(SystemExit) as ended:
        main(["fleet", "generate", *asked.split()])
    assert not ended.value.code
    made = Lake(spark, lake)
    audit_collection(made, load_estate(estate))
    return made


def read_rows(lake: Lake, collection: str, table: str, what: str = "state") -> list[Row]:
    """Read a table of a collection, by the files of its published attempt."""
    published = [json.loads(file.read_text()) for file in Path(lake.root, "collections").iterdir()]
    (attempt,) = (
        one["attempt"]
        for one in published
        if (one["collection"], one["what"]) == (collection, what)
    )
    with duckdb.connect() as db:
        files = f"{lake.root}/{table}/attempt={attempt}/*.parquet"
        rows = db.execute(f"SELECT * FROM read_parquet('{files}')")
        names = [column[0] for column in rows.description]
        return [dict(zip(names, row, strict=True)) for row in rows.fetchall()]


@pytest.fixture(scope="module")
def findings(lake: Lake) -> list[Row]:
    return read_rows(lake, TODAY, "findings", "audit")


@pytest.fixture(scope="module")
def expected(lake: Lake) -> Counter[Found]:
    now = {table: read_rows(lake, TODAY, table) for table in STATE}
    return Counter(Judge(now, read_rows(lake, YESTERDAY, "partitions")).find())


def test_a_fleet_with_troubles_breaks_every_rule(findings: list[Row]) -> None:
    assert {row["rule"] for row in findings} == set(AUDIT_RULES)


def test_every_finding_is_found_again(findings: list[Row], expected: Counter[Found]) -> None:
    keys = ("rule", "cluster", "topic", "subject", "affected")
    found = Counter(tuple(row[key] for key in keys) for row in findings)
    assert found == expected


def test_the_files_of_troubles_say_what_the_specs_table_says(lake: Lake) -> None:
    estate = load_estate(Path(lake.root).parent / "e")
    shown = {
        (row["cluster"], row["topic"]): (row["owner"], row["file"], row["line"])
        for row in read_rows(lake, TODAY, "specs")
    }
    assert shown == {
        (cluster, spec.name): (spec.owner, spec.location.file, spec.location.line)
        for cluster in estate.declared
        for spec in estate.topics_for(cluster)
    }


def test_the_day_before_has_the_same_clusters_and_topics(lake: Lake) -> None:
    for table in (tables.READINGS, tables.TOPICS, tables.SPECS):
        before, now = (
            {tuple(row[key] for key in table.key) for row in read_rows(lake, day, table.name)}
            for day in (YESTERDAY, TODAY)
        )
        assert before == now


def beyond(part: float, percent: int, whole: float) -> bool:
    return part * 100 > percent * whole


def count_misplaced(leaders: list[int]) -> int:
    """Count the leaders that must move so that no two brokers differ by more than one."""
    even, extra = divmod(sum(leaders), len(leaders))
    ranked = sorted(leaders, reverse=True)
    wanted = [even + 1] * extra + [even] * (len(leaders) - extra)
    return sum(max(has - wants, 0) for has, wants in zip(ranked, wanted, strict=True))


def rise(part: int, brokers: int) -> int:
    return ceil(part / brokers) if brokers > 0 else 0


class Cluster:
    """A cluster that was read."""

    def __init__(self, reading: Row, now: Mapping[str, list[Row]]) -> None:
        self.name = name = reading["cluster"]
        self.reading, self.defaults = reading, reading["defaults"]
        self.drained = DRAINED.get(name, set())
        self.brokers = [row for row in now["brokers"] if row["cluster"] == name]
        self.able = [
            row["id"]
            for row in self.brokers
            if row["alive"] and not row["cordoned"] and row["id"] not in self.drained
        ]
        self.alive = {row["id"] for row in self.brokers if row["alive"]}
        placed = (row for row in self.brokers if row["alive"] or row["rack"] is not None)
        self.rack_of = {row["id"]: row["rack"] or "" for row in placed}
        self.room = Counter(self.rack_of[broker] for broker in self.able)
        self.specs = {row["topic"]: row for row in now["specs"] if row["cluster"] == name}
        self.configs: dict[str, dict[str, str]] = defaultdict(dict)
        for row in now["configs"]:
            if row["cluster"] == name:
                self.configs[row["topic"]][row["config"]] = row["value"] or ""
        self.rows: dict[str, list[Row]] = defaultdict(list)
        for row in now["partitions"]:
            if row["cluster"] == name:
                self.rows[row["topic"]].append(row)
        topics = [row for row in now["topics"] if row["cluster"] == name]
        internal = {row["topic"]: row["internal"] for row in topics}
        self.users = {topic: rows for topic, rows in self.rows.items() if not internal[topic]}

    def in_force(self, topic: str, key: str) -> str | None:
        return self.configs[topic].get(key, self.defaults.get(key))

    def is_crowded(self, replicas: list[int]) -> bool:
        """Return whether replicas could be spread better over the racks."""
        known = [self.rack_of[broker] for broker in replicas if broker in self.rack_of]
        racks = set(self.rack_of.values())
        if len(racks) < 2:
            return False
        held = Counter(dict.fromkeys(racks, 0))
        held.update(known)
        taken = Counter(self.rack_of[broker] for broker in replicas if broker in self.able)
        levels = sorted(held[rack] for rack in racks if taken[rack] < self.room[rack])
        for _ in range(len(replicas) - len(known) if levels else 0):
            levels[0] += 1
            levels.sort()
        return bool(levels) and max(held.values()) - levels[0] > 1


class Judge:
    """Computes the findings of a collection."""

    def __init__(self, now: Mapping[str, list[Row]], before: list[Row]) -> None:
        self.now, self.before = now, before
        read = [row for row in now["readings"] if row["status"] == "read"]
        self.clusters = [Cluster(row, now) for row in read]

    def find(self) -> Iterator[Found]:
        for row in self.now["readings"]:
            if row["status"] != "read":
                yield "cluster-unread", row["cluster"], None, row["cluster"], 1
        for cluster in self.clusters:
            for topic in cluster.rows:
                for rule, affected in chain(
                    self.judge_health(cluster, topic),
                    judge_safety(cluster, topic) if topic in cluster.users else (),
                    judge_evenness(cluster, topic) if topic in cluster.users else (),
                    self.judge_growth(cluster, topic) if topic in cluster.users else (),
                ):
                    yield rule, cluster.name, topic, topic, affected
            for rule, subject, affected in chain(
                judge_brokers(cluster), judge_cluster(cluster), judge_takeovers(cluster)
            ):
                yield rule, cluster.name, None, str(subject), affected
            yield from judge_names(cluster)
        yield from self.compare_by_cluster()
        yield from self.compare_by_owner()
        yield from self.find_missing()

    def judge_health(self, cluster: Cluster, topic: str) -> Iterator[tuple[str, int]]:
        rows = cluster.rows[topic]
        needed = int(cluster.in_force(topic, IN_SYNC) or 1)
        dark = [row for row in rows if row["leader"] is not None and row["leader"] < 0]
        still = [row for row in rows if not row["moving"]]
        short = [row for row in still if len(row["in_sync"]) < len(row["replicas"])]
        stopped = [row for row in short if row not in dark and len(row["in_sync"]) < needed]
        astray = [
            row
            for row in still
            if row["leader"] is not None and row["leader"] >= 0
            if row["leader"] != row["replicas"][0]
        ]
        moving = [row for row in rows if row["moving"]]
        where = ("cluster", "topic", "partition", "replicas", "moving")
        then = [[row[key] for key in where] for row in self.before if row["topic"] == topic]
        stalled = [row for row in moving if [row[key] for key in where] in then]
        crowded = [row for row in rows if cluster.is_crowded(row["replicas"])]
        for rule, found in (
            ("partition-offline", dark),
            ("partition-unwritable", stopped),
            ("partition-under-replicated", short),
            ("partition-moving", moving),
            ("leader-not-preferred", astray),
            ("move-stalled", stalled),
            ("rack-violation", crowded),
        ):
            if found:
                yield rule, len(found)
        factors = {len(row["replicas"]) for row in rows}
        if len(factors) > 1 and not moving:
            yield "replication-uneven", len(rows)
        if not moving and any(cluster.configs[topic].get(key) for key in THROTTLES):
            yield "throttle-left", len(rows)

    def judge_growth(self, cluster: Cluster, topic: str) -> Iterator[tuple[str, int]]:
        """Yield a topic whose growth of a day, thirty times over, fills the disks of brokers."""
        free = {
            row["id"]: sum(one["usable_bytes"] for one in row["log_directories"])
            for row in cluster.brokers
            if row["log_directories"] is not None
        }
        size = sum(row["size_bytes"] or 0 for row in cluster.rows[topic])
        then = sum(
            row["size_bytes"] or 0
            for row in self.before
            if (row["cluster"], row["topic"]) == (cluster.name, topic)
        )
        held: Counter[int] = Counter()
        for row in cluster.rows[topic]:
            held.update(dict.fromkeys(row["replicas"], row["size_bytes"] or 0))
        growth = max(size - then, 0) / size if size else 0
        full = [b for b, has in held.items() if b in free and floor(has * growth * 30) > free[b]]
        if full:
            yield "topic-fills-disk", len(full)

    def compare_by_cluster(self) -> Iterator[Found]:
        names = {topic for cluster in self.clusters for topic in cluster.users}
        for topic in names:
            peers = [(cluster, topic) for cluster in self.clusters if topic in cluster.users]
            for cluster, _, key in find_unusual(peers, 3, 60):
                spec = cluster.specs.get(topic)
                wished = spec and dict(spec["config"]).get(key)
                if spec is None or cluster.configs[topic].get(key) != wished:
                    yield "config-differs-by-cluster", cluster.name, topic, key, 1

    def compare_by_owner(self) -> Iterator[Found]:
        for cluster in self.clusters:
            by_owner: dict[str, list[tuple[Cluster, str]]] = defaultdict(list)
            for topic in cluster.users:
                if topic in cluster.specs and cluster.specs[topic]["owner"] is not None:
                    by_owner[cluster.specs[topic]["owner"]].append((cluster, topic))
            for peers in by_owner.values():
                for _, topic, key in find_unusual(peers, 5, 80):
                    yield "config-differs-by-owner", cluster.name, topic, key, 1

    def find_missing(self) -> Iterator[Found]:
        for second in (True, False):
            stage = [one for one in self.clusters if (one.name in SECOND_STAGE) == second]
            for topic in {topic for cluster in stage for topic in cluster.users}:
                having = [cluster for cluster in stage if topic in cluster.users]
                written = any(topic in cluster.specs for cluster in having)
                if len(stage) < 3 or len(having) * 100 < 60 * len(stage):
                    continue
                for cluster in stage:
                    if cluster not in having and (not written or topic in cluster.specs):
                        yield "topic-missing-in-stage", cluster.name, topic, topic, len(having)


def find_unusual(
    peers: list[tuple[Cluster, str]], fewest: int, percent: int
) -> Iterator[tuple[Cluster, str, str]]:
    """Yield what has another value in force than so many percent of its peers."""
    for key in {key for cluster, topic in peers for key in cluster.configs[topic]}:
        values = [(cluster, topic, cluster.in_force(topic, key)) for cluster, topic in peers]
        known = [one for one in values if one[2] is not None]
        votes = Counter(value for _, _, value in known)
        usual, agreeing = max(votes.items(), key=lambda vote: (vote[1], vote[0]))
        if len(known) >= fewest and agreeing * 100 >= percent * len(known):
            for cluster, topic, value in known:
                if value != usual:
                    yield cluster, topic, key


def judge_safety(cluster: Cluster, topic: str) -> Iterator[tuple[str, int]]:
    rows, spec = cluster.rows[topic], cluster.specs.get(topic)
    factors = [len(row["replicas"]) for row in rows]
    least, count = min(factors), len(rows)
    needed = int(cluster.in_force(topic, IN_SYNC) or 1)
    wished = spec["replication_factor"] if spec else None
    if least < POLICY.get(cluster.name, 0):
        yield "replication-below-policy", count
    elif least < (wished or FACTOR.get(cluster.name, 3)):
        yield "replication-below-default", count
    if least == 1 and len(cluster.able) > 1:
        yield "replication-single", count
    if least > 1 and needed >= least:
        yield "min-in-sync-equals-replication", count
    if least > 2 and needed == 1:
        yield "min-in-sync-one", count
    if least > 1 and cluster.in_force(topic, "unclean.leader.election.enable") == "true":
        yield "unclean-election-on", count
    if (wished or max(factors)) > len(cluster.able):
        yield "replication-above-brokers", count
    if spec is None:
        yield "topic-unmanaged", count
    elif spec["owner"] is None:
        yield "topic-unowned", count


def hold(cluster: Cluster, rows: Iterable[Row]) -> tuple[list[int], list[int]]:
    """Count preferred leaders and replicas of the brokers that take new replicas."""
    rows = list(rows)
    leaders = Counter(row["replicas"][0] for row in rows)
    replicas = Counter(broker for row in rows for broker in row["replicas"])
    return [leaders[b] for b in cluster.able], [replicas[b] for b in cluster.able]


def judge_evenness(cluster: Cluster, topic: str) -> Iterator[tuple[str, int]]:
    rows = cluster.rows[topic]
    leaders, replicas = hold(cluster, rows)
    misplaced, skew = count_misplaced(leaders), max(replicas) - min(replicas)
    if beyond(misplaced, 10, len(rows)):
        yield "topic-leaders-uneven", misplaced
    every = sum(len(row["replicas"]) for row in rows)
    if skew > 1 and beyond(skew * len(cluster.able), 20, every):
        yield "topic-replicas-uneven", skew


def judge_brokers(cluster: Cluster) -> Iterator[tuple[str, Any, int]]:
    rows = chain.from_iterable(cluster.rows.values())
    held = Counter(broker for row in rows for broker in row["replicas"])
    cordoned = {row["id"] for row in cluster.brokers if row["cordoned"]}
    for broker in {*held, *(row["id"] for row in cluster.brokers)}:
        if held[broker] and broker not in cluster.alive:
            yield "broker-gone", broker, held[broker]
        if held[broker] and broker in cluster.drained:
            yield "drain-unfinished", broker, held[broker]
        if broker in cordoned & cluster.alive - cluster.drained:
            yield "cordon-left", broker, held[broker]
        if held[broker] > 4_000:
            yield "broker-partitions-many", broker, held[broker] - 4_000
    for row in cluster.brokers:
        for one in row["log_directories"] or ():
            if one["replicas"] > 2_000:
                where = f"{row['id']}:{one['path']}"
                yield "directory-partitions-many", where, one["replicas"] - 2_000


def judge_cluster(cluster: Cluster) -> Iterator[tuple[str, Any, int]]:
    racks = list(cluster.rack_of.values())
    if 0 < racks.count("") < len(racks):
        yield "rack-unknown", cluster.name, racks.count("")
    if len(racks) > 1 and not any(racks):
        yield "rack-none", cluster.name, len(racks)
    rates = cluster.reading["throttle_rates"] or ()
    moving = any(row["moving"] for row in chain.from_iterable(cluster.rows.values()))
    if rates and not moving:
        yield "throttle-rate-left", cluster.name, len({rate["broker"] for rate in rates})
    rows = list(chain.from_iterable(cluster.users.values()))
    leaders, replicas = hold(cluster, rows)
    if len(rows) >= 10 * len(cluster.able):
        misplaced, skew = count_misplaced(leaders), max(replicas) - min(replicas)
        if beyond(misplaced, 5, len(rows)):
            yield "leaders-uneven", cluster.name, misplaced
        if skew > 1 and beyond(skew, 20, sum(replicas) / len(replicas)):
            yield "replicas-uneven", cluster.name, skew
    named = [(cluster.rack_of[b], led) for b, led in zip(cluster.able, leaders, strict=True)]
    each = sum(led for rack, led in named if rack) / max(sum(1 for rack, _ in named if rack), 1)
    for rack in {rack for rack, _ in named if rack}:
        part, led = each * cluster.room[rack], sum(n for where, n in named if where == rack)
        if each >= 10 and beyond(abs(led - part), 20, part):
            yield "racks-uneven", rack, int(abs(led - part))


def judge_takeovers(cluster: Cluster) -> Iterator[tuple[str, Any, int]]:
    """Yield the most leaders that one broker takes over beyond the least possible, if too many."""
    rows = list(chain.from_iterable(cluster.users.values()))
    pairs: Counter[tuple[int, int]] = Counter()
    by_rack: Counter[tuple[str, int]] = Counter()
    apart: Counter[int] = Counter()
    for row in rows:
        living = [broker for broker in row["replicas"] if broker in cluster.alive]
        if not living or living[0] not in cluster.able:
            continue
        leader, *others = living
        rack = cluster.rack_of[leader]
        outside = [broker for broker in others if cluster.rack_of[broker] != rack]
        if others and others[0] in cluster.able:
            pairs[leader, others[0]] += 1
            apart[leader] += len(outside) == len(others)
        if rack and outside and outside[0] in cluster.able:
            by_rack[rack, outside[0]] += 1
    able = len(cluster.able)
    lost: Counter[Any] = Counter()
    for (leader, _), count in pairs.items():
        lost[leader] += count
    bounds = [
        max(rise(count, able - 1), rise(apart[b], able - cluster.room[cluster.rack_of[b]]))
        for b, count in lost.items()
    ]
    racks: Counter[str] = Counter()
    for (rack, _), count in by_rack.items():
        racks[rack] += count
    rack_bounds = [rise(count, able - cluster.room[rack]) for rack, count in racks.items()]
    for rule, taken, least in (
        ("next-leaders-uneven", pairs, bounds),
        ("rack-next-leaders-uneven", by_rack, rack_bounds),
    ):
        over = max(taken.values(), default=0) - max(least, default=0)
        if len(rows) >= 10 * able and beyond(over * able, 20, len(rows)):
            yield rule, cluster.name, over


def judge_names(cluster: Cluster) -> Iterator[Found]:
    alike = Counter(topic.replace(".", "_") for topic in cluster.users)
    for topic in cluster.users:
        others = alike[topic.replace(".", "_")] - 1
        if others:
            yield "name-collision", cluster.name, topic, topic, others
