"""The judge: does what a run says agree with the cluster, and do its four records agree?"""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from campaign.child import SCALED_RECORDS
from campaign.faults import Kind
from campaign.records import EXITS

if TYPE_CHECKING:
    from campaign.records import Told
    from campaign.truth import Reading, Topic
    from campaign.world import Wish

TRACES = re.compile(r"Traceback \(most recent|Exception ignored|Fatal Python error|%[0-7]\|")
DONE = ("done", "already done")
UNSETTLING = {
    Kind.BROKER_FROZEN,
    Kind.BROKER_KILLED,
    Kind.UNREACHABLE,
}
"""Faults after which a broker may be missing: a plan that rests on it is stale, and rightly so."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of apply: what it was to do, what was before and after it, and what it told.

    `kind` is the fault that struck meanwhile, None for a run on a healthy cluster. `sent`: how many
    requests that change something reached the network. `planned`: the rows of a saved plan.
    `twice`: it was interrupted a second time.
    """

    told: Told
    before: Reading
    after: Reading
    wishes: Mapping[str, Wish]
    kind: Kind | None
    sent: int
    scaled: bool
    planned: Mapping[str, tuple[tuple[int, ...], ...]] = field(default_factory=dict)
    refusing: bool = False
    twice: bool = False
    hung: bool = False


@dataclass(slots=True)
class Verdict:
    """What is wrong with a run; and how many topics it called unknown, by what they were."""

    violations: list[str] = field(default_factory=list)
    unknown: dict[str, int] = field(default_factory=dict)


def judge(run: Run) -> Verdict:
    """Compare everything with everything."""
    verdict = Verdict()
    states = {name: _compare(run, name) for name in sorted({*run.before, *run.after, *run.wishes})}
    verdict.violations += [f"{name}: {state}" for name, state in states.items() if ":" in state]
    verdict.violations += _judge_process(run)
    claims = _read_claims(run, verdict)
    for name, state in states.items():
        if name not in run.wishes and state != "none":
            verdict.violations.append(f"{name}: is in no spec, and changed ({state})")
        elif claims is not None:
            _judge_claim(run, name, claims.get(name), state, verdict)
    if run.kind is None and not run.refusing and run.told.ended not in ("done", "nothing to do"):
        ended = run.told.ended
        verdict.violations.append(f"the command, repeated on a healthy cluster, ended: {ended}")
    return verdict


def _compare(run: Run, name: str) -> str:
    """Say how far a topic came: none, partial, full; or, after a colon, what must never be."""
    before, after = run.before.get(name), run.after.get(name)
    wish = run.wishes.get(name)
    if before is not None and after is None:
        return "full" if wish and wish.absent and not wish.refused else "lost: it is gone"
    if after is None:
        return "full" if wish and wish.absent else "none"
    if before is not None:
        if before.id != after.id:
            return f"lost: it is another topic, {after.id} and not {before.id}"
        if after.rows[: len(before.rows)] != before.rows:
            return f"moved: rows {before.rows} → {after.rows}"
    if before == after and (wish is None or wish.absent or wish.refused):
        return "none"
    if wish is None or wish.absent or wish.refused:
        return f"foreign: {before} → {after}"
    return _compare_with_wish(run, before, after, wish)


def _compare_with_wish(run: Run, before: Topic | None, after: Topic, wish: Wish) -> str:
    first = len(before.rows) if before else 0
    configs = [dict(wish.config)] + ([dict(before.config)] if before else [])
    if dict(after.config) not in configs:
        return f"foreign: config {dict(after.config)} is none of {configs}"
    new = after.rows[first:]
    if bad := [row for row in new if not len(set(row)) == len(row) == wish.factor]:
        return f"foreign: rows {bad} have not {wish.factor} replicas"
    grown = len(after.rows) - first
    limit = SCALED_RECORDS if run.scaled else 5_000
    if not grown >= 0 or len(after.rows) > wish.partitions:
        return f"foreign: {len(after.rows)} partitions, from {first} to {wish.partitions}"
    planned = run.planned.get(wish.name, after.rows)
    if after.rows != planned[: len(after.rows)]:
        return f"foreign: rows {after.rows} are not those of the plan, {planned}"
    whole = len(after.rows) == wish.partitions
    if not whole and grown % limit:
        return f"foreign: {len(after.rows)} partitions is no boundary of a request"
    if whole and dict(after.config) == dict(wish.config):
        return "full"
    return "none" if before == after else "partial"


def _judge_process(run: Run) -> list[str]:
    told, found = run.told, []
    if run.hung:
        found.append("it did not end though everything was healed")
    traces = [TRACES.search(text) for text in (told.out, told.err)]
    found += [f"it printed {trace[0]!r}" for trace in traces if trace]
    if told.torn:
        found.append("a line of the journal is torn")
    if told.code is not None and told.code < 0 and not _is_ours(run):
        found.append(f"it was ended by {signal.Signals(-told.code).name}, which nobody sent")
    return found


