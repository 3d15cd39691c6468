"""Files: plans, approvals, snapshots and moves in flight as JSON, and back or every error in it.

Belongs here: the format of each, its fingerprint and its schema. Forbidden here: how people see it.
"""
