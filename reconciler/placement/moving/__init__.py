"""Existing rows that must change: which replicas move where, and who leads then.

Belongs here: the problem, the solver, and a checker that shares no code with it. Only what a wish
names moves. Forbidden here: specs, configs and clients.
"""
