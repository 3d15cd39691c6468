"""A small fleet by hand: a cluster of every standing, under names that a browser could trip on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from reconciler.fleet.health import Health
from reconciler.fleet.page.contents import (
    BrokerLoad,
    ClusterLine,
    DriftPoint,
    FleetPage,
    FleetTotals,
    HealthTotals,
    Kept,
    LoadShare,
    PlanTotals,
)
from reconciler.model.health import PROBLEMS

HOSTILE = """</script><script>document.title="taken"</script><img src=x onerror=alert(1)>"'&"""
GIB = 2**30


def hold(disk: int, write: int, *, outside: bool = False) -> dict[str, LoadShare]:
    """Return the loads of a broker, in GiB and KiB/s; its disk is aimed at, its writes are not."""
    share, apart = LoadShare(0, 500 * 2**10, 450 * 2**10, 550 * 2**10), not 450 <= write <= 550
    return {
        "disk": LoadShare(disk * GIB, 800 * GIB, 720 * GIB, 880 * GIB, outside, aimed=True),
        "write": replace(share, amount=write * 2**10, outside=apart),
    }


BROKERS = (
    BrokerLoad(1, "a", 40, 120, size_bytes=2**40, bands=hold(1024, 700, outside=True)),
    BrokerLoad(4, "a", 10, 31, bands=hold(700, 300, outside=True)),
    BrokerLoad(2, "b", 25, 75, alive=False, bands={"disk": LoadShare(60 * GIB)}),
    BrokerLoad(3, None, 26, 77, cordoned=True, bands=hold(790, 500)),
)
UNEVEN = PlanTotals(3, 2, 1_234, 7, 30, 4, 89, 5)


def make_rows(names: str, *rows: tuple[Any, ...], total: int | None = None) -> Kept[dict[str, Any]]:
    """Return rows as a query of the page returns them, all of them unless `total` says more."""
    made = tuple(dict(zip(names.split(), row, strict=True)) for row in rows)
    return Kept(made, len(made) if total is None else total)


TABLES = {
    "problems": make_rows(
        "cluster topic problem affected lagging owner partitions",
        (HOSTILE, "shop.orders", "offline", 2, [2, 3], "shop", 12),
        (HOSTILE, "shop.clicks", "below min.insync.replicas", 1, [2], None, 24),
        total=3,
    ),
    "topics": make_rows(
        "cluster topic partitions leader_skew replica_skew action",
        (HOSTILE, "shop.orders", 12, 8, 11, "update"),
        (HOSTILE, "shop.clicks", 24, 10, 9, None),
        ("calm", "audit.log", 9, 2, 2, None),
        total=4_321,
    ),
    "changes": make_rows(
        "cluster topic action steps partitions_before partitions_after config_before config_after"
        " refused_change risks reasons refusals file line",
        (
            *(HOSTILE, "audit.log", "refuse", [], None, None, {}, {}, [], []),
            *(["12 → 8 partitions: Kafka cannot remove partitions"], ["partitions-never-shrink"]),
            *("topics/audit.yaml", 6),
        ),
        (
            *(HOSTILE, "shop.orders", "update", ["expand"], 6, 12, {}, {}, [], ["ordering"]),
            *([], [], None, None),
        ),
    ),
    "moves": make_rows(
        "cluster status error changed partitions replicas copied_bytes seconds peak_share drained"
        " refused refusals",
        ("down", "unreachable", "no answer", 0, 0, 0, 0, None, None, [], 0, None),
        (HOSTILE, "planned", None, 12, 340, 510, 7 * 2**40, 93_600, 0.842, [7, 8], 2, []),
        total=3,
    ),
    "inventory": Kept(
        (
            {
                "cluster": HOSTILE,
                "topic": "shop.orders",
                "owner": "shop",
                "partitions": 12,
                "least": 3,
                "most": 3,
                "size_bytes": 5 * 2**30,
                "overrides": ["retention.ms=3024000000"],
                "first_seen": "20261120T030000Z",
                "event": "topic-grown",
                "action": "update",
                "steps": ["expand"],
                "partitions_before": 12,
                "partitions_after": 24,
                "refused_change": [],
                "config_before": {},
                "config_after": {},
            },
            {"cluster": "calm", "topic": HOSTILE, "partitions": 9, "least": 2, "most": 3},
        ),
        total=1_246,
    ),
    "trend": make_rows(
        "seen clusters topics partitions size_bytes offline unwritable under_replicated"
        " brokers_down",
        ("20261121T030000Z", 4, 1_246, 5_678, 8 * 2**40, 2, 1, 9, 1),
        ("20261120T030000Z", 4, 1_245, 5_670, 7 * 2**40, None, None, None, None),
    ),
    "rules": make_rows("severity rule findings clusters", ("error", "under-replicated", 17, 2)),
    "findings": make_rows(
        "cluster topic rule severity evidence what way_out owner cause fixed_by rank",
        (
            *("calm", HOSTILE, "under-replicated", "error", {"in_sync": "2", "replicas": "3"}),
            *("a replica lags", "look at broker 2", None, "broker 2 is down", None, 1),
        ),
        total=17,
    ),
    "due": make_rows(
        "cluster topic owner rule evidence file line",
        *(
            ("calm", HOSTILE, HOSTILE, rule, {key: HOSTILE, "read_by": HOSTILE}, HOSTILE, 3)
            for rule, key in (("topic-expired", "expires"), ("topic-idle", "idle_after"))
        ),
        total=5,
    ),
    "matrix": make_rows("cluster findings by_rule", ("calm", 17, {"under-replicated": 17})),
    "causes": make_rows("cause rank findings clusters", ("broker 2 is down", 1, 17, 1)),
    "next-leaders": make_rows(
        "cluster next_leaders_most next_leaders_bound rack_next_leaders_most"
        " rack_next_leaders_bound",
        (HOSTILE, 31, 13, 37, 29),
        total=2,
    ),
}

SAMPLE = FleetPage(
    collection="20261121T030000Z",
    made_at="2026-11-21 04:05 UTC",
    commit="9f3c2ab",
    totals=FleetTotals(5, 4, 1, 4, 1_246, 5_678, UNEVEN, 3),
    clusters=Kept(
        (
            ClusterLine(
                "down",
                read=False,
                health=Health.UNREAD,
                trouble=("unreachable", "connection refused"),
            ),
            ClusterLine("odd", read=True, trouble=("failed", "its rows cannot be read"), topics=2),
            ClusterLine(
                HOSTILE,
                read=True,
                health=Health.OFFLINE,
                kafka_version="4.1",
                topics=1_239,
                partitions=5_600,
                broker_count=4,
                rack_count=2,
                brokers=BROKERS,
                plan=UNEVEN,
                drifts=(9, None, 5),
            ),
            ClusterLine(
                "made-up", read=True, synthetic=True, partitions=78, plan=PlanTotals(1, 0, 3, 0)
            ),
            ClusterLine(
                "calm", read=True, plan=PlanTotals(0, 0, 4, 0, 2, 2, 1, 1), drifts=(0, 0, 0)
            ),
        ),
        total=6,
    ),
    drift=(
        DriftPoint("20261119T030000Z", 3, 0, 9, 0, 1_200),
        DriftPoint("20261120T030000Z", 2, 1, 11, 1, 1_199),
        DriftPoint("20261121T030000Z", 3, 0, 3, 2, 1_234),
    ),
    health=HealthTotals(2, 1, 9, 1, 1, dict.fromkeys(PROBLEMS, 1)),
    audited=True,
    tables=TABLES,
)
