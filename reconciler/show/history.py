"""Finished runs as text: a few lines for each, or one in full with the way back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from reconciler.errors import escape_unprintable
from reconciler.model.cluster import SHORT
from reconciler.model.outcomes import OutcomeKind
from reconciler.run.ending import Ended
from reconciler.run.history import APPLY, History, KeptRun, Run
from reconciler.show.text import paint_outcome
from reconciler.styling import Paint, fold_lines, set_columns
from reconciler.units import approximate_duration, approximate_size, count

NAMED = 5
"""How many topics of an outcome the short form names."""
DIGITS = 12
"""Digits of a fingerprint, as the holder of a lock is named with."""
_GOOD = {Ended.DONE, Ended.NOTHING_TO_DO}
_BAD = {Ended.FAILED, Ended.ERROR, Ended.LOCK_LOST, Ended.AUDIT_LOST}


def render_history(history: History, paint: Paint, *, full: bool, width: int | None = None) -> str:
    """Render runs, the latest first. Returns: lines that end in a newline."""
    shown = len(history.runs)
    lines = [f"{history.source} · {_say_number(shown, history.total)} · times in UTC"]
    if history.unread:
        unread = count(history.unread, "record")
        lines.append(f"{unread} left out: not of reconciler, or of a later version")
    heads = set_columns(_list_cells(kept.run, paint) for kept in history.runs)
    for head, kept in zip(heads, history.runs, strict=True):
        below = _list_facts(kept, paint) if full else _list_lines(kept, paint)
        lines += ["", head, *(f"  {line}".rstrip() for line in below)]
    return fold_lines("\n".join(lines), width) + "\n"


def _say_number(shown: int, total: int) -> str:
    if shown == total:
        return "no run" if total == 0 else count(total, "run")
    return f"the latest {shown:,} of {count(total, 'run')}"


def _list_cells(run: Run, paint: Paint) -> Sequence[str]:
    verb = run.verb if run.verb == APPLY else f"moves {run.verb}"
    return (
        _spell_time(run.at or run.started),
        _clean(run.cluster),
        _clean(verb),
        _paint_end(run.ended, paint),
        _clean(run.user),
    )


def _paint_end(ended: Ended | None, paint: Paint) -> str:
    if ended is None:
        return paint("yellow", "killed, or still running")
    colour = "green" if ended in _GOOD else "red" if ended in _BAD else "yellow"
    return paint(colour, ended)


def _list_lines(kept: KeptRun, paint: Paint) -> Iterator[str]:
    """Say in a few lines what a run was asked to do, and what became of its topics."""
    run = kept.run
    plan = f"plan {_clean(run.fingerprint[:DIGITS])}" if run.fingerprint else ""
    commit = _describe_commit(kept, SHORT)
    if asked := ", ".join(filter(None, [plan, commit and f"commit {commit}"])):
        yield asked
    yield from _describe_work(run)
    for kind, names in _group(run).items():
        more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
        yield f"{paint_outcome(kind, paint)}: {', '.join(names[:NAMED])}{more}"
    yield from _describe_left_out(run)


def _list_facts(kept: KeptRun, paint: Paint) -> Iterator[str]:
    """Say everything that is known of a run, and how to go back."""
    run = kept.run
    took = f", took {approximate_duration(run.duration_s)}" if run.duration_s is not None else ""
    where = f"{run.user}@{run.host} (process {run.pid})"
    facts: list[tuple[str, str]] = [
        ("started", f"{_spell_time(run.started)}{took}"),
        ("by", _clean(where)),
        ("job", _clean(run.run_url or "")),
        ("reconciler", _clean(run.reconciler)),
        ("commit", _describe_commit(kept, None)),
        ("plan", _describe_plan(kept)),
        *(("work", each) for each in _describe_work(run)),
        ("error", _clean(" ".join((run.error or "").split("\n")))),
    ]
    for kind, names in _group(run).items():
        for name in names:
            text = f": {_clean(run.texts[name])}" if name in run.texts else ""
            facts.append(("topics", f"{paint_outcome(kind, paint)} {name}{text}"))
    facts += [("topics", each) for each in _describe_left_out(run)]
    facts += [("to go back", _clean(way)) for way in kept.ways_back]
    named: set[str] = set()
    rows = []
    for name, text in facts:
        if text:
            rows.append(("" if name in named else paint("dim", name), text))
            named.add(name)
    yield from set_columns(rows)


def _describe_commit(kept: KeptRun, digits: int | None) -> str:
    if kept.run.commit is None:
        return ""
    note, parts = kept.commit, [kept.run.commit[:digits]]
    if note is not None:
        is_said = note.request is None or note.request in note.subject
        parts += [note.subject] if is_said else [str(note.request), note.subject]
    return _clean(" · ".join(filter(None, parts)))


def _describe_plan(kept: KeptRun) -> str:
    run = kept.run
    if run.fingerprint is None:
        return ""
    where = ""
    if kept.plan_file:
        where = f" · kept in {kept.plan_file}"
    elif run.run_url:
        where = " · the artifacts of the job have it"
    return _clean(f"{run.fingerprint}{where}")


def _describe_work(run: Run) -> Iterator[str]:
    if run.steps or run.refused:
        parts = [f"{number:,} to {verb}" for verb, number in run.steps.items()]
        refused = [f"{run.refused:,} refused"] if run.refused else []
        yield _clean(", ".join([*parts, *refused]))
    if run.verb != APPLY and run.rate_before != run.rate_after:
        yield f"rate {_spell_rate(run.rate_before)} → {_spell_rate(run.rate_after)} per broker"
    if run.moves:
        names = ("done", "in_flight", "waiting", "ended_otherwise")
        numbers = ((name, run.moves.get(name)) for name in names)
        said = [f"{n} {name.replace('_', ' ')}" for name, n in numbers if isinstance(n, int)]
        if said:
            yield f"partitions: {', '.join(said)}"


def _describe_left_out(run: Run) -> Iterator[str]:
    if run.topics_left_out:
        yield f"{count(run.topics_left_out, 'more topic')} that the record does not name"


def _group(run: Run) -> dict[OutcomeKind, list[str]]:
    """Group topics by outcome: those that are not as planned first."""
    groups: dict[OutcomeKind, list[str]] = defaultdict(list)
    for name, kind in sorted(run.topics.items(), key=lambda one: (one[1].is_done, one)):
        groups[kind].append(_clean(name))
    return groups


def _spell_time(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def _spell_rate(rate: int | None) -> str:
    return "unlimited" if rate is None else f"{approximate_size(rate)}/s"


def _clean(text: str) -> str:
    return escape_unprintable(text)
