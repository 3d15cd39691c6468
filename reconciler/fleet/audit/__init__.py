"""Findings about a fleet: a collection's states and specs in, findings and balance out.

    states, specs ──► topics (one row each) ──► checks ──► causes ──► findings
                         └──► balance ──────────┘            ▲
    plans ───────────────────────────────────────────────────┘

Belongs here: the checks of an audit, as columns over tables, and their advice. Partitions are
counted once, into a row a topic; every check reads those rows. Forbidden here: Python in workers,
planning, and anything that reads a cluster.
"""
