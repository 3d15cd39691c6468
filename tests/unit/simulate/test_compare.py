"""Comparisons: each strategy on the same cluster, and Kafka's random placement, drawn often."""

from __future__ import annotations

import pytest
from shorthand import brokers, cluster, topic

from reconciler.errors import UsageError
from reconciler.model.moves import LoadKind
from reconciler.model.plan import Balance, Spread
from reconciler.placement.problem import Problem, Wish
from reconciler.placement.strategies import STRATEGIES as PLACING
from reconciler.placement.strategies import place_replicas
from reconciler.simulate.cluster import LoseBroker, LoseRack, Place, SimulatedCluster, WantedTopic
from reconciler.simulate.compare import (
    KAFKA,
    STRATEGIES,
    CountResult,
    choose_placer,
    compare_counts,
    compare_strategies,
)
from reconciler.simulate.text import list_comparison, render_comparison

NINE = SimulatedCluster(brokers(*"abcabcabc"))
ORDERS = Place((WantedTopic("orders", 30, 3, 2),))


def test_every_strategy_is_compared_with_kafka() -> None:
    compared = compare_strategies(NINE, [ORDERS], draws=5)
    assert [one.strategy for one in compared] == [*PLACING, KAFKA]
    assert [len(one.outcomes) for one in compared] == [*[1] * len(PLACING), 5]
    assert STRATEGIES[-1] == KAFKA


def test_no_plan_can_be_made_with_kafka() -> None:
    assert KAFKA not in PLACING
    with pytest.raises(KeyError):
        place_replicas(Problem(NINE.brokers, {}, {}, (Wish("t", (), 1, 1),)), KAFKA)


def test_random_placements_are_those_of_the_real_class() -> None:
    """Measured there: 30 partitions on 3 times 3 brokers, leaders' max − min 7.2, worst 10."""
    (kafka,) = compare_strategies(NINE, [ORDERS], [KAFKA], draws=200)
    assert kafka.mean.topic_leaders == pytest.approx(7.2, abs=0.3)
    assert kafka.worst.topic_leaders == 10


def test_the_same_question_has_the_same_answer() -> None:
    assert compare_strategies(NINE, [ORDERS]) == compare_strategies(NINE, [ORDERS])


def test_figures_before_a_loss_are_of_the_worst_that_could_be_lost() -> None:
    simulated = SimulatedCluster(brokers("a", "b", "b"))
    step = Place((WantedTopic("t", 4, 2, 2, rows=((1, 2), (1, 2), (1, 3), (2, 3))),))
    (one,) = compare_strategies(simulated, [step], ["striped"])
    found = one.mean
    assert (found.topic_leaders, found.topic_replicas, found.rack_violations) == (3, 1, 1)
    assert (found.heir_if_broker, found.under_if_broker, found.offline_if_broker) == (2, 3, 0)
    assert (found.heir_if_rack, found.under_if_rack, found.offline_if_rack) == (2, 4, 1)
    assert (found.lost_heir, found.under_now, found.offline_now) == (0, 0, 0)
    assert (found.misplaced_share, found.replica_sets) == (0.25, 3)


def test_figures_after_a_loss_are_of_what_is_left() -> None:
    simulated = SimulatedCluster(brokers("a", "b", "b"))
    step = Place((WantedTopic("t", 4, 2, 2, rows=((1, 2), (1, 2), (1, 3), (2, 3))),))
    (one,) = compare_strategies(simulated, [step, LoseBroker(1)], ["striped"])
    assert (one.mean.topic_leaders, one.mean.topic_replicas) == (2, 1)  # 2 leads 3, 3 leads 1
    assert (one.mean.lost_heir, one.mean.under_now, one.mean.offline_now) == (2, 3, 0)
    (both,) = compare_strategies(simulated, [step, LoseRack("b")], ["striped"])
    assert (both.mean.offline_now, both.mean.under_now) == (1, 4)


def test_where_nothing_is_placed_there_is_one_answer() -> None:
    simulated = NINE.take(ORDERS, lambda problem, _: place_replicas(problem).rows)
    (one,) = compare_strategies(simulated, [LoseBroker(1)])
    assert (one.strategy, len(one.outcomes)) == ("as it is", 1)


def test_the_counts_that_divide_by_the_brokers_come_out_even() -> None:
    results = list(compare_counts(NINE, WantedTopic("t", 1, 3), range(1, 28), "striped", 2))
    assert [one.partitions for one in results] == list(range(1, 28))
    even = [one.partitions for one in results if one.evenness == "leaders and replicas"]
    assert even == [9, 18, 27]
    assert CountResult(3, Balance(Spread(0, 1), Spread(3, 3)), 1, 2, 3).evenness == "replicas"
    assert max(one.kafka_worst for one in results) > 1


def test_an_existing_topic_is_grown_to_each_count() -> None:
    by_hand = Place((WantedTopic("t", 2, 1, rows=((1,), (1,))),))
    simulated = SimulatedCluster(brokers("a", "a")).take(by_hand, choose_placer("striped"))
    results = list(compare_counts(simulated, WantedTopic("t", 2), range(2, 5), "striped", 1))
    assert results[0].balance.leaders.skew == 2
    assert [one.balance.leaders.least + one.balance.leaders.most for one in results] == [2, 3, 4]


SIZED = cluster(
    topic("1 1", "archive", size_bytes=(500 * 2**20, 400 * 2**20)),
    topic("2 3 3 3", "clicks", size_bytes=(2**20,) * 4),
    topic("2", "bare"),
    nodes=brokers(None, None, None),
)


def test_by_disk_the_broker_with_the_least_load_is_chosen_and_bytes_are_shown() -> None:
    """Broker 3 has the most partitions, and the fewest bytes."""
    step = Place((WantedTopic("new", 1, 2),))
    by_disk = SimulatedCluster.of(SIZED, by=LoadKind.DISK)
    (weighed,) = compare_strategies(by_disk, [step], ["optimal"])
    (counted,) = compare_strategies(SimulatedCluster.of(SIZED), [step], ["optimal"])
    assert weighed.simulated.topics["new"].assignment == ((2, 3),)
    assert counted.simulated.topics["new"].assignment in (((1, 2),), ((2, 1),))
    assert weighed.mean.weight_replicas == (900 - 228.5) * 2**20
    lines = render_comparison([weighed]).splitlines()
    assert "by disk max − min" in lines[2]
    assert "671.5 MiB" in lines[4]
    assert lines[-2] == (
        "by disk: all topics together; estimated for new partitions and 1 topic of unknown size"
    )
    assert '"weight_replicas": 704118784' in list_comparison([weighed])
    assert "by disk" not in render_comparison([counted])
    assert "weight" not in list_comparison([counted])


def test_a_dead_broker_leads_no_bytes() -> None:
    state = cluster(
        topic("1,2", size_bytes=(2**20,)),
        nodes=brokers(None, None),
    )
    (compared,) = compare_strategies(SimulatedCluster.of(state, by=LoadKind.DISK), [LoseBroker(1)])
    assert compared.mean.weight_replicas == 0


def test_unknown_sizes_are_an_error_of_one_line() -> None:
    said = "no write rate is known of any partition; use --against with a snapshot that has write_"
    with pytest.raises(UsageError, match=said):
        SimulatedCluster.of(SIZED, by=LoadKind.WRITE)
