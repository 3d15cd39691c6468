"""KafkaMover on real brokers, and what Kafka does with moves that nobody expects.

Each fact of the second kind is a reason for the way moves are made: a test that fails shows that
Kafka has changed, and that the reason may be gone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    ResourceType,
)
from holding import NEWEST, OLDEST, RECORD, SIZE, Holding, accept
from kafka.admin import KafkaAdminClient
from kafka.protocol.admin import IncrementalAlterConfigsRequest
from lab import HERE, wait_for
from proxy import Loss, failing_network

from reconciler.errors import ClusterError
from reconciler.kafka.configs import CORDONED
from reconciler.kafka.connection import connect
from reconciler.kafka.lock import Holder, hold_lock
from reconciler.kafka.mover import KafkaMover
from reconciler.kafka.reader import KafkaReader
from reconciler.kafka.writer import KafkaWriter
from reconciler.model.cluster import Place, RateSource, Replicas, ThrottleList, ThrottleSide
from reconciler.model.moves import MIN_INSYNC, PartitionState
from reconciler.model.outcomes import AnswerKind
from reconciler.model.rights import MOVES_GROUP
from reconciler.model.steps import DeleteTopic, ExpandTopic
from reconciler.sandbox.cluster import Cluster, start_cluster
from reconciler.spec.entry import ClusterEntry

pytestmark = pytest.mark.cluster

ALTER_REASSIGNMENTS, ALTER_CONFIGS = 45, 44


@pytest.fixture(
    scope="module",
    params=[NEWEST, pytest.param(OLDEST, marks=pytest.mark.slow)],
)
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def cluster(release: str) -> Iterator[Cluster]:
    """Return a cluster of its own: a default rate reaches every broker."""
    with start_cluster(brokers=4, racks=2, kafka_version=release) as cluster:
        yield cluster


@pytest.fixture
def holding(cluster: Cluster, release: str) -> Iterator[Holding]:
    holding = Holding(cluster, release)
    yield holding
    holding.release()
    holding.mover.close()


class TestAnswers:
    def test_partitions_are_answered_one_by_one_with_the_texts_of_the_broker(
        self, holding: Holding, topic_prefix: str
    ) -> None:
        topic = topic_prefix + "many"
        holding.create(topic, (1, 2), (1, 2), (1, 2), (1, 2))
        rows: dict[Place, Replicas | None] = {
            (topic, 0): (3, 4),
            (topic, 1): (1, 9),
            (topic, 2): (1, 1),
            (topic, 3): None,
            (topic + "-missing", 0): (1, 2),
        }
        told = holding.mover.reassign(rows)
        holding.await_row((topic, 0), (3, 4))
        assert {place: (each.kind, each.error) for place, each in told.items()} == {
            (topic, 0): (AnswerKind.ACCEPTED, ""),
            (topic, 1): (AnswerKind.REFUSED, "INVALID_REPLICA_ASSIGNMENT"),
            (topic, 2): (AnswerKind.REFUSED, "INVALID_REPLICA_ASSIGNMENT"),
            (topic, 3): (AnswerKind.REFUSED, "NO_REASSIGNMENT_IN_PROGRESS"),
            (topic + "-missing", 0): (AnswerKind.REFUSED, "UNKNOWN_TOPIC_OR_PARTITION"),
        }
        assert "broker 9" in told[topic, 1].text

    def test_another_replication_factor_is_refused_unless_it_is_allowed(
        self, holding: Holding, topic_prefix: str
    ) -> None:
        """KIP-860, from 4.1 on; brokers before do not check."""
        place = holding.create(topic_prefix + "resized", (1, 2))
        answer = holding.mover.reassign({place: (1, 2, 3)})[place]
        if holding.is_newest:
            assert (answer.kind, answer.error) == (
                AnswerKind.REFUSED,
                "INVALID_REPLICATION_FACTOR",
            )
            assert answer.text == "The replication factor is changed from 2 to 3"
            holding.move({place: (1, 2, 3)}, may_resize=True)
        else:
            assert answer.kind is AnswerKind.ACCEPTED
        holding.await_row(place, (1, 2, 3))

    def test_elections(self, holding: Holding, topic_prefix: str) -> None:
        place = holding.create(topic_prefix + "elected", (1, 2))
        missing = (topic_prefix + "missing", 0)
        holding.move({place: (2, 1)})
        holding.await_row(place, (2, 1))
        assert holding.look(place).leader == 1
        told = holding.mover.elect([place, missing])
        assert told[place].kind is AnswerKind.ACCEPTED
        assert told[missing].error == "UNKNOWN_TOPIC_OR_PARTITION"
        wait_for(lambda: holding.look(place).leader == 2)
        assert holding.mover.elect([place])[place].kind is AnswerKind.ACCEPTED  # it leads already

    def test_configs_of_topics(self, holding: Holding, topic_prefix: str) -> None:
        topic, missing = topic_prefix + "configured", topic_prefix + "missing"
        holding.create(topic, (1, 2), retention_ms="5000")
        key = ThrottleSide.LEADER.list_key
        told = holding.mover.configure({topic: {key: "0:1,0:2"}, missing: {key: "0:1"}})
        assert told[topic].kind is AnswerKind.ACCEPTED
        assert told[missing].error == "UNKNOWN_TOPIC_OR_PARTITION"
        shown = ThrottleList(topic, ThrottleSide.LEADER, "0:1,0:2")
        every = dict.fromkeys((1, 2, 3, 4), (shown,))
        wait_for(lambda: holding.mover.read_lists([topic]) == every)
        assert shown in holding.mover.read([]).lists
        accept(holding.mover.configure({topic: {key: None}}))
        wait_for(lambda: holding.mover.read_lists([topic]) == dict.fromkeys((1, 2, 3, 4), ()))
        told = holding.mover.configure({topic: {"min.insync.replicas": "0"}})
        assert (told[topic].kind, told[topic].error) == (AnswerKind.REFUSED, "INVALID_CONFIG")

    def test_the_rate_of_all_brokers(self, holding: Holding) -> None:
        assert holding.mover.set_rate(700_000).kind is AnswerKind.ACCEPTED
        wait_for(lambda: holding.shows_rate(700_000))
        sources = {each.source for each in holding.mover.read([]).rates}
        assert sources == {RateSource.CLUSTER_DEFAULT}
        answer = holding.mover.set_rate(-1)
        assert (answer.kind, answer.error) == (AnswerKind.REFUSED, "INVALID_REQUEST")
        assert "at least 0" in answer.text
        assert holding.mover.set_rate(0).kind is AnswerKind.ACCEPTED
        wait_for(lambda: holding.shows_rate(0))
        assert holding.mover.set_rate(None).kind is AnswerKind.ACCEPTED
        wait_for(lambda: holding.mover.read([]).rates == ())

    def test_nothing_is_asked_for_nothing(self, holding: Holding) -> None:
        mover = holding.mover
        assert (mover.reassign({}), mover.elect(()), mover.configure({})) == ({}, {}, {})


class TestReading:
    def test_partitions_and_sizes_and_directories(
        self, holding: Holding, topic_prefix: str
    ) -> None:
        topic, _ = holding.create(topic_prefix + "read", (1, 2), (3, 4), size=300_000)
        wait_for(lambda: holding.look((topic, 0)).in_sync == (1, 2))
        reading = holding.mover.read([topic, topic_prefix + "missing"])
        assert reading.partitions[topic] == (
            PartitionState((1, 2), 1, (1, 2)),
            PartitionState((3, 4), 3, (3, 4)),
        )
        assert reading.sizes[1][topic, 0] > 300_000
        assert reading.sizes[3] == {(topic, 1): 0}
        assert sorted(reading.directories) == [1, 2, 3, 4]
        for (directory,) in reading.directories.values():
            assert directory.total_bytes is not None
            assert directory.usable_bytes is not None
            assert 0 < directory.usable_bytes < directory.total_bytes

    def test_directories_are_shown_without_a_topic(self, holding: Holding) -> None:
        reading = holding.mover.read([])
        assert [len(each) for each in reading.directories.values()] == [1, 1, 1, 1]


@contextmanager
def failing_mover(cluster: Cluster, api: int, loss: Loss) -> Iterator[KafkaMover]:
    """Return a mover whose first request of a kind is lost."""
    with failing_network(cluster) as network:
        fault = network.lose(api, loss, skip=0)
        servers = network.bootstrap_servers
        mover = KafkaMover(connect(ClusterEntry("lab", HERE), bootstrap_servers=servers))
        yield mover
        mover.close()
        assert fault.struck.is_set()


@pytest.mark.slow
def test_each_log_directory_is_shown_with_the_replicas_of_both(release: str) -> None:
    with start_cluster(brokers=1, log_directories=2, kafka_version=release) as cluster:
        holding = Holding(cluster, release)
        topic, _ = holding.create("both", (1,), (1,), (1,), size=300_000)
        reading = holding.mover.read([topic])
        holding.mover.close()
    assert len(reading.directories[1]) == 2
    assert sorted(number for _, number in reading.sizes[1]) == [0, 1, 2]
    assert reading.sizes[1][topic, 0] > 300_000


class TestLostAnswers:
    @pytest.mark.parametrize("loss", [Loss.CUT_AFTER, Loss.CUT_BEFORE])
    def test_an_answer_that_is_lost_may_have_been_executed(
        self, holding: Holding, topic_prefix: str, loss: Loss
    ) -> None:
        place = holding.create(topic_prefix + "lost", (1, 2))
        with failing_mover(holding.cluster, ALTER_REASSIGNMENTS, loss) as mover:
            answer = mover.reassign({place: (3, 4)})[place]
            assert (answer.kind, answer.error) == (AnswerKind.LOST, "CONNECTION_LOST")
            if loss is Loss.CUT_BEFORE:  # the next request is sent with another client
                assert holding.look(place).replicas == (1, 2)
                accept(mover.reassign({place: (3, 4)}))
        holding.await_row(place, (3, 4))

    def test_a_rate_without_an_answer_is_lost(self, holding: Holding) -> None:
        with failing_mover(holding.cluster, ALTER_CONFIGS, Loss.CUT_AFTER) as mover:
            assert mover.set_rate(700_000).kind is AnswerKind.LOST
        wait_for(lambda: holding.shows_rate(700_000))

    def test_nothing_was_sent_where_no_broker_answers(self) -> None:
        connection = connect(ClusterEntry("lab", HERE), bootstrap_servers="127.0.0.1:1")
        mover = KafkaMover(connection)
        answer = mover.set_rate(1)
        assert (answer.kind, answer.error) == (AnswerKind.NOT_DONE, "CONNECTION_LOST")
        assert mover.elect([("orders", 0)])["orders", 0].kind is AnswerKind.NOT_DONE


class TestTakingBack:
    """What happens to a partition whose move is changed before it ends."""

    def test_a_cancel_changes_the_order_and_so_the_preferred_leader(
        self, holding: Holding, topic_prefix: str
    ) -> None:
        place = holding.begin(topic_prefix + "cancelled", (1, 2, 3), (4, 2, 3))
        holding.move({place: None})
        holding.await_row(place, (2, 3, 1))
        assert holding.look(place).leader == 1
        # The former row is now only another order: it ends at once, also while copies stand still.
        holding.move({place: (1, 2, 3)})
        assert holding.find(place) is None
        holding.await_row(place, (1, 2, 3))

    def test_the_same_target_again_changes_nothing(
        self, holding: Holding, topic_prefix: str
    ) -> None:
        place = holding.begin(topic_prefix + "again", (1, 2, 3), (4, 2, 3))
        before = holding.find(place)
        holding.move({place: (4, 2, 3)})
        assert holding.find(place) == before
        holding.release()
        holding.await_row(place, (4, 2, 3))

    def test_another_target_and_a_cancel_leave_a_replica_too_many(
        self, holding: Holding, topic_prefix: str
    ) -> None:
        """The first destination has become an original replica. It holds no byte."""
        place = holding.begin(topic_prefix + "override", (1, 2), (1, 3))
        holding.move({place: (1, 4)})
        holding.move({place: None})
        holding.await_row(place, (1, 2, 3))
        assert holding.look(place).in_sync == (1, 2)
        assert holding.mover.read([place[0]]).sizes[3][place] == 0

    def test_the_original_row_as_a_target_never_ends(
        self, holding: Holding, topic_prefix: str
    ) -> None:
        """On 4.x only a cancel ends it; 3.9 ends at once."""
        place = holding.begin(topic_prefix + "original", (1, 2, 3), (4, 2, 3))
        holding.move({place: (1, 2, 3)})
        if not holding.is_newest:
            holding.await_row(place, (1, 2, 3))
            return
        holding.release()
        wait_for(lambda: sorted(holding.look(place).in_sync) == [1, 2, 3, 4], 60)
        each = holding.find(place)
        assert each is not None
        assert (each.adding, each.removing) == ((4,), (4,))
        holding.move({place: None})
        holding.await_row(place, (1, 2, 3))

    def test_a_deletion_takes_the_move_and_its_lists_along(
        self, holding: Holding, topic_prefix: str
    ) -> None:
        place = holding.begin(topic_prefix + "deleted", (1, 2), (3, 4))
        topic, _ = place
        (topic_id,) = KafkaReader(holding.connection).read_topic_ids([topic]).values()
        accept(KafkaWriter(holding.connection).send([DeleteTopic(topic, topic_id)]))
        wait_for(lambda: topic not in holding.mover.read([]).partitions)
        reading = holding.mover.read([])
        assert topic not in {each.topic for each in (*reading.reassignments, *reading.lists)}
        assert holding.shows_rate(0)


class TestWhileReplicasAreCopied:
    def test_a_leader_that_leaves_hands_over_at_the_end(
        self, holding: Holding, topic_prefix: str
    ) -> None:
        """To the first of the target that is in sync, without an election of ours."""
        place = holding.create(topic_prefix + "handed", (1, 2))
        holding.move({place: (3, 2)})
        holding.await_row(place, (3, 2))
        assert holding.look(place).leader == 3

    def test_growth_refuses_acks_all_unless_min_insync_is_lowered_first(
        self, holding: Holding, topic_prefix: str
    ) -> None:
        """New replicas count for min.insync.replicas before they are in sync (KAFKA-21110)."""
        topic = topic_prefix + "growing"
        place = holding.create(topic, (1,), size=SIZE, min_insync_replicas="2")
        holding.hold(place, (1,))
        holding.write(topic, RECORD, retries=0)
        holding.move({place: (1, 2, 3)}, may_resize=True)
        with pytest.raises(KafkaException, match="NOT_ENOUGH_REPLICAS"):
            holding.write(topic, RECORD, retries=0)
        accept(holding.mover.configure({topic: {MIN_INSYNC: "1"}}))
        wait_for(lambda: holding.can_write(topic))
        assert holding.find(place) is not None

    @pytest.mark.parametrize(
        ("before", "after", "count"), [((1, 2), (3, 4), 4), ((1, 2), (1, 2, 3), 3)]
    )
    def test_an_expansion_counts_the_replicas_in_flight(
        self,
        holding: Holding,
        topic_prefix: str,
        before: Replicas,
        after: Replicas,
        count: int,
    ) -> None:
        """Kafka places as many replicas as partition 0 shows, and refuses another number."""
        topic, _ = place = holding.create(topic_prefix + "expanded", before, size=SIZE)
        holding.hold(place, before)
        holding.move({place: after}, may_resize=True)
        answer = KafkaWriter(holding.connection).send([ExpandTopic(topic, 1, (before,))])[topic]
        assert (answer.kind, answer.error) == (AnswerKind.REFUSED, "INVALID_REPLICA_ASSIGNMENT")
        assert f"not consistent with previous partitions, which have {count}" in answer.text
        client = AdminClient({"bootstrap.servers": holding.cluster.bootstrap_servers})
        client.create_partitions([NewPartitions(topic, 2)])[topic].result(20)
        wait_for(lambda: len(holding.mover.read([]).partitions[topic]) == 2)
        assert len(holding.look((topic, 1)).replicas) == count


class TestThrottles:
    def test_a_rate_of_zero_lets_nothing_pass(self, holding: Holding, topic_prefix: str) -> None:
        place = holding.begin(topic_prefix + "still", (1, 2), (3, 2))
        wait_for(lambda: place in holding.mover.read([place[0]]).sizes[3])
        assert holding.mover.read([place[0]]).sizes[3][place] == 0
        # Unsetting the default in the middle ends the throttle, although the lists stay.
        holding.release()
        holding.await_row(place, (3, 2))

    @pytest.mark.slow
    def test_empty_replicas_move_at_a_rate_of_zero(
        self, holding: Holding, topic_prefix: str
    ) -> None:
        place = holding.create(topic_prefix + "empty", (1, 2))
        holding.hold(place, (1, 2))
        holding.move({place: (3, 2)})
        holding.await_row(place, (3, 2))
        assert holding.shows_rate(0)

    def test_lists_may_name_what_does_not_exist(self, holding: Holding, topic_prefix: str) -> None:
        topic, _ = holding.create(topic_prefix + "unknown", (1, 2))
        accept(holding.mover.configure({topic: {ThrottleSide.LEADER.list_key: "0:99,77:1"}}))

    def test_a_rate_of_one_broker_is_taken_by_that_broker_only(self, holding: Holding) -> None:
        """Why the cluster default is set: a dead broker could not be told its own rate."""
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource
        rate = resource.AlterableConfig(
            name=ThrottleSide.LEADER.rate_key, config_operation=0, value="1000"
        )
        changed = resource(resource_type=4, resource_name="1", configs=[rate])
        request = IncrementalAlterConfigsRequest(resources=[changed], validate_only=True)
        client = KafkaAdminClient(bootstrap_servers=holding.cluster.addresses()[4])
        try:
            answer = client._manager.run(client._manager.send, request, 4)
        finally:
            client.close()
        (told,) = answer.responses
        assert told.error_code == KafkaError.INVALID_REQUEST
        assert told.error_message.startswith("Unexpected broker id")

    @pytest.mark.slow
    def test_a_star_counts_ordinary_replication_and_starves_the_move(
        self, holding: Holding, topic_prefix: str
    ) -> None:
        """Why lists name the replicas in flight only."""
        topic, _ = place = holding.create(
            topic_prefix + "starved", (1, 2), (1, 3), (1, 3), size=5 * SIZE
        )
        keys = [side.list_key for side in ThrottleSide]
        accept(holding.mover.configure({topic: dict.fromkeys(keys, "*")}))
        assert holding.mover.set_rate(1_000_000).kind is AnswerKind.ACCEPTED
        wait_for(lambda: holding.shows_lists(topic) and holding.shows_rate(1_000_000))
        with holding.writing(topic, (1, 2), 4_000_000) as written:
            wait_for(lambda: written() > 2 * SIZE, 60)
            holding.move({place: (3, 2)})
            begun = written()
            wait_for(lambda: written() > begun + 15 * SIZE, 120)
            starved = holding.mover.read([topic]).sizes[3][place]
            lists = dict(zip(keys, ("0:1,0:2", "0:3"), strict=True))
            accept(holding.mover.configure({topic: lists}))
            holding.await_row(place, (3, 2), 120)
        assert starved < SIZE


class TestDrains:
    def test_a_cordoned_broker_takes_nothing_new(self, holding: Holding, topic_prefix: str) -> None:
        """KIP-1066, from 4.3 on. 4.4.0 refuses every row that names the broker, even an old one."""
        state = KafkaReader(holding.connection).read_cluster()
        assert state.can_cordon == holding.is_newest
        if not holding.is_newest:
            return
        place = holding.create(topic_prefix + "cordoned", (1, 4), (1, 2))
        assert holding.mover.cordon(4).kind is AnswerKind.ACCEPTED
        try:
            wait_for(lambda: list_cordoned(holding) == [4])
            answers = holding.mover.reassign({place: (4, 1), (place[0], 1): (1, 4)})
            assert {each.error for each in answers.values()} == {"INVALID_REPLICA_ASSIGNMENT"}
            holding.move({place: (1, 3)})
            holding.await_row(place, (1, 3))
        finally:
            uncordon(holding, 4)
        wait_for(lambda: list_cordoned(holding) == [])

    def test_a_cancel_off_a_cordoned_broker_cannot_restore_the_order(
        self, holding: Holding, topic_prefix: str
    ) -> None:
        """Why docs/how-to/retire-a-broker.md has the cordon removed before a drain is cancelled."""
        if not holding.is_newest:
            return
        place = holding.begin(topic_prefix + "drained", (4, 1), (3, 1))
        assert holding.mover.cordon(4).kind is AnswerKind.ACCEPTED
        try:
            wait_for(lambda: list_cordoned(holding) == [4])
            holding.move({place: None})
            holding.await_row(place, (1, 4))
            answer = holding.mover.reassign({place: (4, 1)})[place]
            assert answer.error == "INVALID_REPLICA_ASSIGNMENT"
        finally:
            uncordon(holding, 4)
        wait_for(lambda: list_cordoned(holding) == [])
        holding.move({place: (4, 1)})
        holding.await_row(place, (4, 1))

    def test_a_broker_stores_what_was_moved_away_no_more(
        self, holding: Holding, topic_prefix: str
    ) -> None:
        place = holding.create(topic_prefix + "stored", (1, 2), size=RECORD)
        for broker, stores in {1: True, 2: True, 3: False}.items():
            wait_for(lambda b=broker, s=stores: (place in list_stored(holding, b)) == s)  # type: ignore[misc]
        holding.move({place: (1, 3)})
        holding.await_row(place, (1, 3))
        wait_for(lambda: place not in list_stored(holding, 2))
        assert place in list_stored(holding, 3)

    def test_a_broker_that_is_not_there_does_not_store_nothing(self, holding: Holding) -> None:
        with pytest.raises(ClusterError):
            holding.mover.read_stored(9)

    def test_the_lock_of_moves_is_kept_while_its_group_moves_to_another_broker(
        self, holding: Holding
    ) -> None:
        """A drain moves the partition that stores the group whose member is the lock."""
        topic = "__consumer_offsets"
        me = Holder("ana", "desk", 7, "2026-11-23T00:00:00Z")
        with hold_lock(holding.connection, me, group=MOVES_GROUP) as lease:
            lease.check()
            found = holding.mover.read([]).partitions[topic]
            rows: dict[Place, Replicas] = {
                (topic, number): (min({1, 2, 3, 4} - set(each.replicas)), *each.replicas[:2])
                for number, each in enumerate(found)
            }
            holding.move(dict(rows))
            for place, row in rows.items():
                holding.await_row(place, row)
                lease.check()
            accept(holding.mover.elect(rows))
            lease.check()
            wait_for(lambda: all(holding.look(p).leader == row[0] for p, row in rows.items()))
            lease.check()

    def test_the_controllers_vote(self, holding: Holding) -> None:
        reader = KafkaReader(holding.connection)
        voters = reader.read_voters(reader.read_cluster()).voters
        assert voters == {each.id for each in holding.cluster.controller_statuses()}


def list_cordoned(holding: Holding) -> list[int]:
    return [broker.id for broker in holding.mover.read([]).brokers if broker.cordoned]


def list_stored(holding: Holding, broker: int) -> Collection[Place]:
    stored = holding.mover.read_stored(broker)
    assert stored is not None
    return stored


def uncordon(holding: Holding, broker: int) -> None:
    change = ConfigEntry(CORDONED, None, incremental_operation=AlterConfigOpType.DELETE)
    resource = ConfigResource(ResourceType.BROKER, str(broker), incremental_configs=[change])
    client = AdminClient({"bootstrap.servers": holding.cluster.bootstrap_servers})
    client.incremental_alter_configs([resource])[resource].result(30)
