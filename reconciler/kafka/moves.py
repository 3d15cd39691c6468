"""Reading moves: reassignments in flight, sizes of replicas, and throttles. Nothing is written.

Reassignments, log directories and throttles are read by kafka-python: librdkafka lacks the first
two, does not describe the default of all brokers (the broker with an empty name), and asks for
every config of a topic where two are needed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, TypeVar

from confluent_kafka import KafkaError, Node
from confluent_kafka.admin import AdminClient, DescribeClusterResult, TopicMetadata

from reconciler.errors import ClusterError, Finding, Severity
from reconciler.kafka.client import NO_TOPIC
from reconciler.kafka.configs import ASKED_BROKERS, CORDONED, find_cordoned
from reconciler.kafka.connection import REQUEST_S, Connection
from reconciler.kafka.errors import DENIED, UntranslatableError, name_error
from reconciler.kafka.log_dirs import list_stored, note_unoffered, read_directories
from reconciler.kafka.metadata import read_metadata
from reconciler.kafka.offered import list_unoffered, say_unoffered
from reconciler.kafka.rights import check_cluster_rights, find_hidden, name_missing
from reconciler.kafka.second_client import (
    NoAnswerError,
    SecondClient,
    ask_second_client,
    describe_error,
)
from reconciler.model.cluster import (
    Broker,
    ClusterState,
    LogDirectory,
    Place,
    RateSource,
    Reassignment,
    StoredReplica,
    ThrottleList,
    ThrottleRate,
    ThrottleSide,
)
from reconciler.model.moves import DIRECTORY_RATE, DirectoryRate, MovesReading, PartitionState
from reconciler.model.requests import KafkaRequest
from reconciler.side_by_side import run_side_by_side

T = TypeVar("T")

_AT_ONCE = 16
_BATCH = 500
_TIMEOUT_MS = 10_000
_TOPIC, _BROKER = 2, 4  # types of resources, in DescribeConfigs
_EVERY_BROKER = ""  # the name of the default of all brokers
_SOURCES = {2: RateSource.BROKER, 3: RateSource.CLUSTER_DEFAULT, 4: RateSource.STATIC}
_RATES = {side.rate_key: side for side in ThrottleSide}
_LISTS = {side.list_key: side for side in ThrottleSide}

Listed = dict["Place", "Mapping[str, list[int]]"]


class MovesReader:
    """Reads what is in flight on one cluster, whoever started it, through its connection."""

    def __init__(self, connection: Connection, client: SecondClient | None = None) -> None:
        self._connection = connection
        self._client = client or SecondClient(connection)
        self._allowed = False

    def read_moves(self, topics: Collection[str] = ()) -> MovesReading:
        """Read reassignments, sizes, directories and throttles, and the health of all partitions.

        Sizes cover `topics` and what is in flight. A broker that does not answer is a note.
        Errors: ClusterError if the account may not describe the cluster, or no broker answers.
        Cost: 0.1 s, two requests for each broker, three for one with several log directories, and
        0.1 ms for each topic of the cluster.
        """
        if not self._allowed:
            # Asked for by name, so that the error says what to grant: brokers refuse the list, and
            # show no log directories, which looks like brokers without data.
            check_cluster_rights(self._connection)
            self._allowed = True
        name = self._connection.entry.name
        # The list comes first: what ends meanwhile has its last state in the metadata.
        unoffered = self._ask(list_unoffered)
        if KafkaRequest.LIST_REASSIGNMENTS in unoffered:
            raise _refuse_unlisted(name)
        listed = self._ask(_list_reassignments)
        shown = self._connection.ask(_read, f"reading {name}")
        asked = {
            each: sorted(shown.topics[each].partitions) for each in topics & shown.topics.keys()
        }
        for topic, partition in listed:
            asked[topic] = sorted({*asked.get(topic, ()), partition})
        found = self._ask(lambda client: _ask_brokers(client, shown.cluster.nodes, asked))
        throttled = self._ask(lambda client: _ask_for_lists(client, found.answered, shown.topics))
        if found.silent:  # the next reading tries them again at once, which this client would not
            self._client.close()
        alive = {node.id: node for node in shown.cluster.nodes}
        moving = tuple(
            _follow(topic, partition, lists, shown.topics.get(topic))
            for (topic, partition), lists in sorted(listed.items())
        )
        named = {broker for each in moving for broker in each.replicas}
        cordoned = found.cordoned
        brokers = [
            Broker(number, node.rack or None, cordoned=number in cordoned)
            for number, node in alive.items()
        ]
        brokers += [Broker(number, alive=False) for number in named - alive.keys()]
        sides = list(ThrottleSide)
        rates = sorted(
            found.rates.values(),
            key=lambda rate: (-1 if rate.broker is None else rate.broker, sides.index(rate.side)),
        )
        return MovesReading(
            cluster=name,
            cluster_id=self._connection.identify(shown.cluster.cluster_id),
            seen_at_ms=found.seen_at_ms,
            clock_s=found.clock_s,
            brokers=tuple(sorted(brokers)),
            reassignments=moving,
            sizes=MappingProxyType(found.sizes),
            rates=tuple(rates),
            lists=tuple(
                sorted(throttled.lists, key=lambda each: (each.topic, each.side != sides[0]))
            ),
            notes=tuple(self._note(found, shown, throttled)),
            partitions=MappingProxyType(
                {topic: _read_partitions(told) for topic, told in sorted(shown.topics.items())}
            ),
            directories=MappingProxyType(found.directories),
            stored=MappingProxyType(found.stored),
            directory_rates=tuple(
                sorted(
                    found.directory_rates.values(),
                    key=lambda rate: -1 if rate.broker is None else rate.broker,
                )
            ),
        )

    def read_lists(self, topics: Collection[str]) -> Mapping[int, Collection[ThrottleList]]:
        """Ask every living broker for the throttled replicas of some topics that it shows.

        A broker that does not answer is omitted. Errors: ClusterError if no broker answers.
        Cost: a request for each broker and 500 topics.
        """
        shown = self._connection.ask(
            lambda client: client.describe_cluster(request_timeout=REQUEST_S).result(),
            f"asking for the brokers of {self._connection.entry.name}",
        )
        brokers = [node.id for node in shown.nodes]
        found = self._ask(lambda client: _ask_each_for_lists(client, brokers, topics))
        if found.keys() < set(brokers):
            self._client.close()
        return found

    def read_stored(self, broker: int) -> frozenset[Place] | None:
        """Return the partitions in the log directories of a broker; None if it does not say."""
        return self._ask(lambda client: list_stored(client, broker))

    def _ask(self, question: Callable[[Any], T]) -> T:
        from kafka.errors import KafkaError as ClientError

        try:
            return self._client.ask(question)
        except (UntranslatableError, NoAnswerError) as error:
            raise _refuse(self._connection.entry.name, str(error)) from error
        except ClientError as error:
            raise _refuse(self._connection.entry.name, describe_error(error)) from error

    def _note(self, found: _Answers, shown: _Shown, throttled: _Lists) -> Iterator[Finding]:
        """Yield what could not be seen: a warning, since a move or a throttle may be missing."""
        if not found.sized:
            yield note_unoffered(self._connection.entry.name)
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
        if denied := throttled.denied:
            lacking.append(("throttled replicas are not visible", "DescribeConfigs", denied))
        for what, right, topics in lacking:
            missing = name_missing(self._connection, right, topics)
            yield replace(missing, what=f"{what}: {missing.what}", severity=Severity.WARNING)
        for broker, held in sorted(found.directories.items()):
            for path in (each.path for each in held if not each.online):
                what = f"log directory {path} of broker {broker} is offline"
                way_out = "no replica in it is in sync; replace the disk and restart the broker"
                yield Finding("directory-offline", what, way_out, severity=Severity.NOTE)
        for broker, reason in sorted(found.silent.items()):
            what = f"broker {broker} of {self._connection.entry.name} does not answer: {reason}"
            way_out = "the sizes of its replicas and its throttle rates are unknown"
            yield Finding("broker-silent", what, way_out, severity=Severity.WARNING)


def read_throttle_lists(connection: Connection, state: ClusterState) -> tuple[ThrottleList, ...]:
    """Read the throttled replicas of all topics of a state.

    What the account may not see is left out: a run asks again before it begins.
    Cost: a request for every 500 topics.
    """
    from kafka.errors import KafkaError as ClientError

    alive = [broker.id for broker in state.brokers if broker.alive]

    def ask(client: Any) -> _Lists:
        return _ask_for_lists(client, alive, state.topics.keys())

    try:
        return tuple(ask_second_client(connection, ask).lists) if alive else ()
    except (UntranslatableError, NoAnswerError, ClientError, OSError):
        return ()


@dataclass(slots=True)
class _Answers:
    """The brokers' answers to kafka-python. `silent` holds a reason by broker.

    `rates_refused` is the error of an answer about rates, 0 for none. `sized` is false if no broker
    has the request for sizes.
    """

    seen_at_ms: int
    clock_s: float
    answered: list[int] = field(default_factory=list)
    directories: dict[int, tuple[LogDirectory, ...]] = field(default_factory=dict)
    sizes: dict[int, Mapping[tuple[str, int], int]] = field(default_factory=dict)
    stored: dict[int, Mapping[Place, StoredReplica]] = field(default_factory=dict)
    rates: dict[tuple[int | None, ThrottleSide], ThrottleRate] = field(default_factory=dict)
    directory_rates: dict[int | None, DirectoryRate] = field(default_factory=dict)
    cordoned: set[int] = field(default_factory=set)
    silent: dict[int, str] = field(default_factory=dict)
    rates_refused: int = 0
    sized: bool = True

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
                elif each.name == DIRECTORY_RATE and each.value and each.config_source in _SOURCES:
                    source = _SOURCES[each.config_source]
                    self.directory_rates[of] = DirectoryRate(of, int(each.value), source)

    def take_directories(self, broker: int, answer: Any) -> None:
        """Take a broker's directories and replicas."""
        if answer.error_code:
            self.silent[broker] = name_error(KafkaError(answer.error_code))
            return
        held = read_directories(answer, is_whole=False)
        self.directories[broker], self.sizes[broker] = held.directories, held.sizes
        if held.stored:
            self.stored[broker] = held.stored


