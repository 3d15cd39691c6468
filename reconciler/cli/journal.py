"""The progress of an apply: a bar for people, JSON lines for machines."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from reconciler.cli.terminal import print_note, show_cursor
from reconciler.errors import UsageError
from reconciler.files import open_to_append

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from rich.progress import Progress, TaskID

    from reconciler.api import ApplyRecord
    from reconciler.apply import Ending, StepAnswered


class Journal:
    """Observes an apply: moves a bar if a person is looking, and writes FILE if asked.

    The first line of a run describes its plan, and the last one its result; only a killed run has
    no last line. A file that cannot be opened is a UsageError, before anything is done; after a
    write error the journal stops with a note, since the cluster matters more.
    """

    def __init__(self, file: Path | None, record: ApplyRecord) -> None:
        self._path = file
        self._record = record
        self._ended = False
        self._exits = ExitStack()
        self._file: BinaryIO | None = None
        self._bars: Progress | None = None
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        if self._path is not None:
            self._file = self._exits.enter_context(_open(self._path))
            self._write(self._record.begin())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        from reconciler.apply import end_run

        if not self._ended:  # by an error that no one expects
            self.conclude(end_run(error=error))
        self._exits.close()

    def show_progress(self) -> None:
        """Show the progress of the run from now on, if the output is a terminal.

        Not before the plan is approved: bars hide the cursor, and are drawn over the question.
        """
        if sys.stderr.isatty():
            self._exits.callback(show_cursor)  # an interrupt may cut the start of the bars short
            self._bars = self._exits.enter_context(_make_bars())

    def observe(self, answered: StepAnswered) -> None:
        """Take note of one step's answer."""
        self._note("step", asdict(answered))
        if self._bars is not None:
            self._advance(self._bars, answered)

    def conclude(self, ending: Ending) -> None:
        """Record every outcome, and the result of the run."""
        self._ended = True
        for outcome in ending.outcomes:
            self._note("outcome", asdict(outcome))
        self._write(self._record.end(ending))

    def _advance(self, bars: Progress, answered: StepAnswered) -> None:
        """Count an answer, unless every step of the phase is: the rest are sent again.

        The first round answers every step; a topic may have several to be asked about.
        """
        if answered.phase not in self._tasks:
            from reconciler.apply import PHASES

            title = PHASES[answered.phase]
            self._tasks[answered.phase] = bars.add_task(title, total=answered.total)
        task = self._tasks[answered.phase]
        if not bars.tasks[task].finished:
            bars.advance(task)

    def _note(self, kind: str, fields: dict[str, Any]) -> None:
        self._write({"at": datetime.now(UTC).isoformat(), "type": kind, **fields})

    def _write(self, line: dict[str, Any]) -> None:
        if self._file is None:
            return
        try:
            self._file.write((json.dumps(line, ensure_ascii=False) + "\n").encode())
        except OSError as error:
            self._file = None
            print_note(f"the journal {self._path} ends here: {error.strerror}")


def _open(path: Path) -> BinaryIO:
    """Open a file for writing by line: lines are complete even if this process is killed."""
    try:
        return open_to_append(path)
    except OSError as error:
        raise UsageError(f"cannot write the journal {path}: {error.strerror}") from error


def _make_bars() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description:<22}"), BarColumn(), MofNCompleteColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)
