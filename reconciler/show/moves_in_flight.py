"""Moves in flight as text: a report for a terminal, and one line for a log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import groupby

from reconciler.model.cluster import RateSource, Replicas
from reconciler.model.identity import say_identity
from reconciler.model.moves import UNLIMITED, MovesReading
from reconciler.model.throttles import say_rate
from reconciler.moves.progress import Copy, Move, MovesReport
from reconciler.moves.throttles import name_removals
from reconciler.styling import Paint, fold_lines, set_columns
from reconciler.units import approximate_duration, approximate_size, count

_UNKNOWN = "?"


def render_moves(
    report: MovesReport, paint: Paint, *, width: int | None = None, most: int | None = None
) -> str:
    """Render what is in flight, the slowest move and the throttles.

    Lines are folded to `width`, but not commands, which people copy; these lack the cluster.
    `most` bounds how many partitions are listed; then those that are farthest behind are. Returns:
    lines that end in a newline.
    """
    lines = [_head(report.reading), "", *(paint("bold", line) for line in _sum_up(report))]
    if report.moves:
        lines += ["", *_list_moves(report.moves, most)]
        if report.slowest is not None:
            lines += ["", *_say_slowest(report, paint)]
        lines += ["", *_list_brokers(report)]
    if report.directory_moves:
        lines += ["", *_list_directory_moves(report, most)]
    if report.reading.rates or report.reading.lists or report.reading.directory_rates:
        lines += ["", *_list_throttles(report)]
    if report.reading.notes:
        lines += ["", *(f"{note.severity}: {note}" for note in report.reading.notes)]
    lines = [fold_lines(line, width) for line in lines]
    if report.leftovers:
        lines += [
            "",
            paint(
                "yellow",
                "Throttles that nothing in flight uses are left. To remove them (add --cluster):",
            ),
        ]
        lines += [f"  {command}" for command in name_removals(report.leftovers)]
    if report.reading.own_directory_rate and not report.directory_moves:
        left = "A throttle rate between log directories is left. To remove it (add --cluster):"
        lines += ["", paint("yellow", left), "  reconciler moves settle"]
    return "\n".join(lines) + "\n"


def summarise_moves(report: MovesReport) -> str:
    """Return a report as one line that begins with its time, for a log."""
    parts = [_say_time(report.reading), *_sum_up(report)]
    if report.slowest is not None and report.moves:
        reassignment, copy = report.slowest
        slowest = f"slowest: {reassignment.topic} partition {reassignment.partition}"
        parts.append(f"{slowest} to broker {copy.broker}, {_say_slow(copy)}")
    if report.leftovers:
        names = ", ".join(_name_entity(each.topic, each.broker) for each in report.leftovers)
        parts.append(f"throttles left over: {names}")
    return " · ".join(parts)


def _head(reading: MovesReading) -> str:
    dead = sum(not broker.alive for broker in reading.brokers)
    brokers = count(len(reading.brokers), "broker") + (f", {dead} not alive" if dead else "")
    return " · ".join(
        part
        for part in (
            reading.cluster,
            say_identity(reading.cluster_id),
            brokers,
            _say_time(reading),
        )
        if part
    )


def _say_time(reading: MovesReading) -> str:
    """Return the time of a reading, in UTC."""
    seen = datetime.fromtimestamp(reading.seen_at_ms // 1000, UTC)
    return f"{seen:%Y-%m-%dT%H:%M:%SZ}"


def _sum_up(report: MovesReport) -> Iterator[str]:
    """Yield what is in flight, then how far it is and when it ends."""
    if report.directory_moves:
        replicas = count(len(report.directory_moves), "replica")
        done = approximate_size(sum(each.bytes_done for each in report.directory_moves))
        to_do = approximate_size(sum(each.bytes_to_do for each in report.directory_moves))
        yield f"{replicas} in flight between log directories · {done} of {to_do} done"
    if not report.moves:
        if not report.directory_moves:
            yield "No partition is being moved."
        return
    topics = len({move.reassignment.topic for move in report.moves})
    in_flight = f"{count(len(report.moves), 'partition')} of {count(topics, 'topic')} in flight"
    yield f"{in_flight} · {count(len(report.copies), 'replica')} to copy"
    if report.percent is None:
        return
    size = f"{approximate_size(report.bytes_done)} of {approximate_size(report.bytes_to_do)}"
    known = all(copy.bytes_done is not None for copy in report.copies)
    parts = [f"{size} {'done' if known else 'known to be done'} ({int(report.percent)} %)"]
    if report.bytes_per_s is not None:
        left = report.seconds_left
        parts.append(f"{approximate_size(report.bytes_per_s)}/s")
        parts.append("time left unknown" if left is None else f"{approximate_duration(left)} left")
    yield " · ".join(parts)


def _list_moves(moves: Iterable[Move], most: int | None) -> Iterator[str]:
    """Yield a table with a row for each partition, under the name of its topic."""
    every = list(moves)
    shown = every
    if most is not None and len(every) > most:
        shown = sorted(every, key=_urgency)[:most]
        shown.sort(key=lambda move: (move.reassignment.topic, move.reassignment.partition))
    heads = ["  partition", "replicas", "adds", "removes", "copied", ""]
    lines = set_columns([heads, *map(_set_move, shown)], ">" + "<" * 4 + ">")
    yield lines[0]
    rows = zip(shown, lines[1:], strict=True)
    for topic, group in groupby(rows, key=lambda row: row[0].reassignment.topic):
        yield topic
        yield from (line for _, line in group)
    if len(shown) < len(every):
        yield f"… {count(len(every) - len(shown), 'more partition')}, farther ahead"


def _list_directory_moves(report: MovesReport, most: int | None) -> Iterator[str]:
    """Yield a table of the replicas that move between log directories of their brokers."""
    every = report.directory_moves
    shown = sorted(every, key=lambda each: each.percent or 0.0)[:most]
    shown.sort(key=lambda each: (each.broker, each.topic, each.partition))
    yield "between log directories"
    yield from set_columns(
        [
            f"  {each.topic} partition {each.partition} on broker {each.broker}",
            f"{each.source} → {each.target}",
            f"{approximate_size(each.bytes_done)} of {approximate_size(each.bytes_to_do)}",
            "" if each.percent is None else f"{int(each.percent)} %",
            "" if each.bytes_per_s is None else f"{approximate_size(each.bytes_per_s)}/s",
        ]
        for each in shown
    )
    if len(shown) < len(every):
        yield f"… {count(len(every) - len(shown), 'more replica')}, farther ahead"


def _urgency(move: Move) -> tuple[bool, float]:
    """Order moves: those with a cause first, then those with the least share done."""
    known = [copy.percent for copy in move.copies if copy.percent is not None]
    return not any(copy.cause for copy in move.copies), min(known, default=0.0)


def _set_move(move: Move) -> list[str]:
    """Return the cells of a partition; several copies are added up."""
    each = move.reassignment
    copied, percent = "nothing to copy", ""
    if move.copies:
        done = [copy.bytes_done for copy in move.copies]
        to_do = [copy.bytes_to_do for copy in move.copies]
        copied = f"{_add(done)} of {_add(to_do)}"
        if None not in done and None not in to_do:
            whole = sum(filter(None, to_do))
            percent = f"{int(100 * sum(filter(None, done)) / whole) if whole else 100} %"
    return [
        f"  {each.partition}",
        f"{_row(each.current)} → {_row(each.target)}",
        _row(each.adding) or "-",
        _row(each.removing) or "-",
        copied,
        percent,
    ]


def _row(replicas: Replicas) -> str:
    return ",".join(map(str, replicas))


def _add(sizes: list[int | None]) -> str:
    """Add sizes; what is not known is shown as such."""
    known = [size for size in sizes if size is not None]
    if not known:
        return _UNKNOWN
    return approximate_size(sum(known)) + (f" + {_UNKNOWN}" if len(known) < len(sizes) else "")


def _say_slowest(report: MovesReport, paint: Paint) -> Iterator[str]:
    if report.slowest is None:
        return
    each, copy = report.slowest
    name = f"{each.topic} partition {each.partition} to broker {copy.broker}"
    yield f"slowest  {name}, {_say_percent(copy)}"
    if copy.why:
        yield f"         {paint('red', copy.why)}"
    elif not copy.throttled:
        yield "         no throttle limits it"


def _say_percent(copy: Copy) -> str:
    return "bytes unknown" if copy.percent is None else f"{int(copy.percent)} %"


def _say_slow(copy: Copy) -> str:
    return f"{_say_percent(copy)}: {copy.why}" if copy.why else _say_percent(copy)


def _list_brokers(report: MovesReport) -> list[str]:
    """Return a table of the brokers that send or take copies; rates need two readings."""
    measured = any(
        rate is not None
        for each in report.brokers
        for rate in (each.in_bytes_per_s, each.out_bytes_per_s)
    )
    heads = ["broker", "still to take", *(["in", "out", "time left"] if measured else [])]
    rows = [heads]
    for each in report.brokers:
        cells = [str(each.broker.id), approximate_size(each.bytes_left) if each.bytes_left else "-"]
        if measured:
            left = each.seconds_left
            until = _UNKNOWN if left is None else approximate_duration(left)
            cells += [_say_rate(each.in_bytes_per_s), _say_rate(each.out_bytes_per_s)]
            cells.append(until if each.bytes_left else "-")
        state = "" if each.broker.alive else "not alive"
        rows.append([*cells, state or ("cordoned" if each.broker.cordoned else "")])
    rows[0] = [*heads, ""]
    return set_columns(rows, ">" * len(heads) + "<")


def _say_rate(rate: float | None) -> str:
    return "-" if rate is None else f"{approximate_size(rate)}/s"


def _list_throttles(report: MovesReport) -> Iterator[str]:
    """Yield the throttles: the cluster default, the rates of brokers that differ, and the lists."""
    rows = []
    default = report.reading.default_rate
    for rate in report.reading.rates:
        if rate.broker is None or rate.source is not RateSource.CLUSTER_DEFAULT:
            source = ", from server.properties" if rate.source is RateSource.STATIC else ""
            if rate.broker is None and default is not None and not default.is_of_moves:
                source = ", which reconciler did not set"
            shown = say_rate(rate.bytes_per_s)
            if rate.bytes_per_s < UNLIMITED:
                shown += f" ({approximate_size(rate.bytes_per_s)}/s)"
            shown += source
            rows.append((_name_entity(None, rate.broker), f"{rate.side} rate", shown))
    for limit in report.reading.directory_rates:
        if limit.broker is None or limit.source is not RateSource.CLUSTER_DEFAULT:
            whose = "" if limit.is_of_moves else ", which reconciler did not set"
            shown = f"{say_rate(limit.bytes_per_s)} ({approximate_size(limit.bytes_per_s)}/s)"
            rows.append((_name_entity(None, limit.broker), "log directories rate", shown + whose))
    rows += [(each.topic, f"{each.side} replicas", each.replicas) for each in report.reading.lists]
    yield "throttles"
    names = [name for name, _, _ in rows]
    above = ["", *names]
    yield from set_columns(
        ["  " if name == before else f"  {name}", what, shown]
        for (name, what, shown), before in zip(rows, above, strict=False)
    )


def _name_entity(topic: str | None, broker: int | None) -> str:
    if topic is not None:
        return topic
    return "cluster default" if broker is None else f"broker {broker}"
