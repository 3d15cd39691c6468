"""The text of one plan at 80, 120 and 200 columns, and piped, as each is kept in a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from shorthand import HERE, NOW_MS, ONE, brokers, plan, spec, topic, unused_cluster

from reconciler.errors import Finding, Location, Severity
from reconciler.model.plan import Commit, Plan
from reconciler.show.text import render_text
from reconciler.styling import strip_colours

KEPT = Path(__file__).parent / "widths"
WIDTHS = [80, 120, 200, None]
LONG = "a-team.with-a-long-name.and-a-topic-that-says-what-is-in-it.v2"


def make_plan() -> Plan:
    """Return a plan with every kind of step, a refusal, notes, and a name that is too long."""
    week = {"retention.ms": "604800000", "flush.ms": "1"}
    live = unused_cluster(
        topic("1,2 2,3", "gone"),
        topic("1,2 2,3", "grown"),
        topic("1,2 2,3", "shrunk"),
        topic("1,2 2,3", "kept", config={"odd.key": None}),
        topic("1,3 2,4", LONG, config=week),
        topic("1", "legacy"),
        ends=(4, 0),
        records=3,
        newest_ms=NOW_MS - 8 * 86_400_000,
    )
    live = replace(live, brokers=brokers("a", "a", "b", "b", "c", "c"))
    wished = [
        spec("gone", absent=True),
        spec("grown", partitions=5, config={"flush.ms": "5"}),
        spec("kept"),
        spec("new", partitions=6, replication_factor=3, config={"compression.type": "zstd"}),
        spec("shrunk", partitions=1),
        spec(
            LONG,
            location=Location("topics/a-folder/of-a-team/with-many-topics.yaml", 1234),
            config={"retention.ms": "1000", "follower.replication.throttled.replicas": "0:1"},
            acknowledge=frozenset({"data-loss"}),
        ),
    ]
    note = Finding("estate-empty", "a note", "write something else", HERE, Severity.NOTE)
    made = plan(wished, live, guards=ONE, files=3, notes=[note])
    return replace(made, commit=Commit("1a2b3c4d5e" * 4))


@pytest.mark.parametrize("width", WIDTHS)
def test_the_text_at_a_width_is_as_it_is_kept(width: int | None) -> None:
    kept = KEPT / f"{width or 'piped'}.txt"
    assert render_text(make_plan(), unmanaged=True, width=width) == kept.read_text("utf-8")


@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_a_line_is_wider_than_the_terminal_only_for_a_single_word(width: int) -> None:
    lines = render_text(make_plan(), colour=True, width=width).splitlines()
    wide = [line for line in map(strip_colours, lines) if len(line) > width]
    assert [line for line in wide if len(line.split()) > 1] == []


@pytest.mark.parametrize("width", WIDTHS)
def test_no_word_is_cut_at_any_width(width: int | None) -> None:
    words = render_text(make_plan(), unmanaged=True).split()
    assert render_text(make_plan(), unmanaged=True, width=width).split() == words


def test_what_is_piped_is_not_broken() -> None:
    text = render_text(make_plan())
    assert max(map(len, text.splitlines())) > 120
    assert text == render_text(make_plan(), width=10_000)
