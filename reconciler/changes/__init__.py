"""Changes of topics: specs and a state become a plan that creates, expands, configures or deletes.

    topics ──► rules ──► build (placement) ──► plan

Belongs here: the differences of topics, deletions, gradual changes, risks, and guards. Forbidden
here: moves of existing replicas, which only get a note, and all I/O.
"""
