"""The history of a fleet: from collections to events, growth and drift.

Belongs here: comparisons of each reading of a cluster with the one before. A collection that could
not read a cluster is ignored for it, so an outage looks like no deletion. A cluster is the same as
long as its id is: a rebuilt one is not compared, a renamed one is compared with its old name.
Forbidden here: checks of the result, which belong to the audit, and Python in workers.
"""

from reconciler.fleet.history.events import EVENT_KINDS, find_events
from reconciler.fleet.history.growth import (
    extend_growth,
    find_drift,
    measure_growth,
    measure_trend,
)
from reconciler.fleet.history.readings import describe_read_topics, number_readings, pick_rows

__all__ = [
    "EVENT_KINDS",
    "describe_read_topics",
    "extend_growth",
    "find_drift",
    "find_events",
    "measure_growth",
    "measure_trend",
    "number_readings",
    "pick_rows",
]
