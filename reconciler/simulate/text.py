"""Simulations as tables for people, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from math import ceil
from typing import Any

from reconciler.model.moves import LoadKind
from reconciler.model.plan import Spread
from reconciler.placement.loss import Loss
from reconciler.placement.measure import Quality
from reconciler.placement.weigh import name_estimates
from reconciler.simulate.cluster import SimulatedCluster, WantedTopic
from reconciler.simulate.compare import KAFKA, Comparison, CountResult
from reconciler.simulate.figures import Figures
from reconciler.styling import set_groups
from reconciler.units import AMOUNTS, approximate_size, count

Column = tuple[str, str, str]
"""A column: its group, its name, and its figure."""

_BALANCE: tuple[Column, ...] = (
    ("leaders max − min", "topic", "topic_leaders"),
    ("leaders max − min", "cluster", "cluster_leaders"),
    ("replicas max − min", "topic", "topic_replicas"),
    ("replicas max − min", "cluster", "cluster_replicas"),
)
_RACKS: tuple[Column, ...] = (("racks", "violations", "rack_violations"),)
_WEIGHT: tuple[Column, ...] = (
    ("by {} max − min", "leaders", "weight_leaders"),
    ("by {} max − min", "replicas", "weight_replicas"),
)
_IF_LOST: tuple[Column, ...] = (
    ("if a broker is lost", "taken over", "heir_if_broker"),
    ("if a broker is lost", "under min", "under_if_broker"),
    ("if a rack is lost", "taken over", "heir_if_rack"),
    ("if a rack is lost", "under min", "under_if_rack"),
)
_LOST: tuple[Column, ...] = (
    ("after the losses", "taken over", "lost_heir"),
    ("after the losses", "under min", "under_now"),
    ("after the losses", "offline", "offline_now"),
)


def render_comparison(comparisons: Sequence[Comparison]) -> str:
    """Render strategies as the rows of two tables: the balance, and what losses do.

    Returns: lines that end in a newline.
    """
    simulated = comparisons[0].simulated
    lost = bool(simulated.losses)
    by = simulated.weights.by
    weight = tuple((c[0].format(by), *c[1:]) for c in _list_weights(by))
    losses = (*_RACKS, *(_LOST if lost else _IF_LOST))
    if not lost and not any(broker.rack for broker in simulated.brokers):
        losses = tuple(c for c in losses if c[0] not in ("racks", "if a rack is lost"))
    rows: list[tuple[str, Figures]] = []
    for one in comparisons:
        if one.strategy == KAFKA and len(one.outcomes) > 1:
            rows += [(f"kafka, mean of {len(one.outcomes)}", one.mean), ("kafka, worst", one.worst)]
        else:
            rows.append((one.strategy, one.mean))
    say = {key: AMOUNTS[by] for _, _, key in weight}
    tables: list[str] = []
    for columns in ((*_BALANCE, *weight), losses):
        cells = [
            [name, *(say.get(key, _number)(getattr(f, key)) for _, _, key in columns)]
            for name, f in rows
        ]
        heads = [("", "strategy"), *((group, name) for group, name, _ in columns)]
        tables += [*set_groups(heads, cells), ""]
    return "\n".join([describe_simulated(simulated), "", *tables, *_legend(simulated)]) + "\n"


def _list_weights(by: LoadKind) -> tuple[Column, ...]:
    """Return the columns for the amount by which the cluster is balanced."""
    leaders, replicas = _WEIGHT
    return (
        *([leaders] if by.is_on_leaders else []),
        *([replicas] if by.is_on_replicas else []),
    )


def _say_copied(copied: tuple[int, int | None]) -> str:
    """Say what a rebalance copies."""
    replicas, size = copied
    if not replicas:
        return "rebalance: nothing is copied"
    amount = "of unknown size" if size is None else approximate_size(size)
    are = "is" if replicas == 1 else "are"
    return f"rebalance: {count(replicas, 'replica')} {are} copied, {amount}"


def _legend(simulated: SimulatedCluster) -> Iterator[str]:
    yield from map(_say_copied, simulated.copied)
    lost = bool(simulated.losses)
    over = "the living brokers" if lost else "the brokers"
    yield f"topic: the most uneven one on {over}; cluster: all topics together"
    brokers = len(simulated.living)
    partitions = sum(len(topic.assignment) for topic in simulated.topics.values())
    # Each broker leads its part, and each of the others takes over an equal part of that.
    ideal = ceil(partitions / (brokers * (brokers - 1))) if brokers > 1 else 0
    yield "taken over: the most leaders that one broker takes over"
    if not lost:
        yield f"  ({ideal:,} of a broker's if they spread evenly)"
    weights = simulated.weights
    if weights.by is not LoadKind.COUNT:
        estimated = name_estimates(weights.by, weights.unknown)
        yield f"by {weights.by}: all topics together; {estimated}"
    yield "under min: partitions that then refuse acks=all writes, by min.insync.replicas"


def describe_simulated(simulated: SimulatedCluster) -> str:
    """Return one line of counts for a cluster: brokers, racks, topics, partitions, replicas."""
    rows = [row for topic in simulated.topics.values() for row in topic.assignment]
    held = ", ".join(
        (
            count(len(simulated.topics), "topic"),
            count(len(rows), "partition"),
            count(sum(map(len, rows)), "replica"),
        )
    )
    return f"{describe_brokers(simulated)} · {held}"


def describe_brokers(simulated: SimulatedCluster) -> str:
    """Return the number of brokers, racks and dead brokers."""
    racks = len({broker.rack for broker in simulated.brokers} - {None})
    lost = len(simulated.brokers) - len(simulated.living)
    where = f" in {count(racks, 'rack')}" if racks else ""
    gone = f", {lost} of them lost" if lost else ""
    return f"{count(len(simulated.brokers), 'broker')}{where}{gone}"


def render_counts(
    wanted: WantedTopic, strategy: str, simulated: SimulatedCluster, results: Sequence[CountResult]
) -> str:
    """Render the partition counts of a topic, one per line; the requested one is marked."""
    heads = [
        ("", "partitions"),
        ("a broker", "leaders"),
        ("a broker", "replicas"),
        ("one lost", "taken over"),
        ("leaders max − min", strategy),
        ("leaders max − min", KAFKA),
        ("leaders max − min", "worst"),
        ("the same", "on each"),
    ]
    cells = [
        [
            f"{'→ ' if one.partitions == wanted.partitions else ''}{one.partitions:,}",
            _spread(one.balance.leaders),
            _spread(one.balance.replicas),
            f"{one.worst_heir:,}",
            f"{one.balance.leaders.skew:,}",
            _number(one.kafka_mean),
            f"{one.kafka_worst:,}",
            "both" if " and " in one.evenness else one.evenness,
        ]
        for one in results
    ]
    other = len(simulated.topics.keys() - {wanted.topic})
    title = (
        f"{wanted.topic} on {describe_brokers(simulated)}, next to {count(other, 'other topic')}"
    )
    legend = (
        "one lost: what one broker takes over at most if another is lost",
        f"{KAFKA}: the mean of random placements as Kafka makes them; worst: the worst",
        "the same on each: what is equal on every broker; both: leaders and replicas",
    )
    return "\n".join([title, "", *set_groups(heads, cells), "", *legend]) + "\n"


def _spread(spread: Spread) -> str:
    return f"{spread.most:,}" if spread.skew == 0 else f"{spread.least:,}..{spread.most:,}"


def _number(value: float) -> str:
    """Format a number: integers as they are, means with one decimal."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def list_comparison(comparisons: Sequence[Comparison]) -> str:
    """Return strategies as JSON: figures, and for one outcome every topic and every loss."""
    answer = {
        "format_version": "1.0",
        "strategies": [_list_strategy(one) for one in comparisons],
    }
    return json.dumps(answer, indent=2, ensure_ascii=False) + "\n"


