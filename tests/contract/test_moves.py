"""Moves in flight, as real brokers show them: bytes, throttles, causes, and what is left over."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lab import HERE, connect_to, wait_for
from moving import BROKER, RATE, SIZE, Moving
from proxy import Loss, failing_network

from reconciler.api.moves import read_moves, watch_moves
from reconciler.errors import ClusterError, Severity
from reconciler.kafka.connection import connect
from reconciler.kafka.reader import KafkaReader
from reconciler.model.cluster import Broker, RateSource, ThrottleSide
from reconciler.moves.progress import Cause
from reconciler.spec.entry import ClusterEntry

pytestmark = pytest.mark.cluster

DESCRIBE_LOG_DIRS = 35


@pytest.fixture
def topic(moving: Moving, topic_prefix: str) -> Iterator[str]:
    """Return a topic whose partition 0 moves from broker 1 to 4, throttled by name."""
    with moving.move(f"{topic_prefix}moving") as topic:
        yield topic


class TestWhatKafkaShows:
    """Facts about the brokers' answers that the report rests on."""

    def test_metadata_shows_the_target_and_then_what_is_removed(
        self, moving: Moving, topic: str
    ) -> None:
        listed = moving.list_reassignments(topic)
        assert listed == {
            "replicas": [4, 2, 3, 1],
            "adding_replicas": [4],
            "removing_replicas": [1],
        }
        with moving.admin() as client:
            (described,) = client.describe_topics([topic])
        assert described["partitions"][0]["replica_nodes"] == [4, 2, 3, 1]

    def test_a_copy_has_no_offset_lag_and_a_size_that_grows(
        self, moving: Moving, topic: str
    ) -> None:
        moving.await_bytes(topic)
        (directory,) = moving.describe_log_dirs(topic, 4).results
        (partition,) = directory.topics[0].partitions
        assert 0 < partition.partition_size < SIZE
        assert (partition.offset_lag, partition.is_future_key) == (0, False)

    def test_the_cluster_default_has_a_source_of_its_own_and_an_empty_name(
        self, moving: Moving, topic: str
    ) -> None:
        moving.set(BROKER, "2", ThrottleSide.LEADER.rate_key, "700000")
        rates = {(r.broker, r.side): r for r in moving.await_bytes(topic).reading.rates}
        moving.set(BROKER, "2", ThrottleSide.LEADER.rate_key, None)
        default, own = rates[None, ThrottleSide.LEADER], rates[2, ThrottleSide.LEADER]
        assert (default.bytes_per_s, default.source) == (RATE, RateSource.CLUSTER_DEFAULT)
        assert (own.bytes_per_s, own.source) == (700_000, RateSource.BROKER)
        assert rates[2, ThrottleSide.FOLLOWER].source is RateSource.CLUSTER_DEFAULT


