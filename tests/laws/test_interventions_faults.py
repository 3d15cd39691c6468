"""Laws of `cancel`, `settle` and `rate` under the faults of a run, on a simulated cluster.

A run is killed in the middle, or is still under way. Then somebody intervenes, several times, while
answers are lost, requests are carried out late or not at all, processes are killed, brokers and
controllers fail, and others act. Whatever an intervention reports is true. In the end the same
command leaves nothing of its own to do.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from simulated.cluster import KilledError
from simulated.scenario import FAULTS, Play, make_play
from sizes import choose

from reconciler.errors import FindingsError
from reconciler.model.moves import MIN_INSYNC, DefaultRate, MovesReading
from reconciler.model.throttles import Leftover
from reconciler.moves.decisions import Settlement
from reconciler.moves.running import interventions
from reconciler.moves.running import rows as states
from reconciler.moves.running.cancel import Cancel, Cancelled
from reconciler.moves.running.insync import MinInsync
from reconciler.moves.running.interventions import Leases, Requests, Settled, Settling, set_rate
from reconciler.moves.running.throttle import list_entries, read_lists
from reconciler.moves.running.writes import Writes

VERBS = ("cancel", "settle", "rate")
"""Each with its plays; in a play of one, a second operator calls others."""

RATES = (0, 5, 12)


@dataclass
class Operator:
    """Somebody who intervenes in a play. `said` is what was reported, `wrong` what was not true."""

    play: Play
    dice: random.Random
    said: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    rates_asked: int = 0

    def call(self, verb: str, *, during_run: bool = False) -> bool:
        """Intervene as a process of its own. Returns: whether it came to its end."""
        cluster = self.play.cluster
        before = cluster.verb, cluster.holds_lock, cluster.in_writing
        cluster.verb, cluster.holds_lock, cluster.in_writing = verb, True, verb == "cancel"
        call = {"cancel": self._cancel, "settle": self._settle, "rate": self._rate}[verb]
        try:
            call(during_run)
        except (KilledError, KeyboardInterrupt, FindingsError) as error:
            self.said.append(f"{verb}: {error!r}"[:150])
            return "moves-rate-taken" in str(error)
        finally:
            cluster.verb, cluster.holds_lock, cluster.in_writing = before
        return True

    def look(self) -> Cancel:
        cluster = self.play.cluster
        cancel = Cancel(self.play.plan, cluster, cluster, cluster.clock)
        cancel.look()
        return cancel

    def _cancel(self, during_run: bool) -> None:
        cluster = self.play.cluster
        cancel = self.look()
        cluster.sleep(self.dice.choice((0, 0, 3, 30)))  # until a person has approved it
        done = cancel.work(cluster, run="a run" if during_run else "")
        self.said.append(f"{done}")
        self.wrong += self._check_cancelled(done)

    def _check_cancelled(self, done: Cancelled) -> Iterator[str]:
        cluster = self.play.cluster
        for places, rows, what in (
            (done.cancelled, cluster.old_rows, "taken back"),
            (done.ended, cluster.plan_rows, "ended"),
        ):
            for topic, number in places:
                each = cluster.topics[topic][number]
                if each.in_flight or each.replicas != rows[topic, number]:
                    yield f"{topic} {number} is not {what}: {each}"
        for place in done.failed:
            is_back = cluster.topics[place[0]][place[1]].replicas == cluster.old_rows[place]
            if is_back and place[0] not in cluster.recreated and not done.unknown:
                yield f"{place} is not as it was before, it is said: {done.failed[place]}"

    def _settle(self, during_run: bool) -> None:  # noqa: ARG002
        cluster = self.play.cluster

        @contextmanager
        def writing() -> Iterator[Any]:
            with cluster.writing():
                yield cluster

        stop_after_s = self.dice.choice((None, 60.0, 600.0))
        settled = Settling(
            cluster, cluster, cluster.clock, lambda _: None, cluster, writing, {}, stop_after_s
        ).work()
        self.said.append(f"{settled}")
        self.wrong += self._check_settled(settled)

    def _check_settled(self, settled: Settled) -> Iterator[str]:
        cluster = self.play.cluster
        for topic in settled.topics:
            if any("throttled" in key for key in cluster.configs.get(topic, {})):
                yield f"the lists of {topic} are not removed: {cluster.configs[topic]}"
        if settled.rate_removed and cluster.rates:
            yield f"the rate is not removed: {cluster.rates}"

    def _rate(self, during_run: bool) -> None:  # noqa: ARG002
        cluster = self.play.cluster
        amount = self.dice.choice(RATES)
        permanent = self.play.permanent is not None and amount > 0 and self.dice.random() < 0.5
        self.rates_asked += 1
        number, changes = self.rates_asked, cluster.rate_changes
        _, is_shown = set_rate(cluster, cluster.clock, amount, permanent=permanent)
        self.said.append(f"rate {amount}: {is_shown}")
        if permanent and is_shown:
            self.play.permanent = amount
        wanted = DefaultRate(amount, amount) if permanent else DefaultRate.of_moves(amount)
        shown = [cluster._view(broker).rates for broker in cluster.living]
        # Of two who set rates at once, the first may see its own on all brokers a moment longer.
        is_last = (number, changes) == (self.rates_asked, cluster.rate_changes)
        for rates in [*shown, cluster.rates] if is_shown and is_last else ():
            if {side: wanted.of_side(side) for side in rates} != rates or not rates:
                self.wrong.append(f"the rate is {rates}, not {wanted}")


def play_out(seed: int, verb: str) -> Operator:
    """Let a run begin, and interventions disturb each other and it; then repeat one in peace."""
    dice = random.Random(f"{verb} {seed}")
    play = make_play(seed)
    cluster, operator = play.cluster, Operator(play, dice)
    for each in cluster._every_partition():  # many copies take longer than all that happens
        each.size = dice.choice((each.size, 9_000))
        each.held = dict.fromkeys(each.held, float(each.size))
    if dice.random() < 0.3 and verb != "settle":
        cluster.at(dice.uniform(2, 60), lambda: operator.call(verb, during_run=True))
    end_s = dice.uniform(2, 80)
    for more_s in (0, 100, 200):  # the first kill may hit an intervention
        cluster.kill_run_at(end_s + more_s)
    play.run()
    for _ in range(dice.randint(1, 3)):
        cluster.sleep(dice.choice((0, 4, 20)))
        for _ in range(dice.choice((0, 1, 2, 4))):
            cluster.faults[cluster.calls + dice.randint(1, 40)] = dice.choice(FAULTS)
        if dice.random() < 0.2:
            cluster.at(dice.uniform(1, 20), lambda: operator.call("rate"))
        if dice.random() < 0.2:
            cluster.at(dice.uniform(1, 20), cluster.freeze_controller)
            cluster.at(dice.uniform(21, 70), cluster.thaw_controller)
        cluster.kill_run_at(5_000)
        operator.call(verb)
        cluster.events = [each for each in cluster.events if each[0] < cluster.now_s + 200]
    calm(play)
    for attempt in range(3):
        if not operator.call(verb):
            operator.wrong.append(f"call {attempt} in peace fails: {operator.said[-1]}")
    check_end(operator, verb)
    return operator


def calm(play: Play) -> None:
    """End all faults, and let everybody else clean up; copies stand still meanwhile."""
    cluster = play.cluster
    cluster.faults.clear()
    cluster.events.clear()
    cluster.thaw_controller()
    cluster.sleep(60)  # until everything late is carried out
    if play.permanent is None:
        cluster.change_rate(0)
    for broker, alive in cluster.alive.items():
        if not alive:
            cluster.revive_broker(broker)
    cluster.sleep(60)
    for topic in list(cluster.strange):
        cluster.list_by_hand(topic, None)
    cluster.sleep(30)
    if play.permanent is None:
        cluster.change_rate(20)
        cluster.sleep(30)


def check_end(operator: Operator, verb: str) -> None:
    """Note what is not as it must be after the last call."""
    play, cluster = operator.play, operator.play.cluster
    wrong = operator.wrong
    # Without a run, nobody sets a rate again that somebody has removed.
    unthrottled = "copies without a throttle" if cluster.unset_by_hand else "?"
    wrong += [each for each in cluster.violations if unthrottled not in each]
    wrong += {"cancel": check_cancel, "settle": check_settle, "rate": lambda _: ()}[verb](operator)
    if (
        play.permanent is not None
        and verb != "rate"
        and not any("rate" in s for s in operator.said)
    ):
        kept = set(cluster.rates.values())
        if kept != {play.permanent}:
            wrong.append(f"the rate that was to stay is {cluster.rates}, not {play.permanent}")
    for name, config in cluster.recreated.items():
        if cluster.configs[name].get(MIN_INSYNC) != config.get(MIN_INSYNC):
            wrong.append(f"{name} was created again with {config}, has {cluster.configs[name]}")


def check_cancel(operator: Operator) -> Iterator[str]:
    cluster = operator.play.cluster
    cancel = operator.look()
    if cancel.chosen or cancel.lowered or cancel.kept:
        yield f"left after a cancel: {cancel.chosen} {cancel.lowered} {cancel.kept}"
    lists = read_lists(cluster.read(()).lists)
    for row in cancel.rows:
        topic, number = row.place
        each = cluster.topics[topic][number]
        if row.place in cluster.touched or topic in cluster.recreated:
            continue
        if each.in_flight or each.replicas not in (row.before, row.after):
            yield f"{row.place} is {each}, neither {row.before} nor {row.after}"
        begun = any(e & lists.get(key, frozenset()) for key, e in list_entries([row]).items())
        if begun and each.replicas == row.before and each.leader != row.before[0]:
            yield f"{row.place} is led by {each.leader}, not by {row.before[0]}"
    for topic in operator.play.plan.topics:
        then = topic.before.config.get(MIN_INSYNC) if topic.before else None
        live = cluster.configs[topic.name].get(MIN_INSYNC)
        if topic.name not in cluster.recreated and live != then:
            yield f"{topic.name} has {MIN_INSYNC} {live}, not {then}"


def check_settle(operator: Operator) -> Iterator[str]:
    cluster = operator.play.cluster
    in_flight = {
        name for name, each in cluster.topics.items() if any(one.in_flight for one in each)
    }
    for name, values in cluster.configs.items():
        if name not in in_flight and any("throttled" in key for key in values):
            yield f"{name} has {values}"
    if cluster.rates and not cluster.permanent and not in_flight:
        yield f"the rate is {cluster.rates}"


def find_wrong(seeds: Iterable[int], verb: str) -> dict[int, list[str]]:
    found = {}
    for seed in seeds:
        operator = play_out(seed, verb)
        if operator.wrong:
            found[seed] = [*operator.wrong[:3], *operator.said]
    return found


SEEDS = range(choose(60, 2_000))


@pytest.mark.parametrize("part", range(2))
@pytest.mark.parametrize("verb", VERBS)
def test_what_is_said_is_true_and_the_same_command_ends_it(verb: str, part: int) -> None:
    assert find_wrong(SEEDS[part::2], verb) == {}


def find_first(verb: str) -> list[str]:
    """Play seeds until something is wrong, and return it."""
    for seed in range(150):
        try:
            operator = play_out(seed, verb)
        except Exception as error:  # noqa: BLE001  # a sabotaged intervention may fail anyhow
            return [repr(error)]
        if operator.wrong:
            return operator.wrong
    return []


def _believe(cancel: Any, row: Any, now: float, *, sure: bool) -> bool:
    """Believe every view at once."""
    return row.flight is None and row.state is not states.RowState.GONE


def _remove_used(reading: MovesReading) -> Settlement:
    """Remove the rate although something uses it."""
    found = FIND(reading)
    left = (*found.removable, Leftover(None, None, reading.rates)) if found.rate_used else ()
    return replace(found, removable=left or found.removable)


FIND = interventions.find_settlement

SABOTAGE: dict[str, tuple[str, object, str, object]] = {  # the verb, what is broken, and how
    "late views are believed": ("cancel", Cancel, "_is_believed", _believe),
    "orders are not restored": ("cancel", Cancel, "_is_turned", lambda *_: False),
    "min.insync.replicas stays lowered": ("cancel", MinInsync, "restore", lambda *_: None),
    "no leader is elected": ("cancel", Writes, "elect", lambda *_, **__: True),
    "topics are known by their names": ("cancel", Writes, "skip_replaced", lambda *_: set()),
    "locks are not checked": ("cancel", Writes, "check_right", lambda *_: None),
    "lists are left": ("settle", Requests, "unset_lists", lambda *_: None),
    "a rate in use is removed": ("settle", interventions, "find_settlement", _remove_used),
    "the lock is not checked": ("settle", Leases, "check", lambda _: None),
    "a rate of somebody else is removed": (
        "settle",
        DefaultRate,
        "is_of_moves",
        property(lambda _: True),
    ),
    "a rate is called shown by one broker": (
        "rate",
        interventions,
        "is_rate_shown",
        lambda reading, wanted: reading.default_rate == wanted,
    ),
    "a rate to stay is replaced": ("rate", DefaultRate, "is_of_moves", property(lambda _: True)),
}


@pytest.mark.parametrize("name", SABOTAGE)
def test_the_laws_notice_an_intervention_that_breaks_one(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    verb, target, attribute, broken = SABOTAGE[name]
    monkeypatch.setattr(target, attribute, broken)
    assert find_first(verb), name
