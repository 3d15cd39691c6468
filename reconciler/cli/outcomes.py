"""How an apply ended, printed for people: a line per topic, and a last line."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from reconciler.cli.terminal import fold_to_screen, paint, print_error

if TYPE_CHECKING:
    from reconciler.apply import Ending
    from reconciler.model import Outcome


def print_ending(ending: Ending, label: str = "") -> None:
    """Print what became of every topic, and how the run ended; an error goes to stderr.

    Whoever read stdout may have gone: that does not change how the run ended.
    """
    try:
        for outcome in ending.outcomes:
            click.echo(fold_to_screen(_line(outcome)), color=True)
        click.echo(f"\n{ending.last_line}")
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if ending.error is not None:
        print_error(f"{label}{ending.error}")


def _line(outcome: Outcome) -> str:
    tones = {"done": "green", "already done": "green", "half done": "yellow", "failed": "red"}
    tone = tones.get(str(outcome.kind), "yellow")
    said = f"  {outcome.text}" if outcome.text else ""
    return f"{paint(tone, f'{outcome.kind:<13}')} {outcome.topic}{said}"
