"""A synthetic fleet to test a pipeline: clusters, topics, partitions, specs, drift.

Belongs here: everything that is drawn from a seed, and the clusters of `troubles`. Each cluster is
drawn alone, by numpy, from (seed, number of the cluster), so that clusters are drawn in parallel
and do not depend on each other. Forbidden here: clocks, and anything else that differs between two
runs. Every reading is marked as `synthetic`.
"""
