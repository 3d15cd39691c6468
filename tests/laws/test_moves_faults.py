"""Laws of a run of moves under faults, on a simulated cluster.

Answers are lost, and requests are carried out late or not at all. The run is killed, interrupted,
or loses its lock. Brokers and controllers fail. Other people move, cancel, pause and change rates.
In the end the same command makes the plan true, and leaves nothing of its own behind. What it
drains is cordoned as planned, and called empty if and only if it is.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from simulated.scenario import find_faults, make_play, play_out

from reconciler.model.moves import DefaultRate
from reconciler.moves.running import rows as states
from reconciler.moves.running import run as engine
from reconciler.moves.running.drains import Drains
from reconciler.moves.running.insync import MinInsync
from reconciler.moves.running.throttle import Throttles
from reconciler.moves.running.writes import Writes
from reconciler.moves.window import Seats

SEEDS = (*range(600), 1084, 2100, 2209, 4593)
"""About 2,100 runs in 20 s of CPU. The last ones met views so late that a write undid another.

In the very last, a run took throttle lists away and died. The next set them again, and a broker
that still showed the old ones let it begin, and then saw that they were gone.
"""

MANY = range(1_000, 7_000)
"""More than 20,000 runs."""

FEW = range(150)


def play_all(seeds: Iterable[int]) -> dict[int, list[str]]:
    """Play seeds, and return what is wrong by seed."""
    wrong = {}
    for seed in seeds:
        play = make_play(seed)
        play_out(play, random.Random(seed))
        if found := find_faults(play):
            wrong[seed] = [*found[:3], *play.ends]
    return wrong


def find_first(seeds: Iterable[int]) -> list[str]:
    """Play seeds until something is wrong, and return it."""
    for seed in seeds:
        play = make_play(seed)
        try:
            play_out(play, random.Random(seed))
        except Exception as error:  # noqa: BLE001  # a sabotaged run may fail anyhow
            return [repr(error)]
        if found := find_faults(play):
            return found
    return []


@pytest.mark.parametrize("part", range(4))
def test_the_same_command_ends_as_planned_whatever_failed_before(part: int) -> None:
    assert play_all(SEEDS[part::4]) == {}


@pytest.mark.slow
@pytest.mark.parametrize("part", range(16))
def test_the_same_command_ends_as_planned_in_20_000_runs(part: int) -> None:
    assert play_all(MANY[part::16]) == {}


DYING = range(200)
"""About 60 of these drain a broker."""


def find_stopped_drains(seeds: Iterable[int]) -> list[int]:
    """Let the broker die that a plan drains; it stays dead. Returns the seeds that stop at that.

    Rows whose only replica it has cannot move; all others do, and the run ends.
    """
    stopped = []
    for seed in seeds:
        play, dice = make_play(seed), random.Random(seed)
        cluster, moves = play.cluster, play.plan.moves
        assert moves is not None
        cluster.faults.clear()
        cluster.events.clear()
        for drain in moves.drains:
            if cluster.alive[drain.broker]:
                cluster.at(dice.uniform(1, 60), partial(cluster.kill_broker, drain.broker))
            cluster.kill_run_at(2900)
            applied = play.run()
            alone = [
                place
                for place in cluster.plan_rows
                if cluster.topics[place[0]][place[1]].in_sync == {drain.broker}
            ]
            rows = len(cluster.plan_rows) - len(alone)
            if not applied or not applied.moves or applied.moves.done < rows:
                stopped.append(seed)
    return stopped


def test_a_drain_ends_as_planned_although_its_broker_dies() -> None:
    assert find_stopped_drains(DYING) == []


Run = engine._Run


def _keep_lists(throttles: Any, moving: object, reading: object, left: object) -> None:
    """Leave the lists of ended rows."""


def _keep_rate(throttles: Any, moving: object, reading: object, left: object) -> bool:
    """Leave the rate."""
    return True


def _own_what_equals(rate: DefaultRate) -> bool:
    """Take every default rate for one of moves."""
    return True


def _stay_lowered(insync: Any, name: str) -> str:
    """Take the lowered value for the one to restore."""
    return str(insync.lowered[name])


def _ignore_lock(writes: Any) -> None:
    """Write without the locks."""
    writes.has_written = True


def _send_at_once(run: Any, reading: Any, chosen: object) -> str:
    """Send before the brokers show the throttles."""
    return ""


def _forget_answers(row: Any, now_s: float) -> None:
    """Take a row that is shown as before for one that was never begun."""
    row.known = False
    JUDGE(row, now_s)


JUDGE = states._judge


def _choose_foreign(run: Any, reading: Any) -> list[Any]:
    """Choose what somebody else moves, too."""
    foreign = run.rows.list_in(states.RowState.FOREIGN)
    for row in foreign:
        row.state = states.RowState.NOT_BEGUN
    return [*CHOOSE(run, reading), *foreign]


CHOOSE = Run._choose


SABOTAGE: dict[str, tuple[object, str, object]] = {  # what is broken, and how
    "lists are left": (Throttles, "remove_lists", _keep_lists),
    "the rate is left": (Throttles, "remove_rate", _keep_rate),
    "a rate of somebody else is removed": (DefaultRate, "is_of_moves", property(_own_what_equals)),
    "min.insync.replicas stays lowered": (MinInsync, "_find_restored", _stay_lowered),
    "locks are not checked": (Writes, "check_right", _ignore_lock),
    "throttles are not read back": (Run, "_name_unready", _send_at_once),
    "no limit at once": (Seats, "fits", lambda *_: True),
    "what was cancelled is sent again": (states, "_judge", _forget_answers),
    "foreign moves are overridden": (Run, "_choose", _choose_foreign),
    "no broker is cordoned": (Drains, "cordon", lambda *_: True),
    "no broker is called empty": (Drains, "verify", lambda *_: None),
    "no leader is elected": (Writes, "elect", lambda *_: True),
    "topics are known by their names": (Writes, "skip_replaced", lambda *_: set()),
    "a row elsewhere counts as done": (states, "SETTLED_S", 0.0),
}


@pytest.mark.parametrize("name", SABOTAGE)
def test_the_laws_notice_a_run_that_breaks_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    target, attribute, broken = SABOTAGE[name]
    monkeypatch.setattr(target, attribute, broken)
    assert find_first(FEW), name


def test_the_laws_notice_a_topic_that_refuses_acks_all() -> None:
    found: list[str] = []
    for seed in FEW:
        play = make_play(seed)
        moves = play.plan.moves
        assert moves is not None
        play.plan = replace(play.plan, moves=replace(moves, min_insync={}))
        play_out(play, random.Random(seed))
        found += play.cluster.violations
    assert any("refuses acks=all" in each for each in found)
