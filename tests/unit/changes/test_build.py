"""Building a plan: what is placed, what is refused whole, what is only counted."""

from __future__ import annotations

from shorthand import HERE, ONE, brokers, cluster, plan, rows, spec, topic, unused_cluster

from reconciler.changes.build import Placing
from reconciler.errors import Finding, Severity
from reconciler.model.cluster import Broker
from reconciler.model.moves import LoadKind
from reconciler.model.plan import Balance, Spread, TopicImage
from reconciler.model.steps import steps_of

NEW = {"partitions": 3, "replication_factor": 1}


def test_a_satisfied_spec_is_only_counted() -> None:
    made = plan([spec(partitions=3)], cluster(topic()))
    assert (made.topics, made.unchanged) == ((), 1)


def test_a_new_topic_has_nothing_before_and_all_its_rows_after() -> None:
    (planned,) = plan([spec(**NEW, config={"flush.ms": "1"})], cluster()).topics
    assert planned.before is None
    assert planned.after is not None
    assert planned.after.topic_id is None
    assert sorted(planned.after.assignment) == [(1,), (2,), (3,)]
    assert planned.after.config == {"flush.ms": "1"}


def test_an_expansion_keeps_the_rows_that_are_there() -> None:
    (planned,) = plan([spec(partitions=3)], cluster(topic("1 2"))).topics
    assert planned.before == TopicImage("id-shop.orders", rows("1 2"), {})
    assert planned.after == TopicImage("id-shop.orders", rows("1 2 3"), {})


def test_manual_rows_are_taken_as_they_are() -> None:
    (planned,) = plan([spec(assignment=rows("2 2 1"))], cluster(topic("2"))).topics
    assert planned.after is not None
    assert planned.after.assignment == rows("2 2 1")


def test_a_topic_is_refused_whole() -> None:
    wished = spec(partitions=1, config={"flush.ms": "1"})
    (planned,) = plan([wished], cluster(topic("1 2"))).topics
    assert planned.after == planned.before
    assert steps_of(planned) == ()


def test_a_refused_new_topic_has_neither_before_nor_after() -> None:
    (planned,) = plan([spec(partitions=1, replication_factor=9)], cluster()).topics
    assert (planned.before, planned.after) == (None, None)


def test_a_refused_topic_takes_no_room_from_the_others() -> None:
    good = spec("a", partitions=1, replication_factor=1)
    refused = spec("b", partitions=50, replication_factor=9)
    alone, beside = plan([good], cluster()), plan([good, refused], cluster())
    assert alone.topics[0].after == beside.topics[0].after
    assert beside.balance_after == alone.balance_after


def test_refused_manual_rows_are_no_load() -> None:
    good = spec("a", partitions=1, replication_factor=1)
    refused = spec("b", assignment=rows("1 1 1 9"))
    assert plan([good, refused], cluster()).topics[0] == plan([good], cluster()).topics[0]


def test_manual_rows_are_load_for_the_others() -> None:
    manual = spec("manual", assignment=rows("1 2"))
    placed = [spec(name, partitions=1, replication_factor=1) for name in ("a", "b", "c")]
    for wished in placed:
        made = plan([manual, wished], cluster())
        assert made.topics[0].after is not None
        assert made.topics[0].after.assignment == rows("3")


def test_a_topic_with_only_notes_is_listed_and_does_nothing() -> None:
    live = topic(config={"leader.replication.throttled.replicas": "*"})
    (planned,) = plan([spec(partitions=3)], cluster(live)).topics
    assert steps_of(planned) == ()
    assert [note.rule for note in planned.notes] == ["not-managed"]
    assert planned.before == planned.after


def test_topics_come_by_name() -> None:
    made = plan([spec(name, **NEW) for name in ("c", "a", "b")], cluster())
    assert [planned.name for planned in made.topics] == ["a", "b", "c"]


def test_live_topics_in_no_file_are_named() -> None:
    live = [topic(name=name) for name in ("z", "shop.orders", "a")]
    assert plan([spec()], cluster(*live)).unmanaged == ("a", "z")


def test_ignored_topics_are_nobodys_business() -> None:
    live = [topic(name="_schemas"), topic(name="b")]
    assert plan([], cluster(*live), ignored=["_schemas"]).unmanaged == ("b",)


def test_internal_topics_are_neither_unmanaged_nor_counted() -> None:
    state = cluster(topic(name="__consumer_offsets", internal=True), topic(name="b"))
    made = plan([], state)
    assert (made.unmanaged, made.live_topics) == (("b",), 1)


def test_an_absent_topic_is_not_unmanaged() -> None:
    assert plan([spec(absent=True)], cluster(topic())).unmanaged == ()


