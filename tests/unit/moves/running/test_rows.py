"""Where the rows of a plan are, and which moves must not be cancelled."""

from __future__ import annotations

from dataclasses import replace

import pytest
from readings import move, reading

from reconciler.errors import Finding, Location
from reconciler.model.cluster import EMPTY, Broker, Replicas
from reconciler.model.moves import MovesReading, PartitionState
from reconciler.model.plan import Plan, PlannedTopic, TopicImage
from reconciler.moves.running.cancel import explain_keeping
from reconciler.moves.running.rows import Row, Rows, RowState

HERE = Location("orders.yaml", 1)
BEFORE, AFTER = (1, 2, 3), (4, 2, 3)


def plan(before: Replicas = BEFORE, after: Replicas = AFTER) -> Plan:
    images = (TopicImage(None, (row,), EMPTY) for row in (before, after))
    return Plan("prod-eu", None, (), (PlannedTopic("t", HERE, *images),))


def shown(row: Replicas, in_sync: Replicas | None = None, leader: int | None = None) -> object:
    """Return the partition of `t`; it is healthy unless `in_sync` and `leader` are given."""
    leader = row[0] if leader is None else leader
    return {"t": (PartitionState(row, leader, row if in_sync is None else in_sync),)}


def judge(found: MovesReading, of: Plan | None = None) -> Row:
    rows = Rows.of_plan(of or plan())
    rows.update(found, 0.0)
    (row,) = rows
    return row


@pytest.mark.parametrize(
    ("row", "state", "where"),
    [
        (BEFORE, RowState.NOT_BEGUN, "not begun"),
        (AFTER, RowState.DONE, "done"),
        ((2, 3, 1), RowState.UNCLEAR, "in another order"),
        ((2, 3, 4), RowState.UNCLEAR, "elsewhere"),
        ((1, 2, 3, 4), RowState.UNCLEAR, "elsewhere"),
    ],
)
def test_a_row_at_rest(row: Replicas, state: RowState, where: str) -> None:
    found = judge(reading(partitions=shown(row)))
    assert (found.place, found.before, found.after) == (("t", 0), BEFORE, AFTER)
    assert (found.state, found.where) == (state, where)


@pytest.mark.parametrize(
    ("target", "state", "where"),
    [
        (AFTER, RowState.UNDER_WAY, "in flight"),
        ((4, 3, 2), RowState.FOREIGN, "elsewhere"),
    ],
)
def test_a_row_in_flight_is_ours_if_its_target_is(
    target: Replicas, state: RowState, where: str
) -> None:
    moving = move(replicas=(*target, 1))
    found = judge(reading(moving, partitions=shown((*target, 1))))
    assert (found.state, found.where) == (state, where)


def test_another_order_is_no_cancel_where_the_plan_only_changes_the_order() -> None:
    found = judge(reading(partitions=shown((2, 1, 3))), plan(BEFORE, (3, 2, 1)))
    assert found.where == "elsewhere"


def test_a_topic_that_is_gone_is_elsewhere() -> None:
    assert judge(reading()).where == "elsewhere"


def test_rows_that_stay_and_refused_topics_are_no_moves() -> None:
    assert not list(Rows.of_plan(plan(BEFORE, BEFORE)))
    (topic,) = plan().topics
    refused = replace(topic, refusals=(Finding("replicas-stay", "no", "wait"),))
    assert not list(Rows.of_plan(replace(plan(), topics=(refused,))))


class TestKeeping:
    def explain(self, found: MovesReading) -> str:
        return explain_keeping(judge(found), found)

    def test_one_original_replica_in_sync_is_enough(self) -> None:
        assert not self.explain(reading(move(), partitions=shown((*AFTER, 1), in_sync=(3,))))

    def test_the_copy_does_not_count(self) -> None:
        said = self.explain(reading(move(), partitions=shown((*AFTER, 1), in_sync=(4,))))
        assert said == "none of its replicas from before the plan (1, 2, 3) is in sync and alive"

    def test_a_dead_replica_does_not_count(self) -> None:
        """Without a leader Kafka still shows the last replica that was in sync."""
        brokers = (Broker(1, alive=False), Broker(2), Broker(3), Broker(4))
        partitions = shown((*AFTER, 1), in_sync=(1,), leader=-1)
        assert self.explain(reading(move(), partitions=partitions, brokers=brokers))
