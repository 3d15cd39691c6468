"""A small fleet by hand: a cluster of every standing, under names that a browser could trip on."""

from __future__ import annotations

from reconciler.fleet.health import COUNTS, Health
from reconciler.fleet.page.contents import (
    AuditSummary,
    BrokerLoad,
    CauseCount,
    ChangeLine,
    ClusterLine,
    DriftPoint,
    FindingLine,
    FleetPage,
    FleetTotals,
    Kept,
    MatrixLine,
    MovesLine,
    NextLeadersLine,
    PlanTotals,
    RuleCount,
    TopicSkew,
)
from reconciler.fleet.page.live import HealthTotals, ProblemLine, TopicLine, TrendPoint

HOSTILE = """</script><script>document.title="taken"</script><img src=x onerror=alert(1)>"'&"""
BROKERS = (
    BrokerLoad(1, "a", 40, 120, size_bytes=2**40),
    BrokerLoad(4, "a", 10, 31),
    BrokerLoad(2, "b", 25, 75, alive=False),
    BrokerLoad(3, None, 26, 77, cordoned=True),
)
UNEVEN = PlanTotals(3, 2, 1_234, 7, 30, 4, 89, 5)

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
    topics=Kept(
        (
            TopicSkew(HOSTILE, "shop.orders", 12, 8, 11, "update"),
            TopicSkew(HOSTILE, "shop.clicks", 24, 10, 9),
            TopicSkew("calm", "audit.log", 9, 2, 2),
        ),
        total=4_321,
    ),
    changes=Kept(
        (
            ChangeLine(
                HOSTILE,
                "audit.log",
                "refuse",
                "",
                reasons=("12 → 8 partitions: Kafka cannot remove partitions",),
                rules=("partitions-never-shrink",),
                place="topics/audit.yaml:6",
            ),
            ChangeLine(HOSTILE, "shop.orders", "update", "6 → 12 partitions", ("ordering",)),
        ),
        total=2,
    ),
    moves=Kept(
        (
            MovesLine("down", 0, 0, 0, 0, None, None, reasons=("no answer [unreachable]",)),
            MovesLine(HOSTILE, 12, 340, 510, 7 * 2**40, 93_600, 0.842, (7, 8), refused=2),
        ),
        total=3,
    ),
    health=HealthTotals(2, 1, 9, 1, 1, dict.fromkeys(COUNTS, 1)),
    problems=Kept(
        (
            ProblemLine("offline", HOSTILE, "shop.orders", "shop", 2, 12, (2, 3)),
            ProblemLine("below min.insync.replicas", HOSTILE, "shop.clicks", None, 1, 24, (2,)),
        ),
        total=3,
    ),
    inventory=Kept(
        (
            TopicLine(
                HOSTILE,
                "shop.orders",
                "shop",
                12,
                (3, 3),
                5 * 2**30,
                (("retention.ms", "3024000000"),),
                "12 → 24 partitions",
                "20261120T030000Z",
                "topic-grown",
            ),
            TopicLine("calm", HOSTILE, None, 9, (2, 3), None),
        ),
        total=1_246,
    ),
    trend=(
        TrendPoint("20261120T030000Z", 4, 1_245, 5_670, 7 * 2**40, None, None, None, None),
        TrendPoint("20261121T030000Z", 4, 1_246, 5_678, 8 * 2**40, 2, 1, 9, 1),
    ),
    audit=AuditSummary(
        (RuleCount("under-replicated", "error", 17, 2),),
        Kept(
            (
                FindingLine(
                    "calm",
                    HOSTILE,
                    "under-replicated",
                    "error",
                    "in_sync 2, replicas 3",
                    "a replica lags",
                    "look at broker 2",
                ),
            ),
            total=17,
        ),
        Kept((MatrixLine("calm", 17, {"under-replicated": 17}),), total=1),
        (CauseCount("broker 2 is down", 1, 17, 1),),
        Kept((NextLeadersLine(HOSTILE, 31, 13, 37, 29),), total=2),
    ),
)
