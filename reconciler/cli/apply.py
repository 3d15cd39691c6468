"""`reconciler apply`: make the changes of a plan, and nothing else."""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.api.applying import apply_plan, check_apply, check_hours
from reconciler.api.connections import find_cluster
from reconciler.api.planning import load_estate
from reconciler.api.records import ApplyRecord, begin_record
from reconciler.api.rendering import render_plan
from reconciler.cli import options
from reconciler.cli.base import read_branch
from reconciler.cli.journal import Journal
from reconciler.cli.planning import Planner, Wanted, load_planner
from reconciler.cli.plans import read_plan, refuse_other_specs
from reconciler.cli.terminal import (
    ask,
    choose_paint,
    find_no_terminal,
    fold_to_screen,
    fold_width,
    give_up_stdout,
    print_error,
    print_note,
    wants_colour,
)
from reconciler.errors import (
    AuditError,
    Finding,
    OutdatedPlanError,
    ReconcilerError,
    RefusedPlanError,
    UnapprovedPlanError,
    UsageError,
    escape_unprintable,
)
from reconciler.model.plan import Plan
from reconciler.styling import set_columns
from reconciler.units import SECOND, count, format_duration

if TYPE_CHECKING:
    from reconciler.kafka.lock import Waiting
    from reconciler.run.ending import Ending
    from reconciler.spec.estate import Estate

INTERRUPTED = 130
NO_LOCK = "lock-unavailable"
"""The refusal of a plan that a run without a lock ignores."""
UNLOCKED = (
    "note: without a lock, nothing prevents a second apply; changes by others are detected only "
    "before the first change"
)


@click.command(cls=options.Command)
@click.argument("source", default="topics", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--estate",
    type=click.Path(path_type=Path),
    default=Path("topics"),
    show_default=True,
    help="Where clusters.yaml is, for a saved plan.",
)
@options.clusters_option
@options.all_clusters_option
@options.bootstrap_option
@options.topic_option
@options.changed_since_option
@click.option("--auto-approve", is_flag=True, help="Do not ask for approval; for CI.")
@click.option("--skip-refused", is_flag=True, help="Apply the other topics if some are refused.")
@click.option("--expect", metavar="FINGERPRINT", help="Apply only the plan with this fingerprint.")
@options.approved_option
@options.default_branch_option
@click.option(
    "--journal",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Append who, what, progress and outcomes to FILE, as JSON lines.",
)
@click.option(
    "--lock-timeout",
    metavar="DURATION",
    callback=options.read_duration,
    default="15s",
    show_default=True,
    help="How long to wait for another apply on the cluster, such as 10m.",
)
@click.option(
    "--check",
    is_flag=True,
    help="Check that the account can apply: audit topic, rights, lock; change nothing.",
)
@click.option(
    "--no-lock",
    is_flag=True,
    help="Apply without the lock: something else prevents other applies.",
)
@click.option(
    "--stop-after",
    metavar="DURATION",
    callback=lambda ctx, param, value: value and options.read_duration(ctx, param, value),
    help="For a plan of moves: start no copy that would end later than this, such as 100m.",
)
def command(
    *,
    source: Path,
    estate: Path,
    clusters: tuple[str, ...],
    all_clusters: bool,
    bootstrap_servers: str | None,
    topic: str,
    changed_since: str | None,
    auto_approve: bool,
    skip_refused: bool,
    expect: str | None,
    approved: Path | None,
    default_branch: str | None,
    journal: Path | None,
    lock_timeout: float,
    check: bool,
    no_lock: bool,
    stop_after: float | None,
) -> int:
    """Apply a saved PLAN, or plan SOURCE, an estate, for --cluster and apply that.

    Several clusters are planned, approved and applied one after the other; a failure on one does
    not stop the others. Exits 0 when everything is as planned, 1 when something was refused or
    failed, and 75 when it is not known whether a change was made: then run the same command again.
    Exits 2 when moves of replicas are in flight or waiting: the same command continues them. SOURCE
    defaults to topics.
    """
    wanted = Wanted(
        source,
        clusters,
        all_clusters,
        bootstrap_servers,
        topic,
        changed_since=changed_since,
        approved=approved,
    )
    if approved is not None and expect is not None:
        raise UsageError("--approved has the fingerprint to expect; leave out --expect")
    patience_s = None if no_lock else lock_timeout
    is_saved = source.is_file() and source.suffix not in (".yaml", ".yml")
    asked = ApplyOptions(
        auto_approve,
        skip_refused,
        expect,
        journal,
        bootstrap_servers,
        patience_s,
        stop_after,
        default_branch,
        estate if is_saved else source,
    )
    if check and is_saved:
        raise UsageError("--check is about the topics of an estate; name that instead of a plan")
    with _ending_gently():
        if check:
            wanted.check()
            return _check_each(load_planner(wanted), asked)
        if is_saved:
            return _apply_saved(wanted, asked).exit_code
        wanted.check()
        if wanted.is_many and expect is not None:
            raise UsageError("--expect is the fingerprint of one plan; name one cluster")
        planner = load_planner(wanted)
        if planner.approval is not None:
            asked = replace(asked, expect=planner.approval.fingerprint)
        if wanted.is_many:
            return _apply_each(planner, asked)
        return _apply(planner.make_plan(planner.clusters[0]).plan, planner.estate, asked).exit_code


