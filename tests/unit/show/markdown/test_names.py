"""Many names in few characters, none of them lost."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.show.markdown.marks import group_names


@pytest.mark.parametrize(
    ("names", "grouped"),
    [
        (["shop.orders"], "`shop.orders`"),
        (["shop.refunds", "shop.orders"], "`shop.{orders,refunds}`"),
        (["a.b", "a.b.c", "a.d"], "`a.{b,d}`, `a.b.c`"),
        (["v-1_x", "v-1_y", "v-2"], "`v-2`, `v-1_{x,y}`"),
        (["two", "one"], "`one`, `two`"),
        (["trailing.", "..."], "`...`, `trailing.`"),
    ],
)
def test_names_of_one_stem_are_told_together(names: list[str], grouped: str) -> None:
    assert group_names(names) == grouped


@given(st.sets(st.text("ab1._-", min_size=1, max_size=8), min_size=1))
def test_every_name_can_be_read_off(names: set[str]) -> None:
    found = set()
    for spelt in re.findall(r"`([^`]+)`", group_names(names)):
        stem, brace, ends = spelt.partition("{")
        found |= {stem + end for end in ends.rstrip("}").split(",")} if brace else {spelt}
    assert found == names
