"""The explanation of a topic's placement: one frozen matrix, drawn as text and as a picture.

Belongs here: partitions by brokers, their totals, the likely skew of Kafka's own placement, and
sentences that explain why a spread is not more even. Forbidden here: placement itself, and anything
that reads clusters or files.
"""
