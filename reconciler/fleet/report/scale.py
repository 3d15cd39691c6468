"""How numbers become places on an axis: in proportion, or by powers where they lie far apart."""

from __future__ import annotations

from dataclasses import dataclass
from math import log1p

FAR_APART = 60
"""From this on, small numbers would all lie at the edge of an axis in proportion."""

_EDGE = 0.03
"""The share of the width that is kept free at both ends, so that dots are whole."""


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis from nought to `most`."""

    most: int

    @property
    def by_powers(self) -> bool:
        """Whether it grows by powers instead of in proportion."""
        return self.most > FAR_APART

    def place(self, number: int) -> float:
        """Return where a number is, as a share of the width."""
        most = max(self.most, 1)
        share = log1p(number) / log1p(most) if self.by_powers else number / most
        return _EDGE + (1 - 2 * _EDGE) * share

    def ticks(self) -> tuple[int, ...]:
        """Return the numbers to write at the axis: nought, and a few round ones."""
        if self.by_powers:
            powers = (10**n for n in range(1, len(str(self.most))))
            return (0, *powers)
        step = round_step(self.most, 3)
        return tuple(range(0, self.most + 1, step))


def round_step(most: int, steps: int) -> int:
    """Return the least of 1, 2, 5, 10, 20 … by which `steps` steps reach `most`."""
    power = 1
    while power * 5 * steps < most:
        power *= 10
    return next(power * digit for digit in (1, 2, 5) if power * digit * steps >= most)