class TestInFlight:
    def test_a_throttled_move_is_shown_with_its_bytes(self, moving: Moving, topic: str) -> None:
        report = moving.await_bytes(topic)
        (move,) = report.moves
        assert move.reassignment.current == (2, 3, 1)
        assert move.reassignment.target == (4, 2, 3)
        (copy,) = move.copies
        assert (copy.broker, copy.throttled, copy.in_sync) == (4, True, False)
        assert copy.bytes_done is not None
        assert copy.bytes_to_do is not None
        assert 0 < copy.bytes_done < SIZE <= copy.bytes_to_do
        assert copy.percent is not None
        assert 0 < copy.percent < 100
        assert (copy.cause, report.leftovers, report.reading.notes) == (None, (), ())

    def test_throttles_that_outlive_their_move_are_left_over(
        self, moving: Moving, topic: str
    ) -> None:
        assert not moving.await_bytes(topic).leftovers
        moving.set_rate(100_000_000)
        wait_for(lambda: not moving.read().moves, 60)
        found = {(each.topic, each.broker): each.command for each in moving.read().leftovers}
        assert found == {
            (None, None): (
                "kafka-configs --alter --entity-type brokers --entity-default --delete-config "
                "leader.replication.throttled.rate,follower.replication.throttled.rate"
            ),
            (topic, None): (
                f"kafka-configs --alter --entity-type topics --entity-name {topic} "
                "--delete-config leader.replication.throttled.replicas,"
                "follower.replication.throttled.replicas"
            ),
        }

    @pytest.mark.slow
    def test_a_rate_of_zero_is_the_cause(self, moving: Moving, topic: str) -> None:
        moving.await_bytes(topic)
        moving.set_rate(0)
        wait_for(lambda: {rate.bytes_per_s for rate in moving.read().reading.rates} == {0})
        report = moving.read()
        assert report.slowest is not None
        assert report.slowest[1].cause is Cause.RATE_ZERO
        assert report.slowest[1].why == "the follower rate of broker 4 is 0"

    @pytest.mark.slow
    def test_more_writes_than_the_rate_are_the_cause(self, moving: Moving, topic: str) -> None:
        moving.await_bytes(topic)
        with connect_to(moving.cluster) as connection:
            reports = watch_moves(connection, 0)
            assert {copy.cause for copy in next(reports).copies} == {None}
            moving.write(topic, SIZE)
            (copy,) = next(reports).copies
        assert copy.cause is Cause.RATE_BELOW_WRITES
        assert " rate of broker " in copy.why
        assert copy.bytes_per_s is not None

    @pytest.mark.slow
    def test_a_cordon_does_not_stop_a_copy_that_has_begun(self, moving: Moving, topic: str) -> None:
        begun = moving.await_bytes(topic).bytes_done
        moving.set(BROKER, "4", "cordoned.log.dirs", "*")
        try:
            wait_for(lambda: Broker(4, "rack1", cordoned=True) in moving.read().reading.brokers)
            wait_for(lambda: moving.read().bytes_done > begun, 60)
            assert [copy.cause for copy in moving.read().copies] == [None]
        finally:
            moving.set(BROKER, "4", "cordoned.log.dirs", None)

    @pytest.mark.slow
    def test_a_replica_that_is_added_and_removed_is_the_cause(
        self, moving: Moving, topic: str
    ) -> None:
        """On 4.x the original row as a new target never ends; a cancel ends it."""
        moving.await_bytes(topic)
        moving.reassign(topic, [1, 2, 3])
        wait_for(lambda: moving.list_reassignments(topic)["removing_replicas"] == [4])
        (move,) = moving.read().moves
        assert move.reassignment.adding == move.reassignment.removing == (4,)
        assert [copy.cause for copy in move.copies] == [Cause.ADDED_AND_REMOVED]
        moving.reassign(topic, None)

    @pytest.mark.slow
    def test_a_destination_that_is_not_alive_is_the_cause(self, moving: Moving, topic: str) -> None:
        moving.await_bytes(topic)
        moving.cluster.stop_broker(4)
        try:
            report = moving.read()
        finally:
            moving.cluster.start_broker(4)
        (move,) = report.moves
        (copy,) = move.copies
        assert (copy.cause, copy.why) == (Cause.DESTINATION_DEAD, "broker 4 is not alive")
        assert copy.bytes_done is None
        assert copy.bytes_to_do is not None
        assert copy.bytes_to_do >= SIZE
        assert Broker(4, alive=False) in report.reading.brokers

    @pytest.mark.slow
    def test_a_broker_that_does_not_answer_is_named_and_the_rest_is_shown(
        self, moving: Moving, topic: str
    ) -> None:
        moving.await_bytes(topic)
        entry = ClusterEntry("lab", HERE)
        with failing_network(moving.cluster) as network:
            fault = network.lose(DESCRIBE_LOG_DIRS, Loss.CUT_BEFORE, skip=0)
            with connect(entry, bootstrap_servers=network.bootstrap_servers) as connection:
                report = read_moves(connection)
        assert fault.struck.is_set()
        assert len(report.reading.sizes) == 3
        (note,) = report.reading.notes
        (silent,) = {1, 2, 3, 4} - report.reading.sizes.keys()
        assert (note.rule, note.severity) == ("broker-silent", Severity.WARNING)
        assert note.what.startswith(f"broker {silent} of lab does not answer: ")
        assert [move.reassignment.topic for move in report.moves] == [topic]


def test_a_plan_of_moves_sees_what_is_in_flight_and_by_how_much(moving: Moving, topic: str) -> None:
    moving.await_bytes(topic)
    with connect_to(moving.cluster) as connection:
        reader = KafkaReader(connection)
        state = reader.read_moves(reader.read_cluster(), interval_s=0.1)
    (found,) = state.reassignments
    assert (found.topic, found.partition) == (topic, 0)
    assert (found.current, found.target) == ((2, 3, 1), (4, 2, 3))
    assert (found.leader, set(found.in_sync)) == (1, {1, 2, 3})
    assert state.topics[topic].assignment[0] == (4, 2, 3)
    # The copy is smaller than its source.
    assert state.topics[topic].size_bytes[0] >= SIZE


def test_nothing_in_flight_is_an_empty_report(moving: Moving) -> None:
    with connect_to(moving.cluster) as connection:
        report = read_moves(connection)
    assert (report.moves, report.leftovers, report.slowest) == ((), (), None)


def test_no_answer_at_all_is_an_error() -> None:
    entry = ClusterEntry("lab", HERE)
    connection = connect(entry, bootstrap_servers="127.0.0.1:1")
    with pytest.raises(ClusterError, match="connect-refused"):
        read_moves(connection)
