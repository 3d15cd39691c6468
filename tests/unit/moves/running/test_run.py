"""A run of moves on a simulated cluster: what it refuses, skips, waits for and leaves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from simulated.scenario import EXTRA, Play, build_cluster, find_faults, plan_moves

from reconciler.apply.engine import run_plan
from reconciler.errors import ClusterError, LockLostError, StalePlanError
from reconciler.model.cluster import LogDirectory, RateSource, ThrottleSide
from reconciler.model.moves import MIN_INSYNC, UNLIMITED, Forecast, PlannedDrain
from reconciler.model.outcomes import Answer, AnswerKind, OutcomeKind
from reconciler.moves.running import run as engine
from reconciler.moves.running import window, writes
from reconciler.moves.running.run import run_moves
from reconciler.run.ending import Applied, end_run
from reconciler.run.events import MovesNote, MovesNoted, MovesSummary, MovesWatched

FOLLOWER = ThrottleSide.FOLLOWER.list_key
ONE = {"t": (((1, 2), (1, 3)),)}
TWO = {"t": (((1, 2), (1, 3)), ((2, 3), (2, 4)))}
OTHER = {"u": (((1, 2), (1, 3)),)}
TWO_INSYNC = {"t": {MIN_INSYNC: "2"}}
SLOW = {("t", 0): 2000, ("t", 1): 2000}
"""Sizes of a hundred seconds at the rate of the plan, which is 20 bytes per second."""


def make(rows: Any = ONE, sizes: Any = None, **options: Any) -> Play:
    configs = options.pop("live", None)
    plan = plan_moves(rows, **options)
    return Play(plan, build_cluster(plan, sizes=sizes or {}, configs=configs))


def run(play: Play, **options: Any) -> Applied:
    """Run a plan. A run that does not end within two simulated hours is killed, and fails."""
    play.cluster.kill_run_at(7200)
    applied = play.run(**options)
    assert applied is not None, play.ends
    return applied


def texts(play: Play, kind: MovesNote) -> list[str]:
    return [n.text for n in play.notes if isinstance(n, MovesNoted) and n.kind is kind]


def replicas(play: Play, number: int = 0) -> tuple[int, ...]:
    return play.cluster.topics["t"][number].replicas


def test_all_is_done_and_nothing_is_left() -> None:
    play = make(TWO)
    applied = run(play)
    assert [outcome.kind for outcome in applied.outcomes] == [OutcomeKind.DONE]
    assert end_run(applied).exit_code == 0
    assert find_faults(play) == []


ALONE = {"t": (((1,), (3,)),)}


def test_a_copy_that_was_elected_half_way_is_not_called_done() -> None:
    play = make(ALONE, {("t", 0): 2000})
    play.cluster.at(50, lambda: play.cluster.kill_broker(1))
    play.cluster.at(60, lambda: play.cluster.elect_uncleanly(("t", 0), 3))
    applied = run(play)
    assert replicas(play) == (3,)
    (outcome,) = applied.outcomes
    assert (outcome.kind, outcome.text) == (
        OutcomeKind.HALF_DONE,
        "partition 0: broker 3 became the leader before its copy was complete (an unclean "
        "election), so records may be lost",
    )
    assert end_run(applied).exit_code == 1


def test_a_broker_that_dies_after_its_replica_was_dropped_loses_nothing() -> None:
    play = make({"t": (((1,), (3,)), ((2,), (4,)))}, {("t", 0): 200, ("t", 1): 2000})
    play.cluster.at(50, lambda: play.cluster.kill_broker(1))
    assert [outcome.kind for outcome in run(play).outcomes] == [OutcomeKind.DONE]


def test_a_copy_that_was_complete_before_its_source_died_lost_nothing() -> None:
    """The run sees both at once: it looks every 2 s, and brokers show an end 6 s late."""
    play = make(ALONE, {("t", 0): 200})
    cluster = play.cluster
    cluster.lags = dict.fromkeys(cluster.lags, 6.0)

    def kill_at_the_end() -> None:
        if replicas(play) == (3,):
            cluster.kill_broker(1)
        else:
            cluster.at(0.5, kill_at_the_end)

    cluster.at(5, kill_at_the_end)
    assert [outcome.kind for outcome in run(play).outcomes] == [OutcomeKind.DONE]


def test_a_second_run_has_nothing_to_do() -> None:
    play = make()
    run(play)
    calls = play.cluster.calls
    applied = run(play)
    assert applied.outcomes[0].kind is OutcomeKind.ALREADY_DONE
    assert play.cluster.calls - calls < 10


def test_a_plan_of_another_kind_is_not_for_it() -> None:
    play = make()
    cluster = play.cluster
    plain = replace(play.plan, moves=None)
    with pytest.raises(ValueError, match="run_plan"):
        run_moves(plain, cluster, cluster, cluster.clock)
    with pytest.raises(ValueError, match="run_moves"):
        run_plan(play.plan, cluster, None, cluster.clock)  # type: ignore[arg-type]


def test_another_cluster_is_refused() -> None:
    play = make()
    play.plan = replace(play.plan, cluster_id="cluster-2")
    assert play.run() is None
    assert "the plan is for cluster cluster-2" in play.ends[0]


def refusal(play: Play) -> str:
    cluster = play.cluster
    with pytest.raises(StalePlanError) as caught:
        run_moves(play.plan, cluster, cluster, cluster.clock, lease=cluster)
    assert (cluster.violations, replicas(play)) == ([], (1, 2))
    return str(caught.value)


def test_a_rate_that_a_killed_run_of_another_plan_left_is_refused() -> None:
    play = make()
    play.cluster.change_rate(7)
    said = refusal(play)
    assert "default throttle rate of 7 B/s" in said
    assert "remove it: reconciler moves settle --cluster prod" in said
    assert said.endswith("[moves-rate-taken]")


def test_the_rate_of_a_killed_run_of_this_plan_is_used_and_removed() -> None:
    play = make()
    play.cluster.change_rate(20)
    assert end_run(run(play)).exit_code == 0
    assert play.cluster.rates == {}


@pytest.mark.parametrize("rate", [20, 15])
def test_a_rate_that_somebody_else_set_to_stay_is_used_and_stays(rate: int) -> None:
    """Even one that equals the plan's, also after a run that was killed while it copied."""
    play = make(sizes=SLOW)
    play.cluster.set_default(rate)
    play.cluster.at(20, lambda: play.cluster.faults.update({play.cluster.calls + 1: "kill"}))
    assert play.run() is None
    assert play.cluster.topics["t"][0].in_flight
    assert end_run(run(play)).exit_code == 0
    assert replicas(play) == (1, 3)
    assert set(play.cluster.rates.values()) == {rate}
    assert play.cluster.violations == []


