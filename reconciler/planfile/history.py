"""Runs as JSON: read from the lines of journals and audit topics, and printed as a history."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from reconciler.model.outcomes import Outcome, OutcomeKind
from reconciler.planfile.documents import OMIT_EMPTY, Derived, Document, Held, document_of
from reconciler.run.ending import Ended
from reconciler.run.history import APPLY, CommitNote, History, KeptRun, Run

FORMAT_VERSION = "1.0"
"""Major: a field changed its meaning or is gone. Minor: added fields, which a reader may skip."""


class JournalError(ValueError):
    """A line of a journal cannot be read; has its number and the reason."""

    def __init__(self, line: int, reason: str) -> None:
        self.line = line
        super().__init__(f"line {line}: {reason}")


class _Begun(BaseModel):
    """The first line of a run: who, where, and what was asked for."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    at: AwareDatetime
    type: Literal["apply", "intervene"]
    user: str
    host: str
    pid: int
    run_url: str | None = None
    reconciler: str
    cluster: str
    cluster_id: str | None = None
    verb: str = APPLY
    fingerprint: str | None = None
    commit: str | None = None
    steps: dict[str, int] = Field(default_factory=dict)
    refused: int = 0
    rate_before: int | None = None
    rate_after: int | None = None

    @property
    def key(self) -> tuple[object, ...]:
        """What no other run has: runs of several processes may share a journal."""
        return self.at, self.host, self.pid, self.cluster

    def read(self, **end: Any) -> Run:
        """Return the run, with what is known of its end."""
        asked = self.model_dump(exclude={"at", "type", "started", *end})
        unknown = {"at": None, "duration_s": None, "ended": None, "error": None}
        nothing = {"topics": {}, "topics_left_out": 0}
        return Run(**{**asked, **unknown, **nothing, "started": self.at, **end})


class _Over(_Begun):
    """The last line of a run: everything in the first one, and how it ended."""

    type: Literal["applied", "intervened"]  # type: ignore[assignment]
    started: AwareDatetime
    duration_s: float | None = None
    ended: Ended
    error: str | None = None
    topics: dict[str, OutcomeKind] = Field(default_factory=dict)
    topics_left_out: int = 0
    moves: dict[str, Any] | None = None

    @property
    def key(self) -> tuple[object, ...]:
        return self.started, self.host, self.pid, self.cluster

    def read(self, **more: Any) -> Run:
        """Return the run."""
        return Run(**{**self.model_dump(exclude={"type"}), **more})

    def conclude(self, told: Iterable[Outcome]) -> JournalRun:
        """Return the run with its outcomes. Those of another run may stand before its last line."""
        outcomes = tuple(
            each
            for each in told
            if self.topics.get(each.topic, each.kind) == each.kind
            and (each.topic in self.topics or self.topics_left_out)
        )
        texts = {one.topic: one.text for one in outcomes if one.text and one.topic in self.topics}
        return JournalRun(self.read(texts=texts), outcomes)


class _TopicOutcome(BaseModel):
    """The outcome of a topic, in a journal."""

    topic: str
    kind: OutcomeKind
    text: str
    rule: str = ""


class JournalRun(NamedTuple):
    """A run of a journal, with the outcomes of all its topics: a record leaves some out."""

    run: Run
    outcomes: tuple[Outcome, ...] = ()


def read_record(text: str | bytes) -> Run | None:
    """Read a record of an audit topic; None if it is none that this version knows."""
    try:
        return _Over.model_validate_json(text).read()
    except ValidationError:
        return None


def read_journal(lines: Iterable[str]) -> list[JournalRun]:
    """Read the runs of a journal, in the order of their last lines; those without one come last.

    Errors: JournalError.
    """
    runs: list[JournalRun] = []
    open_runs: dict[tuple[object, ...], _Begun] = {}
    told: list[Outcome] = []
    number = 0
    try:
        for number, line in enumerate(lines, 1):  # noqa: B007 - for the error
            kind = json.loads(line)["type"]
            if kind == "outcome":
                told.append(Outcome(**_TopicOutcome.model_validate_json(line).model_dump()))
                continue
            if kind in ("apply", "intervene"):
                begun = _Begun.model_validate_json(line)
                open_runs[begun.key] = begun
            elif kind in ("applied", "intervened"):
                over = _Over.model_validate_json(line)
                open_runs.pop(over.key, None)
                runs.append(over.conclude(told))
            told = []  # an outcome names no run: those right before a last line are of its run
    except ValidationError as error:
        first = error.errors()[0]
        raise JournalError(number, f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise JournalError(number, "it is not a JSON object with a type") from error
    return [*runs, *(JournalRun(begun.read()) for begun in open_runs.values())]


@document_of(CommitNote)
class CommitDocument(Document):
    """What the local repository knows of the commit of a run."""


@document_of(Run)
class RunDocument(Document):
    """A run, as its record has it. `ended` and `at` are null if it was killed, or is still
    running."""

    made_of: ClassVar[type | None] = Run

    at: AwareDatetime | None
    started: AwareDatetime
    texts: Annotated[dict[str, str], OMIT_EMPTY]


class KeptRunDocument(Document):
    """A run, with what is kept of it elsewhere, and how to go back."""

    made_of: ClassVar[type | None] = KeptRun

    run: RunDocument
    commit: CommitDocument | None
    plan_file: str | None
    ways_back: tuple[str, ...]


class HistoryDocument(Document):
    """The runs of an audit topic or a journal, the latest first.

    `total` counts the runs that were asked for; `runs` has the latest of them. `unread` counts
    records that are not of reconciler, or of a later version.
    """

    made_of: ClassVar[type | None] = History

    format_version: Annotated[str, Derived(lambda _: FORMAT_VERSION)]
    source: str
    total: int
    unread: int
    runs: Annotated[tuple[KeptRunDocument, ...], Held("runs")]
