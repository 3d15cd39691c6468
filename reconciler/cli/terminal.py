"""What the terminal can show: colours if they are wanted, messages on stderr.

All output goes through here, since a CI's runner reads it: no text of it may be a command.

Colours follow NO_COLOR, FORCE_COLOR and whether a person is looking (no-color.org).
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

import click

from reconciler.errors import escape_commands
from reconciler.rulebook import RULES, spell_page
from reconciler.styling import ERASE_LINE, SHOW_CURSOR, Paint, fold_lines, link

RULES_PAGE = "reference/rules"
_RULE = re.compile(r"(?<=\[)[a-z]+(?:-[a-z]+)+(?=\])")

# What a terminal that shows links sets, by the list that other tools use. One that does not know
# them should leave the codes out, but some print them.
LINKING = ("DOMTERM", "KITTY_WINDOW_ID", "KONSOLE_VERSION", "WEZTERM_PANE", "WT_SESSION")
_LINKING_PROGRAMS = ("Hyper", "WezTerm", "ghostty", "iTerm.app", "vscode", "zed")
_LINKING_TERMS = ("alacritty", "foot", "xterm-ghostty", "xterm-kitty")
_LINKING_VTE = 5000


class GuardedStream:
    """A stream on which no text is a command for the runner of a CI. `inner` takes any text.

    On a terminal that shows links, the id of a rule is one. `unlinked`: another terminal got an id.
    """

    def __init__(self, inner: TextIO) -> None:
        self.inner = inner
        self.unlinked = False

    def write(self, text: str) -> int:
        """Write a text, without what a runner would obey."""
        on_screen = can_redraw(self.inner)
        text = escape_commands(text, keep_controls=on_screen)
        if on_screen:
            linked = _RULE.sub(_link_rule, text)
            if wants_links(self.inner):
                text = linked
            elif linked != text:
                self.unlinked = True
        return self.inner.write(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts in the same way."""
        self.write("".join(lines))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def _link_rule(found: re.Match[str]) -> str:
    return link(found[0], spell_page(RULES_PAGE, found[0])) if found[0] in RULES else found[0]


def guard(stream: TextIO) -> TextIO:
    """Return a stream with its guard."""
    return stream if isinstance(stream, GuardedStream) else cast("TextIO", GuardedStream(stream))


@contextmanager
def guarding_output() -> Iterator[None]:
    """Guard stdout and stderr for a while, whoever writes there: click, rich or a traceback."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = map(guard, before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def print_annotations(text: str) -> None:
    """Print what is meant to be read by a runner: its renderer has escaped all but our commands."""
    stream = sys.stdout.inner if isinstance(sys.stdout, GuardedStream) else sys.stdout
    click.echo(text, file=stream, nl=not text.endswith("\n"))


def wants_colour(stream: TextIO) -> bool:
    """Return whether `stream` should carry colours."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return can_redraw(stream)


def wants_links(stream: TextIO) -> bool:
    """Return whether `stream` is a terminal with colours that shows links.

    FORCE_HYPERLINK decides it, 0 for no, if it is set.
    """
    if not (can_redraw(stream) and wants_colour(stream)):
        return False
    if forced := os.environ.get("FORCE_HYPERLINK"):
        return forced != "0"
    vte = os.environ.get("VTE_VERSION", "")
    return (
        any(name in os.environ for name in LINKING)
        or os.environ.get("TERM_PROGRAM") in _LINKING_PROGRAMS
        or os.environ.get("TERM") in _LINKING_TERMS
        or (vte.isdecimal() and int(vte) >= _LINKING_VTE)
    )


