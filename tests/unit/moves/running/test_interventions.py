"""Interventions on a simulated cluster: what each looks at again before it writes, and its end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

import pytest
from readings import listed, move, rate, reading
from simulated.cluster import SimulatedCluster
from simulated.scenario import build_cluster, plan_moves

from reconciler.errors import ClusterError, LockLostError
from reconciler.model.cluster import Replicas, ThrottleSide
from reconciler.model.moves import MIN_INSYNC, MovesReading
from reconciler.moves.running.cancel import Cancel, Cancelled
from reconciler.moves.running.interventions import (
    Leases,
    Settled,
    Settling,
    remove_throttles,
    set_rate,
)
from reconciler.moves.throttles import choose_removals
from reconciler.run.ports import Unlocked

PLACE = ("t", 0)
SLOW = 9_000
BEFORE, AFTER = (1, 2, 3), (4, 2, 3)
FOLLOWERS = ThrottleSide.FOLLOWER.list_key


def start(
    before: Replicas = BEFORE, after: Replicas = AFTER, **options: Any
) -> tuple[SimulatedCluster, Cancel]:
    """Return a cluster with the plan of one row, in flight and throttled, and its cancel."""
    configs = {"t": {MIN_INSYNC: "2"}} if "min_insync" in options else {}
    plan = plan_moves({"t": ((before, after),)}, configs=configs, **options)
    cluster = build_cluster(plan, sizes={PLACE: SLOW}, configs=configs)
    cluster._alter(PLACE, after, may_resize=True)
    entries = ",".join(f"0:{broker}" for broker in after if broker not in before)
    cluster.configs["t"][FOLLOWERS] = entries
    cluster.configs["t"] |= {key: str(v) for key, v in ((MIN_INSYNC, 1),) if configs}
    cluster.change_rate(20)
    cluster.verb, cluster.in_writing = "cancel", True
    return cluster, Cancel(plan, cluster, cluster, cluster.clock)


def cancel(cluster: SimulatedCluster, cancel: Cancel, **options: Any) -> Cancelled:
    cancel.look()
    return cancel.work(cluster, **options)


class TestCancel:
    def test_a_row_is_taken_back_with_its_order_and_its_leader(self) -> None:
        cluster, work = start()
        assert cancel(cluster, work) == Cancelled((PLACE,))
        (row,) = cluster.topics["t"]
        assert (row.replicas, row.leader, row.in_flight) == (BEFORE, 1, False)

    @pytest.mark.parametrize("fault", ["lost", "unanswered", "late", "not done"])
    def test_a_request_without_an_answer_is_sent_again(self, fault: str) -> None:
        cluster, work = start()
        work.look()
        cluster.faults[cluster.calls + 3] = fault  # after a reading and the ids of topics
        assert work.work(cluster) == Cancelled((PLACE,))
        assert not cluster.faults
        assert cluster.topics["t"][0].replicas == BEFORE

    def test_a_controller_that_does_not_answer_is_waited_for(self) -> None:
        cluster, work = start()
        work.look()
        cluster.freeze_controller()
        cluster.at(30, cluster.thaw_controller)
        assert work.work(cluster) == Cancelled((PLACE,))

    def test_what_somebody_else_moves_since_the_approval_is_left(self) -> None:
        cluster, work = start()
        work.look()
        cluster.cancel(PLACE)
        cluster.move_by_hand(PLACE, (5, 1, 2))
        done = work.work(cluster)
        assert done.failed == {PLACE: "it is elsewhere"}
        assert cluster.topics["t"][0].target == (5, 1, 2)
        assert cluster.violations == []

    def test_a_topic_that_was_created_again_since_is_left(self) -> None:
        cluster, work = start()
        work.look()
        cluster.recreate_topic("t", (AFTER,))
        assert work.work(cluster).failed == {PLACE: "it was deleted and created again"}
        assert cluster.violations == []

    def test_a_topic_that_is_deleted_meanwhile_is_elsewhere(self) -> None:
        cluster, work = start()
        work.look()
        cluster.delete_topic("t")
        assert work.work(cluster).failed == {PLACE: "the brokers do not show it any more"}

    def test_a_row_without_a_healthy_old_replica_is_kept(self) -> None:
        cluster, work = start((1,), (4,))
        cluster.kill_broker(1)
        cluster._publish()
        work.look()
        said = "none of its replicas from before the plan (1) is in sync and alive"
        assert (work.kept, work.chosen) == ({PLACE: said}, ())

    def test_what_a_killed_cancel_left_is_restored(self) -> None:
        """It was killed after the order, so nothing is in flight and nothing is turned."""
        cluster, work = start((1, 2), (1, 2, 3), min_insync={"t": 1})
        (row,) = cluster.topics["t"]
        cluster.cancel(PLACE)
        row.leader = 2
        cluster._publish()
        work.look()
        assert ([row.place for row in work.misled], work.lowered) == ([PLACE], ("t",))
        assert work.work(cluster) == Cancelled((PLACE,))
        assert (row.leader, cluster.configs["t"][MIN_INSYNC]) == (1, "2")
        work.look()
        assert (work.chosen, work.lowered) == ((), ())

    def test_a_run_keeps_its_lowered_min_insync(self) -> None:
        cluster, work = start((1, 2), (1, 2, 3), min_insync={"t": 1})
        done = cancel(cluster, work, run="a run")
        assert (done.cancelled, done.lowered, done.run) == ((PLACE,), ("t",), "a run")
        assert cluster.configs["t"][MIN_INSYNC] == "1"

    def test_min_insync_stays_lowered_while_replicas_are_out_of_sync(self) -> None:
        cluster, work = start((1, 2), (1, 2, 3), min_insync={"t": 1})
        cluster.kill_broker(2)
        cluster._publish()
        assert cancel(cluster, work).lowered == ("t",)
        assert cluster.configs["t"][MIN_INSYNC] == "1"

    def test_nothing_is_written_without_the_lock(self) -> None:
        cluster, work = start()
        work.look()
        cluster.holds_lock = False
        with pytest.raises(LockLostError):
            work.work(Leases((Unlocked(), cluster)))
        assert cluster.topics["t"][0].in_flight

    def test_views_that_are_late_do_not_pass_for_the_end(self) -> None:
        """What only grows looks in flight as it does at the end."""
        cluster, work = start((1,), (1, 2, 3))
        cluster.lags = dict.fromkeys(cluster.lags, 8.0)
        cluster.sleep(10)
        assert cancel(cluster, work) == Cancelled((PLACE,))


class TestRate:
    def test_it_is_shown_by_every_broker_when_it_is_called_set(self) -> None:
        cluster, _ = start()
        cluster.verb = "rate"
        cluster.lags = {broker: float(broker) for broker in cluster.lags}
        reading, is_shown = set_rate(cluster, cluster.clock, 7)
        assert is_shown
        assert reading.default_rate is not None
        shown = {tuple(cluster._view(each).rates.values()) for each in cluster.living}
        assert shown == {(7, 8)}

    def test_it_is_not_asked_for_again_once_somebody_has_set_another(self) -> None:
        cluster, _ = start()
        cluster.verb = "rate"
        cluster.faults[cluster.calls + 2] = "lost"
        cluster.at(1, lambda: cluster.change_rate(9))
        _, is_shown = set_rate(cluster, cluster.clock, 7)
        assert (is_shown, set(cluster.rates.values())) == (False, {9, 10})

    def test_a_permanent_rate_is_not_replaced(self) -> None:
        cluster, _ = start()
        cluster.verb = "rate"
        cluster.set_default(50)
        with pytest.raises(ClusterError, match=r"must stay after the moves.*nothing was changed"):
            set_rate(cluster, cluster.clock, 7)
        assert set_rate(cluster, cluster.clock, 7, permanent=True)[1]
        assert set_rate(cluster, cluster.clock, 0)[1]
        assert cluster.violations == []


def settle(cluster: SimulatedCluster, **options: Any) -> Settled:
    @contextmanager
    def writing() -> Iterator[Any]:
        with cluster.writing():
            yield cluster

    cluster.verb = "settle"
    named = {"specified": {}, "stop_after_s": None} | options
    return Settling(
        cluster, cluster, cluster.clock, lambda _: None, cluster, writing, **named
    ).work()


class TestSettle:
    def test_it_waits_and_then_removes_what_nothing_uses(self) -> None:
        cluster, _ = start()
        settled = settle(cluster)
        assert (settled.topics, settled.rate_removed, settled.stopped) == (("t",), True, "")
        assert (cluster.configs["t"], cluster.rates) == ({}, {})

    def test_a_topic_that_is_deleted_meanwhile_stops_nothing(self) -> None:
        cluster, _ = start()
        cluster.cancel(PLACE)
        cluster._publish()
        cluster.lags = dict.fromkeys(cluster.lags, 8.0)
        cluster.sleep(10)
        cluster.delete_topic("t")  # brokers still show its list
        settled = settle(cluster)
        assert (settled.rate_removed, settled.is_settled) == (True, True)
        assert cluster.rates == {}

    def test_the_time_is_over(self) -> None:
        cluster, _ = start()
        settled = settle(cluster, stop_after_s=20.0)
        assert settled.stopped == "the time of --stop-after is over"
        assert cluster.configs["t"] == {FOLLOWERS: "0:4"}

    def test_min_insync_below_the_spec_is_named(self) -> None:
        cluster, _ = start((1, 2), (1, 2, 3), min_insync={"t": 1})
        settled = settle(cluster, specified={"t": "2"})
        (trace,) = settled.traces
        assert trace.what == "min.insync.replicas is 1, and its spec says 2"


class Later:
    """A cluster as it is when the approval has come. It takes no write."""

    def __init__(self, now: MovesReading) -> None:
        self.now = now

    def read(self, topics: object) -> MovesReading:  # noqa: ARG002
        return self.now


@pytest.mark.parametrize(
    ("then", "said"),
    [
        ({"lists": (listed("t", "0:1,1:4"),)}, "these throttles have other values now"),
        ({"lists": (listed("t", "0:1"),), "moves": (move(),)}, "a list of t is used by what is"),
        ({}, "nothing is throttled by a list of t"),
    ],
)
def test_throttles_that_changed_since_they_were_shown_are_not_removed(
    then: dict[str, Any], said: str
) -> None:
    own = rate(5, 7)
    shown = reading(lists=(listed("t", "0:1"),), rates=(own,))
    chosen, _ = choose_removals(shown, ["t"], [5], of_all=False)
    moves = then.pop("moves", ())
    now = cast("Any", Later(reading(*moves, rates=(own,), **then)))
    clock = SimulatedCluster({}, {}, {}).clock
    remove = partial(remove_throttles, now, clock, Unlocked(), chosen)
    with pytest.raises(ClusterError, match=f"{said}.*nothing was removed"):
        remove()


def test_throttles_of_others_are_removed_although_an_answer_is_lost() -> None:
    cluster, _ = start()
    cluster.cancel(PLACE)
    cluster.set_default(50)
    chosen, wrong = choose_removals(cluster.read(()), ["t"], [], of_all=True)
    assert not wrong
    cluster.verb = "unthrottle"
    cluster.faults[cluster.calls + 2] = "lost"
    cluster._executing_late = True  # the default is of somebody else, and is meant
    assert remove_throttles(cluster, cluster.clock, cluster, chosen) == ()
    assert (cluster.configs["t"], cluster.rates) == ({}, {})
