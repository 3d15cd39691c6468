"""The request that asks for what a cluster needs: opened, kept up to date, and closed again.

One branch of each cluster holds all that is remembered between nights: its newest commit changes
one line of clusters.yaml, and its message says since when, and for which plan. So nothing is stored
elsewhere, and a branch without a request is how a first night waits for a second one. What people
push to it, or close, is theirs and stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from hashlib import sha256

from reconciler.codehost.comments import link_run, settle_write
from reconciler.codehost.host import Branch, FileChange, Run
from reconciler.errors import CodeHostError
from reconciler.moves.needs import Need, NeedKind
from reconciler.show.markdown.marks import code, prose

ASKED_DAYS, LEAST_DAYS = 14, 7
"""How long the line asks, from the day of the request; with less left, it gets another date."""

_MARK = re.compile(
    r"^Asked-by: reconciler since=([0-9-]{10}) until=([0-9-]{10}) asks=([0-9a-f]{64}) "
    r"plan=([0-9a-f]{64}) base=([0-9a-f]{64})$",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class _Mark:
    """The last line of a message: since when what is asked, until when, for which plan and file.

    `since` and `until` are dates, the others digests.
    """

    since: str
    until: str
    asks: str
    plan: str
    base: str

    def __str__(self) -> str:
        return (
            f"Asked-by: reconciler since={self.since} until={self.until} asks={self.asks} "
            f"plan={self.plan} base={self.base}"
        )


Amend = Callable[[str, object], str]
"""Returns clusters.yaml with a key of the cluster set to a value. Errors: UsageError."""


@dataclass(frozen=True, slots=True)
class ClustersFile:
    """clusters.yaml at the commit of the run: its path in the repository, its text, its owners."""

    path: str
    text: str
    owners: tuple[str, ...]
    amend: Amend


def name_branch(cluster: str) -> str:
    """Return the branch of a cluster."""
    return f"reconciler/rebalance-{cluster}"


def keep_request(run: Run, need: Need, file: ClustersFile) -> Iterator[str]:
    """Open, update or close the request of a cluster. Yields: what was done.

    A broker outside its band is asked about on the second night in a row, all else at once.
    Errors: CodeHostError; UsageError if clusters.yaml cannot be amended.
    """
    name, host = name_branch(need.cluster), run.host
    branch, proposal = host.find_branch(name), host.find_proposal(name)
    mark = _read_mark(branch)
    number = proposal.number if proposal and proposal.is_open else None
    if branch is not None and mark is None:
        yield f"somebody pushed to {name}, so it stays as it is"
        return
    if need.kind is NeedKind.UNKNOWN:
        yield f"nothing is asked of {need.cluster} now: {need.why}"
        return
    if not need.is_asked:
        if number is not None:
            host.withdraw(number, _say_settled(need, run))
            yield f"request {number} closed: {need.why}"
        if branch is not None:
            host.delete_branch(name)
        yield f"{need.cluster}: {need.why}"
        return
    asks = _digest(f"{need.key} {need.brokers} {need.factor}")
    same = mark is not None and mark.asks == asks
    if same and proposal and not (proposal.is_open or proposal.is_merged):
        yield (
            f"request {proposal.number} was closed by somebody; to get another request, delete the "
            f"branch {name}"
        )
        return
    since = mark.since if mark and same else need.today
    until = mark.until if mark and same else ""
    if until < _add_days(need.today, LEAST_DAYS):
        until = _add_days(need.today, ASKED_DAYS)
    # The request may show another plan than that of its night, as sizes grow.
    plan = mark.plan if mark and same and need.shown else need.fingerprint
    wanted = _Mark(since, until, asks, plan, _digest(file.text))
    if mark != wanted:
        # A new commit: hosts dismiss the approvals of the one before, as main is to be set up, and
        # the merge compares the plan that was approved in any case.
        text = file.amend(need.key, _spell_value(need, until))
        message = f"{_write_title(need)}\n\n{wanted}\n"
        change = FileChange(run.commit, file.path, text, message)
        settle_write(partial(_set_branch, run, name, change))
    if number is None and need.kind is NeedKind.BAND and since >= need.today:
        yield f"{need.why} A request opens if this is still so the next night."
        return
    title, body = _write_title(need), _write_body(need, run, file.owners)
    if number is None:
        yield settle_write(lambda: _open(run, name, title, body))
        yield from _ask(run, name, file.owners)
    elif mark != wanted:
        host.update_proposal(number, title, body)
        yield f"request {number} updated"
    else:
        yield f"request {number} is up to date"


def _set_branch(run: Run, name: str, change: FileChange) -> str:
    run.host.set_branch(name, change)
    return name


def _open(run: Run, name: str, title: str, body: str) -> str:
    """Open the request of a branch, unless a lost answer was about that."""
    found = run.host.find_proposal(name)
    if found is not None and found.is_open:
        return f"request {found.number} opened: {title}"
    number = run.host.propose(name, run.branch, title, body)
    return f"request {number} opened: {title}"


def _ask(run: Run, name: str, owners: Iterable[str]) -> Iterator[str]:
    """Ask the owners for a review. Those that the host does not know are mentioned all the same."""
    found, owners = run.host.find_proposal(name), tuple(owners)
    if not owners or found is None:
        return
    try:
        run.host.ask_reviewers(found.number, owners)
    except CodeHostError as error:
        yield f"no review was requested: {error.findings[0].what}"


def _read_mark(branch: Branch | None) -> _Mark | None:
    found = _MARK.search(branch.message) if branch else None
    return _Mark(*found.groups()) if found else None


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _add_days(day: str, days: int) -> str:
    return (date.fromisoformat(day) + timedelta(days)).isoformat()


def _spell_value(need: Need, until: str) -> object:
    """Return the value of the key: a number, or the map of a rebalance."""
    if need.kind is NeedKind.INTERNAL:
        return need.factor
    brokers = {"brokers": list(need.brokers)} if need.brokers else {}
    return {**brokers, "until": date.fromisoformat(until)}


def _write_title(need: Need) -> str:
    if need.kind is NeedKind.INTERNAL:
        return f"Raise the internal topics of {need.cluster} to {need.factor} replicas"
    if need.brokers:
        return f"Rebalance {need.cluster} to brokers {', '.join(map(str, need.brokers))}"
    return f"Rebalance {need.cluster}"


def _write_body(need: Need, run: Run, owners: Iterable[str]) -> str:
    """Write the text of the request: why, what it does, and what happens to it."""
    owned = " ".join(owners)
    return "\n\n".join(
        filter(
            None,
            [
                f"{prose(need.why)} This asks for a rebalance of {code(need.cluster)}."
                if need.kind is not NeedKind.INTERNAL
                else prose(need.why),
                f"**{need.costs}**, says {link_run(run)}. The comment shows the plan, and a merge "
                "makes what was approved.",
                "The branch is rebuilt when the plan changes or the default branch has another "
                "clusters.yaml. An approval of another plan is then void. The request closes by "
                "itself once it is no longer needed. Push to the branch to change what it asks "
                "for: runs then leave it as it is.",
                f"cc {owned}" if owned else "",
            ],
        )
    )


def _say_settled(need: Need, run: Run) -> str:
    return f"This is not needed any more: {prose(need.why)}. Seen by {link_run(run)}."
