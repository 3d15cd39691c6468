"""Stage 4: changes and assignments become a Plan, the frozen value that people approve.

Belongs here: building it, its steps, its canonical JSON and fingerprint, and its renderings.
Forbidden here: clients, and anything that would change a cluster.
"""