@pytest.mark.parametrize(
    ("leader", "follower", "said", "way_out"),
    [
        (30, 30, "more than the 20 B/s of the plan", "raise moves.rate to 30B and plan again, or"),
        (15, 30, "more than the 20 B/s of the plan", "raise moves.rate to 30B and plan again, or"),
        (15, None, "but none for followers", "[moves-rate-taken]"),
        (None, 15, "but none for leaders", "[moves-rate-taken]"),
        (5, 5, "less than the 10 B/s that the moves need to end", "[moves-rate-taken]"),
    ],
)
def test_a_rate_that_somebody_else_set_is_refused_where_moves_cannot_run_under_it(
    leader: int | None, follower: int | None, said: str, way_out: str
) -> None:
    play = make()
    moves = play.plan.moves
    assert moves is not None
    play.plan = replace(play.plan, moves=replace(moves, forecast=Forecast(0, {}, least_rate=10)))
    sides = zip(ThrottleSide, (leader, follower), strict=True)
    rates = {side: rate for side, rate in sides if rate is not None}
    play.cluster.rates = dict(rates)
    play.cluster._publish()
    found = refusal(play)
    assert said in found
    assert way_out in found
    assert "remove it: reconciler moves unthrottle --default --cluster prod" in found
    assert play.cluster.rates == rates


def test_a_rate_that_somebody_else_sets_meanwhile_is_said_and_stays() -> None:
    play = make(sizes=SLOW)
    play.cluster.at(20, lambda: play.cluster.set_default(200))
    assert end_run(run(play)).exit_code == 0
    assert texts(play, MovesNote.RATE_CHANGED) == [
        "the rate is now 200 B/s, more than the 20 B/s of the plan; reconciler did not set it, so "
        "it stays after the moves; to remove it then: reconciler moves unthrottle --default "
        "--cluster prod"
    ]
    assert set(play.cluster.rates.values()) == {200}


@pytest.mark.parametrize(
    ("leader", "follower", "said"),
    [
        (15, 300, "15 B/s for leaders and 300 B/s for followers, more than the 20 B/s of the plan"),
        (15, None, "15 B/s for leaders and no limit for followers, more than the 20 B/s of"),
        (15, 18, "15 B/s for leaders and 18 B/s for followers; reconciler did not set it"),
    ],
)
def test_both_sides_of_a_rate_that_somebody_else_sets_meanwhile_are_said(
    leader: int, follower: int | None, said: str
) -> None:
    play = make(sizes=SLOW)
    play.cluster.at(20, lambda: set_sides(play, leader, follower))
    assert end_run(run(play)).exit_code == 0
    (text,) = texts(play, MovesNote.RATE_CHANGED)
    assert text.startswith(f"the rate is now {said}")


def set_sides(play: Play, leader: int | None, follower: int | None) -> None:
    """Let another tool set the default rate of each side; None for no rate."""
    rates = {ThrottleSide.LEADER: leader, ThrottleSide.FOLLOWER: follower}
    play.cluster.rates = {side: rate for side, rate in rates.items() if rate is not None}
    play.cluster._publish()


@pytest.mark.parametrize(
    ("leader", "follower", "half"),
    [
        (10, 21, "set only the half for followers"),
        (20, 15, "set only the half for leaders"),
        (None, 21, "set only the half for followers"),
        (20, 20, "did not set it"),
        (10, 15, "did not set it"),
    ],
)
def test_the_half_of_its_own_rate_that_stays_is_said(
    leader: int | None, follower: int, half: str
) -> None:
    play = make(sizes=SLOW)
    play.cluster.at(20, lambda: set_sides(play, leader, follower))
    assert end_run(run(play)).exit_code == 0
    (text,) = texts(play, MovesNote.RATE_CHANGED)
    assert f"; reconciler {half}, so it stays after the moves; to remove it then: " in text
    assert text.endswith("reconciler moves unthrottle --default --cluster prod")
    assert play.cluster.rates[ThrottleSide.FOLLOWER] == follower


def test_a_rate_of_somebody_else_that_goes_meanwhile_becomes_that_of_the_plan() -> None:
    play = make(sizes=SLOW)
    play.cluster.set_default(15)
    play.cluster.at(20, lambda: play.cluster.change_rate(None))
    play.cluster.at(60, lambda: shown.append(dict(play.cluster.rates)))
    shown: list[object] = []
    assert end_run(run(play)).exit_code == 0
    assert shown == [{ThrottleSide.LEADER: 20, ThrottleSide.FOLLOWER: 21}]
    assert play.cluster.rates == {}


def test_a_run_without_a_rate_adopts_one_and_a_pause() -> None:
    play = make(sizes=SLOW, rate=None)
    play.cluster.topics["t"][0].size = 40_000
    play.cluster.at(20, lambda: play.cluster.change_rate(0))
    play.cluster.at(120, lambda: play.cluster.change_rate(300))
    assert end_run(run(play)).exit_code == 0
    assert texts(play, MovesNote.RATE_CHANGED) == [
        "paused: the rate is 0",
        "the rate is now 300 B/s",
    ]
    assert play.cluster.rates == {}


@pytest.mark.parametrize(
    ("amount", "source", "said"),
    [
        (30, RateSource.BROKER, "more than the 20 B/s of the plan"),
        (5, RateSource.BROKER, "less than the 10 B/s that the moves need"),
        (15, RateSource.STATIC, "in server.properties"),
    ],
)
def test_a_rate_of_one_broker_that_makes_ours_untrue_is_refused(
    amount: int, source: RateSource, said: str
) -> None:
    play = make()
    moves = play.plan.moves
    assert moves is not None
    forecast = Forecast(0, {}, least_rate=10)
    play.plan = replace(play.plan, moves=replace(moves, forecast=forecast))
    play.cluster.own_rates[3] = (amount, source)
    found = refusal(play)
    assert said in found
    assert "[moves-broker-rate]" in found


def test_a_rate_of_one_broker_that_stops_copies_is_refused() -> None:
    """Also where nobody knows at which rate the moves end."""
    play = make()
    play.cluster.own_rates[3] = (0, RateSource.BROKER)
    play.cluster.kill_run_at(7200)
    assert "of 0 B/s (0 B/s), less than the 1 B/s that the moves need to end" in refusal(play)


def test_a_rate_of_one_broker_below_ours_is_fine() -> None:
    play = make()
    play.cluster.own_rates[3] = (15, RateSource.BROKER)
    assert end_run(run(play)).exit_code == 0


@pytest.mark.parametrize(
    ("amount", "said"),
    [
        (30, "follower throttle rate of 30 B/s (30 B/s), more than the 20 B/s of the plan"),
        (5, "follower throttle rate of 5 B/s (5 B/s), less than the 10 B/s that the moves need"),
    ],
)
def test_a_rate_of_one_broker_that_would_be_refused_pauses_the_run(amount: int, said: str) -> None:
    play = make(TWO, SLOW, at_once=(1, 1))
    moves = play.plan.moves
    assert moves is not None
    play.plan = replace(play.plan, moves=replace(moves, forecast=Forecast(0, {}, least_rate=10)))
    cluster, begun = play.cluster, []
    cluster.at(20, lambda: cluster.own_rates.update({3: (amount, RateSource.BROKER)}))
    cluster.at(900, lambda: begun.append(cluster.topics["t"][1].in_flight or replicas(play, 1)))
    cluster.at(901, cluster.own_rates.clear)
    assert end_run(run(play)).exit_code == 0
    assert begun == [(2, 3)]
    (paused,) = texts(play, MovesNote.PAUSED)
    assert said in paused
    assert "(remove it: reconciler moves unthrottle --broker 3 --cluster prod)" in paused
    assert len(texts(play, MovesNote.RESUMED)) == 1
    assert (replicas(play), replicas(play, 1)) == ((1, 3), (2, 4))


