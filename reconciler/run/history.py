"""Finished runs: what their records hold, the choice of some, and the way back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from reconciler.model.outcomes import OutcomeKind
from reconciler.model.plan import is_chosen
from reconciler.model.steps import Verb
from reconciler.run.ending import Ended

APPLY = "apply"
_UNCHANGED = {OutcomeKind.FAILED, OutcomeKind.NOT_ATTEMPTED, OutcomeKind.REFUSED}


@dataclass(frozen=True, slots=True)
class Run:
    """One run that changed a cluster, or was to. `verb` is apply, or the verb of an intervention.

    `at` is when it ended; without a last line in its journal, this and `ended` are None: it was
    killed, or is still running. `steps` counts what was planned. `topics` has the outcome of each
    topic and `texts` what is missing, which only journals know; `topics_left_out` counts those that
    the record omits. `moves` are the counts of a run of moves. Rates are those of `moves rate`.
    """

    verb: str
    started: datetime
    at: datetime | None
    duration_s: float | None
    user: str
    host: str
    pid: int
    run_url: str | None
    reconciler: str
    cluster: str
    cluster_id: str | None
    fingerprint: str | None
    commit: str | None
    steps: Mapping[str, int]
    refused: int
    ended: Ended | None
    error: str | None
    topics: Mapping[str, OutcomeKind]
    topics_left_out: int
    moves: Mapping[str, Any] | None = None
    rate_before: int | None = None
    rate_after: int | None = None
    texts: Mapping[str, str] = field(default_factory=dict)

    @property
    def changed(self) -> bool:
        """Return whether it may have changed the cluster."""
        if self.verb != APPLY or self.ended is None:
            return True
        return bool(self.topics_left_out or set(self.topics.values()) - _UNCHANGED)


@dataclass(frozen=True, slots=True)
class CommitNote:
    """What the local repository knows of a commit: its subject, its request, and if it merges."""

    subject: str
    request: str | None
    merges: bool


@dataclass(frozen=True, slots=True)
class KeptRun:
    """A run, and what is kept of it elsewhere: its commit here, and the file of its plan."""

    run: Run
    commit: CommitNote | None = None
    plan_file: str | None = None

    @property
    def ways_back(self) -> tuple[str, ...]:
        """Say how to go back, and what that does not bring back."""
        return tuple(_list_ways_back(self.run, self.commit))


@dataclass(frozen=True, slots=True)
class History:
    """The runs of a source, the latest first. `unread` counts records of other programs."""

    source: str
    runs: tuple[KeptRun, ...]
    total: int
    unread: int = 0


def choose_runs(
    runs: Iterable[Run],
    *,
    topics: str = "*",
    since: datetime | None = None,
    plan: str | None = None,
    cluster: str | None = None,
) -> list[Run]:
    """Return the runs that are asked for, the latest first, each with the chosen topics only.

    In: globs of topics, separated by commas; the first digits of a fingerprint. A run whose record
    omits topics is kept, since nobody knows whether it changed one of them.
    """
    found = []
    for run in runs:
        if cluster is not None and run.cluster != cluster:
            continue
        if plan is not None and not (run.fingerprint or "").startswith(plan):
            continue
        if since is not None and (run.at or run.started) < since:
            continue
        if topics != "*":
            chosen = {name: kind for name, kind in run.topics.items() if is_chosen(name, topics)}
            if not (chosen or run.topics_left_out):
                continue
            texts = {name: text for name, text in run.texts.items() if name in chosen}
            found.append(replace(run, topics=chosen, texts=texts))
        else:
            found.append(run)
    return sorted(found, key=lambda run: (run.started, run.pid), reverse=True)


_LOST: Mapping[str, str] = {
    Verb.CREATE: "created topics stay: a topic without a spec is unmanaged. To delete one, write "
    "state: absent",
    Verb.EXPAND: "partitions stay: Kafka cannot remove them, and the plan refuses fewer. Keys have "
    "moved to other partitions",
    Verb.CONFIGURE: "values of configs come back. Records that a shorter retention or compaction "
    "has removed do not",
    Verb.DELETE: "deleted records and the offsets of groups do not come back: a revert creates the "
    "topic again, and it is empty",
    Verb.REORDER: "replicas stay where they are: plan --moves plans other rows from the spec",
    Verb.MOVE: "replicas stay where they are: plan --moves plans other rows from the spec",
    Verb.RELOCATE: "replicas stay in their log directories: rebalance --disks evens these again",
    Verb.ELECT: "elections need no way back: leaders change with every failover",
    "cordon": "brokers stay cordoned: kafka-configs --delete-config cordoned.log.dirs ends that",
}
"""What a revert does with each kind of step; the keys are those of `steps`."""


def _list_ways_back(run: Run, commit: CommitNote | None) -> Iterator[str]:
    if run.verb != APPLY:
        return
    if not run.changed:
        yield "nothing: this run changed nothing"
        return
    if run.commit is None:
        yield "the record names no commit: write the specs as they were, and plan"
    else:
        merge = "-m 1 " if commit is not None and commit.merges else ""
        yield (
            f"git revert {merge}{run.commit}, as a request: its plan shows what would change, and "
            "which risks to acknowledge"
        )
    for verb, text in _LOST.items():
        if run.steps.get(verb):
            yield text
