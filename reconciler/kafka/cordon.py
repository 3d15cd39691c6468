"""Cordoning brokers, so that a throwaway cluster refuses what the real one would (KIP-1066)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

if TYPE_CHECKING:
    from collections.abc import Iterable

    from confluent_kafka.admin import AdminClient

    from reconciler.kafka.connection import Connection

REQUEST_S = 15.0


def cordon_brokers(connection: Connection, brokers: Iterable[int]) -> None:
    """Cordon every log directory of some brokers. Errors: ClusterError. Kafka 4.3 or newer."""
    asked = [_cordon(broker) for broker in brokers]

    def alter(client: AdminClient) -> None:
        for answer in client.incremental_alter_configs(asked, request_timeout=REQUEST_S).values():
            answer.result()

    if asked:
        connection.ask(alter, f"cordoning brokers of {connection.entry.name}")


def _cordon(broker: int) -> ConfigResource:
    every = ConfigEntry("cordoned.log.dirs", "*", incremental_operation=AlterConfigOpType.SET)
    return ConfigResource(ResourceType.BROKER, str(broker), incremental_configs=[every])
