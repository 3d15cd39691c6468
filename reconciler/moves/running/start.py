"""The judgement of a plan of moves at the start: what is refused, and which rows are skipped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from reconciler.errors import ClusterError, Finding, Severity, StalePlanError
from reconciler.model.cluster import Broker, Place, RateSource, ThrottleSide
from reconciler.model.moves import MovesReading, PlannedMoves
from reconciler.model.plan import Plan
from reconciler.moves.guards import least_rate, name_rate, refuse_default
from reconciler.moves.running.directory_rate import judge_directory_rates
from reconciler.moves.running.notes import Observe, skip
from reconciler.moves.running.relocations import Relocations
from reconciler.moves.running.rows import Row, Rows, RowState
from reconciler.moves.running.throttle import EVERY, Throttles, read_lists
from reconciler.moves.running.window import find_size
from reconciler.run.checks import say_rack
from reconciler.units import approximate_size

GROWTH = 1.25
GROWTH_SLACK = 1 << 30
"""The sizes that were approved may grow this much, and by 1 GiB in any case."""


def check_visible(reading: MovesReading) -> None:
    """Check that nothing is hidden. Errors: ClusterError.

    What is not visible cannot be read back. A broker that is silent may answer again, and a mere
    note, such as one on a failed log directory, hides nothing.
    """
    warnings = [each for each in reading.notes if each.severity is Severity.WARNING]
    unseen = [each for each in warnings if each.rule != "broker-silent"]
    if unseen:
        raise ClusterError([replace(each, severity=Severity.ERROR) for each in unseen])


def skip_throttled_by_others(rows: Rows, reading: MovesReading, observe: Observe) -> None:
    """Skip the rows of topics that throttle all replicas: a run never writes that."""
    lists = read_lists(reading.lists)
    for row in rows:
        if any(EVERY in lists.get((row.place[0], side), ()) for side in ThrottleSide):
            skip(observe, row, "its topic has a throttle list of *, which another tool set")


def find_moved_racks(
    rows: Iterable[Row], planned: Iterable[Broker], reading: MovesReading
) -> dict[Place, dict[int, str]]:
    """Say which living brokers of rows are in another rack than the plan rests on.

    The plan may not know the rack of a broker that was dead. That matters to a row only if another
    of its replicas is in the same rack. Returns: texts by place and broker.
    """
    then = {broker.id: broker for broker in planned}
    racks = {broker.id: broker.rack for broker in reading.brokers if broker.alive}
    moved, unknown = {}, set()
    for broker in then.keys() & racks.keys():
        if then[broker].rack == racks[broker]:
            continue
        was = f"and was {say_rack(then[broker].rack)}"
        if then[broker].rack is None and not then[broker].alive:
            unknown.add(broker)
            was = "which was not known"
        moved[broker] = (
            f"broker {broker} is {say_rack(racks[broker])}, {was} when the plan was made"
        )
    found: dict[Place, dict[int, str]] = {}
    for row in rows if moved else ():
        if row.is_reorder:
            continue
        shared = Counter(racks.get(broker) for broker in row.after)
        for broker in row.after:
            if broker in moved and (broker not in unknown or shared[racks[broker]] > 1):
                found.setdefault(row.place, {})[broker] = moved[broker]
    return found


def skip_moved_racks(
    rows: Rows, moved: Mapping[Place, Mapping[int, str]], observe: Observe
) -> None:
    """Skip the rows that would rest on a broker in another rack than when they were planned.

    One that is done or in flight keeps the reason: its replicas may not be spread as planned.
    """
    for place, said in moved.items():
        row, why = rows.by_place[place], next(iter(said.values()))
        if row.state is RowState.DONE or (row.may_copy and not row.in_doubt):
            row.text = why
        else:
            skip(observe, row, f"{why}: plan again")


def check_limits(
    rows: Rows, plan: Plan, moves: PlannedMoves, throttles: Throttles, reading: MovesReading
) -> None:
    """Check racks, the rates that are set, and the sizes, before the first run sets a throttle.

    Errors: StalePlanError with everything that differs.
    """
    waiting = rows.list_in(RowState.NOT_BEGUN)
    if not waiting:
        return
    brokers = {broker for row in rows for broker in row.brokers}
    racks = find_moved_racks(waiting, plan.brokers, reading)
    said = {broker: what for each in racks.values() for broker, what in each.items()}
    moved = [
        *(
            Finding("plan-stale", f"{what}; rows of the plan rest on it", "plan again")
            for _, what in sorted(said.items())
        ),
        *find_overriding(reading, moves, brokers, moves.policy.rate_bytes_per_s),
        *_refuse_left_rate(reading, moves),
        *refuse_default(reading.default_rate, moves, reading.cluster),
        *(throttles.find_slowed(reading) if any(row.adding for row in waiting) else ()),
    ]
    known = [row for row in waiting if _forecast_size(row, moves) >= 0]
    then = sum(_forecast_size(row, moves) * len(row.adding) for row in known)
    now = sum(find_size(row, reading, None) * len(row.adding) for row in known)
    if now > GROWTH * then and now > then + GROWTH_SLACK:
        what = (
            f"the replicas to copy have {approximate_size(now)}, more than {GROWTH} times the "
            f"{approximate_size(then)} of the plan"
        )
        moved.append(Finding("plan-stale", what, "plan again"))
    if moved:
        raise StalePlanError(moved)


def begin_relocations(relocations: Relocations, moves: PlannedMoves, reading: MovesReading) -> None:
    """Note which replicas are in their new log directories, and check the others at the start.

    Once any has begun, the plan is: what differs by then is skipped.
    Errors: StalePlanError with everything that differs.
    """
    for each in relocations:
        each.was_done = each.state is RowState.DONE
    waiting = relocations.list_in(RowState.NOT_BEGUN)
    brokers = {each.broker for each in waiting}
    found = list(judge_directory_rates(reading, moves, brokers))
    if not relocations.list_in(RowState.UNDER_WAY, RowState.DONE):
        for each in relocations.list_in(RowState.ELSEWHERE, RowState.GONE, RowState.REFUSED):
            what = f"{each.place[0]} {each.name}: {each.text}"
            found.append(Finding("plan-stale", what, "plan again"))
        directories = moves.directories
        then = sum(copy.size_bytes for copy in directories.copies) if directories else 0
        now = sum(each.size for each in waiting)
        if now > GROWTH * then and now > then + GROWTH_SLACK:
            what = (
                f"the replicas to copy have {approximate_size(now)}, more than {GROWTH} times the "
                f"{approximate_size(then)} of the plan"
            )
            found.append(Finding("plan-stale", what, "plan again"))
    if found:
        raise StalePlanError(found)


def _refuse_left_rate(reading: MovesReading, moves: PlannedMoves) -> Iterator[Finding]:
    """Refuse a rate of moves that no run of this plan has set; a pause may stand.

    This run holds the lock of moves, so the run that has set it was killed.
    """
    default = reading.default_rate
    if default is None or not default.is_of_moves:
        return
    if default.bytes_per_s not in (0, moves.policy.rate_bytes_per_s):
        amount = name_rate(default.bytes_per_s)
        yield Finding(
            "moves-rate-taken",
            f"the cluster has a default throttle rate of {amount}, which `moves rate` has set, or "
            "a run of another plan that was killed",
            f"remove it: reconciler moves settle --cluster {reading.cluster}",
        )


def _forecast_size(row: Row, moves: PlannedMoves) -> int:
    """Return the bytes of a partition in the forecast, -1 if they are not known."""
    topic, partition = row.place
    sizes = moves.forecast.sizes.get(topic, ()) if moves.forecast else ()
    return sizes[partition] if partition < len(sizes) else -1


def find_overriding(
    reading: MovesReading, moves: PlannedMoves, brokers: Collection[int], most: int | None
) -> Iterator[Finding]:
    """Name the rates of single brokers that make the rate of the plan untrue: more than `most`."""
    least = least_rate(moves)
    for rate in reading.rates:
        if rate.broker not in brokers or rate.source is RateSource.CLUSTER_DEFAULT:
            continue
        amount = name_rate(rate.bytes_per_s)
        what = f"broker {rate.broker} has its own {rate.side} throttle rate of {amount}"
        command = f"reconciler moves unthrottle --broker {rate.broker} --cluster {reading.cluster}"
        if rate.source is RateSource.STATIC:
            way_out = f"remove {rate.side.rate_key} from server.properties, and restart the broker"
            yield Finding("moves-broker-rate", f"{what}, in server.properties", way_out)
        elif most is not None and rate.bytes_per_s > most:
            more = f"more than the {most} B/s of the plan, which it overrides"
            yield Finding("moves-broker-rate", f"{what}, {more}", f"remove it: {command}")
        elif rate.bytes_per_s < least:
            less = f"less than the {least} B/s that the moves need to end"
            yield Finding("moves-broker-rate", f"{what}, {less}", f"remove it: {command}")
