"""Which tests run in the same process, where several share the work, and which of them first."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from xdist.scheduler.loadscope import LoadScopeScheduling

if TYPE_CHECKING:
    from xdist.remote import Producer

TESTS = Path(__file__).resolve().parent
COSTLY = re.compile(r"\b(cluster6|quiet3|judge|secured|moving): ")
"""What few files use and a process has once; each process has `cluster3` and `spark` anyway."""

LONGEST = (
    "laws/test_optimal.py",  # its slow tests search all placements, in one process
    "contract/test_run_of_moves.py",
    "e2e/test_move_control.py",
    "e2e/test_rebalance.py",
    "contract/test_connections.py",
    "e2e/test_dangers.py",
    "e2e/test_error_answers.py",
    "e2e/test_declared_moves.py",
    "contract/test_rehearse.py",
    "contract/test_second_look.py",
    "contract/test_sandbox.py",
    "contract/test_sandbox_cli.py",
    "e2e/test_tutorial.py",
    # These two share six brokers with the next one, whose topics placement would count.
    "contract/test_laws.py",
    "contract/test_placement.py",
    "contract/test_views.py",
    "e2e/test_apply_cli.py",
    "e2e/test_elect.py",
    "e2e/test_one_writer.py",
    "e2e/test_second_signal.py",
    "e2e/test_story.py",
    "wheel/test_installed.py",
    "fleet/test_lake_maintenance.py",
    "fleet/test_run.py",
    "fleet/test_recomputed.py",
    "fleet/test_faults.py",
    "fleet/test_audit_cli.py",
    "fleet/test_page_gather.py",
    "fleet/test_metrics.py",
    "fleet/test_audit.py",
    "fleet/test_history.py",
    "fleet/test_sources.py",
    "fleet/test_trouble.py",
    "fleet/test_session.py",
    "fleet/test_audit_law.py",
    "fleet/test_generator.py",
)
"""Files that take long, by `--durations=0`. They come first: at the end, one would run alone."""


class FilesTogether(LoadScopeScheduling):
    """Keeps the tests of a file together, and the files that use the same costly thing."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False  # by the number of tests says nothing of their time

    def _split_scope(self, nodeid: str) -> str:
        return find_company(nodeid.partition("::")[0])


@cache
def find_company(file: str) -> str:
    """Name what the tests of a file run with: a costly thing of their folder, or one another alone.

    Those that move replicas take most of the time of a process. So each folder has its own brokers.
    """
    found = COSTLY.search((TESTS.parent / file).read_text(encoding="utf-8"))
    return f"{Path(file).parent.name}/{found[1]}" if found else file


def rank(item: pytest.Item) -> int:
    """Return when the file of a test has its turn."""
    file = item.path.relative_to(TESTS).as_posix()
    return LONGEST.index(file) if file in LONGEST else len(LONGEST)
