"""The limits on a plan of moves: bytes, disks, and a rate at which it ends."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

from reconciler.errors import Finding, Location, Severity
from reconciler.model.cluster import ThrottleList, ThrottleSide
from reconciler.model.moves import (
    UNLIMITED,
    DefaultRate,
    DirectoryPeak,
    Forecast,
    MovePolicy,
    PlannedMoves,
)
from reconciler.model.plan import Plan
from reconciler.units import approximate_size, count, format_size

NAMED = 5
"""The number of topics that a message names; it counts the others."""

UNKNOWN_WAY_OUT = "grant Describe on the cluster, so that sizes and disks are visible"


def guard_moves(
    plan: Plan, policy: MovePolicy, where: Callable[[str], Location], *, sized: bool = True
) -> Plan:
    """Refuse an entire plan of moves that passes a limit, or whose cost is not known.

    In: the forecast of `plan.moves`; `where` returns the line of a path such as `moves.rate`;
    `sized` is false where brokers do not offer DescribeLogDirs. A plan that copies nothing passes.
    """
    if plan.moves is None or not plan.moves.copies_data:
        return plan
    forecast = plan.moves.forecast
    grant = f"{UNKNOWN_WAY_OUT}, or " if sized else ""
    refusals = [
        *_refuse_bytes(forecast, policy, where("moves.max_bytes"), grant),
        *_refuse_disks(plan, forecast, policy, where("moves.keep_free"), grant),
        *_refuse_rate(forecast, policy, where("moves.rate")),
    ]
    return replace(plan, refusals=(*plan.refusals, *refusals)) if refusals else plan


def _refuse_bytes(
    forecast: Forecast | None, policy: MovePolicy, where: Location, grant: str
) -> Iterator[Finding]:
    most = policy.max_bytes
    if most is None:
        return
    if forecast is None or forecast.unknown:
        what = f"max_bytes: {format_size(most)} cannot be checked: {_describe_unknown(forecast)}"
        way_out = f"{grant}remove max_bytes"
        yield Finding("moves-too-large", what, way_out, where)
    elif forecast.copied_bytes > most:
        what = (
            f"the plan copies {approximate_size(forecast.copied_bytes)}, and max_bytes allows "
            f"{format_size(most)}"
        )
        way_out = (
            "split the plan into several requests or with --topic, or raise max_bytes in "
            "clusters.yaml if this is intended"
        )
        yield Finding("moves-too-large", what, way_out, where)


def _refuse_disks(
    plan: Plan, forecast: Forecast | None, policy: MovePolicy, where: Location, grant: str
) -> Iterator[Finding]:
    free = policy.keep_free_percent
    peaks = forecast.peaks if forecast is not None else ()
    crossed = [peak for peak in peaks if peak.peak_bytes > peak.used_bytes and _passes(peak, free)]
    if crossed:
        worst = max(crossed, key=lambda peak: (peak.peak_bytes / peak.total_bytes, peak.path))
        more = len(crossed) - 1
        others = f"; so would {more:,} more" if more else ""
        yield Finding(
            "moves-disk",
            f"{worst.path} of broker {worst.broker} would be up to "
            f"{worst.peak_bytes / worst.total_bytes:.0%} full, and keep_free: {free}% allows "
            f"{100 - free}%{others}",
            "move fewer topics at once, in several requests or with --topic, free space on the "
            "broker, or lower keep_free",
            where,
        )
    if not free:
        return  # nothing is to stay free, so nothing has to be known
    blind = _list_receivers(plan) - {peak.broker for peak in peaks}
    if forecast is None or forecast.unknown:
        what = f"keep_free: {free}% cannot be checked: {_describe_unknown(forecast)}"
    elif blind:
        named = " and ".join(map(str, sorted(blind)))
        what = f"keep_free: {free}% cannot be checked: the disks of broker {named} are unknown"
    else:
        return
    way_out = f"{grant}write keep_free: 0%"
    yield Finding("moves-disk", what, way_out, where)


def _refuse_rate(
    forecast: Forecast | None, policy: MovePolicy, where: Location
) -> Iterator[Finding]:
    rate, least = policy.rate_bytes_per_s, forecast.least_rate if forecast is not None else None
    if rate is not None and least is not None and rate < least:
        yield Finding(
            "moves-rate-below-writes",
            f"at rate {format_size(rate)} the moves never end: what is written to the partitions "
            f"meanwhile needs {approximate_size(least)}/s per broker",
            "raise rate in clusters.yaml, or move fewer topics at once, in several requests or "
            "with --topic",
            where,
        )


def refuse_default(
    default: DefaultRate | None, moves: PlannedMoves, cluster: str
) -> Iterator[Finding]:
    """Refuse a default rate that somebody else set, if the moves cannot run under it.

    They can if it limits both sides, neither above the rate of the plan, and lets them end.
    """
    if default is None or default.is_of_moves:
        return
    wanted, least = moves.policy.rate_bytes_per_s, least_rate(moves)
    amount, raised = name_rate(default.bytes_per_s), ""
    if wanted is not None and None in (default.leader, default.follower):
        side = ThrottleSide.FOLLOWER if default.follower is None else ThrottleSide.LEADER
        wrong = f"but none for {side}s"
    elif wanted is not None and default.highest > wanted:
        amount, wrong = name_rate(default.highest), f"more than the {wanted} B/s of the plan"
        rate = "unlimited" if default.highest >= UNLIMITED else format_size(default.highest)
        raised = f"raise moves.rate to {rate} and plan again, or "
    elif default.bytes_per_s < least:
        wrong = f"less than the {least} B/s that the moves need to end"
    else:
        return
    yield Finding(
        "moves-rate-taken",
        f"the cluster has a default throttle rate of {amount}, which reconciler did not set, "
        f"{wrong}",
        f"{raised}remove it: reconciler moves unthrottle --default --cluster {cluster}",
    )


def least_rate(moves: PlannedMoves) -> int:
    """Return the lowest rate at which moves end, as far as it is known: 0 stops every copy."""
    return (moves.forecast.least_rate if moves.forecast else None) or 1


def name_rate(bytes_per_s: int) -> str:
    """Name a throttle rate exactly, and how much that is."""
    amount = "no limit" if bytes_per_s >= UNLIMITED else f"{approximate_size(bytes_per_s)}/s"
    return f"{bytes_per_s} B/s ({amount})"


def judge_lists(lists: Collection[ThrottleList], cluster: str) -> Iterator[Finding]:
    """Refuse lists of throttled replicas that nothing uses: the rate of a run would slow these.

    Named replicas may be those of a run that was killed, or that cleans up right now.
    """
    for of_all in (True, False):
        topics = sorted({each.topic for each in lists if each.is_of_all is of_all})
        if not topics:
            continue
        named = ", ".join(topics[:NAMED])
        more = f" and {len(topics) - NAMED:,} more" if len(topics) > NAMED else ""
        what = f"nothing in flight uses the throttle lists of {named}{more}"
        remove = f"reconciler moves settle --cluster {cluster}"
        if of_all:
            what = f"a throttle list of * is left on {named}{more}"
            options = " ".join(f"--topic {topic}" for topic in topics[:NAMED])
            remove = f"reconciler moves unthrottle {options} --cluster {cluster}"
        what += "; the rate of a run would also slow replicas of these topics that catch up"
        severity = Severity.ERROR if of_all else Severity.WARNING
        yield Finding("moves-throttle-left", what, f"remove it: {remove}", severity=severity)


def _passes(peak: DirectoryPeak, free_percent: int) -> bool:
    return peak.peak_bytes * 100 > peak.total_bytes * (100 - free_percent)


def _list_receivers(plan: Plan) -> set[int]:
    """Return the brokers that get a copy."""
    images = [(topic.before, topic.after) for topic in plan.topics]
    directories = plan.moves.directories if plan.moves else None
    within = {copy.broker for copy in directories.copies} if directories else set()
    return within | {
        broker
        for before, after in images
        if before is not None and after is not None
        for old, new in zip(before.assignment, after.assignment, strict=True)
        for broker in set(new) - set(old)
    }


def _describe_unknown(forecast: Forecast | None) -> str:
    if forecast is None:
        return "no size is known"
    return f"the size of {count(forecast.unknown, 'partition')} is unknown"
