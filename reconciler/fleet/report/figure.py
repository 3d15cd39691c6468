"""A figure inside the page: shapes of SVG whose looks are the page's, and a text that stands in.

Lengths are pixels, or shares of the width as in "37.5%": so a figure is as wide as its place, and
its letters stay as large as the page's.
"""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

Length = float | str


def percent(share: float) -> str:
    """Spell a share of the width."""
    return f"{100 * share:.5g}%"


class Figure:
    """Collects shapes in the order in which they are painted."""

    def __init__(self, width: Length, height: float) -> None:
        self._size = f'width="{_spell(width)}" height="{_spell(height)}"'
        self._shapes: list[str] = []

    def box(
        self,
        x: Length,
        y: float,
        width: Length,
        height: float,
        style: str,
        title: str = "",
        *,
        round_px: float = 0,
    ) -> None:
        """Draw a rectangle; `title` is told to who points at it."""
        rounded = f' rx="{_spell(round_px)}"' if round_px else ""
        self._shapes.append(
            f'<rect class="{style}" x="{_spell(x)}" y="{_spell(y)}" width="{_spell(width)}"'
            f' height="{_spell(height)}"{rounded}{_close("rect", title)}'
        )

    def dot(self, x: Length, y: float, radius: float, style: str) -> None:
        """Draw a circle."""
        self._shapes.append(
            f'<circle class="{style}" cx="{_spell(x)}" cy="{_spell(y)}" r="{_spell(radius)}"/>'
        )

    def line(self, x1: Length, y1: float, x2: Length, y2: float, style: str) -> None:
        """Draw a straight line."""
        self._shapes.append(
            f'<line class="{style}" x1="{_spell(x1)}" y1="{_spell(y1)}"'
            f' x2="{_spell(x2)}" y2="{_spell(y2)}"/>'
        )

    def trace(self, points: list[tuple[float, float]], style: str) -> None:
        """Draw lines from point to point."""
        places = " ".join(f"{_spell(x)},{_spell(y)}" for x, y in points)
        self._shapes.append(f'<polyline class="{style}" points="{places}"/>')

    def write(self, x: Length, y: float, text: str, style: str) -> None:
        """Write text with its baseline at y."""
        self._shapes.append(
            f'<text class="{style}" x="{_spell(x)}" y="{_spell(y)}">{escape(text)}</text>'
        )

    def finish(self, says: str = "") -> str:
        """Return the figure; one that says nothing stands beside what it shows."""
        role = f'role="img" aria-label={quoteattr(says)}' if says else 'aria-hidden="true"'
        return f"<svg {self._size} {role}>{''.join(self._shapes)}</svg>"


def _spell(length: Length) -> str:
    return length if isinstance(length, str) else f"{length:.5g}"


def _close(name: str, title: str) -> str:
    return f"><title>{escape(title)}</title></{name}>" if title else "/>"
