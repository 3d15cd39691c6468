"""The only code that talks to Kafka: a reader, a writer, a lock, and why a connection fails.

Belongs here: client configuration, requests, and the translation of client errors. Forbidden
here: deciding what should change. `reconciler.kafka.writer` is imported by what applies alone.
"""

from reconciler.kafka.connection import Connection, connect
from reconciler.kafka.cordon import cordon_brokers
from reconciler.kafka.reader import KafkaReader

__all__ = ["Connection", "KafkaReader", "connect", "cordon_brokers"]
