"""What an audit says of a small fleet: one fault a line, beside the finding that it is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from shorthand import HERE, brokers, cluster, spec, topic
from small_fleets import make_specs, make_state

from reconciler.api.planning import load_estate
from reconciler.diff.refusals import BY_SERVICE
from reconciler.fleet import tables
from reconciler.fleet.audit.audit import Earlier, audit_fleet
from reconciler.fleet.audit.causes import Pending
from reconciler.fleet.audit.rules import AUDIT_RULES, BY_MOVES, SEVERITIES, Concern
from reconciler.fleet.audit.topics import make_expectations
from reconciler.fleet.history.events import EVENT_KINDS
from reconciler.fleet.rows import make_table
from reconciler.model.cluster import (
    Broker,
    LogDirectory,
    RateSource,
    ThrottleRate,
    ThrottleSide,
    TopicSpec,
    TopicUsage,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

    from reconciler.fleet.tables import LakeTable

pytestmark = pytest.mark.fleet

CLUSTERS = """
version: 1
defaults: {replication_factor: 3}
policy:
  replication_factor: {min: 2}
  exempt: {policy-replication: [spared], topic-idle: ["*.dlq"], topic-expired: ["*.dlq"]}
clusters:
  prod: {ignore: ["ignored*"]}
  lost: {}
  flat: {owns: [ours.*]}
  piled: {placement: broker, defaults: {replication_factor: 2}}
  tilted: {defaults: {replication_factor: 2}}
  leant: {defaults: {replication_factor: 2}, balance: {by: [disk]}}
  hot: {}
  loaded:
    defaults: {replication_factor: 2}
    balance: {by: [disk, write], within: 20%}
    exclude_brokers: [5]
  ring: {defaults: {replication_factor: 2}}
  eu: {}
  us: {}
  eu-2: {}
  us-2: {}
  due: {}
  moved: {moves: {allow: [drain], rate: 1MiB}, drain_brokers: [4]}
  full: {defaults: {replication_factor: 1}, policy: {replication_factor: {min: 1}}}