@dataclass(frozen=True, slots=True)
class ApplyOptions:
    """The options of an apply; it takes no lock if `patience_s` is None."""

    auto_approve: bool
    skip_refused: bool
    expect: str | None
    journal: Path | None
    bootstrap_servers: str | None
    patience_s: float | None
    stop_after_s: float | None = None
    default_branch: str | None = None
    estate: Path = Path("topics")


def _apply_saved(wanted: Wanted, asked: ApplyOptions) -> Ending:
    """Apply the plan of a file, if the specs are still those of the plan."""
    if wanted.topic != "*" or wanted.changed_since is not None:
        raise UsageError("a saved plan is applied entirely; leave out --topic and --changed-since")
    if wanted.approved is not None:
        raise UsageError("a saved plan has its own rows; pass --expect instead of --approved")
    plan = read_plan(wanted.estate)
    if wanted.all_clusters or not {plan.cluster}.issuperset(wanted.clusters):
        others = ", ".join(wanted.clusters) or "all clusters"
        raise UsageError(f"the plan is for {plan.cluster}, not for {others}")
    loaded = load_estate(asked.estate)
    refuse_other_specs(plan, asked.estate)
    return _apply(plan, loaded, asked)


def _check_each(planner: Planner, asked: ApplyOptions) -> int:
    """Check on each cluster what apply needs. Returns: the worst exit code."""
    code = 0
    for cluster in planner.clusters:
        try:
            check_apply(
                planner.estate,
                cluster,
                bootstrap_servers=asked.bootstrap_servers,
                lock=asked.patience_s is not None,
            )
        except ReconcilerError as error:
            print_error(str(error), f"{cluster}: " if planner.wanted.is_many else "")
            code = max(code, error.exit_code)
        else:
            click.echo(f"{cluster}: the account can apply")
    return code


def _apply_each(planner: Planner, asked: ApplyOptions) -> int:
    """Apply cluster by cluster: an interrupt ends this, a failure does not.

    Each cluster is read right before its own approval: a plan that was made before the apply of
    the previous cluster could be stale by then. Returns: the worst exit code.
    """
    endings: dict[str, Ending] = {}
    for cluster in planner.clusters:
        endings[cluster] = _try_to_apply(planner, cluster, asked)
        click.echo()
        if endings[cluster].exit_code == INTERRUPTED:
            break
    for cluster in planner.clusters:
        click.echo(f"{cluster}: {endings[cluster].ended if cluster in endings else 'not begun'}")
    return max(ending.exit_code for ending in endings.values())


def _try_to_apply(planner: Planner, cluster: str, asked: ApplyOptions) -> Ending:
    from reconciler.run.ending import end_run

    try:
        plan = planner.make_plan(cluster).plan
    except ReconcilerError as error:
        print_error(str(error), f"{cluster}: ")
        return end_run(error=error)
    return _apply(plan, planner.estate, asked, f"{cluster}: ")


