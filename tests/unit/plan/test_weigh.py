"""Scales: what a replica weighs, by count, size or rate."""

from __future__ import annotations

from shorthand import brokers, cluster, plan, spec, topic

from reconciler.plan import Placing
from reconciler.plan.weigh import ReplicaWeights

MIB = 2**20
HEAVY = topic("1,2 2,3", "heavy", size_bytes=(700 * MIB, 300 * MIB))
LIGHT = topic("3,1", "light", size_bytes=(0,))
STATE = cluster(HEAVY, LIGHT, nodes=brokers(None, None, None))


def test_by_count_every_replica_weighs_one() -> None:
    leaders, replicas = ReplicaWeights(STATE).weigh_load([("new", ((1, 2),))])
    assert (leaders, replicas) == ({1: 2, 2: 1, 3: 1}, {1: 3, 2: 3, 3: 2})
    assert ReplicaWeights(STATE).weigh_topic("heavy") == 1


def test_by_size_a_replica_weighs_its_mebibytes_and_at_least_one() -> None:
    leaders, replicas = ReplicaWeights(STATE, "size").weigh_load([])
    assert leaders == {1: 700, 2: 300, 3: 1}
    assert replicas == {1: 701, 2: 1000, 3: 301}


def test_a_new_partition_weighs_what_the_others_of_its_topic_do() -> None:
    weights = ReplicaWeights(STATE, "size")
    assert weights.weigh_topic("heavy") == 500
    assert weights.weigh_topic("unheard-of") == round((500 + 1) / 2)


def test_nothing_to_weigh_by_is_noticed() -> None:
    assert ReplicaWeights(STATE, "rate").is_blank
    assert not ReplicaWeights(STATE, "size").is_blank
    assert not ReplicaWeights(cluster()).is_blank


def test_a_plan_by_size_spares_the_broker_that_bears_the_most() -> None:
    wished = [spec("new", partitions=1, replication_factor=1)]
    after = plan(wished, STATE, placing=Placing(weigh="size")).topics[0].after
    assert after is not None
    assert after.assignment == ((3,),)
