"""A run that moves replicas between log directories, on a simulated cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from simulated.cluster import SimulatedCluster
from simulated.scenario import HERE, Play, build_cluster, plan_moves

from reconciler.errors import StalePlanError
from reconciler.model.cluster import LogDirectory, StoredReplica
from reconciler.model.moves import DirectoryCopy, PlannedDirectories
from reconciler.model.outcomes import OutcomeKind
from reconciler.model.plan import Plan, PlannedTopic, ReplicaDirectory, TopicImage
from reconciler.moves.running.cancel import Cancel
from reconciler.moves.running.interventions import Leases, Settled, Settling
from reconciler.moves.running.run import run_moves
from reconciler.run.ending import Applied, end_run
from reconciler.run.events import MovesNote, MovesNoted, MovesWatched

SIZE = 100_000
RATE = 2048
"""Bytes per second: of five copies, each takes four minutes."""


def plan(partitions: int = 4, **limits: Any) -> Plan:
    """Return a plan that moves partitions of the topic t on broker 1 from /a to /b."""
    empty = plan_moves({}, rate=limits.pop("rate", RATE), **limits)
    assert empty.moves is not None
    rows = ((1, 2),) * partitions
    before, after = (
        TopicImage(
            "id-t",
            rows,
            {},
            directories=tuple(ReplicaDirectory(n, 1, path) for n in range(partitions)),
        )
        for path in ("/a", "/b")
    )
    copies = tuple(DirectoryCopy("t", n, 1, "/a", "/b", SIZE) for n in range(partitions))
    directories = PlannedDirectories(10.0, 1, (), copies, SIZE * partitions)
    return replace(
        empty,
        topics=(PlannedTopic("t", HERE, before, after),),
        moves=replace(empty.moves, directories=directories),
    )


def make(**limits: Any) -> Play:
    made = plan(**limits)
    cluster = build_cluster(made)
    cluster.directories = {
        broker: tuple(LogDirectory(path, 10**9, 10**9, 0) for path in ("/a", "/b"))
        for broker in (1, 2)
    }
    partitions = len(made.topics[0].before.assignment) if made.topics[0].before else 0
    held = {("t", n): StoredReplica("/a", SIZE) for n in range(partitions)}
    cluster.stored = {1: dict(held), 2: dict(held)}
    return Play(made, cluster)


def run(play: Play, **options: Any) -> Applied:
    play.cluster.kill_run_at(7200)
    applied = play.run(**options)
    assert applied is not None, play.ends
    return applied


def list_paths(cluster: SimulatedCluster) -> list[str]:
    return [each.path for _, each in sorted(cluster.stored[1].items())]


def texts(play: Play, kind: MovesNote) -> list[str]:
    return [n.text for n in play.notes if isinstance(n, MovesNoted) and n.kind is kind]


def test_all_arrive_a_few_at_a_time_and_no_rate_is_left() -> None:
    play = make(partitions=5)
    applied = run(play)
    assert [outcome.kind for outcome in applied.outcomes] == [OutcomeKind.DONE]
    assert list_paths(play.cluster) == ["/b"] * 5
    assert play.cluster.most_relocated == 2
    assert play.cluster.directory_rate is None
    assert {each.path for each in play.cluster.stored[2].values()} == {"/a"}
    last = [note for note in play.notes if isinstance(note, MovesWatched)][-1]
    assert (last.bytes_to_do, last.rate_bytes_per_s) == (5 * SIZE, RATE)
    again = run(play)
    assert [outcome.kind for outcome in again.outcomes] == [OutcomeKind.ALREADY_DONE]


def test_an_unlimited_rate_sets_none() -> None:
    play = make(rate=None)
    play.cluster.at(10, lambda: pytest.fail("a rate") if play.cluster.directory_rate else None)
    run(play)
    assert list_paths(play.cluster) == ["/b"] * 4


def test_a_run_that_was_killed_is_continued() -> None:
    play = make()
    play.cluster.kill_run_at(30)
    assert play.run() is None
    assert play.cluster.directory_rate == RATE + 1
    assert sum(bool(each.target) for each in play.cluster.stored[1].values()) == 2
    assert [outcome.kind for outcome in run(play).outcomes] == [OutcomeKind.DONE]
    assert play.cluster.directory_rate is None


@pytest.mark.parametrize("fault", ["lost", "unanswered", "late", "not done"])
def test_requests_without_an_answer_are_made_good(fault: str) -> None:
    play = make()
    play.cluster.faults = dict.fromkeys(range(4, 30), fault)
    assert [outcome.kind for outcome in run(play).outcomes] == [OutcomeKind.DONE]
    assert list_paths(play.cluster) == ["/b"] * 4
    assert play.cluster.most_relocated == 2
    assert play.cluster.directory_rate is None


def test_a_broker_that_dies_ends_the_run_and_keeps_what_it_copied() -> None:
    play = make()
    play.cluster.at(30, lambda: play.cluster.kill_broker(1))
    (outcome,) = run(play, stop_after_s=600).outcomes
    assert outcome.kind is OutcomeKind.IN_FLIGHT
    assert "2 in flight, 2 waiting" in outcome.text
    assert "broker 1 is not alive" in outcome.text
    assert any("nothing new begins" in text for text in texts(play, MovesNote.PAUSED))
    play.cluster.revive_broker(1)
    assert [outcome.kind for outcome in run(play).outcomes] == [OutcomeKind.DONE]


def test_a_directory_that_fails_is_said_and_ends_the_run() -> None:
    play = make()
    play.cluster.at(30, lambda: play.cluster.fail_directory(1, "/b"))
    (outcome,) = run(play).outcomes
    assert "log directory /b has failed" in outcome.text
    assert outcome.kind.is_unfinished or outcome.kind is OutcomeKind.FAILED
    assert list_paths(play.cluster) == ["/a"] * 4
    assert end_run(play.last).exit_code != 0


def test_what_was_in_a_directory_that_failed_is_lost_to_the_run() -> None:
    play = make()
    play.cluster.at(30, lambda: play.cluster.fail_directory(1, "/a"))
    (outcome,) = run(play).outcomes
    assert outcome.kind is OutcomeKind.FAILED
    assert "partition 0 on broker 1: log directory /a has failed" in outcome.text


def test_what_somebody_else_cancels_stays_cancelled() -> None:
    play = make()
    place = ("t", 0)
    play.cluster.at(30, lambda: play.cluster.relocate(1, {place: "/a"}) and None)
    (outcome,) = run(play).outcomes
    assert outcome.kind is OutcomeKind.HALF_DONE
    assert "partition 0 on broker 1: it was cancelled by another tool or run" in outcome.text
    assert list_paths(play.cluster) == ["/a", "/b", "/b", "/b"]


def test_what_somebody_else_moves_elsewhere_is_waited_for_and_left() -> None:
    play = make()
    play.cluster.stored[1]["t", 0] = StoredReplica("/a", SIZE, "/c", 0)
    (outcome,) = run(play).outcomes
    assert outcome.kind is OutcomeKind.HALF_DONE
    assert "partition 0 on broker 1: it is in /c, not /a, since the plan was made" in outcome.text


def test_after_the_end_of_its_time_nothing_more_begins() -> None:
    play = make()
    (outcome,) = run(play, stop_after_s=150).outcomes
    assert outcome.kind is OutcomeKind.WAITING
    assert list_paths(play.cluster).count("/b") == 2
    assert play.cluster.directory_rate is None


def test_a_directory_keeps_its_share_free() -> None:
    play = make(keep_free=15)
    play.cluster.directories[1] = (
        LogDirectory("/a", 10**6, 10**6, 0),
        LogDirectory("/b", 10**6, 240_000, 0),
    )
    (outcome,) = run(play).outcomes
    assert "/b of broker 1 would have " in outcome.text
    assert outcome.kind is OutcomeKind.WAITING


def refuse(play: Play) -> str:
    cluster = play.cluster
    with pytest.raises(StalePlanError) as caught:
        run_moves(play.plan, cluster, cluster, cluster.clock, lease=cluster)
    assert cluster.most_relocated == 0
    return str(caught.value)


def test_a_plan_whose_replicas_are_elsewhere_is_stale() -> None:
    play = make()
    play.cluster.stored[1]["t", 2] = StoredReplica("/c", SIZE)
    assert "t partition 2 on broker 1: it is in /c, not /a" in refuse(play)
    del play.cluster.stored[1]["t", 2]
    assert "t partition 2 on broker 1: broker 1 does not hold it any more" in refuse(play)


def test_a_plan_whose_replicas_have_grown_is_stale() -> None:
    play = make()
    play.cluster.stored[1]["t", 0] = StoredReplica("/a", 2**31)
    assert "the replicas to copy have 2.0 GiB, more than 1.25 times" in refuse(play)


@pytest.mark.parametrize(
    ("rate", "said"),
    [(10 * RATE, "more than the 2048 B/s of the plan"), (0, "less than the 1 B/s")],
)
def test_a_rate_of_somebody_else_that_does_not_fit_is_refused(rate: int, said: str) -> None:
    play = make()
    play.cluster.directory_rate = rate
    assert said in refuse(play)
    assert play.cluster.directory_rate == rate


def test_a_lower_rate_of_somebody_else_stays() -> None:
    play = make()
    play.cluster.directory_rate = 1000
    assert [outcome.kind for outcome in run(play).outcomes] == [OutcomeKind.DONE]
    assert play.cluster.directory_rate == 1000


def cancel(play: Play) -> Any:
    cluster = play.cluster
    made = Cancel(play.plan, cluster, cluster, cluster.clock)
    made.look()
    return made.work(Leases())


def test_a_cancel_puts_back_what_is_in_flight_and_leaves_the_rest() -> None:
    play = make()
    play.cluster.kill_run_at(150)
    assert play.run() is None
    done = cancel(play)
    assert len(done.cancelled) == 2
    assert (done.ended, done.failed, done.unknown) == ((), {}, False)
    assert sorted(list_paths(play.cluster)) == ["/a", "/a", "/b", "/b"]
    assert not any(each.target for each in play.cluster.stored[1].values())


def test_a_copy_that_is_complete_before_a_cancel_reaches_it_stays() -> None:
    play = make(partitions=1)
    play.cluster.kill_run_at(30)
    assert play.run() is None
    cluster = play.cluster
    made = Cancel(play.plan, cluster, cluster, cluster.clock)
    made.look()
    cluster.stored[1]["t", 0] = StoredReplica("/b", SIZE)
    made.reading = cluster.read(())
    done = made.work(Leases())
    assert (done.cancelled, done.ended) == ((), (("t", 0, 1),))
    assert list_paths(cluster) == ["/b"]


def settle(play: Play, **options: Any) -> Settled:
    @contextmanager
    def writing() -> Iterator[Any]:
        with play.cluster.writing():
            yield play.cluster

    cluster = play.cluster
    cluster.verb = "settle"
    named = {"specified": {}, "stop_after_s": None} | options
    return Settling(
        cluster, cluster, cluster.clock, lambda _: None, cluster, writing, **named
    ).work()


def test_a_settlement_waits_for_copies_and_removes_their_rate() -> None:
    play = make()
    play.cluster.kill_run_at(30)
    assert play.run() is None
    settled = settle(play)
    assert (settled.directory_rate_removed, settled.is_settled) == (True, True)
    assert play.cluster.directory_rate is None
    assert sorted(list_paths(play.cluster)) == ["/a", "/a", "/b", "/b"]


def test_a_settlement_that_ends_early_leaves_the_rate() -> None:
    play = make()
    play.cluster.kill_run_at(30)
    assert play.run() is None
    settled = settle(play, stop_after_s=20.0)
    assert (settled.directory_rate_removed, settled.is_settled) == (False, False)
    assert settled.stopped == "the time of --stop-after is over"
    assert play.cluster.directory_rate == RATE + 1


def test_a_rate_of_somebody_else_is_not_settled() -> None:
    play = make()
    play.cluster.directory_rate = 1000
    assert settle(play).is_settled
    assert play.cluster.directory_rate == 1000


def test_an_interrupt_begins_nothing_more_and_waits_for_what_is_in_flight() -> None:
    play = make()
    cluster = play.cluster
    cluster.at(30, lambda: cluster.faults.update({cluster.calls + 1: "interrupt"}))
    (outcome,) = run(play).outcomes
    assert outcome.kind is OutcomeKind.WAITING
    assert "of 4 replicas: 2 done, 2 waiting; interrupted" in outcome.text
    assert list_paths(cluster).count("/b") == 2
    assert cluster.directory_rate is None


def test_a_pause_keeps_more_from_beginning_until_it_ends() -> None:
    play = make()
    cluster = play.cluster
    cluster.at(30, lambda: cluster.change_rate(0))
    cluster.at(500, lambda: cluster.change_rate(None))
    seen: list[int] = []
    cluster.at(490, lambda: seen.append(list_paths(cluster).count("/b")))
    assert [outcome.kind for outcome in run(play).outcomes] == [OutcomeKind.DONE]
    assert seen == [2]


def test_a_run_that_loses_its_lock_writes_nothing_more() -> None:
    play = make()
    cluster = play.cluster

    def lose() -> None:
        cluster.holds_lock = False

    cluster.at(30, lose)
    applied = run(play)
    assert applied.cause is not None
    assert list_paths(cluster).count("/b") == 2
    assert cluster.directory_rate == RATE + 1


def test_a_topic_that_was_created_again_is_left() -> None:
    play = make()
    play.cluster.at(30, lambda: play.cluster.recreate_topic("t", ((1, 2),) * 4))
    (outcome,) = run(play).outcomes
    assert outcome.kind is OutcomeKind.FAILED
    assert "it was deleted and created again" in outcome.text
