"""The history of a fleet: from collections to events, growth and drift.

Belongs here: comparisons of a cluster with itself, each reading of it with the one before. A
collection that could not read a cluster says nothing about it, so nothing is deleted by an outage.
Forbidden here: judgements of what is found, which are an audit's, and Python in workers.
"""

from reconciler.fleet.history.events import EVENT_KINDS, find_events
from reconciler.fleet.history.growth import find_drift, measure_growth, measure_trend
from reconciler.fleet.history.readings import describe_read_topics, number_readings

__all__ = [
    "EVENT_KINDS",
    "describe_read_topics",
    "find_drift",
    "find_events",
    "measure_growth",
    "measure_trend",
    "number_readings",
]
