"""`reconciler moves cancel`: take back the rows of a plan that are in flight."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.api.move_control import Locking, control_moves
from reconciler.api.records import begin_control
from reconciler.cli import options
from reconciler.cli.apply import WaitingNotes
from reconciler.cli.moves.target import (
    approve,
    approve_option,
    cluster_option,
    connect_moves,
    estate_argument,
    journal_option,
    keep_journal,
    lock_timeout_option,
    name_place,
    name_target,
    no_lock_option,
    say,
    say_each,
)
from reconciler.cli.plans import read_plan
from reconciler.cli.terminal import working
from reconciler.errors import UsageError
from reconciler.model.cluster import AnyPlace, Place
from reconciler.model.identity import name_cluster
from reconciler.model.moves import MIN_INSYNC, MovesReading
from reconciler.model.outcomes import Outcome, OutcomeKind
from reconciler.model.plan import Plan
from reconciler.moves.decisions import find_effect
from reconciler.units import count

if TYPE_CHECKING:
    from reconciler.moves.running.cancel import Cancel, Cancelled
    from reconciler.run.ending import Ending

STATES = ("not begun", "in flight", "done", "in another order", "elsewhere")


@click.command(name="cancel", cls=options.Command)
@estate_argument
@cluster_option
@options.bootstrap_option
@click.option(
    "--plan",
    "path",
    required=True,
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The plan whose moves are cancelled.",
)
@approve_option
@journal_option
@lock_timeout_option
@no_lock_option
def command(
    *,
    estate: Path | None,
    cluster: str | None,
    bootstrap_servers: str | None,
    path: Path,
    auto_approve: bool,
    journal: Path | None,
    lock_timeout: float,
    no_lock: bool,
) -> int:
    """Cancel the moves of a plan that are in flight, and restore their order.

    Only moves whose target is the row of the plan are cancelled, and only while a replica from
    before the plan is in sync. Moves that have ended stay. Without --cluster and
    --bootstrap-servers, the cluster is that of the plan. ESTATE defaults to topics.
    """
    from reconciler.run.ending import Ended, Ending

    plan = read_plan(path)
    if cluster not in (None, plan.cluster):
        raise UsageError(f"the plan is for {plan.cluster}, not for {cluster}")
    if estate is not None or bootstrap_servers is None:
        cluster = plan.cluster
    with (
        connect_moves(estate, cluster, bootstrap_servers) as connection,
        control_moves(connection) as control,
    ):
        name = connection.entry.name
        with working(f"reading {name}"):
            reading = control.read()
            _refuse_other_cluster(plan, reading)
            chosen = control.begin_cancel(plan)
        if not chosen.listed:
            raise UsageError(f"{path} moves no replicas of {name}")
        states = Counter(row.where for row in chosen.listed)
        stand = ", ".join(f"{states[state]} {state}" for state in STATES if states[state])
        say(f"{name}: {count(states.total(), chosen.listed[0].noun)} of the plan: {stand}")
        _show(chosen)
        # A cancel leaves the rate as it is.
        record = begin_control("cancel", reading, find_effect(reading).rate, plan)
        locking = Locking(None if no_lock else lock_timeout, WaitingNotes(lock_timeout).observe)

        def cancel() -> Ending:
            with working("cancelling"):
                done = control.cancel(chosen, locking)
            _report(done, name_target(estate, cluster, bootstrap_servers))
            return _end(done, chosen.kept)

        def ask() -> Ending:
            moved = {row.place[0] for row in chosen.chosen}
            moved |= {each.place[0] for each in chosen.relocating}
            if not (moved or chosen.lowered):
                say("Nothing to cancel.")
                return Ending(Ended.UNFINISHED if chosen.kept else Ended.NOTHING_TO_DO)
            control.check_rights({*moved, *chosen.lowered})
            taken_back = len(chosen.flying) + len(chosen.turned) + len(chosen.relocating)
            question = f"Take back {count(taken_back, 'move')} on {name}?"
            if not taken_back:
                question = f"Restore what an earlier cancel has left on {name}?"
            if not approve(question, auto_approve=auto_approve):
                return Ending(Ended.NOT_APPROVED)
            return control.keep_record(record, cancel)

        return keep_journal(journal, record, ask)


def _refuse_other_cluster(plan: Plan, reading: MovesReading) -> None:
    if plan.cluster_id and reading.cluster_id and plan.cluster_id != reading.cluster_id:
        planned, found = name_cluster(plan.cluster_id), name_cluster(reading.cluster_id)
        raise UsageError(f"the plan is for {planned}, not for {found}")


def _show(cancel: Cancel) -> None:
    """Show what is cancelled, what is not, and what an earlier cancel has left."""
    if cancel.flying:
        say("To be cancelled:")
        rows = [f"{name_place(row.place)}: back to {_list(row.before)}" for row in cancel.flying]
        say_each(rows, "partition")
    if cancel.relocating:
        say("To be cancelled, so that it stays in its log directory:")
        say_each([f"{name_place(e.key)}: {e.source}" for e in cancel.relocating], "replica")
    if cancel.kept:
        say("Not cancelled, because that would lose data:")
        say_each([f"{name_place(place)}: {why}" for place, why in cancel.kept.items()], "partition")
    if cancel.turned:
        say("Cancelled before; their order of replicas will be restored:")
        say_each([f"{name_place(r.place)}: {_list(r.before)}" for r in cancel.turned], "partition")
    if cancel.misled:
        say("Cancelled before; their preferred leader will be elected:")
        say_each([f"{name_place(r.place)}: {r.before[0]}" for r in cancel.misled], "partition")
    if cancel.lowered:
        say("min.insync.replicas is that of the moves, and will be restored:")
        say_each(list(cancel.lowered), "topic")


def _end(done: Cancelled, kept: Mapping[Place, str]) -> Ending:
    """Return how a cancel ended, with an outcome for each topic."""
    from reconciler.run.ending import Ended, Ending

    failed = OutcomeKind.UNKNOWN if done.unknown else OutcomeKind.FAILED
    found: list[tuple[AnyPlace, OutcomeKind, str]]
    found = [(place, OutcomeKind.DONE, "taken back") for place in done.cancelled]
    found += [(place, OutcomeKind.DONE, "ended before") for place in done.ended]
    found += [(place, failed, why) for place, why in done.failed.items()]
    found += [(place, OutcomeKind.IN_FLIGHT, why) for place, why in kept.items()]
    other_leader = "not led by its preferred leader"
    found += [(place, OutcomeKind.WAITING, other_leader) for place in done.led_by_others]
    by_topic: dict[str, list[tuple[OutcomeKind, str]]] = defaultdict(list)
    for key, kind, what in found:
        named = name_place(key).removeprefix(f"{key[0]} ")
        by_topic[key[0]].append((kind, f"{named}: {what}"))
    for topic in done.lowered:
        by_topic[topic].append((OutcomeKind.WAITING, f"{MIN_INSYNC} is that of the moves"))
    outcomes = tuple(
        # Of several partitions, the worst counts: kinds are in that order.
        Outcome(topic, max((kind for kind, _ in said), key=list(OutcomeKind).index), _join(said))
        for topic, said in sorted(by_topic.items())
    )
    if done.unknown:
        ended = Ended.UNKNOWN
    elif done.failed:
        ended = Ended.FAILED
    else:
        left = kept or done.led_by_others or done.lowered
        ended = Ended.UNFINISHED if left else Ended.DONE
    return Ending(ended, outcomes)


def _join(said: Sequence[tuple[OutcomeKind, str]]) -> str:
    return "; ".join(what for _, what in said)


def _list(replicas: Sequence[int]) -> str:
    return ",".join(map(str, replicas))


def _report(done: Cancelled, here: str) -> None:
    if done.cancelled or done.ended or done.failed:
        said = f"{count(len(done.cancelled), 'move')} taken back"
        within = [place for place in done.cancelled if name_place(place).count(" on broker ")]
        order = "in the former log directories" if within else "with the former order of replicas"
        say(f"{said}, {order}.")
    elif not done.lowered:
        say("min.insync.replicas is as before the moves.")
    if done.ended:
        say("Ended before the cancel reached them:")
        say_each([name_place(place) for place in done.ended], "partition")
    if done.failed:
        say("Failed:")
        say_each([f"{name_place(place)}: {why}" for place, why in done.failed.items()], "partition")
    if done.led_by_others:
        say(f"Preferred leaders do not lead; see `reconciler elect {here}`:")
        say_each([name_place(place) for place in done.led_by_others], "partition")
    if done.lowered:
        say("min.insync.replicas is still that of the moves:")
        say_each(list(done.lowered), "topic")
    if done.run:
        say(f"{done.run}. That run continues with the other moves of its plan.")
        say(f"To stop it: reconciler moves pause {here}")
    else:
        say(f"To remove the throttles: reconciler moves settle {here}")