def _list_strategy(one: Comparison) -> dict[str, Any]:
    listed: dict[str, Any] = {
        "strategy": one.strategy,
        "outcomes": len(one.outcomes),
        "mean": _figures(one, one.mean),
        "worst": _figures(one, one.worst),
    }
    if len(one.outcomes) == 1:
        (measured,) = one.outcomes
        listed["cluster"] = _quality(measured.cluster)
        listed["topics"] = {name: _quality(each) for name, each in measured.topics.items()}
        listed["if_broker_is_lost"] = _losses(measured.brokers)
        listed["if_rack_is_lost"] = _losses(measured.racks)
        listed["losses"] = [_loss(loss) for loss in one.simulated.losses]
    copied = [{"replicas": each, "bytes": size} for each, size in one.simulated.copied]
    if copied:
        listed["rebalances"] = copied
    return listed


def _figures(one: Comparison, figures: Figures) -> dict[str, Any]:
    """Return figures as JSON, without those by bytes or traffic that the balance is not by."""
    listed = asdict(figures)
    weights = {key for _, _, key in _list_weights(one.simulated.weights.by)}
    return {k: v for k, v in listed.items() if k in weights or not k.startswith("weight_")}


def _quality(quality: Quality) -> dict[str, Any]:
    return {**asdict(quality), "misplaced_share": quality.misplaced_share}


def _losses(losses: Mapping[Any, Loss]) -> dict[str, Any]:
    return {str(name): _loss(loss) for name, loss in losses.items()}


def _loss(loss: Loss) -> dict[str, Any]:
    return {
        "brokers": sorted(loss.brokers),
        "leaders_moved": loss.leaders_moved,
        "worst_heir": loss.worst_heir,
        "heirs": {str(broker): moved for broker, moved in loss.heirs.items()},
        "under_min_in_sync": loss.under_min_in_sync,
        "offline": loss.offline,
    }


def list_counts(topic: str, strategy: str, results: Iterable[CountResult]) -> str:
    """Return a topic's partition counts as JSON."""
    counts = [{**asdict(one), "same_on_every_broker": one.evenness} for one in results]
    answer = {
        "format_version": "1.0",
        "topic": topic,
        "strategy": strategy,
        "counts": counts,
    }
    return json.dumps(answer, indent=2, ensure_ascii=False) + "\n"
