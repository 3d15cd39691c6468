"""How much is tried where more costs more: little in the gate, much in `make test-slow`."""

from __future__ import annotations

import os

THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"


def choose(quick: int, thorough: int) -> int:
    """Return how many are tried in this run."""
    return thorough if THOROUGH else quick
