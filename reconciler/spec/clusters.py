"""From the document clusters.yaml to the clusters of an estate, with what they inherit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from reconciler.errors import Finding, Location, Severity
from reconciler.model.cluster import Guards
from reconciler.model.moves import LoadAim
from reconciler.model.rates import Rates
from reconciler.policy.policy import Baseline, Bounds, lay_policy
from reconciler.spec.baseline import WrittenExemption
from reconciler.spec.client_authentication import note_unfollowed
from reconciler.spec.configs import choose_catalogue
from reconciler.spec.entry import SANDBOX, ClusterEntry
from reconciler.spec.forms import (
    ClusterForm,
    ClustersDocument,
    make_hours,
    make_move_policy,
    make_policy,
    make_rebalance,
)
from reconciler.spec.services import SERVICES, list_known, note_cluster
from reconciler.spec.values import YamlMap, YamlText


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
    what = f"{key}: {what} of the estate's policy, so no value is allowed"
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
        entry = ClusterEntry(
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
            placement=form.placement or SERVICES[form.service].placement,
            strategy=form.strategy,
            capacity=MappingProxyType(dict(form.capacity)),
            balance=LoadAim(form.balance.by, form.balance.within),
            rebalance=make_rebalance(form.rebalance, form.balance),
            moves=make_move_policy(
                form.moves, unthrottled=bool(SERVICES[form.service].no_throttle)
            ),
            move_hours=make_hours(form.moves),
            rates=Rates(
                form.rates.requests or SERVICES[form.service].rates.requests,
                form.rates.partitions or SERVICES[form.service].rates.partitions,
            ),
            policy=lay_policy(policy, make_policy(form.policy)),
            service=form.service,
            known_configs=_list_known(form),
            keeps_defaults=form.keeps_defaults,
            mute=form.mute,
            fields=MappingProxyType(fields),
            notes=(*_note_version(form.kafka_version), *_note_service(name, form, fields)),
            stages=tuple(tuple(map(str, stage)) for stage in document.stages),
        )
        unfollowed = note_unfollowed(name, entry.client, entry.where)
        entries[name] = replace(entry, notes=(*entry.notes, *unfollowed))
    return {name: _exempt(entry, exemptions) for name, entry in entries.items()}


def _note_service(
    name: str, form: ClusterForm, places: Mapping[str, Location]
) -> Iterator[Finding]:
    servers = form.client.get("bootstrap.servers", "")
    balancer_off = form.moves is not None and form.moves.balancer_off
    return note_cluster(form.service, name, servers, places, balancer_off=balancer_off)


def _list_known(form: ClusterForm) -> frozenset[str] | None:
    """Return the only configs that topics may set: as written, or those of the service."""
    if form.known_configs is not None:
        return frozenset(form.known_configs)
    version = None if form.kafka_version is None else str(form.kafka_version)
    return list_known(form.service, choose_catalogue(version).settable)


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
