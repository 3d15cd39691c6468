"""`reconciler moves cancel`: take back the rows of a plan that are in flight."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler import api
from reconciler.cli import options
from reconciler.cli.apply import WaitingNotes
from reconciler.cli.moves.target import (
    IN_FLIGHT,
    NOT_APPROVED,
    UNKNOWN,
    approve,
    approve_option,
    cluster_option,
    connect_moves,
    estate_argument,
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
from reconciler.moves import RowState, explain_keeping
from reconciler.units import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reconciler.api import Cancelled
    from reconciler.model import MovesReading, Plan
    from reconciler.moves import PlannedRow


@click.command(name="cancel")
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
@lock_timeout_option
@no_lock_option
def command(
    *,
    estate: Path | None,
    cluster: str | None,
    bootstrap_servers: str | None,
    path: Path,
    auto_approve: bool,
    lock_timeout: float,
    no_lock: bool,
) -> int:
    """Cancel the moves of a plan that are in flight, and restore their order.

    Only moves whose target is the row of the plan are cancelled, and only while a replica from
    before the plan is in sync. Moves that have ended stay. Without --cluster and
    --bootstrap-servers, the cluster is that of the plan. ESTATE defaults to topics.
    """
    plan = read_plan(path)
    if cluster not in (None, plan.cluster):
        raise UsageError(f"the plan is for {plan.cluster}, not for {cluster}")
    if estate is not None or bootstrap_servers is None:
        cluster = plan.cluster
    with (
        connect_moves(estate, cluster, bootstrap_servers) as connection,
        api.control_moves(connection) as control,
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
        chosen = [*_choose(in_flight, reading), *turned]
        if turned:
            say("Cancelled before, and their order of replicas is to be restored:")
            say_each([f"{name_place(r.place)}: {_list(r.before)}" for r in turned], "partition")
        if not chosen:
            say("Nothing to cancel.")
            return IN_FLIGHT if in_flight else 0
        control.check_rights({row.place[0] for row in chosen})
        if not approve(
            f"Take back {count(len(chosen), 'move')} on {name}?", auto_approve=auto_approve
        ):
            return NOT_APPROVED
        locking = api.Locking(None if no_lock else lock_timeout, WaitingNotes(lock_timeout).observe)
        with working("cancelling"):
            done = control.cancel(plan, chosen, locking)
    _report(done, name_target(estate, cluster, bootstrap_servers))
    if done.unknown:
        return UNKNOWN
    if done.failed:
        return 1
    left = len(in_flight) + len(turned) > len(chosen) or done.led_by_others or done.lowered
    return IN_FLIGHT if left else 0


def _refuse_other_cluster(plan: Plan, reading: MovesReading) -> None:
    if plan.cluster_id and reading.cluster_id and plan.cluster_id != reading.cluster_id:
        raise UsageError(f"the plan is for cluster {plan.cluster_id}, not {reading.cluster_id}")


def _choose(in_flight: Sequence[PlannedRow], reading: MovesReading) -> list[PlannedRow]:
    """Show what is cancelled and what is not. Returns the former."""
    kept = {row.place: why for row in in_flight if (why := explain_keeping(row, reading))}
    chosen = [row for row in in_flight if row.place not in kept]
    if chosen:
        say("To be cancelled:")
        say_each(
            [f"{name_place(row.place)}: back to {_list(row.before)}" for row in chosen],
            "partition",
        )
    if kept:
        say("Not cancelled, because that would lose data:")
        say_each([f"{name_place(place)}: {why}" for place, why in kept.items()], "partition")
    return chosen


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