def test_a_rate_of_one_broker_within_a_rate_that_was_raised_is_fine() -> None:
    play = make(TWO, SLOW)
    play.cluster.at(10, lambda: play.cluster.change_rate(40))
    play.cluster.at(20, lambda: play.cluster.own_rates.update({3: (30, RateSource.BROKER)}))
    assert end_run(run(play)).exit_code == 0
    assert texts(play, MovesNote.PAUSED) == []


def test_an_unlimited_rate_is_a_rate_and_is_adopted() -> None:
    """A rate that is missing is set again; this one was asked for."""
    play = make(TWO, {("t", 0): 40_000, ("t", 1): 40_000})
    shown: list[object] = []
    play.cluster.at(20, lambda: play.cluster.change_rate(UNLIMITED))
    play.cluster.at(60, lambda: shown.append(min(play.cluster.rates.values())))
    assert end_run(run(play)).exit_code == 0
    assert shown == [UNLIMITED]
    assert texts(play, MovesNote.RATE_CHANGED) == [
        "the rate is now unlimited, more than the 20 B/s of the plan"
    ]
    assert play.cluster.rates == {}


def test_a_rate_that_is_removed_is_set_again_and_said() -> None:
    play = make(sizes=SLOW)
    play.cluster.at(20, lambda: play.cluster.change_rate(None))
    assert end_run(run(play)).exit_code == 0
    assert texts(play, MovesNote.RATE_CHANGED) == [
        "the rate was removed, and is set again to 20 B/s; `reconciler moves rate unlimited` takes "
        "the limit away"
    ]


@pytest.mark.parametrize("start_s", [0, 20])
def test_a_pause_ends_where_its_rate_is_removed(start_s: int) -> None:
    """Also where nothing is in flight yet."""
    play = make(sizes=SLOW)
    if start_s == 0:
        play.cluster.change_rate(0)
    play.cluster.at(start_s, lambda: play.cluster.change_rate(0))
    play.cluster.at(90, lambda: play.cluster.change_rate(None))
    assert end_run(run(play)).exit_code == 0
    assert replicas(play) == (1, 3)


def test_a_broker_that_takes_no_part_may_have_any_rate() -> None:
    play = make()
    play.cluster.own_rates[5] = (1000, RateSource.STATIC)
    assert end_run(run(play)).exit_code == 0


def test_data_that_grew_since_the_plan_is_refused() -> None:
    play = make(sizes={("t", 0): 3 << 30})
    moves = play.plan.moves
    assert moves is not None
    forecast = Forecast(1 << 30, {"t": (1 << 30,)})
    play.plan = replace(play.plan, moves=replace(moves, forecast=forecast))
    assert "the replicas to copy have 3.0 GiB, more than 1.25 times" in refusal(play)


RACKS = {1: "a", 2: "b", 3: "c", 4: "d", 5: "e"}


def make_racks(rows: Any = TWO, sizes: Any = None, **options: Any) -> Play:
    """Make a play on brokers in racks, as the plan knows them."""
    play = make(rows, sizes, **options)
    brokers = tuple(replace(each, rack=RACKS[each.id]) for each in play.plan.brokers)
    play.plan = replace(play.plan, brokers=brokers)
    play.cluster.racks = dict(RACKS)
    return play


@pytest.mark.parametrize(
    ("broker", "rack", "said"), [(3, "a", "in rack a"), (1, "c", "in rack c"), (1, None, "in no")]
)
def test_a_rack_that_changed_since_the_plan_is_refused(
    broker: int, rack: str | None, said: str
) -> None:
    """Of a broker that takes a replica or keeps one: two replicas would share a rack."""
    play = make_racks()
    if rack:
        play.cluster.racks[broker] = rack
    else:
        del play.cluster.racks[broker]
    found = refusal(play)
    assert f"broker {broker} is {said}" in found
    assert f"and was in rack {RACKS[broker]} when the plan was made" in found
    assert found.endswith("plan again [plan-stale]")


def test_a_rack_on_which_nothing_rests_may_change() -> None:
    """Of a broker that takes no part, that only gives, or whose rows only change their order."""
    play = make_racks({"t": (((1, 2), (1, 3)), ((4, 1), (1, 4)))})
    play.cluster.racks |= {2: "z", 4: "z", 5: "z"}
    assert end_run(run(play)).exit_code == 0


def test_a_rack_that_changed_under_what_is_done_is_named() -> None:
    """A run was killed, and its copy ended before the next run."""
    play = make_racks(ONE, SLOW)
    cluster = play.cluster
    cluster.at(20, lambda: cluster.faults.update({cluster.calls + 1: "kill"}))
    assert play.run() is None
    cluster.move_rack(3, "a")
    cluster.sleep(300)
    applied = run(play)
    assert end_run(applied).exit_code == 0
    (outcome,) = applied.outcomes
    moved = "broker 3 is in rack a, and was in rack c when the plan was made"
    assert (outcome.kind, outcome.text) == (OutcomeKind.ALREADY_DONE, moved)


def make_unknown(rack: str) -> Play:
    """Make a play whose plan was made while broker 2 was dead, of which nothing told the rack."""
    play = make_racks({"t": (((5, 2), (3, 2)), ((5, 2), (3, 2)))}, SLOW, at_once=(1, 1))
    dead = replace(play.plan.brokers[1], rack=None, alive=False)
    brokers = tuple(dead if each.id == 2 else each for each in play.plan.brokers)
    play.plan = replace(play.plan, brokers=brokers)
    play.cluster.racks[2] = rack
    return play


def test_a_broker_that_was_dead_when_the_plan_was_made_may_come_back() -> None:
    play = make_unknown("b")
    assert end_run(run(play)).exit_code == 0
    play = make_unknown("b")
    play.cluster.kill_broker(2)
    play.cluster._publish()
    play.cluster.at(50, lambda: play.cluster.revive_broker(2))
    assert end_run(run(play)).exit_code == 0


def test_a_broker_that_comes_back_in_the_rack_of_another_replica_is_named() -> None:
    play = make_unknown("c")
    cluster = play.cluster
    with pytest.raises(StalePlanError) as caught:
        run_moves(play.plan, cluster, cluster, cluster.clock, lease=cluster)
    said = "broker 2 is in rack c, which was not known when the plan was made"
    assert said in str(caught.value)


def test_a_rack_that_changes_in_the_middle_skips_what_waits() -> None:
    """What is in flight goes on, and the report says that it is not spread as planned."""
    rows = {"t": (((1, 2), (1, 3)),), "u": (((4, 2), (4, 3)),), "v": (((1, 2), (1, 5)),)}
    play = make_racks(rows, {("t", 0): 4000, ("u", 0): 1000, ("v", 0): 100}, at_once=(1, 1))
    play.cluster.at(20, lambda: play.cluster.move_rack(3, "a"))
    applied = run(play)
    found = {outcome.topic: (str(outcome.kind), outcome.text) for outcome in applied.outcomes}
    moved = "broker 3 is in rack a, and was in rack c when the plan was made"
    assert found == {
        "t": ("done", moved),
        "u": ("failed", f"partition 0: {moved}: plan again"),
        "v": ("done", ""),
    }
    assert play.cluster.topics["u"][0].replicas == (4, 2)
    assert (play.cluster.violations, play.cluster.rates) == ([], {})


