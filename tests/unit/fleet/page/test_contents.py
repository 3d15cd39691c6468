"""The words of the page: a row of the lake says what the plan says."""

from __future__ import annotations

import pytest
from shorthand import ONE, plan, spec, topic, unused_cluster

from reconciler.fleet.outcome import describe_changes
from reconciler.fleet.page.contents import describe_change_row
from reconciler.show.text import render_text
from reconciler.show.view import view_plan

LIVE = unused_cluster(
    topic("1,2", "gone", config={"flush.ms": "1"}),
    topic("1,2 2,3", "grown", config={"flush.ms": "1", "retention.ms": "1000"}),
)
PLAN = plan(
    [
        spec("gone", absent=True),
        spec("grown", partitions=4, config={"retention.ms": "604800000"}),
        spec("made", partitions=1, replication_factor=1, config={"retention.ms": "1000"}),
    ],
    LIVE,
    guards=ONE,
)


def read_rows() -> dict[str, dict[str, object]]:
    """Return the rows of the plan by topic, their maps as Spark reads them."""
    rows = {}
    for row in describe_changes(PLAN, view_plan(PLAN)):
        maps = {key: row[key] and dict(row[key]) for key in ("config_before", "config_after")}
        rows[row["topic"]] = {**row, **maps}
    return rows


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gone", "delete"),
        (
            "grown",
            "2 → 4 partitions, flush.ms 1 → unset, retention.ms 1s (1000) → 7d (604800000)",
        ),
        ("made", "1 partition, retention.ms 1s (1000)"),
    ],
)
def test_a_row_says_what_changes(name: str, words: str) -> None:
    assert describe_change_row(read_rows()[name]) == words


def test_values_are_those_of_the_plan_as_text() -> None:
    text = render_text(PLAN)
    for value in ("1 → unset", "1s (1000) → 7d (604800000)", "2 → 4 partitions"):
        assert value in text
        assert value in describe_change_row(read_rows()["grown"])
