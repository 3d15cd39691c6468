"""All names of many topics, in few characters."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING

from reconciler.plan.markdown.marks import code

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_STEM = re.compile(r".*[._-](?=[^._-])")


def group_names(names: Iterable[str]) -> str:
    """List every name, those of one stem together, as shells spell it: shop.{orders,refunds}.

    It can be taken apart again: no name of a topic holds a brace or a comma.
    """
    ordered = sorted(names, key=lambda name: (_find_stem(name), name))
    groups = groupby(ordered, _find_stem)
    return ", ".join(code(spelt) for stem, found in groups for spelt in _spell(stem, list(found)))


def _spell(stem: str, names: Sequence[str]) -> Sequence[str]:
    """Spell names of one stem as one word; those without a stem have nothing to share."""
    if not stem or len(names) == 1:
        return names
    return [f"{stem}{{{','.join(name.removeprefix(stem) for name in names)}}}"]


def _find_stem(name: str) -> str:
    """Return a name up to its last part: shop.orders-v2 begins with `shop.orders-`."""
    found = _STEM.match(name)
    return found[0] if found else ""