def test_a_run_that_continues_takes_back_its_throttles_although_racks_changed() -> None:
    play = make_racks(TWO, SLOW, at_once=(1, 1))
    play.cluster.faults[40] = "kill"
    assert play.run() is None
    play.cluster.move_rack(3, "a")
    play.cluster.move_rack(4, "a")
    applied = run(play)
    assert summary(applied).ended_otherwise == 1
    assert (play.cluster.rates, play.cluster.configs["t"]) == ({}, {})


def test_a_topic_with_a_list_of_all_replicas_is_skipped() -> None:
    play = make(live={"t": {FOLLOWER: "*"}})
    applied = run(play)
    assert applied.outcomes[0].kind is OutcomeKind.FAILED
    assert "a throttle list of *" in applied.outcomes[0].text
    assert play.cluster.configs["t"] == {FOLLOWER: "*"}
    assert end_run(applied).exit_code == 1


def test_entries_of_others_stay_in_a_list() -> None:
    play = make(sizes=SLOW)
    play.cluster.at(20, lambda: play.cluster.list_by_hand("t", "7:1"))
    run(play)
    assert play.cluster.configs["t"] == {FOLLOWER: "7:1"}


@pytest.mark.parametrize(
    ("topic", "entries", "way_out"),
    [
        (EXTRA, "*", f"reconciler moves unthrottle --topic {EXTRA} --cluster prod"),
        (EXTRA, "0:1", "reconciler moves settle --cluster prod"),
        ("t", "7:1", "reconciler moves settle --cluster prod"),
    ],
)
def test_a_list_that_the_rate_would_slow_is_refused(topic: str, entries: str, way_out: str) -> None:
    play = make(live={topic: {FOLLOWER: entries}})
    said = refusal(play)
    assert topic in said
    assert f"remove it: {way_out} [moves-throttle-left]" in said
    assert play.cluster.rates == {}


def test_a_list_that_no_rate_of_the_run_slows_is_fine() -> None:
    unlimited = make(rate=None, live={EXTRA: {FOLLOWER: "*"}})
    assert end_run(run(unlimited)).exit_code == 0
    under = make(live={EXTRA: {FOLLOWER: "*"}})
    under.cluster.set_default(15)
    assert end_run(run(under)).exit_code == 0
    reorder = make({"t": (((1, 2), (2, 1)),)}, live={EXTRA: {FOLLOWER: "*"}})
    assert end_run(run(reorder)).exit_code == 0


def test_a_list_that_another_tool_leaves_meanwhile_is_not_slowed() -> None:
    """Nothing new begins, and the rate goes until the list is gone."""
    play = make(TWO, SLOW, at_once=(1, 1))
    cluster, shown = play.cluster, []
    cluster.at(20, lambda: cluster.list_by_hand(EXTRA, "*"))
    cluster.at(600, lambda: shown.append((replicas(play), replicas(play, 1), cluster.rates)))
    cluster.at(601, lambda: cluster.list_by_hand(EXTRA, None))
    assert end_run(run(play)).exit_code == 0
    assert shown == [((1, 3), (2, 3), {})]
    (paused,) = texts(play, MovesNote.PAUSED)
    assert f"a throttle list of * is left on {EXTRA}" in paused
    assert f"(remove it: reconciler moves unthrottle --topic {EXTRA} --cluster prod)" in paused
    assert texts(play, MovesNote.RATE_CHANGED) == []
    assert (replicas(play), replicas(play, 1)) == ((1, 3), (2, 4))
    assert find_faults(play) == []


def test_a_topic_that_was_created_again_is_not_touched() -> None:
    play = make()
    play.cluster.ids["t"] = "another"
    applied = run(play)
    assert applied.outcomes[0].kind is OutcomeKind.FAILED
    assert "deleted and created again" in applied.outcomes[0].text
    assert replicas(play) == (1, 2)


def test_a_row_elsewhere_does_not_make_the_plan_stale() -> None:
    play = make(TWO)
    play.cluster.topics["t"][0].replicas = (5, 4)
    play.cluster.sleep(1)
    play.cluster._publish()
    applied = run(play)
    assert applied.outcomes[0].kind is OutcomeKind.HALF_DONE
    assert "partition 0: it is on brokers [5, 4], not [1, 2]" in applied.outcomes[0].text
    assert (replicas(play), replicas(play, 1)) == ((5, 4), (2, 4))


def test_a_row_elsewhere_alone_sets_no_throttle() -> None:
    play = make()
    play.cluster.topics["t"][0].replicas = (5, 4)
    play.cluster._publish()
    cluster = play.cluster
    writes = []
    cluster.set_rate = writes.append  # type: ignore[assignment, method-assign]
    cluster.configure = writes.append  # type: ignore[assignment, method-assign]
    assert run(play).outcomes[0].kind is OutcomeKind.FAILED
    assert writes == []


def test_more_partitions_than_when_it_was_planned_are_fine() -> None:
    play = make()
    play.cluster.topics["t"].append(replace(play.cluster.topics["t"][0], in_sync={1, 2}))
    play.cluster._publish()
    assert end_run(run(play)).exit_code == 0


def test_a_changed_min_insync_is_not_overwritten() -> None:
    rows = {"t": (((1,), (1, 2, 3)),)}
    play = make(rows, min_insync={"t": 1}, live={"t": {MIN_INSYNC: "3"}})
    applied = run(play)
    assert "min.insync.replicas: not set → 3 since the plan was made" in applied.outcomes[0].text
    assert play.cluster.configs["t"] == {MIN_INSYNC: "3"}


def test_a_min_insync_that_is_changed_during_the_run_stays() -> None:
    rows = {"t": (((1,), (1, 2, 3)),)}
    play = make(rows, SLOW, min_insync={"t": 1}, live={"t": {MIN_INSYNC: "2"}}, configs=TWO_INSYNC)

    def change() -> None:
        play.cluster.configs["t"][MIN_INSYNC] = "3"

    play.cluster.at(30, change)
    assert end_run(run(play)).exit_code == 0
    assert play.cluster.configs["t"] == {MIN_INSYNC: "3"}


def test_a_pause_lasts_until_stop_after_and_stays() -> None:
    play = make()
    play.cluster.change_rate(0)
    applied = run(play, stop_after_s=100)
    assert applied.outcomes[0].kind is OutcomeKind.WAITING
    assert "paused: the throttle rate is 0" in applied.outcomes[0].text
    assert end_run(applied).exit_code == 2
    assert set(play.cluster.rates.values()) == {0}
    assert replicas(play) == (1, 2)


def test_after_its_window_a_run_begins_nothing_and_waits_for_what_is_in_flight() -> None:
    play = make(TWO, SLOW, at_once=(1, 1))
    applied = run(play, begin_for_s=30)
    assert (summary(applied).done, summary(applied).in_flight, summary(applied).waiting) == (
        1,
        0,
        1,
    )
    assert sorted([replicas(play, 0), replicas(play, 1)]) in ([(1, 2), (2, 4)], [(1, 3), (2, 3)])
    assert end_run(applied).exit_code == 2
    assert "the window of moves is over" in applied.outcomes[0].text
    assert (play.cluster.rates, summary(applied).left) == ({}, ())
    # In the next window, the same command goes on.
    assert end_run(run(play)).exit_code == 0
    assert find_faults(play) == []


