"""Colours of the page: what is read has a contrast of 4.5 to its ground (WCAG AA), in both."""

from __future__ import annotations

import re
from importlib import resources

import pytest

STYLE = resources.files("reconciler.fleet.page").joinpath("page.css").read_text("utf-8")
LIGHT, DARK = (dict(re.findall(r"--(\w+): (#\w{6});", block)) for block in re.findall(
    r":root \{(.*?)\}", STYLE, re.DOTALL
)[:2])  # fmt: skip
ON_PAPER = ["ink", "quiet", "accent", "warn", "refused", "settled"]
UNDER_MARKS = ["settled", "pending", "refused", "unplanned", "unreadable"]


def _luminance(colour: str) -> float:
    channels = (int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5))
    red, green, blue = (
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, other: str) -> float:
    dark, light = sorted((_luminance(one), _luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_what_is_read_stands_out(colours: dict[str, str]) -> None:
    pairs = [(name, ground) for name in ON_PAPER for ground in ("paper", "panel")]
    pairs += [("on", tile) for tile in UNDER_MARKS]
    pale = [pair for pair in pairs if _contrast(*(colours[name] for name in pair)) < 4.5]
    assert pale == []
