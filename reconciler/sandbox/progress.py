"""How a start tells what it is doing, so that a command line can show it and a test need not."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Hears about a start, from one thread at a time."""

    def enter(self, stage: str) -> None:
        """Hear what begins now, such as "starting 3 brokers"."""
        ...

    def count(self, done: int, total: int) -> None:
        """Hear how far the current stage is. Units: bytes; only downloads count."""
        ...


class Silence:
    """Progress that nobody listens to."""

    def enter(self, stage: str) -> None:
        """Ignore it."""

    def count(self, done: int, total: int) -> None:
        """Ignore it."""