@dataclass(slots=True)
class _Shown:
    """The answers to librdkafka: brokers and all topics. `blind`: topics may be hidden."""

    cluster: DescribeClusterResult
    topics: Mapping[str, TopicMetadata]
    blind: bool


@dataclass(slots=True)
class _Lists:
    """The throttled replicas of topics. `denied`: topics whose configs may not be described."""

    lists: list[ThrottleList] = field(default_factory=list)
    denied: set[str] = field(default_factory=set)
    unknown: list[str] = field(default_factory=list)

    def take(self, answers: Iterable[Any]) -> None:
        """Take the answer of one broker."""
        for answer in answers:
            if answer.error_code in DENIED:
                self.denied.add(answer.resource_name)
            elif answer.error_code:
                self.unknown.append(answer.resource_name)
            else:
                # Of no other source: neither brokers nor the cluster have such a config.
                self.lists += [
                    ThrottleList(answer.resource_name, _LISTS[each.name], each.value)
                    for each in answer.configs
                    if each.name in _LISTS and each.value
                ]


def _read(client: AdminClient) -> _Shown:
    """Ask for brokers and topics. Errors: KafkaException if an answer is lost."""
    described = client.describe_cluster(request_timeout=REQUEST_S)
    topics = read_metadata(client).topics
    return _Shown(described.result(), topics, bool(find_hidden(client, {NO_TOPIC})))


