"""The health of one cluster, counted from its state.

The same definition as `reconciler.fleet.health`, which counts rows of many clusters on Spark; a
test compares the two. Counts are of all topics, internal ones too.
"""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.model.cluster import ClusterState, TopicState
from reconciler.model.moves import MIN_INSYNC

PROBLEMS = ("offline", "unwritable", "under_replicated", "brokers_down", "directories_offline")
"""What is 0 on a healthy cluster, worst first. The first three count partitions."""


def count_problems(state: ClusterState) -> Mapping[str, int]:
    """Count the health problems of a cluster. An unknown leader or replica is no problem.

    min.insync.replicas is that of the topic, else the default of the cluster, else Kafka's 1. Of a
    topic whose configs were not read, only the default is known. Log directories count where they
    were read.
    """
    counts = dict.fromkeys(PROBLEMS, 0)
    default = _read_count(state.config_defaults.get(MIN_INSYNC)) or 1
    for topic in state.topics.values():
        for problem in _list_problems(topic, default):
            counts[problem] += 1
    counts["brokers_down"] = sum(not broker.alive for broker in state.brokers)
    counts["directories_offline"] = sum(map(len, state.failed_directories.values()))
    return counts


def _list_problems(topic: TopicState, default: int) -> list[str]:
    """List the problems of the partitions of a topic; a partition can have two."""
    found = []
    needed = _read_count(topic.config.get(MIN_INSYNC)) or default
    for number, row in enumerate(topic.assignment):
        offline = bool(topic.leaders) and topic.leaders[number] < 0
        if offline:
            found.append("offline")
        # New replicas of a partition that moves are not in sync yet: this is no problem.
        if not topic.in_sync or number in topic.reassigning:
            continue
        if len(topic.in_sync[number]) < len(row):
            found.append("under_replicated")
            if not offline and len(topic.in_sync[number]) < needed:
                found.append("unwritable")
    return found


def _read_count(value: str | None) -> int | None:
    return int(value) if value is not None and value.isdecimal() else None
