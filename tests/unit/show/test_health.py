"""A report of health as people read it: what is at risk by name, then notes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from readings import rate
from shorthand import brokers, cluster, topic

from reconciler.errors import Finding, Severity
from reconciler.model.cluster import ClusterState, LogDirectory
from reconciler.model.health import HealthCounts, HealthReport, judge_cluster
from reconciler.show.health import TOPICS_LISTED, render_health
from reconciler.show.wording import say_problems
from reconciler.styling import Paint

ONE, TWO, THREE, FOUR = brokers("a", "b", "c", "d")
OUTAGE = replace(
    cluster(
        topic("3 1", "audit", leaders=(-1, 1), in_sync=((3,), (1,))),
        topic(
            "1,2,3 2,3,1",
            leaders=(1, 2),
            in_sync=((1,), (2, 1)),
            config={"min.insync.replicas": "2"},
        ),
        topic("2,1", "turned", leaders=(1,), in_sync=((1, 2),)),
        nodes=(ONE, TWO, replace(THREE, alive=False), replace(FOUR, cordoned=True)),
    ),
    directories={
        1: (
            LogDirectory("/full", 1 << 30, 1 << 20),
            LogDirectory("/bad", None, None, online=False),
        ),
        2: (LogDirectory("/data", 1 << 30, 100 << 20),),
    },
    throttle_rates=(rate(2, 1000),),
)


def show(state: ClusterState, width: int | None = 80) -> str:
    report = HealthReport("prod", state, judge_cluster(state))
    return render_health(report, Paint(wanted=False), width=width)


def test_an_outage_by_name() -> None:
    assert show(OUTAGE) == (
        """\
prod · cluster-1 · 4 brokers · 3 topics · 5 partitions
At risk: 1 partition offline, 1 below min.insync.replicas, 2 under-replicated, 1
  broker dead, 1 log directory offline, 1 log directory nearly full

At risk
  1 partition has no leader: no reads, no writes
    audit  partition 0  on broker 3
    → start broker 3: only a replica in sync leads without loss
  1 partition takes no writes with acks=all: too few replicas in sync
    shop.orders  partition 0  1 in sync, 2 needed
  2 partitions are under-replicated
    shop.orders  partitions 0, 1  lacks brokers 2, 3
    → start the brokers that are down; where all run, look at disks, network and
    load
  broker 3 (c) is dead and holds 3 replicas
  log directory /bad of broker 1 is offline
    → replace the disk and restart the broker; or move its replicas to other
    brokers: reconciler rebalance --cluster prod --offline-replicas
  1 log directory is nearly full: a broker stops when its disk is full
    broker 1  /full  1.0 MiB of 1.0 GiB free (0 %)
    → add room, lower a retention, or move replicas: reconciler rebalance
    --cluster prod

Notes
  broker 4 is cordoned: nothing new is placed there
  1 log directory fills
    broker 2  /data  100.0 MiB of 1.0 GiB free (10 %)
  1 partition is not led by its preferred leader
    turned  partition 0  preferred: broker 2
    → 1 can be elected now: reconciler elect --cluster prod
  throttles are set; nothing in flight uses those left over
    broker 2  follower rate 1000 B/s  left over
    → reconciler moves unthrottle --broker 2 --cluster prod
"""
    )


def test_a_healthy_cluster_in_two_lines() -> None:
    state = cluster(topic("1,2", leaders=(1,), in_sync=((1, 2),)))
    assert show(state) == (
        "prod · cluster-1 · 3 brokers · 1 topic · 1 partition\n"
        "Healthy: no data and no availability at risk.\n"
    )


def test_what_could_not_be_read_is_said() -> None:
    seen = cluster(topic("1,2", leaders=(1,), in_sync=((1, 2),)))
    note = Finding("reassignments-unseen", "x cannot be seen", "try", severity=Severity.WARNING)
    said = show(replace(seen, notes=(note,)))
    assert "Not everything could be read; everything that was read is healthy.\n" in said
    assert said.endswith("\nwarning: x cannot be seen; try [reassignments-unseen]\n")


def test_lists_are_bounded_and_say_what_is_left() -> None:
    many = [
        topic(("1,2 " * 20).strip(), f"t{n:02}", leaders=(1,) * 20, in_sync=((1,),) * 20)
        for n in range(TOPICS_LISTED + 3)
    ]
    lines = show(cluster(*many)).splitlines()
    assert "  260 partitions are under-replicated" in lines
    assert sum(line.startswith("    t") for line in lines) == TOPICS_LISTED
    assert "    t00  partitions 0, 1, 2, 3, 4, 5, 6, 7 and 12 more  lacks broker 2" in lines
    assert "    … 3 more topics; --format json lists all" in lines


@pytest.mark.parametrize("width", [80, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    assert max(map(len, show(OUTAGE, width).splitlines())) <= width


def test_problems_in_one_line() -> None:
    assert say_problems(HealthCounts()) == ""
    assert say_problems(HealthCounts(under_replicated=1)) == "1 partition under-replicated"
    counts = HealthCounts(4, 0, 1118, 1, 2)
    said = "4 partitions offline, 1,118 under-replicated"
    assert say_problems(counts) == f"{said}, 1 broker dead, 2 log directories offline"
    assert say_problems(counts, brokers=False) == f"{said}, 2 log directories offline"
