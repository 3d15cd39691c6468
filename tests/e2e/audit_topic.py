"""The records in an audit topic."""

from __future__ import annotations

import json

from confluent_kafka import Consumer


def read_records(servers: str, topic: str, count: int) -> list[dict[str, object]]:
    """Read the audit topic from its start."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": topic,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    consumer.subscribe([topic])
    try:
        messages = [message for message in consumer.consume(count, 30) if not message.error()]
    finally:
        consumer.close()
    assert {message.key() for message in messages} == {b"lab"}
    return [json.loads(message.value()) for message in messages]
