"""Rows of topics, partitions, brokers and configs, from states that are written out here."""

from __future__ import annotations

from dataclasses import replace

import pytest
from shorthand import HERE, NOW_MS, brokers, cluster, rows, spec, topic

from reconciler.errors import Location
from reconciler.inventory.brokers import BrokerStatus, list_brokers
from reconciler.inventory.configs import list_configs, trace_config
from reconciler.inventory.inventory import Inventory, Standing
from reconciler.inventory.topics import list_partitions, list_topics, note_usage
from reconciler.model.cluster import (
    Broker,
    LogDirectory,
    StoredReplica,
    TopicSpec,
    TopicState,
    TopicUsage,
)
from reconciler.model.configs import ConfigValue, Origin
from reconciler.model.health import Fault
from reconciler.spec.entry import ClusterEntry

ENTRY = ClusterEntry("prod", HERE, ignore=("connect-*",))
PROFILE = Location("topics/clusters.yaml", 9)


def take(*topics: TopicState, specs: tuple[TopicSpec, ...] = (), **found: object) -> Inventory:
    state = replace(cluster(*topics), **found)
    layers = {PROFILE: Origin.PROFILE}
    return Inventory("prod", state, ENTRY, {each.name: each for each in specs}, layers)


class TestTopics:
    def test_a_topic_has_the_owner_and_the_place_of_its_spec(self) -> None:
        found = take(topic("1,2 2,3"), specs=(spec(owner="shop-team"),))
        (row,) = list_topics(found, found.state.topics.values())
        assert (row.topic, row.partitions, row.replication) == ("shop.orders", 2, (2,))
        assert (row.owner, row.spec, row.standing) == ("shop-team", HERE, Standing.MANAGED)

    def test_a_topic_is_unmanaged_ignored_or_internal_without_a_spec(self) -> None:
        names = {"a": False, "connect-x": False, "__consumer_offsets": True}
        found = take(*(topic("1", name, internal=is_) for name, is_ in names.items()))
        stands = {
            row.topic: row.standing for row in list_topics(found, found.state.topics.values())
        }
        assert stands == {
            "a": Standing.UNMANAGED,
            "connect-x": Standing.IGNORED,
            "__consumer_offsets": Standing.INTERNAL,
        }

    def test_what_was_not_read_is_unknown(self) -> None:
        found = take(topic("1,2"))
        (row,) = list_topics(found, found.state.topics.values())
        unknown = (row.problems, row.size_bytes, row.written_ms, row.readers)
        assert unknown == (None, None, None, None)

    def test_a_size_is_unknown_if_that_of_one_partition_is(self) -> None:
        found = take(topic("1 2", size_bytes=(5, -1)))
        (row,) = list_topics(found, found.state.topics.values())
        assert row.size_bytes is None
        first, second = list_partitions(found, found.state.topics.values())
        assert (first.size_bytes, second.size_bytes, first.skew) == (5, None, None)

    def test_a_hot_partition_is_larger_than_the_mean(self) -> None:
        found = take(topic("1 2 3 1", size_bytes=(70, 10, 10, 10)))
        each = list_partitions(found, found.state.topics.values())
        assert [row.skew for row in each] == pytest.approx([2.8, 0.4, 0.4, 0.4])

    def test_what_hides_readers_is_said_once(self) -> None:
        hidden = TopicUsage(NOW_MS, ends=(1,), unseen="group g is rebalancing")
        usage = {"a": hidden, "b": hidden, "c": TopicUsage(NOW_MS, ends=(1,))}
        (note,) = note_usage(take(usage=usage).state)
        assert str(note) == (
            "who uses a and 1 more topic is not fully known: group g is rebalancing; a topic "
            "without a reader here may have one [groups-unseen]"
        )


class TestHealth:
    def test_each_partition_has_its_problems_worst_first(self) -> None:
        sick = topic(
            "1,2,3 1,2,3 1,2,3 1,2,3",
            in_sync=((1, 2, 3), (1, 2), (1,), (1,)),
            leaders=(1, 1, 1, -1),
            config={"min.insync.replicas": "2"},
        )
        found = take(sick)
        assert [row.problems for row in list_partitions(found, [sick])] == [
            (),
            (Fault.UNDER_REPLICATED,),
            (Fault.UNWRITABLE, Fault.UNDER_REPLICATED),
            (Fault.OFFLINE, Fault.UNDER_REPLICATED),
        ]
        (row,) = list_topics(found, [sick])
        assert row.problems == {"offline": 1, "unwritable": 1, "under_replicated": 3}

    def test_the_default_of_the_cluster_counts_without_an_override(self) -> None:
        sick = topic("1,2,3", in_sync=((1,),), leaders=(1,))
        (row,) = list_topics(take(sick), [sick])
        assert row.problems == {"under_replicated": 1}
        strict = take(sick, config_defaults={"min.insync.replicas": "2"})
        (row,) = list_topics(strict, [sick])
        assert row.problems == {"unwritable": 1, "under_replicated": 1}

    def test_a_replica_that_is_still_copied_is_no_problem(self) -> None:
        moved = topic("1,2,3", in_sync=((1, 2),), leaders=(1,), reassigning=frozenset({0}))
        (row,) = list_partitions(take(moved), [moved])
        assert (row.problems, row.moving) == ((), True)


