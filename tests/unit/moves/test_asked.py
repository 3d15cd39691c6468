"""A rebalance that clusters.yaml asks for: when a plan of moves makes it, and when it does not."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from shorthand import brokers, cluster, may_move, spec, topic

from reconciler.errors import Finding, Location, Severity
from reconciler.model.cluster import LogDirectory
from reconciler.model.moves import AskedRebalance, LoadAim, LoadKind
from reconciler.model.plan import Plan, Scope
from reconciler.model.steps import steps_of
from reconciler.moves.asked import plan_asked
from reconciler.moves.rebalance import plan_rebalance
from reconciler.spec.changes import Changes, ClusterThen
from reconciler.spec.entry import ClusterEntry

HERE = Location("topics/clusters.yaml", 7)
ASKED = AskedRebalance(LoadAim(), "2026-12-13")
PLAIN = ClusterEntry(
    "prod", Location("topics/clusters.yaml", 2), moves=may_move(), fields={"rebalance": HERE}
)
ENTRY = replace(PLAIN, rebalance=ASKED)
FOUR = brokers(None, None, None, None)
CROWDED = "1,2 2,1 1,2 2,1"
EVEN = "1,2 2,3 3,4 4,1"


def live(*found: Any, nodes: Any = FOUR, today: str = "2026-12-12") -> Any:
    sized = [replace(each, size_bytes=(10,) * len(each.assignment)) for each in found]
    disks = {b.id: (LogDirectory("/data", 10**9, 9 * 10**8, 0),) for b in nodes}
    return replace(cluster(*sized, nodes=nodes), directories=disks, read_on=today)


def find(plan: Plan, rule: str) -> Finding:
    (found,) = (note for note in (*plan.notes, *plan.refusals) if note.rule == rule)
    return found


def moved(plan: Plan) -> list[str]:
    return [each.name for each in plan.topics if steps_of(each)]


def held_after(plan: Plan) -> Counter[int]:
    images = [each.after for each in plan.topics if each.after]
    return Counter(b for image in images for row in image.assignment for b in row)


def test_the_plan_is_that_of_rebalance() -> None:
    state = live(topic(CROWDED))
    made = plan_asked(ENTRY, [], state)
    assert held_after(made) == {1: 2, 2: 2, 3: 2, 4: 2}
    assert made.topics == plan_rebalance(ENTRY, [], state, aim=LoadAim()).topics
    assert made.moves is not None
    assert made.moves.balance is not None
    assert made.moves.made_by == "plan --moves"


def test_the_brokers_that_are_named_take_the_replicas() -> None:
    entry = replace(ENTRY, rebalance=replace(ASKED, aim=LoadAim(brokers=frozenset({4}))))
    made = plan_asked(entry, [], live(topic(CROWDED)))
    assert set(held_after(made)) == {1, 2, 4}


def test_a_cluster_inside_its_band_moves_nothing_and_the_line_may_stay() -> None:
    made = plan_asked(ENTRY, [], live(topic(EVEN)))
    assert moved(made) == []
    assert not made.refusals


@pytest.mark.parametrize(("today", "moves"), [("2026-12-12", 1), ("2026-12-13", 0)])
def test_from_its_date_on_it_asks_for_nothing_and_the_plan_says_so(today: str, moves: int) -> None:
    made = plan_asked(ENTRY, [], live(topic(CROWDED), today=today))
    assert len(moved(made)) == moves
    if not moves:
        note = find(made, "rebalance-over")
        assert (note.where, note.severity) == (HERE, Severity.NOTE)
        assert note.what == "the rebalance until 2026-12-13 is over and has no effect"


def test_it_waits_for_what_specs_and_drains_ask_for() -> None:
    crowded = topic(CROWDED, name="shop.other")
    wished = spec(replication_factor=3)
    made = plan_asked(ENTRY, [wished], live(topic(EVEN), crowded))
    assert moved(made) == ["shop.orders"]
    assert find(made, "rebalance-waits").where == HERE
    drains = replace(ENTRY, drain_brokers=frozenset({1}), exclude_brokers=frozenset({1}))
    made = plan_asked(drains, [], live(topic(EVEN), crowded))
    assert find(made, "rebalance-waits").where == HERE
    # What is refused has to be decided first as well.
    refused = replace(ENTRY, moves=may_move("rebalance"))
    made = plan_asked(refused, [wished], live(topic(EVEN), crowded))
    assert moved(made) == []
    assert find(made, "rebalance-waits").where == HERE


def change(then: ClusterEntry) -> Changes:
    return Changes("main", "b" * 40, {"prod": ClusterThen(then, {})})


def test_it_belongs_to_the_request_that_changes_its_key() -> None:
    state = live(topic(CROWDED))
    assert moved(plan_asked(ENTRY, [], state, changes=change(ENTRY))) == []
    asked = plan_asked(ENTRY, [], state, changes=change(PLAIN))
    assert moved(asked) == ["shop.orders"]
    assert asked.scope == Scope("*", "main")
    assert find(asked, "plan-scope").what == (
        f"only specs that changed since main ({'b' * 10}) are planned: 0 of 0 topics, and 1 other "
        "that moves because clusters.yaml changed"
    )
    later = replace(ENTRY, rebalance=replace(ASKED, until="2026-12-01"))
    assert moved(plan_asked(ENTRY, [], state, changes=change(later))) == ["shop.orders"]


@pytest.mark.parametrize(
    ("aim", "why"),
    [
        (
            LoadAim(brokers=frozenset({9})),
            "broker 9 cannot take replicas, as it is not in the cluster",
        ),
        (LoadAim((LoadKind.WRITE,)), "no write_bytes_per_s is known of any partition"),
    ],
)
def test_what_cannot_be_made_as_written_refuses_the_plan_at_its_line(
    aim: LoadAim, why: str
) -> None:
    entry = replace(ENTRY, rebalance=replace(ASKED, aim=aim))
    made = plan_asked(entry, [], live(topic(CROWDED)))
    refusal = find(made, "rebalance-unable")
    assert refusal.where == HERE
    assert why in refusal.what
    assert moved(made) == []


def test_a_cluster_without_topics_moves_nothing() -> None:
    made = plan_asked(ENTRY, [], live())
    assert (moved(made), made.refusals) == ([], ())


def test_part_of_a_cluster_is_not_rebalanced() -> None:
    assert moved(plan_asked(ENTRY, [], live(topic(CROWDED)), topics="shop.*")) == []