def test_a_window_that_closes_after_the_last_copy_began_is_no_reason() -> None:
    play = make(TWO, SLOW)
    applied = run(play, begin_for_s=30)
    assert end_run(applied).exit_code == 0
    assert "window" not in applied.outcomes[0].text


def test_a_run_whose_window_closed_while_it_waited_for_the_lock_begins_nothing() -> None:
    play = make(TWO, SLOW)
    applied = run(play, begin_for_s=0)
    assert (summary(applied).done, summary(applied).waiting) == (0, 2)
    assert [replicas(play, 0), replicas(play, 1)] == [(1, 2), (2, 3)]


def test_another_rate_is_adopted_and_removed_in_the_end() -> None:
    play = make(sizes=SLOW)
    play.cluster.at(20, lambda: play.cluster.change_rate(0))
    play.cluster.at(120, lambda: play.cluster.change_rate(200))
    assert end_run(run(play)).exit_code == 0
    assert texts(play, MovesNote.RATE_CHANGED) == [
        "paused: the rate is 0",
        "the rate is now 200 B/s, more than the 20 B/s of the plan",
    ]
    assert play.cluster.rates == {}


def test_foreign_moves_are_waited_for() -> None:
    play = make()
    play.cluster.topics[EXTRA][0].size = 40_000
    play.cluster.move_by_hand((EXTRA, 0), (4, 5))
    assert end_run(run(play)).exit_code == 0
    assert texts(play, MovesNote.PAUSED) == [
        f"nothing new begins: another tool or run moves {EXTRA} partition 0"
    ]
    assert play.cluster.topics[EXTRA][0].replicas == (4, 5)


def test_a_row_that_was_cancelled_by_hand_is_reported() -> None:
    play = make(TWO, sizes=SLOW)
    play.cluster.at(20, lambda: play.cluster.cancel_by_hand(("t", 0)))
    applied = run(play)
    assert "partition 0: it was cancelled by another tool or run" in applied.outcomes[0].text
    assert (replicas(play), replicas(play, 1)) == ((1, 2), (2, 4))
    assert play.cluster.violations == []


def test_moves_that_brokers_accept_and_ignore_are_not_blamed_on_somebody() -> None:
    play = make(TWO)
    accepted = Answer(AnswerKind.ACCEPTED)
    play.cluster.reassign = lambda rows, **_: dict.fromkeys(rows, accepted)  # type: ignore[method-assign]
    applied = run(play)
    assert applied.outcomes[0].kind is OutcomeKind.FAILED
    text = applied.outcomes[0].text
    assert (
        "partition 0: the brokers accepted the move, but never listed it: they ignored it" in text
    )
    assert "another tool or run" not in text
    assert end_run(applied).exit_code == 1


@pytest.mark.parametrize("row", [(1, 2), (4, 5), (3, 1)], ids=["back", "away", "order"])
def test_a_row_that_an_earlier_run_finished_and_somebody_moved_is_not_done(
    row: tuple[int, ...],
) -> None:
    play = make(TWO, sizes={("t", 1): 4000}, at_once=(1, 1))
    cluster = play.cluster
    cluster.topics["t"][0].replicas, cluster.topics["t"][0].in_sync = (1, 3), {1, 3}
    cluster._publish()
    cluster.at(20, lambda: cluster.move_by_hand(("t", 0), row))
    applied = run(play)
    assert applied.outcomes[0].kind is OutcomeKind.HALF_DONE
    said = (
        f"partition 0: it was as planned, and another tool or run moved it to brokers {list(row)}"
    )
    assert said in applied.outcomes[0].text
    assert (replicas(play), replicas(play, 1)) == (row, (2, 4))
    assert end_run(applied).exit_code == 1


def test_a_finished_row_that_is_on_its_way_elsewhere_at_the_end_is_not_done() -> None:
    play = make(TWO, sizes={("t", 1): 1000}, at_once=(1, 1))
    cluster = play.cluster
    finished = cluster.topics["t"][0]
    finished.replicas, finished.in_sync, finished.held = (1, 3), {1, 3}, {1: 10.0, 3: 10.0}
    cluster._publish()

    def take_away() -> None:
        finished.size = 10**9
        cluster.move_by_hand(("t", 0), (4, 5))

    cluster.at(20, take_away)
    applied = run(play, stop_after_s=300)
    assert (summary(applied).done, summary(applied).waiting) == (1, 1)
    assert "another tool or run moves it" in applied.outcomes[0].text
    assert end_run(applied).exit_code == 2


def test_a_finished_row_that_is_gone_at_the_end_has_a_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    play = make()
    report = engine._Run.report

    def delete_before(ended: Any) -> Applied:
        play.cluster.delete_topic("t")
        return report(ended)

    monkeypatch.setattr(engine._Run, "report", delete_before)
    applied = run(play)
    assert end_run(applied).exit_code == 2
    assert "it was as planned, and is not shown any more" in applied.outcomes[0].text
    assert "it was as planned, and is not shown any more" in summary(applied).reason


def test_a_topic_that_is_created_again_in_the_middle_is_left_alone() -> None:
    """It gets no row, no throttle and no other config, and nothing is waited for."""
    rows = {"t": (((1,), (1, 2, 3)), ((2,), (2, 3, 4)), ((3,), (3, 4, 5)))}
    lowered = {"t": 1}
    sizes = {("t", n): 2000 for n in range(3)}
    play = make(rows, sizes, at_once=(2, 2), min_insync=lowered)
    cluster = play.cluster
    made = ((1,), (2, 3, 4), (4,))  # as before the plan, as after it, and otherwise
    cluster.at(40, lambda: cluster.recreate_topic("t", made, {MIN_INSYNC: "1"}))
    started_s = cluster.now_s
    applied = run(play)
    assert applied.outcomes[0].kind is OutcomeKind.FAILED
    assert "it was deleted and created again" in applied.outcomes[0].text
    assert cluster.configs["t"] == {MIN_INSYNC: "1"}
    assert (cluster.violations, cluster.rates) == ([], {})
    assert cluster.now_s - started_s < 80
    assert summary(applied).left == ()


def test_throttles_that_came_to_a_topic_that_was_created_again_are_removed() -> None:
    """It was created in the moment between the look at its id and the write."""
    play = make(TWO, SLOW, at_once=(1, 1))
    cluster = play.cluster
    cluster.at(40, lambda: cluster.recreate_topic("t", ((1, 2), (2, 3))))
    cluster.at(40, lambda: cluster.configs["t"].update({FOLLOWER: "0:3,7:1"}))
    applied = run(play)
    assert cluster.configs["t"] == {FOLLOWER: "7:1"}
    assert (summary(applied).left, end_run(applied).exit_code) == ((), 1)


