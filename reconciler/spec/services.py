"""Managed services, and brokers that are not Apache's: what each allows, as one table of facts.

A service presets keys of a cluster in clusters.yaml; a key that is written there wins. A service
that is not in the table is described by these keys. The facts are those that a public page of the
vendor states, or its code; docs/reference/services/ names them. What no page states refuses
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from types import MappingProxyType

from reconciler.errors import Finding, Location, Severity
from reconciler.model.cluster import TopicSpec
from reconciler.model.moves import MovePolicy
from reconciler.model.rates import NO_RATES, Rate, Rates
from reconciler.units import describe_value

APACHE = "apache"


class Placement(StrEnum):
    """Who places the replicas of new partitions on a cluster."""

    RECONCILER = "reconciler"
    BROKER = "broker"


_NOTHING: Mapping[str, frozenset[str]] = MappingProxyType({})

_SCHEMA = frozenset(
    {
        "confluent.key.schema.validation",
        "confluent.key.subject.name.strategy",
        "confluent.value.schema.validation",
        "confluent.value.subject.name.strategy",
    }
)


@dataclass(frozen=True, slots=True)
class Service:
    """What one service allows.

    `configs` are the only topic configs that can be set there; None means Kafka's but `without`
    some, and `more` of its own. `replication` is the factor that every topic gets. `fixed` has
    configs that have one value there, `refused` values that a config does not take, `most` the
    greatest value of a config.
    `placement`: with BROKER, the service places replicas itself, and moves none on request.
    `only_at_create` has configs that can be set when a topic is created, and not changed later.
    `rates` are those at which it takes changes, and what a page states without a number has none.
    `mover` says who else moves replicas there, and when. `mover_off` is the condition under which
    it does not, if moves of others are refused or undone without it: clusters.yaml has to state it.
    `no_throttle` says what limits copies there instead of the throttles of Kafka; empty if brokers
    have these. `alive_only`: a reassignment may name brokers that are alive only, also for replicas
    that stay. `hosts` are patterns of its addresses. `elsewhere` says where topics are managed, if
    that is not through Kafka.
    """

    title: str
    configs: frozenset[str] | None = None
    without: frozenset[str] = frozenset()
    more: frozenset[str] = frozenset()
    replication: int | None = None
    fixed: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    refused: Mapping[str, frozenset[str]] = field(default_factory=lambda: _NOTHING)
    most: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    only_at_create: frozenset[str] = frozenset()
    rates: Rates = NO_RATES
    placement: Placement = Placement.RECONCILER
    mover: str = ""
    mover_off: str = ""
    no_throttle: str = ""
    alive_only: bool = False
    hosts: tuple[str, ...] = ()
    elsewhere: str = ""


_EXPRESS = frozenset(
    {
        "cleanup.policy",
        "compression.type",
        "delete.retention.ms",
        "max.compaction.lag.ms",
        "max.message.bytes",
        "message.timestamp.after.max.ms",
        "message.timestamp.before.max.ms",
        "message.timestamp.type",
        "min.compaction.lag.ms",
        "retention.bytes",
        "retention.ms",
    }
)
_SERVERLESS = frozenset(
    {
        "cleanup.policy",
        "compression.type",
        "max.message.bytes",
        "message.timestamp.difference.max.ms",
        "message.timestamp.type",
        "retention.bytes",
        "retention.ms",
    }
)
_CONFLUENT = frozenset(
    {
        "cleanup.policy",
        "delete.retention.ms",
        "max.compaction.lag.ms",
        "max.message.bytes",
        "message.timestamp.after.max.ms",
        "message.timestamp.before.max.ms",
        "message.timestamp.difference.max.ms",
        "message.timestamp.type",
        "min.compaction.lag.ms",
        "min.insync.replicas",
        "retention.bytes",
        "retention.ms",
        "segment.bytes",
        "segment.ms",
        "confluent.topic.type",
        *_SCHEMA,
    }
)
_REDPANDA = frozenset(
    {
        "flush.bytes",
        "initial.retention.local.target.bytes",
        "initial.retention.local.target.ms",
        "redpanda.iceberg.delete",
        "redpanda.iceberg.invalid.record.action",
        "redpanda.iceberg.mode",
        "redpanda.iceberg.partition.spec",
        "redpanda.iceberg.target.lag.ms",
        "redpanda.key.schema.id.validation",
        "redpanda.key.subject.name.strategy",
        "redpanda.leaders.preference",
        "redpanda.remote.delete",
        "redpanda.remote.read",
        "redpanda.remote.write",
        "redpanda.value.schema.id.validation",
        "redpanda.value.subject.name.strategy",
        "retention.local.target.bytes",
        "retention.local.target.ms",
        "write.caching",
        *_SCHEMA,
    }
)
_NOT_REDPANDA = frozenset(
    {"min.insync.replicas", "segment.index.bytes", "unclean.leader.election.enable"}
)
_BALANCER = "its balancer does, and undoes other moves"
_BALANCER_OFF = "partition_autobalancing_mode is off"
_RECOVERY_RATE = "raft_learner_recovery_rate of the cluster limits copies"

SERVICES: Mapping[str, Service] = MappingProxyType(
    {
        APACHE: Service("Apache Kafka"),
        "msk": Service("Amazon MSK", hosts=("b-*.kafka.*.amazonaws.com*",)),
        "msk-express": Service(
            "Amazon MSK with Express brokers",
            configs=_EXPRESS,
            replication=3,
            mover="intelligent rebalancing does, and while it is on, all other moves are refused",
            mover_off="intelligent rebalancing is paused",
            no_throttle="nobody can set the lists of throttled replicas of a topic",
        ),
        "msk-serverless": Service(
            "Amazon MSK Serverless",
            configs=_SERVERLESS,
            most=MappingProxyType({"max.message.bytes": 8 << 20}),
            only_at_create=frozenset({"cleanup.policy"}),
            rates=Rates(requests=Rate(2, 1), partitions=Rate(250, 300)),
            placement=Placement.BROKER,
            hosts=("*.kafka-serverless.*.amazonaws.com*",),
        ),
        "confluent-cloud": Service(
            "Confluent Cloud",
            configs=_CONFLUENT,
            replication=3,
            placement=Placement.BROKER,
            hosts=("*.confluent.cloud*",),
        ),
        "aiven": Service(
            "Aiven for Apache Kafka",
            more=frozenset({"diskless.enable"}),
            mover="Aiven does when it replaces nodes",
            hosts=("*.aivencloud.com*",),
        ),
        "event-hubs": Service(
            "Azure Event Hubs",
            hosts=("*.servicebus.windows.net*",),
            elsewhere="with the portal, the command line or an API of Azure",
        ),
        "google": Service(
            "Google Cloud Managed Service for Apache Kafka",
            refused=MappingProxyType({"compression.type": frozenset({"zstd"})}),
            mover="with AUTO_REBALANCE_ON_SCALE_UP, the service does when it scales up",
            hosts=("*.managedkafka.*.cloud.goog*",),
        ),
        "redpanda": Service(
            "Redpanda",
            without=_NOT_REDPANDA,
            more=_REDPANDA,
            mover=_BALANCER,
            mover_off=_BALANCER_OFF,
            no_throttle=_RECOVERY_RATE,
            alive_only=True,
        ),
        "redpanda-cloud": Service(
            "Redpanda Cloud",
            without=_NOT_REDPANDA,
            more=_REDPANDA,
            replication=3,
            placement=Placement.BROKER,
            mover=_BALANCER,
            mover_off=_BALANCER_OFF,
            no_throttle=_RECOVERY_RATE,
            alive_only=True,
            hosts=("*.cloud.redpanda.com*",),
        ),
        "warpstream": Service(
            "WarpStream", placement=Placement.BROKER, hosts=("*.warpstream.com*",)
        ),
        "automq": Service(
            "AutoMQ",
            replication=1,
            fixed=MappingProxyType({"min.insync.replicas": "1"}),
            mover="its AutoBalancer does",
        ),
        "strimzi": Service(
            "Strimzi",
            mover="Cruise Control does, for a KafkaRebalance or auto-rebalance",
            hosts=("*-kafka-bootstrap.*",),
        ),
    }
)
"""The services by the name that clusters.yaml has for them."""


def list_known(name: str, catalogue: Collection[str]) -> frozenset[str] | None:
    """Return the only topic configs that can be set on a service; None for all of Kafka's."""
    service = SERVICES[name]
    if service.configs is not None or not (service.without or service.more):
        return service.configs
    return frozenset(catalogue) - service.without | service.more