class TestBrokers:
    def test_a_broker_counts_what_it_leads_should_lead_and_holds(self) -> None:
        one = topic(
            "1,2 2,1 1,2", in_sync=rows("1,2 2,1 1"), leaders=(2, 2, 1), size_bytes=(1, 2, 4)
        )
        disk = LogDirectory("/d", 100, 40, 3)
        found = take(one, directories={1: (disk,), 2: (replace(disk, online=False),)})
        first, second, third = list_brokers(found)
        assert (first.leaders, first.preferred, first.replicas, first.behind) == (1, 2, 3, 0)
        assert (first.size_bytes, first.used, first.is_unhealthy) == (7, (60, 100), False)
        assert (second.leaders, second.behind, second.offline_directories) == (2, 1, 1)
        assert (second.used, second.is_unhealthy) == (None, True)
        assert (third.replicas, third.size_bytes) == (0, 0)

    def test_several_log_directories_have_the_bytes_of_their_replicas(self) -> None:
        disks = tuple(LogDirectory(path, 100, 40, 1) for path in ("/a", "/b"))
        failed = LogDirectory("/c", None, None, online=False)
        stored = {1: {("t", 0): StoredReplica("/a", 7), ("t", 1): StoredReplica("/a", 2)}}
        found = take(topic("1 1", "t"), directories={1: (*disks, failed)}, stored=stored)
        first, *_ = list_brokers(found)
        assert first.directory_bytes == {"/a": 9, "/b": 0}

    def test_a_dead_broker_is_unhealthy_and_a_cordoned_one_is_not(self) -> None:
        nodes = (Broker(1, cordoned=True), Broker(2, alive=False))
        found = take(topic("1,2", in_sync=rows("1"), leaders=(1,)), brokers=nodes)
        first, second = list_brokers(found)
        assert (first.status, first.is_unhealthy) == (BrokerStatus.CORDONED, False)
        assert (second.status, second.is_unhealthy) == (BrokerStatus.DEAD, True)

    def test_leaders_of_a_snapshot_are_unknown(self) -> None:
        first, *_ = list_brokers(take(topic("1,2"), brokers=brokers("a", "b")))
        assert (first.rack, first.leaders, first.behind, first.size_bytes) == (
            "a",
            None,
            None,
            None,
        )


class TestConfigs:
    def test_an_override_of_a_profile_has_the_place_of_the_profile(self) -> None:
        places = {"config.retention.ms": PROFILE}
        wished = spec(config={"retention.ms": "7"}, fields=places)
        live = topic("1", config={"retention.ms": "7"})
        (row,) = list_configs(take(live, specs=(wished,)), [live])
        assert (row.value, row.origin, row.where, row.specified) == (
            "7",
            Origin.PROFILE,
            PROFILE,
            None,
        )

    def test_an_override_that_differs_from_the_spec_is_nobodys_of_it(self) -> None:
        places = {"config.retention.ms": PROFILE}
        wished = spec(config={"retention.ms": "7"}, fields=places)
        live = topic("1", config={"retention.ms": "8"})
        (row,) = list_configs(take(live, specs=(wished,)), [live])
        assert (row.value, row.origin, row.where, row.specified) == (
            "8",
            Origin.TOPIC,
            PROFILE,
            "7",
        )

    def test_an_override_that_the_spec_does_not_want_is_said(self) -> None:
        live = topic("1", config={"retention.ms": "8"})
        found = take(live, specs=(spec(),), config_defaults={"retention.ms": "9"})
        (row,) = list_configs(found, [live])
        assert (row.origin, row.specified, row.beneath) == (Origin.TOPIC, "", "9")

    def test_the_spelling_of_a_list_is_no_difference(self) -> None:
        wished = spec(config={"cleanup.policy": "compact,delete"}, fields={})
        live = topic("1", config={"cleanup.policy": "delete,compact"})
        (row,) = list_configs(take(live, specs=(wished,)), [live])
        assert row.specified is None

    def test_a_default_has_the_origin_that_brokers_tell(self) -> None:
        live = topic("1")
        told = {b: {"retention.ms": ConfigValue("5", Origin.STATIC)} for b in (1, 2)}
        row = trace_config(take(live), live, "retention.ms", told)
        assert (row.value, row.origin, row.by_broker) == ("5", Origin.STATIC, None)

    def test_brokers_may_differ_in_a_default(self) -> None:
        live = topic("1")
        told = {
            1: {"retention.ms": ConfigValue("5", Origin.KAFKA)},
            2: {"retention.ms": ConfigValue("6", Origin.BROKER)},
        }
        row = trace_config(take(live), live, "retention.ms", told)
        assert (row.value, row.origin, row.by_broker) == (None, Origin.BROKER, {1: "5", 2: "6"})

    def test_what_the_spec_wants_and_nobody_has_is_said(self) -> None:
        wished = spec(config={"retention.ms": "7"}, fields={"config.retention.ms": PROFILE})
        live = topic("1")
        found = take(live, specs=(wished,), config_defaults={"retention.ms": "9"})
        row = trace_config(found, live, "retention.ms", {})
        assert (row.value, row.origin, row.specified, row.where) == (
            "9",
            Origin.UNKNOWN,
            "7",
            PROFILE,
        )
