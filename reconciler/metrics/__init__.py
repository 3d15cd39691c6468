"""Numbers about clusters for Prometheus: what a state, a plan and an audit say, as metrics.

    state, plan ──► figures ──► samples ──► OpenMetrics
    lake ──────────────┘

Belongs here: the catalogue of every metric, the figures of a cluster, and the text of samples.
Forbidden here: reading clusters or lakes, files, and the network.
"""
