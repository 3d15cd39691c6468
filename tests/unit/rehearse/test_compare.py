"""Comparison: what is found is held against the plan, and what stood by against the setup."""

from __future__ import annotations

from dataclasses import replace

from shorthand import ONE, cluster, plan, spec, topic, unused_cluster

from reconciler.model.outcomes import Outcome, OutcomeKind
from reconciler.model.plan import Deletion, TopicImage
from reconciler.model.steps import DeleteTopic, steps_of
from reconciler.rehearse.bind import bind_plan, plan_setup
from reconciler.rehearse.compare import compare_found
from reconciler.rehearse.setup import prepare_setup
from reconciler.spec.services import Placement

STATE = cluster(topic("1,2", config={"flush.ms": "5"}), topic("2,3", "audit"))
PLAN = plan([spec(partitions=2, config={"flush.ms": "6"}, assignment=((1, 2), (3, 1)))], STATE)
SCENE = prepare_setup(PLAN, STATE, "4.4.0")
DONE = (Outcome("shop.orders", OutcomeKind.DONE),)


def test_what_was_done_as_planned_differs_in_nothing() -> None:
    after = cluster(topic("1,2 3,1", config={"flush.ms": "6"}), topic("2,3", "audit"))
    assert compare_found(PLAN, SCENE, DONE, after) == {}


def test_every_row_and_override_that_differs_is_named() -> None:
    after = cluster(topic("1,3", config={"flush.ms": "5", "segment.ms": "9"}))
    assert compare_found(PLAN, SCENE, DONE, after) == {
        "audit": ("it is not there",),
        "shop.orders": (
            "it has 1 partitions and should have 2",
            "partition 0 is on brokers [1, 3] and should be on [1, 2]",
            "flush.ms is 5 and should be 6",
            "segment.ms is 9 and should not be set",
        ),
    }


def test_overrides_that_the_plan_does_not_speak_of_stay() -> None:
    """A plan leaves out the keys that its cluster does not offer."""
    live = topic("1,2", config={"flush.ms": "5", "segment.ms": "9"})
    setup = prepare_setup(PLAN, cluster(live), "4.4.0")
    assert (
        compare_found(
            PLAN,
            setup,
            DONE,
            cluster(topic("1,2 3,1", config={"flush.ms": "6", "segment.ms": "9"})),
        )
        == {}
    )
    assert compare_found(
        PLAN, setup, DONE, cluster(topic("1,2 3,1", config={"flush.ms": "6"}))
    ) == {"shop.orders": ("segment.ms is not set and should be 9",)}


def test_of_what_failed_the_outcome_tells() -> None:
    failed = (Outcome("shop.orders", OutcomeKind.FAILED, "the brokers refuse it"),)
    assert compare_found(PLAN, SCENE, failed, STATE) == {}


def test_what_the_plan_refuses_stays_as_it_was() -> None:
    refused = plan([spec("audit", partitions=1, replication_factor=1)], STATE)
    moved = cluster(topic("1,2", config={"flush.ms": "5"}), topic("3,2", "audit"))
    found = compare_found(refused, SCENE, (), moved)
    assert found == {"audit": ("partition 0 is on brokers [3, 2] and should be on [2, 3]",)}


def test_the_scene_is_a_plan_that_creates_it() -> None:
    made = plan_setup(SCENE, "throwaway")
    assert (made.cluster_id, [planned.name for planned in made.topics]) == (
        "throwaway", ["audit", "shop.orders"]
    )  # fmt: skip
    assert made.topics[1].before is None
    assert made.topics[1].after == TopicImage(None, ((1, 2),), {"flush.ms": "5"})


def test_a_plan_is_bound_to_the_ids_of_the_throwaway_cluster() -> None:
    bound = bind_plan(PLAN, "throwaway", {"shop.orders": "there"})
    assert bound.cluster_id == "throwaway"
    (before, after) = (bound.topics[0].before, bound.topics[0].after)
    assert before is not None
    assert after is not None
    assert (before.topic_id, after.topic_id) == ("there", "there")
    assert replace(after, topic_id="id-shop.orders") == PLAN.topics[0].after


def test_a_default_of_the_real_cluster_need_not_be_that_of_the_throwaway_one() -> None:
    state = cluster(topic("1,2"), defaults={"flush.ms": "7"})
    made = plan([spec(config={"flush.ms": "7"})], state)
    assert made.topics[0].explicit == ("flush.ms",)
    assert bind_plan(made, "throwaway", {}).topics[0].explicit == ()


def test_what_is_left_out_is_not_applied_and_what_is_refused_is_told() -> None:
    assert bind_plan(PLAN, "throwaway", {}, {"shop.orders"}).topics == ()
    refused = plan([spec(partitions=0)], STATE)
    assert bind_plan(refused, "throwaway", {}, {"shop.orders"}).topics != ()


def test_what_is_to_be_deleted_is_empty_there() -> None:
    state = unused_cluster(topic("1 2"), ends=(4, 7), records=11, newest_ms=1)
    doomed = plan([spec(absent=True)], state, guards=ONE)
    (bound,) = bind_plan(doomed, "throwaway", {"shop.orders": "there"}).topics
    assert steps_of(bound) == (DeleteTopic("shop.orders", "there"),)
    assert bound.deletion == Deletion(604_800_000, (0, 0))


def test_of_what_the_brokers_place_the_counts_are_compared() -> None:
    accepted = frozenset({"ordering"})
    wished = [spec(partitions=2, config={"flush.ms": "5"}, acknowledge=accepted)]
    made = plan(wished, STATE, placement=Placement.BROKER)
    setup = prepare_setup(made, STATE, "4.4.0")
    assert [broker.id for broker in setup.brokers] == [1, 2, 3]
    assert [note.what for note in setup.notes] == [
        "the brokers place replicas, and those of another service may place them elsewhere"
    ]
    other, config = topic("2,3", "audit"), {"flush.ms": "5"}
    found = {
        rows: compare_found(made, setup, DONE, cluster(topic(rows, config=config), other))
        for rows in ("1,2 2,3", "1,2 3,1", "1,2 1,2,3")
    }
    wrong = {"shop.orders": ("partition 1 has 3 replicas and should have 2",)}
    assert list(found.values()) == [{}, {}, wrong]
