"""What this machine has left for throwaway clusters. None where it does not tell."""

from __future__ import annotations

import resource
from pathlib import Path

MEMORY = Path("/proc/meminfo")


def read_free_memory_mb() -> int | None:
    """Return the memory that programs can still be given, caches included. Source: proc(5)."""
    try:
        lines = MEMORY.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    found = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return int(found[0]) // 1024 if found else None


def read_file_limit() -> int | None:
    """Return how many files one process may open; a JVM raises its limit to the hard one."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return None if limit == resource.RLIM_INFINITY else limit
