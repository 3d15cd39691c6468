"""Moves of replicas: one request per call, and an answer for every item of it.

All requests are sent by kafka-python. librdkafka has no AlterPartitionReassignments, refuses the
empty name of the cluster default, and elects without a timeout of the caller (confluent-kafka
2.16.1). kafka-python's own methods drop the texts of the brokers, so requests are built here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from itertools import groupby
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from reconciler.errors import ClusterError, keep_interrupts
from reconciler.kafka.configs import CORDONED
from reconciler.kafka.connection import Connection
from reconciler.kafka.errors import UntranslatableError, read_answer
from reconciler.kafka.moves import MovesReader
from reconciler.kafka.second_client import SecondClient, describe_error
from reconciler.kafka.trace import trace_request
from reconciler.model.cluster import Place, Replicas, ThrottleList, ThrottleSide
from reconciler.model.moves import DIRECTORY_RATE, DefaultRate, MovesReading
from reconciler.model.outcomes import Answer, AnswerKind

REQUEST_MS = 20_000
OPERATION_MS = 15_000  # for the controller, which answers by then; so less than for the request
CONNECT_MS = 10_000
_TOPIC, _BROKER = 2, 4  # types of resources
_EVERY_BROKER = ""  # the name of the cluster default
_SET, _UNSET = 0, 1
_PREFERRED = 0
_UPDATING = re.compile(r"update[_ ]in[_ ]progress", re.IGNORECASE)
"""How Redpanda names that a partition is in flight, where the code of its answer does not."""

_SILENCE = Answer(AnswerKind.LOST, "CONNECTION_LOST", "the broker said nothing of this item")


class KafkaMover:
    """A mover of one cluster through its connection; implements ClusterMover.

    A controller that was frozen executes a request after its client has given up (4.4.0), so no
    request is repeated here. Not for several threads at once.
    """

    def __init__(self, connection: Connection) -> None:
        self._name = connection.entry.name
        self._client = SecondClient(connection)
        self._reader = MovesReader(connection, self._client)

    def close(self) -> None:
        """Close its client; the next call opens another."""
        self._client.close()

    @keep_interrupts()
    def read(self, topics: Collection[str]) -> MovesReading:
        """Read what is in flight, and the health of all partitions; see MovesReader."""
        return self._reader.read_moves(topics)

    @keep_interrupts()
    def read_lists(self, topics: Collection[str]) -> Mapping[int, Collection[ThrottleList]]:
        """Ask every living broker for throttled replicas; see MovesReader."""
        return self._reader.read_lists(topics)

    @keep_interrupts()
    def read_stored(self, broker: int) -> Collection[Place] | None:
        """Ask a living broker for the partitions in its log directories; see MovesReader."""
        return self._reader.read_stored(broker)

    def reassign(
        self, rows: Mapping[Place, Replicas | None], *, may_resize: bool = False
    ) -> Mapping[Place, Answer]:
        """Ask for new rows, or cancel: AlterPartitionReassignments (KIP-455, KIP-860).

        Brokers answer each partition on its own: some may be accepted while others are refused.
        One that is in flight already is not done: its target is among what is listed in flight.
        """
        from kafka.protocol.admin import AlterPartitionReassignmentsRequest as Request

        if not rows:
            return {}
        topics = [
            Request.ReassignableTopic(
                name=name,
                partitions=[
                    Request.ReassignableTopic.ReassignablePartition(
                        partition_index=partition, replicas=None if row is None else list(row)
                    )
                    for (_, partition), row in group
                ],
            )
            for name, group in groupby(sorted(rows.items()), key=lambda item: item[0][0])
        ]
        # Brokers before 4.1 know version 0 only, which has no such flag: the client leaves it out.
        request = Request(
            timeout_ms=OPERATION_MS, allow_replication_factor_change=may_resize, topics=topics
        )
        answer = self._send(request)
        if isinstance(answer, Answer):
            return dict.fromkeys(rows, answer)
        if answer.error_code:
            refusal = _read_answer(answer.error_code, answer.error_message)
            return dict.fromkeys(rows, refusal)
        told = {
            (topic.name, each.partition_index): _read_move(each.error_code, each.error_message)
            for topic in answer.responses
            for each in topic.partitions
        }
        return {place: told.get(place, _SILENCE) for place in rows}

    def elect(self, places: Collection[Place]) -> Mapping[Place, Answer]:
        """Have preferred leaders lead, never unclean ones (KIP-460)."""
        from kafka.protocol.admin import ElectLeadersRequest as Request

        if not places:
            return {}
        topics = [
            Request.TopicPartitions(topic=name, partitions=[number for _, number in group])
            for name, group in groupby(sorted(places), key=lambda place: place[0])
        ]
        request = Request(
            election_type=_PREFERRED, topic_partitions=topics, timeout_ms=OPERATION_MS
        )
        answer = self._send(request)
        if isinstance(answer, Answer):
            return dict.fromkeys(places, answer)
        if answer.error_code:
            return dict.fromkeys(places, _read_answer(answer.error_code, None))
        told = {}
        for topic in answer.replica_election_results:
            for each in topic.partition_result:
                # A partition that its preferred leader leads already is as wished.
                code = 0 if each.error_code == KafkaError.ELECTION_NOT_NEEDED else each.error_code
                told[topic.topic, each.partition_id] = _read_answer(code, each.error_message)
        return {place: told.get(place, _SILENCE) for place in places}

    def configure(self, configs: Mapping[str, Mapping[str, str | None]]) -> Mapping[str, Answer]:
        """Set and unset configs of topics: IncrementalAlterConfigs (KIP-339)."""
        return self._alter(_TOPIC, configs)

    def set_rate(self, bytes_per_s: int | None, *, permanent: bool = False) -> Answer:
        """Set the cluster default of both throttle rates, or unset it, in one request.

        It gets the mark of DefaultRate.of_moves, unless it is `permanent`: no run removes that.
        """
        values: dict[str, str | None] = dict.fromkeys(side.rate_key for side in ThrottleSide)
        if bytes_per_s is not None:
            marked = DefaultRate.of_moves(bytes_per_s)
            rate = DefaultRate(bytes_per_s, bytes_per_s) if permanent else marked
            values = {side.rate_key: str(rate.of_side(side)) for side in ThrottleSide}
        return self._alter(_BROKER, {_EVERY_BROKER: values})[_EVERY_BROKER]

    def unset_rates(self, broker: int) -> Answer:
        """Unset both throttle rates of a broker of its own. Only that broker takes the request."""
        values = dict.fromkeys(side.rate_key for side in ThrottleSide)
        return self._alter(_BROKER, {str(broker): values}, broker)[str(broker)]

    def relocate(self, broker: int, paths: Mapping[Place, str]) -> Mapping[Place, Answer]:
        """Move replicas of a broker between its log directories: AlterReplicaLogDirs (KIP-113).

        Only that broker takes the request. Asked for the directory in which a replica is, it drops
        the copy that it was making. It answers with codes, and no texts.
        """
        from kafka.protocol.admin import AlterReplicaLogDirsRequest as Request

        if not paths:
            return {}
        by_path = sorted((path, place) for place, path in paths.items())
        topic = Request.AlterReplicaLogDir.AlterReplicaLogDirTopic
        dirs = [
            Request.AlterReplicaLogDir(
                path=path,
                topics=[
                    topic(name=name, partitions=[number for _, (_, number) in of_topic])
                    for name, of_topic in groupby(of_path, key=lambda each: each[1][0])
                ],
            )
            for path, of_path in groupby(by_path, key=lambda each: each[0])
        ]
        answer = self._send(Request(dirs=dirs), broker)
        if isinstance(answer, Answer):
            return dict.fromkeys(paths, answer)
        told = {
            (topic.topic_name, each.partition_index): _read_answer(each.error_code, None)
            for topic in answer.results
            for each in topic.partitions
        }
        return {place: told.get(place, _SILENCE) for place in paths}

    def set_directory_rate(self, bytes_per_s: int | None) -> Answer:
        """Set the cluster default of the rate between log directories, or unset it."""
        value = None if bytes_per_s is None else str(bytes_per_s)
        return self._alter(_BROKER, {_EVERY_BROKER: {DIRECTORY_RATE: value}})[_EVERY_BROKER]

    def cordon(self, broker: int) -> Answer:
        """Cordon every log directory of a broker (KIP-1066). Only that broker takes the request."""
        return self._alter(_BROKER, {str(broker): {CORDONED: "*"}}, broker)[str(broker)]

    def _alter(
        self,
        kind: int,
        configs: Mapping[str, Mapping[str, str | None]],
        broker: int | None = None,
    ) -> Mapping[str, Answer]:
        from kafka.protocol.admin import IncrementalAlterConfigsRequest as Request

        if not configs:
            return {}
        resource = Request.AlterConfigsResource
        resources = [
            resource(resource_type=kind, resource_name=name, configs=list(_list_changes(values)))
            for name, values in sorted(configs.items())
        ]
        answer = self._send(Request(resources=resources, validate_only=False), broker)
        if isinstance(answer, Answer):
            return dict.fromkeys(configs, answer)
        told = {
            each.resource_name: _read_answer(each.error_code, each.error_message)
            for each in answer.responses
        }
        return {name: told.get(name, _SILENCE) for name in configs}

    @keep_interrupts()
    def _send(self, request: Any, broker: int | None = None) -> Any:
        """Send a request to a broker, by default any living one: it forwards to the controller.

        Returns: the answer; or, without one, an Answer that says whether the request was sent.
        """
        from kafka.errors import IncompatibleBrokerVersion
        from kafka.errors import KafkaError as ClientError

        sent = False
        try:
            manager = self._client.open()._manager
            broker = manager.least_loaded_node() if broker is None else broker
            # The connection comes first: only what fails after it may have been sent.
            manager.run(_connect, manager, broker)
            sent = True
            with trace_request(self._name, f"{type(request).__name__} to broker {broker}"):
                return manager.run(_ask, manager, broker, request)
        except UntranslatableError as error:
            return Answer(AnswerKind.REFUSED, "UNSUPPORTED_FEATURE", str(error))
        except IncompatibleBrokerVersion as error:
            return Answer(AnswerKind.REFUSED, "UNSUPPORTED_FEATURE", describe_error(error))
        except (ClusterError, ClientError, OSError, ValueError) as error:
            self._client.close()  # the next request finds living brokers
            kind = AnswerKind.LOST if sent else AnswerKind.NOT_DONE
            text = describe_error(error)
            return Answer(kind, "CONNECTION_LOST", text)
        except BaseException:  # such as an interrupt, after which an answer is still under way
            self._client.close()
            raise


async def _connect(manager: Any, broker: int) -> None:
    await manager.wait_for(manager.get_connection(broker).init_future, CONNECT_MS)


async def _ask(manager: Any, broker: int, request: Any) -> Any:
    sent = manager.send(request, node_id=broker, request_timeout_ms=REQUEST_MS)
    return await manager.wait_for(sent, REQUEST_MS)


def _list_changes(values: Mapping[str, str | None]) -> Iterable[Any]:
    from kafka.protocol.admin import IncrementalAlterConfigsRequest as Request

    for key, value in sorted(values.items()):
        operation = _UNSET if value is None else _SET
        yield Request.AlterConfigsResource.AlterableConfig(
            name=key, config_operation=operation, value=value
        )


def _read_answer(code: int, text: str | None) -> Answer:
    return read_answer(KafkaException(KafkaError(code, text or None)) if code else None)


def _read_move(code: int, text: str | None) -> Answer:
    """Translate the answer of one partition: Redpanda refuses to move what is in flight.

    Kafka takes a second target. An identical request may be the first one, sent again, so nothing
    is refused for good, and what is listed in flight decides whose it is.
    """
    answer = _read_answer(code, text)
    in_flight = code == KafkaError.REASSIGNMENT_IN_PROGRESS
    if in_flight or (code == KafkaError.UNKNOWN and _UPDATING.search(text or "")):
        return replace(answer, kind=AnswerKind.NOT_DONE)
    return answer
