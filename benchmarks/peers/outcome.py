"""What became of the cluster, in a few words, from its pictures before and after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from reconciler.units import format_duration

# A recorded picture: {"topics": {name: {"partitions", "config", "records"}}, "racks": {id: rack}}.
Shot = dict[str, Any]


def tell(watch: str, before: Shot, after: Shot) -> str:
    """Say what an edit is watched for, and whether anything changed at all."""
    words = {
        "balance": _balance,
        "idle": _idle,
        "records": _records,
        "replicas": _replicas,
        "config": _config,
    }
    same = " (as before)" if before["topics"] == after["topics"] else ""
    return words[watch](after) + same


def _balance(shot: Shot) -> str:
    topics = shot["topics"].values()
    racks = shot["racks"]
    leaders = _leaders(topics, racks)
    idle = sum(count == 0 for count in leaders.values())
    lead_none = f", {idle} brokers lead none" if idle else ""
    crowded = sum(len({racks[str(b)] for b in row}) < 3 for t in topics for row in t["partitions"])
    split = f"{crowded} partitions not in 3 racks" if crowded else "each in 3 racks"
    return f"{_span(leaders)} leaders per broker{lead_none}; {split}"


def _idle(shot: Shot) -> str:
    topics = shot["topics"].values()
    idle = sum(0 in _leaders([topic], shot["racks"]).values() for topic in topics)
    counts = {len(topic["partitions"]) for topic in topics}
    grown = f"{'/'.join(map(str, sorted(counts)))} partitions"
    leaders = _span(_leaders(topics, shot["racks"]))
    return (
        f"{grown}; {idle} of {len(topics)} topics leave a broker idle; {leaders} leaders per broker"
    )


def _records(shot: Shot) -> str:
    topic = shot["topics"].get("orders")
    if topic is None:
        return "topic and records are gone"
    retention = f", {_retention(topic['config'])}" if "retention.ms" in topic["config"] else ""
    return f"{len(topic['partitions'])} partitions, {topic['records']} records{retention}"


def _replicas(shot: Shot) -> str:
    topic = shot["topics"]["orders"]
    factors = sorted({len(row) for row in topic["partitions"]})
    leaders = _span(_leaders([topic], shot["racks"]))
    return f"replication {'/'.join(map(str, factors))}, {leaders} leaders per broker"


def _config(shot: Shot) -> str:
    config = shot["topics"]["orders"]["config"]
    others = [f"{k} {v}" for k, v in sorted(config.items()) if k != "retention.ms"]
    return ", ".join([_retention(config), *others])


def _retention(config: Mapping[str, str]) -> str:
    return f"retention {format_duration(int(config['retention.ms']))}"


def _leaders(topics: Sequence[Mapping[str, Any]], brokers: Mapping[str, str]) -> dict[int, int]:
    """Count preferred leaders for every broker, also for those without one."""
    led = Counter(row[0] for topic in topics for row in topic["partitions"])
    return {int(broker): led[int(broker)] for broker in brokers}


def _span(counts: Mapping[int, int]) -> str:
    low, high = min(counts.values()), max(counts.values())
    return str(low) if low == high else f"{low}..{high}"
