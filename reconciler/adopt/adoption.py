"""What an import comes to: texts of files, counts of topics, and what it has to say."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from reconciler.model import EMPTY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconciler.errors import Finding
    from reconciler.model import Assignment


@dataclass(frozen=True, slots=True)
class Wish:
    """A topic as its spec shall say it, before it is known what it inherits.

    A count that is None is left open. Config values are in the broker's spelling.
    """

    name: str
    partitions: int | None = None
    replication_factor: int | None = None
    config: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    assignment: Assignment | None = None


@dataclass(frozen=True, slots=True)
class Adoption:
    """The files that change, by their path in the estate, and what became of each topic.

    `differences` counts what a plan on the cluster would still do or refuse; None where there is
    no cluster to plan on.
    """

    texts: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    created: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    unchanged: int = 0
    differences: int | None = None
    notes: tuple[Finding, ...] = ()
