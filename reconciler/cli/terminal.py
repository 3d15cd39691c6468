"""What the terminal can show: colours where they are wanted, messages on stderr.

Colours follow NO_COLOR, FORCE_COLOR and whether a person is looking (no-color.org).
"""

from __future__ import annotations

import os
import sys
from typing import TextIO

import click


def wants_colour(stream: TextIO) -> bool:
    """Tell whether `stream` should carry colours."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def print_error(message: str) -> None:
    """Say what stopped the run, on stderr, its first word in red where colours are wanted."""
    label = click.style("error:", fg="red", bold=True) if wants_colour(sys.stderr) else "error:"
    click.echo(f"{label} {message}", err=True, color=wants_colour(sys.stderr))


def print_note(message: str) -> None:
    """Say something beside the output, on stderr."""
    click.echo(message, err=True, color=wants_colour(sys.stderr))
