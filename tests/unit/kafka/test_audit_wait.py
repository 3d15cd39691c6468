"""Waiting for the answer of the audit topic."""

from __future__ import annotations

from queue import SimpleQueue

from reconciler.kafka.writer import _await_answer


class _Interrupted(SimpleQueue[None]):
    """A queue whose item is lost: Ctrl-C comes after `get` took it, and before it is returned."""

    def get(self, block: bool = True, timeout: float | None = None) -> None:
        super().get(block, timeout)
        raise KeyboardInterrupt


def test_an_interrupt_that_comes_with_the_answer_does_not_lose_it() -> None:
    over = _Interrupted()
    over.put(None)
    assert _await_answer([None], over) is None
