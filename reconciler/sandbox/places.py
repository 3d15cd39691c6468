"""Where the sandbox keeps things: jars and archives in the cache, logs and records in the state.

Follows the XDG base directories: XDG_CACHE_HOME, XDG_STATE_HOME, else ~/.cache, ~/.local/state.
"""

from __future__ import annotations

import os
from pathlib import Path

from reconciler.errors import SandboxError


def cache_directory(name: str) -> Path:
    """Return a directory whose loss costs only time."""
    return _directory("XDG_CACHE_HOME", ".cache", name)


def state_directory(name: str) -> Path:
    """Return a directory for what should outlive a run: logs and the record of what runs."""
    return _directory("XDG_STATE_HOME", ".local/state", name)


def _directory(variable: str, fallback: str, name: str) -> Path:
    """Return `name` under the base directory, made if need be, for this user only."""
    chosen = os.environ.get(variable, "")
    # The specification asks for absolute paths; a relative one counts as unset.
    base = Path(chosen) if chosen.startswith("/") else Path.home() / fallback
    directory = base / "reconciler" / name
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise SandboxError(
            f"cannot make {directory}: {error.strerror}; {variable} names another place for it"
        ) from error
    return directory
