"""Scenes: which brokers and topics have to stand before a plan is rehearsed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from shorthand import brokers, cluster, plan, spec, topic

from reconciler.changes.plan import plan_cluster
from reconciler.model.cluster import Broker
from reconciler.model.plan import TopicImage
from reconciler.model.steps import steps_of
from reconciler.rehearse import setup as stage
from reconciler.rehearse.setup import keep_known, prepare_setup
from reconciler.spec.entry import ClusterEntry

RELEASE = "4.4.0"
NODES = brokers("a", "b", None)


def test_a_state_brings_all_its_topics_with_the_overrides_that_a_spec_can_speak_of() -> None:
    odd = {"flush.ms": "5", "old.key": None, "leader.replication.throttled.replicas": "0:1"}
    live = (topic("1,2"), topic("2,3", "audit", config=odd), topic("1", "__own", internal=True))
    state = cluster(*live, nodes=NODES)
    setup = prepare_setup(plan([spec(partitions=2)], state), state, RELEASE)
    assert setup.topics["audit"] == TopicImage("id-audit", ((2, 3),), {"flush.ms": "5"})
    assert (set(setup.topics), setup.replicas) == ({"shop.orders", "audit", "__own"}, 5)
    assert (setup.brokers, setup.complete, setup.notes) == (NODES, True, ())


def test_no_broker_is_asked_for_a_config_that_is_not_kafkas() -> None:
    live = topic("1,2", config={"redpanda.remote.read": "true", "flush.ms": "5"})
    state = cluster(live, nodes=NODES)
    wished = spec(config={"redpanda.remote.write": "true", "flush.ms": "6"})
    known = frozenset({"flush.ms", "redpanda.remote.write"})
    entry = ClusterEntry("prod", wished.location, known_configs=known)
    made = plan_cluster(entry, [wished], state)
    setup = prepare_setup(made, state, RELEASE)
    assert setup.topics["shop.orders"].config == {"flush.ms": "5"}
    assert [note.what for note in setup.notes] == [
        "not rehearsed, since Kafka 4.4.0 has no such configs: "
        "redpanda.remote.read, redpanda.remote.write"
    ]
    (rehearsed,) = keep_known(made, RELEASE).topics
    assert rehearsed.after is not None
    assert rehearsed.after.config == {"flush.ms": "6"}
    (step,) = steps_of(rehearsed)
    assert step.verb == "configure"


def test_a_plan_alone_brings_what_it_rests_on() -> None:
    state = cluster(topic("1,2"), topic("2", "audit"), nodes=NODES)
    made = plan([spec(partitions=2), spec("new", partitions=1, replication_factor=1)], state)
    setup = prepare_setup(made, None, RELEASE)
    assert (set(setup.topics), setup.complete) == ({"shop.orders"}, False)
    assert [note.rule for note in setup.notes] == ["rehearsal-differs"]
    assert [note.what for note in setup.notes] == [
        "the plan contains only its own topics, so balance is measured over these"
    ]


def test_too_many_other_topics_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    state = cluster(topic("1,2"), topic("2 3 1", "audit"))
    made = plan([spec(partitions=2)], state)
    monkeypatch.setattr(stage, "MOST_REPLICAS", 7)
    assert prepare_setup(made, state, RELEASE).complete
    monkeypatch.setattr(stage, "MOST_REPLICAS", 6)
    setup = prepare_setup(made, state, RELEASE)
    assert (set(setup.topics), setup.complete) == ({"shop.orders"}, False)
    assert setup.notes[0].what.startswith("7 replicas are more than the 6 that are set up")


def test_dead_brokers_are_started_first_for_the_replicas_they_hold() -> None:
    nodes = (Broker(1, "a"), Broker(2, "b", alive=False), Broker(3, "c", cordoned=True))
    state = cluster(topic("1,2 1,9"), nodes=nodes)
    setup = prepare_setup(plan([spec(partitions=2)], state), state, RELEASE)
    assert [(broker.id, broker.rack) for broker in setup.brokers] == [
        (1, "a"), (2, "b"), (3, "c"), (9, None)
    ]  # fmt: skip
    assert all(broker.alive and not broker.cordoned for broker in setup.brokers)
    assert (setup.dead, setup.cordoned) == ((2, 9), (3,))


def test_an_older_kafka_cannot_cordon_and_that_is_said() -> None:
    state = cluster(topic("1"), nodes=(Broker(1), Broker(3, cordoned=True)))
    setup = prepare_setup(plan([spec(partitions=2)], state), state, "4.2.1")
    assert setup.cordoned == ()
    assert setup.notes[0].what == "broker 3 is cordoned, which this Kafka release lacks"


def test_mixed_replication_is_left_out() -> None:
    state = cluster(topic("1,2 3"), topic("1", "audit"))
    setup = prepare_setup(plan([spec("audit", partitions=2)], state), state, RELEASE)
    assert setup.left_out == {
        "shop.orders": "its partitions have 1 and 2 replicas, and brokers do not create such "
        "a topic"
    }
    assert set(setup.topics) == {"audit"}


def test_the_brokers_own_settings_go_by_their_own_names() -> None:
    defaults = {
        "retention.ms": "1000",
        "min.insync.replicas": "2",
        "cleanup.policy": "delete",
        "segment.ms": "5000",
        "unknown.key": "1",
    }
    state = cluster(topic("1"), defaults=defaults)
    assert prepare_setup(plan([], state), state, RELEASE).properties == {
        "log.retention.ms": "1000",
        "min.insync.replicas": "2",
        "log.roll.ms": "5000",
    }


def test_a_tiered_topic_asks_for_the_tier() -> None:
    tiered = topic("1", "old", config={"remote.storage.enable": "true"})
    state = cluster(topic("1"), tiered)
    made = plan([spec(partitions=2)], state)
    assert prepare_setup(made, state, RELEASE).tiered
    assert not prepare_setup(made, None, RELEASE).tiered


def test_what_a_plan_adds_is_counted() -> None:
    state = cluster(topic("1,2 2,3"))
    more = spec("new", partitions=4, replication_factor=3)
    made = plan([spec(partitions=5), more], state)
    assert stage.count_added(made) == 3 * 2 + 4 * 3
    assert stage.count_added(replace(made, topics=())) == 0
