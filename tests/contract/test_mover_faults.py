"""KafkaMover while brokers and controllers die and freeze."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from breakable import freeze_node, kill_node, thaw_node
from holding import NEWEST, OLDEST, SIZE, Holding
from lab import wait_for

from reconciler.model.outcomes import AnswerKind
from reconciler.sandbox.cluster import Cluster, start_cluster

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow,
    # kafka-python leaks the sockets of addresses that refuse.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

CONTROLLER = 3000


@pytest.fixture(scope="module", params=[NEWEST, OLDEST])
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def isolated(release: str) -> Iterator[Cluster]:
    """Return a cluster whose processes can be killed and frozen one by one."""
    with start_cluster(brokers=4, racks=2, isolate=True, kafka_version=release) as cluster:
        yield cluster


@pytest.fixture
def fragile(isolated: Cluster, release: str) -> Iterator[Holding]:
    fragile = Holding(isolated, release)
    yield fragile
    wait_for(lambda: fragile.mover.set_rate(None).kind is AnswerKind.ACCEPTED, 60)
    fragile.mover.close()
    gc.collect()  # what the clients leak is found here, and not in another test


class TestFaults:
    def test_a_destination_that_is_dead_is_accepted_and_waited_for(
        self, fragile: Holding, topic_prefix: str
    ) -> None:
        place = fragile.create(topic_prefix + "dead", (1, 2))
        kill_node(fragile.cluster, 4)
        try:
            wait_for(lambda: 4 not in fragile.mover.read([]).directories, 60)
            fragile.move({place: (4, 2)})
            pending = fragile.find(place)
        finally:
            fragile.cluster.start_broker(4)
        assert pending is not None
        assert pending.adding == (4,)
        fragile.await_row(place, (4, 2))

    def test_a_cancel_that_needs_an_unclean_election_is_refused(
        self, fragile: Holding, topic_prefix: str
    ) -> None:
        """The only original replica is dead, and the copy is not in sync.

        3.9 accepts it and elects nobody: the partition waits for its replica.
        """
        place = fragile.begin(topic_prefix + "leaderless", (3,), (1,))
        kill_node(fragile.cluster, 3)
        try:
            wait_for(lambda: fragile.look(place).leader == -1, 60)
            answer = fragile.mover.reassign({place: None})[place]
        finally:
            fragile.cluster.start_broker(3)
        if fragile.is_newest:
            assert (answer.kind, answer.error) == (AnswerKind.REFUSED, "INVALID_REPLICA_ASSIGNMENT")
            assert "would require an unclean leader election" in answer.text
            fragile.release()
            fragile.await_row(place, (1,))
        else:
            assert answer.kind is AnswerKind.ACCEPTED
            fragile.await_row(place, (3,))
            wait_for(lambda: fragile.look(place).leader == 3, 60)
        assert fragile.mover.read([place[0]]).sizes[fragile.look(place).leader][place] >= SIZE

    def test_a_frozen_controller_executes_a_request_later(
        self, fragile: Holding, topic_prefix: str
    ) -> None:
        """Why a lost request is looked for, and not repeated."""
        place = fragile.create(topic_prefix + "frozen", (1, 2))
        freeze_node(fragile.cluster, CONTROLLER)
        try:
            answer = fragile.mover.reassign({place: (3, 4)})[place]
        finally:
            thaw_node(fragile.cluster, CONTROLLER)
        assert answer.kind is AnswerKind.LOST
        fragile.await_row(place, (3, 4))

    def test_calls_go_on_with_another_client_after_a_broker_died(
        self, fragile: Holding, topic_prefix: str
    ) -> None:
        place = fragile.create(topic_prefix + "another", (1, 2))
        assert sorted(fragile.mover.read([]).directories) == [1, 2, 3, 4]
        for broker in (3, 4):
            kill_node(fragile.cluster, broker)
            try:
                assert broker not in fragile.mover.read([]).directories
                assert broker not in fragile.mover.read_lists([place[0]])
                wait_for(lambda: fragile.mover.set_rate(0).kind is AnswerKind.ACCEPTED)
            finally:
                fragile.cluster.start_broker(broker)
            wait_for(lambda: len(fragile.mover.read([]).directories) == 4, 60)
