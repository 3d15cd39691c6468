"""Stage 2: what a spec and the keys of a cluster ask for, compared with the cluster.

Belongs here: the fields of a topic, eligible brokers, refusals and notes that changes of topics and
moves of replicas share. Every difference is reported. Forbidden here: deciding where replicas go.
"""
