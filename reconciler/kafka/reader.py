"""Reading a cluster in bulk: its state for a plan, and each broker's view for a verification."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from confluent_kafka import KafkaError, KafkaException, Node
from confluent_kafka.admin import AdminClient, TopicMetadata

from reconciler.errors import Finding, Severity
from reconciler.kafka.client import NO_TOPIC
from reconciler.kafka.configs import (
    TopicConfigs,
    can_cordon,
    complete_defaults,
    find_cordoned,
    find_settings,
    read_broker_configs,
    read_config_values,
    read_configs,
)
from reconciler.kafka.connection import REQUEST_S, Connection
from reconciler.kafka.groups import read_groups
from reconciler.kafka.lock import check_requests
from reconciler.kafka.log_dirs import read_sizes
from reconciler.kafka.metadata import read_metadata, read_topic
from reconciler.kafka.moves import read_throttle_lists
from reconciler.kafka.offered import find_unoffered
from reconciler.kafka.producers import read_producers
from reconciler.kafka.quorum import read_fenced, read_voters
from reconciler.kafka.rights import (
    check_apply_rights,
    check_cluster_rights,
    check_move_rights,
    describe_topics,
    find_hidden,
    find_hidden_configs,
    refuse_missing,
)
from reconciler.kafka.second_look import read_in_flight, settle_overrides, settle_rows
from reconciler.kafka.traffic import read_traffic
from reconciler.kafka.usage import read_usage
from reconciler.kafka.views import Views, is_behind, is_uneven
from reconciler.model.cluster import Broker, ClusterState, ThrottleRate, TopicState, TopicUsage
from reconciler.model.configs import ConfigValue
from reconciler.model.groups import GroupsReading, Producers
from reconciler.model.growth import measure_rates
from reconciler.model.moves import LoadKind
from reconciler.model.requests import KafkaRequest

RATE_INTERVAL_S = 10.0
"""The time between the two readings of a plan that give rates."""


class KafkaReader:
    """A reader of one cluster through its connection; implements ClusterReader."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._views = Views(connection)
        self._answered_by: Mapping[str, int] = {}

    def read_cluster(self, config_of: Collection[str] | None = None) -> ClusterState:
        """Read brokers, topics and overrides.

        Overrides are read for the topics of `config_of` only, None for all. If one broker does not
        show a topic of `config_of`, others are asked before it counts as missing. It omits topic
        ids: see `read_topic_ids`.
        Errors: ClusterError with the reason and the way out, missing rights among them.
        Cost: 4 requests, one a broker, and one for every 100 topics with configs; 0.2 ms of CPU for
        each topic with configs, 0.02 ms for each without.
        """
        what = f"reading {self._connection.entry.name}"
        found = self._connection.ask(lambda client: _read(client, config_of), what)
        # Brokers leave out topics that the account may not describe, and a plan would create them.
        # Without the right to see all topics, an empty list may hide everything.
        hidden = found.hidden - {NO_TOPIC}
        blind = NO_TOPIC in found.hidden
        if config_of is None and not found.topics and blind:
            hidden = {"*"}
        lacking = {"Describe": hidden, "DescribeConfigs": found.configs.denied}
        refuse_missing(self._connection, lacking)
        late = self._read_late(found)
        self._answered_by = found.configs.known_by
        shown = {
            name: read_topic(name, topic, found.configs.overrides.get(name, {}))
            for name, topic in found.topics.items()
        }
        topics = dict(sorted({**shown, **late}.items()))
        uneven = [name for name, topic in topics.items() if is_uneven(topic.assignment)]
        doubtful = {*uneven, *(name for name, topic in topics.items() if is_behind(topic))}
        moved, notes = settle_rows(self._connection, self._views, topics, doubtful, uneven)
        topics |= moved
        if blind:
            what = f"the account may see only some topics of {self._connection.entry.name}"
            way_out = (
                "the load of the other topics is not taken into account; grant Describe on all "
                "topics"
            )
            notes.append(Finding("cluster-rights", what, way_out, severity=Severity.NOTE))
        return ClusterState(
            cluster_id=self._connection.identify(found.cluster_id),
            brokers=_list_brokers(found, topics.values()),
            topics=MappingProxyType(topics),
            config_defaults=MappingProxyType(found.defaults),
            broker_settings=MappingProxyType(found.settings),
            notes=tuple(notes),
            can_cordon=found.can_cordon,
            throttle_rates=found.rates,
        )

    def confirm(
        self, state: ClusterState, rows_of: Collection[str], config_of: Collection[str]
    ) -> ClusterState:
        """Read the facts behind a difference to a spec again, in the state that was read last.

        `rows_of`: topics with more replicas than specified, possibly under reassignment;
        `config_of`: topics with overrides that are to be changed. Errors: as `read_cluster`.
        Cost: nothing if both are empty; else one request for every 100 topics with configs, and 0.7
        s for rows.
        """
        alive = [broker.id for broker in state.brokers if broker.alive]
        moved, notes = settle_rows(self._connection, self._views, state.topics, rows_of, rows_of)
        topics = {**state.topics, **moved}
        held = {name: topics[name] for name in config_of}
        answered_by = self._answered_by
        topics |= settle_overrides(self._connection, self._views, held, answered_by, alive)
        new = (note for note in notes if note.rule not in {each.rule for each in state.notes})
        return replace(state, topics=MappingProxyType(topics), notes=(*state.notes, *new))

    def read_configs(self, state: ClusterState, names: Collection[str]) -> ClusterState:
        """Add the overrides of some topics, and the defaults that these show, to a state.

        For a state that was read without configs, if what it shows decides whose are needed.
        Errors: as `read_cluster`. Cost: one request for every 100 topics; 0.2 ms of CPU for each.
        """
        known = state.topics.keys() & set(names)
        if not known:
            return state
        alive = [broker.id for broker in state.brokers if broker.alive]
        what = f"reading configs of {self._connection.entry.name}"
        found = self._connection.ask(lambda client: read_configs(client, known, alive), what)
        refuse_missing(self._connection, {"DescribeConfigs": found.denied})
        topics = {
            name: replace(state.topics[name], config=config)
            for name, config in found.overrides.items()
        }
        return replace(
            state,
            topics=MappingProxyType({**state.topics, **topics}),
            config_defaults=MappingProxyType({**found.defaults, **state.config_defaults}),
        )

    def read_config_values(
        self, topic: str | None, brokers: Sequence[int]
    ) -> Mapping[int, Mapping[str, ConfigValue]]:
        """Ask brokers for the configs in force on a topic, with their origins; None: on themselves.

        A broker that does not answer is omitted. Cost: one request for each broker.
        """
        what = f"reading configs of {topic or 'brokers'} on {self._connection.entry.name}"
        return self._connection.ask(lambda client: read_config_values(client, topic, brokers), what)

    def read_sizes(self, state: ClusterState) -> ClusterState:
        """Add the sizes of partitions and the log directories of brokers to a state.

        What cannot be read is unknown, and a note of the state says why. Errors: as `read_cluster`.
        Cost: one request for each broker.
        """
        return read_sizes(self._connection, state)

    def read_traffic(self, state: ClusterState, loads: Collection[LoadKind]) -> ClusterState:
        """Add to a state what a later one is compared with: sizes, logs, and the time.

        Writes or reads among the `loads` add the offsets of logs, and reads what groups committed.
        Errors: as `read_cluster`. Cost: one request for each broker; for offsets two for every
        1,000 partitions and leader, and for reads one for every 100 groups.
        """
        return read_traffic(self._connection, state, loads)

    def read_moves(
        self,
        state: ClusterState,
        *,
        interval_s: float = RATE_INTERVAL_S,
        loads: Collection[LoadKind] = (),
        lists: bool = True,
    ) -> ClusterState:
        """Add what a plan of moves needs to a state: sizes, rates, moves and throttles.

        Write rates are measured over an interval: a longer one makes them more exact, and so does
        a balance by writes or reads, which `loads` names. Reads are measured only then. `lists`:
        whether throttle lists are read; the configs of a topic, where they were read, have them.
        Errors: as `read_cluster`. Cost: the interval, and `read_traffic` twice, or `read_sizes` if
        there is no interval; and for lists one request for every 500 topics.
        """
        in_flight, notes = read_in_flight(self._connection, state.topics)
        # Reading rows may have met the same trouble.
        new = [note for note in notes if note.rule not in {each.rule for each in state.notes}]
        found = read_throttle_lists(self._connection, state) if lists and not notes else ()
        state = replace(
            state, reassignments=in_flight, throttle_lists=found, notes=(*state.notes, *new)
        )
        if not interval_s:
            return self.read_sizes(state)
        before = self.read_traffic(state, loads)
        time.sleep(interval_s)
        return measure_rates(before, self.read_traffic(state, loads))

    def read_voters(self, state: ClusterState) -> ClusterState:
        """Add the controllers that vote to a state; none if the cluster does not say."""
        return replace(state, voters=read_voters(self._connection))

    def read_fenced(
        self, state: ClusterState, named: Collection[int] | None = None
    ) -> ClusterState:
        """Add those of the `named` brokers to a state that are registered and not alive.

        None is every broker. Nothing is added if the cluster does not say. Cost: one request.
        """
        found = read_fenced(self._connection)
        if found is None:
            return state
        wanted = found.keys() if named is None else found.keys() & set(named)
        known = {broker.id for broker in state.brokers}
        fenced = (Broker(b, found[b], alive=False) for b in wanted - known)
        brokers = tuple(sorted((*state.brokers, *fenced), key=lambda broker: broker.id))
        return replace(state, brokers=brokers, lists_fenced=True)

    def check_requests(self, state: ClusterState) -> ClusterState:
        """Add to a state which requests its brokers do not offer.

        If a lock needs one of them, a note says that applies can take none.
        Cost: 0.2 s, of a client of its own.
        """
        unoffered, notes = check_requests(self._connection)
        return replace(state, unoffered=unoffered, notes=(*state.notes, *notes))

    def read_unoffered(self) -> frozenset[KafkaRequest]:
        """Return the requests that the brokers do not offer; none if it cannot be known.

        Cost: 0.2 s, of a client of its own.
        """
        return find_unoffered(self._connection)

    def read_views(
        self, names: Collection[str], with_config: Collection[str] = ()
    ) -> Mapping[int, Mapping[str, TopicState]]:
        """Ask every living broker for its own view of some topics.

        A topic that a broker does not show is omitted from its view; a broker that does not answer
        is omitted. Cost: one metadata request per broker, and one for every 100 topics of
        `with_config` that it shows; 0.03 ms of CPU for each topic of four partitions and broker,
        and 0.2 ms with configs.
        """
        return self._views.read(names, with_config)

    def read_topic_ids(self, names: Collection[str]) -> Mapping[str, str]:
        """Return the ids of topics that exist, where brokers have them (KIP-516).

        Cost: 0.1 ms per topic of 4 partitions.
        """
        if not names:
            return {}
        what = f"asking for topic ids of {self._connection.entry.name}"
        found = self._connection.ask(lambda client: describe_topics(client, names), what)
        # Kafka spells ids in base64 for URLs, without padding; the client uses the other alphabet.
        return {
            name: str(topic.topic_id).replace("+", "-").replace("/", "_").rstrip("=")
            for name, topic in found.items()
            if not isinstance(topic, KafkaError) and str(topic.topic_id).strip("A=")
        }

    def read_usage(self, names: Collection[str]) -> Mapping[str, TopicUsage]:
        """Read the usage of topics that are to be deleted; a deleted topic is omitted.

        Cost: 0.3 s, four requests a broker, and one or two for every active consumer group.
        """
        return read_usage(self._connection, names) if names else {}

    def read_groups(self, topics: Collection[str] | None = None) -> GroupsReading:
        """Read the consumer groups, with what they have of some topics; None: of all topics.

        Errors: as `read_cluster`. Cost: one request for each broker, and one or two for every 100
        groups and 1,000 partitions.
        """
        return read_groups(self._connection, topics)

    def read_producers(self, topic: TopicState) -> Producers:
        """Read who wrote to a topic lately with an id; a reason if that cannot be seen."""
        return read_producers(self._connection, topic.name, len(topic.assignment))

    def check_rights(
        self,
        names: Collection[str],
        *,
        for_apply: bool,
        deleted: Collection[str] = (),
        elects: bool = False,
        moved: Collection[str] | None = None,
    ) -> None:
        """Refuse if rights of the account are missing, and name them.

        A plan's rights on topics are checked by the reading itself; apply's are asked for here,
        on the topics that it would create or change, on those of `deleted`, and on those whose
        replicas are to be `moved`; None if no move is started, slowed or ended.
        """
        if moved is not None:
            check_move_rights(self._connection, moved)
        check_cluster_rights(self._connection, elects=elects)
        if for_apply and (names or deleted):
            check_apply_rights(self._connection, names, deleted)

    def _read_late(self, found: _Found) -> dict[str, TopicState]:
        """Read the topics that the first broker did not show, from a broker that knows them."""
        by_broker: dict[int, list[str]] = {}
        for name, broker in found.late.items():
            by_broker.setdefault(broker, []).append(name)
        nodes = {node.id: node for node in found.nodes}
        late = {}
        for broker, names in by_broker.items():
            try:
                shown = self._views.read_topics(nodes[broker], names)
            except KafkaException:
                continue  # its topics count as missing; apply sees them before it creates any
            for name, topic in shown.items():
                late[name] = replace(topic, config=found.configs.overrides.get(name, {}))
        return late


