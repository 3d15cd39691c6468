"""Edits that cost records, or their order"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dangers.stage import clusters

if TYPE_CHECKING:
    from dangers.stage import Stage


def retention_lowered(stage: Stage) -> None:
    """Retention lowered"""
    stage.have("orders", config={"retention.ms": "7d"})
    stage.wish("orders", config={"retention.ms": "1h"})
    stage.plan_and_apply()


def retention_lowered_knowingly(stage: Stage) -> None:
    """Retention lowered, and acknowledged"""
    stage.have("orders", config={"retention.ms": "7d"})
    stage.wish("orders", config={"retention.ms": "1d"}, acknowledge=["data-loss"])
    stage.plan_and_apply()


def retention_taken_out(stage: Stage) -> None:
    """The line that keeps records for ever taken out"""
    stage.have("orders", config={"retention.ms": -1})
    stage.wish("orders")
    stage.plan_and_apply()


def default_lowered(stage: Stage) -> None:
    """One default that lowers every topic's retention"""
    stage.have("clicks")
    stage.have("orders")
    kept = "partitions: 6, replication_factor: 2, config: {retention.ms: 1d}"
    stage.write("clusters.yaml", clusters(defaults=kept))
    stage.plan_and_apply()


def compacted_from_now_on(stage: Stage) -> None:
    """cleanup.policy turned from delete to compact"""
    stage.have("orders", config={"cleanup.policy": "delete"})
    stage.wish("orders", config={"cleanup.policy": "compact"})
    stage.plan_and_apply()


def unclean_election(stage: Stage) -> None:
    """Unclean leader election turned on"""
    stage.have("orders")
    stage.wish("orders", config={"unclean.leader.election.enable": True})
    stage.plan_and_apply()


def compacted_grows(stage: Stage) -> None:
    """More partitions on a compacted topic"""
    stage.have("prices", config={"cleanup.policy": "compact"})
    stage.wish("prices", partitions=9, config={"cleanup.policy": "compact"})
    stage.plan_and_apply()


def keyed_grows(stage: Stage) -> None:
    """More partitions on any other topic"""
    stage.have("orders")
    stage.wish("orders", partitions=9)
    stage.plan_and_apply()


def deletion(stage: Stage) -> None:
    """A deletion where clusters.yaml allows none"""
    stage.have("orders")
    stage.wish("orders", state="absent")
    stage.plan_and_apply()


def deletion_in_use(stage: Stage) -> None:
    """A deletion that is allowed, of a topic that is written to"""
    stage.have("orders")
    stage.write("clusters.yaml", clusters("{guards: {max_deletes: 1}}"))
    stage.wish("orders", state="absent", acknowledge=["data-loss"])
    stage.hand.produce("orders")
    stage.plan_and_apply()


DANGERS = (
    retention_lowered,
    retention_lowered_knowingly,
    retention_taken_out,
    default_lowered,
    compacted_from_now_on,
    unclean_election,
    compacted_grows,
    keyed_grows,
    deletion,
    deletion_in_use,
)
