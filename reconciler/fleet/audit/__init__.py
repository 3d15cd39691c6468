"""What is wrong with a fleet: a collection's states and specs in, findings and balance out.

    states, specs ──► topics (one row each) ──► checks ──► causes ──► findings
                         └──► balance ──────────┘            ▲
    plans ───────────────────────────────────────────────────┘

Belongs here: the checks of an audit, as columns over tables, and their advice. Partitions are
counted once, into a row a topic; every check reads those rows. Forbidden here: Python in workers,
planning, and anything that reads a cluster.
"""

from reconciler.fleet.audit.audit import (
    Audit,
    Cause,
    Earlier,
    audit_fleet,
    count_severities,
    order_findings,
    select_findings,
    summarise_causes,
)
from reconciler.fleet.audit.causes import Pending
from reconciler.fleet.audit.rules import AUDIT_RULES, SEVERITIES, AuditRule, Concern
from reconciler.fleet.audit.topics import make_expectations

__all__ = [
    "AUDIT_RULES",
    "SEVERITIES",
    "Audit",
    "AuditRule",
    "Cause",
    "Concern",
    "Earlier",
    "Pending",
    "audit_fleet",
    "count_severities",
    "make_expectations",
    "order_findings",
    "select_findings",
    "summarise_causes",
]
