"""The progress of a run: a bar for people, and JSON lines for machines."""

from __future__ import annotations

import json
import sys
import time
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from reconciler.cli.terminal import fold_to_screen, print_note, show_cursor
from reconciler.errors import UsageError
from reconciler.files import open_to_append
from reconciler.units import approximate_duration, approximate_size, count

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from reconciler.api.records import RunRecord
    from reconciler.model.outcomes import Outcome
    from reconciler.run.ending import Ending
    from reconciler.run.events import MovesNoted, MovesWatched, StepAnswered, StepsWait


EVERY_S = 60.0
"""The time between two lines about the progress of moves."""
WAIT_EVERY_S = 30.0
"""The time between two lines about waits for a quota, or to keep to rates."""


def describe_progress(watched: MovesWatched) -> str:
    """Return one line: partitions, bytes, rate and time left of a run of moves."""
    parts = [
        f"{watched.done} done, {watched.in_flight} in flight, {watched.waiting} waiting",
        f"{approximate_size(watched.bytes_done)} of {approximate_size(watched.bytes_to_do)}",
    ]
    if watched.bytes_per_s is not None:
        parts.append(f"{approximate_size(watched.bytes_per_s)}/s")
    if watched.seconds_left is not None:
        parts.append(f"{approximate_duration(watched.seconds_left)} left")
    if watched.reason:
        parts.append(watched.reason)
    return " · ".join(parts)


class Journal:
    """Observes a run: moves a bar on a terminal, and writes FILE if one is given.

    The first line of a run says what it is asked to do, and the last line its result; only a killed
    run has no last line. A file that cannot be opened is a UsageError, before anything is done.
    After a write error the journal stops with a note, and the run goes on.
    """

    def __init__(self, file: Path | None, record: RunRecord) -> None:
        self._path = file
        self._record = record
        self._ended = False
        self._exits = ExitStack()
        self._file: BinaryIO | None = None
        self._bars: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._moves = False
        self._shown = False
        self._watched_s: float | None = None
        self._wait_s: float | None = None

    def __enter__(self) -> Self:
        if self._path is not None:
            try:
                file = open_to_append(self._path)  # lines are complete even after kill -9
            except OSError as error:
                what = f"cannot write the journal {self._path}: {error.strerror}"
                raise UsageError(what) from error
            self._file = self._exits.enter_context(file)
            self._write(self._record.begin())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        from reconciler.run.ending import end_run

        if not self._ended:  # an unexpected error: without it, the file would look like a kill
            self.conclude(end_run(error=error))
        self._exits.close()

    def show_progress(self) -> None:
        """Show the progress of the run from now on, if the output is a terminal.

        Call it after the approval: bars hide the cursor, and are drawn over the question.
        """
        self._shown = True
        if not sys.stderr.isatty():
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        columns = (TextColumn("{task.description:<22}"), BarColumn(), MofNCompleteColumn())
        bars = Progress(*columns, console=Console(stderr=True), transient=True)
        # An interrupt while the bars start leaves the cursor hidden: rich does not clean up then.
        self._exits.callback(show_cursor)
        self._bars = self._exits.enter_context(bars)

    def observe(self, event: StepAnswered | StepsWait | MovesNoted | MovesWatched) -> None:
        """Write one step's answer, and move the bar of its phase; or say what moves do."""
        from reconciler.run.events import MovesNoted, MovesWatched, StepsWait

        if isinstance(event, MovesNoted):
            self._note("moves", event)
            self._moves = True
            place = f"{event.topic} partition {event.partition}: " if event.topic else ""
            self._say(f"{event.kind}: {place}{event.text}")
        elif isinstance(event, StepsWait):
            self._tell_wait(event)
        elif isinstance(event, MovesWatched):
            self._watch(event)
        else:
            self._note("step", event)
            if not self._moves:
                self._move_bar(event)

    def _move_bar(self, answered: StepAnswered) -> None:
        if self._bars is None:
            return
        if answered.phase not in self._tasks:
            from reconciler.apply.kinds import PHASES

            title = PHASES[answered.phase]
            self._tasks[answered.phase] = self._bars.add_task(title, total=answered.total)
        task = self._tasks[answered.phase]
        # The first round answers every step. Steps that are sent again must not count twice.
        if not self._bars.tasks[task].finished:
            self._bars.advance(task)

    def _say(self, text: str) -> None:
        """Print what happened, above the bar if there is one."""
        if self._bars is not None:
            folded = fold_to_screen(text, sys.stderr)
            self._bars.console.print(folded, markup=False, highlight=False)
        elif self._shown:
            print_note(text)

    def _tell_wait(self, wait: StepsWait) -> None:
        """Print and write the first wait of steps, and one each half minute."""
        now_s = time.monotonic()
        if self._wait_s is not None and now_s - self._wait_s < WAIT_EVERY_S:
            return
        self._wait_s = now_s
        self._note("rates" if wait.by_rates else "quota", wait)
        left = f"{count(wait.left, 'step')} left"
        waiting = f"waiting {approximate_duration(max(1, wait.seconds))}"
        if wait.by_rates:
            self._say(f"keeping to the rates of the cluster: {left}, {waiting}")
        else:
            what = "the account exceeded controller_mutation_rate"
            self._say(f"{what}: {left}, {waiting} as the brokers ask")

    def _watch(self, watched: MovesWatched) -> None:
        """Move the bar of the partitions; write and print a line each minute."""
        now_s = time.monotonic()
        is_due = self._watched_s is None or now_s - self._watched_s >= EVERY_S
        if is_due:
            self._watched_s = now_s
            self._note("progress", watched)
        if self._bars is None:
            if is_due and self._shown:
                print_note(describe_progress(watched))
            return
        if "move" not in self._tasks:
            self._tasks["move"] = self._bars.add_task("moving replicas", total=1)
        total = watched.done + watched.in_flight + watched.waiting + watched.ended_otherwise
        self._bars.update(
            self._tasks["move"],
            completed=watched.done,
            total=total,
            description=describe_progress(watched),
        )

    def conclude(self, ending: Ending) -> None:
        """Write every outcome, and the result of the run."""
        self._ended = True
        for outcome in ending.outcomes:
            self._note("outcome", outcome)
        self._write(self._record.end(ending))

    def _note(
        self, kind: str, noted: StepAnswered | StepsWait | Outcome | MovesNoted | MovesWatched
    ) -> None:
        if self._file is not None:
            self._write({"at": datetime.now(UTC).isoformat(), "type": kind, **asdict(noted)})

    def _write(self, line: dict[str, Any]) -> None:
        if self._file is None:
            return
        try:
            self._file.write((json.dumps(line, ensure_ascii=False) + "\n").encode())
        except OSError as error:
            self._file = None
            print_note(f"the journal {self._path} ends here: {error.strerror}")
