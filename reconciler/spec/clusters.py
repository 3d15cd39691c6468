"""The clusters of an estate: the connection of each, and the settings for its topics."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import TYPE_CHECKING

from reconciler.errors import Finding, Location, Severity, SpecError
from reconciler.model import Guards
from reconciler.policy import Policy, lay_policy
from reconciler.spec.configs import choose_catalogue
from reconciler.spec.form_errors import check_form
from reconciler.spec.forms import ClustersDocument, make_policy
from reconciler.spec.syntax import load_text
from reconciler.spec.values import YamlMap, YamlText

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconciler.spec.forms import ClusterForm

SANDBOX = "sandbox"
"""The cluster that always exists: the throwaway one that runs on this machine.

It is not part of 'every cluster': unless a document names it, nothing is checked for it until a
command names it. Then topics without `clusters` apply to it as to any other cluster.
"""


@dataclass(frozen=True, slots=True)
class ClusterEntry:
    """A cluster of the estate. `client` holds references to secrets, unresolved.

    `owns` holds patterns of the topics that are this estate's, none if all are. `policy` is the
    cluster's own laid over the estate's. `known_configs` are the only configs that a managed
    service knows; None if Kafka's catalogue says it all.
    `fields` says where a guard was written, by a dotted path ("guards.max_changed"). `notes` say
    what holds for its topics only roughly, such as configs of a Kafka version without a catalogue.
    """

    name: str
    location: Location
    cluster_id: str | None = None
    kafka_version: str | None = None
    client: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    ignore: tuple[str, ...] = ()
    owns: tuple[str, ...] = ()
    exclude_brokers: frozenset[int] = frozenset()
    guards: Guards = field(default_factory=Guards)
    audit_topic: str | None = None
    strategy: str = "optimal"
    capacity: Mapping[int, int] = field(default_factory=lambda: MappingProxyType({}))
    policy: Policy = field(default_factory=Policy)
    known_configs: frozenset[str] | None = None
    fields: Mapping[str, Location] = field(default_factory=lambda: MappingProxyType({}))
    notes: tuple[Finding, ...] = ()

    def where(self, path: str) -> Location:
        """Return where `path` was written, or the cluster."""
        return self.fields.get(path, self.location)

    def manages(self, topic: str) -> bool:
        """Return whether the estate manages a topic: it owns it and does not ignore it."""
        owned = not self.owns or any(fnmatchcase(topic, pattern) for pattern in self.owns)
        return owned and not any(fnmatchcase(topic, pattern) for pattern in self.ignore)


def load_clusters(content: bytes, file: str) -> dict[str, ClusterEntry]:
    """Read a clusters.yaml that is no file of the estate, such as another commit's.

    Errors: SpecError with every error in it.
    """
    loaded = load_text(content, file)
    findings, table = list(loaded.findings), YamlMap()
    document: ClustersDocument | None = ClustersDocument.model_construct(version=1)
    if loaded.documents and isinstance(loaded.documents[0], YamlMap):
        table = loaded.documents[0]
        document, wrong = check_form(ClustersDocument, table)
        findings += wrong
    if document is None or findings:
        raise SpecError(findings)
    return list_entries(document, table, file)


def list_entries(document: ClustersDocument, table: YamlMap, file: str) -> dict[str, ClusterEntry]:
    """List the clusters of a document by name, the sandbox always among them.

    `table` says where in `file` each was written.
    """
    policy, owns = make_policy(document.policy), tuple(map(str, document.owns))
    everywhere = ClusterEntry(SANDBOX, Location(file, 1), policy=policy, owns=owns)
    entries = {SANDBOX: everywhere}
    places = table["clusters"].places() if document.clusters else {}
    for name, form in sorted(document.clusters.items()):
        entries[name] = _make_entry(name, form, places[name], table["clusters"][name], everywhere)
    return entries


def _make_entry(
    name: str, form: ClusterForm, where: Location, table: YamlMap, everywhere: ClusterEntry
) -> ClusterEntry:
    """Make the entry of a cluster; omitted values come from `everywhere`."""
    guards = table["guards"].places() if form.guards.model_fields_set else {}
    return ClusterEntry(
        name=name,
        location=where,
        cluster_id=None if form.cluster_id is None else str(form.cluster_id),
        kafka_version=None if form.kafka_version is None else str(form.kafka_version),
        client=form.client,
        ignore=tuple(map(str, form.ignore)),
        owns=tuple(map(str, form.owns)) or everywhere.owns,
        exclude_brokers=frozenset(form.exclude_brokers),
        guards=Guards(form.guards.max_changed, form.guards.max_deletes, form.guards.unused_for),
        audit_topic=None if form.audit_topic is None else str(form.audit_topic),
        strategy=form.strategy,
        capacity=MappingProxyType(dict(form.capacity)),
        policy=lay_policy(everywhere.policy, make_policy(form.policy)),
        known_configs=None if form.known_configs is None else frozenset(form.known_configs),
        fields=MappingProxyType({f"guards.{key}": place for key, place in guards.items()}),
        notes=_note_version(form.kafka_version),
    )


def _note_version(version: YamlText | None) -> tuple[Finding, ...]:
    """Add a note if a Kafka version has no catalogue."""
    if version is None or not (release := choose_catalogue(str(version))).note:
        return ()
    rule = f"kafka-version-{'older' if release.older else 'newer'}"
    return (Finding(rule, release.note, "", version.where, Severity.NOTE),)