def test_a_dead_destination_stays_pending_and_throttled() -> None:
    play = make(sizes=SLOW)
    play.cluster.at(20, lambda: play.cluster.kill_broker(3))
    applied = run(play)
    assert applied.outcomes[0].kind is OutcomeKind.IN_FLIGHT
    assert play.cluster.topics["t"][0].in_flight
    assert play.cluster.configs["t"][FOLLOWER] == "0:3"
    assert play.cluster.rates[ThrottleSide.LEADER] == 20
    assert end_run(applied).last_line == "Unfinished. Applied: 1 in flight"


def test_nothing_begins_to_a_dead_broker() -> None:
    play = make(TWO)
    play.cluster.kill_broker(3)
    play.cluster._publish()
    applied = run(play)
    assert applied.outcomes[0].kind is OutcomeKind.WAITING
    assert "broker 3 is not alive" in applied.outcomes[0].text
    assert (replicas(play), replicas(play, 1)) == ((1, 2), (2, 4))


def test_unhealthy_partitions_pause_until_they_heal() -> None:
    play = make(sizes={("t", 0): 10})
    play.cluster.change_rate(20)
    play.cluster.topics[EXTRA].append(replace(play.cluster.topics[EXTRA][0], in_sync={1, 2}))
    cluster = play.cluster

    def fall() -> None:
        cluster.topics[EXTRA][2].in_sync.discard(2)

    def heal() -> None:
        cluster.topics[EXTRA][2].in_sync.add(2)

    cluster.at(0.1, fall)
    cluster.at(200, heal)
    cluster.change_rate(0)
    cluster.at(5, lambda: cluster.change_rate(20))
    assert end_run(run(play)).exit_code == 0
    paused = texts(play, MovesNote.PAUSED)
    assert f"nothing new begins: {EXTRA} partition 2 is not fully in sync" in paused
    assert cluster.now_s > 1200


def test_a_dead_broker_that_the_plan_needs_pauses_and_is_named() -> None:
    rows = {"t": (((1, 2), (1, 3)), ((5, 2), (5, 4)), ((5, 2), (5, 4)))}
    play = make(rows, {("t", n): 2000 for n in range(3)}, at_once=(1, 1))
    cluster = play.cluster
    cluster.at(20, lambda: cluster.kill_broker(5))
    cluster.at(400, lambda: cluster.revive_broker(5))
    assert end_run(run(play)).exit_code == 0
    said = "nothing new begins: broker 5 is not alive: 2 partitions lack it"
    assert texts(play, MovesNote.PAUSED) == [said]


OFF_FIVE = {"t": (((5, 2), (1, 2)), ((5, 3), (1, 3)), ((2, 5), (2, 3)), ((3, 5), (3, 4)))}
"""Rows that leave broker 5, of which one is copied at a time."""


@pytest.mark.parametrize("drains", [(), (PlannedDrain(5),)], ids=["rows", "drain"])
@pytest.mark.parametrize("min_insync", ["1", "2"])
def test_rows_leave_a_broker_that_dies_meanwhile(
    drains: tuple[PlannedDrain, ...], min_insync: str
) -> None:
    """All of them lack it from then on, and nothing but the rest of the plan heals them."""
    sizes = {("t", n): 1000 for n in range(4)}
    live = {"t": {MIN_INSYNC: min_insync}}
    play = make(OFF_FIVE, sizes, at_once=(1, 1), drains=drains, live=live)
    play.cluster.at(20, lambda: play.cluster.kill_broker(5))
    assert end_run(run(play)).exit_code == 0
    assert texts(play, MovesNote.PAUSED) == []


def test_what_stays_on_a_dead_broker_does_not_stop_its_drain() -> None:
    play = make(OFF_FIVE, SLOW, at_once=(1, 1), drains=(PlannedDrain(5, stays={EXTRA: "no"}),))
    play.cluster.topics[EXTRA].append(replace(play.cluster.topics[EXTRA][0], replicas=(1, 5)))
    play.cluster.topics[EXTRA][2].in_sync = {1, 5}
    play.cluster.at(20, lambda: play.cluster.kill_broker(5))
    assert summary(run(play)).done == 4


def test_a_replica_that_leaves_and_is_out_of_sync_does_not_stop_the_plan() -> None:
    """Its broker lives: a disk has failed, for example."""
    play = make(OFF_FIVE, SLOW, at_once=(1, 1))
    fail = play.cluster.topics["t"][3].in_sync.discard
    play.cluster.at(20, lambda: fail(5))
    assert end_run(run(play)).exit_code == 0


def test_the_only_replica_dies_while_it_is_copied_and_the_run_ends() -> None:
    play = make({"t": (((5,), (1,)), ((5,), (2,)))}, SLOW, at_once=(1, 1))
    play.cluster.at(20, lambda: play.cluster.kill_broker(5))
    applied = run(play)
    assert end_run(applied).exit_code == 2
    assert "the partition has no leader" in summary(applied).reason


def watched(play: Play) -> list[MovesWatched]:
    return [event for event in play.notes if isinstance(event, MovesWatched)]


def test_no_time_is_promised_while_nothing_can_begin() -> None:
    """Producers go on, so a replica that was copied grows, which is no progress."""
    rows = {"t": (((1, 2), (1, 3)), ((5, 2), (5, 4)))}
    play = make(rows, {("t", 0): 300, ("t", 1): 100}, at_once=(1, 1))
    cluster = play.cluster

    def write() -> None:
        cluster.topics["t"][0].held[1] += 9
        cluster.at(2, write)

    cluster.at(10, lambda: cluster.kill_broker(5))
    cluster.at(30, write)
    cluster.at(400, lambda: cluster.revive_broker(5))
    assert end_run(run(play)).exit_code == 0
    said = "broker 5 is not alive: 1 partition lacks it"
    paused = [event for event in watched(play) if event.reason == said]
    assert len(paused) > 100
    assert {event.seconds_left for event in paused} == {None}
    assert {event.bytes_per_s for event in paused[-50:]} == {None}


def test_a_copy_to_a_dead_broker_is_the_reason_and_has_no_time() -> None:
    play = make({"t": (((1, 2), (1, 4)),)}, SLOW)
    play.cluster.at(20, lambda: play.cluster.kill_broker(4))
    applied = run(play)
    said = "broker 4 is not alive: 1 partition cannot be moved"
    late = watched(play)[-10:]
    assert {(event.reason, event.seconds_left) for event in late} == {(said, None)}
    assert summary(applied).reason == said
    assert applied.outcomes[0].text == "of 1 partition: 1 in flight; broker 4 is not alive"


def test_the_time_is_that_of_what_can_move() -> None:
    rows = {"t": (((1, 2), (1, 3)), ((4, 2), (4, 5)))}
    play = make(rows, SLOW, at_once=(2, 2))
    play.cluster.at(20, lambda: play.cluster.kill_broker(3))
    run(play)
    times = [event.seconds_left for event in watched(play) if "broker 3" in event.reason]
    known = [each for each in times if each is not None]
    assert known
    assert max(known) < 110


