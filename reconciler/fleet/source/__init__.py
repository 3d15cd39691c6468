"""Sources of Spark: live clusters, and spec trees at a commit, as tables.

They run on executors, so whatever they need comes by their options; secrets come as references,
which are resolved where the cluster is read. They only read.
"""
