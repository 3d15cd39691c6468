"""Validation and brokers agree on what a topic may be called, on every release line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.cluster import INTERNAL_TOPICS
from reconciler.spec.names import check_name, find_collisions

if TYPE_CHECKING:
    from judge import Judge

pytestmark = pytest.mark.cluster

NAMES = (
    *("a", "A-1_b.c", ".", "..", "...", "._", "-", "_", "a" * 248, "a" * 249, "a" * 250, "a" * 600),
    *(
        "ö",
        "é" * 125,
        "😀",
        "a b",
        " a",
        "a ",
        "a\n",
        "a\t",
        "a/b",
        "a\\b",
        "a:b",
        "a,b",
        "a*",
        "１",
    ),
    *("a\u200bb", "ſ", "İ", "A" * 249, "0", "%00", "a+b", "a@b", "__", "__a", "_schemas"),
    *(f"{name}{suffix}" for name in INTERNAL_TOPICS for suffix in ("", "_", ".")),
)
LATIN_AND_BEYOND = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
"""What can be sent at all: the client's strings end at a NUL and know no lone surrogates."""

STRICTER_NAMES = tuple(INTERNAL_TOPICS.keys() - {"__cluster_metadata"})
"""Kafka lets anyone create its own topics, all but the controllers' log; a spec must not."""


def test_check_name_and_broker_agree(judge: Judge) -> None:
    @settings(max_examples=40, deadline=None, derandomize=True, database=None)
    @given(
        st.lists(
            st.text(LATIN_AND_BEYOND, min_size=1, max_size=12)
            | st.text("abcXYZ019._-", min_size=1, max_size=260),
            unique_by=lambda name: name.replace(".", "_"),
            min_size=1,
            max_size=50,
        )
    )
    def agree(names: list[str]) -> None:
        for name, why in zip(names, judge_names(judge, names), strict=True):
            assert bool(check_name(name, None)) == bool(why), (name, why)

    agree()
    for name in dict.fromkeys(NAMES):
        (why,) = judge_names(judge, [name])
        assert bool(check_name(name, None)) == (bool(why) or name in STRICTER_NAMES), (name, why)


def judge_names(judge: Judge, names: Sequence[str]) -> list[str]:
    """Return for each name why the broker refuses it."""
    return judge.judge([(name, {}) for name in names])


def test_the_empty_name_does_not_even_leave_the_client(judge: Judge) -> None:
    assert judge_names(judge, [""]) != [""]
    assert check_name("", None)


def test_names_collide_as_find_collisions_says(judge: Judge) -> None:
    judge.create({"collide.with_me": {}})
    (why,) = judge_names(judge, ["collide_with.me"])
    assert "collides with existing topic" in why
    assert find_collisions(["collide_with.me", "collide.with_me"])
