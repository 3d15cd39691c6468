"""Tables of rows: columns that fit, and what is said below them."""

from __future__ import annotations

import pytest
from shorthand import HERE, cluster, spec, topic

from reconciler.inventory.inventory import Choice, Inventory
from reconciler.inventory.topics import list_topics
from reconciler.show.inventory import close_rows, render_rows
from reconciler.spec.entry import ClusterEntry
from reconciler.styling import Paint, measure

LONG = "payments.captured.by.the.gateway.of.the.north"
STATE = cluster(
    topic("1,2,3 2,3,1", "orders.events", in_sync=((1,), (2, 3, 1)), leaders=(1, 2)),
    topic("1,2", LONG, in_sync=((1, 2),), leaders=(1,)),
    topic("1", "__consumer_offsets", internal=True),
)
SPECS = {name: spec(name, owner="orders-team") for name in ("orders.events", "new")}
FOUND = Inventory("prod", STATE, ClusterEntry("prod", HERE), SPECS)
ROWS = tuple(list_topics(FOUND, FOUND.choose(Choice())))
PLAIN = Paint(wanted=False)


def test_a_table_has_every_column_that_says_something() -> None:
    assert render_rows("topics", ROWS, PLAIN, None) == [
        f"topic{' ' * 40}  partitions  replicas  standing   owner        health              spec",
        f"orders.events{' ' * 32}           2         3  managed    orders-team  "
        "under-replicated 1  topics/shop.yaml:3",
        f"{LONG}           1         2  unmanaged               ok",
    ]


@pytest.mark.parametrize(
    ("width", "left_out"),
    [
        (120, "spec"),
        (106, "owner, spec"),
        (90, "standing, owner, spec"),
        (80, "replicas, standing, owner, spec"),
        (40, "replicas, standing, owner, spec"),
    ],
)
def test_a_narrow_screen_loses_columns_and_no_name(width: int, left_out: str) -> None:
    *table, last = render_rows("topics", ROWS, PLAIN, width)
    assert last == f"not shown on this width: {left_out}"
    assert any(line.startswith(LONG) for line in table)
    assert width < 80 or max(map(measure, table)) <= width


def test_colours_take_no_room() -> None:
    painted = render_rows("topics", ROWS, Paint(wanted=True), None)
    assert [measure(line) for line in painted] == [
        len(line) for line in render_rows("topics", ROWS, PLAIN, None)
    ]


def test_what_is_left_out_is_said_below() -> None:
    assert list(close_rows(FOUND, "topics", ROWS, Choice())) == [
        "2 topics",
        "1 internal topic not listed; --internal lists them",
        "1 topic of specs not on the cluster yet; see plan",
    ]
    assert list(close_rows(FOUND, "topics", (), Choice(unhealthy=True))) == ["no topics"]
