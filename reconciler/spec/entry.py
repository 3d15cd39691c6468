"""A cluster of an estate, as clusters.yaml declares it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from types import MappingProxyType

from reconciler.errors import Finding, Location
from reconciler.model.cluster import Guards
from reconciler.model.hours import MoveHours
from reconciler.model.moves import AskedRebalance, LoadAim, LoadKind, MovePolicy
from reconciler.model.rates import NO_RATES, Rates
from reconciler.policy.policy import Policy
from reconciler.spec.configs import Catalogue, choose_catalogue
from reconciler.spec.services import APACHE, SERVICES, Placement

SANDBOX = "sandbox"
"""The cluster that always exists: the throwaway one that runs on this machine.

It is not part of 'every cluster': unless a document names it, nothing is checked for it until a
command names it. Then topics without `clusters` apply to it as to any other cluster.
"""


@dataclass(frozen=True, slots=True)
class ClusterEntry:
    """A cluster of the estate. `client` holds references to secrets, unresolved.

    `owns` holds patterns of the topics that the estate owns; empty means all topics. `owners` are
    the only ones that topics may have; empty means any. `policy` is the policy of the cluster,
    merged over the policy of the estate. `known_configs` holds the only configs that a managed
    service knows; None means all configs of Kafka. `keeps_defaults` is false if the service drops
    an override that equals its default. `balance` is what a rebalance aims at, and
    `rebalance` one that is asked for. `moves` says which replicas may move, and how fast; None
    means none. They begin in `move_hours` only, or at any time if there are none. `rates` are those
    that apply keeps to.
    `service` is who runs the brokers, a name of `SERVICES`. `drain_brokers` are to hold no replica;
    they are among `exclude_brokers`.
    `internal_replication_factor` is the least number of replicas of the topics internal to Kafka;
    None leaves them as they are. `mute` holds the rules whose notes a plan leaves out. `fields`
    holds the locations of its keys by dotted path ("guards.max_changed"). `notes` say which checks
    are imprecise, such as those for a Kafka version without a catalogue. `stages` are those of the
    estate. `placement` says who places new replicas.
    """

    name: str
    location: Location
    cluster_id: str | None = None
    kafka_version: str | None = None
    client: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    ignore: tuple[str, ...] = ()
    owns: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    exclude_brokers: frozenset[int] = frozenset()
    drain_brokers: frozenset[int] = frozenset()
    internal_replication_factor: int | None = None
    guards: Guards = field(default_factory=Guards)
    audit_topic: str | None = None
    placement: Placement = Placement.RECONCILER
    strategy: str = "optimal"
    capacity: Mapping[int, int] = field(default_factory=lambda: MappingProxyType({}))
    balance: LoadAim = field(default_factory=LoadAim)
    rebalance: AskedRebalance | None = None
    moves: MovePolicy | None = None
    move_hours: tuple[MoveHours, ...] = ()
    rates: Rates = NO_RATES
    policy: Policy = field(default_factory=Policy)
    service: str = APACHE
    known_configs: frozenset[str] | None = None
    keeps_defaults: bool = True
    mute: frozenset[str] = frozenset()
    fields: Mapping[str, Location] = field(default_factory=lambda: MappingProxyType({}))
    notes: tuple[Finding, ...] = ()
    stages: tuple[tuple[str, ...], ...] = ()

    @property
    def catalogue(self) -> Catalogue:
        """The topic configs that its specs can set."""
        keeps_defaults = self.keeps_defaults
        return choose_catalogue(
            self.kafka_version, self.known_configs, keeps_defaults=keeps_defaults
        )

    @property
    def waits_for(self) -> tuple[str, ...]:
        """The clusters of the stages before that of this one: a merge reaches them first."""
        number = next((n for n, stage in enumerate(self.stages) if self.name in stage), 0)
        return tuple(name for stage in self.stages[:number] for name in stage)

    @property
    def weighed_by(self) -> LoadKind:
        """What the cluster is balanced by when topics are placed, unless a plan says otherwise.

        Never by traffic: some seconds of it must not decide where replicas are for years.
        """
        first = self.balance.by[0]
        return LoadKind.DISK if first is LoadKind.DISK and not self.why_no_rows else LoadKind.COUNT

    @property
    def why_no_rows(self) -> str:
        """Why reconciler chooses no brokers for replicas here; empty if it does."""
        if self.placement is Placement.RECONCILER:
            return ""
        if self.can_place:
            return f"the brokers of {self.name} place replicas (placement: broker in clusters.yaml)"
        return f"{SERVICES[self.service].title} places the replicas of {self.name} itself"

    @property
    def can_place(self) -> bool:
        """Whether the service leaves it to the estate who places replicas."""
        return SERVICES[self.service].placement is Placement.RECONCILER

    @property
    def fixed(self) -> Mapping[str, str]:
        """The configs that the service gives every topic, whatever its spec says."""
        known, fixed = self.known_configs, SERVICES[self.service].fixed
        return {key: value for key, value in fixed.items() if known is None or key in known}

    def where(self, path: str) -> Location:
        """Return where `path`, or the nearest key above it, was written, or the cluster."""
        while path:
            if path in self.fields:
                return self.fields[path]
            path = path.rpartition(".")[0]
        return self.location

    def manages(self, topic: str) -> bool:
        """Return whether the estate manages a topic: it owns it and does not ignore it."""
        owned = not self.owns or any(fnmatchcase(topic, pattern) for pattern in self.owns)
        return owned and not any(fnmatchcase(topic, pattern) for pattern in self.ignore)