def _is_ours(run: Run) -> bool:
    """Say whether the campaign ended the process: kill -9 does.

    An interrupt ends apply with a code of its own; a second one, where nothing is sent yet and
    Python is shutting down, has to be allowed to end it.
    """
    if run.told.code == -signal.SIGKILL:
        return run.kind is Kind.KILL
    return run.told.code == -signal.SIGINT and run.twice and not run.sent


def _read_claims(run: Run, verdict: Verdict) -> Mapping[str, str] | None:
    """Return what the run claims of each topic; None where it could not claim anything.

    The records have to agree with each other first.
    """
    told, complain = run.told, verdict.violations.append
    if told.code is None or told.code < 0:
        records = [*told.audit, *([told.end] if told.end else [])]
        return records[0]["topics"] if records else None
    if told.ended is None:
        _judge_unbegun(run, verdict)
        return {}
    if told.ended not in EXITS:
        complain(f"it ended in a way that is not documented: {told.last_line!r}")
    elif EXITS[told.ended] != told.code:
        complain(f"it ended {told.ended!r} with exit code {told.code}")
    if told.code == 0 and "error:" in told.err:
        complain("exit code 0, and an error on stderr")
    if told.end is None:
        complain(f"it ended {told.ended!r}, and the journal has no last line")
    else:
        _judge_journal(run, told.end, verdict)
    _judge_audit(run, verdict)
    _judge_ending(run, verdict)
    return told.outcomes


def _judge_unbegun(run: Run, verdict: Verdict) -> None:
    """Judge a run that ended before it had a plan to begin."""
    told, complain = run.told, verdict.violations.append
    if told.code not in (1, 64, 130) or (told.code != 130 and "error:" not in told.err):
        complain(f"no last line, and exit code {told.code}")
    if told.journal or told.audit or run.sent:
        complain("no last line, though it began")


def _judge_journal(run: Run, end: Mapping[str, object], verdict: Verdict) -> None:
    told = run.told
    if end["ended"] != told.ended:
        verdict.violations.append(f"report {told.ended!r}, journal {end['ended']!r}")
    for what, found in (("lines", told.written), ("last line", end["topics"])):
        if found != told.outcomes:
            verdict.violations.append(
                f"outcomes by the journal's {what} {found}, by the report {told.outcomes}"
            )


def _judge_audit(run: Run, verdict: Verdict) -> None:
    told, complain = run.told, verdict.violations.append
    lost = "[audit-lost]" in told.err
    if len(told.audit) > 1:
        complain(f"{len(told.audit)} audit records of one run")
    if not told.audit:
        if (told.outcomes or run.sent) and not lost:
            complain("no audit record, and no word of its loss")
        return
    if told.end is None or lost:
        return
    record, end = told.audit[0], told.end
    own = {"at", "type", "duration_s"}
    differing = {key for key in {*record, *end} - own if record.get(key) != end.get(key)}
    if differing:
        complain(f"audit record and journal differ in {sorted(differing)}")


def _judge_ending(run: Run, verdict: Verdict) -> None:
    """Judge how the run ended by the outcomes of its topics, and by what struck it."""
    told, complain = run.told, verdict.violations.append
    kinds = set(told.outcomes.values())
    good = {
        "done": kinds <= set(DONE) and kinds,
        "failed": kinds - set(DONE) and "unknown" not in kinds,
        "unknown": "unknown" in kinds,
        "nothing to do": not kinds,
        "stale": not kinds and (run.kind in UNSETTLING),
        "refused": not kinds and (run.refusing or _lacks_brokers(run)),
        "interrupted": run.kind in (Kind.TERMINATE, Kind.INTERRUPT),
        "locked": False,
        "not approved": False,
        "usage error": False,
    }
    if not good.get(str(told.ended), True):
        complain(f"it ended {told.ended!r} with outcomes {told.outcomes}, after {run.kind}")


def _lacks_brokers(run: Run) -> bool:
    """Tell whether the run planned while a broker was away, and its topics need that one."""
    return run.kind in UNSETTLING and "[rf-le-brokers]" in run.told.err


def _judge_claim(run: Run, name: str, claim: str | None, state: str, verdict: Verdict) -> None:
    was_full = name in run.wishes and _was_full(run, name)
    changed = state == "partial" or (state == "full" and not was_full)
    match claim:
        case None:
            true = not changed
        case "done":
            true = state == "full"
        case "already done":
            true = state == "full" and was_full
        case "half done":
            true = state == "partial"
        case "unknown":
            verdict.unknown[state] = verdict.unknown.get(state, 0) + 1
            true = True
        case _:  # failed, not attempted, refused: nothing is done
            true = not changed
    if not true:
        what = f"{name}: claimed {claim!r}" if claim else f"{name}: nobody claimed anything of it"
        before = "as wished before, " if was_full else ""
        verdict.violations.append(f"{what}; it was {before}and its change is {state!r}")


def _was_full(run: Run, name: str) -> bool:
    """Say whether there was nothing to do for a topic before the run."""
    wish, before = run.wishes[name], run.before.get(name)
    if wish.absent:
        return before is None
    return (
        before is not None
        and len(before.rows) == wish.partitions
        and dict(before.config) == dict(wish.config)
    )