def suggest_service(servers: str) -> str:
    """Return the service whose addresses look like these bootstrap servers; empty for none."""
    hosts = [host.strip() for host in servers.split(",")]
    for name, service in SERVICES.items():
        if any(fnmatchcase(host, pattern) for host in hosts for pattern in service.hosts):
            return name
    return ""


def check_service(spec: TopicSpec, name: str, cluster: str) -> Iterator[Finding]:
    """Yield what a service would refuse in a spec, or replace without a word.

    What is wrong is said of the service, so that it is said once for all of its clusters.
    """
    service = SERVICES[name]
    if spec.absent:
        return
    by_hand = spec.assignment is not None
    where = spec.where("assignment" if by_hand else "replication_factor")
    factor = len(spec.assignment[0]) if spec.assignment else spec.replication_factor
    if factor is not None and service.replication not in (None, factor):
        what = f"{service.title} gives every topic replication_factor {service.replication}, not "
        way_out = write_for_cluster(
            spec, where, cluster, f"replication_factor: {service.replication}"
        )
        yield Finding("service-replication", f"{what}{factor}", way_out, where)
    for key, value in spec.config.items():
        where, shown = spec.where(f"config.{key}"), f"{key} {describe_value(key, value)}"
        best = service.fixed.get(key, "")
        if best and value != best:
            what = f"{service.title} always has {key} {best}, also for {value}"
        elif value in service.refused.get(key, ()):
            what = f"{service.title} does not support {shown}"
        elif key in service.most and value.isdecimal() and int(value) > service.most[key]:
            best = str(service.most[key])
            what = f"{service.title} accepts at most {describe_value(key, best)}: {shown}"
        else:
            continue
        way_out = write_for_cluster(spec, where, cluster, f"config: {{{key}: {best or 'null'}}}")
        yield Finding("service-value", what, way_out, where)


