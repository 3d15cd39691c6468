"""`reconciler moves cancel`: take back the rows of a plan that are in flight."""

from __future__ import annotations

from collections import Counter, defaultdict
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
from reconciler.model.moves import MIN_INSYNC
from reconciler.model.outcomes import Outcome, OutcomeKind
from reconciler.moves.decisions import RowState, explain_keeping, find_effect
from reconciler.units import count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reconciler.api.move_control import Cancelled
    from reconciler.apply.ending import Ending
    from reconciler.model.moves import MovesReading, Place
    from reconciler.model.plan import Plan
    from reconciler.moves.decisions import PlannedRow


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
    from reconciler.apply.ending import Ended, Ending

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
            rows = control.find_rows(plan)
        if not rows:
            raise UsageError(f"{path} moves no replicas of {name}")
        in_flight = [row for row in rows if row.state is RowState.IN_FLIGHT]
        states = Counter(row.state for row in rows)
        stand = ", ".join(f"{states[state]} {state}" for state in RowState if states[state])
        say(f"{name}: {count(len(rows), 'partition')} of the plan: {stand}")
        turned = [row for row in rows if row.state is RowState.TURNED]
        kept = {row.place: why for row in in_flight if (why := explain_keeping(row, reading))}
        chosen = [*(row for row in in_flight if row.place not in kept), *turned]
        _show(chosen, kept)
        # A cancel leaves the rate as it is.
        record = begin_control("cancel", reading, find_effect(reading).rate, plan)
        locking = Locking(None if no_lock else lock_timeout, WaitingNotes(lock_timeout).observe)

        def cancel() -> Ending:
            with working("cancelling"):
                done = control.cancel(plan, chosen, locking)
            _report(done, name_target(estate, cluster, bootstrap_servers))
            return _end(done, kept)

        def ask() -> Ending:
            if not chosen:
                say("Nothing to cancel.")
                return Ending(Ended.UNFINISHED if kept else Ended.NOTHING_TO_DO)
            control.check_rights({row.place[0] for row in chosen})
            question = f"Take back {count(len(chosen), 'move')} on {name}?"
            if not approve(question, auto_approve=auto_approve):
                return Ending(Ended.NOT_APPROVED)
            return control.keep_record(record, cancel)

        return keep_journal(journal, record, ask)


def _refuse_other_cluster(plan: Plan, reading: MovesReading) -> None:
    if plan.cluster_id and reading.cluster_id and plan.cluster_id != reading.cluster_id:
        raise UsageError(f"the plan is for cluster {plan.cluster_id}, not {reading.cluster_id}")


def _show(chosen: Sequence[PlannedRow], kept: Mapping[Place, str]) -> None:
    """Show what is cancelled, what is not, and whose order is restored."""
    back = {state: [r for r in chosen if r.state is state] for state in RowState}
    if in_flight := back[RowState.IN_FLIGHT]:
        say("To be cancelled:")
        rows = [f"{name_place(row.place)}: back to {_list(row.before)}" for row in in_flight]
        say_each(rows, "partition")
    if kept:
        say("Not cancelled, because that would lose data:")
        say_each([f"{name_place(place)}: {why}" for place, why in kept.items()], "partition")
    if turned := back[RowState.TURNED]:
        say("Cancelled before, and their order of replicas is to be restored:")
        say_each([f"{name_place(r.place)}: {_list(r.before)}" for r in turned], "partition")


def _end(done: Cancelled, kept: Mapping[Place, str]) -> Ending:
    """Return how a cancel ended, with an outcome for each topic."""
    from reconciler.apply.ending import Ended, Ending

    failed = OutcomeKind.UNKNOWN if done.unknown else OutcomeKind.FAILED
    found = [(place, OutcomeKind.DONE, "taken back") for place in done.cancelled]
    found += [(place, OutcomeKind.DONE, "ended before") for place in done.ended]
    found += [(place, failed, why) for place, why in done.failed.items()]
    found += [(place, OutcomeKind.IN_FLIGHT, why) for place, why in kept.items()]
    other_leader = "not led by its preferred leader"
    found += [(place, OutcomeKind.WAITING, other_leader) for place in done.led_by_others]
    by_topic: dict[str, list[tuple[OutcomeKind, str]]] = defaultdict(list)
    for (topic, number), kind, what in found:
        by_topic[topic].append((kind, f"partition {number}: {what}"))
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
    say(f"{count(len(done.cancelled), 'move')} taken back, with the former order of replicas.")
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
        say(f"{done.run}. That run goes on with the other moves of its plan.")
        say(f"To stop it: reconciler moves pause {here}")
    else:
        say(f"To remove the throttles: reconciler moves settle {here}")
