"""What a person sees of the wait for a cluster's lock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.cli.terminal import print_note
from reconciler.errors import escape_unprintable
from reconciler.units import SECOND, format_duration

if TYPE_CHECKING:
    from reconciler.kafka.lock import Waiting

AGAIN_S = 30.0


class WaitingNotes:
    """Says who holds the lock, once for each holder, and every half minute that it is so still."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout = format_duration(round(timeout_s * SECOND))
        self._holder = ""
        self._told_s = 0.0

    def observe(self, waiting: Waiting) -> None:
        """Take note of a moment of waiting."""
        if waiting.holder != self._holder:
            print_note(f"waiting up to {self._timeout} for {escape_unprintable(waiting.holder)}")
        elif waiting.waited_s - self._told_s >= AGAIN_S:
            print_note(f"still waiting, {waiting.waited_s:.0f} s of {self._timeout}")
        else:
            return
        self._holder = waiting.holder
        self._told_s = waiting.waited_s