@dataclass(slots=True)
class _Found:
    """The result of one reading.

    `late`: a broker that knows the topic, for each topic that was requested and not shown.
    """

    cluster_id: str | None
    nodes: list[Node]
    topics: dict[str, TopicMetadata]
    cordoned: frozenset[int] = frozenset()
    can_cordon: bool = False
    rates: tuple[ThrottleRate, ...] = ()
    racks: dict[int, str | None] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    configs: TopicConfigs = field(default_factory=TopicConfigs)
    defaults: dict[str, str] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    late: dict[str, int] = field(default_factory=dict)


def _read(client: AdminClient, config_of: Collection[str] | None) -> _Found:
    """Ask everything once. Errors: KafkaException if an answer is lost."""
    described = client.describe_cluster(request_timeout=REQUEST_S)
    # list_topics takes 0.3 s for 100,000 partitions, describe_topics 6.6 s. But it shows neither
    # racks nor topic ids: racks come from describe_cluster, and ids are read for few topics.
    shown = read_metadata(client).topics
    cluster = described.result()
    nodes = sorted(cluster.nodes, key=lambda node: node.id)
    found = _Found(cluster.cluster_id, nodes, dict(shown))
    alive = [node.id for node in nodes]
    told = read_broker_configs(client, alive)
    found.cordoned = find_cordoned(told.values)
    found.can_cordon = can_cordon(told.values)
    found.settings = find_settings(told.values)
    found.rates = tuple(told.rates)
    found.racks = {broker: values.get("broker.rack") for broker, values in told.values.items()}
    named = set(found.topics if config_of is None else config_of)
    # If no named topic exists, any other one shows the defaults that new topics will have.
    wanted = named & found.topics.keys()
    if not wanted and named and found.topics:
        wanted = {min(found.topics)}
    found.configs = read_configs(client, wanted, alive)
    if unread := wanted - found.configs.overrides.keys() - found.configs.denied:
        # Taken for one without overrides, it would get all of them again. Deleted meanwhile, it
        # is not shown the next time.
        text = f"brokers show {min(unread)} and do not know its configs"
        raise KafkaException(KafkaError(KafkaError._FAIL, text))
    missing = named - found.topics.keys()
    found.hidden = find_hidden(client, {*missing, NO_TOPIC})
    found.configs.denied |= find_hidden_configs(client, found.hidden & missing)
    if unseen := missing - found.hidden:
        elsewhere = read_configs(client, unseen, alive)
        found.late = elsewhere.known_by
        found.configs.overrides |= elsewhere.overrides
        found.configs.denied |= elsewhere.denied
    found.defaults = complete_defaults(found.configs, told.values.values())
    return found


def _list_brokers(found: _Found, topics: Iterable[TopicState]) -> tuple[Broker, ...]:
    """List brokers by id: the live ones, and those that appear only in replica lists."""
    alive = {
        # A cluster that reports no id is described without racks.
        node.id: Broker(
            node.id, node.rack or found.racks.get(node.id), cordoned=node.id in found.cordoned
        )
        for node in found.nodes
    }
    named = {broker for topic in topics for row in topic.assignment for broker in row}
    dead = {broker: Broker(broker, alive=False) for broker in named - alive.keys()}
    return tuple(sorted((*alive.values(), *dead.values()), key=lambda broker: broker.id))