def _apply(plan: Plan, loaded: Estate, asked: ApplyOptions, label: str = "") -> Ending:
    """Show a plan, ask for approval, and apply it. Returns: the result.

    `label` is the prefix of errors if there are several clusters.
    """
    if asked.stop_after_s is not None and plan.moves is None:
        raise UsageError("--stop-after is for a plan of moves; this plan ends by itself")
    text = render_plan(plan, colour=wants_colour(sys.stdout), width=fold_width())
    click.echo(text, color=True)
    record = begin_record(plan)
    with Journal(asked.journal, record) as log:
        ending = _run(plan, loaded, asked, log, record)
        # A second Ctrl-C or SIGTERM would cut the journal before its last line.
        with _undisturbed():
            log.conclude(ending)
    with _undisturbed():
        print_ending(ending, label, describe_moves(ending, record))
    return ending


def _run(
    plan: Plan, loaded: Estate, asked: ApplyOptions, log: Journal, record: ApplyRecord
) -> Ending:
    """Get approval for a plan and apply it. Returns: the result, also after an error."""
    from reconciler.diff.guards import list_refusals
    from reconciler.planfile.codec import fingerprint_plan
    from reconciler.run.ending import end_run

    try:
        found = fingerprint_plan(plan)
        if asked.expect is not None and found != asked.expect:
            what = f"the plan's fingerprint is {found}, not the approved {asked.expect}"
            way_out = "read the plan above, and approve that one"
            raise UnapprovedPlanError([Finding("plan-unexpected", what, way_out)])
        if asked.patience_s is None:
            plan = replace(plan, refusals=tuple(r for r in plan.refusals if r.rule != NO_LOCK))
        if refusals := list_refusals(plan, skip_refused=asked.skip_refused):
            return _refuse(plan, refusals, record.planned)
        if not record.planned:
            return end_run()
        check_hours(plan, loaded)
        if asked.default_branch is not None:
            _refuse_outdated(plan, loaded, asked.estate, asked.default_branch)
        if asked.patience_s is None:
            print_note(UNLOCKED)
        if not asked.auto_approve and (unapproved := _approve(plan, record.planned)):
            return unapproved
        log.show_progress()
        applied = apply_plan(
            plan,
            loaded,
            bootstrap_servers=asked.bootstrap_servers,
            skip_refused=asked.skip_refused,
            observe=log.observe,
            lock_timeout_s=asked.patience_s,
            observe_wait=WaitingNotes(asked.patience_s or 0).observe,
            record=record,
            stop_after_s=asked.stop_after_s,
        )
    except AuditError as error:
        # The audit topic did not take the record, so stderr must keep it.
        click.echo(error.record, err=True)
        return end_run(error=error)
    except (ReconcilerError, KeyboardInterrupt) as error:
        return end_run(error=error)
    return end_run(applied)


def _refuse_outdated(plan: Plan, loaded: Estate, estate: Path, branch: str) -> None:
    """Refuse a plan that a branch no longer asks for. Errors: OutdatedPlanError."""
    from reconciler.changes.outdated import find_outdated

    entry, specs = find_cluster(loaded, plan.cluster), loaded.topics_for(plan.cluster)
    now = read_branch(estate, plan.cluster, branch)
    if findings := find_outdated(plan, entry, specs, now):
        raise OutdatedPlanError(findings)


def _refuse(plan: Plan, refusals: Sequence[Finding], others: int) -> Ending:
    """End a refused run: report that nothing was done, and how to apply the rest of the plan."""
    from reconciler.run.ending import end_run

    ending = end_run(error=RefusedPlanError(refusals))
    way_out = ""
    if others and not plan.refusals:
        which = "other change" if others == 1 else f"other {others:,} changes"
        way_out = f"; --skip-refused applies the {which}"
    return replace(ending, error=f"{ending.error}\nnothing was done{way_out}")


