"""Every table of the lake, declared once: its grain, its key, its columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

TEXT, FLAG, COUNT, AMOUNT = StringType(), BooleanType(), IntegerType(), LongType()
SHARE = DoubleType()
BROKERS_OF = ArrayType(COUNT, containsNull=False)
CONFIG = MapType(TEXT, TEXT, valueContainsNull=False)
THROTTLE_RATE = StructType(
    [
        StructField("broker", COUNT),
        StructField("side", TEXT),  # leader, follower
        StructField("bytes_per_s", AMOUNT),
        StructField("source", TEXT),  # broker, cluster-default, static
    ]
)
LOG_DIRECTORY = StructType(
    [
        StructField("path", TEXT),
        StructField("total_bytes", AMOUNT),
        StructField("usable_bytes", AMOUNT),
        StructField("replicas", COUNT),
    ]
)
REASSIGNMENT = StructType(
    [
        StructField("replicas", BROKERS_OF),
        StructField("adding", BROKERS_OF),
        StructField("removing", BROKERS_OF),
        StructField("leader", COUNT),
        StructField("in_sync", BROKERS_OF),
    ]
)
FIELDS = StructType(
    [
        StructField(name, COUNT if name == "line" else TEXT)
        for name in ("path", "before", "after", "file", "line")
    ]
)


@dataclass(frozen=True, slots=True)
class LakeTable:
    """A table: its grain, its key columns, and its columns."""

    name: str
    grain: str
    key: tuple[str, ...]
    schema: StructType

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in order."""
        return list(self.schema.names)


def _columns(**types: DataType) -> StructType:
    """Declare columns; all except key columns are nullable."""
    return StructType([StructField(name, kind) for name, kind in types.items()])


