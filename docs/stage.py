"""What both demonstrations play on: a directory, a screen, clusters, and an end in good order.

A demonstration owns its clusters: its brokers are child processes, which the kernel ends with it.
A signal ends it between two commands. Ctrl-C reaches the command that runs as well, which ends in
its own way: with its report, and with the cursor back. One more Ctrl-C is for that command, too.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType

from reconciler.cli.sandbox import StartProgress
from reconciler.cli.terminal import fold_to_screen, print_error, show_cursor, wants_colour
from reconciler.errors import ReconcilerError
from reconciler.model.cluster import Broker
from reconciler.sandbox.cluster import Cluster, start_cluster
from reconciler.sandbox.paths import DATA, open_run
from reconciler.styling import strip_colours

ROOT = Path(__file__).resolve().parents[1]
COMMAND = Path(sys.executable).with_name("reconciler")
PR_SET_PDEATHSIG = 1
PRCTL = ctypes.CDLL(None).prctl if sys.platform == "linux" else None
INTERRUPTED = 130


class Stage:
    """The directory, the environment and the screen of one demonstration."""

    def __init__(self, directory: Path, exits: ExitStack) -> None:
        self.directory = directory
        self._exits = exits
        self._waits = False
        self._signal: int | None = None
        shutil.copytree(ROOT / "topics", directory / "topics")

    @property
    def is_interrupted(self) -> bool:
        """Whether a signal has asked for the end."""
        return self._signal is not None

    def say(self, text: str) -> None:
        """Tell the audience what comes next."""
        bold = ("\x1b[1m", "\x1b[0m") if wants_colour(sys.stdout) else ("", "")
        print(f"\n{bold[0]}# {text}{bold[1]}", flush=True)

    def start(self, shape: Sequence[Broker]) -> Cluster:
        """Start a cluster that ends with the demonstration, however that ends."""
        with StartProgress() as progress:
            return self._exits.enter_context(start_cluster(shape=shape, progress=progress))

    def run(self, *words: str, expect: int = 0, only: str | None = None) -> None:
        """Run a command as a person would, and wait for its end whatever comes meanwhile.

        Of the topics that a plan moves, `only` names the one to show.
        Errors: SystemExit if it ends otherwise than expected; KeyboardInterrupt after a signal.
        """
        print(f"$ reconciler {' '.join(words)}", flush=True)
        self._waits = True
        colour = {"FORCE_COLOR": "1"} if wants_colour(sys.stdout) else {}
        piped = {**os.environ, **colour, "PYTHONUNBUFFERED": "1"}
        command = subprocess.Popen(
            [COMMAND, *words],
            cwd=self.directory,
            preexec_fn=_end_with_parent,  # noqa: PLW1509 - one system call, and no lock
            stdout=subprocess.PIPE if only else None,
            text=True,
            env=piped if only else None,
        )
        with command:
            if command.stdout:
                _show_only(only, command.stdout)
        self._waits = False
        if self.is_interrupted:
            raise KeyboardInterrupt
        if command.returncode != expect:
            ended = f"exited {command.returncode}, not {expect}"
            raise SystemExit(f"reconciler {' '.join(words[:2])} {ended}")

    def interrupt(self, number: int, _frame: FrameType | None) -> None:
        """Take the first signal: at once, or once the command that runs has ended."""
        if number == signal.SIGHUP:  # the terminal is gone, and writing to it would be an error
            nowhere = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(nowhere, stream)
        is_first, self._signal = not self.is_interrupted, number
        if is_first and not self._waits:
            raise KeyboardInterrupt


@contextmanager
def open_stage() -> Iterator[Stage]:
    """Open a stage; in the end its clusters and its directory go, whatever has happened."""
    with open_run() as run, ExitStack() as exits:
        stage = Stage(run / DATA, exits)
        endings = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        for ending in endings:
            signal.signal(ending, stage.interrupt)
        try:
            yield stage
        except BaseException as error:
            if stage.is_interrupted:  # also where a client made another error of the interrupt
                raise SystemExit(INTERRUPTED) from None
            if not isinstance(error, ReconcilerError):
                raise
            print_error(str(error))
            raise SystemExit(error.exit_code) from None
        finally:
            for ending in endings:
                signal.signal(ending, signal.SIG_IGN)
            with suppress(OSError):  # the terminal may have gone a moment ago
                show_cursor()
                stage.say("Cleaning up: the brokers and their data go")


def _show_only(topic: str | None, lines: Iterable[str]) -> None:
    """Print what a command says, and of the topics that move this one; … stands for the others."""
    hides = False
    for line in lines:
        plain = strip_colours(line)
        if plain.startswith("~ "):
            hid, hides = hides, topic not in plain.split()
            if hides and not hid:
                print("…\n", flush=True)
        elif plain.strip() and not plain.startswith(" "):
            hides = False
        if not hides:
            print(fold_to_screen(line), end="", flush=True)


def _end_with_parent() -> None:
    """Interrupt a command whose demonstration was killed (Linux only); runs in the command."""
    if PRCTL:
        PRCTL(PR_SET_PDEATHSIG, signal.SIGINT)
