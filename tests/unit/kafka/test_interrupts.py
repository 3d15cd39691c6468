"""Ctrl-C within a client's C function: an interrupt, and no error of Python's own."""

from __future__ import annotations

import pytest

from reconciler.kafka.errors import keep_interrupts


def return_result_despite(error: BaseException) -> None:
    """Raise what Python makes of a C function that returns a result with an exception set."""
    raise SystemError("poll returned a result with an exception set") from error


def test_an_interrupt_is_passed_on() -> None:
    with pytest.raises(KeyboardInterrupt), keep_interrupts():
        return_result_despite(KeyboardInterrupt())


def test_another_error_is_left_as_it_is() -> None:
    with pytest.raises(SystemError), keep_interrupts():
        return_result_despite(ValueError())
