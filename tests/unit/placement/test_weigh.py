"""Scales: what a replica and a leader weigh, by count, disk, write or read."""

from __future__ import annotations

from dataclasses import replace

import pytest
from shorthand import brokers, cluster, plan, spec, topic

from reconciler.changes.build import Placing
from reconciler.changes.plan import plan_cluster
from reconciler.errors import Location, UsageError
from reconciler.model.moves import LoadAim, LoadKind
from reconciler.model.plan import Balance, Spread, Weighed
from reconciler.placement.weigh import ReplicaWeights
from reconciler.planfile.codec import decode_plan, encode_plan
from reconciler.show.explain.matrix import build_matrix
from reconciler.show.explain.text import render_matrix
from reconciler.show.markdown.page import render_markdown
from reconciler.show.text import render_text
from reconciler.spec.entry import ClusterEntry

MIB, KIB = 2**20, 2**10
HEAVY = topic("1,2 2,3", "heavy", size_bytes=(700 * MIB, 300 * MIB))
LIGHT = topic("3,1", "light", size_bytes=(0,))
STATE = cluster(HEAVY, LIGHT, nodes=brokers(None, None, None))
LIVE = [(name, found.assignment) for name, found in STATE.topics.items()]


def test_by_count_every_replica_weighs_one() -> None:
    leaders, replicas = ReplicaWeights(STATE).weigh_load([*LIVE, ("new", ((1, 2),))])
    assert (leaders, replicas) == ({1: 2, 2: 1, 3: 1}, {1: 3, 2: 3, 3: 2})
    assert ReplicaWeights(STATE).weigh_topic("heavy") == (1, 1)


def test_by_disk_a_replica_weighs_its_mebibytes_and_at_least_one() -> None:
    leaders, replicas = ReplicaWeights(STATE, LoadKind.DISK).weigh_load(LIVE)
    assert leaders == {1: 1, 2: 1, 3: 1}
    assert replicas == {1: 701, 2: 1000, 3: 301}


def test_by_write_leaders_weigh_as_their_replicas_do() -> None:
    loaded = topic("1,2 2,3", write_bytes_per_s=(7 * KIB, 3 * KIB))
    weights = ReplicaWeights(cluster(loaded), LoadKind.WRITE)
    leaders, replicas = weights.weigh_load([(loaded.name, loaded.assignment)])
    assert (leaders, replicas) == ({1: 7, 2: 3}, {1: 7, 2: 10, 3: 3})
    assert weights.weigh_topic(loaded.name) == (5, 5)


def test_by_read_only_leaders_weigh_with_what_their_followers_fetch() -> None:
    loaded = topic(
        "1,2 2,3,1", read_bytes_per_s=(7 * KIB, 3 * KIB), write_bytes_per_s=(-1, 2 * KIB)
    )
    weights = ReplicaWeights(cluster(loaded), LoadKind.READ)
    leaders, replicas = weights.weigh_load([(loaded.name, loaded.assignment)])
    assert (leaders, replicas) == ({1: 7, 2: 7}, {1: 2, 2: 2, 3: 1})
    assert weights.weigh_topic(loaded.name) == (7, 1)


def test_a_partition_of_unknown_size_weighs_what_the_others_of_its_topic_do() -> None:
    part = topic("1 2 3", "part", size_bytes=(700 * MIB, -1, 300 * MIB))
    weights = ReplicaWeights(cluster(part), LoadKind.DISK)
    _, replicas = weights.weigh_load([("part", part.assignment)])
    assert replicas == {1: 700, 2: 500, 3: 300}
    assert weights.add_amounts([("part", part.assignment)])[1][2] == 500 * MIB
    assert weights.unknown == 0


def test_a_new_partition_weighs_what_the_others_of_its_topic_do() -> None:
    weights = ReplicaWeights(STATE, LoadKind.DISK)
    assert weights.weigh_topic("heavy") == (1, 500)
    assert weights.weigh_topic("unheard-of") == (1, round((500 + 1) / 2))


def test_nothing_to_weigh_by_is_noticed() -> None:
    assert ReplicaWeights(STATE, LoadKind.WRITE).is_blank
    assert not ReplicaWeights(STATE, LoadKind.DISK).is_blank
    assert not ReplicaWeights(cluster()).is_blank


def test_a_plan_by_disk_spares_the_broker_with_the_largest_load() -> None:
    wished = [spec("new", partitions=1, replication_factor=2)]
    after = plan(wished, STATE, placing=Placing(by=LoadKind.DISK)).topics[0].after
    assert after is not None
    assert after.assignment == ((1, 3),)


def test_amounts_are_not_rounded_to_weights() -> None:
    weights = ReplicaWeights(STATE, LoadKind.DISK)
    leaders, replicas = weights.add_amounts(LIVE)
    assert leaders == {1: 1, 2: 1, 3: 1}
    assert replicas == {1: 700 * MIB, 2: 1000 * MIB, 3: 300 * MIB}
    assert weights.measure(LIVE, [1, 3]) == Balance(Spread(1, 1), Spread(300 * MIB, 700 * MIB))


