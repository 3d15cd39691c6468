"""Which topics a choice has, and which names are errors."""

from __future__ import annotations

from dataclasses import replace

import pytest
from shorthand import HERE, NOW_MS, cluster, spec, topic

from reconciler.errors import UsageError
from reconciler.inventory.inventory import Choice, Inventory, find_topic, read_labels
from reconciler.model.cluster import TopicUsage
from reconciler.spec.entry import ClusterEntry

INTERNAL = "__consumer_offsets"
STATE = cluster(
    topic("1,2", "orders.events", in_sync=((1,),), leaders=(1,)),
    topic("1,2", "orders.dlq", in_sync=((1, 2),), leaders=(1,)),
    topic("1,2", "payments", in_sync=((1, 2),), leaders=(1,)),
    topic("1,2", INTERNAL, internal=True, in_sync=((1,),), leaders=(1,)),
)
SPECS = {
    "orders.events": spec("orders.events", owner="orders", labels={"pii": "true", "tier": "gold"}),
    "payments": spec("payments", owner="pay", labels={"pii": "true", "tier": "silver"}),
    "new": spec("new"),
}
FOUND = Inventory("prod", STATE, ClusterEntry("prod", HERE), SPECS)
ALONE = Inventory("broker:9092", STATE)


def names(choice: Choice, found: Inventory = FOUND) -> list[str]:
    return [each.name for each in found.choose(choice)]


@pytest.mark.parametrize(
    ("choice", "chosen"),
    [
        (Choice(), ["orders.dlq", "orders.events", "payments"]),
        (Choice(topics=("orders.*", "pay*")), ["orders.dlq", "orders.events", "payments"]),
        (Choice(owners=("pay",)), ["payments"]),
        (Choice(owners=("pay", "orders"), topics=("orders.*",)), ["orders.events"]),
        (Choice(unmanaged=True), ["orders.dlq"]),
        (Choice(internal=True), [INTERNAL]),
        (Choice(topics=(INTERNAL,)), [INTERNAL]),
        (Choice(topics=("*",)), ["orders.dlq", "orders.events", "payments"]),
        (Choice(unhealthy=True), [INTERNAL, "orders.events"]),
        (Choice(unhealthy=True, unmanaged=True), []),
    ],
)
def test_every_filter_must_hold(choice: Choice, chosen: list[str]) -> None:
    assert names(choice) == chosen


@pytest.mark.parametrize(
    ("labels", "chosen"),
    [
        (["pii"], ["orders.events", "payments"]),
        (["pii=true", "tier=gold"], ["orders.events"]),
        (["tier=gold", "tier=silver"], ["orders.events", "payments"]),
        (["tier=gold", "tier"], ["orders.events", "payments"]),
        (["tier", "tier=gold"], ["orders.events", "payments"]),
        (["pii=false"], []),
        (["tier="], []),
    ],
)
def test_values_of_a_label_are_alternatives_and_every_key_must_be_there(
    labels: list[str], chosen: list[str]
) -> None:
    assert names(Choice(labels=read_labels(labels))) == chosen


@pytest.mark.parametrize(
    ("usage", "is_idle"),
    [
        (TopicUsage(NOW_MS, ends=(9,), newest_ms=1_000), True),
        (TopicUsage(NOW_MS, ends=(9,), newest_ms=2_000), False),
        (TopicUsage(NOW_MS, ends=(0,)), True),
        (TopicUsage(NOW_MS, ends=(9,), newest_ms=1_000, groups=("billing",)), False),
        (TopicUsage(NOW_MS, unseen="no leader"), False),
    ],
)
def test_a_topic_is_idle_without_writes_and_readers(usage: TopicUsage, is_idle: bool) -> None:
    found = replace(FOUND, state=replace(STATE, usage={"payments": usage}))
    assert names(Choice(idle_since_ms=1_500), found) == ["payments"] * is_idle


@pytest.mark.parametrize(
    ("choice", "found", "said"),
    [
        (
            Choice(topics=("order.events",)),
            FOUND,
            "no topic of prod matches --topic 'order.events'",
        ),
        (Choice(topics=("order.events",)), FOUND, "did you mean orders.events?"),
        (Choice(owners=("order",)), FOUND, "has owner 'order'; did you mean orders?"),
        (Choice(labels=read_labels(["pii=tru"])), FOUND, "label 'pii=tru'; did you mean pii=true?"),
        (Choice(labels=read_labels(["tiers"])), FOUND, "has label 'tiers'; did you mean tier?"),
        (Choice(labels=read_labels(["pii"])), ALONE, "--label needs the specs"),
        (Choice(owners=("orders",)), ALONE, "--owner needs the specs"),
        (Choice(unmanaged=True), ALONE, "--unmanaged needs the specs"),
    ],
)
def test_a_name_that_nothing_has_is_an_error(choice: Choice, found: Inventory, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        found.check(choice)
    assert said in str(caught.value)


def test_a_topic_of_a_spec_alone_is_not_live_yet() -> None:
    assert find_topic(FOUND, "new") is None
    assert find_topic(FOUND, "payments") is STATE.topics["payments"]
    with pytest.raises(UsageError, match="no topic 'payment', and no spec names it; did you"):
        find_topic(FOUND, "payment")
    with pytest.raises(UsageError, match="has no topic 'zzz'"):
        find_topic(ALONE, "zzz")
