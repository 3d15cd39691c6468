"""Simulated placement: a real or imagined cluster, steps in order, and several strategies.

Belongs here: simulated clusters, steps, and the figures that strategies are compared by. Forbidden
here: specs, clients, and anything that changes a cluster. Kafka's own random placement is here for
comparison only.
"""
