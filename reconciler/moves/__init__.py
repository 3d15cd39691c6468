"""Moves of replicas: which rows of existing partitions change, at what cost, and how far they are.

    differences ──► plan, rebalance, elections, reassignments ──► forecast, guards
    readings ──► progress, decisions
    plan ──► running: a run of the plan, and the interventions in it

Belongs here: all about rows that exist. Forbidden here: clients, clocks, and new partitions.
"""
