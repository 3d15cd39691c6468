"""Law: the bands of an audit are those of a rebalance, also where amounts are unknown."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
from shorthand import spec
from small_fleets import make_specs, make_state

from reconciler.api.planning import load_estate
from reconciler.diff.brokers import eligible_brokers
from reconciler.errors import UsageError
from reconciler.fleet.audit.audit import audit_fleet
from reconciler.fleet.audit.topics import make_expectations
from reconciler.model.cluster import Broker, ClusterState, LogDirectory, TopicState
from reconciler.model.moves import LoadAim, LoadKind
from reconciler.moves.by_load import balance_by_load
from reconciler.moves.differences import MoveDiff
from reconciler.spec.entry import ClusterEntry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.fleet
Bands = dict[tuple[str, str, int], tuple[int, int, bool]]
RACKLESS = "b"


def draw_cluster(draw: Random) -> ClusterState:
    """Draw a cluster: racks of any size, brokers that take nothing, amounts that are not known."""
    ids = range(1, draw.randint(3, 9))
    racks = draw.choice([("a", "b", "c"), ("a", "a", "b"), (None,)])
    nodes = [
        Broker(
            broker,
            draw.choice(racks),
            alive=draw.random() < 0.9,
            cordoned=draw.random() < 0.1,
        )
        for broker in ids
    ]
    topics = {}
    for name in ("a", RACKLESS, "c", "__internal")[: draw.randint(2, 4)]:
        rows = tuple(
            tuple(draw.sample([*ids, 98], draw.randint(1, min(4, len(ids)))))
            for _ in range(draw.randint(1, 9))
        )
        known = {
            field: ()
            if draw.random() < 0.3
            else tuple(-1 if draw.random() < 0.2 else draw.randrange(2**40) for _ in rows)
            for field in ("size_bytes", "write_bytes_per_s")
        }
        known = {field: of if any(n >= 0 for n in of) else () for field, of in known.items()}
        internal = name.startswith("__")
        topics[name] = TopicState(name, f"id-{name}", rows, internal=internal, **known)
    directories = {
        broker: tuple(
            LogDirectory(path, draw.choice((2**40, 2**41)), 2**39)
            for path in "xy"[: draw.randint(1, 2)]
        )
        for broker in ids
        if draw.random() < 0.97
    }
    return ClusterState("id", tuple(nodes), topics, directories=directories)


def judge(entry: ClusterEntry, state: ClusterState) -> Bands:
    """Return what a rebalance in which nothing may move says of the brokers."""
    able = {b.id for b in eligible_brokers(state.brokers, entry.exclude_brokers)}
    rows = state.topics[RACKLESS].assignment
    wished = spec(RACKLESS, rack_aware=False)
    diff = MoveDiff(wished, state.topics[RACKLESS], rows, dict(enumerate(rows)), None, ())
    found: Bands = {}
    for kind in (LoadKind.DISK, LoadKind.WRITE):
        try:
            aim = LoadAim((kind,), entry.balance.within_percent)
            _, balance, _ = balance_by_load(entry, [diff], state, aim, able)
        except UsageError:  # no amount is known
            continue
        band = balance.bands[0]
        for each in band.brokers:
            key = entry.name, str(kind), each.broker
            found[key] = (each.before, each.share, each.broker in band.outside)
    return found


@pytest.mark.parametrize("count", [30, pytest.param(300, marks=pytest.mark.slow)])
def test_the_bands_of_an_audit_are_those_of_a_rebalance(
    spark: SparkSession, tmp_path: Path, count: int
) -> None:
    draw = Random(7)
    states = {f"c{number}": draw_cluster(draw) for number in range(count)}
    lines = []
    for name, state in states.items():
        weighed = f"capacity: {{{state.brokers[0].id}: 3}}, " if draw.random() < 0.2 else ""
        excluded = [draw.choice(state.brokers).id] if draw.random() < 0.3 else []
        within = draw.choice((5, 10, 40))
        aim = f"balance: {{by: [disk, write], within: {within}%}}"
        lines.append(f"  {name}: {{{weighed}exclude_brokers: {excluded}, {aim}}}")
    (tmp_path / "clusters.yaml").write_text("\n".join(["version: 1", "clusters:", *lines, ""]))
    estate = load_estate(tmp_path)
    expectations = make_expectations(spark, estate)
    specs = make_specs(spark, {name: [spec(RACKLESS, rack_aware=False)] for name in states})
    audit = audit_fleet(make_state(spark, states), specs, expectations)
    # A broker without a share that holds nothing is in no plan.
    found = {
        (row["cluster"], row["load"], row["broker"]): (row["amount"], row["share"], row["outside"])
        for row in audit.bands.collect()
        if row["share"]
    }
    expected: Bands = {}
    for name, state in states.items():
        if eligible_brokers(state.brokers, estate.clusters[name].exclude_brokers):
            expected |= judge(estate.clusters[name], state)
    expected = {key: band for key, band in expected.items() if band[1]}
    assert found == expected
    assert {outside for *_, outside in found.values()} == {True, False}
    assert len({load for _, load, _ in found}) == 2
    findings = audit.findings.where("rule IN ('broker-disk-uneven', 'broker-writes-uneven')")
    assert findings.count() == audit.bands.where("outside").count()
