"""The only code that talks to Kafka: a reader, a writer, a lock, and connection diagnosis.

Belongs here: client configuration, requests, and the translation of client errors. Forbidden here:
deciding what should change. `reconciler.kafka.writer` and `reconciler.kafka.mover` are imported
only by code that applies, and by code that ends moves.
"""

from reconciler.kafka.connection import Connection, connect
from reconciler.kafka.lock import GROUP, MOVES_GROUP, Holder, Waiting, hold_lock
from reconciler.kafka.moves import MovesReader
from reconciler.kafka.reader import KafkaReader

__all__ = [
    "GROUP",
    "MOVES_GROUP",
    "Connection",
    "Holder",
    "KafkaReader",
    "MovesReader",
    "Waiting",
    "connect",
    "hold_lock",
]
