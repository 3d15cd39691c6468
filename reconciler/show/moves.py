"""A plan of moves in words: what it copies, how long that takes, and the load of each broker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from reconciler.model.moves import (
    MIN_INSYNC,
    DirectoryPeak,
    Forecast,
    PlannedDirectories,
    PlannedDrain,
    PlannedMoves,
)
from reconciler.model.plan import Plan, PlannedTopic
from reconciler.model.steps import Verb
from reconciler.show.bands import Moved, say_bands, say_directories, say_reason, sum_up_pairs
from reconciler.show.wording import FieldView, StepView
from reconciler.units import (
    AMOUNTS,
    approximate_duration,
    approximate_size,
    count,
)

Line = tuple[str, str]
"""A label and a text."""


REASONS = 100
"""The most replicas of a balance for which each moved partition has a reason of its own."""


def say_moves(plan: Plan) -> tuple[Line, ...]:
    """Describe what a plan of moves costs and how it is limited; nothing of another plan."""
    return tuple(_say(plan.moves, plan)) if plan.moves else ()


def _say(moves: PlannedMoves, plan: Plan) -> Iterator[Line]:
    forecast = moves.forecast
    racks = {broker.id: broker.rack for broker in plan.brokers}
    yield from ((f"drain {each.broker}", _say_drain(each, racks)) for each in moves.drains)
    if moves.balance:
        yield from say_bands(moves.balance, plan.brokers)
    if moves.directories:
        yield from say_directories(moves.directories)
    yield "moves", " · ".join(_say_copies(moves, plan))
    if moves.balance and moves.replicas > REASONS:
        yield from sum_up_pairs(moves.balance, _list_moved(plan, forecast), plan.brokers)
    if moves.copies_data:
        yield "time", " · ".join(_say_time(moves))
        yield "limits", ", ".join(_say_limits(moves))
    if forecast and forecast.copied_bytes and forecast.traffic:
        yield "brokers", " · ".join(_say_brokers(forecast))
    if forecast and (peak := max(forecast.peaks, key=_share, default=None)):
        yield "disks", _say_peak(peak, moves)
    if moves.min_insync:
        topics = count(len(moves.min_insync), "topic")
        yield MIN_INSYNC, f"lowered for {topics} while replicas are copied, then restored"
    if moves.leader_changes:
        leaders = count(moves.leader_changes, "partition")
        get = "gets" if moves.leader_changes == 1 else "get"
        fewest = ""
        if moves.balance and moves.balance.least_leaders is not None:
            least = moves.balance.least_leaders
            fewest = ", the fewest possible" if moves.leader_changes <= least else ""
        yield "elections", f"at the end, {leaders} {get} another preferred leader{fewest}"


def _say_drain(drain: PlannedDrain, racks: Mapping[int, str | None]) -> str:
    """Report what leaves a broker, and what stays on it."""
    rack = racks.get(drain.broker)
    said = [f"rack {rack}"] if rack else []
    if drain.replicas:
        leave = "leaves" if drain.replicas == 1 else "leave"
        topics = count(drain.topics, "topic")
        said.append(f"{count(drain.replicas, 'replica')} of {topics} {leave}")
    if drain.unnamed:
        said.append(f"including {count(len(drain.unnamed), 'unmanaged topic')}")
    if drain.stays:
        said.append(f"replicas of {count(len(drain.stays), 'topic')} stay")
    elif not drain.replicas:
        said.append("no replica is on it")
    if drain.cordon:
        said.append("cordoned first")
    return " · ".join(said)


def _say_copies(moves: PlannedMoves, plan: Plan) -> Iterator[str]:
    if moves.directories and moves.directories.copies:
        yield from _say_directory_copies(moves.directories)
        return
    if not moves.replicas:
        yield "no replica is copied"
        return
    partitions = sum(
        bool(set(new) - set(old)) for topic in plan.topics for old, new in _pair_rows(topic)
    )
    are = "is" if moves.replicas == 1 else "are"
    copied = f"{count(moves.replicas, 'replica')} of {count(partitions, 'partition')} {are} copied"
    forecast = moves.forecast
    if forecast is None or (forecast.unknown and not forecast.copied_bytes):
        yield f"{copied}, of unknown size"
    elif forecast.unknown:
        size = approximate_size(forecast.copied_bytes)
        unknown = count(forecast.unknown, "partition")
        yield f"{copied}, {size} without {unknown} of unknown size"
    else:
        yield f"{copied}, {approximate_size(forecast.copied_bytes)}"
    if moves.balance:
        if moves.balance.least_bytes is not None and forecast and not forecast.unknown:
            yield from _say_bound(forecast.copied_bytes, moves.balance.least_bytes)
        return
    least = moves.least_replicas
    yield (
        "the fewest possible (proven)" if moves.replicas <= least else f"at least {least:,} needed"
    )


def _say_directory_copies(directories: PlannedDirectories) -> Iterator[str]:
    copies = directories.copies
    are = "is" if len(copies) == 1 else "are"
    brokers = count(len({copy.broker for copy in copies}), "broker")
    copied = sum(copy.size_bytes for copy in copies)
    what = f"{count(len(copies), 'replica')} {are} copied between log directories of {brokers}"
    yield f"{what}, {approximate_size(copied)}"
    yield from _say_bound(copied, directories.least_bytes)


def _say_bound(copied: int, least: int) -> Iterator[str]:
    """Say how many bytes any plan with these bands copies, as far as that is proven."""
    if copied <= least:
        yield "the fewest bytes possible (proven)"
    elif least:
        more = -(-1000 * (copied - least) // least) / 10
        yield f"at most {more:g} % above the fewest bytes possible"


def _say_time(moves: PlannedMoves) -> Iterator[str]:
    forecast, rate = moves.forecast, moves.policy.rate_bytes_per_s
    if forecast is not None and forecast.default_rate is not None:
        rate = forecast.default_rate
    if rate is None:
        yield "unknown, since the rate is unlimited"
        return
    say_rate = AMOUNTS["rate"]
    per_broker = f"at {say_rate(rate)} per broker"
    least = forecast.least_rate if forecast else None
    if forecast is None or forecast.unknown:
        yield f"unknown {per_broker}, since sizes are unknown"
    elif forecast.seconds is None:
        yield f"never ends {per_broker}: writes use all of it"
    else:
        yield f"about {approximate_duration(forecast.seconds)} {per_broker}"
    if least:
        yield f"needs at least {say_rate(least)} to end"
    elif least is None:
        yield "write rates are unknown"


def _say_limits(moves: PlannedMoves) -> Iterator[str]:
    policy = moves.policy
    yield f"at most {count(policy.at_once_cluster, 'replica')} at once"
    yield f"{policy.at_once_broker:,} per broker"
    if policy.keep_free_percent:
        yield f"{policy.keep_free_percent} % of each log directory stay free"
    if policy.max_bytes is not None:
        yield f"at most {approximate_size(policy.max_bytes)} in all"
    if policy.unthrottled:
        yield "no throttles, since the brokers have none"


def _say_brokers(forecast: Forecast) -> Iterator[str]:
    """Name the broker that receives the most, and the one that sends the most."""
    received = max(forecast.traffic, key=lambda traffic: traffic.in_bytes)
    sent = max(forecast.traffic, key=lambda traffic: traffic.out_bytes)
    yield f"{received.broker} receives the most, {approximate_size(received.in_bytes)}"
    yield f"{sent.broker} sends the most, {approximate_size(sent.out_bytes)}"


def _say_peak(peak: DirectoryPeak, moves: PlannedMoves) -> str:
    now, highest = (_percent(used, peak.total_bytes) for used in (peak.used_bytes, peak.peak_bytes))
    limit = 100 - moves.policy.keep_free_percent
    return f"fullest is {peak.path} of broker {peak.broker}: {now} → {highest} % (limit {limit} %)"


def _share(peak: DirectoryPeak) -> float:
    return peak.peak_bytes / peak.total_bytes if peak.total_bytes else 0.0


def _percent(used: int, total: int) -> int:
    # Rounded up: 85.1 of at most 85 % is not 85.
    return -(-100 * used // total) if total else 0


def _pair_rows(topic: PlannedTopic) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    if topic.before is not None and topic.after is not None:
        yield from zip(topic.before.assignment, topic.after.assignment, strict=False)


def detail_step(step: StepView, topic: PlannedTopic, moves: PlannedMoves | None) -> StepView:
    """Add to a move of replicas what it copies, why, and the config that is lowered meanwhile."""
    if moves is None or step.verb is not Verb.MOVE:
        return step
    details = [*_detail_copies(topic, moves.forecast), *step.details]
    if topic.name in moves.min_insync:
        config = topic.before.config if topic.before else {}
        lowered = FieldView(MIN_INSYNC, config.get(MIN_INSYNC), str(moves.min_insync[topic.name]))
        restored = replace(lowered, before=lowered.after, after=lowered.before)
        details.insert(0, ("before the copies", f"{MIN_INSYNC} {lowered.words}"))
        details.append(("after the copies", f"{MIN_INSYNC} {restored.words}"))
    step = replace(step, details=tuple(details))
    if moves.balance is None or moves.replicas > REASONS:
        return step
    reasons = [say_reason(moves.balance, old, new) for old, new in _pair_rows(topic)]
    rows = (
        replace(row, why=reasons[int(row.name.removeprefix("partition "))]) for row in step.rows
    )
    return replace(step, rows=tuple(rows))


def _list_moved(plan: Plan, forecast: Forecast | None) -> Iterator[Moved]:
    for topic in plan.topics:
        sizes = forecast.sizes.get(topic.name, ()) if forecast else ()
        for number, (old, new) in enumerate(_pair_rows(topic)):
            yield old, new, sizes[number] if number < len(sizes) else -1


def _detail_copies(topic: PlannedTopic, forecast: Forecast | None) -> Iterator[Line]:
    added = [len(set(new) - set(old)) for old, new in _pair_rows(topic)]
    if not any(added):
        return
    sizes = forecast.sizes.get(topic.name, ()) if forecast else ()
    known = [size for size, copies in zip(sizes, added, strict=False) if copies]
    replicas = count(sum(added), "replica")
    if not known or min(known) < 0:
        yield "copies", f"{replicas}, of unknown size"
    else:
        copied = sum(size * copies for size, copies in zip(sizes, added, strict=False))
        yield "copies", f"{replicas}, {approximate_size(copied)}"
