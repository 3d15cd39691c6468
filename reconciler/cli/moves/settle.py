"""`reconciler moves settle`: wait for moves, then remove the throttles that nothing uses."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.api.connections import find_cluster
from reconciler.api.move_control import Locking, control_moves
from reconciler.api.planning import load_estate
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
    name_moves,
    name_target,
    no_lock_option,
    say,
    say_each,
)
from reconciler.cli.terminal import working
from reconciler.model.moves import MIN_INSYNC, MovesReading
from reconciler.model.outcomes import Outcome, OutcomeKind
from reconciler.model.throttles import Leftover, say_rate
from reconciler.moves.decisions import Settlement, find_effect, find_settlement
from reconciler.moves.progress import MovesReport
from reconciler.moves.throttles import name_removals
from reconciler.show.moves_in_flight import summarise_moves
from reconciler.units import count

if TYPE_CHECKING:
    from reconciler.moves.running.interventions import Settled
    from reconciler.run.ending import Ending


@click.command(name="settle", cls=options.Command)
@estate_argument
@cluster_option
@options.bootstrap_option
@click.option(
    "--stop-after",
    metavar="DURATION",
    callback=lambda ctx, param, value: value and options.read_duration(ctx, param, value),
    help="Stop waiting after this time, such as 100m.",
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
    stop_after: float | None,
    auto_approve: bool,
    journal: Path | None,
    lock_timeout: float,
    no_lock: bool,
) -> int:
    """Wait for moves that name their throttled replicas, then remove unused throttles.

    This cleans up after a run that was killed, without its plan. Moves of other tools are not
    waited for, and what they use stays. Exits 2 if anything is left. With --cluster, ESTATE has
    the connection settings, and min.insync.replicas is compared with the specs; without,
    --bootstrap-servers is the address. ESTATE defaults to topics.
    """
    from reconciler.run.ending import Ended, Ending

    specified = _read_min_insync(estate, cluster) if cluster is not None else {}
    with (
        connect_moves(estate, cluster, bootstrap_servers) as connection,
        control_moves(connection) as control,
    ):
        name = connection.entry.name
        with working(f"reading {name}"):
            reading = control.read()
        found = find_settlement(reading)
        here = name_target(estate, cluster, bootstrap_servers)
        _show(reading, found, here)
        record = begin_control("settle", reading, None)
        locking = Locking(None if no_lock else lock_timeout, WaitingNotes(lock_timeout).observe)

        def settle() -> Ending:
            with working("waiting for moves in flight") as say_progress:
                settled = control.settle(
                    locking,
                    specified=specified,
                    stop_after_s=stop_after,
                    observe=_follow(say_progress),
                )
            _report(settled, here)
            return _end(settled)

        def ask() -> Ending:
            if not (found.awaited or found.removable or found.directory_rate):
                say("Nothing to settle.")
                is_left = found.kept or found.rate_used
                return Ending(Ended.UNFINISHED if is_left else Ended.NOTHING_TO_DO)
            control.check_rights({each.topic for each in reading.lists})
            question = f"Remove these throttles of {name} once nothing uses them?"
            if not approve(question, auto_approve=auto_approve):
                return Ending(Ended.NOT_APPROVED)
            return control.keep_record(record, settle)

        return keep_journal(journal, record, ask)


def _end(settled: Settled) -> Ending:
    """Return how a settlement ended, with an outcome for each topic."""
    from reconciler.run.ending import Ended, Ending

    found = dict.fromkeys(settled.topics, (OutcomeKind.DONE, "throttle removed"))
    found |= dict.fromkeys(settled.left.topics, (OutcomeKind.WAITING, "throttle not removed"))
    found |= {each.topic: (OutcomeKind.WAITING, each.what) for each in settled.traces}
    moving = {each.topic for each in settled.left.awaited}
    found |= dict.fromkeys(moving, (OutcomeKind.IN_FLIGHT, settled.stopped))
    outcomes = tuple(Outcome(topic, *found[topic]) for topic in sorted(found))
    return Ending(Ended.DONE if settled.is_settled else Ended.UNFINISHED, outcomes)


def _read_min_insync(estate: Path | None, cluster: str) -> Mapping[str, str]:
    """Return min.insync.replicas by topic, where specs set it."""
    loaded = load_estate(estate or "topics")
    find_cluster(loaded, cluster)
    return {
        spec.name: value
        for spec in loaded.topics_for(cluster)
        if (value := spec.config.get(MIN_INSYNC)) is not None
    }


def _follow(say_progress: Callable[[str], None]) -> Callable[[MovesReport], None]:
    """Return what shows progress: a line that is replaced on a terminal, or a line each time."""

    def follow(report: MovesReport) -> None:
        if sys.stderr.isatty():
            say_progress(summarise_moves(report))
        else:
            click.echo(summarise_moves(report))

    return follow


def _show(reading: MovesReading, found: Settlement, here: str) -> None:
    """Show what is in flight, and every throttle."""
    if found.awaited:
        say(f"{count(len(found.awaited), 'partition')} in flight, waited for:")
        say_each(name_moves(found.awaited), "partition")
    if found.foreign:
        say(f"{count(len(found.foreign), 'partition')} in flight of others, not waited for:")
        say_each(name_moves(found.foreign), "partition")
    if found.is_awaited and found.relocates:
        say("Replicas in flight between log directories, waited for.")
    rate = find_effect(reading).rate
    throttles = [f"cluster default: {say_rate(rate)}"] if rate is not None else []
    if (limit := found.directory_rate) is not None:
        throttles.append(f"between log directories: {say_rate(limit.bytes_per_s)}")
    throttles += [f"{each.topic}: {each.side} replicas {each.replicas}" for each in reading.lists]
    if throttles:
        say("Throttles:")
        say_each(throttles, "throttle")
    if found.standing is not None:
        say("The cluster default stays, because reconciler did not set it.")
    if found.kept:
        say("Not set by reconciler, so they stay:")
        say_each([each.text for each in found.kept], "throttle")
        for command in name_removals(found.kept):
            say(f"To remove them: {command} {here}")


def _report(settled: Settled, here: str) -> None:
    removed = [f"throttled replicas of {topic}" for topic in settled.topics]
    removed += ["the cluster default of the throttle rates"] * settled.rate_removed
    removed += ["the throttle rate between log directories"] * settled.directory_rate_removed
    if removed:
        say("Removed:")
        say_each(removed, "throttle")
    left = settled.left
    if left.is_awaited:
        flying = count(len(left.awaited), "partition") if left.awaited else "replicas"
        say(f"{flying} still in flight: {settled.stopped}.")
        say(f"To continue: reconciler moves settle {here}")
    elif left.rate_used:
        say("The cluster default of the throttle rates limits moves of others; it stays.")
    not_removed = [_name(each) for each in left.removable]
    not_removed += ["the rate between log directories"] * left.removes_directory_rate
    if not_removed:
        say("Not removed:")
        say_each(not_removed, "throttle")
    if settled.traces:
        say("Not restored:")
        for trace in settled.traces:
            say(f"  {trace.topic}: {trace.what}; {trace.way_out}")
    if settled.is_settled:
        say("Settled: nothing is left.")


def _name(left: Leftover) -> str:
    return left.topic or "the cluster default of the throttle rates"
