"""Reading moves: reassignments in flight, sizes of replicas, and throttles. Nothing is written.

Reassignments, log directories and throttle rates are read by kafka-python: librdkafka lacks the
first two, and does not describe the default of all brokers (the broker with an empty name).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError

from reconciler.errors import ClusterError, Finding, Severity
from reconciler.kafka.configs import find_cordoned, read_configs
from reconciler.kafka.connection import REQUEST_S
from reconciler.kafka.errors import DENIED, UntranslatableError, name_error
from reconciler.kafka.metadata import read_metadata
from reconciler.kafka.rights import NO_TOPIC, check_cluster_rights, find_hidden, name_missing
from reconciler.kafka.second_client import NoAnswerError, ask_second_client, describe_error
from reconciler.model import (
    Broker,
    MovesReading,
    RateSource,
    Reassignment,
    ThrottleList,
    ThrottleRate,
    ThrottleSide,
)
from reconciler.side_by_side import run_side_by_side

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from confluent_kafka.admin import AdminClient, DescribeClusterResult, TopicMetadata

    from reconciler.kafka.configs import TopicConfigs
    from reconciler.kafka.connection import Connection

_AT_ONCE = 16
_TIMEOUT_MS = 10_000
_BROKER = 4  # the type of a broker's configs, in DescribeConfigs
_EVERY_BROKER = ""  # the name of the default of all brokers
_SOURCES = {2: RateSource.BROKER, 3: RateSource.CLUSTER_DEFAULT, 4: RateSource.STATIC}
_RATES = {side.rate_key: side for side in ThrottleSide}

Listed = dict[tuple[str, int], "Mapping[str, list[int]]"]


class MovesReader:
    """Reads what is in flight on one cluster, whoever started it, through its connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._allowed = False

    def read_moves(self) -> MovesReading:
        """Read reassignments, sizes and throttles. A broker that does not answer is a note.

        Errors: ClusterError if the account may not describe the cluster, or no broker answers.
        Cost: 0.3 s, two requests for each broker, and 0.2 ms for each topic of the cluster.
        """
        from kafka.errors import KafkaError as ClientError

        name = self._connection.entry.name
        if not self._allowed:
            # Asked for by name, so that the error says what to grant: brokers refuse the list, and
            # show no log directories, which looks like brokers without data.
            check_cluster_rights(self._connection)
            self._allowed = True
        try:
            found = ask_second_client(self._connection, _ask_brokers)
        except (UntranslatableError, NoAnswerError) as error:
            raise _refuse(name, str(error)) from error
        except ClientError as error:
            raise _refuse(name, describe_error(error)) from error
        shown = self._connection.ask(_read, f"reading {name}")
        alive = {node.id: node for node in shown.cluster.nodes}
        moving = tuple(
            _follow(topic, partition, lists, shown.topics.get(topic))
            for (topic, partition), lists in sorted(found.listed.items())
        )
        named = {broker for each in moving for broker in each.replicas}
        cordoned = found.cordoned
        brokers = [
            Broker(number, node.rack or None, cordoned=number in cordoned)
            for number, node in alive.items()
        ]
        brokers += [Broker(number, alive=False) for number in named - alive.keys()]
        lists = tuple(
            ThrottleList(topic, side, value)
            for topic, overrides in sorted(shown.configs.overrides.items())
            for side in ThrottleSide
            if (value := overrides.get(side.list_key))
        )
        sides = list(ThrottleSide)
        rates = sorted(
            found.rates.values(),
            key=lambda rate: (-1 if rate.broker is None else rate.broker, sides.index(rate.side)),
        )
        return MovesReading(
            cluster=name,
            cluster_id=shown.cluster.cluster_id,
            seen_at_ms=found.seen_at_ms,
            clock_s=found.clock_s,
            brokers=tuple(sorted(brokers)),
            reassignments=moving,
            sizes=MappingProxyType(found.sizes),
            rates=tuple(rates),
            lists=lists,
            notes=tuple(self._note(found, shown)),
        )

    def _note(self, found: _Answers, shown: _Shown) -> Iterator[Finding]:
        """Yield what could not be seen: a warning, since a move or a throttle may be missing."""
        lacking: list[tuple[str, str, Collection[str]]] = []
        if found.rates_refused in DENIED:
            lacking.append(("throttle rates are not visible", "DescribeConfigs", ()))
        elif found.rates_refused:
            what = f"throttle rates are not visible: {name_error(KafkaError(found.rates_refused))}"
            way_out = "the brokers' logs say more"
            yield Finding("cluster-answer", what, way_out, severity=Severity.WARNING)
        if shown.blind:
            what = "throttled replicas of some topics may not be visible"
            lacking.append((what, "Describe", ["*"]))
        if denied := shown.configs.denied:
            lacking.append(("throttled replicas are not visible", "DescribeConfigs", denied))
        for what, right, topics in lacking:
            missing = name_missing(self._connection, right, topics)
            yield replace(missing, what=f"{what}: {missing.what}", severity=Severity.WARNING)
        for broker, reason in sorted(found.silent.items()):
            what = f"broker {broker} of {self._connection.entry.name} does not answer: {reason}"
            way_out = "the sizes of its replicas and its throttle rates are unknown"
            yield Finding("broker-silent", what, way_out, severity=Severity.WARNING)


