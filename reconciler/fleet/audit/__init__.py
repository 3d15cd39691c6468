"""What is wrong with a fleet: a collection's states and specs in, findings and balance out.

    states, specs ──► topics (one row each) ──► checks ──► findings
                         └──► balance ──────────┘

Belongs here: what an audit calls a fault, as columns over tables, and what it advises. Partitions
are counted once, into a row a topic; every check reads those rows. Forbidden here: Python in
workers, plans, and anything that reads a cluster.
"""

from reconciler.fleet.audit.audit import Audit, audit_fleet
from reconciler.fleet.audit.expectations import make_expectations
from reconciler.fleet.audit.rules import RULES, AuditRule

__all__ = ["RULES", "Audit", "AuditRule", "audit_fleet", "make_expectations"]
