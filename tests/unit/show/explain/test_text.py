"""The text of a matrix, to the letter."""

from __future__ import annotations

import re
from functools import cache

import pytest
from shorthand import brokers, matrix, topic

from reconciler.model.cluster import Broker
from reconciler.show.explain.matrix import Matrix
from reconciler.show.explain.text import render_matrix

SIX = brokers("a", "b", "c", "a", "b", "c")
BEFORE = "1,2,3 2,3,4 3,4,5 4,5,6 5,6,1 6,1,2"
ADDED = "1,5,6 2,6,4 3,4,5"


def paragraphs(text: str) -> list[list[str]]:
    return [part.splitlines() for part in text.rstrip("\n").split("\n\n")]


def test_brokers_that_take_nothing_are_in_brackets_and_explained() -> None:
    nodes = (*brokers("a", "b"), Broker(3, "c", alive=False), Broker(4, "c"))
    idle = matrix("1,3 2,3 3,9", "1,2", nodes, excluded=[4])
    (_, legend), table, _, reasons = paragraphs(render_matrix(idle))
    assert legend == "L leader · F follower · + new · (3), (4), (9) take nothing new"
    assert table[:2] == [
        "                     a   │   b   │    c     │ gone",
        "broker                 1 │     2 │ (3)  (4) │  (9)",
    ]
    assert reasons[1:] == [
        "Broker 3 is dead and takes nothing new; 3 replicas of this topic stay there, "
        "1 as preferred leader.",
        "Broker 4 is excluded and takes nothing new; nothing of this topic is there.",
        "Broker 9 is gone and takes nothing new; 1 replica of this topic stays there.",
        "Evenness is that of the other brokers.",
        "Worst loss of a broker: 1. Broker 2 takes over 1 of its 2 leaders.",
        "Worst loss of a rack: a. Broker 2 takes over 1 of its 2 leaders.",
    ]


def test_the_legend_names_the_broker_that_takes_nothing() -> None:
    nodes = (*brokers("a", "b"), Broker(3, "c", alive=False))
    (_, legend), *_ = paragraphs(render_matrix(matrix("1,3", "1,2", nodes)))
    assert legend.endswith(" · (3) takes nothing new")


def test_many_partitions_are_folded_and_nothing_is_lost() -> None:
    before = " ".join(["1,2", "2,3", "3,1"] * 40)
    folded = matrix(before, "1,2 2,3 3,1", brokers("a", "b", "c"))
    (_, legend), table, *_ = paragraphs(render_matrix(folded))
    assert legend.endswith("· 4L 9F: how many of each in a block of partitions")
    assert table == [
        "                      a    │    b    │    c",
        "broker                   1 │       2 │       3",
        "──────────────────────────────────────────────",
        "0–9                  4L 3F │   3L 4F │   3L 3F",
        "10–19                3L 3F │   4L 3F │   3L 4F",
        "20–29                3L 4F │   3L 3F │   4L 3F",
        "30–39                4L 3F │   3L 4F │   3L 3F",
        "40–49                3L 3F │   4L 3F │   3L 4F",
        "50–59                3L 4F │   3L 3F │   4L 3F",
        "60–69                4L 3F │   3L 4F │   3L 3F",
        "70–79                3L 3F │   4L 3F │   3L 4F",
        "80–89                3L 4F │   3L 3F │   4L 3F",
        "90–99                4L 3F │   3L 4F │   3L 3F",
        "100–109              3L 3F │   4L 3F │   3L 4F",
        "110–119              3L 4F │   3L 3F │   4L 3F",
        "120                     +L │      +F │       ·",
        "121                      · │      +L │      +F",
        "122                     +F │       · │      +L",
        "──────────────────────────────────────────────",
        "this topic                 │         │",
        "  leaders before        40 │      40 │      40",
        "  leaders after         41 │      41 │      41",
        "    by rack        40 → 41 │ 40 → 41 │ 40 → 41",
        "  replicas before       80 │      80 │      80",
        "  replicas after        82 │      82 │      82",
        "    by rack        80 → 82 │ 80 → 82 │ 80 → 82",
        "──────────────────────────────────────────────",
        "all topics                 │         │",
        "  leaders before        40 │      40 │      40",
        "  leaders after         41 │      41 │      41",
        "    by rack        40 → 41 │ 40 → 41 │ 40 → 41",
        "  replicas before       80 │      80 │      80",
        "  replicas after        82 │      82 │      82",
        "    by rack        80 → 82 │ 80 → 82 │ 80 → 82",
        "──────────────────────────────────────────────",
        "if lost                    │         │",
        "  one gets              41 │      41 │      41",
        "    by rack          41    │   41    │   41",
    ]


@cache
def wide_matrix(count: int) -> Matrix:
    """Return the matrix of a topic on so many brokers."""
    nodes = tuple(Broker(n, f"zone-{n % 5}") for n in range(1, count + 1))
    row = ",".join(str(n) for n in range(1, min(count, 9) + 1))
    others = topic("1 " * 500, "other")
    return matrix(" ".join([row] * 50), row, nodes, others, excluded=[count + 1])


@pytest.mark.parametrize("width", [30, 40, 56, 80, 120, 250])
@pytest.mark.parametrize("count", [1, 6, 35, 100])
def test_no_line_is_wider_than_the_screen(width: int, count: int) -> None:
    text = render_matrix(wide_matrix(count), width=width)
    assert max(map(len, text.splitlines())) <= width


def test_racks_that_do_not_fit_follow_below() -> None:
    nodes = tuple(Broker(n, f"a-rather-long-name-{n % 4}") for n in range(1, 41))
    text = render_matrix(matrix("", "1,2,3 5,6,7", nodes), width=60)
    heads = [line.split() for line in text.splitlines() if line.lstrip().startswith("a-rather")]
    assert heads[:2] == [
        ["a-rather-long-name-0", "│", "a-rather-long-name-1"],
        ["a-rather-long-name-2", "│", "a-rather-long-name-3"],
    ]


def test_colour_adds_codes_and_nothing_else() -> None:
    grown = matrix(BEFORE, ADDED, SIX)
    coloured = render_matrix(grown, colour=True)
    assert coloured != render_matrix(grown)
    plain = [re.sub(r"\x1b\[\d+m", "", line).rstrip() for line in coloured.splitlines()]
    assert plain == render_matrix(grown).splitlines()


def test_a_rack_cannot_write_on_the_screen() -> None:
    text = render_matrix(matrix("", "1,2 2,1 1,2", brokers("a\x1b[31m", "b\n")))
    assert r"a\x1b[31m" in text
    assert r"b\n" in text
    assert "\x1b" not in text
