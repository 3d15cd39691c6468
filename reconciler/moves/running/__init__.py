"""Moves of replicas: a plan of moves becomes outcomes, a few partitions at a time, throttled.

    rows (where each row is) ──► run: begin, throttle, watch, take back
                             ──► interventions: cancel, settle, rate

Belongs here: which rows begin, their throttles, the watch over the cluster, and what is taken back
at the end. Forbidden here: any step that the plan does not hold, and a second target for a
partition in flight.
"""
