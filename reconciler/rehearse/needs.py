"""The resources that a rehearsal needs, and a check that the machine has them.

Source: clusters of 3, 12, 24 and 60 brokers in one process took 283, 418, 534 and 1,112 MB once
started, and 155, 417, 765 and 1,808 files; 3 brokers with 4,000 replicas took 387 MB and 4,184
files, 60 with 7,200 at work 1,938 MB.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from reconciler.errors import Finding
from reconciler.model.plan import Plan
from reconciler.rehearse.setup import Setup, count_added
from reconciler.units import count

PROCESS_MB, BROKER_MB, REPLICA_KB = 240, 25, 25
PROCESS_FILES, BROKER_FILES, REPLICA_FILES = 70, 30, 1


@dataclass(frozen=True, slots=True)
class Machine:
    """The free resources of a machine; None if unknown.

    `files`: the limit of open files per process.
    """

    memory_mb: int | None
    files: int | None


@dataclass(frozen=True, slots=True)
class Needs:
    """The resources of the throwaway cluster once the plan is applied."""

    brokers: int
    replicas: int

    @property
    def memory_mb(self) -> int:
        """The memory of the process that holds the brokers."""
        return PROCESS_MB + BROKER_MB * self.brokers + REPLICA_KB * self.replicas // 1000

    @property
    def files(self) -> int:
        """The files that it holds open."""
        return PROCESS_FILES + BROKER_FILES * self.brokers + REPLICA_FILES * self.replicas

    def refuse_beyond(self, machine: Machine) -> Iterator[Finding]:
        """Refuse a rehearsal that does not fit, with the numbers."""
        size = f"{count(self.brokers, 'broker')} and {count(self.replicas, 'replica')}"
        way_out = (
            "rehearse fewer topics with --topic GLOB, or on a larger machine; "
            "`reconciler simulate` needs no brokers"
        )
        if machine.memory_mb is not None and self.memory_mb > machine.memory_mb:
            what = f"{size} take about {self.memory_mb:,} MB; {machine.memory_mb:,} MB are free"
            yield Finding("rehearsal-fits", what, way_out)
        if machine.files is not None and self.files > machine.files:
            what = f"{size} take {self.files:,} open files; a process may have {machine.files:,}"
            yield Finding("rehearsal-fits", what, way_out)


def measure_needs(setup: Setup, plan: Plan) -> Needs:
    """Add up the resources of a setup and its plan."""
    return Needs(len(setup.brokers), setup.replicas + count_added(plan))