def can_redraw(stream: TextIO) -> bool:
    """Return whether lines of `stream` can be replaced: it is a terminal that moves its cursor."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def choose_paint(stream: TextIO) -> Paint:
    """Return the colours for what goes to `stream`, or none if they are not wanted there."""
    return Paint(wants_colour(stream))


def paint(colour: str, text: str) -> str:
    """Paint what goes to stdout, if colours are wanted."""
    return choose_paint(sys.stdout)(colour, text)


def screen_width() -> int:
    """Return the width of the terminal in characters, or 120 if there is no terminal."""
    return shutil.get_terminal_size((120, 24)).columns


def fold_width(stream: TextIO | None = None) -> int | None:
    """Return the width to fold lines to: the terminal's, or None for a file or a pipe.

    `stream` is stdout if it is not given.
    """
    return screen_width() if (stream or sys.stdout).isatty() else None


def fold_to_screen(text: str, stream: TextIO | None = None) -> str:
    """Fold what is printed to the terminal; a file or a pipe gets each line as one."""
    return fold_lines(text, fold_width(stream))


def ask(question: str) -> str:
    """Ask a question on stderr. Returns: the line that is typed, '' at the end of the input.

    Raises:
        KeyboardInterrupt: Ctrl-C, or another signal that is handled like it.

    """
    import select
    import signal
    import socket
    import termios

    # A key that was pressed before the question must not approve a plan.
    termios.tcflush(sys.stdin, termios.TCIFLUSH)
    # A Ctrl-C right before a plain read would not end it. A signal also writes a byte to the
    # wakeup descriptor, so select() returns whenever the signal arrives.
    woken, waker = socket.socketpair()
    with woken, waker:
        waker.setblocking(False)
        before = signal.set_wakeup_fd(waker.fileno())
        try:
            click.echo(question, nl=False, err=True)
            while sys.stdin not in select.select([sys.stdin, woken], [], [])[0]:
                woken.recv(1)
        finally:
            signal.set_wakeup_fd(before)
    return sys.stdin.readline().strip()


def find_no_terminal() -> str | None:
    """Return why nobody can answer a question, None if somebody can."""
    # The answer must come from a person who has read the question, which is on stderr.
    for name, stream in (("stdin", sys.stdin), ("stderr", sys.stderr)):
        if not (stream and stream.isatty()):  # a stream that is closed is None
            return f"{name} is not a terminal; pass --auto-approve"
    return None


@contextmanager
def working(what: str) -> Iterator[Callable[[str], None]]:
    """Show the progress while it lasts, if the output is a terminal.

    Yields a function that updates the text.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return

    def say(what: str) -> None:
        # A line that wraps would leave its first rows on the screen when it is erased.
        sys.stderr.write(f"{ERASE_LINE}{what[: max(screen_width() - 4, 1)]} …")
        sys.stderr.flush()

    say(what)
    try:
        yield say
    finally:
        sys.stderr.write(ERASE_LINE)
        sys.stderr.flush()


def show_cursor() -> None:
    """Show the cursor, which a bar hides and does not restore if an interrupt cuts its start."""
    if sys.stderr.isatty():
        sys.stderr.write(SHOW_CURSOR)
        sys.stderr.flush()


def give_up_stdout(error: OSError) -> bool:
    """Drop what stdout could not take, if `error` says so. A full disk is told on stderr.

    A stderr that is the same file is dropped, too.

    Returns: whether the reader of stdout is gone, or its disk is full.
    """
    gone = isinstance(error, BrokenPipeError)
    if not gone and error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return False
    # At its end, Python would try again and print a traceback.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    stdout, stderr = sys.stdout.fileno(), sys.stderr.fileno()
    if os.path.sameopenfile(stdout, stderr):  # `2>&1`: stderr cannot be written either
        os.dup2(nowhere, stderr)
    os.dup2(nowhere, stdout)
    if not gone:
        print_error(
            f"the output is incomplete: {error.strerror}; free some space, or write to another disk"
        )
    return True


def print_error(message: str, label: str = "") -> None:
    """Print what stopped the run to stderr. Each line begins with `error:`, red if colours are on.

    `label` is in front of each line, such as the cluster if there are several.
    """
    on_stderr = choose_paint(sys.stderr)
    start = f"{on_stderr('red', on_stderr('bold', 'error:'))} {label}"
    lines = (f"{start}{line}" for line in message.split("\n"))
    click.echo(fold_to_screen("\n".join(lines), sys.stderr), err=True, color=on_stderr.wanted)


def print_note(message: str) -> None:
    """Print a note on stderr, apart from the output."""
    click.echo(fold_to_screen(message, sys.stderr), err=True, color=wants_colour(sys.stderr))


def print_rules_page() -> None:
    """Say where rules are explained, if a terminal has just shown the id of one without a link."""
    shown = [stream for stream in (sys.stdout, sys.stderr) if isinstance(stream, GuardedStream)]
    if can_redraw(sys.stderr) and any(stream.unlinked for stream in shown):
        said = f"What the ids in brackets mean: {spell_page(RULES_PAGE)}"
        print_note(choose_paint(sys.stderr)("dim", said))
