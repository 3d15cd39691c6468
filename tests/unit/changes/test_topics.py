"""The diff: what becomes work, what is refused and how that reads, what is only noted."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest
from shorthand import CATALOGUE, brokers, cluster, diff, may_move, rows, said, spec, topic

from reconciler.changes.topics import diff_topics
from reconciler.diff.brokers import eligible_brokers
from reconciler.diff.fields import FieldChange, managed_overrides
from reconciler.errors import Location, Severity
from reconciler.model.cluster import Broker, ClusterState

DEAD = Broker(4, alive=False)
CORDONED = Broker(5, cordoned=True)
AT = "topics/shop.yaml:3:1: "
THREE = brokers(None, None, None)


def refusals(*args: Any, **kwargs: Any) -> list[str]:
    """Return what a diff refuses, without the place that all of it has."""
    return [text.removeprefix(AT) for text in said(diff(*args, **kwargs).refusals)]


# What needs no refusal.


def test_a_spec_that_the_cluster_satisfies_has_no_changes() -> None:
    wished = spec(partitions=3, replication_factor=1, config={"retention.ms": "1"})
    assert diff(wished, cluster(topic(config={"retention.ms": "1"}))).changes == ()


@pytest.mark.parametrize("field", ["partitions", "replication_factor"])
def test_a_count_that_is_left_out_is_not_managed(field: str) -> None:
    wished: dict[str, Any] = {"partitions": 3, "replication_factor": 1}
    found = cluster(topic("1,2 2,3 3,1 1,2"))
    kept = {name: count for name, count in wished.items() if name != field}
    assert [change.path for change in diff(spec(**kept), found).changes] == list(kept)


def test_a_missing_topic_is_created_entirely() -> None:
    found = diff(spec(partitions=4, replication_factor=2, config={"retention.ms": "1"}))
    assert (found.new_partitions, found.replication_factor, found.state) == (4, 2, None)
    assert found.config == {"retention.ms": "1"}
    assert found.changes == (FieldChange("topic", None, "shop.orders"),)
    assert found.refusals == ()


def test_more_partitions_are_the_work_of_an_expansion() -> None:
    found = diff(spec(partitions=5), cluster(topic("1,2 2,3 3,1")))
    assert (found.new_partitions, found.replication_factor) == (2, 2)
    assert found.changes == (FieldChange("partitions", 3, 5),)
    assert found.refusals == ()


def test_an_expansion_by_hand_takes_only_the_rows_that_are_new() -> None:
    found = diff(spec(assignment=rows("1,2 2,3 3,2 3,1")), cluster(topic("1,2 2,3")))
    assert (found.given, found.new_partitions, found.refusals) == (rows("3,2 3,1"), 2, ())


def test_manual_rows_win_over_inherited_counts() -> None:
    found = diff(spec(partitions=9, replication_factor=3, assignment=rows("1,2 2,3")))
    assert (found.new_partitions, found.replication_factor, found.refusals) == (2, 2, ())


def test_manual_rows_need_no_racks() -> None:
    wished = spec(assignment=rows("1,2"))
    assert refusals(wished, cluster(nodes=brokers("a", None))) == []


def test_diffs_come_by_topic_name() -> None:
    wished = [spec(name, partitions=1, replication_factor=1) for name in ("b", "c", "a")]
    assert [d.spec.name for d in diff_topics(wished, cluster(), CATALOGUE)] == ["a", "b", "c"]


# Configs.


def test_a_config_that_is_not_set_is_set() -> None:
    found = diff(spec(config={"retention.ms": "1"}), cluster(topic()))
    assert found.changes == (FieldChange("config.retention.ms", None, "1"),)
    assert found.config == {"retention.ms": "1"}


def test_a_config_that_leaves_the_file_is_unset() -> None:
    found = diff(spec(), cluster(topic(config={"retention.ms": "1"})))
    assert found.changes == (FieldChange("config.retention.ms", "1", None),)
    assert found.config == {}


def test_configs_without_a_common_key_are_changes_one_by_one() -> None:
    wished = spec(config={"retention.ms": "1", "segment.ms": "2", "flush.ms": "3"})
    found = diff(wished, cluster(topic(config={"max.message.bytes": "9"})))
    assert [change.path for change in found.changes] == [
        "config.flush.ms",
        "config.max.message.bytes",
        "config.retention.ms",
        "config.segment.ms",
    ]


def test_a_config_equal_to_the_default_and_not_set_is_set() -> None:
    written = {"retention.ms": "604800000"}
    found = diff(spec(config=written), cluster(topic(), defaults=written))
    assert found.changes == (FieldChange("config.retention.ms", None, "604800000"),)
    assert found.config == written


def test_a_config_set_to_the_default_stays_set_while_the_spec_has_it() -> None:
    override = {"retention.ms": "604800000"}
    state = cluster(topic(config=override), defaults=override)
    assert diff(spec(config=override), state).changes == ()


def test_an_override_is_set_to_the_default_where_the_spec_says_so() -> None:
    state = cluster(topic(config={"retention.ms": "1"}), defaults={"retention.ms": "2"})
    assert diff(spec(config={"retention.ms": "2"}), state).config == {"retention.ms": "2"}


def test_a_list_in_another_order_is_no_difference_and_keeps_the_live_spelling() -> None:
    state = cluster(topic(config={"cleanup.policy": "delete,compact"}))
    found = diff(spec(config={"cleanup.policy": "compact,delete"}), state)
    assert (found.changes, found.config) == ((), {"cleanup.policy": "delete,compact"})


def test_a_list_equal_to_the_default_in_another_order_is_set_as_it_is_written() -> None:
    state = cluster(topic(), defaults={"cleanup.policy": "delete,compact"})
    found = diff(spec(config={"cleanup.policy": "compact,delete"}), state)
    assert found.config == {"cleanup.policy": "compact,delete"}


@pytest.mark.parametrize("side", ["leader", "follower"])
def test_throttled_replicas_are_noted_and_never_unset(side: str) -> None:
    key = f"{side}.replication.throttled.replicas"
    found = diff(spec(), cluster(topic(config={key: "0:1"})))
    assert (found.changes, found.config) == ((), {})
    assert said(found.notes) == [
        f"{AT}{key} is set on the topic: a reassignment is throttled, or an earlier one left it; "
        "reconciler moves settle removes it once nothing uses it [not-managed]"
    ]
    assert found.notes[0].severity is Severity.NOTE
    (all_replicas,) = diff(spec(), cluster(topic(config={key: "*"}))).notes
    way_out = "reconciler moves unthrottle --topic shop.orders removes it"
    assert all_replicas.way_out == way_out


def test_a_key_that_the_brokers_do_not_know_is_noted_and_never_unset() -> None:
    found = diff(spec(), cluster(topic(config={"left.over": None})))
    assert (found.changes, found.config) == ((), {})
    assert said(found.notes) == [
        f"{AT}left.over is set on the topic, but the brokers do not know that key; "
        "kafka-configs --delete-config removes it [not-managed]"
    ]


def test_managed_overrides_leave_out_throttles_and_unknown_keys() -> None:
    config = {"leader.replication.throttled.replicas": "*", "odd": None, "flush.ms": "1"}
    assert managed_overrides(topic(config=config)) == {"flush.ms": "1"}


# Brokers that may take something new.


def test_eligible_brokers_are_alive_not_cordoned_not_excluded_and_by_id() -> None:
    found = eligible_brokers((CORDONED, Broker(3), Broker(1), DEAD, Broker(2)), {2})
    assert [broker.id for broker in found] == [1, 3]


# Refusals, each with its whole message.


def test_partitions_never_shrink() -> None:
    assert refusals(spec(partitions=8), cluster(topic("1 2 3 1 2 3 1 2 3 1 2 3"))) == [
        "12 → 8 partitions: Kafka cannot remove partitions; put 12 back, or create a new topic "
        "and move its producers and consumers [partitions-never-shrink]"
    ]


def test_fewer_manual_rows_than_partitions_shrink_too() -> None:
    (refusal,) = refusals(spec(assignment=rows("1 2")), cluster(topic("1 2 3")))
    assert refusal.startswith("3 → 2 partitions: Kafka cannot remove partitions; ")


@pytest.mark.parametrize("wished", [1, 3])
def test_replication_stays(wished: int) -> None:
    assert refusals(spec(replication_factor=wished), cluster(topic("1,2 2,3"))) == [
        f"replication_factor 2 → {wished}: changing it moves replicas, which this cluster does not "
        "allow; put 2 back, or write moves: {allow: [replication], rate: 30MiB} below this cluster "
        "in clusters.yaml [replication-stays]"
    ]


def test_one_partition_of_another_replication_differs_from_the_wish() -> None:
    (refusal,) = refusals(spec(replication_factor=2), cluster(topic("1,2 2,3,1 3,1")))
    assert refusal.startswith("replication_factor 3 → 2: ")


def test_replicas_stay() -> None:
    wished = spec(assignment=rows("1,2 3,2"))
    assert refusals(wished, cluster(topic("1,2 2,3"))) == [
        "assignment of partition 1: [2, 3] → [3, 2]: this changes existing replicas, which this "
        "cluster does not allow; write [2, 3], or write moves: {allow: [assignment], rate: 30MiB} "
        "below this cluster in clusters.yaml [replicas-stay]"
    ]


def test_replicas_that_would_move_are_refused_in_the_order_of_partitions() -> None:
    found = refusals(spec(assignment=rows("2 " * 11)), cluster(topic("1 " * 11)))
    starts = [f"assignment of partition {number}: [1] → [2]" for number in range(11)]
    assert [text[: len(start)] for text, start in zip(found, starts, strict=True)] == starts


@pytest.mark.parametrize(
    ("numbers", "said"), [({1, 0}, "partitions 0, 1 are"), ({1}, "partition 1 is")]
)
def test_an_expansion_waits_for_the_end_of_a_reassignment(numbers: set[int], said: str) -> None:
    found = cluster(topic("1,2 2,3", reassigning=frozenset(numbers)))
    assert refusals(spec(partitions=3), found) == [
        f"{said} being reassigned; Kafka may take the inflated list of replicas for the "
        "replication factor; wait until the reassignment has ended, or cancel it, and plan "
        "again [expand-after-reassignment]"
    ]


def test_a_reassignment_does_not_hold_up_a_config() -> None:
    found = cluster(topic("1,2", reassigning=frozenset({0})))
    assert refusals(spec(config={"retention.ms": "1"}), found) == []


def test_a_topic_of_mixed_replication_is_not_expanded() -> None:
    assert refusals(spec(partitions=3), cluster(topic("1,2 3"))) == [
        "its partitions have 1 and 2 replicas; Kafka compares new partitions with one of the "
        "existing ones, chosen arbitrarily; write replication_factor: 2 and write moves: "
        "{allow: [replication], rate: 30MiB} below this cluster in clusters.yaml, then give all of "
        "them the same number with reconciler plan --moves [expand-uniform-replication]"
    ]


@pytest.mark.parametrize(
    ("kinds", "edit"),
    [
        (["replication"], ""),
        (["assignment"], " and add replication to moves.allow of this cluster in clusters.yaml"),
    ],
)
def test_the_way_out_of_mixed_replication_edits_what_lacks(kinds: list[str], edit: str) -> None:
    found = diff(spec(partitions=3), cluster(topic("1,2 3")), moves=may_move(*kinds))
    assert [refusal.way_out for refusal in found.refusals] == [
        f"write replication_factor: 2{edit}, then give all of "
        "them the same number with reconciler plan --moves"
    ]


@pytest.mark.parametrize(
    ("counts", "missing"),
    [
        ({}, "partitions and replication_factor"),
        ({"partitions": 1}, "replication_factor"),
        ({"replication_factor": 1}, "partitions"),
    ],
)
def test_creating_needs_both_counts(counts: dict[str, int], missing: str) -> None:
    assert refusals(spec(**counts)) == [
        f"topic shop.orders does not exist, and its spec leaves out {missing}; "
        f"write {missing} in the topic, its profile or the defaults [create-needs-counts]"
    ]


def test_a_new_name_does_not_collide_with_a_live_one() -> None:
    wished = spec(partitions=1, replication_factor=1)
    assert refusals(wished, cluster(topic(name="shop_orders"))) == [
        "topic shop.orders would collide with the live topic shop_orders: metrics spell '.' and "
        "'_' alike, so Kafka refuses it; choose another name, or write shop_orders in the spec "
        "instead [name-collides-with-live]"
    ]


def test_collisions_are_listed_in_one_order_whatever_the_order_of_topics() -> None:
    wished = spec("a_b_c", partitions=1, replication_factor=1)
    live = [topic(name=name) for name in ("a.b.c", "a.b_c", "a_b.c")]
    answers = {tuple(refusals(wished, cluster(*order))) for order in permutations(live)}
    assert len(answers) == 1


def test_a_live_topic_that_collides_already_is_no_matter_of_the_spec() -> None:
    live = cluster(topic(), topic(name="shop_orders"))
    assert refusals(spec(partitions=3), live) == []


def test_replication_is_at_most_the_brokers() -> None:
    assert refusals(spec(partitions=1, replication_factor=4)) == [
        "replication_factor 4 exceeds the 3 brokers that can take replicas; use at most 3, "
        "or add brokers [rf-le-brokers]"
    ]


def test_brokers_that_take_nothing_new_do_not_count_for_replication() -> None:
    state = cluster(nodes=[*THREE, DEAD, CORDONED])
    assert refusals(spec(partitions=1, replication_factor=3), state, excluded={1}) == [
        "replication_factor 3 exceeds the 2 brokers that can take replicas (not 1, which "
        "exclude_brokers or drain_brokers keeps out; not 4, which is not alive; not 5, whose log "
        "directories are all cordoned); use at most 2, or add brokers [rf-le-brokers]"
    ]


def test_of_many_brokers_that_take_nothing_new_a_few_are_named() -> None:
    state = cluster(nodes=brokers(*"abcdef"))
    (refusal,) = refusals(spec(partitions=1, replication_factor=2), state, excluded={1, 2, 3, 4, 5})
    assert (
        "3, which exclude_brokers or drain_brokers keeps out; nor 2 more); use at most 1, or "
        in refusal
    )


def test_a_topic_that_exists_is_not_told_to_lower_its_replication() -> None:
    state = cluster(topic("1,2,3"), nodes=[*THREE])
    assert refusals(spec(partitions=2), state, excluded={1}) == [
        "replication_factor 3 exceeds the 2 brokers that can take replicas (not 1, which "
        "exclude_brokers or drain_brokers keeps out); add brokers [rf-le-brokers]"
    ]


def test_the_partition_of_the_fewest_replicas_bounds_the_in_sync_ones() -> None:
    wished = spec(config={"min.insync.replicas": "2"})
    assert [r.rule for r in diff(wished, cluster(topic("1 1,2"))).refusals] == [
        "min-insync-le-replication"
    ]


def test_spreading_over_racks_needs_all_of_them() -> None:
    state = cluster(nodes=brokers("a", None, "b", None))
    assert refusals(spec(partitions=1, replication_factor=2), state) == [
        "brokers 2, 4 report no rack while others do, so spreading over racks cannot be promised; "
        "set broker.rack on them, or write rack_aware: false in the spec [racks-known]"
    ]


def test_one_broker_is_not_several() -> None:
    (said,) = refusals(spec(partitions=1, replication_factor=2), cluster(nodes=brokers("a", None)))
    assert said.startswith("broker 2 reports no rack while others do, ")
    assert "; set broker.rack on it, or " in said
    (said,) = refusals(spec(partitions=1, replication_factor=2), cluster(nodes=brokers(None)))
    assert said.startswith("replication_factor 2 exceeds the 1 broker that can take replicas; ")


def test_the_number_of_replicas_that_the_spec_asks_for_is_the_one_to_give() -> None:
    state = cluster(topic("1,2 1,2,3"))
    for wished, edit in (
        (spec(partitions=3, replication_factor=2), "keep replication_factor: 2"),
        (spec(partitions=3), "write replication_factor: 3"),
    ):
        (refusal,) = [text for text in refusals(wished, state) if "[expand-uniform" in text]
        assert f"; {edit} and write moves: " in refusal


def test_unknown_racks_do_not_matter_to_a_spec_that_opts_out() -> None:
    wished = spec(partitions=1, replication_factor=2, rack_aware=False)
    assert refusals(wished, cluster(nodes=brokers("a", None))) == []


def test_the_rack_of_a_broker_that_takes_nothing_does_not_matter() -> None:
    wished = spec(partitions=1, replication_factor=2)
    state = cluster(nodes=[*brokers("a", "b"), Broker(3)])
    assert refusals(wished, state, excluded={3}) == []


@pytest.mark.parametrize(
    ("broker", "refusal"),
    [
        (9, "which the cluster does not have; brokers that can take replicas: 1, 2 "),
        (4, "which is not alive; start it first; brokers that can take replicas: 1, 2 "),
        (5, "whose log directories are all cordoned; brokers that can take replicas: 1, 2 "),
        (
            3,
            "which exclude_brokers or drain_brokers keeps out; "
            "brokers that can take replicas: 1, 2 ",
        ),
    ],
)
def test_a_manual_row_names_brokers_that_can_take_it(broker: int, refusal: str) -> None:
    rule = {9: "broker-unknown", 4: "broker-dead", 5: "broker-cordoned", 3: "broker-excluded"}
    wished = spec(assignment=((1, 2), (2, broker)))
    state = cluster(nodes=[*THREE, DEAD, CORDONED])
    assert refusals(wished, state, excluded={3}) == [
        f"partition 1 is assigned to broker {broker}, {refusal}[{rule[broker]}]"
    ]


def test_the_row_numbers_of_an_expansion_by_hand_count_on() -> None:
    wished = spec(assignment=rows("1 2 9"))
    (refusal,) = refusals(wished, cluster(topic("1 2")))
    assert refusal.startswith("partition 2 is assigned to broker 9, ")


def test_existing_replicas_on_a_dead_broker_are_no_matter_of_the_spec() -> None:
    wished = spec(assignment=rows("4,1"))
    assert refusals(wished, cluster(topic("4,1"), nodes=[*THREE, DEAD])) == []


def test_min_insync_of_a_new_topic_is_at_most_its_replication() -> None:
    wished = spec(partitions=1, replication_factor=2, config={"min.insync.replicas": "3"})
    assert refusals(wished) == [
        "min.insync.replicas 3 exceeds the 2 replicas of shop.orders: acks=all then guarantees 2 "
        "replicas, not 3, and every such write fails while replication grows; use at most 2 "
        "[min-insync-le-replication]"
    ]


@pytest.mark.parametrize("others", [{}, {"flush.ms": "1", "retention.ms": "2", "segment.ms": "3"}])
def test_min_insync_of_a_live_topic_is_at_most_its_replication(others: dict[str, str]) -> None:
    live = topic("1,2", config={"max.message.bytes": "9"})
    (refusal,) = refusals(spec(config={"min.insync.replicas": "3", **others}), cluster(live))
    assert refusal.startswith("min.insync.replicas 3 exceeds the 2 replicas of shop.orders: ")


def test_min_insync_that_is_there_already_is_no_change_to_refuse() -> None:
    config = {"min.insync.replicas": "3"}
    assert refusals(spec(config=config), cluster(topic("1,2", config=config))) == []


def test_an_absent_topic_that_is_absent_is_no_change() -> None:
    found = diff(spec(absent=True))
    assert (found.changes, found.refusals) == ((), ())


def test_a_refusal_stands_where_the_field_was_written() -> None:
    written = Location("topics/clusters.yaml", 2, 30)
    wished = spec(partitions=1, fields={"partitions": written})
    (refusal,) = diff(wished, cluster(topic())).refusals
    assert refusal.where == written


def test_every_reason_is_given_at_once() -> None:
    wished = spec(partitions=1, replication_factor=2, config={"min.insync.replicas": "2"})
    rules = [refusal.rule for refusal in diff(wished, cluster(topic("1 2"))).refusals]
    assert rules == ["partitions-never-shrink", "replication-stays", "min-insync-le-replication"]


@pytest.mark.parametrize(
    ("also", "rules"),
    [({}, ["untiering-deletes"]), ({"remote.log.delete.on.disable": "true"}, [])],
)
def test_leaving_the_remote_tier_says_that_its_records_go(
    also: dict[str, str], rules: list[str]
) -> None:
    live = topic(config={"remote.storage.enable": "true"})
    wished = spec(config={"remote.storage.enable": "false", **also})
    state = cluster(live, defaults={"remote.storage.enable": "false"})
    assert [refusal.rule for refusal in diff(wished, state).refusals] == rules


# What the brokers' own settings decide.

COUNTS: dict[str, Any] = {"partitions": 3, "replication_factor": 1}
TIERED = {"remote.storage.enable": "true"}
TIER = "remote.log.storage.system.enable"
KAFKAS = {key: CATALOGUE.default(key) or "" for key in CATALOGUE.keys}


def with_settings(state: ClusterState, *, tier: str) -> ClusterState:
    return replace(state, broker_settings={TIER: tier})


OFF = (
    "remote.storage.enable is true, and brokers refuse that: remote.log.storage.system.enable is "
    "not true on all of them; write remote.storage.enable: false, or set "
    "remote.log.storage.system.enable=true on all brokers and controllers first "
    "[tiered-storage-off]"
)


def test_no_topic_is_tiered_where_the_brokers_have_no_tier() -> None:
    wished = spec(config=TIERED, **COUNTS)
    live = topic("1 2 3")
    for state in (cluster(), cluster(live)):
        assert refusals(wished, with_settings(state, tier="false")) == [OFF]
        found = diff(wished, with_settings(state, tier="true"))
        assert (found.refusals, found.notes) == ((), ())


def test_what_is_not_known_of_the_tier_is_said() -> None:
    found = diff(spec(config=TIERED, **COUNTS))
    assert found.refusals == ()
    (note,) = found.notes
    assert (note.rule, note.severity) == ("tiered-storage-unknown", Severity.NOTE)


def test_a_topic_that_is_tiered_and_stays_as_it_is_is_left_alone() -> None:
    state = with_settings(cluster(topic(config=TIERED)), tier="false")
    found = diff(spec(config=TIERED, partitions=4), state)
    assert (found.refusals, found.notes) == ((), ())


@pytest.mark.parametrize(
    ("config", "default", "rule"),
    [
        ({"min.compaction.lag.ms": "5000"}, {"max.compaction.lag.ms": "4000"}, "config-lag-pair"),
        (TIERED, {"cleanup.policy": "compact"}, "tiered-needs-delete"),
        (
            {**TIERED, "local.retention.ms": "5000"},
            {"retention.ms": "4000"},
            "tiered-local-retention",
        ),
    ],
)
def test_the_brokers_own_defaults_can_contradict_a_config(
    config: dict[str, str], default: dict[str, str], rule: str
) -> None:
    wished = spec(config=config, **COUNTS)
    for live in ((), (topic("1 2 3"),)):
        state = with_settings(cluster(*live, defaults=KAFKAS | default), tier="true")
        assert [finding.rule for finding in diff(wished, state).refusals] == [rule]
        calm = with_settings(cluster(*live, defaults=KAFKAS), tier="true")
        assert diff(wished, calm).refusals == ()


def test_defaults_on_which_brokers_disagree_refuse_nothing() -> None:
    known = {key: value for key, value in KAFKAS.items() if key != "max.compaction.lag.ms"}
    wished = spec(config={"min.compaction.lag.ms": "9223372036854775807"}, **COUNTS)
    assert diff(wished, cluster(defaults=known)).refusals == ()


def test_a_snapshot_that_tells_nonsense_refuses_nothing() -> None:
    state = cluster(defaults=KAFKAS | {"max.compaction.lag.ms": "an hour"})
    assert diff(spec(**COUNTS), state).refusals == ()


# Brokers that disagree.


def test_an_override_on_which_brokers_disagree_is_neither_set_nor_unset() -> None:
    told = {1: "77", 2: None, 3: None}
    live = topic(config={"segment.ms": "1"}, disputed={"flush.ms": told, "retention.ms": told})
    found = diff(spec(config={"flush.ms": "5", "segment.ms": "2"}), cluster(live))
    assert [change.path for change in found.changes] == ["config.segment.ms"]
    assert found.config == {"segment.ms": "2"}
    assert said(found.notes)[0] == (
        f"{AT}brokers disagree on flush.ms, so it is left as it is: 77 on broker 1, not set on "
        "broker 2 and 3; plan again in a minute; if they still disagree, set it with "
        "kafka-configs --alter [config-disputed]"
    )
    assert {note.severity for note in found.notes} == {Severity.WARNING}
