"""The status of a cluster in a collection or a plan, for jobs and for commands without Spark."""

READ, PLANNED = "read", "planned"
"""The `status` of a successful reading or plan; otherwise it is a rule id."""
