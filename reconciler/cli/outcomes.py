"""What an apply came to, printed for people: a line a topic, and the counts."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import click

from reconciler.cli.terminal import paint

if TYPE_CHECKING:
    from reconciler.apply import Applied
    from reconciler.model import Outcome


def print_outcomes(applied: Applied) -> None:
    """Print what became of every topic."""
    for outcome in applied.outcomes:
        click.echo(_line(outcome), color=True)
    counts = Counter(str(outcome.kind) for outcome in applied.outcomes)
    said = ", ".join(f"{number} {kind}" for kind, number in sorted(counts.items()))
    click.echo(f"\n{'Interrupted. ' if applied.interrupted else ''}Applied: {said}")


def _line(outcome: Outcome) -> str:
    tones = {"done": "green", "already done": "green", "half done": "yellow", "failed": "red"}
    tone = tones.get(str(outcome.kind), "yellow")
    said = f"  {outcome.text}" if outcome.text else ""
    return f"{paint(tone, f'{outcome.kind:<13}')} {outcome.topic}{said}"
