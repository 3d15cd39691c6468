"""Data sources for Spark: live clusters, and spec trees at a commit, as tables.

They run on executors, so their options carry all input. Secrets are references, which are resolved
when a cluster is read. Sources only read.
"""
