"""The history of a fleet: from collections to events, growth and drift.

Belongs here: comparisons of each reading of a cluster with the one before. A collection that could
not read a cluster is ignored for it, so an outage looks like no deletion. A cluster is the same as
long as its id is: a rebuilt one is not compared, a renamed one is compared with its old name.
Forbidden here: checks of the result, which belong to the audit, and Python in workers.
"""