@dataclass(slots=True)
class _Answers:
    """The brokers' answers to kafka-python. `silent` holds a reason by broker.

    `rates_refused` is the error of an answer about rates, 0 for none.
    """

    seen_at_ms: int
    clock_s: float
    listed: Listed = field(default_factory=dict)
    sizes: dict[int, dict[tuple[str, int], int]] = field(default_factory=dict)
    rates: dict[tuple[int | None, ThrottleSide], ThrottleRate] = field(default_factory=dict)
    cordoned: set[int] = field(default_factory=set)
    silent: dict[int, str] = field(default_factory=dict)
    rates_refused: int = 0

    def take_configs(self, broker: int, answers: list[Any]) -> None:
        """Take the rates of the cluster default and of a broker."""
        for answer in answers:
            if answer.error_code:
                self.rates_refused = answer.error_code
                continue
            of = None if answer.resource_name == _EVERY_BROKER else broker
            values = {each.name: each.value for each in answer.configs}
            if of is not None:
                self.cordoned |= find_cordoned({broker: values})
            for each in answer.configs:
                if each.name in _RATES and each.value and each.config_source in _SOURCES:
                    source = _SOURCES[each.config_source]
                    rate = ThrottleRate(of, _RATES[each.name], int(each.value), source)
                    self.rates[of, rate.side] = rate

    def take_sizes(self, broker: int, answer: Any) -> None:
        """Take the sizes of a broker's replicas, without those that move between directories."""
        if answer.error_code:
            self.silent[broker] = name_error(KafkaError(answer.error_code))
            return
        sizes = self.sizes[broker] = {}
        for directory in answer.results:
            for topic in directory.topics:
                for each in topic.partitions:
                    if not each.is_future_key:
                        sizes[topic.name, each.partition_index] = each.partition_size


@dataclass(slots=True)
class _Shown:
    """The answers to librdkafka: brokers, all topics and their overrides.

    `blind`: topics may be hidden from the account.
    """

    cluster: DescribeClusterResult
    topics: Mapping[str, TopicMetadata]
    configs: TopicConfigs
    blind: bool


def _read(client: AdminClient) -> _Shown:
    """Ask for brokers, topics and their overrides. Errors: KafkaException if an answer is lost."""
    described = client.describe_cluster(request_timeout=REQUEST_S)
    topics = read_metadata(client).topics
    cluster = described.result()
    configs = read_configs(client, topics, sorted(node.id for node in cluster.nodes))
    return _Shown(cluster, topics, configs, bool(find_hidden(client, {NO_TOPIC})))


def _ask_brokers(client: Any) -> _Answers:
    """List reassignments, then ask all brokers in parallel for sizes and throttle rates."""
    from kafka.errors import KafkaError as ClientError

    # kafka-python's describe_log_dirs asks brokers one after the other, and if one is down, all
    # answers are lost. It also drops the error of the answer.
    listed = client.list_partition_reassignments(timeout_ms=_TIMEOUT_MS)
    found = _Answers(int(time.time() * 1000), time.monotonic())
    found.listed = {(each.topic, each.partition): lists for each, lists in listed.items()}
    asked: dict[str, list[int]] = {}
    for topic, partition in found.listed:
        asked.setdefault(topic, []).append(partition)

    def ask(broker: int) -> tuple[int, list[Any], Any]:
        try:
            configs = client._manager.run(client._manager.send, _ask_for_rates(broker), broker)
            sizes = None
            if asked:
                sizes = client._manager.run(client._manager.send, _ask_for_sizes(asked), broker)
        except (ClientError, OSError) as error:
            return broker, [], error
        return broker, configs.results, sizes

    def take(answer: tuple[int, list[Any], Any]) -> None:
        broker, configs, sizes = answer
        if isinstance(sizes, Exception):
            found.silent[broker] = describe_error(sizes)
            return
        found.take_configs(broker, configs)
        if sizes is not None:
            found.take_sizes(broker, sizes)

    brokers = sorted(node.node_id for node in client._manager.cluster.brokers())
    run_side_by_side(ask, brokers, _AT_ONCE, take)
    return found


def _ask_for_rates(broker: int) -> Any:
    """Build the request for the rates of a broker, which only that one knows, and the default."""
    from kafka.protocol.admin import DescribeConfigsRequest

    resource = DescribeConfigsRequest.DescribeConfigsResource
    keys = [*_RATES, "cordoned.log.dirs", "log.dirs", "log.dir"]
    return DescribeConfigsRequest(
        resources=[
            resource(resource_type=_BROKER, resource_name=name, configuration_keys=keys)
            for name in (_EVERY_BROKER, str(broker))
        ]
    )


def _ask_for_sizes(partitions: Mapping[str, list[int]]) -> Any:
    from kafka.protocol.admin import DescribeLogDirsRequest

    topic = DescribeLogDirsRequest.DescribableLogDirTopic
    return DescribeLogDirsRequest(
        topics=[topic(topic=name, partitions=numbers) for name, numbers in partitions.items()]
    )


def _follow(
    topic: str, partition: int, lists: Mapping[str, list[int]], metadata: TopicMetadata | None
) -> Reassignment:
    """Build a reassignment from the list of the controller and the metadata of its topic."""
    shown = metadata.partitions.get(partition) if metadata is not None else None
    return Reassignment(
        topic,
        partition,
        tuple(lists["replicas"]),
        tuple(lists["adding_replicas"]),
        tuple(lists["removing_replicas"]),
        None if shown is None else shown.leader,
        () if shown is None else tuple(shown.isrs),
    )


def _refuse(cluster: str, reason: str) -> ClusterError:
    what = f"reassignments of {cluster} cannot be seen: {reason}"
    way_out = "see what is in flight with kafka-reassign-partitions --list"
    return ClusterError([Finding("reassignments-unseen", what, way_out)])
