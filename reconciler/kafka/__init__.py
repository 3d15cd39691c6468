"""The only code that talks to Kafka: a reader, a writer, a lock, and connection diagnosis.

Belongs here: client configuration, requests, and the translation of client errors. Forbidden here:
deciding what should change. `reconciler.kafka.writer` and `reconciler.kafka.mover` are imported
only by code that applies, and by code that ends moves.
"""
