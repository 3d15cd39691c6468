"""Every rule of an audit: its severity, its message, its way out, and its check.

Many checks look at the same rows in one pass. docs/reference/audit.md holds the table of rules; a
test keeps the two equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

from reconciler.errors import Severity
from reconciler.fleet import tables

_ERROR, _WARNING, _NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE


class Concern(StrEnum):
    """What a broken rule endangers. In the order in which an operator should look at findings."""

    DATA = "data"  # records can be lost
    AVAILABILITY = "availability"  # clients can be stopped
    CAPACITY = "capacity"  # disks, or load, or what is left of either
    HYGIENE = "hygiene"


_DATA, _AVAILABILITY, _CAPACITY, _HYGIENE = Concern


@dataclass(frozen=True, slots=True)
class AuditRule:
    """A rule: its id, severity, concern, the sentence that should be true, and the way out."""

    id: str
    severity: Severity
    concern: Concern
    says: str
    way_out: str


_ALL = (
    AuditRule(
        "cluster-unread",
        _ERROR,
        _AVAILABILITY,
        "Every cluster of a collection could be read.",
        "fix the error, and collect again; the rest of this audit leaves the cluster out",
    ),
    AuditRule(
        "partition-offline",
        _ERROR,
        _DATA,
        "Every partition has a leader.",
        "start the brokers that hold its replicas; if these are lost, an unclean election makes "
        "another replica leader and loses the records that only they had",
    ),
    AuditRule(
        "partition-unwritable",
        _ERROR,
        _AVAILABILITY,
        "Every partition has as many replicas in sync as writes with acks=all need.",
        "start the brokers that hold the other replicas, or find out why they lag",
    ),
    AuditRule(
        "partition-under-replicated",
        _WARNING,
        _AVAILABILITY,
        "Every replica is in sync.",
        "start the brokers that are down; where all run, look at their disks, network and load",
    ),
    AuditRule(
        "partition-moving",
        _NOTE,
        _HYGIENE,
        "No partition is under reassignment.",
        "let it finish before you change more; reconciler moves status shows its progress",
    ),
    AuditRule(
        "move-stalled",
        _WARNING,
        _AVAILABILITY,
        "A reassignment ends within a day.",
        "reconciler moves status names the reason; repeat apply of its plan, or cancel it",
    ),
    AuditRule(
        "throttle-left",
        _WARNING,
        _AVAILABILITY,
        "Only replicas of topics that move are throttled.",
        "run reconciler moves settle, or moves unthrottle for a list of *: once a rate is set, "
        "the list slows brokers that catch up",
    ),
    AuditRule(
        "throttle-rate-left",
        _NOTE,
        _HYGIENE,
        "While nothing moves, no throttle rate of moves or of a single broker is set.",
        "run reconciler moves status, which shows each rate; moves settle removes a rate of moves,"
        " and moves unthrottle --broker that of a broker",
    ),
    AuditRule(
        "drain-unfinished",
        _WARNING,
        _CAPACITY,
        "Brokers of drain_brokers hold no replica.",
        "apply a plan of moves: reconciler plan --moves",
    ),
    AuditRule(
        "cordon-left",
        _NOTE,
        _HYGIENE,
        "Only brokers of drain_brokers are cordoned.",
        "write it into drain_brokers, or delete its config cordoned.log.dirs, so that it takes"
        " replicas again",
    ),
    AuditRule(
        "leader-not-preferred",
        _WARNING,
        _CAPACITY,
        "Every partition is led by its preferred replica.",
        "run reconciler elect and apply its plan, or leave auto.leader.rebalance.enable on",
    ),
    AuditRule(
        "broker-gone",
        _WARNING,
        _AVAILABILITY,
        "Every broker that holds replicas is alive.",
        "start it again, or move its replicas to others",
    ),
    AuditRule(
        "directory-offline",
        _WARNING,
        _AVAILABILITY,
        "Every log directory of a broker is online.",
        "replace the disk and restart the broker; or move its replicas to other brokers: reconciler"
        " rebalance --offline-replicas",
    ),
    AuditRule(
        "replication-below-policy",
        _ERROR,
        _DATA,
        "Topics have the number of replicas that the policy of the cluster requires.",
        "write that replication_factor into its file, and move its replicas with plan --moves",
    ),
    AuditRule(
        "replication-below-default",
        _WARNING,
        _DATA,
        "Topics have the number of replicas of the defaults, unless their files set another one.",
        "move its replicas with plan --moves; or, if this is intended, write the"
        " replication_factor that it has into its file, and no higher min.insync.replicas",
    ),
    AuditRule(
        "replication-single",
        _WARNING,
        _DATA,
        "Topics of a cluster of several brokers have more than one replica.",
        "write a higher replication_factor into its file, and move its replicas with plan "
        "--moves: if its broker is lost, its records are lost",
    ),
    AuditRule(
        "internal-replication-low",
        _WARNING,
        _DATA,
        "Topics internal to Kafka have as many replicas as most topics of their cluster.",
        "write internal_replication_factor into clusters.yaml, and apply a plan of moves:"
        " reconciler plan --moves",
    ),
    AuditRule(
        "replication-uneven",
        _WARNING,
        _AVAILABILITY,
        "All partitions of a topic have the same number of replicas.",
        "finish or cancel the reassignment that caused this",
    ),
    AuditRule(
        "min-in-sync-equals-replication",
        _WARNING,
        _AVAILABILITY,
        "One broker can be down without stopping writes with acks=all.",
        "set min.insync.replicas one below the replication factor",
    ),
    AuditRule(
        "min-in-sync-one",
        _WARNING,
        _DATA,
        "Topics with three replicas or more need two of them in sync for a write with acks=all.",
        "set min.insync.replicas to 2: with 1, the loss of one broker can lose a confirmed record",
    ),
    AuditRule(
        "unclean-election-on",
        _WARNING,
        _DATA,
        "Only replicas in sync are elected.",
        "set unclean.leader.election.enable to false: another replica leads without the records"
        " that it lacks",
    ),
    AuditRule(
        "replication-above-brokers",
        _WARNING,
        _AVAILABILITY,
        "A topic has no more replicas than brokers that take them.",
        "start the brokers that are down, add brokers, or uncordon those that may take replicas",
    ),
    AuditRule(
        "broker-partitions-many",
        _WARNING,
        _CAPACITY,
        "A broker holds at most partitions_per_broker replicas.",
        "add brokers and move replicas to them: reconciler rebalance",
    ),
    AuditRule(
        "directory-partitions-many",
        _WARNING,
        _CAPACITY,
        "A log directory holds at most partitions_per_directory replicas.",
        "add disks or brokers, and move replicas to them",
    ),
    AuditRule(
        "broker-disk-uneven",
        _WARNING,
        _CAPACITY,
        "If balance.by names disk, every broker holds its share of the bytes, within "
        "balance.within.",
        "apply the plan of reconciler rebalance --by disk; without --by, it balances all loads of "
        "balance.by",
    ),
    AuditRule(
        "broker-writes-uneven",
        _WARNING,
        _CAPACITY,
        "If balance.by names write, every broker takes its share of the writes, within "
        "balance.within.",
        "apply the plan of reconciler rebalance --by write; without --by, it balances all loads "
        "of balance.by",
    ),
    AuditRule(
        "broker-directories-uneven",
        _WARNING,
        _CAPACITY,
        "If balance.by names disk, each log directory of a broker is as full as the others, "
        "within balance.within.",
        "apply the plan of reconciler rebalance --disks, which moves replicas between the"
        " directories of the broker",
    ),
    AuditRule(
        "topic-fills-disk",
        _WARNING,
        _CAPACITY,
        "No topic fills the free space of a broker within disk_lasts.",
        "add disks or brokers; or set a lower retention in its file, and acknowledge data-loss",
    ),
    AuditRule(
        "leaders-uneven",
        _WARNING,
        _CAPACITY,
        "The share of partitions that lead on a broker with too many leaders is at most misplaced.",
        "fleet plan shows which changes are pending anyway; reconciler simulate shows better "
        "placements",
    ),
    AuditRule(
        "replicas-uneven",
        _WARNING,
        _CAPACITY,
        "Brokers of a cluster hold the same number of replicas, within skew of the mean.",
        "move replicas off the fullest brokers; new topics are placed on the emptiest brokers",
    ),
    AuditRule(
        "racks-uneven",
        _WARNING,
        _CAPACITY,
        "A rack leads its brokers' share of the partitions, within skew of it.",
        "make the racks of equal size, or move preferred leaders between them",
    ),
    AuditRule(
        "next-leaders-uneven",
        _WARNING,
        _AVAILABILITY,
        "If a broker is lost, no other broker takes over more leaders than the bound plus skew of "
        "the mean per broker.",
        "choose other second replicas for partitions that the broker leads; this changes only the "
        "order of replicas, and copies nothing",
    ),
    AuditRule(
        "rack-next-leaders-uneven",
        _WARNING,
        _AVAILABILITY,
        "If a rack is lost, no broker takes over more leaders than the bound plus skew of the "
        "mean per broker.",
        "in partitions that the rack leads, put another follower of another rack first; this "
        "changes only the order of replicas, and copies nothing",
    ),
    AuditRule(
        "topic-leaders-uneven",
        _NOTE,
        _CAPACITY,
        "The share of a topic's partitions with a misplaced leader is at most topic_misplaced.",
        "reorder the replicas of the misplaced partitions; this changes only the order of "
        "replicas, and copies nothing",
    ),
    AuditRule(
        "topic-replicas-uneven",
        _NOTE,
        _CAPACITY,
        "Brokers hold the same number of replicas of a topic: max − min is at most 1, or skew of "
        "the mean.",
        "move replicas from the broker that holds most; racks of unequal size may forbid it",
    ),
    AuditRule(
        "topic-partitions-uneven",
        _NOTE,
        _CAPACITY,
        "A partition of at least large_partition is less than ten times as large as the smallest"
        " one of its topic.",
        "placement cannot fix this: spread a hot key over several, or choose keys with more "
        "values; partitions that were added later catch up over time",
    ),
    AuditRule(
        "rack-violation",
        _WARNING,
        _DATA,
        "Every partition is spread over the racks as evenly as these allow.",
        "move a replica into the missing rack, or write rack_aware: false if this is intended",
    ),
    AuditRule(
        "rack-unknown",
        _WARNING,
        _AVAILABILITY,
        "Either all brokers of a cluster name their rack, or none does.",
        "set broker.rack on every broker; placement treats brokers without a rack as one more rack",
    ),
    AuditRule(
        "rack-none",
        _NOTE,
        _AVAILABILITY,
        "The brokers of a cluster with several brokers name their racks.",
        "set broker.rack, so that replicas are spread over racks",
    ),
    AuditRule(
        "config-differs-by-cluster",
        _NOTE,
        _HYGIENE,
        "A topic has the configs of most other clusters (clusters_agree), unless its file says so.",
        "write the intended value into its file, if needed as an override of that cluster",
    ),
    AuditRule(
        "config-differs-by-owner",
        _NOTE,
        _HYGIENE,
        "A topic has the configs of most of its owner's topics on the cluster (topics_agree).",
        "ask the owner whether this is intended; a profile keeps similar topics the same",
    ),
    AuditRule(
        "topic-missing-in-stage",
        _NOTE,
        _AVAILABILITY,
        "A topic that most clusters of a stage have (clusters_agree) is on all of them, unless"
        " files say so.",
        "apply the plan that creates it; a topic without a file needs one first: reconciler import",
    ),
    AuditRule(
        "name-collision",
        _WARNING,
        _HYGIENE,
        "No two topics of a cluster have names that differ only in '.' and '_': their metrics "
        "would collide.",
        "keep one of the two topics, and delete the other",
    ),
    AuditRule(
        "topic-unmanaged",
        _NOTE,
        _HYGIENE,
        "Every live topic has a file, except topics that the estate ignores or does not own.",
        "reconciler import writes its file; ignore: in clusters.yaml leaves it out",
    ),
    AuditRule(
        "topic-expired",
        _WARNING,
        _HYGIENE,
        "No topic is past the date of expires.",
        "ask for its deletion with state: absent, or write a later date",
    ),
    AuditRule(
        "topic-idle",
        _WARNING,
        _HYGIENE,
        "No topic is unused for longer than idle_after.",
        "ask for its deletion with state: absent, or exempt it from topic-idle",
    ),
    AuditRule(
        "topic-unowned",
        _NOTE,
        _HYGIENE,
        "Every topic that is in a file names its owner.",
        "write owner: the team that is responsible for it",
    ),
)

AUDIT_RULES: Mapping[str, AuditRule] = MappingProxyType({rule.id: rule for rule in _ALL})

BY_MOVES = frozenset(
    {
        "broker-directories-uneven",
        "broker-disk-uneven",
        "broker-gone",
        "broker-partitions-many",
        "broker-writes-uneven",
        "directory-offline",
        "directory-partitions-many",
        "internal-replication-low",
        "leaders-uneven",
        "next-leaders-uneven",
        "rack-next-leaders-uneven",
        "rack-violation",
        "racks-uneven",
        "replicas-uneven",
        "replication-below-default",
        "replication-below-policy",
        "replication-single",
        "topic-leaders-uneven",
        "topic-replicas-uneven",
    }
)
"""The rules whose way out moves replicas, or changes their order."""

SEVERITIES: tuple[Severity, ...] = (_ERROR, _WARNING, _NOTE)
"""The most severe first."""


ABOUT = ("cluster", "topic", "owner", "file", "line")
FOUND = [name for name in tables.FINDINGS.columns if name not in ("rank", "fixed_by")]
"""The columns of `findings` that a row alone decides; the others compare it with all findings."""


@dataclass(frozen=True, slots=True)
class Check:
    """A rule over rows: the rows that break it, how often, and the message.

    `broken`, `what` and `evidence` are columns of the rows; null counts as not broken. `subject`
    is the column that names what breaks the rule. Findings of a cluster and a rule have one cause
    if their `reason` is the same, such as one value of a config.
    """

    rule: str
    broken: Column
    what: Column
    affected: Column | None = None
    evidence: Mapping[str, Column] = field(default_factory=lambda: MappingProxyType({}))
    subject: str = "topic"
    reason: Column | None = None


def apply_checks(rows: DataFrame, checks: Iterable[Check]) -> DataFrame:
    """Return a finding for each row and each check that the row breaks.

    In: rows with the columns ABOUT, or some of them. Out: FOUND of `findings`. Shuffles: none.
    """
    # One explode for all checks, so that the rows are scanned once.
    found = F.explode(F.array_compact(F.array(*map(_find, checks)))).alias("finding")
    kinds = {name: tables.FINDINGS.schema[name].dataType for name in ABOUT}
    about = [
        F.col(name) if name in rows.columns else F.lit(None).cast(kinds[name]).alias(name)
        for name in ABOUT
    ]
    return rows.select(*about, found).select(*ABOUT, "finding.*").select(*FOUND)


def say(template: str, *columns: str | Column) -> Column:
    """Put values into a sentence, one for each %s."""
    return F.format_string(template, *(F.col(c) if isinstance(c, str) else c for c in columns))


def format_share(part: Column, whole: Column) -> Column:
    """Format a proportion, as in 12.5%."""
    return F.format_string("%.1f%%", part * 100.0 / F.greatest(whole, F.lit(1)))


def format_gib(number: Column) -> Column:
    """Format a number of bytes, as in 12.5 GiB."""
    return F.format_string("%.1f GiB", number / F.lit(2**30))


def _find(check: Check) -> Column:
    rule = AUDIT_RULES[check.rule]
    # Evidence is text, whatever its type: numbers, shares and config values share one column.
    pairs = [(F.lit(k), F.coalesce(c.cast("string"), F.lit(""))) for k, c in check.evidence.items()]
    evidence = F.create_map(*(part for pair in pairs for part in pair))
    affected = F.lit(1) if check.affected is None else check.affected
    cause = [F.concat_ws(" on ", F.lit(rule.id), F.col("cluster")), check.reason]
    finding = F.struct(
        F.col(check.subject).cast("string").alias("subject"),
        F.lit(rule.id).alias("rule"),
        F.lit(str(rule.severity)).alias("severity"),
        affected.cast("long").alias("affected"),
        (evidence if pairs else evidence.cast(tables.CONFIG)).alias("evidence"),
        check.what.alias("what"),
        F.lit(rule.way_out).alias("way_out"),
        F.concat_ws(": ", *(part for part in cause if part is not None)).alias("cause"),
    )
    return F.when(check.broken, finding)
