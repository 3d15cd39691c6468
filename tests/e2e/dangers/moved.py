"""A cluster that moved since the plan was made

The saved plan grows `orders` from 6 to 9 partitions, keeps its records for 8 days instead of 7, and
creates `refunds`. Then something happens, and the plan is applied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dangers.stage import APPLY, clusters
from reconciler.sandbox.cluster import start_cluster

if TYPE_CHECKING:
    from dangers.stage import Stage


def _save_expansion(stage: Stage) -> None:
    """Save a plan that grows a topic, and creates one that nothing happens to."""
    stage.have("orders", config={"retention.ms": "7d"})
    stage.wish("orders", partitions=9, config={"retention.ms": "8d"})
    stage.wish("refunds")
    stage.save()


def recreated(stage: Stage) -> None:
    """The topic was deleted and created again, as it was"""
    _save_expansion(stage)
    found = stage.hand.look("orders")
    assert found is not None
    stage.hand.delete("orders")
    stage.hand.create("orders", list(map(list, found.assignment)), retention_ms="604800000")
    stage.apply_saved()


def deleted(stage: Stage) -> None:
    """The topic was deleted"""
    _save_expansion(stage)
    stage.hand.delete("orders")
    stage.apply_saved()


def grown(stage: Stage) -> None:
    """The topic has grown further than planned"""
    _save_expansion(stage)
    stage.hand.grow("orders", 12)
    stage.apply_saved()


def configured(stage: Stage) -> None:
    """A config that the plan sets was changed"""
    _save_expansion(stage)
    stage.hand.configure("orders", retention_ms="3600000")
    stage.apply_saved()


def configured_elsewhere(stage: Stage) -> None:
    """A config that the plan does not touch was changed"""
    _save_expansion(stage)
    stage.hand.configure("orders", segment_ms="3600000")
    stage.apply_saved()


def created_meanwhile(stage: Stage) -> None:
    """Somebody else created the topic, otherwise"""
    _save_expansion(stage)
    stage.hand.create("refunds", [[1], [2]])
    stage.apply_saved()


def other_cluster(stage: Stage) -> None:
    """The plan is applied to another cluster"""
    _save_expansion(stage)
    stage.move_to(stage.enter(start_cluster(brokers=1)))
    stage.apply_saved()


def expected_cluster(stage: Stage) -> None:
    """clusters.yaml expects another cluster at that address"""
    stage.write("clusters.yaml", clusters("{cluster_id: 5L6g3nShT-eMCtK--X86sw}"))
    stage.wish("orders")
    stage.plan_and_apply()


def unexpected_plan(stage: Stage) -> None:
    """The merge job's plan is not the one that was approved"""
    _save_expansion(stage)
    approved = stage.fingerprint()
    stage.wish("refunds", partitions=60)
    stage.apply(*APPLY, "--expect", approved)


def applied_twice(stage: Stage) -> None:
    """The same plan applied twice"""
    _save_expansion(stage)
    stage.apply_saved()
    stage.apply_saved()


DANGERS = (
    recreated,
    deleted,
    grown,
    configured,
    configured_elsewhere,
    created_meanwhile,
    other_cluster,
    expected_cluster,
    unexpected_plan,
    applied_twice,
)
