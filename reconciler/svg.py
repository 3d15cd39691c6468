"""Shapes of SVG, the common parts of every picture in pages and files."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from xml.sax.saxutils import escape, quoteattr

from reconciler.errors import escape_unprintable

Length = float | str
"""Pixels, or a share of the width as in "37.5%"."""


class Drawing:
    """Collects shapes in the order in which they are painted. A style is a class of the page."""

    def __init__(self) -> None:
        self.shapes: list[str] = []

    def write(self, x: Length, y: float, text: str, style: str, *, turned: bool = False) -> None:
        """Write text with its baseline at y; turned, it reads upwards."""
        turn = f' transform="rotate(-90 {spell(x)} {spell(y)})"' if turned else ""
        self.shapes.append(
            f'<text class="{style}" x="{spell(x)}" y="{spell(y)}"{turn}>{spell_text(text)}</text>'
        )

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
        known: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Draw a rectangle. `title` is a tooltip.

        `known` becomes data attributes, for programs that read the picture.
        """
        rounded = f' rx="{spell(round_px)}"' if round_px else ""
        data = "".join(f" data-{name}={spell_attribute(value)}" for name, value in known.items())
        end = f"><title>{spell_text(title)}</title></rect>" if title else "/>"
        self.shapes.append(
            f'<rect class="{style}" x="{spell(x)}" y="{spell(y)}" width="{spell(width)}"'
            f' height="{spell(height)}"{rounded}{data}{end}'
        )

    def dot(self, x: Length, y: float, radius: float, style: str) -> None:
        """Draw a circle."""
        self.shapes.append(
            f'<circle class="{style}" cx="{spell(x)}" cy="{spell(y)}" r="{spell(radius)}"/>'
        )

    def line(self, x1: Length, y1: float, x2: Length, y2: float, style: str) -> None:
        """Draw a straight line."""
        self.shapes.append(
            f'<line class="{style}" x1="{spell(x1)}" y1="{spell(y1)}"'
            f' x2="{spell(x2)}" y2="{spell(y2)}"/>'
        )

    def trace(self, points: list[tuple[float, float]], style: str) -> None:
        """Draw lines from point to point."""
        places = " ".join(f"{spell(x)},{spell(y)}" for x, y in points)
        self.shapes.append(f'<polyline class="{style}" points="{places}"/>')


def spell_text(text: str) -> str:
    """Spell the text of an element. Invisible characters are escaped: one could reverse a name."""
    return escape(escape_unprintable(text))


def spell_attribute(text: str) -> str:
    """Spell a text as the value of an attribute, with its quotes."""
    return quoteattr(escape_unprintable(text))


def spell(length: Length) -> str:
    """Spell a length as an attribute."""
    return length if isinstance(length, str) else f"{length:g}"
