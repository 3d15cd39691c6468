"""Moves of replicas: a plan of moves becomes outcomes, a few partitions at a time, throttled.

Belongs here: which rows begin, their throttles, the watch over the cluster, and what is taken back
at the end. Forbidden here: what the rest of `apply` must not do, a cancel, and a second target for
a partition in flight.
"""