def test_internal_topics_count_neither_in_balance_nor_in_placement() -> None:
    offsets = topic("1,2 1,3 1,2 2,3", "__consumer_offsets", internal=True)
    wished = [spec(**NEW)]
    assert plan(wished, cluster(offsets, topic(name="b"))) == plan(wished, cluster(topic(name="b")))


def test_internal_topics_have_no_weight_by_size_either() -> None:
    huge = topic("1 1", "__consumer_offsets", internal=True, size_bytes=(2**40, 2**40))
    sized = topic(name="b", size_bytes=(2**21, 2**22, 2**23))
    for placing in (Placing(by=LoadKind.DISK), Placing(by=LoadKind.WRITE)):
        with_it, without = (
            plan([spec(**NEW)], cluster(*live), placing=placing)
            for live in ((huge, sized), (sized,))
        )
        assert with_it == without


def test_excluded_brokers_take_nothing_and_count_in_no_balance() -> None:
    made = plan([spec(**NEW)], cluster(topic("3", "old")), excluded={3})
    (planned,) = made.topics
    assert planned.after is not None
    assert {broker for row in planned.after.assignment for broker in row} == {1, 2}
    assert made.balance_before == Balance(Spread(0, 0), Spread(0, 0))


def test_a_cluster_where_no_broker_takes_anything_refuses_and_does_not_fail() -> None:
    made = plan([spec(**NEW)], cluster(nodes=[Broker(1, alive=False)]))
    assert [finding.rule for finding in made.topics[0].refusals] == ["rf-le-brokers"]


def test_configs_change_on_a_cluster_where_no_broker_takes_anything() -> None:
    state = cluster(topic("1"), nodes=[Broker(1, cordoned=True)])
    (planned,) = plan([spec(config={"flush.ms": "1"})], state).topics
    assert len(steps_of(planned)) == 1


def test_balance_is_told_before_and_after() -> None:
    made = plan([spec(partitions=3)], cluster(topic("1 2"), topic("1 1", "other")))
    (planned,) = made.topics
    assert planned.balance_before == Balance(Spread(0, 1), Spread(0, 1))
    assert planned.balance_after == Balance(Spread(1, 1), Spread(1, 1))
    assert made.balance_before == Balance(Spread(0, 3), Spread(0, 3))
    assert made.balance_after == Balance(Spread(1, 3), Spread(1, 3))


def test_a_new_topic_has_no_balance_before() -> None:
    made = plan([spec(**NEW)], cluster())
    (planned,) = made.topics
    assert planned.balance_before is None
    assert made.balance_after == planned.balance_after
    assert planned.balance_after == Balance(Spread(1, 1), Spread(1, 1))


def test_a_change_of_configs_has_no_balance() -> None:
    (planned,) = plan([spec(config={"flush.ms": "1"})], cluster(topic())).topics
    assert (planned.balance_before, planned.balance_after) == (None, None)


def test_a_refused_expansion_has_no_balance() -> None:
    live = topic("1,2 2", reassigning=frozenset({1}))
    (planned,) = plan([spec(partitions=3)], cluster(live)).topics
    assert planned.balance_after is None


def test_racks_are_kept_apart() -> None:
    state = cluster(nodes=brokers("a", "a", "b", "b"))
    (planned,) = plan([spec(partitions=8, replication_factor=2)], state).topics
    assert planned.after is not None
    assert all((row[0] <= 2) != (row[1] <= 2) for row in planned.after.assignment)


def test_brokers_are_told_by_id() -> None:
    made = plan([], cluster(nodes=[Broker(2), Broker(1, alive=False)]))
    assert made.brokers == (Broker(1, alive=False), Broker(2))


def test_what_the_caller_adds_is_carried() -> None:
    note = Finding("estate-empty", "nothing", where=HERE, severity=Severity.NOTE)
    made = plan([], cluster(), files=7, notes=[note])
    assert (made.cluster, made.cluster_id, made.files) == ("prod", "cluster-1", 7)
    assert made.notes == (note,)


def test_what_goes_counts_while_the_rest_is_placed_and_not_afterwards() -> None:
    """Deletions come last, so until then brokers carry the old and the new."""
    old, new = topic("1 1 1 1", "old"), spec("new", partitions=2, replication_factor=1)
    made = plan([spec("old", absent=True), new], unused_cluster(old), guards=ONE)
    placed, gone = made.topics
    assert placed.after is not None
    assert {row[0] for row in placed.after.assignment} == {2, 3}
    assert gone.after is None
    assert made.balance_after is not None
    assert made.balance_after.replicas == Spread(0, 1)
    assert made.unmanaged == ()
