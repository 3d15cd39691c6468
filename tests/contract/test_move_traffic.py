"""Data during moves by KafkaMover: nothing that a producer was told is lost, moved or doubled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from holding import NEWEST, OLDEST, Holding, accept
from lab import wait_for
from traffic import RECORD, Traffic, flowing

from reconciler.model import AnswerKind, ThrottleSide
from reconciler.sandbox import start_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reconciler.model import Place, Replicas

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

PARTITIONS = 6
SIZE = 60_000_000
RATE = 10_000_000
BEFORE, AFTER = (1, 2, 3), (4, 3, 2)


@pytest.fixture(scope="module", params=[NEWEST, OLDEST])
def holding(request: pytest.FixtureRequest) -> Iterator[Holding]:
    with start_cluster(brokers=4, racks=2, kafka_version=request.param) as cluster:
        holding = Holding(cluster, request.param)
        yield holding
        holding.mover.close()


def throttle(holding: Holding, topic: str) -> None:
    """List every replica of the moves by name, and set the rate."""
    lists = {
        ThrottleSide.LEADER: [f"{p}:{b}" for p in range(PARTITIONS) for b in BEFORE],
        ThrottleSide.FOLLOWER: [f"{p}:4" for p in range(PARTITIONS)],
    }
    configs = {side.list_key: ",".join(entries) for side, entries in lists.items()}
    accept(holding.mover.configure({topic: configs}))
    assert holding.mover.set_rate(RATE).kind is AnswerKind.ACCEPTED
    wait_for(lambda: holding.shows_lists(topic) and holding.shows_rate(RATE))


def await_rows(holding: Holding, places: list[Place], row: Replicas) -> None:
    await_end(holding, places)
    wait_for(lambda: {holding.look(place).replicas for place in places} == {row})


def await_end(holding: Holding, places: list[Place]) -> None:
    """Wait until none of the moves is in flight."""
    topics = {topic for topic, _ in places}
    wait_for(lambda: topics.isdisjoint(m.topic for m in holding.mover.read([]).reassignments), 300)


def test_nothing_is_lost_while_every_replica_moves_and_comes_back(
    holding: Holding, topic_prefix: str
) -> None:
    """The leader leaves, comes back by a move and an election, and moves are cancelled between."""
    topic = topic_prefix + "flow"
    places: list[Place] = [(topic, number) for number in range(PARTITIONS)]
    holding.create(topic, *[BEFORE] * PARTITIONS, min_insync_replicas="2")
    throttle(holding, topic)
    servers = holding.cluster.bootstrap_servers
    with flowing(servers, topic, PARTITIONS, filling=SIZE // RECORD) as traffic:
        for after in (AFTER, BEFORE):
            began = traffic.written
            holding.move(dict.fromkeys(places, after))
            await_rows(holding, places, after)
            accept(holding.mover.elect(places))
            assert traffic.written > began
        holding.move(dict.fromkeys(places[:3], AFTER))
        in_flight = [place for place in places[:3] if holding.find(place) is not None]
        for place in in_flight:
            holding.mover.reassign({place: None})
        await_end(holding, places)
    holding.release()


@pytest.mark.parametrize(
    ("acknowledged", "read"),
    [([0, 1, 2], [0, 1]), ([0, 1, 2], [0, 2, 1]), ([0, 1], [0, 0, 1]), ([0, 2], [0, 2])],
)
def test_the_check_notices_what_is_lost_doubled_or_out_of_order(
    acknowledged: list[int], read: list[int]
) -> None:
    traffic = Traffic("t", 1, "", acknowledged={0: acknowledged}, read={0: read})
    with pytest.raises(AssertionError):
        traffic.check()