def test_a_broker_that_does_not_show_throttles_is_named() -> None:
    play = make()
    cluster = play.cluster
    read_lists = cluster.read_lists
    silent_until_s = cluster.now_s + 60

    def read_some(topics: Any) -> Any:
        found = dict(read_lists(topics))
        if cluster.now_s < silent_until_s:
            del found[4]
        return found

    cluster.read_lists = read_some  # type: ignore[method-assign]
    assert end_run(run(play)).exit_code == 0
    assert texts(play, MovesNote.BLOCKED) == ["nothing new begins: broker 4 does not answer"]
    reasons = {event.reason for event in watched(play)}
    assert "broker 4 does not answer" in reasons


def test_what_was_unhealthy_before_does_not_pause() -> None:
    play = make()
    play.cluster.topics[EXTRA][0].in_sync.discard(2)
    play.cluster._publish()
    assert end_run(run(play)).exit_code == 0
    assert texts(play, MovesNote.PAUSED) == []


def test_a_disk_that_would_be_too_full_takes_nothing() -> None:
    play = make(TWO, sizes=SLOW, keep_free=15)
    play.cluster.directories[3] = (LogDirectory("/data", 10_000, 3000),)
    play.cluster.directories[4] = (LogDirectory("/data", 10_000, 9000),)
    applied = run(play)
    assert "/data of broker 3 would have 1000 B free" in applied.outcomes[0].text
    assert (replicas(play), replicas(play, 1)) == ((1, 2), (2, 4))


def test_a_row_that_never_fits_into_stop_after_is_named() -> None:
    play = make(sizes=SLOW)
    applied = run(play, stop_after_s=60)
    assert "it needs about 2 min, more than is left of --stop-after" in applied.outcomes[0].text
    assert replicas(play) == (1, 2)
    assert play.cluster.now_s < 1010


def test_what_is_in_flight_at_stop_after_stays_throttled() -> None:
    play = make(sizes=SLOW)
    play.cluster.at(20, lambda: play.cluster.change_rate(1))
    applied = run(play, stop_after_s=150)
    assert applied.outcomes[0].kind is OutcomeKind.IN_FLIGHT
    assert play.cluster.configs["t"][FOLLOWER] == "0:3"
    play.cluster.change_rate(100)
    assert end_run(run(play)).exit_code == 0
    assert find_faults(play) == []


def test_the_first_interrupt_waits_for_what_is_in_flight() -> None:
    play = make(TWO, sizes=SLOW, at_once=(1, 1))
    play.cluster.faults[30] = "interrupt"
    applied = run(play)
    assert sorted([replicas(play), replicas(play, 1)]) in ([(1, 2), (2, 4)], [(1, 3), (2, 3)])
    assert applied.moves is not None
    assert (applied.moves.done, applied.moves.waiting) == (1, 1)
    assert applied.moves.reason.startswith("interrupted")
    assert play.cluster.rates == {}
    assert end_run(applied).exit_code == 2


def test_the_second_interrupt_leaves_it_throttled() -> None:
    play = make(sizes=SLOW)
    play.cluster.faults |= {30: "interrupt", 40: "interrupt"}
    applied = run(play)
    assert applied.outcomes[0].kind is OutcomeKind.IN_FLIGHT
    assert play.cluster.rates[ThrottleSide.LEADER] == 20


def test_a_lost_lock_ends_all_writes() -> None:
    play = make(TWO, sizes=SLOW, at_once=(1, 1))
    play.cluster.at(60, lambda: setattr(play.cluster, "holds_lock", False))
    applied = run(play)
    assert isinstance(applied.cause, LockLostError)
    assert play.cluster.violations == []
    assert end_run(applied).exit_code == 1


def test_a_controller_that_is_silent_for_a_minute_ends_the_run() -> None:
    play = make(sizes=SLOW)
    play.cluster.at(20, play.cluster.freeze_controller)
    applied = run(play)
    assert isinstance(applied.cause, ClusterError)
    assert applied.outcomes[0].kind is OutcomeKind.IN_FLIGHT


def test_a_copy_that_gets_no_byte_is_named_once() -> None:
    play = make(sizes={("t", 0): 2000})
    cluster = play.cluster
    limit = type(cluster)._limit
    still = [True]
    cluster.at(200, still.clear)

    def stand_still(*asked: Any) -> int | None:
        return 0 if still else limit(cluster, *asked)

    cluster._limit = stand_still  # type: ignore[method-assign]
    assert end_run(run(play)).exit_code == 0
    assert texts(play, MovesNote.SLOW) == ["no byte for 60 s to broker 3: the cause is not visible"]


def test_throttles_that_are_not_visible_refuse_the_run() -> None:
    from reconciler.errors import Finding, Severity

    play = make()
    cluster = play.cluster
    read = cluster.read
    note = Finding("cluster-answer", "throttle rates are not visible", "", None, Severity.WARNING)
    cluster.read = lambda topics: replace(read(topics), notes=(note,))  # type: ignore[method-assign]
    assert play.run() is None
    assert "throttle rates are not visible" in play.ends[0]


def test_a_thousand_reorders_take_requests_of_500() -> None:
    rows = {"t": tuple([((1, 2), (2, 1))] * 1100)}
    play = make(rows)
    applied = run(play)
    assert end_run(applied).exit_code == 0
    assert play.cluster.violations == []
    assert all(each.leader == 2 for each in play.cluster.topics["t"])


def test_a_throttle_list_is_never_longer_than_a_config_may_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(window, "MOST_LISTED", 100)
    play = make({"t": tuple([((1, 2), (1, 3))] * 20), **OTHER}, at_once=(5000, 5000))
    play.cluster.most_value = 100
    assert end_run(run(play)).exit_code == 0
    assert play.cluster.violations == []
    assert texts(play, MovesNote.BLOCKED) == [
        "the throttle lists of t are as long as a config may be, 100 bytes: its other partitions "
        "wait, whatever at_once is"
    ]


def test_a_throttle_list_may_have_the_bytes_of_a_config() -> None:
    assert window.MOST_LISTED == 32_767


def test_lists_that_others_have_filled_hold_up_their_topic_only() -> None:
    full = ",".join(f"{number}:1" for number in range(10_000, 14_680))
    play = make({**TWO, **OTHER}, live={"t": {FOLLOWER: full}})
    play.cluster.set_default(15)  # with a rate of its own, a run would slow what they name
    applied = run(play)
    assert [str(outcome.kind) for outcome in applied.outcomes] == ["waiting", "done"]
    assert "full of entries of others" in applied.outcomes[0].text
    assert play.cluster.configs["t"] == {FOLLOWER: full}


def test_configs_of_many_topics_take_several_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    assert writes.MOST_TOPICS == 500
    monkeypatch.setattr(writes, "MOST_TOPICS", 5)
    rows = {f"t{number}": (((1, 2), (1, 3)),) for number in range(12)}
    play = make(rows, at_once=(5000, 5000))
    play.cluster.most_topics = 5
    assert end_run(run(play)).exit_code == 0
    assert play.cluster.violations == []


# Drains.

OFF_FOUR = {"t": (((4, 2), (3, 2)), ((2, 1), (1, 2)))}
CORDON = (PlannedDrain(4, cordon=True),)


def summary(applied: Applied) -> MovesSummary:
    assert applied.moves is not None
    return applied.moves