READINGS = LakeTable(
    "readings",
    "one cluster, read or not",
    ("cluster",),
    _columns(
        cluster=TEXT,
        status=TEXT,  # read, or the rule id of the failure
        error=TEXT,
        cluster_id=TEXT,
        kafka_version=TEXT,
        defaults=CONFIG,
        can_cordon=FLAG,
        voters=BROKERS_OF,  # read where brokers are drained
        throttle_rates=ArrayType(THROTTLE_RATE, containsNull=False),  # in force
        notes=TEXT,  # findings, as JSON
        read_at=TEXT,  # ISO 8601, UTC
        read_ms=AMOUNT,
        synthetic=FLAG,
    ),
)
BROKERS = LakeTable(
    "brokers",
    "one broker of a cluster",
    ("cluster", "id"),
    _columns(
        cluster=TEXT,
        id=COUNT,
        rack=TEXT,
        alive=FLAG,
        cordoned=FLAG,
        log_directories=ArrayType(LOG_DIRECTORY, containsNull=False),  # null: unknown
        failed_directories=ArrayType(TEXT, containsNull=False),  # the paths of those offline
    ),
)
TOPICS = LakeTable(
    "topics",
    "one live topic of a cluster",
    ("cluster", "topic"),
    _columns(
        cluster=TEXT,
        topic=TEXT,
        topic_id=TEXT,
        internal=FLAG,
        partitions=COUNT,
        # Its use, of topics that may be due. Null: not read, or unknown.
        last_write_ms=AMOUNT,  # since 1970; null also if it holds no record
        readers=ArrayType(TEXT, containsNull=False),  # active consumer groups
        use_unknown=TEXT,  # why its use could not be read
    ),
)
PARTITIONS = LakeTable(
    "partitions",
    "one partition of a live topic",
    ("cluster", "topic", "partition"),
    _columns(
        cluster=TEXT,
        topic=TEXT,
        partition=COUNT,
        leader=COUNT,  # -1: no leader; null: unknown
        replicas=BROKERS_OF,  # preferred leader first; the target while it moves
        in_sync=BROKERS_OF,
        moving=FLAG,
        size_bytes=AMOUNT,  # null: unknown
        rate_bytes_per_s=AMOUNT,
        reassignment=REASSIGNMENT,  # what is in flight; null: nothing, or unknown
    ),
)
CONFIGS = LakeTable(
    "configs",
    "one override on a live topic",
    ("cluster", "topic", "config"),
    _columns(cluster=TEXT, topic=TEXT, config=TEXT, value=TEXT),
)
SPECS = LakeTable(
    "specs",
    "one topic as one cluster should have it",
    ("cluster", "topic"),
    _columns(
        cluster=TEXT,
        topic=TEXT,
        owner=TEXT,
        labels=CONFIG,
        file=TEXT,
        line=COUNT,
        partitions=COUNT,
        replication_factor=COUNT,
        config=CONFIG,
        spec=TEXT,  # the entire TopicSpec, as JSON: what the planner reads
    ),
)
CHANGES = LakeTable(
    "changes",
    "one topic that a plan changes, refuses or remarks on",
    ("cluster", "topic"),
    _columns(
        cluster=TEXT,
        topic=TEXT,
        action=TEXT,  # create, update, delete, refuse, note
        steps=ArrayType(TEXT, containsNull=False),  # create, expand, configure, delete
        partitions_before=COUNT,
        partitions_after=COUNT,
        config_before=CONFIG,
        config_after=CONFIG,
        # Row p: partition p, afterwards; -1 is a replica that the brokers place.
        assignment=ArrayType(BROKERS_OF, containsNull=False),
        risks=ArrayType(TEXT, containsNull=False),
        refusals=ArrayType(TEXT, containsNull=False),  # rules
        reasons=ArrayType(TEXT, containsNull=False),  # the messages of the refusals
        refused_change=ArrayType(FIELDS, containsNull=False),  # null before or after: not set
        file=TEXT,
        line=COUNT,
    ),
)
PLANS = LakeTable(
    "plans",
    "one cluster's plan, or why there is none",
    ("cluster",),
    _columns(
        cluster=TEXT,
        status=TEXT,  # planned, or the rule id of the failure
        error=TEXT,
        fingerprint=TEXT,
        changed=COUNT,
        refused=COUNT,  # topics
        refusals=ArrayType(TEXT, containsNull=False),  # of the plan itself
        unchanged=COUNT,
        unmanaged=COUNT,
        leader_skew_before=COUNT,
        leader_skew_after=COUNT,
        replica_skew_before=COUNT,
        replica_skew_after=COUNT,
        plan=TEXT,  # the plan file, byte for byte
    ),
)
MOVE_PLANS = LakeTable(
    "move_plans",
    "one cluster's plan of moves, where clusters.yaml allows moves",
    ("cluster",),
    _columns(
        cluster=TEXT,
        status=TEXT,  # planned, or the rule id of the failure
        error=TEXT,
        fingerprint=TEXT,
        changed=COUNT,  # topics
        refused=COUNT,  # topics
        refusals=ArrayType(TEXT, containsNull=False),  # of the plan itself
        partitions=COUNT,  # rows of moves
        replicas=COUNT,  # to be copied
        least_replicas=COUNT,  # the proven minimum
        leader_changes=COUNT,
        copied_bytes=AMOUNT,  # without partitions of unknown size
        seconds=AMOUNT,  # at the configured rate; null: unknown, or no rate
        peak_share=SHARE,  # the highest share of a log directory that is used meanwhile
        drained=BROKERS_OF,  # brokers that are to hold no replica
        cordons=COUNT,  # those of them that the run cordons
        plan=TEXT,  # the plan file, byte for byte
    ),
)
MOVES = LakeTable(
    "moves",
    "one partition that a plan of moves gives other replicas, or another order",
    ("cluster", "topic", "partition"),
    _columns(
        cluster=TEXT,
        topic=TEXT,
        partition=COUNT,
        step=TEXT,  # move, reorder
        before=BROKERS_OF,
        after=BROKERS_OF,
        size_bytes=AMOUNT,  # null: unknown
        file=TEXT,
        line=COUNT,
    ),
)
FINDINGS = LakeTable(
    "findings",
    "one rule that one subject of a cluster breaks",
    ("cluster", "topic", "subject", "rule"),
    _columns(
        cluster=TEXT,
        topic=TEXT,  # null: the cluster itself, or a part of it that is not a topic
        subject=TEXT,  # topic, cluster, a broker or a config's key
        rule=TEXT,
        severity=TEXT,  # error, warning, note
        affected=AMOUNT,  # the number affected, usually partitions; more is worse
        evidence=CONFIG,  # the numbers and values behind it
        what=TEXT,
        way_out=TEXT,
        owner=TEXT,
        file=TEXT,
        line=COUNT,
        cause=TEXT,  # the same for findings of a rule and cluster with one common reason
        rank=COUNT,  # of the cause in the audit; 1: look at it first
        fixed_by=TEXT,  # plan, moves: the pending plan of the collection that fixes it; null: none
    ),
)
BALANCE = LakeTable(
    "balance",
    "one cluster, or one topic, broker or rack of it",
    ("cluster", "kind", "subject"),
    _columns(
        cluster=TEXT,
        kind=TEXT,  # cluster, topic, broker, rack
        subject=TEXT,
        rack=TEXT,  # a broker's
        brokers=COUNT,  # eligible for new replicas
        leaders=AMOUNT,  # preferred leaders
        replicas=AMOUNT,
        size_bytes=AMOUNT,
        leaders_least=AMOUNT,  # of the eligible brokers
        leaders_most=AMOUNT,
        replicas_least=AMOUNT,
        replicas_most=AMOUNT,
        misplaced=AMOUNT,  # as reconciler.placement.measure counts them
        misplaced_share=SHARE,
        rack_violations=AMOUNT,
        # A cluster's: the most leaders that one broker takes over if a broker, or a rack, is lost,
        # and the least that is possible.
        next_leaders_most=AMOUNT,
        next_leaders_bound=AMOUNT,
        rack_next_leaders_most=AMOUNT,
        rack_next_leaders_bound=AMOUNT,
    ),
)
BANDS = LakeTable(
    "bands",
    "one load of one broker, beside the band that a rebalance keeps it in",
    ("cluster", "load", "broker"),
    _columns(
        cluster=TEXT,
        load=TEXT,  # disk, write; a load of which nothing is known has no row
        broker=COUNT,
        rack=TEXT,
        amount=AMOUNT,  # bytes, or bytes per second, of all replicas; internal topics too
        share=AMOUNT,  # null: the broker takes no replicas
        least=AMOUNT,  # the band: what balance of clusters.yaml is content with
        most=AMOUNT,
        outside=FLAG,
        aimed=FLAG,  # balance.by names the load
    ),
)
EVENTS = LakeTable(
    "events",
    "one thing that changed on a cluster between two collections that read it",
    ("cluster", "topic", "subject", "event", "first_seen"),
    _columns(
        cluster=TEXT,
        topic=TEXT,  # null: of the cluster itself
        event=TEXT,  # a key of reconciler.fleet.history.EVENTS
        subject=TEXT,  # topic, broker or config's key
        previous=TEXT,  # the last collection without it
        first_seen=TEXT,  # the first collection with it
        before=TEXT,
        after=TEXT,
        affected=AMOUNT,  # partitions
    ),
)
DRIFT = LakeTable(
    "drift",
    "one change that consecutive plans of a cluster asked for without a break",
    ("cluster", "topic", "action", "first_seen"),
    _columns(
        cluster=TEXT,
        topic=TEXT,
        action=TEXT,  # as in changes; a note is not drift
        steps=ArrayType(TEXT, containsNull=False),  # of the latest plan
        first_seen=TEXT,
        last_seen=TEXT,
        gone_in=TEXT,  # the first plan without it; null: it is pending
        pending=FLAG,
        plans=COUNT,
        lasted_s=AMOUNT,  # up to gone_in, or to last_seen
    ),
)
GROWTH = LakeTable(
    "growth",
    "one topic, or an entire cluster, from its first collection to its last",
    ("cluster", "topic"),
    _columns(
        cluster=TEXT,
        topic=TEXT,  # null: the cluster
        first_seen=TEXT,
        last_seen=TEXT,
        topics_first=COUNT,
        topics_last=COUNT,
        partitions_first=AMOUNT,
        partitions_last=AMOUNT,
        size_bytes_first=AMOUNT,  # null: unknown
        size_bytes_last=AMOUNT,
        bytes_per_day=SHARE,
    ),
)
TREND = LakeTable(
    "trend",
    "one cluster in one collection that read it",
    ("cluster", "seen"),
    _columns(
        cluster=TEXT,
        seen=TEXT,
        brokers=COUNT,
        topics=COUNT,
        partitions=AMOUNT,
        size_bytes=AMOUNT,
        # Faults, as reconciler.fleet.health counts them.
        offline=AMOUNT,
        unwritable=AMOUNT,
        under_replicated=AMOUNT,
        brokers_down=AMOUNT,
    ),
)
COLLECTIONS = LakeTable(
    "collections",
    "one attempt at a collection that was published",
    ("attempt",),
    _columns(
        collection=TEXT,
        what=TEXT,
        attempt=TEXT,
        finished_at=TEXT,
        commit=TEXT,  # of the specs; ends in -dirty if files differed from it
        clusters=COUNT,
        rows=MapType(TEXT, MapType(TEXT, AMOUNT)),  # by table and cluster
        version=COUNT,  # of the layout
        continues=TEXT,  # a history's: the collection whose history comes before it
        made_of=ArrayType(TEXT, containsNull=False),  # a history's: the attempts that it compared
        origin=TEXT,  # a copy's: the attempt whose rows it has, in fewer files
        copied_at=TEXT,
    ),
)

STATE = (READINGS, BROKERS, TOPICS, PARTITIONS, CONFIGS)
"""The tables of the state of a cluster."""

PLANNED = (PLANS, CHANGES, MOVE_PLANS, MOVES)
"""The tables of the plans of one collection."""

AUDIT = (FINDINGS, BALANCE, BANDS)
"""The tables of an audit of one collection."""

HISTORY = (EVENTS, DRIFT, GROWTH, TREND)
"""The tables about several collections over time."""


def _side_by_side() -> StructType:
    """Return every column of the state tables once, and `table`, the name of the row's table."""
    schema = StructType([StructField("table", TEXT)])
    for table in STATE:
        for column in table.schema.fields:
            if column.name not in schema.names:
                schema = schema.add(column)
    return schema


FACTS = LakeTable(
    "facts",
    "one row of some state table",
    ("table", "cluster", "topic", "partition", "config", "id"),
    _side_by_side(),
)

TABLES: Mapping[str, LakeTable] = MappingProxyType(
    {table.name: table for table in (*STATE, FACTS, SPECS, *PLANNED, *AUDIT, *HISTORY, COLLECTIONS)}
)