def test_unknown_amounts_are_those_of_the_median() -> None:
    """A new partition has that of its topic, another topic that of all topics: 500 and 0 MiB."""
    _, replicas = ReplicaWeights(STATE, LoadKind.DISK).add_amounts(
        [("heavy", ((1,), (2,), (3,))), ("other", ((4,),))]
    )
    assert replicas == {1: 700 * MIB, 2: 300 * MIB, 3: 500 * MIB, 4: 250 * MIB}


def test_topics_of_unknown_size_are_counted() -> None:
    state = cluster(HEAVY, LIGHT, topic(name="bare"), topic(name="__own", internal=True))
    assert ReplicaWeights(state, LoadKind.DISK).unknown == 1
    assert ReplicaWeights(state, LoadKind.WRITE).unknown == 3


def test_a_plan_by_disk_shows_the_bytes_of_brokers_before_and_after() -> None:
    wished = [spec("new", partitions=1, replication_factor=2)]
    made = plan(wished, STATE, placing=Placing(by=LoadKind.DISK))
    assert made.weighed == Weighed(
        LoadKind.DISK,
        Balance(Spread(1, 1), Spread(300 * MIB, 1000 * MIB)),
        Balance(Spread(1, 2), Spread(550 * MIB, 1000 * MIB)),
    )
    said = "replicas 300.0 MiB..1000.0 MiB → 550.0 MiB..1000.0 MiB"
    estimated = "per broker (estimated for new partitions)"
    assert f"\nby disk: {said} {estimated}\n" in render_text(made)
    assert f"\nBy disk: {said} {estimated}.<br>\n" in render_markdown(made)
    assert decode_plan(encode_plan(made)) == made


def test_a_plan_by_count_shows_no_bytes() -> None:
    made = plan([spec("new", partitions=1, replication_factor=2)], STATE)
    assert made.weighed is None
    assert "by disk" not in render_text(made)


def test_an_explanation_shows_the_bytes_of_each_broker_and_rack() -> None:
    state = replace(STATE, brokers=brokers("a", "a", "b"))
    made = plan(
        [spec("new", partitions=1, replication_factor=2)],
        state,
        placing=Placing(by=LoadKind.DISK),
    )
    lines = render_matrix(build_matrix("new", made, state)).splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("by disk"))
    assert [" ".join(line.split()) for line in lines[start + 1 : start + 4]] == [
        "replicas before 700.0 MiB 1000.0 MiB │ 300.0 MiB",
        "replicas after 950.0 MiB 1000.0 MiB │ 550.0 MiB",
        "by rack 1.7 GiB → 1.9 GiB │ 300.0 MiB → 550.0 MiB",
    ]


def test_an_explanation_without_room_for_brokers_shows_the_bytes_of_each_rack() -> None:
    state = replace(STATE, brokers=brokers("a", "a", "b"))
    made = plan(
        [spec("new", partitions=1, replication_factor=2)],
        state,
        placing=Placing(by=LoadKind.DISK),
    )
    text = render_matrix(build_matrix("new", made, state), width=50)
    assert "950.0 MiB..1000.0 MiB each" in " ".join(text.split())


def test_balance_of_the_cluster_decides_unless_it_begins_with_traffic() -> None:
    for by, weighed in (
        ((LoadKind.DISK, LoadKind.WRITE), LoadKind.DISK),
        ((LoadKind.COUNT, LoadKind.DISK), LoadKind.COUNT),
        ((LoadKind.WRITE, LoadKind.DISK), LoadKind.COUNT),
        ((LoadKind.READ,), LoadKind.COUNT),
    ):
        entry = ClusterEntry("prod", Location("clusters.yaml", 3), balance=LoadAim(by))
        made = plan_cluster(entry, [spec("new", partitions=1, replication_factor=2)], STATE)
        assert (made.weighed.by if made.weighed else LoadKind.COUNT) is weighed


def test_without_sizes_a_plan_by_disk_counts_and_says_so_where_it_places() -> None:
    entry = ClusterEntry("prod", Location("clusters.yaml", 3), balance=LoadAim((LoadKind.DISK,)))
    state = cluster(topic("1,2 2,3", "bare"), nodes=brokers(None, None, None))
    new = spec("new", partitions=1, replication_factor=2)
    made = plan_cluster(entry, [new], state)
    counted = plan_cluster(replace(entry, balance=LoadAim()), [new], state)
    assert made.topics == counted.topics
    (note,) = set(made.notes) - set(counted.notes)
    assert str(note) == (
        "clusters.yaml:3:1: no size is known of any partition, so new replicas are balanced by "
        "count, and not by disk as balance of prod says; plan on a snapshot that has size_bytes "
        "[sizes-unseen]"
    )
    unseen = [one for one in plan_cluster(entry, [], state).notes if one.rule == "sizes-unseen"]
    assert unseen == []
    with pytest.raises(UsageError, match="no size is known of any partition"):
        plan_cluster(entry, [new], state, by=LoadKind.DISK)
