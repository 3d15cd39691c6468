"""What the terminal can show: colours where they are wanted, messages on stderr.

Colours follow NO_COLOR, FORCE_COLOR and whether a person is looking (no-color.org).
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def wants_colour(stream: TextIO) -> bool:
    """Tell whether `stream` should carry colours."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def paint(colour: str, text: str) -> str:
    """Paint what goes to stdout, where colours are wanted."""
    return click.style(text, fg=colour) if wants_colour(sys.stdout) else text


def screen_width() -> int:
    """Return the width of the terminal in characters, or 120 where nobody is looking."""
    return shutil.get_terminal_size((120, 24)).columns


def fold_to_screen(text: str) -> str:
    """Break the lines that a terminal would cut inside a word; a file gets them whole."""
    if not sys.stdout.isatty():
        return text
    return "\n".join(fold(line, screen_width()) for line in text.split("\n"))


def fold(line: str, width: int) -> str:
    """Break a line at blanks. The rest stands under the last column of the left half or so."""
    plain = click.unstyle(line)
    if len(plain) <= width:
        return line
    starts = [match.end() for match in re.finditer(r"  +(?=\S)", plain)]
    hang = max((start for start in starts if start <= width * 3 // 5), default=2)
    folded, used = "", 0
    for blanks, word in re.findall(r"( *)([^ ]+)", line):
        room = len(blanks) + len(click.unstyle(word))
        if used and used + room > width:
            folded, used = f"{folded}\n{' ' * hang}{word}", hang + len(click.unstyle(word))
        else:
            folded, used = folded + blanks + word, used + room
    return folded


@contextmanager
def working(what: str) -> Iterator[Callable[[str], None]]:
    """Say what is going on while it lasts, where a person is looking.

    Yields what to say it anew with.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return

    def say(what: str) -> None:
        sys.stderr.write(f"\r\x1b[K{_shorten(what)} …")
        sys.stderr.flush()

    say(what)
    try:
        yield say
    finally:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


def show_cursor() -> None:
    """Show the cursor: a bar that was interrupted while it started has hidden it for good."""
    if sys.stderr.isatty():
        sys.stderr.write("\x1b[?25h")
        sys.stderr.flush()


def _shorten(text: str) -> str:
    """Keep a line that is to be wiped out again from wrapping."""
    return text[: max(screen_width() - 4, 1)]


def print_error(message: str) -> None:
    """Say what stopped the run, on stderr, its first word in red where colours are wanted."""
    label = click.style("error:", fg="red", bold=True) if wants_colour(sys.stderr) else "error:"
    click.echo(f"{label} {message}", err=True, color=wants_colour(sys.stderr))


def print_note(message: str) -> None:
    """Say something beside the output, on stderr."""
    click.echo(message, err=True, color=wants_colour(sys.stderr))
