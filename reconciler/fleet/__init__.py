"""The same stages as tables over many clusters, on Spark: for the nightly jobs of a platform team.

    clusters ──► source ──► lake ──► plan, audit, history ──► page
    spec tree ──► source ──┘

Belongs here: sources that read clusters and spec trees into tables, the lake that keeps them, and
jobs that are DataFrame to DataFrame. A cluster's rows are handed, as one Arrow group, to the very
same diff and placement that `reconciler plan` runs. Only DataFrames and SQL are used, so that a job
runs on a local session, a Spark cluster or Spark Connect alike.
Forbidden here: any write to Kafka. Spark repeats tasks; applying belongs to one process.
"""