def write_for_cluster(spec: TopicSpec, where: Location, cluster: str, keys: str) -> str:
    """Say how to write keys for one cluster: of the topic, or of all that inherit a value."""
    if where.file == spec.location.file:
        return f"write overrides: {{{cluster}: {{{keys}}}}}"
    return f"write clusters: {{{cluster}: {{defaults: {{{keys}}}}}}}"


def check_cluster(name: str, cluster: str, where: Callable[[str], Location]) -> Iterator[Finding]:
    """Refuse a cluster whose topics are not managed through Kafka. `where` has a key's place."""
    service = SERVICES[name]
    if service.elsewhere:
        what = f"topics of {service.title} are not managed through Kafka, so {cluster} cannot be"
        way_out = f"manage them {service.elsewhere}"
        yield Finding("service-elsewhere", what, way_out, where("service"))


def spell_moves(name: str, kinds: Iterable[str], below: str) -> str:
    """Return the edit that has a cluster of a service allow some kinds of moves.

    In: `below`, where to write it, such as "below this cluster". What the service asks for is part
    of it, so that validation accepts the result.
    """
    service = SERVICES[name]
    rate = "unlimited" if service.no_throttle else "30MiB"
    off = ", balancer_off: true" if service.mover_off else ""
    condition = f", if {service.mover_off}" if service.mover_off else ""
    return f"write moves: {{allow: [{', '.join(kinds)}], rate: {rate}{off}}} {below}{condition}"


def check_moves(
    name: str, cluster: str, moves: MovePolicy, where: Callable[[str], Location]
) -> Iterator[Finding]:
    """Refuse moves that a service would refuse or undo, and a rate that it does not know."""
    service = SERVICES[name]
    if service.mover_off and not moves.balancer_off:
        what = f"not only reconciler moves replicas on {cluster}: {service.mover}"
        way_out = f"write balancer_off: true below moves, if {service.mover_off}; or remove moves"
        yield Finding("service-balancer", what, way_out, where("moves"))
    if service.no_throttle and moves.rate_bytes_per_s is not None:
        what = f"{service.title} has no throttles of moves, so {cluster} cannot have a rate"
        way_out = f"write rate: unlimited; {service.no_throttle}"
        yield Finding("service-throttle", what, way_out, where("moves.rate"))


def note_cluster(
    name: str, cluster: str, servers: str, places: Mapping[str, Location], *, balancer_off: bool
) -> Iterator[Finding]:
    """Yield notes on a service: who else moves replicas, or which service it may be.

    In: `balancer_off`, whether clusters.yaml states that nobody else does.
    """
    service = SERVICES[name]
    if "moves" in places and service.mover and (balancer_off or not service.mover_off):
        what = f"not only reconciler moves replicas on {cluster}: {service.mover}"
        way_out = "make sure that nobody else moves replicas while a plan of moves is applied"
        if balancer_off:
            off = service.mover_off or "nobody else moves replicas"
            what = f"{what}; clusters.yaml states that {off}"
            way_out = "make sure that this stays true until the last plan of moves has ended"
        yield Finding("service-mover", what, way_out, places["moves"], Severity.NOTE)
    if likely := suggest_service(servers) if "service" not in places else "":
        what = f"the address of {cluster} looks like {SERVICES[likely].title}"
        way_out = f"write service: {likely}, or mute: [service-likely]"
        yield Finding("service-likely", what, way_out, places.get("client"), Severity.NOTE)