def _approve(plan: Plan, steps: int) -> Ending | None:
    """Ask for approval. Returns the result of the run unless the answer is yes."""
    from reconciler.run.ending import Ended, Ending, end_run

    if error := find_no_terminal():
        return Ending(Ended.NOT_APPROVED, error=error)
    try:
        answer = ask(f"Apply {count(steps, 'change')} to {plan.cluster}? [y/N]: ")
    except KeyboardInterrupt as interrupt:
        return end_run(error=interrupt)
    return None if answer.lower() in ("y", "yes") else Ending(Ended.NOT_APPROVED)


@contextmanager
def _ending_gently() -> Iterator[None]:
    """Handle SIGTERM, with which CI ends its jobs, like Ctrl-C: the run ends with a report."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Ignore signals during a report: the work is done, and its result is fixed."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, signal.SIG_IGN) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


AGAIN_S = 30.0
"""The time between two notes about the same holder of the lock."""


class WaitingNotes:
    """Reports the holder of the lock: each holder once, and again every half minute of waiting."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout = format_duration(round(timeout_s * SECOND))
        self._holder = ""
        self._told_s = 0.0

    def observe(self, waiting: Waiting) -> None:
        """Report the wait, if the holder is another or half a minute has passed."""
        if waiting.holder != self._holder:
            print_note(f"waiting up to {self._timeout} for {escape_unprintable(waiting.holder)}")
        elif waiting.waited_s - self._told_s >= AGAIN_S:
            print_note(f"still waiting, {waiting.waited_s:.0f} s of {self._timeout}")
        else:
            return
        self._holder = waiting.holder
        self._told_s = waiting.waited_s


def describe_moves(ending: Ending, record: ApplyRecord) -> list[str]:
    """Return what a person on call must know about moves: the progress, who ran it, and the next
    step."""
    moves = ending.moves
    if moves is None:
        return []
    counted = f"{moves.done} done, {moves.in_flight} in flight, {moves.waiting} waiting"
    if moves.ended_otherwise:
        counted += f", {moves.ended_otherwise} skipped"
    lines = [f"partitions: {counted}"]
    if moves.reason:
        lines.append(f"reason: {moves.reason}")
    lines += [
        f"broker {broker} is empty: remove it from the controllers' quorum, if it votes there, "
        "stop it, unregister it, and remove it from drain_brokers"
        for broker in moves.emptied
    ]
    lines += [f"left: {text}" for text in moves.left]
    if moves.in_flight or moves.waiting or moves.left:
        author = record.author
        cluster = record.cluster
        lines.append(f"run by {author.user}@{author.host} (process {author.pid})")
        if moves.in_flight:
            lines.append("copies in flight continue in Kafka, and keep their throttles")
        again = shlex.join(["reconciler", *sys.argv[1:]])
        lines.append(f"to continue: {again}")
        lines.append(f"to watch: reconciler moves status --cluster {cluster} --watch")
        lines.append(
            f"to remove throttles without the plan: reconciler moves settle --cluster {cluster}"
        )
    return lines


def print_ending(ending: Ending, label: str = "", more: Sequence[str] = ()) -> None:
    """Print the outcome of every topic and the result of the run; an error goes to stderr.

    `more` is printed before the last line, which scripts show alone.
    """
    from reconciler.show.text import paint_outcome

    on_stdout, shown = choose_paint(sys.stdout), ending.outcomes
    rows = ((paint_outcome(one.kind, on_stdout), f"{one.topic}  {one.text}") for one in shown)
    try:
        # The names of topics are not aligned, because the texts are long.
        for line in set_columns(rows, between=" ", least=(13,)):
            click.echo(fold_to_screen(line), color=True)
        for line in more:
            click.echo(fold_to_screen(line), color=True)
        click.echo(f"\n{ending.last_line}")
        sys.stdout.flush()
    except OSError as error:
        # What was done is done: stdout changes neither the result nor the exit code.
        if not give_up_stdout(error):
            raise
        print_note(ending.last_line)
    if ending.error is not None:
        print_error(ending.error, label)
