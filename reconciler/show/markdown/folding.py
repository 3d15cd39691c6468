"""Folding of a page to a size: each section in turn is as detailed as the room allows.

A section has a floor, a few words that always fit, and stages with more detail. What every section
must say comes before the details of any section. Nothing is ever cut: a stage describes what it
leaves out, and the page ends with these descriptions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

BETWEEN = "\n\n"


class Passage(NamedTuple):
    """Markdown, and a description of what it omits."""

    text: str
    without: str = ""

    @property
    def size(self) -> int:
        """Its size. Units: bytes of UTF-8, the strictest measure."""
        return sum(size_of(part) for part in self if part)


class Section(NamedTuple):
    """One part of a page: its floor, and its stages, most detailed first, rendered on demand.

    `details` counts the first stages, which only get the room that no section needs for the others.
    """

    floor: Passage
    stages: Sequence[Callable[[], Passage]] = ()
    details: int = 0


def size_of(text: str) -> int:
    """Return the size of a text on a page, with its separator."""
    return len(text.encode()) + len(BETWEEN)


def fold(sections: Iterable[Section], room: int) -> tuple[list[Passage], int]:
    """Render each section as fully as possible, the first sections first.

    Returns the passages, and the room that is left. Units: bytes.
    """
    known = list(sections)
    # The floors of all sections are reserved first, so that a long one cannot hide a later one.
    told = [section.floor for section in known]
    left = room - sum(passage.size for passage in told)
    for with_details in (False, True):
        for n, section in enumerate(known):
            stages = section.stages if with_details else section.stages[section.details :]
            left += told[n].size
            told[n] = next((p for p in (stage() for stage in stages) if p.size <= left), told[n])
            left -= told[n].size
    return told, left