def test_a_broker_is_cordoned_before_anything_is_written() -> None:
    play = make(OFF_FOUR, drains=CORDON)
    cluster = play.cluster
    seen: list[bool] = []
    configure, reassign = cluster.configure, cluster.reassign

    def look(write: Any, *args: Any, **options: Any) -> Any:
        seen.append(4 in cluster.cordoned)
        return write(*args, **options)

    cluster.configure = lambda *a: look(configure, *a)  # type: ignore[method-assign]
    cluster.reassign = lambda *a, **o: look(reassign, *a, **o)  # type: ignore[method-assign]
    applied = run(play)
    assert set(seen) == {True}
    assert (summary(applied).cordoned, summary(applied).emptied) == ((4,), (4,))
    assert texts(play, MovesNote.CORDONED) == ["broker 4 is cordoned, and stays so"]
    assert texts(play, MovesNote.DRAINED) == ["broker 4 stores nothing"]
    assert end_run(applied).last_line == "Applied: 1 done, 1 broker cordoned"


def test_a_broker_whose_cordon_is_refused_is_drained_and_named() -> None:
    play = make(OFF_FOUR, drains=CORDON)
    play.cluster.refused_cordons = {4}
    applied = run(play)
    assert (replicas(play), summary(applied).emptied) == ((3, 2), (4,))
    assert summary(applied).left == ("broker 4 is not cordoned: denied",)
    assert end_run(applied).exit_code == 2


def test_a_broker_that_does_not_show_its_cordon_is_not_waited_for_for_ever() -> None:
    play = make(OFF_FOUR, drains=CORDON)
    play.cluster.cordoned = Forgetful()
    applied = run(play)
    assert summary(applied).left == (
        "broker 4 is not cordoned: it does not show the cordon after 60 s",
    )
    assert replicas(play) == (3, 2)


class Forgetful(set[int]):
    """Takes a cordon and forgets it."""

    def add(self, broker: int) -> None:
        """Forget it."""


def test_a_reading_without_the_cordon_is_asked_for_again_and_no_reason_to_give_up() -> None:
    play = make(OFF_FOUR, SLOW, drains=CORDON)
    cluster = play.cluster
    cluster.at(80, cluster.cordoned.clear)
    applied = run(play)
    assert cluster.now_s > 1080
    assert (cluster.cordoned, summary(applied).left) == ({4}, ())


def test_a_lost_cordon_is_asked_for_again() -> None:
    play = make(OFF_FOUR, drains=CORDON)
    cluster = play.cluster
    cordon = cluster.cordon
    asked: list[int] = []

    def lose(broker: int) -> Any:
        asked.append(broker)
        cluster.faults[cluster.calls + 1] = "lost" if len(asked) == 1 else ""
        return cordon(broker)

    cluster.cordon = lose  # type: ignore[method-assign]
    assert end_run(run(play)).exit_code == 0
    assert asked == [4, 4]


def test_a_run_that_ends_before_it_could_cordon_says_so() -> None:
    play = make({}, drains=CORDON)
    applied = run(play, stop_after_s=0)
    assert summary(applied).left == ("broker 4 is not cordoned: the run ended before",)
    assert end_run(applied).exit_code == 2


def test_a_plan_that_only_cordons_is_done_and_may_be_repeated() -> None:
    play = make({}, drains=CORDON)
    for _ in range(2):
        ending = end_run(run(play))
        assert (ending.exit_code, ending.last_line) == (0, "Applied: 1 broker cordoned")
    assert play.cluster.cordoned == {4}


def test_a_dead_broker_is_drained_without_a_cordon() -> None:
    play = make(OFF_FOUR, drains=(PlannedDrain(4),))
    play.cluster.kill_broker(4)
    play.cluster._publish()
    applied = run(play)
    assert (replicas(play), summary(applied).emptied) == ((3, 2), (4,))
    assert texts(play, MovesNote.DRAINED) == ["broker 4 holds no replica"]
    assert play.cluster.cordoned == set()


def test_a_broker_that_dies_during_the_drain_needs_no_cordon() -> None:
    play = make(OFF_FOUR, SLOW, drains=CORDON)
    play.cluster.at(40, lambda: play.cluster.kill_broker(4))
    assert summary(run(play)).emptied == (4,)


def test_what_a_plan_does_not_know_keeps_a_broker_from_being_called_empty() -> None:
    """A topic was created there after the plan was made, and before the cordon."""
    play = make(drains=(PlannedDrain(2),))
    applied = run(play)
    said = f"broker 2 still stores {EXTRA} partition 0 and 1 more replica"
    assert summary(applied).left == (said,)
    assert (summary(applied).emptied, end_run(applied).exit_code) == ((), 2)


def test_log_directories_that_are_not_shown_keep_a_broker_from_being_called_empty() -> None:
    play = make(OFF_FOUR, drains=CORDON)
    play.cluster.read_stored = lambda _: None  # type: ignore[method-assign]
    applied = run(play)
    assert summary(applied).left == ("broker 4 does not show what its log directories store",)
    assert summary(applied).emptied == ()


@pytest.mark.parametrize("size", [2000, 10], ids=["in flight", "done"])
def test_a_broker_is_empty_as_well_if_a_topic_on_it_was_deleted(size: int) -> None:
    rows = {**OFF_FOUR, "u": (((4, 5), (3, 5)),)}
    play = make(rows, {**SLOW, ("u", 0): size}, drains=CORDON)
    play.cluster.at(40, lambda: play.cluster.delete_topic("u"))
    applied = run(play)
    assert summary(applied).emptied == (4,)
    assert end_run(applied).exit_code == 1


def test_a_broker_is_not_looked_at_while_rows_of_the_plan_are_on_it() -> None:
    play = make(OFF_FOUR, drains=CORDON)
    play.cluster.kill_broker(3)
    play.cluster._publish()
    applied = run(play)
    assert (summary(applied).waiting, summary(applied).emptied) == (1, ())


def test_topics_that_stay_by_the_plan_are_not_reported_again() -> None:
    stays = (PlannedDrain(2, stays={EXTRA: "refused: no"}),)
    applied = run(make(drains=stays))
    assert (summary(applied).left, summary(applied).emptied) == ((), ())
    assert end_run(applied).exit_code == 0


@pytest.mark.parametrize(
    ("dead", "value", "said"),
    [
        ((1, 2), "1", "no replica that stays is alive and in sync"),
        ((1,), "2", "fewer of the replicas that stay are in sync than min.insync.replicas 2"),
    ],
)
def test_replicas_that_died_since_the_plan_are_not_all_that_a_row_keeps(
    dead: tuple[int, ...], value: str, said: str
) -> None:
    insync = {"t": {MIN_INSYNC: value}}
    play = make({"t": (((1, 2, 3), (1, 2)),)}, configs=insync, live=insync)
    for broker in dead:
        play.cluster.kill_broker(broker)
    run(play)
    assert texts(play, MovesNote.BLOCKED) == [said]
    assert replicas(play) == (1, 2, 3)


def test_a_row_that_keeps_enough_replicas_in_sync_loses_the_dead_one() -> None:
    insync = {"t": {MIN_INSYNC: "2"}}
    play = make({"t": (((1, 2, 3), (1, 2)),)}, configs=insync, live=insync)
    play.cluster.kill_broker(3)
    run(play)
    assert replicas(play) == (1, 2)
