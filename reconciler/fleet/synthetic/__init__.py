"""A fleet that does not exist, to try a pipeline on: clusters, topics, partitions, specs, drift.

Belongs here: what is drawn of a seed and nothing else. Each cluster is drawn alone, by numpy, from
(seed, number of the cluster), so that many can be drawn at once and none depends on another.
Forbidden here: clocks, and whatever would tell two runs apart. Every reading says `synthetic`.
"""
