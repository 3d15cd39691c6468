"""How a page is made to fit: every section is told as fully as there is room for, in its turn.

A section has a floor, a few words that always fit, and fuller stages before it. Nothing is ever
cut: what a stage leaves out it names, and the page ends with those names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

BETWEEN = "\n\n"


class Telling(NamedTuple):
    """Markdown, and what it leaves out, in words."""

    text: str
    without: str = ""

    @property
    def size(self) -> int:
        """What it takes of a page. Units: bytes of UTF-8, the strictest way to count."""
        return sum(size_of(part) for part in self if part)


class Section(NamedTuple):
    """One part of a page: its floor, and its stages, the fullest first, made when tried."""

    floor: Telling
    stages: Sequence[Callable[[], Telling]] = ()


def size_of(text: str) -> int:
    """Return what a piece of text takes of a page, with what keeps it apart from the next."""
    return len(text.encode()) + len(BETWEEN)


def fold(sections: Iterable[Section], room: int) -> tuple[list[Telling], int]:
    """Tell each section as fully as possible, those that come first before the others.

    Returns the tellings, and the room that is left. Units: bytes.
    """
    known = list(sections)
    left = room - sum(section.floor.size for section in known)
    told = []
    for section in known:
        left += section.floor.size
        fuller = (stage() for stage in section.stages)
        best = next((telling for telling in fuller if telling.size <= left), section.floor)
        left -= best.size
        told.append(best)
    return told, left
