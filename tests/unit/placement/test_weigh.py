"""Scales: what a replica weighs, by count, size or rate."""

from __future__ import annotations

from dataclasses import replace

from shorthand import brokers, cluster, plan, spec, topic

from reconciler.changes.build import Placing
from reconciler.model.plan import Balance, Spread, Weighed
from reconciler.placement.weigh import ReplicaWeights
from reconciler.planfile.codec import decode_plan, encode_plan
from reconciler.show.explain.matrix import build_matrix
from reconciler.show.explain.text import render_matrix
from reconciler.show.markdown.page import render_markdown
from reconciler.show.text import render_text

MIB = 2**20
HEAVY = topic("1,2 2,3", "heavy", size_bytes=(700 * MIB, 300 * MIB))
LIGHT = topic("3,1", "light", size_bytes=(0,))
STATE = cluster(HEAVY, LIGHT, nodes=brokers(None, None, None))
LIVE = [(name, found.assignment) for name, found in STATE.topics.items()]


def test_by_count_every_replica_weighs_one() -> None:
    leaders, replicas = ReplicaWeights(STATE).weigh_load([*LIVE, ("new", ((1, 2),))])
    assert (leaders, replicas) == ({1: 2, 2: 1, 3: 1}, {1: 3, 2: 3, 3: 2})
    assert ReplicaWeights(STATE).weigh_topic("heavy") == 1


def test_by_size_a_replica_weighs_its_mebibytes_and_at_least_one() -> None:
    leaders, replicas = ReplicaWeights(STATE, "size").weigh_load(LIVE)
    assert leaders == {1: 700, 2: 300, 3: 1}
    assert replicas == {1: 701, 2: 1000, 3: 301}


def test_a_partition_of_unknown_size_weighs_what_the_others_of_its_topic_do() -> None:
    part = topic("1 2 3", "part", size_bytes=(700 * MIB, -1, 300 * MIB))
    weights = ReplicaWeights(cluster(part), "size")
    leaders, _ = weights.weigh_load([("part", part.assignment)])
    assert leaders == {1: 700, 2: 500, 3: 300}
    assert weights.add_amounts([("part", part.assignment)])[0][2] == 500 * MIB
    assert weights.unknown == 0


def test_a_new_partition_weighs_what_the_others_of_its_topic_do() -> None:
    weights = ReplicaWeights(STATE, "size")
    assert weights.weigh_topic("heavy") == 500
    assert weights.weigh_topic("unheard-of") == round((500 + 1) / 2)


def test_nothing_to_weigh_by_is_noticed() -> None:
    assert ReplicaWeights(STATE, "rate").is_blank
    assert not ReplicaWeights(STATE, "size").is_blank
    assert not ReplicaWeights(cluster()).is_blank


def test_a_plan_by_size_spares_the_broker_that_bears_the_most() -> None:
    wished = [spec("new", partitions=1, replication_factor=1)]
    after = plan(wished, STATE, placing=Placing(weigh="size")).topics[0].after
    assert after is not None
    assert after.assignment == ((3,),)


def test_amounts_are_not_rounded_to_weights() -> None:
    weights = ReplicaWeights(STATE, "size")
    leaders, replicas = weights.add_amounts(LIVE)
    assert leaders == {1: 700 * MIB, 2: 300 * MIB, 3: 0}
    assert replicas == {1: 700 * MIB, 2: 1000 * MIB, 3: 300 * MIB}
    assert weights.measure(LIVE, [1, 3]) == Balance(
        Spread(0, 700 * MIB), Spread(300 * MIB, 700 * MIB)
    )


def test_unknown_amounts_are_those_of_the_median() -> None:
    """A new partition has that of its topic, another topic that of all topics: 500 and 0 MiB."""
    leaders, _ = ReplicaWeights(STATE, "size").add_amounts(
        [("heavy", ((1,), (2,), (3,))), ("other", ((4,),))]
    )
    assert leaders == {1: 700 * MIB, 2: 300 * MIB, 3: 500 * MIB, 4: 250 * MIB}


def test_topics_of_unknown_size_are_counted() -> None:
    state = cluster(HEAVY, LIGHT, topic(name="bare"), topic(name="__own", internal=True))
    assert ReplicaWeights(state, "size").unknown == 1
    assert ReplicaWeights(state, "rate").unknown == 3


def test_a_plan_by_size_shows_the_bytes_of_brokers_before_and_after() -> None:
    wished = [spec("new", partitions=1, replication_factor=1)]
    made = plan(wished, STATE, placing=Placing(weigh="size"))
    assert made.weighed == Weighed(
        "size",
        Balance(Spread(0, 700 * MIB), Spread(300 * MIB, 1000 * MIB)),
        Balance(Spread(250 * MIB, 700 * MIB), Spread(550 * MIB, 1000 * MIB)),
    )
    said = (
        "leaders 0 B..700.0 MiB → 250.0 MiB..700.0 MiB, "
        "replicas 300.0 MiB..1000.0 MiB → 550.0 MiB..1000.0 MiB"
    )
    estimated = "per broker (estimated for new partitions)"
    assert f"\nby size: {said} {estimated}\n" in render_text(made)
    assert f"\nBy size: {said} {estimated}.<br>\n" in render_markdown(made)
    assert decode_plan(encode_plan(made)) == made


def test_a_plan_by_count_shows_no_bytes() -> None:
    made = plan([spec("new", partitions=1, replication_factor=1)], STATE)
    assert made.weighed is None
    assert "by size" not in render_text(made)


def test_an_explanation_shows_the_bytes_of_each_broker_and_rack() -> None:
    state = replace(STATE, brokers=brokers("a", "a", "b"))
    made = plan(
        [spec("new", partitions=1, replication_factor=1)], state, placing=Placing(weigh="size")
    )
    lines = render_matrix(build_matrix("new", made, state)).splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("by size"))
    assert [" ".join(line.split()) for line in lines[start + 1 : start + 7]] == [
        "leaders before 700.0 MiB 300.0 MiB │ 0 B",
        "leaders after 700.0 MiB 300.0 MiB │ 250.0 MiB",
        "by rack 1000.0 MiB │ 0 B → 250.0 MiB",
        "replicas before 700.0 MiB 1000.0 MiB │ 300.0 MiB",
        "replicas after 700.0 MiB 1000.0 MiB │ 550.0 MiB",
        "by rack 1.7 GiB │ 300.0 MiB → 550.0 MiB",
    ]


def test_an_explanation_without_room_for_brokers_shows_the_bytes_of_each_rack() -> None:
    state = replace(STATE, brokers=brokers("a", "a", "b"))
    made = plan(
        [spec("new", partitions=1, replication_factor=1)], state, placing=Placing(weigh="size")
    )
    text = render_matrix(build_matrix("new", made, state), width=50)
    assert "700.0 MiB..1000.0 MiB each" in " ".join(text.split())
