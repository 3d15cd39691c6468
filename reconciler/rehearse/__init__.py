"""A rehearsal of a plan on a throwaway cluster: its setup and its result.

Belongs here: the setup that a throwaway cluster has to be brought to, the plan bound to that
cluster, and the comparison of what was planned with what is found. Forbidden here: starting
clusters, clients, and everything that could reach the cluster that the plan is for.
"""
