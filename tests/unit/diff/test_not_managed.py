"""Configs that no spec manages: they are left alone, and named once."""

from __future__ import annotations

from shorthand import cluster, spec, topic

from reconciler.changes.topics import diff_topics, list_left_alone
from reconciler.diff.fields import list_doubts
from reconciler.diff.refusals import note_left_alone
from reconciler.model.cluster import ClusterState, TopicSpec
from reconciler.spec.configs import Catalogue, choose_catalogue

NEWEST = choose_catalogue()
SERVICE = choose_catalogue(None, frozenset({"retention.ms", "redpanda.remote.read"}))
LIVE = {"redpanda.remote.read": "true", "retention.ms": "5", "segment.ms": "7"}


def compare(wished: TopicSpec, state: ClusterState, catalogue: Catalogue) -> dict[str, object]:
    """Return what a plan changes: each path with the value that it is to have."""
    (found,) = diff_topics([wished], state, catalogue)
    return {change.path: change.desired for change in found.changes}


def say(state: ClusterState, catalogue: Catalogue, *wished: TopicSpec) -> list[str]:
    diffs = diff_topics(wished, state, catalogue)
    return list(map(str, note_left_alone(list_left_alone(diffs, state), catalogue)))


def test_a_config_outside_the_catalogue_is_kept() -> None:
    state = cluster(topic(config=LIVE))
    wished = spec(config={"segment.ms": "7"})
    assert compare(wished, state, NEWEST) == {"config.retention.ms": None}
    assert say(state, NEWEST, wished) == [
        "redpanda.remote.read is set on shop.orders; Kafka 4.4 has no such topic config, so it is "
        "left alone; to manage it, list it in known_configs with all other configs of the service "
        "[not-managed]"
    ]


def test_a_config_of_another_release_is_kept_and_the_release_named() -> None:
    newer = cluster(topic(config={"max.decompressed.message.bytes": "5"}))
    assert compare(spec(), newer, choose_catalogue("4.0")) == {}
    older = cluster(topic(config={"message.format.version": "3.0-IV1"}))
    assert compare(spec(), older, NEWEST) == {}
    assert say(newer, choose_catalogue("4.0"), spec()) == [
        "max.decompressed.message.bytes is set on shop.orders; Kafka 4.0 has no such topic config, "
        'so it is left alone; write kafka_version: "4.4" if the cluster runs that [not-managed]'
    ]
    assert say(older, NEWEST, spec()) == [
        "message.format.version is set on shop.orders; Kafka 4.4 has no such topic config, so it "
        'is left alone; write kafka_version: "3.9" if the cluster runs that [not-managed]'
    ]


def test_a_service_lets_a_config_be_set_and_that_does_not_make_it_ours() -> None:
    state = cluster(topic(config=LIVE))
    assert compare(spec(), state, SERVICE) == {"config.retention.ms": None}
    assert say(state, SERVICE, spec()) == [
        "redpanda.remote.read is set on shop.orders; no spec names it there, so it is left alone; "
        "to manage it, write a value, or null to remove it [not-managed]",
        "segment.ms is set on shop.orders; it cannot be set there, so it is left alone; "
        "if it can, list it in known_configs with all the others [not-managed]",
    ]


def test_a_value_in_a_spec_is_set_and_a_null_unsets() -> None:
    state = cluster(topic(config=LIVE))
    kept = {"retention.ms": "5"}
    written = spec(config={**kept, "redpanda.remote.read": "false"})
    assert compare(written, state, SERVICE) == {"config.redpanda.remote.read": "false"}
    removed = spec(config=kept, unset=frozenset({"redpanda.remote.read"}))
    assert compare(removed, state, SERVICE) == {"config.redpanda.remote.read": None}


def test_a_null_unsets_nothing_that_the_cluster_does_not_offer() -> None:
    """A null may only keep the value of another cluster away."""
    state = cluster(topic(config=LIVE))
    wished = spec(config={"retention.ms": "5"}, unset=frozenset({"redpanda.remote.read"}))
    assert compare(wished, state, choose_catalogue(None, frozenset({"retention.ms"}))) == {}
    assert compare(wished, state, NEWEST) == {"config.segment.ms": None}


def test_a_config_on_many_topics_is_named_once() -> None:
    names = [f"shop.{n}" for n in range(9)]
    state = cluster(*(topic(name=name, config={"redpanda.remote.read": "true"}) for name in names))
    (said,) = say(state, NEWEST, *map(spec, names))
    assert "redpanda.remote.read is set on shop.0, shop.1, shop.2 and 6 more topics; " in said


def test_a_disputed_config_outside_the_catalogue_is_left_alone_as_well() -> None:
    state = cluster(topic(disputed={"redpanda.remote.read": {1: "true", 2: None}}))
    (found,) = diff_topics([spec()], state, NEWEST)
    assert found.notes == ()
    assert [said.partition(" ")[0] for said in say(state, NEWEST, spec())] == [
        "redpanda.remote.read"
    ]


def test_nothing_is_read_again_for_a_config_that_is_left_alone() -> None:
    state = cluster(topic(config={"redpanda.remote.read": "true"}))
    doubts = list_doubts([spec()], state, NEWEST)
    assert (doubts.overridden, doubts.planned) == ((), ())


def test_a_deletion_takes_every_config_into_account() -> None:
    state = cluster(topic(config=LIVE))
    (found,) = diff_topics([spec(absent=True)], state, SERVICE)
    assert found.state is state.topics["shop.orders"]