def _list_reassignments(client: Any) -> Listed:
    listed = client.list_partition_reassignments(timeout_ms=_TIMEOUT_MS)
    return {(each.topic, each.partition): lists for each, lists in listed.items()}


def _ask_brokers(
    client: Any, nodes: Collection[Node], asked: Mapping[str, Sequence[int]]
) -> _Answers:
    """Ask all brokers in parallel for directories, sizes and throttle rates."""
    from kafka.errors import KafkaError as ClientError
    from kafka.protocol.admin import DescribeLogDirsRequest

    # kafka-python's describe_log_dirs asks brokers one after the other, and if one is down, all
    # answers are lost. It also drops the error of the answer.
    found = _Answers(int(time.time() * 1000), time.monotonic())
    found.sized = KafkaRequest.DESCRIBE_LOG_DIRS not in list_unoffered(client)

    def ask(broker: int) -> tuple[int, list[Any], Any]:
        try:
            configs = _send(client, _ask_for_rates(broker), broker)
            sizes = _send(client, _ask_for_sizes(asked), broker) if found.sized else None
            if sizes is not None and len(sizes.results) > 1:
                # Anybody may move any replica between directories, and nothing else lists that.
                sizes = _send(client, DescribeLogDirsRequest(topics=None), broker)
        except (ClientError, OSError) as error:
            return broker, [], error
        return broker, configs.results, sizes

    def take(answer: tuple[int, list[Any], Any]) -> None:
        broker, configs, directories = answer
        if isinstance(directories, Exception):
            found.silent[broker] = describe_error(directories)
            return
        found.answered.append(broker)
        found.take_configs(broker, configs)
        if directories is not None:
            found.take_directories(broker, directories)

    run_side_by_side(ask, sorted(node.id for node in nodes), _AT_ONCE, take)
    return found


