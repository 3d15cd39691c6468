"""The law of ways out: an edit that a rule names is refused by no other rule.

Each world breaks a rule, in validation or in a plan. After each edit that the way out names,
validation and the plan accept the estate. A risk may be left to acknowledge: that is consent to a
change, and no rule against it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from shorthand import NOW_MS, brokers, cluster, rows, topic, unused_cluster
from ways_out import CONSENT, MIN_INSYNC, NAME, Document, World, follow_ways

from reconciler.fleet.audit.rules import AUDIT_RULES
from reconciler.model.cluster import Broker, ClusterState
from reconciler.rulebook import RULES, STAGES


def spec(**keys: Any) -> Document:
    return {"topic": NAME, **keys}


def counted(name: str, partitions: int) -> Document:
    return {"topic": name, "partitions": partitions, "replication_factor": 1}


def policy(**keys: Any) -> Document:
    return {"policy": keys}


def moves(*kinds: str) -> Document:
    return {"clusters": {"prod": {"moves": {"allow": list(kinds), "rate": "30MiB"}}}}


def service(name: str) -> Document:
    return {"clusters": {"prod": {"service": name}}}


def draining(*brokers: int) -> Document:
    allowed = moves("drain")
    allowed["clusters"]["prod"]["drain_brokers"] = list(brokers)
    return allowed


def rebalancing(*brokers: int) -> Document:
    asked = moves("rebalance")
    asked["clusters"]["prod"]["rebalance"] = {"until": "2199-12-31", "brokers": list(brokers)}
    return asked


def by_brokers(**more: Any) -> Document:
    return {"clusters": {"prod": {"placement": "broker"}}} | more


def live(assignment: str = "1,2 2,3 3,1", **config: str) -> ClusterState:
    named = {key.replace("_", "."): value for key, value in config.items()}
    return cluster(topic(assignment, NAME, config=named))


def lagging(in_sync: str, value: int, default: int = 1) -> ClusterState:
    """Return a cluster on which replicas are out of sync."""
    found = topic("1,2,3 2,3,1", NAME, config={MIN_INSYNC: str(value)}, in_sync=rows(in_sync))
    return cluster(found, defaults={MIN_INSYNC: str(default)})


def tiered(**config: Any) -> Document:
    return spec(
        partitions=1,
        replication_factor=1,
        config={"remote.storage.enable": True, "retention.ms": "7d"}
        | {key.replace("_", "."): value for key, value in config.items()},
    )


def doomed(config: Mapping[str, str] | None = None, **found: Any) -> World:
    """Return a world that may delete its topic, if nobody uses it."""
    gone = topic("1", NAME, config=config or {})
    guards = {"clusters": {"prod": {"guards": {"max_deletes": 1}}}}
    return World((spec(state="absent"),), guards, unused_cluster(gone, **found))


IN_DEFAULTS = {"defaults": {"replication_factor": 3, "config": {MIN_INSYNC: 2}}}
DEAD = (*brokers(None, None), Broker(3, alive=False))
TIER = {"remote.storage.enable": "true"}
TIER_SWITCH = "remote.log.storage.system.enable"
OTHER_CHANGE = "retention.ms 7d → 1d"
COMPACT = {"cleanup.policy": "compact"}

WORLDS: Mapping[str, tuple[World, ...]] = {
    "broker-drained": (
        World((spec(assignment=[[1, 2], [2, 3]]),), draining(1, 3), live("1,2 2,3"), moves=True),
    ),
    "drain-impossible": (
        World((spec(),), draining(3), live("1,2,3"), moves=True),
        World((spec(),), draining(1, 2), live("1,2 2,3"), moves=True),
    ),
    "rebalance-unable": (World((spec(),), rebalancing(9), live("1,2,3"), moves=True),),
    "partitions-never-shrink": (
        World((spec(partitions=2),), state=live()),
        World((spec(assignment=[[1, 2], [2, 3]]),), state=live()),
        World((spec(partitions=2),), policy(partitions={"max": 2}), live()),
        World(
            (spec(partitions=2), counted("other", 4)), policy(per_owner={"partitions": 6}), live()
        ),
    ),
    "replication-stays": (
        World((spec(replication_factor=3),), state=live()),
        World((spec(),), IN_DEFAULTS, live("1 2 3")),
        World((spec(replication_factor=3),), state=live("1,2 2,3,1")),
        World((spec(),), IN_DEFAULTS, live("1,2 2,3,1")),
        World((spec(assignment=[[1, 2, 3]]),), state=live("1,2")),
        World((spec(assignment=[[1, 2], [2, 3]]),), IN_DEFAULTS, live("1 2")),
        World((spec(assignment=[[1, 2], [2, 3]]),), state=live("1,2 2,3,1")),
        World((spec(replication_factor=2),), policy(replication_factor={"min": 2}), live("1 2")),
        World((spec(replication_factor=3),), moves("assignment"), live()),
        World((spec(assignment=[[1, 2, 3]]),), moves("assignment"), live("1,2")),
        World((spec(replication_factor=3),), by_brokers(), live()),
        World((spec(replication_factor=3),), by_brokers(), live("1,2 2,3,1")),
    ),
    "placement-assignment": (
        World((spec(assignment=[[1, 2], [2, 3]]),), by_brokers()),
        World((spec(assignment=[[1, 2], [2, 3], [3, 1], [1, 2]]),), by_brokers(), live()),
    ),
    "replicas-stay": (
        World((spec(assignment=[[2, 1], [2, 3], [3, 1]]),), state=live()),
        World((spec(assignment=[[1], [2], [3], [1]]),), state=live()),
        World((spec(assignment=[[1, 2], [1, 2]]),), state=live("1,2 2,3,1")),
        World((spec(assignment=[[1, 2], [2, 3]]),), IN_DEFAULTS, live("1 2")),
        World((spec(assignment=[[1, 2, 3]]),), moves("replication"), live("1,2")),
    ),
    "min-insync-le-replication": (
        World((spec(config={MIN_INSYNC: 3}),), by_brokers(), live()),
        World(
            (spec(config={MIN_INSYNC: 3}),),
            by_brokers(policy={"config": {"ranges": {MIN_INSYNC: {"min": 3}}}}),
            live(),
        ),
        World((spec(replication_factor=1, partitions=1, config={MIN_INSYNC: 2}),)),
        World((spec(config={MIN_INSYNC: 3}),), state=live()),
        World(
            (spec(config={MIN_INSYNC: 3}),),
            policy(config={"ranges": {MIN_INSYNC: {"min": 3}}}),
            live(),
        ),
        World(
            (spec(config={MIN_INSYNC: 3}),),
            policy(config={"ranges": {MIN_INSYNC: {"min": 3}}}) | moves("assignment"),
            live(),
        ),
    ),
    "min-insync-le-in-sync": (
        World((spec(config={MIN_INSYNC: 3}),), state=lagging("1,2 2,3,1", 2)),
        World((spec(),), state=lagging("1 2", 1, default=2)),
        World(
            (spec(config={MIN_INSYNC: 3}),),
            policy(config={"ranges": {MIN_INSYNC: {"min": 3}}}),
            lagging("1,2 2,3,1", 2),
        ),
    ),
    "rf-le-brokers": (
        World((spec(partitions=1, replication_factor=4),)),
        World((spec(partitions=1, replication_factor=4, config={MIN_INSYNC: 4}),)),
        World((spec(partitions=1, replication_factor=4),), policy(replication_factor={"min": 4})),
        World((spec(partitions=4),), state=replace(live("1,2,3"), brokers=DEAD)),
    ),
    "racks-known": (
        World((spec(partitions=1, replication_factor=1),), state=cluster(nodes=brokers("a", None))),
    ),
    "name-collides-with-live": (
        World(
            (spec(partitions=1, replication_factor=1) | {"topic": "a.b"},),
            state=cluster(topic("1", "a_b")),
        ),
        World(
            (spec(partitions=1, replication_factor=1) | {"topic": "a.b"},),
            {"clusters": {"prod": {"ignore": ["a_*"]}}},
            cluster(topic("1", "a_b")),
        ),
        World(
            (spec(partitions=1, replication_factor=1) | {"topic": "__consumer.offsets"},),
            state=cluster(topic("1", "__consumer_offsets", internal=True)),
        ),
    ),
    "broker-unknown": (World((spec(assignment=[[1, 9]]),)),),
    "broker-dead": (World((spec(assignment=[[1, 3]]),), state=cluster(nodes=DEAD)),),
    "broker-cordoned": (
        World(
            (spec(assignment=[[1, 3]]),),
            state=cluster(nodes=(*brokers(None, None), Broker(3, cordoned=True))),
        ),
    ),
    "broker-excluded": (
        World((spec(assignment=[[1, 3]]),), {"clusters": {"prod": {"exclude_brokers": [3]}}}),
    ),
    "expand-after-reassignment": (
        World(
            (spec(partitions=4),),
            state=cluster(topic("1,2 2,3", NAME, reassigning=frozenset({0}))),
        ),
    ),
    "expand-uniform-replication": (
        World((spec(partitions=4),), state=live("1,2 2,3,1")),
        World((spec(partitions=4),), by_brokers(), live("1,2 2,3,1")),
        World((spec(partitions=4),), moves("replication"), live("1,2 2,3,1")),
        World((spec(partitions=4),), moves("assignment"), live("1,2 2,3,1")),
        World((spec(partitions=4, replication_factor=2),), state=live("1,2 2,3,1")),
        World((spec(partitions=4),), IN_DEFAULTS, live("1 2,1")),
        World((spec(partitions=4),), policy(replication_factor={"max": 2}), live("1,2 2,3,1")),
    ),
    "create-needs-counts": (World((spec(),)), World((spec(partitions=1),))),
    "untiering-deletes": (
        World((spec(config={"remote.storage.enable": False}),), state=live(**TIER)),
        World(
            (spec(config={"remote.storage.enable": False, "local.retention.ms": "1h"}),),
            state=live(**TIER),
        ),
        World(
            (spec(config={"remote.storage.enable": False}),),
            policy(config={"deny": ["remote.log.*"]}),
            live(**TIER),
        ),
    ),
    "tiered-storage-off": (
        World((tiered(),), state=replace(cluster(), broker_settings={TIER_SWITCH: "false"})),
    ),
    "gradual-needs-limit": (
        World((spec(config={"retention.ms": "1d"}, gradual=True),), state=live(retention_ms="-1")),
    ),
    CONSENT: (
        World(
            (spec(config={"retention.ms": "1h"}, acknowledge=[{"data-loss": OTHER_CHANGE}]),),
            state=live(retention_ms="604800000"),
        ),
        World(
            (
                spec(
                    partitions=4,
                    config={"cleanup.policy": "compact,delete", "retention.ms": "1d"},
                    acknowledge=[{"data-loss": OTHER_CHANGE}],
                ),
            ),
            state=live(cleanup_policy="compact", retention_ms="604800000"),
        ),
        World((spec(config={"retention.ms": "1h"}),), state=live(retention_ms="604800000")),
        World(
            (spec(partitions=4, config=COMPACT | {"max.message.bytes": 9}),),
            state=live(cleanup_policy="delete"),
        ),
        World(
            (
                spec(
                    partitions=4,
                    config=COMPACT | {"unclean.leader.election.enable": True},
                    acknowledge=["ordering"],
                ),
            ),
            state=live(cleanup_policy="compact", unclean_leader_election_enable="false"),
        ),
    ),
    "deletion-budget": (
        World((spec(state="absent"),), state=unused_cluster(topic("1", NAME))),
        World(
            (spec(state="absent"), {"topic": "old", "state": "absent"}),
            state=unused_cluster(topic("1", NAME), topic("1", "old")),
        ),
    ),
    "deletion-disabled": (
        replace(
            doomed(),
            state=replace(doomed().state, broker_settings={"delete.topic.enable": "false"}),
        ),
    ),
    "deletion-written": (doomed(ends=(1,), records=1, newest_ms=NOW_MS - 1_000),),
    "deletion-unseen": (
        doomed({"retention.ms": "1000"}, emptied=True),
        doomed({"retention.ms": "-1"}, emptied=True),
        doomed({"retention.ms": "999999999999", "retention.bytes": "0"}, emptied=True),
    ),
    "assignment-partitions": (World((spec(partitions=2, assignment=[[1, 2]]),)),),
    "assignment-replication": (World((spec(replication_factor=3, assignment=[[1, 2]]),)),),
    "config-lag-pair": (
        World(
            (
                spec(
                    partitions=1,
                    replication_factor=1,
                    config={"min.compaction.lag.ms": "2d", "max.compaction.lag.ms": "1d"},
                ),
            )
        ),
    ),
    "tiered-needs-delete": (World((tiered(cleanup_policy="compact"),)),),
    "tiered-local-retention": (World((tiered(local_retention_ms="8d"),)),),
    "tiered-copy-disabled": (
        World((tiered(local_retention_ms="1d", remote_log_copy_disable=True),)),
    ),
    "tiered-copy-lag": (World((tiered(local_retention_ms="1d", remote_copy_lag_ms="2d"),)),),
    "policy-owner": (World((spec(partitions=1, replication_factor=1),), policy(owner="required")),),
    "policy-description": (
        World((spec(partitions=1, replication_factor=1),), policy(description="required")),
    ),
    "policy-partitions": (
        World((spec(partitions=9, replication_factor=1),), policy(partitions={"max": 3})),
        World((spec(partitions=1, replication_factor=1),), policy(partitions={"min": 3})),
        World((spec(partitions=3),), policy(partitions={"max": 2}), live()),
    ),
    "quota-per-owner": (
        World(
            (spec(partitions=9, replication_factor=2, owner="shop"),),
            policy(per_owner={"partitions": 6, "replicas": 9}),
        ),
        World(
            (spec(partitions=9, replication_factor=2, owner="shop"),),
            policy(per_owner={"replicas": 9}),
        ),
        World(
            (spec(partitions=1, replication_factor=1), counted("other", 1)),
            policy(per_owner={"topics": 1}),
        ),
    ),
    "policy-label-missing": (
        World(
            (spec(partitions=1, replication_factor=1),),
            policy(labels={"require": ["tier"], "values": {"tier": ["gold", "silver"]}}),
        ),
    ),
    "policy-label-value": (
        World(
            (spec(partitions=1, replication_factor=1, labels={"tier": "tin"}),),
            policy(labels={"values": {"tier": ["gold", "silver"]}}),
        ),
    ),
    "quota-per-label": (
        World(
            (spec(partitions=9, replication_factor=2, labels={"tier": "gold"}),),
            policy(per_label={"tier": {"partitions": 6, "replicas": 9}}),
        ),
        World(
            (
                spec(partitions=1, replication_factor=1, labels={"tier": "gold"}),
                {**counted("other", 1), "labels": {"tier": "gold"}},
            ),
            policy(per_label={"tier=gold": {"topics": 1}, "tier": {"topics": 9}}),
        ),
    ),
    "policy-replication": (
        World((spec(partitions=1, replication_factor=3),), policy(replication_factor={"max": 2})),
        World((spec(partitions=1, replication_factor=1),), policy(replication_factor={"min": 2})),
        World(
            (spec(partitions=1, replication_factor=3, config={MIN_INSYNC: 3}),),
            policy(replication_factor={"max": 2}),
        ),
        World((spec(replication_factor=2),), policy(replication_factor={"min": 3}), live()),
    ),
    "policy-config": (
        World(
            (spec(partitions=1, replication_factor=1, config={"flush.ms": 1}),),
            policy(config={"deny": ["flush.*"]}),
        ),
        World(
            (spec(partitions=1, replication_factor=1, config={"flush.ms": 1}),),
            policy(config={"allow": ["retention.*"]}),
        ),
    ),
    "policy-config-missing": (
        World(
            (spec(partitions=1, replication_factor=1),),
            policy(config={"require": ["retention.ms"]}),
        ),
        World(
            (spec(partitions=1, replication_factor=1),),
            policy(config={"require": ["retention.ms"], "deny": ["retention.*"]}),
        ),
        World(
            (spec(partitions=1, replication_factor=1),),
            policy(config={"require": ["retention.ms"], "allow": ["flush.ms"]}),
        ),
    ),
    "policy-config-value": (
        World(
            (spec(partitions=1, replication_factor=1, config={"retention.ms": "9d"}),),
            policy(config={"ranges": {"retention.ms": {"max": "7d"}}}),
        ),
        World(
            (spec(partitions=1, replication_factor=1, config={MIN_INSYNC: 1}),),
            policy(config={"ranges": {MIN_INSYNC: {"min": 2}}}),
        ),
        World(
            (spec(partitions=1, replication_factor=1, config={"compression.type": "gzip"}),),
            policy(config={"values": {"compression.type": ["zstd", "lz4"]}}),
        ),
    ),
    "service-config": (
        World(
            (spec(partitions=1, replication_factor=3, config={"segment.ms": "1h"}),),
            service("msk-express"),
        ),
        World(
            (spec(partitions=1, replication_factor=3),),
            {"defaults": {"config": {"segment.ms": "1h"}}, **service("msk-express")},
        ),
    ),
    "service-create-only": (
        World(
            (spec(config={"cleanup.policy": "compact"}),),
            service("msk-serverless"),
            live(cleanup_policy="delete"),
        ),
        World((spec(config={"cleanup.policy": "compact"}),), service("msk-serverless"), live()),
    ),
    "service-replication": (
        World((spec(partitions=1, replication_factor=2),), service("automq")),
        World((spec(partitions=1),), {"defaults": {"replication_factor": 2}, **service("automq")}),
    ),
    "service-value": (
        World(
            (spec(partitions=1, replication_factor=1, config={MIN_INSYNC: 2}),), service("automq")
        ),
        World(
            (spec(partitions=1, replication_factor=1, config={"compression.type": "zstd"}),),
            service("google"),
        ),
        World(
            (spec(partitions=1, replication_factor=3, config={"max.message.bytes": "9MiB"}),),
            service("msk-serverless"),
        ),
    ),
}
"""Worlds that break a rule, by the rule."""

HAS_NO_EDIT = {
    "the form of a file: tests/golden/bad holds a case for each": (
        *(rule.id for rule in STAGES["files"]),
        *(rule.id for rule in STAGES["names"]),
        *(rule.id for rule in STAGES["estate"]),
        "config-unknown",
        "config-internal",
        "config-not-managed",
        "config-null",
        "config-type",
        "config-unit",
        "config-range",
        "config-choice",
        "config-too-long",
        "config-not-offered",
        "assignment-form",
        "assignment-consecutive",
        "assignment-row-empty",
        "assignment-broker-twice",
        "assignment-lengths",
        "policy-baseline-form",
        "policy-pattern",
        "policy-pattern-linear",
        "policy-range",
        "policy-expression",
        "policy-expression-cost",
        "service-balancer",
        "service-elsewhere",
        "service-throttle",
    ),
    "the team's own words": ("policy-rule", "policy-rule-open", "policy-name"),
    "what somebody does outside the estate": (
        "service-alive",
        *(rule.id for rule in STAGES["cluster"]),
        *(rule.id for rule in STAGES["snapshots"]),
        *(rule.id for rule in STAGES["rehearsal"]),
        *(rule.id for rule in STAGES["adoption"]),
        *(rule.id for rule in STAGES["workflows"]),
        *(rule.id for rule in STAGES["fleet"]),
        *(rule.id for rule in STAGES["plan and apply"] if rule.id != CONSENT),
        "deletion-internal",
        "deletion-in-use",
        "deletion-reassigning",
        "moves-throttle-left",
        "moves-unhealthy",
        "reassignment-file",
        "reassignment-rows",
    ),
    "a note": (
        "broker-not-registered",
        "internal-replication",
        "config-disputed",
        "directory-offline",
        "drain-done",
        "drain-incomplete",
        "drain-last-of-rack",
        "drain-unnamed",
        "directories-left",
        "rebalance-left",
        "rebalance-limited",
        "rebalance-over",
        "rebalance-uneven",
        "rebalance-waits",
        "gradual-step",
        "moves-foreign",
        "moves-min-insync",
        "moves-pending",
        "not-managed",
        "policy-baseline",
        "policy-baseline-reason",
        "policy-baseline-stale",
        "rates-pause",
        "service-likely",
        "service-mover",
        "tiered-storage-unknown",
    ),
}


def test_every_rule_has_a_world_or_names_no_edit_of_a_spec() -> None:
    without = {rule for rules in HAS_NO_EDIT.values() for rule in rules}
    assert set(WORLDS) | without == set(RULES)
    assert set(WORLDS) & without == set()


@pytest.mark.parametrize(
    ("rule", "world"),
    [
        pytest.param(rule, world, id=f"{rule}-{number}")
        for rule, worlds in WORLDS.items()
        for number, world in enumerate(worlds)
    ],
)
def test_no_rule_refuses_an_edit_that_another_names(
    rule: str, world: World, tmp_path: Path
) -> None:
    assert rule in {found.rule for found in world.judge(tmp_path)}
    for refused in follow_ways(world, tmp_path, rule):
        assert list(map(str, refused)) == []


def test_every_rule_that_has_a_world_names_an_edit_of_it(tmp_path: Path) -> None:
    """Otherwise the law says nothing of it."""
    without = {
        rule
        for rule, worlds in WORLDS.items()
        if not any(list(follow_ways(world, tmp_path, rule)) for world in worlds)
    }
    assert without == {"expand-after-reassignment"}


# What an audit advises, a plan accepts.

RAISED = "1,2,3 2,3,1 3,1,2"
LOW = {"defaults": {"replication_factor": 3, "config": {MIN_INSYNC: 2}}}


@pytest.mark.parametrize(
    "rule", ["replication-below-policy", "replication-below-default", "replication-single"]
)
def test_a_factor_is_written_and_then_raised_by_moves(rule: str, tmp_path: Path) -> None:
    assert "move its replicas with plan --moves" in AUDIT_RULES[rule].way_out
    written = spec(replication_factor=3)
    refused = World((written,), LOW, live("1 2 3")).judge(tmp_path)
    assert "replication-stays" in {found.rule for found in refused}
    moves = {"allow": ["replication"], "rate": "30MiB"}
    allowed = {**LOW, "clusters": {"prod": {"moves": moves}}}
    assert World((written,), allowed, live("1 2 3")).judge(tmp_path) == []
    assert World((written,), LOW, live(RAISED)).judge(tmp_path) == []


def test_a_lower_factor_is_written_with_no_higher_min_insync(tmp_path: Path) -> None:
    assert AUDIT_RULES["replication-below-default"].way_out.endswith(
        "write the replication_factor that it has into its file, and no higher min.insync.replicas"
    )
    written = spec(replication_factor=1, config={MIN_INSYNC: 1})
    assert World((written,), LOW, live("1 2 3")).judge(tmp_path) == []


AUDIT_EDITS: Mapping[str, World] = {
    "min-in-sync-equals-replication": World(
        (spec(config={MIN_INSYNC: 1}),), state=live(min_insync_replicas="2")
    ),
    "min-in-sync-one": World(
        (spec(config={MIN_INSYNC: 2}, replication_factor=3),),
        state=live(RAISED, min_insync_replicas="1"),
    ),
    "unclean-election-on": World(
        (spec(config={"unclean.leader.election.enable": "false"}),),
        state=live(unclean_leader_election_enable="true"),
    ),
    "topic-fills-disk": World(
        (spec(config={"retention.ms": "1d"}, acknowledge=["data-loss"]),),
        state=live(retention_ms="604800000"),
    ),
    "rack-violation": World((spec(rack_aware=False),), state=live()),
    "config-differs-by-cluster": World((spec(config={"flush.ms": 9}),), state=live(flush_ms="1")),
    "name-collision": World(
        (spec(), {"topic": "or-ders", "state": "absent"}),
        {"clusters": {"prod": {"guards": {"max_deletes": 1}}}},
        unused_cluster(topic("1", NAME), topic("1", "or-ders")),
    ),
    "topic-unmanaged": World((spec(),), {"clusters": {"prod": {"ignore": ["x*"]}}}, live()),
    "topic-unowned": World((spec(owner="a team"),), state=live()),
    "topic-expired": World((spec(expires="2199-12-31"),), state=live()),
    "topic-idle": World(
        (spec(idle_after="90d"),),
        {"policy": {"exempt": {"topic-idle": [NAME]}}},
        live(),
    ),
    "internal-replication-low": World(
        (spec(),),
        {
            "clusters": {
                "prod": {
                    "internal_replication_factor": 3,
                    "moves": {"allow": ["replication"], "rate": "9MiB"},
                }
            }
        },
        live(),
    ),
    "cordon-left": World(
        (spec(),),
        {
            "clusters": {
                "prod": {"drain_brokers": [3], "moves": {"allow": ["drain"], "rate": "9MiB"}}
            }
        },
        live(),
    ),
}
"""The estate after the edit that an audit advises, on the cluster where it does."""

NO_AUDIT_EDIT = {
    *(f"partition-{kind}" for kind in ("offline", "unwritable", "under-replicated", "moving")),
    "cluster-unread",
    "leader-not-preferred",
    "move-stalled",
    "throttle-left",
    "throttle-rate-left",
    "drain-unfinished",
    "broker-gone",
    "replication-uneven",
    "replication-above-brokers",
    "broker-partitions-many",
    "directory-offline",
    "directory-partitions-many",
    "topic-missing-in-stage",
    "leaders-uneven",
    *(f"{of}next-leaders-uneven" for of in ("", "rack-")),
    "replicas-uneven",
    "racks-uneven",
    "topic-leaders-uneven",
    "topic-replicas-uneven",
    "topic-partitions-uneven",
    *(f"broker-{what}-uneven" for what in ("disk", "writes", "directories")),
    "rack-unknown",
    "rack-none",
    "config-differs-by-owner",
}


@pytest.mark.parametrize("rule", AUDIT_EDITS)
def test_no_rule_refuses_what_an_audit_advises(rule: str, tmp_path: Path) -> None:
    assert list(map(str, AUDIT_EDITS[rule].judge(tmp_path))) == []


def test_every_advice_of_the_audit_is_tried_or_edits_no_spec() -> None:
    replication = {f"replication-{kind}" for kind in ("below-policy", "below-default", "single")}
    assert replication | set(AUDIT_EDITS) | NO_AUDIT_EDIT == set(AUDIT_RULES)
    for rule in NO_AUDIT_EDIT:
        assert "write " not in AUDIT_RULES[rule].way_out
