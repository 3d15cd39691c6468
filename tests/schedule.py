"""Which tests run in the same process, where several share the work."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from xdist.scheduler.loadscope import LoadScopeScheduling

ROOT = Path(__file__).resolve().parents[1]
COSTLY = re.compile(r"\b(cluster6|judge): ")
"""Fixtures of the session that few files use; each process has `cluster3` and `spark` anyway."""


class FilesTogether(LoadScopeScheduling):
    """Keeps the tests of a file together, and the files that ask for the same costly fixture."""

    def _split_scope(self, nodeid: str) -> str:
        return find_company(nodeid.partition("::")[0])


@cache
def find_company(file: str) -> str:
    """Name what the tests of a file run with: a costly fixture, or one another alone."""
    found = COSTLY.search((ROOT / file).read_text(encoding="utf-8"))
    return found[1] if found else file
