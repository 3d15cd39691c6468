"""What became of a fleet: collections one after the other in, events, growth and drift out.

Belongs here: comparisons of a cluster with itself, each reading of it with the one before. A
collection that could not read a cluster says nothing about it, so nothing is deleted by an outage.
Forbidden here: judgements of what is found, which are an audit's, and Python in workers.
"""

from reconciler.fleet.history.drift import find_drift
from reconciler.fleet.history.events import EVENTS, find_events
from reconciler.fleet.history.growth import measure_growth, measure_trend
from reconciler.fleet.history.readings import number_readings
from reconciler.fleet.history.topics import describe_topics

__all__ = [
    "EVENTS",
    "describe_topics",
    "find_drift",
    "find_events",
    "measure_growth",
    "measure_trend",
    "number_readings",
]
