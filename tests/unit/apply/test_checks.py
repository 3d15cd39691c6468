"""Preconditions: the cluster is the one planned for, its brokers still take the replicas."""

from __future__ import annotations

from dataclasses import replace

import pytest
from shorthand import HERE, brokers, cluster, plan, rows, said, spec, topic

from reconciler.apply.checks import find_moved_brokers, find_recreated
from reconciler.model.cluster import Broker
from reconciler.model.steps import CreateTopic, steps_of
from reconciler.run.checks import find_other_cluster

NODES = brokers("a", "b", None)
STATE = cluster(topic("1"), nodes=NODES)
PLAN = plan([spec(assignment=rows("1 2")), spec("new", assignment=rows("2"))], STATE)


STEPS = [step for planned in PLAN.topics for step in steps_of(planned)]


def moved(*nodes: Broker) -> list[str]:
    return said(find_moved_brokers(STEPS, PLAN.brokers, nodes))


def test_nothing_moved() -> None:
    assert moved(*NODES) == []


def test_another_cluster() -> None:
    assert said(find_other_cluster(PLAN, replace(STATE, cluster_id="other"))) == [
        "the plan is for cluster cluster-1, and this is cluster other; apply it to prod, or plan "
        "for this cluster [plan-cluster]"
    ]


def test_a_plan_that_is_bound_to_an_address() -> None:
    bound = replace(PLAN, cluster_id="bootstrap:a:9098")
    assert list(find_other_cluster(bound, replace(STATE, cluster_id="bootstrap:a:9098"))) == []
    assert said(find_other_cluster(bound, replace(STATE, cluster_id="bootstrap:b:9098"))) == [
        "the plan is for the cluster without an id at a:9098, and this is the cluster without an "
        "id at b:9098; apply it to prod at that address, or plan for this cluster [plan-cluster]"
    ]
    assert said(find_other_cluster(bound, STATE)) == [
        "the plan is for the cluster without an id at a:9098, and this is cluster cluster-1; apply "
        "it to prod at that address, or plan for this cluster [plan-cluster]"
    ]


def test_a_plan_without_a_cluster_id_fits_any() -> None:
    assert list(find_other_cluster(replace(PLAN, cluster_id=None), STATE)) == []


@pytest.mark.parametrize(
    ("broker", "trouble"),
    [
        (None, "not alive"),
        (Broker(2, "b", alive=False), "not alive"),
        (Broker(2, "b", cordoned=True), "cordoned"),
    ],
)
def test_a_broker_that_can_no_longer_take_replicas(broker: Broker | None, trouble: str) -> None:
    others = [node for node in NODES if node.id != 2]
    assert moved(*others, *([broker] if broker else [])) == [
        f"broker 2 is to take replicas of new, shop.orders and is {trouble}; bring it back, or "
        "plan again [plan-stale]"
    ]


@pytest.mark.parametrize(("rack", "said"), [("z", "in rack z"), (None, "in no rack")])
def test_a_broker_in_another_rack(rack: str | None, said: str) -> None:
    assert moved(NODES[0], Broker(2, rack), NODES[2]) == [
        f"broker 2 is to take replicas of new, shop.orders and is {said}, not in rack b; "
        "plan again [plan-stale]"
    ]


@pytest.mark.parametrize("broker", [1, 3])
def test_a_broker_that_gets_nothing_new_may_be_gone(broker: int) -> None:
    assert moved(*(node for node in NODES if node.id != broker)) == []


def test_brokers_do_not_matter_to_configs() -> None:
    steps = steps_of(plan([spec(config={"flush.ms": "1"})], STATE).topics[0])
    assert list(find_moved_brokers(steps, NODES, ())) == []


def test_brokers_do_not_matter_to_what_is_done_already() -> None:
    assert list(find_moved_brokers((), NODES, ())) == []


def test_many_topics_are_named_in_part() -> None:
    steps = [CreateTopic(f"t{number}", rows("1"), {}) for number in range(5)]
    (finding,) = find_moved_brokers(steps, NODES, ())
    assert finding.what == "broker 1 is to take replicas of t0, t1, t2 and 2 more and is not alive"


def test_a_topic_that_was_created_anew() -> None:
    assert said(find_recreated(PLAN, {"shop.orders": "other"})) == [
        f"{HERE}: shop.orders: it was deleted and created again since the plan was made; "
        "plan again [plan-stale]"
    ]


@pytest.mark.parametrize("ids", [{}, {"shop.orders": "id-shop.orders"}])
def test_an_id_that_is_the_same_or_not_told_is_no_sign(ids: dict[str, str]) -> None:
    assert list(find_recreated(PLAN, ids)) == []


def test_a_topic_that_the_plan_does_not_change_may_be_created_anew() -> None:
    made = plan([spec(partitions=9, replication_factor=2)], STATE)
    assert made.topics[0].refusals
    assert list(find_recreated(made, {"shop.orders": "other"})) == []
