"""The clusters of an estate: the connection of each, and the settings for its topics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from types import MappingProxyType

from reconciler.errors import Finding, Location, Severity
from reconciler.model.cluster import Guards
from reconciler.model.moves import MovePolicy
from reconciler.policy.policy import Baseline, Bounds, Policy, lay_policy
from reconciler.spec.baseline import WrittenExemption
from reconciler.spec.configs import Catalogue, choose_catalogue
from reconciler.spec.forms import ClustersDocument, make_move_policy, make_policy
from reconciler.spec.values import YamlMap, YamlText

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
    an override that equals its default. `moves` says which replicas may move, and how fast; None
    means none. `drain_brokers` are to hold no replica; they are among `exclude_brokers`.
    `internal_replication_factor` is the least number of replicas of the topics internal to Kafka;
    None leaves them as they are. `mute` holds the rules whose notes a plan leaves out. `fields`
    holds the locations of its keys by dotted path ("guards.max_changed"). `notes` say which checks
    are imprecise, such as those for a Kafka version without a catalogue. `stages` are those of the
    estate.
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
    strategy: str = "optimal"
    capacity: Mapping[int, int] = field(default_factory=lambda: MappingProxyType({}))
    moves: MovePolicy | None = None
    policy: Policy = field(default_factory=Policy)
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


def check_ranges(document: ClustersDocument, table: YamlMap) -> Iterator[Finding]:
    """Report ranges that are empty once a cluster's policy is merged over that of the estate."""
    above = document.policy
    for name, form in sorted(document.clusters.items()):
        if "policy" not in table["clusters"][name]:
            continue
        own, written = form.policy, table["clusters"][name]["policy"]
        for key in ("partitions", "replication_factor"):
            yield from _check_range(key, getattr(above, key), getattr(own, key), written)
        for key, bounds in own.config.ranges.items():
            ranges = written["config"]["ranges"]
            yield from _check_range(key, above.config.ranges.get(key), bounds, ranges)


def _check_range(
    key: str, above: Bounds | None, own: Bounds | None, written: YamlMap
) -> Iterator[Finding]:
    """Report a range of a cluster whose one end contradicts the other end of the estate's range."""
    if above is None or own is None:
        return
    least, most = own.least or above.least, own.most or above.most
    if least is None or most is None or least.number <= most.number:
        return
    if own.least is None:
        what = f"max {most.shown} is below min {least.shown}"
    else:
        what = f"min {least.shown} exceeds max {most.shown}"
    what = f"{key}: {what} of the estate's policy, so that nothing is allowed"
    way_out = f"write {'min' if own.least is None else 'max'} here as well, or correct one"
    yield Finding("policy-range", what, way_out, written[key].where)


def list_entries(
    document: ClustersDocument,
    table: YamlMap,
    file: str,
    exemptions: Sequence[WrittenExemption] = (),
) -> dict[str, ClusterEntry]:
    """List the clusters of a document by name. The sandbox is always one of them.

    `table` holds the locations in `file`. Omitted values come from the top level of the document.
    `exemptions` are those of the baseline next to it.
    """
    policy, owns, owners = make_policy(document.policy), document.owns, document.owners
    sandbox = ClusterEntry(SANDBOX, Location(file, 1), policy=policy, owns=owns, owners=owners)
    entries = {SANDBOX: sandbox}
    places = table["clusters"].places() if document.clusters else {}
    shared = _list_places(table, ("owners", "owns", "policy"))
    for name, form in sorted(document.clusters.items()):
        guards = form.guards
        settings = table["clusters"][name]
        fields = {**shared, **_list_places(settings)}
        entries[name] = ClusterEntry(
            name=name,
            location=places[name],
            cluster_id=form.cluster_id,
            kafka_version=None if form.kafka_version is None else str(form.kafka_version),
            client=form.client,
            ignore=form.ignore,
            owns=form.owns or owns,
            owners=owners,
            exclude_brokers=frozenset((*form.exclude_brokers, *form.drain_brokers)),
            drain_brokers=frozenset(form.drain_brokers),
            internal_replication_factor=form.internal_replication_factor,
            guards=Guards(
                guards.max_changed, guards.max_deletes, guards.unused_for, guards.from_base
            ),
            audit_topic=form.audit_topic,
            strategy=form.strategy,
            capacity=MappingProxyType(dict(form.capacity)),
            moves=make_move_policy(form.moves),
            policy=lay_policy(policy, make_policy(form.policy)),
            known_configs=None if form.known_configs is None else frozenset(form.known_configs),
            keeps_defaults=form.keeps_defaults,
            mute=form.mute,
            fields=MappingProxyType(fields),
            notes=_note_version(form.kafka_version),
            stages=tuple(tuple(map(str, stage)) for stage in document.stages),
        )
    return {name: _exempt(entry, exemptions) for name, entry in entries.items()}


def _exempt(entry: ClusterEntry, exemptions: Sequence[WrittenExemption]) -> ClusterEntry:
    """Return a cluster with its part of a baseline; the sandbox has all of it."""
    if not exemptions:
        return entry
    # An earlier entry holds if the same is exempt twice, which is an error.
    ours = [each for each in exemptions if entry.name == SANDBOX or each.applies(entry.name)]
    values = {each.broken: each.value for each in reversed(ours)}
    policy = replace(entry.policy, baseline=Baseline(MappingProxyType(values)))
    fields = {**entry.fields, "policy.baseline": Location(exemptions[0].where.file, 1)}
    return replace(entry, policy=policy, fields=MappingProxyType(fields))


def _list_places(table: YamlMap, keys: Iterable[str] = (), above: str = "") -> dict[str, Location]:
    """Return where keys, and all keys below them, are written, by dotted path. No keys: all."""
    places = {}
    for key, value in table.entries():
        if not keys or key in keys:
            places[f"{above}{key}"] = key.where
            if isinstance(value, YamlMap):
                places |= _list_places(value, above=f"{above}{key}.")
    return places


def _note_version(version: YamlText | None) -> tuple[Finding, ...]:
    """Add a note if a Kafka version has no catalogue."""
    if version is None or not (release := choose_catalogue(str(version))).note:
        return ()
    rule = f"kafka-version-{'older' if release.older else 'newer'}"
    return (Finding(rule, release.note, "", version.where, Severity.NOTE),)
