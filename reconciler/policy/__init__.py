"""A team's policy for its topics: limits, and the team's rules in CEL.

Belongs here: policies as values, their merge, and their evaluation for a spec or a change.
Forbidden here: files, clusters, and any knowledge of Kafka's configs beyond their names.
"""
