"""What a finding says, its rank and its fix, computed again from what was found."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]

IN_SYNC, UNCLEAN = "min.insync.replicas", "unclean.leader.election.enable"
THROTTLES = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")

OF_ALL = "of %(partitions)s partitions"
SPREAD = "max − min %(skew)s over %(brokers)s brokers"
LOST = "is lost, broker %(taker)s takes over"
ASKED, IN_FORCE = "%(replication_factor)s replicas, %(asked)s asked", f"%({IN_SYNC})s of "
IN_FORCE += "%(replication_factor)s replicas"
USUAL = "%(key)s is %(value)s; %(agreeing)s of %(voting)s {} have %(usual)s"
DIFFERS = "%(key)s is %(value)s, usually %(usual)s"
RANGE = "leaders_least leaders_most misplaced misplaced_share"

# The evidence, the message, and what findings of one cause share.
SAID = {
    "cluster-unread": ("status read_ms", "%(error)s"),
    "partition-offline": ("offline partitions", f"%(offline)s {OF_ALL} have no leader"),
    "partition-unwritable": (
        "unwritable partitions min_in_sync",
        f"%(unwritable)s {OF_ALL} take no writes with acks=all: fewer than %(min_in_sync)s"
        " replicas in sync",
    ),
    "partition-under-replicated": (
        "under_replicated partitions",
        f"%(under_replicated)s {OF_ALL} have replicas that are not in sync",
    ),
    "partition-moving": ("moving partitions", f"%(moving)s {OF_ALL} are under reassignment"),
    "leader-not-preferred": (
        "off_preferred partitions",
        f"%(off_preferred)s {OF_ALL} are led by another than their preferred replica",
    ),
    "move-stalled": (
        "since partitions",
        f"%(stalled)s {OF_ALL} are under reassignment since %(since)s or longer",
    ),
    "rack-violation": (
        "rack_violations partitions",
        f"%(rack_violations)s {OF_ALL} are not spread over the racks as evenly as possible",
    ),
    "replication-uneven": (
        "least most",
        "partitions have between %(least)s and %(most)s replicas",
    ),
    "throttle-left": (
        " ".join(THROTTLES),
        "its replicas are throttled (%(lists)s), and none is under reassignment",
    ),
    "topic-fills-disk": (
        "broker coming_bytes free_bytes seen_from",
        "may add %(coming)s to broker %(broker)s, where %(free)s are free",
    ),
    "replication-below-policy": (
        "replication_factor asked",
        "replication factor %(replication_factor)s, where the policy asks for %(asked)s",
        ASKED,
    ),
    "replication-below-default": (
        "replication_factor asked",
        "replication factor %(replication_factor)s, where its file or the defaults give %(asked)s",
        ASKED,
    ),
    "replication-single": (
        "replication_factor brokers",
        "1 replica, on a cluster of %(brokers)s brokers",
    ),
    "internal-replication-low": (
        "replication_factor usual",
        "replication factor %(replication_factor)s, where most topics have %(usual)s",
        "%(replication_factor)s replicas, usually %(usual)s",
    ),
    "min-in-sync-equals-replication": (
        f"{IN_SYNC} replication_factor",
        f"{IN_SYNC} {IN_FORCE}",
        IN_FORCE,
    ),
    "min-in-sync-one": (f"{IN_SYNC} replication_factor", f"{IN_SYNC} {IN_FORCE}", IN_FORCE),
    "unclean-election-on": (
        f"{UNCLEAN} replication_factor",
        f"{UNCLEAN} is true, with %(replication_factor)s replicas",
    ),
    "replication-above-brokers": (
        "replication_factor brokers",
        "replication factor %(replication_factor)s, and %(brokers)s brokers take replicas",
        "%(replication_factor)s replicas, %(brokers)s brokers",
    ),
    "topic-unmanaged": ("partitions", "unmanaged, with %(partitions)s partitions"),
    "topic-unowned": ("file", "its file names no owner"),
    "topic-expired": (
        "expires last_written read_by",
        "it expired on %(expires)s: %(use)s",
    ),
    "topic-idle": (
        "idle_after last_written read_by",
        "it has been idle for more than %(idle_after)s: %(use)s",
    ),
    "config-differs-by-cluster": (
        "key value usual agreeing voting",
        USUAL.format("clusters"),
        DIFFERS,
    ),
    "config-differs-by-owner": (
        "key value usual agreeing voting",
        USUAL.format("topics of its owner"),
        DIFFERS,
    ),
    "topic-missing-in-stage": (
        "on of",
        "missing, where %(on)s of %(of)s clusters of its stage have it",
    ),
    "topic-leaders-uneven": (
        RANGE,
        f"leaders {SPREAD}; %(misplaced)s {OF_ALL} are misplaced",
    ),
    "topic-replicas-uneven": ("replicas_least replicas_most", f"replicas {SPREAD}"),
    "topic-partitions-uneven": (
        "largest_bytes smallest_bytes",
        "its largest partition holds %(most)s GiB, its smallest %(least)s GiB: records of few keys,"
        " or of a hot one",
    ),
    "broker-disk-uneven": (
        "amount share least most",
        "broker %(broker)s holds %(amount_said)s, its share is %(share_said)s (%(off)s %%)",
    ),
    "broker-writes-uneven": (
        "amount share least most",
        "broker %(broker)s takes %(amount_said)s, its share is %(share_said)s (%(off)s %%)",
    ),
    "broker-directories-uneven": (
        "path used_bytes share_bytes",
        "%(path)s on broker %(broker)s holds %(used_said)s, its share is %(share_said)s"
        " (%(off)s %%)",
    ),
    "broker-gone": (
        "replicas rack",
        "broker %(broker)s is not alive and holds %(replicas)s replicas",
    ),
    "drain-unfinished": (
        "replicas",
        "broker %(broker)s must be empty, and holds %(replicas)s replicas",
    ),
    "cordon-left": (
        "replicas",
        "broker %(broker)s is cordoned, and drain_brokers does not name it",
    ),
    "broker-partitions-many": (
        "replicas limit",
        "broker %(broker)s holds %(replicas)s replicas (limit 4000)",
    ),
    "directory-offline": (
        "broker path",
        "%(path)s on broker %(broker)s is offline, and so are the replicas in it",
    ),
    "directory-partitions-many": (
        "replicas limit",
        "%(path)s on broker %(broker)s holds %(replicas)s replicas (limit 2000)",
    ),
    "rack-unknown": (
        "brokers without_rack",
        "%(without_rack)s of %(brokers)s brokers name no rack",
    ),
    "rack-none": ("brokers without_rack", "none of %(brokers)s brokers has a rack"),
    "throttle-rate-left": (
        "brokers lowest_bytes_per_s",
        "%(brokers)s of its brokers limit replication, and nothing moves",
    ),
    "leaders-uneven": (
        RANGE,
        f"leaders {SPREAD}; %(misplaced_share)s of the partitions are misplaced",
    ),
    "replicas-uneven": (
        "replicas_least replicas_most mean",
        f"replicas {SPREAD}, of %(mean)s on average",
    ),
    "next-leaders-uneven": (
        "next_leaders_most next_leaders_bound lost",
        f"if broker %(lost)s {LOST} %(next_leaders_most)s leaders (bound %(next_leaders_bound)s)",
    ),
    "rack-next-leaders-uneven": (
        "rack_next_leaders_most rack_next_leaders_bound lost",
        f"if rack %(lost)s {LOST} %(rack_next_leaders_most)s leaders"
        " (bound %(rack_next_leaders_bound)s)",
    ),
    "racks-uneven": (
        "leaders part brokers",
        "rack %(rack)s leads %(leaders)s partitions; its share, by brokers, is %(part)s",
    ),
    "name-collision": ("metric others", "its metrics are also those of %(others)s"),
}


@dataclass(frozen=True, slots=True)
class Found:
    """A finding, with the numbers and values of its message and its evidence."""

    rule: str
    cluster: str
    topic: str | None
    subject: str
    affected: int
    values: Row

    @property
    def what(self) -> str:
        return SAID[self.rule][1] % self.values

    @property
    def evidence(self) -> dict[str, str]:
        values = {name: self.values[name] for name in SAID[self.rule][0].split()}
        return {name: "" if value is None else str(value) for name, value in values.items()}

    @property
    def cause(self) -> str:
        of_all = f"{self.rule} on {self.cluster}"
        return ": ".join((of_all, *(reason % self.values for reason in SAID[self.rule][2:])))


SEVERITIES = ("error", "warning", "note")
CONCERNS = ("data", "availability", "capacity", "hygiene")


def rank_causes(found: Iterable[Found], kinds: Mapping[str, tuple[str, str]]) -> Mapping[str, int]:
    """Rank causes. `kinds` are severity and concern by rule."""
    causes: dict[str, list[Found]] = defaultdict(list)
    for one in found:
        causes[one.cause].append(one)

    def place(cause: str) -> tuple[int, int, int, int, str]:
        of_it = causes[cause]
        severity, concern = kinds[of_it[0].rule]
        size = sum(one.affected for one in of_it)
        return CONCERNS.index(concern), SEVERITIES.index(severity), -size, -len(of_it), cause

    return {cause: number for number, cause in enumerate(sorted(causes, key=place), 1)}


class Fixes:
    """Says which finding a pending plan fixes."""

    def __init__(self, read: Callable[[str], list[Row]]) -> None:
        sound, movable = (
            {
                row["cluster"]: row
                for row in read(name)
                if row["status"] == "planned" and row["refusals"] == []
            }
            for name in ("plans", "move_plans")
        )
        self.drained = {name: row["drained"] or [] for name, row in movable.items()}
        self.changes = {
            (row["cluster"], row["topic"]): row
            for row in read("changes")
            if row["cluster"] in sound and row["action"] in ("create", "update")
        }
        self.factors: dict[tuple[str, str], int] = {}
        for row in read("moves"):
            if row["cluster"] in movable:
                key = row["cluster"], row["topic"]
                self.factors[key] = min(self.factors.get(key, 99), len(row["after"]))

    def find(self, one: Found) -> str | None:
        key, rule, values = (one.cluster, one.topic or ""), one.rule, one.values
        change = self.changes.get(key)
        after = dict(change["config_after"] or {}) if change else {}
        factor, in_sync = self.factors.get(key, 0), int(after.get(IN_SYNC, 0))
        if change and any(
            (
                rule.startswith("config-differs") and after.get(one.subject) == values["usual"],
                rule == "min-in-sync-one" and in_sync > 1,
                rule == "min-in-sync-equals-replication"
                and 0 < in_sync < values["replication_factor"],
                rule == "unclean-election-on" and after.get(UNCLEAN) == "false",
                rule == "topic-missing-in-stage" and change["action"] == "create",
            )
        ):
            return "plan"
        if any(
            (
                rule.startswith("replication-below") and factor >= values["asked"],
                rule == "replication-single" and factor > 1,
                rule == "internal-replication-low" and factor >= values["usual"],
                rule == "replication-uneven" and factor >= values["most"],
                rule == "min-in-sync-equals-replication" and factor > values[IN_SYNC],
                rule == "drain-unfinished"
                and int(one.subject) in self.drained.get(one.cluster, ()),
            )
        ):
            return "moves"
        return None
