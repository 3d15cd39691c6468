"""The producers that leaders remember, and their transactional ids; kafka-python asks for both."""

from __future__ import annotations

from typing import Any

from reconciler.kafka.connection import Connection
from reconciler.kafka.errors import UntranslatableError
from reconciler.kafka.second_client import NoAnswerError, ask_second_client, describe_error
from reconciler.model.groups import Producers


def read_producers(connection: Connection, topic: str, partitions: int) -> Producers:
    """Read who wrote to a topic lately with an id; a reason if that cannot be seen.

    Brokers show only transactional ids that the account may describe, and ask for Read on the
    topic. Errors: ClusterError if the cluster does not answer at all. Cost: 0.2 s, a request for
    each broker and one for each leader.
    """
    from kafka.errors import KafkaError as ClientError
    from kafka.structs import TopicPartition

    places = [TopicPartition(topic, number) for number in range(partitions)]

    def ask(client: Any) -> Producers:
        told = client.describe_producers(places)
        ids = {each.producer_id for state in told.values() for each in state.active_producers}
        named = (each for listed in client.list_transactions().values() for each in listed)
        names = {each.transactional_id for each in named if each.producer_id in ids}
        return Producers(len(ids), tuple(sorted(names)))

    try:
        return ask_second_client(connection, ask)
    except (UntranslatableError, NoAnswerError) as error:
        return Producers(unseen=str(error))
    except ClientError as error:
        return Producers(unseen=describe_error(error))