stages:
- [prod, lost, flat, piled, tilted, leant, hot, loaded, ring, due, moved, full]
- [eu, us, eu-2, us-2]
audit: {partitions_per_broker: 90, partitions_per_directory: 50}
"""
ACB = brokers("a", "b", "c")
EVEN = "1,2,3 2,3,1 3,1,2"
FULL = ((1, 2, 3), (2, 3, 1), (3, 1, 2))
LEAD = (1, 2, 3)
MARKED = (ThrottleSide.LEADER, 2**20), (ThrottleSide.FOLLOWER, 2**20 + 1)
"""A default rate as a run of moves sets it."""
STANDING = tuple(ThrottleRate(1, side, 2**20, RateSource.CLUSTER_DEFAULT) for side in ThrottleSide)
"""A default rate that somebody set to stay."""
OWN = ThrottleRate(2, ThrottleSide.LEADER, 2**20, RateSource.BROKER)


def well(name: str, assignment: str = EVEN, **found: Any) -> Any:
    """Return a topic with nothing wrong but for what is said."""
    known = {"in_sync": FULL, "leaders": LEAD} if assignment == EVEN else {}
    return topic(assignment, name, **{**known, **found})


SAFE = {"retention.ms": "7", "min.insync.replicas": "2"}
READ_MS = 1_795_316_400_000
DAY_MS = 86_400_000
OLD_MS = READ_MS - 90 * DAY_MS
DATED, PASSED = {"expires": "2026-11-23"}, {"expires": "2026-11-22"}
IDLE = {"idle_after_ms": 90 * DAY_MS}
DUE: dict[str, tuple[dict[str, Any], tuple[str, ...] | None, int | None, str]] = {
    # its spec; active groups, None if its use was not asked for; last write; why it is unknown
    "expired": (PASSED, ("a", "b", "c", "d"), READ_MS, ""),
    "expired-empty": (PASSED | IDLE, (), None, ""),
    "expired-unasked": (PASSED, None, None, ""),
    "expired-hidden": (PASSED, (), OLD_MS, "consumer groups are not visible"),
    "expired-idle": (PASSED | IDLE, (), OLD_MS, ""),
    "expired.dlq": (PASSED, (), OLD_MS, ""),
    "expires-tomorrow": (DATED, (), OLD_MS, ""),
    "idle": (IDLE, (), OLD_MS, ""),
    "idle.dlq": (IDLE, (), OLD_MS, ""),
    "idle-soon": (IDLE, (), OLD_MS + 1, ""),
    "idle-but-read": (IDLE, ("a",), OLD_MS, ""),
    "idle-empty": (IDLE, (), None, ""),
    "idle-hidden": (IDLE, (), OLD_MS, "consumer groups are not visible"),
    "idle-unasked": (IDLE, None, None, ""),
    "idle-on-request": (IDLE | {"absent": True}, (), OLD_MS, ""),
}
PEERS = {
    "eu": "tuned shared local",
    "us": "tuned shared local",
    "eu-2": "tuned shared local",
    "us-2": "tuned",
}

STATES = {
    "prod": cluster(
        well("fine", f"{EVEN} {EVEN}", in_sync=FULL * 2, leaders=LEAD * 2),
        well("offline", leaders=(1, -1, 3)),
        well("unwritable", in_sync=((1,), (2, 3, 1), (3, 1, 2))),
        well("lagging", in_sync=((1, 2), (2, 3, 1), (3, 1, 2))),
        well("moving", in_sync=((1, 2), (2, 3, 1), (3, 1, 2)), reassigning=frozenset({0, 1})),
        well("astray", leaders=(2, 2, 3)),
        well("single", "1 2 3"),
        well("spared", "1,2 2,3 3,1"),
        well("thin", "1,2 2,3 3,1"),
        well("mixed", "1,2,3 2,3,1 3,1,2 1,2"),
        well("brittle", config={"min.insync.replicas": "3"}),
        well("lopsided", "1,2,3 1,3,2 1,2,3"),
        well("heavy", "1,2 1,3 2,1 3,1 1,2 2,1"),
        well("crash.ed"),
        well("crash_ed"),
        well("stranger"),
        well("ignored-by-all"),
        # Its place is Kafka's own affair, its health is not.
        well("__internal", "1,2,3 1,3,2 1,2,3", internal=True, in_sync=((1, 2), *FULL[1:])),
        well("__alone", "1,2 2,3 3,1", internal=True),
        well("tuned", config={"retention.ms": "5"}),
        well("careless", config={"min.insync.replicas": "1"}),
        well("unclean", config={"unclean.leader.election.enable": "true"}),
        well("wished-by-all"),
        nodes=ACB,
        defaults={"min.insync.replicas": "2", "retention.ms": "7"},
    ),
    "lost": "no answer within 10 s",
    "flat": cluster(
        topic("1,2,3 4,5,6", "ours.crammed"),
        topic("1,2,3 4,5,6", "ours.flexible"),
        topic("1,2,4 4,5,1", "theirs.good"),
        nodes=(*brokers("a", "a", "a", "b", "b", "b"), Broker(7)),
        defaults=SAFE,
    ),
    "piled": cluster(
        topic(tuple((1, 9) for _ in range(30)), "all-on-one"),
        nodes=(*brokers(None, None), Broker(9, alive=False)),
    ),
    **{
        # Only us-2 lacks "shared"; its file does not name us-2 for "local".
        name: cluster(*map(well, names.split()), nodes=ACB, defaults=SAFE)
        for name, names in PEERS.items()
    },
    # Broker 1 has 3 MB free. "kept" may grow to 4 MB, "grown" did since yesterday, "old" did not.
    "full": replace(
        cluster(
            topic("1", "kept", size_bytes=(10**6,), config={"retention.bytes": "5000000"}),
            topic("1", "grown", size_bytes=(2 * 10**6,)),
            topic(((1,),) * 100, "many"),
            topic("1", "old", size_bytes=(10**6,), config={"retention.bytes": "5000000"}),
            nodes=brokers("a"),
        ),
        directories={
            1: (
                LogDirectory("/a", 10**7, 10**6, 51),
                LogDirectory("/b", 10**7, 2 * 10**6, 20),
                LogDirectory("/c", None, None, online=False),
            )
        },
    ),
    "tilted": replace(
        cluster(
            topic(tuple((1 + n % 2, 3) for n in range(60)), "left"), nodes=brokers("a", "a", "b")
        ),
        throttle_rates=STANDING,
    ),
    # As uneven as "tilted", but balanced by bytes, which are not known.
    "leant": cluster(
        topic(tuple((1 + n % 2, 3) for n in range(60)), "left"), nodes=brokers("a", "a", "b")
    ),
    # A partition of 10 GiB is uneven from 1 GiB on, and none is that is too small or unknown.
    "hot": cluster(
        well("hot", size_bytes=(2**31, 10 * 2**30, 2**30)),
        well("emptied", size_bytes=(0, 2**30, 2**30)),
        well("near", size_bytes=(2**30, 10 * 2**30 - 1, -1)),
        well("small", size_bytes=(0, 2**30 - 1, 1)),
        well("__internal", size_bytes=(0, 2**31, 1), internal=True),
        nodes=ACB,
        defaults=SAFE,
    ),
    # Brokers 1 to 4 hold 60, 20, 50 and 50 GiB, where 45 are their share. What is written to "kept"
    # is not known: 20 B/s, the median. Then they take 20, 60, 60 and 60, where 50 are their share.
    "loaded": replace(
        cluster(
            topic(
                "1,3 2,4 4,1 3,2",
                "stored",
                size_bytes=tuple(size * 2**30 for size in (30, 10, 30, 10)),
                write_bytes_per_s=(10, 30, 10, 30),
            ),
            topic("3,5 4,5", "kept", size_bytes=(10 * 2**30, 10 * 2**30)),
            nodes=brokers("a", "a", "b", "b", "a"),
        ),
        directories={
            broker: tuple(
                LogDirectory(path, 1000, 1000 - used) for path, used in zip("ab", held, strict=True)
            )
            for broker, held in {
                1: (400, 400),
                2: (450, 350),
                3: (200, 600),
                4: (500, 500),
                5: (0, 900),
            }.items()
        },
    ),
    # Read at three on the 22nd of November 2026.
    "due": replace(
        # In turns, so that no broker takes over all that another led.
        cluster(
            *(well(name, (EVEN, "1,3,2 2,1,3 3,2,1")[n % 2]) for n, name in enumerate(DUE)),
            nodes=ACB,
            defaults=SAFE,
        ),
        usage={
            name: TopicUsage(READ_MS, groups, newest_ms=newest, unseen=unseen)
            for name, (_, groups, newest, unseen) in DUE.items()
            if groups is not None
        },
    ),
    # Broker 4 is to be empty, nobody drains broker 5, and a run of moves did not tidy up.
    "moved": replace(
        cluster(
            well(
                "held", "1,2,3 2,3,1 3,1,4", in_sync=((1, 2, 3), (2, 3, 1), (3, 1, 4)), leaders=LEAD
            ),
            well("slow", config={"leader.replication.throttled.replicas": "0:1,0:2"}),
            nodes=(*brokers("a", "b", "c", "b"), Broker(5, "c", cordoned=True)),
            defaults=SAFE,
        ),
        throttle_rates=(
            *(
                ThrottleRate(b, *rate, RateSource.CLUSTER_DEFAULT)
                for b in (1, 2)
                for rate in MARKED
            ),
            ThrottleRate(3, ThrottleSide.LEADER, 2**10, RateSource.STATIC),
        ),
    ),
    # The next broker takes over all that the lost one led: 10 leaders, where 4 are possible.
    "ring": replace(
        cluster(
            topic(tuple((n % 4 + 1, (n + 1) % 4 + 1) for n in range(40)), "round"),
            nodes=brokers("a", "b", "c", "d"),
        ),
        throttle_rates=(*STANDING, OWN),
    ),
}

MANAGED = {
    "prod": (
        "fine offline unwritable lagging moving astray single spared thin mixed brittle lopsided"
        " heavy crash.ed crash_ed tuned careless unclean wished-by-all"
    ),
    "flat": "ours.crammed ours.flexible",
    "piled": "all-on-one",
    "tilted": "left",
    "leant": "left",
    "hot": "hot emptied near small",
    "loaded": "stored kept",
    "ring": "round",
    "moved": "held slow",
    "full": "kept grown old many",
    "due": " ".join(DUE),
    **PEERS,
    "us-2": "tuned shared",
}

EXPECTED = {
    # cluster, topic or subject, rule, affected
    ("lost", "lost", "cluster-unread", 1),
    ("prod", "offline", "partition-offline", 1),
    ("prod", "unwritable", "partition-unwritable", 1),
    ("prod", "unwritable", "partition-under-replicated", 1),
    ("prod", "lagging", "partition-under-replicated", 1),
    ("prod", "__internal", "partition-under-replicated", 1),
    ("prod", "moving", "partition-moving", 2),
    ("prod", "moving", "move-stalled", 1),
    ("moved", "4", "drain-unfinished", 1),
    ("moved", "5", "cordon-left", 0),
    ("moved", "slow", "throttle-left", 3),
    ("moved", "moved", "throttle-rate-left", 2),
    ("ring", "ring", "throttle-rate-left", 1),
    ("prod", "astray", "leader-not-preferred", 1),
    ("prod", "single", "replication-below-policy", 3),
    ("prod", "single", "replication-single", 3),
    ("prod", "spared", "replication-below-default", 3),
    ("prod", "spared", "min-in-sync-equals-replication", 3),
    ("prod", "thin", "replication-below-default", 3),
    ("prod", "thin", "min-in-sync-equals-replication", 3),
    ("prod", "heavy", "replication-below-default", 6),
    ("prod", "heavy", "min-in-sync-equals-replication", 6),
    ("prod", "heavy", "topic-leaders-uneven", 1),
    ("prod", "heavy", "topic-replicas-uneven", 4),
    ("prod", "__alone", "internal-replication-low", 3),
    ("prod", "mixed", "replication-uneven", 4),
    ("prod", "mixed", "replication-below-default", 4),
    ("prod", "mixed", "min-in-sync-equals-replication", 4),
    ("prod", "brittle", "min-in-sync-equals-replication", 3),
    ("prod", "brittle", "config-differs-by-owner", 1),
    ("prod", "lopsided", "topic-leaders-uneven", 2),
    ("prod", "crash.ed", "name-collision", 1),
    ("prod", "crash_ed", "name-collision", 1),
    ("prod", "stranger", "topic-unmanaged", 3),
    ("prod", "fine", "topic-unowned", 6),
    ("prod", "tuned", "config-differs-by-cluster", 1),
    ("prod", "tuned", "config-differs-by-owner", 1),
    ("prod", "prod", "next-leaders-uneven", 11),
    ("prod", "prod", "rack-next-leaders-uneven", 11),
    ("flat", "flat", "rack-unknown", 1),
    ("flat", "ours.crammed", "rack-violation", 2),
    ("flat", "theirs.good", "rack-violation", 2),
    ("flat", "theirs.good", "topic-replicas-uneven", 2),
    ("piled", "9", "broker-gone", 30),
    ("piled", "piled", "leaders-uneven", 15),
    ("piled", "piled", "replicas-uneven", 30),
    ("piled", "piled", "rack-none", 2),
    ("piled", "all-on-one", "topic-leaders-uneven", 15),
    ("piled", "all-on-one", "topic-replicas-uneven", 30),
    ("tilted", "tilted", "leaders-uneven", 20),
    ("tilted", "tilted", "replicas-uneven", 30),
    ("tilted", "a", "racks-uneven", 20),
    ("tilted", "b", "racks-uneven", 20),
    ("tilted", "left", "topic-leaders-uneven", 20),
    ("tilted", "left", "topic-replicas-uneven", 30),
    ("leant", "left", "topic-leaders-uneven", 20),
    ("leant", "left", "topic-replicas-uneven", 30),
    ("hot", "hot", "topic-partitions-uneven", 10),
    ("hot", "emptied", "topic-partitions-uneven", 1),
    ("loaded", "1", "broker-disk-uneven", 33),
    ("loaded", "2", "broker-disk-uneven", 56),
    ("loaded", "1", "broker-writes-uneven", 60),
    ("loaded", "3", "broker-directories-uneven", 50),
    ("prod", "careless", "min-in-sync-one", 3),
    ("prod", "careless", "config-differs-by-owner", 1),
    ("prod", "unclean", "unclean-election-on", 3),
    ("prod", "wished-by-all", "replication-above-brokers", 3),
    ("prod", "wished-by-all", "replication-below-default", 3),
    ("us-2", "shared", "topic-missing-in-stage", 3),
    ("due", "expired", "topic-expired", 1),
    ("due", "expired-empty", "topic-expired", 1),
    ("due", "expired-unasked", "topic-expired", 1),
    ("due", "expired-hidden", "topic-expired", 1),
    ("due", "expired-idle", "topic-expired", 1),
    ("due", "idle", "topic-idle", 1),
    ("full", "1", "broker-partitions-many", 13),
    ("full", "1:/a", "directory-partitions-many", 1),
    ("full", "1:/c", "directory-offline", 1),
    ("full", "kept", "topic-fills-disk", 1),
    ("full", "grown", "topic-fills-disk", 1),
    ("ring", "ring", "next-leaders-uneven", 6),
    ("ring", "ring", "rack-next-leaders-uneven", 6),
}


def wish(name: str) -> TopicSpec:
    """Return the spec of a topic that is in a file."""
    owner = None if name == "fine" else "team"
    factor = 4 if name == "wished-by-all" else None
    rack_aware = name != "ours.flexible"
    fields, *_ = DUE.get(name, ({},))
    return spec(name, owner=owner, rack_aware=rack_aware, replication_factor=factor, **fields)


@pytest.fixture(scope="module")
def findings(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    """Return what an audit of the fleet finds."""
    estate = tmp_path_factory.mktemp("estate")
    (estate / "clusters.yaml").write_text(CLUSTERS)
    loaded = load_estate(estate)
    expectations = make_expectations(spark, loaded)
    specs = make_specs(
        spark, {c: [wish(name) for name in names.split()] for c, names in MANAGED.items()}
    )
    state = make_state(spark, STATES)
    # "fine" moved as well, and does not any more. Partition 1 of "moving" moved to other replicas.
    before = [
        topic("1,2,3 2,1,3", name, reassigning=frozenset({0, 1})) for name in ("moving", "fine")
    ]
    sizes = {"grown": 10**6, "old": 10**6}
    smaller = [topic("1", name, size_bytes=(size,)) for name, size in sizes.items()]
    states = {"prod": cluster(*before, nodes=ACB), "full": cluster(*smaller, nodes=brokers("a"))}
    earlier = Earlier("20261121T030000Z", make_state(spark, states)["partitions"])
    pending = make_pending(spark)
    audit = audit_fleet(state, specs, expectations, earlier, pending=pending, limits=loaded.audit)
    return audit.findings.collect()


def make_pending(spark: SparkSession) -> Pending:
    """Return plans that set a config of `careless`, add replicas to `thin`, and drain broker 4."""

    def frame(table: LakeTable, *rows: dict[str, Any]) -> DataFrame:
        columns = {name: [row.get(name) for row in rows] for name in table.columns}
        return spark.createDataFrame(make_table(table, columns), table.schema)

    sound = {"status": "planned", "refusals": []}
    change = {"cluster": "prod", "action": "update"}
    moved = {"cluster": "prod", "topic": "thin", "after": [1, 2, 3]}
    return Pending(
        frame(tables.PLANS, {"cluster": "prod", **sound}, {"cluster": "eu", **sound}),
        frame(
            tables.CHANGES,
            {**change, "topic": "careless", "config_after": [("min.insync.replicas", "2")]},
            {**change, "topic": "unclean", "config_after": [("flush.ms", "2")]},
            {**change, "topic": "brittle", "action": "refuse", "config_after": []},
        ),
        frame(
            tables.MOVE_PLANS,
            {"cluster": "prod", **sound, "drained": []},
            {"cluster": "moved", **sound, "drained": [4]},
        ),
        frame(tables.MOVES, *({**moved, "partition": number} for number in range(3))),
    )


def test_every_fault_is_one_finding(findings: list[Row]) -> None:
    found = [
        (row["cluster"], row["topic"] or row["subject"], row["rule"], row["affected"])
        for row in findings
    ]
    assert set(found) == EXPECTED
    assert len(found) == len(EXPECTED)


def test_every_rule_has_its_example() -> None:
    assert {rule for _, _, rule, _ in EXPECTED} == set(AUDIT_RULES)


def test_a_finding_says_how_severe_it_is_and_what_to_do(findings: list[Row]) -> None:
    for row in findings:
        rule = AUDIT_RULES[row["rule"]]
        placed = row["cluster"] == "piled" and row["rule"] in BY_MOVES
        way_out = BY_SERVICE if placed else rule.way_out
        assert (row["severity"], row["way_out"]) == (rule.severity, way_out)
        assert row["what"]
        assert "%s" not in row["what"]


def test_no_moves_are_advised_where_the_brokers_place_replicas(findings: list[Row]) -> None:
    advised = {row["rule"] for row in findings if row["way_out"] == BY_SERVICE}
    assert "replicas-uneven" in advised
    assert {row["cluster"] for row in findings if row["way_out"] == BY_SERVICE} == {"piled"}
    named = ("--moves", "rebalance", "move ", "reorder", "order moves")
    assert all(
        rule.id in BY_MOVES
        for rule in AUDIT_RULES.values()
        if any(word in rule.way_out for word in named) and rule.id not in DO_NOT_PLACE
    )


DO_NOT_PLACE = {"drain-unfinished", "leader-not-preferred", "name-collision"}
"""Rules that such a cluster cannot break, or whose way out moves no replica."""


def test_a_finding_says_which_plan_fixes_it(findings: list[Row]) -> None:
    fixed = {
        (row["topic"] or row["subject"], row["rule"], row["fixed_by"])
        for row in findings
        if row["fixed_by"]
    }
    assert fixed == {
        ("careless", "min-in-sync-one", "plan"),
        ("careless", "config-differs-by-owner", "plan"),
        ("thin", "replication-below-default", "moves"),
        ("thin", "min-in-sync-equals-replication", "moves"),
        ("4", "drain-unfinished", "moves"),
    }


def test_findings_of_one_reason_are_one_cause(findings: list[Row]) -> None:
    below = {row["topic"]: row for row in findings if row["rule"] == "replication-below-default"}
    causes = {row["cause"]: row["rank"] for row in below.values()}
    assert below["thin"]["cause"] == below["heavy"]["cause"]
    assert set(causes) == {
        "replication-below-default on prod: 2 replicas, 3 asked",
        "replication-below-default on prod: 3 replicas, 4 asked",
    }


def test_causes_are_ranked_by_concern_then_severity_then_size(findings: list[Row]) -> None:
    causes: dict[int, list[Row]] = {}
    for row in findings:
        causes.setdefault(row["rank"], []).append(row)
    assert sorted(causes) == list(range(1, len({row["cause"] for row in findings}) + 1))
    keys = []
    for rank in sorted(causes):
        rule = AUDIT_RULES[causes[rank][0]["rule"]]
        size = sum(row["affected"] for row in causes[rank])
        keys.append((list(Concern).index(rule.concern), SEVERITIES.index(rule.severity), -size))
    assert keys == sorted(keys)


def test_evidence_is_numbers(findings: list[Row]) -> None:
    [row] = [row for row in findings if row["rule"] == "partition-unwritable"]
    assert row["evidence"] == {"unwritable": "1", "partitions": "3", "min_in_sync": "2"}
    assert (row["owner"], row["file"], row["line"]) == ("team", HERE.file, HERE.line)


def test_a_stalled_move_says_since_when(findings: list[Row]) -> None:
    """Another partition of the topic moved before as well, but to other replicas."""
    [row] = [row for row in findings if row["rule"] == "move-stalled"]
    said = "1 of 3 partitions are under reassignment since 20261121T030000Z or longer"
    assert (row["topic"], row["what"]) == ("moving", said)


def test_a_topic_that_is_due_says_when_it_was_written_and_by_whom_it_is_read(
    findings: list[Row],
) -> None:
    found = {row["topic"]: row for row in findings if row["cluster"] == "due"}
    assert {topic: row["what"] for topic, row in found.items()} == {
        "expired": "it expired on 2026-11-22: last written 2026-11-22 03:00 UTC; read by a, b, c"
        " and 1 more",
        "expired-empty": "it expired on 2026-11-22: it holds no record, so its last write is not"
        " known; no consumer group is active on it",
        "expired-unasked": "it expired on 2026-11-22: who uses it was not collected",
        "expired-hidden": "it expired on 2026-11-22: consumer groups are not visible",
        "expired-idle": "it expired on 2026-11-22: last written 2026-08-24 03:00 UTC; no consumer"
        " group is active on it",
        "idle": "it has been idle for more than 90d: last written 2026-08-24 03:00 UTC; no consumer"
        " group is active on it",
    }
    evidence = {"idle_after": "90d", "last_written": "2026-08-24 03:00 UTC", "read_by": ""}
    assert (found["idle"]["owner"], found["idle"]["evidence"]) == ("team", evidence)
    for unknown in ("expired-empty", "expired-unasked"):
        evidence = {"expires": "2026-11-22", "last_written": "", "read_by": ""}
        assert found[unknown]["evidence"] == evidence


def test_an_uneven_topic_says_that_placement_cannot_fix_it(findings: list[Row]) -> None:
    found = {row["topic"]: row for row in findings if row["rule"] == "topic-partitions-uneven"}
    said = "its largest partition holds 10.0 GiB, its smallest 1.0 GiB: records of few keys"
    assert found["hot"]["what"] == f"{said}, or of a hot one"
    assert found["hot"]["way_out"].startswith("placement cannot fix this")
    evidence = {"largest_bytes": "1073741824", "smallest_bytes": "0"}
    assert found["emptied"]["evidence"] == evidence


def test_a_broker_outside_its_band_says_its_load_and_its_share(findings: list[Row]) -> None:
    found = {(row["rule"], row["subject"]): row for row in findings if row["cluster"] == "loaded"}
    said = {
        ("broker-disk-uneven", "1"): "broker 1 holds 60.0 GiB, its share is 45.0 GiB (+33 %)",
        ("broker-disk-uneven", "2"): "broker 2 holds 20.0 GiB, its share is 45.0 GiB (-56 %)",
        ("broker-writes-uneven", "1"): "broker 1 takes 20 B/s, its share is 50 B/s (-60 %)",
        ("broker-directories-uneven", "3"): "b on broker 3 holds 0.0 GiB, its share is 0.0 GiB"
        " (+50 %)",
    }
    assert {key: row["what"] for key, row in found.items()} == said
    evidence = {"amount": "20", "share": "50", "least": "40", "most": "60"}
    assert found["broker-writes-uneven", "1"]["evidence"] == evidence
    held = {"path": "b", "used_bytes": "600", "share_bytes": "400"}
    assert found["broker-directories-uneven", "3"]["evidence"] == held


def test_throttles_are_shown(findings: list[Row]) -> None:
    found = {row["rule"]: row for row in findings if row["cluster"] == "moved"}
    assert found["throttle-left"]["evidence"] == {
        "leader.replication.throttled.replicas": "0:1,0:2",
        "follower.replication.throttled.replicas": "",
    }
    rates = {"brokers": "2", "lowest_bytes_per_s": "1048576"}
    assert found["throttle-rate-left"]["evidence"] == rates


def test_the_worst_loss_is_named_with_who_takes_over(findings: list[Row]) -> None:
    found = {row["rule"]: row for row in findings if row["cluster"] == "ring"}
    broker, rack = found["next-leaders-uneven"], found["rack-next-leaders-uneven"]
    assert broker["what"] == "if broker 4 is lost, broker 1 takes over 10 leaders (bound 4)"
    assert rack["what"] == "if rack d is lost, broker 1 takes over 10 leaders (bound 4)"
    evidence = {"rack_next_leaders_most": "10", "rack_next_leaders_bound": "4", "lost": "d"}
    assert rack["evidence"] == evidence


def test_the_page_lists_the_rules_as_they_are() -> None:
    page = (Path(__file__).parent.parent.parent / "docs" / "reference" / "audit.md").read_text()
    for rule in AUDIT_RULES.values():
        known = (f"`{rule.id}`", rule.severity, rule.concern, rule.says, rule.way_out)
        assert f"| {' | '.join(known)} |" in page


def test_the_page_lists_the_events_as_they_are() -> None:
    page = (
        Path(__file__).parent.parent.parent / "docs" / "how-to" / "trace-a-fleet.md"
    ).read_text()
    for event, says in EVENT_KINDS.items():
        assert f"| `{event}` | {says} |" in page