def _send(client: Any, request: Any, broker: int) -> Any:
    return client._manager.run(client._manager.send, request, broker)


def _ask_for_rates(broker: int) -> Any:
    """Build the request for the rates of a broker, which only that one knows, and the default."""
    keys = [*_RATES, DIRECTORY_RATE, CORDONED, "log.dirs", "log.dir"]
    return _ask_for_configs(_BROKER, (_EVERY_BROKER, str(broker)), keys)


def _ask_for_configs(kind: int, names: Iterable[str], keys: Sequence[str]) -> Any:
    from kafka.protocol.admin import DescribeConfigsRequest

    resource = DescribeConfigsRequest.DescribeConfigsResource
    return DescribeConfigsRequest(
        resources=[
            resource(resource_type=kind, resource_name=name, configuration_keys=keys)
            for name in names
        ]
    )


def _ask_for_sizes(partitions: Mapping[str, Sequence[int]]) -> Any:
    """Build the request for directories; without partitions, it still shows the directories."""
    from kafka.protocol.admin import DescribeLogDirsRequest

    topic = DescribeLogDirsRequest.DescribableLogDirTopic
    return DescribeLogDirsRequest(
        topics=[topic(topic=name, partitions=numbers) for name, numbers in partitions.items()]
    )


def _ask_for_lists(client: Any, brokers: Sequence[int], topics: Collection[str]) -> _Lists:
    """Read the throttled replicas of topics, from the first of some brokers that knows a topic.

    Errors: a KafkaError of kafka-python or OSError if none of them answers.
    """
    from kafka.errors import KafkaError as ClientError

    found = _Lists()
    wanted = sorted(topics)
    *others, last = sorted(brokers)[:ASKED_BROKERS]
    for broker in (*others, last):
        try:
            while wanted:
                request = _ask_for_configs(_TOPIC, wanted[:_BATCH], list(_LISTS))
                found.take(_send(client, request, broker).results)
                del wanted[:_BATCH]
        except (ClientError, OSError):
            if broker == last:
                raise
        wanted += found.unknown
        found.unknown = []
    return found


def _ask_each_for_lists(
    client: Any, brokers: Sequence[int], topics: Collection[str]
) -> dict[int, tuple[ThrottleList, ...]]:
    """Read the throttled replicas of topics as each broker shows them, in parallel."""
    from kafka.errors import KafkaError as ClientError

    found: dict[int, tuple[ThrottleList, ...]] = {}

    def ask(broker: int) -> tuple[int, _Lists | None]:
        try:
            return broker, _ask_for_lists(client, [broker], topics)
        except (ClientError, OSError):
            return broker, None

    def take(answer: tuple[int, _Lists | None]) -> None:
        broker, lists = answer
        if lists is not None:
            found[broker] = tuple(lists.lists)

    run_side_by_side(ask, brokers, _AT_ONCE, take)
    return found


def _read_partitions(topic: TopicMetadata) -> tuple[PartitionState, ...]:
    return tuple(
        PartitionState(tuple(each.replicas), each.leader, tuple(each.isrs))
        for _, each in sorted(topic.partitions.items())
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


def _refuse_unlisted(cluster: str) -> ClusterError:
    lacking = say_unoffered(cluster, [KafkaRequest.LIST_REASSIGNMENTS])
    what = f"{lacking}, so moves of replicas can be neither seen nor made through Kafka"
    way_out = "see what is in flight with the tools of the service"
    return ClusterError([Finding("request-unoffered", what, way_out)])


def _refuse(cluster: str, reason: str) -> ClusterError:
    what = f"reassignments of {cluster} cannot be seen: {reason}"
    way_out = "see what is in flight with kafka-reassign-partitions --list"
    return ClusterError([Finding("reassignments-unseen", what, way_out)])
