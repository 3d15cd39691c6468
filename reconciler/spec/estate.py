"""An estate: every document of a directory, read, checked and resolved for each cluster."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from reconciler.errors import Finding, Location, Severity, SpecError, sort_findings
from reconciler.spec.clusters import SANDBOX, ClusterEntry, list_entries
from reconciler.spec.configs import catalogue
from reconciler.spec.custom_resources import is_resource, read_resource
from reconciler.spec.files import find_files, read_file, show_path
from reconciler.spec.form_errors import check_form
from reconciler.spec.governor import Governor
from reconciler.spec.load import load_text
from reconciler.spec.resolve import ConfigReader, Written, WrittenTopic, pair_topic, resolve_topic
from reconciler.spec.rules import (
    check_cluster_topics,
    check_owned,
    check_spec,
    check_topics,
    refuse_cluster,
)
from reconciler.spec.shape import ClusterForm, ClustersDocument, TopicDocument
from reconciler.spec.values import Table, Value, describe

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

    from reconciler.model import TopicSpec

MOST_NAMED = 3
"""As many clusters of one Kafka version are named."""

MOST_FINDINGS = 200
"""As many mistakes of one file's form are shown."""


class Estate:
    """What a team wrote, checked. `findings` holds warnings and notes: errors never get here.

    `files` counts the files that hold topics; `declared` names the clusters of clusters.yaml but
    for the sandbox, which is never one of all; `owns` says which topics are the estate's on
    clusters that say nothing of their own.
    """

    def __init__(self, documents: _Documents, findings: Collection[Finding]) -> None:
        self.clusters: Mapping[str, ClusterEntry] = MappingProxyType(documents.entries)
        self.declared: tuple[str, ...] = tuple(
            sorted(documents.clusters.clusters.keys() - {SANDBOX})
        )
        self.topics: tuple[str, ...] = tuple(sorted(topic.name for topic in documents.topics))
        self.files = len({topic.where.file for topic in documents.topics})
        self.owns: tuple[str, ...] = tuple(map(str, documents.clusters.owns))
        self.profiles: tuple[str, ...] = tuple(sorted(documents.clusters.profiles))
        self.written: tuple[WrittenTopic, ...] = tuple(documents.topics)
        self.findings = sort_findings(findings)
        self._documents = documents

    def list_layers(self, cluster: str, profile: str | None) -> list[Written]:
        """List what a topic of a cluster inherits, the farthest layer first."""
        return self._documents.list_layers(cluster, profile)

    def topics_for(self, cluster: str) -> tuple[TopicSpec, ...]:
        """Return the topics of a cluster, resolved and sorted by name.

        Errors: SpecError for a cluster that the estate does not have, and for what is wrong on
        the sandbox alone.
        """
        if cluster not in self.clusters:
            where = Location(self._documents.clusters_file, 1)
            raise SpecError([refuse_cluster(cluster, self.clusters, where)])
        specs, findings = self._documents.resolve(cluster)
        _raise_errors(findings)
        return specs


def load_estate(path: Path) -> Estate:
    """Read, check and resolve an estate.

    Errors: SpecError with everything that is wrong, all at once; UsageError where the path is no
    directory.
    """
    documents = _read_documents(path)
    findings = [*documents.findings]
    if documents.complete:
        findings += check_topics(documents.topics, documents.entries, documents.clusters.profiles)
        findings += _check_clusters(documents)
    if not documents.topics and not findings:
        what, way_out = "the estate has no topics", "there is nothing to do"
        where = Location(show_path(path), 1)
        findings.append(Finding("estate-empty", what, way_out, where, Severity.NOTE))
    _raise_errors(findings)
    return Estate(documents, findings)


def _check_clusters(documents: _Documents) -> Iterator[Finding]:
    """Check each cluster, and tell what is wrong on several of them once.

    So is what is wrong with an inherited value: the finding names the first topic that has it.
    """
    told: set[tuple[Location | None, str, str]] = set()
    for cluster in documents.list_checked():
        fresh: set[tuple[Location | None, str, str]] = set()
        for finding in documents.resolve(cluster)[1]:
            gist = _gist(finding)
            inherited = finding.where is not None and finding.where.file == documents.clusters_file
            if gist not in told and not (inherited and gist in fresh):
                yield finding
            fresh.add(gist)
        told |= fresh
    yield from documents.check_unused_configs()


def _gist(finding: Finding) -> tuple[Location | None, str, str]:
    """Return what makes a finding another one: place and rule, and the rule that a team wrote."""
    own = finding.rule in ("policy-rule", "policy-rule-open")
    return finding.where, finding.rule, finding.what if own else ""


def _raise_errors(findings: Collection[Finding]) -> None:
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    if errors:
        raise SpecError(errors)


@dataclass(slots=True)
class _Documents:
    """The documents of an estate by kind, and what was found on the way to them.

    `complete` is false where clusters.yaml cannot be read, so that no topic is blamed for it.
    `entries` holds the clusters by name, the sandbox always among them.
    """

    clusters_file: str
    clusters: ClustersDocument
    table: Table = field(default_factory=Table)
    complete: bool = True
    entries: dict[str, ClusterEntry] = field(default_factory=dict)
    topics: list[WrittenTopic] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    _configs: dict[str | None, ConfigReader] = field(default_factory=dict)
    _resolved: dict[str, tuple[tuple[TopicSpec, ...], list[Finding]]] = field(default_factory=dict)

    def list_checked(self) -> list[str]:
        """Name the clusters that are checked offline: the sandbox only where it is named."""
        declared = set(self.clusters.clusters)
        named = any(
            SANDBOX in topic.overrides or SANDBOX in (topic.document.clusters or ())
            for topic in self.topics
        )
        return sorted(declared | {SANDBOX} if named or not declared else declared)

    def resolve(self, cluster: str) -> tuple[tuple[TopicSpec, ...], list[Finding]]:
        """Return the topics of a cluster, sorted, and everything there is to say about them."""
        if cluster not in self._resolved:
            self._resolved[cluster] = self._resolve(cluster)
        return self._resolved[cluster]

    def _resolve(self, cluster: str) -> tuple[tuple[TopicSpec, ...], list[Finding]]:
        form = self.clusters.clusters.get(cluster, ClusterForm())
        configs = self._read_configs(form)
        inherited = self._list_inherited(cluster, form)
        profiles = {
            name: Written(model, self.table["profiles"][name])
            for name, model in self.clusters.profiles.items()
        }
        for layer in (*inherited, *profiles.values()):
            configs.read(layer.model.config)
        governor = Governor(self.entries[cluster], configs.catalogue)
        specs, findings = [], list(governor.findings)
        for topic in self.topics:
            if topic.targets(cluster):
                profile = profiles.get(str(topic.document.profile))
                layers = inherited if profile is None else [*inherited, profile]
                spec = resolve_topic(topic, layers, cluster, configs)
                specs.append(spec)
                if not topic.partial:
                    findings += [*check_spec(spec, cluster), *configs.check_together(spec, cluster)]
                    findings += governor.check(spec)
        specs.sort(key=lambda spec: spec.name)
        findings += [*configs.findings, *check_cluster_topics(specs, form.ignore, cluster)]
        findings += check_owned(specs, form.owns or self.clusters.owns, cluster)
        return tuple(specs), findings

    def list_layers(self, cluster: str, profile: str | None) -> list[Written]:
        """List the layers below a topic: defaults, its cluster's defaults, its profile."""
        layers = self._list_inherited(cluster, self.clusters.clusters.get(cluster, ClusterForm()))
        if profile in self.clusters.profiles:
            model, table = self.clusters.profiles[profile], self.table["profiles"][profile]
            layers.append(Written(model, table))
        return layers

    def check_unused_configs(self) -> list[Finding]:
        """Check the configs that no cluster has resolved, by the newest catalogue."""
        configs = ConfigReader(catalogue(None))
        checked = frozenset(self.list_checked())
        for topic in self.topics:
            if not any(topic.targets(cluster) for cluster in checked):
                configs.read(topic.document.config)
            for cluster, override in topic.overrides.items():
                if cluster not in checked or not topic.targets(cluster):
                    configs.read(override.model.config)
        return configs.findings

    def _read_configs(self, form: ClusterForm) -> ConfigReader:
        """Return the reader of a cluster's Kafka version, with a note where it is approximate."""
        version = None if form.kafka_version is None else str(form.kafka_version)
        if version not in self._configs:
            reader = ConfigReader(catalogue(version), self._list_running(version))
            if reader.catalogue.note and form.kafka_version is not None:
                where = form.kafka_version.where
                rule = f"kafka-version-{'older' if reader.catalogue.older else 'newer'}"
                note = reader.catalogue.note
                reader.findings.append(Finding(rule, note, "", where, Severity.NOTE))
            self._configs[version] = reader
        return self._configs[version]

    def _list_running(self, version: str | None) -> list[str]:
        """Name the first clusters of a Kafka version, as clusters.yaml spells it."""
        forms = sorted(self.clusters.clusters.items())
        names = [name for name, form in forms if form.kafka_version == version]
        more = len(names) - MOST_NAMED
        return [*names[:MOST_NAMED], f"{more:,} more clusters"] if more > 0 else names or [SANDBOX]

    def _list_inherited(self, cluster: str, form: ClusterForm) -> list[Written]:
        """List the layers below a cluster's topics, the farthest first."""
        layers = []
        if "defaults" in self.table:
            layers.append(Written(self.clusters.defaults, self.table["defaults"]))
        if "defaults" in form.model_fields_set:
            layers.append(Written(form.defaults, self.table["clusters"][cluster]["defaults"]))
        return layers


def _read_documents(path: Path) -> _Documents:
    """Read every file of an estate; findings about files and forms stay with the documents."""
    files = find_files(path)
    clusters_file = files.clusters or path / "clusters.yaml"
    documents = _Documents(show_path(clusters_file), ClustersDocument.model_construct(version=1))
    documents.findings.extend(files.findings)
    if files.clusters is not None:
        _read_clusters(files.clusters, documents)
    documents.entries = list_entries(documents.clusters, documents.table, documents.clusters_file)
    for file in files.topics:
        before = len(documents.findings)
        for document in _read_file(file, documents.findings):
            _read_topics(document, documents)
        _shorten(documents.findings, before)
    return documents


def _shorten(findings: list[Finding], before: int) -> None:
    """Keep the first findings of a file that is wrong from end to end."""
    more = len(findings) - before - MOST_FINDINGS
    if more > 0:
        del findings[before + MOST_FINDINGS :]
        what, way_out = f"{more:,} more mistakes of this file are not shown", "mend these first"
        findings.append(Finding("document-form", what, way_out, findings[-1].where))


def _read_file(path: Path, findings: list[Finding]) -> tuple[Value, ...]:
    content = read_file(path)
    if isinstance(content, Finding):
        findings.append(content)
        return ()
    loaded = load_text(content, show_path(path))
    findings.extend(loaded.findings)
    return loaded.documents


def _read_clusters(path: Path, documents: _Documents) -> None:
    """Read clusters.yaml into the documents, which are incomplete where it has mistakes."""
    before = len(documents.findings)
    read = _read_file(path, documents.findings)
    if not read and len(documents.findings) == before:
        what, way_out = "clusters.yaml is empty", "write version: 1, or take the file out"
        documents.findings.append(
            Finding("key-missing", what, way_out, Location(show_path(path), 1))
        )
    for extra in read[1:]:
        what, way_out = "clusters.yaml holds more than one document", "put everything into one"
        documents.findings.append(Finding("clusters-file", what, way_out, extra.where))
    if read and not isinstance(read[0], Table):
        documents.findings.append(_refuse_document(read[0], "version: 1"))
    elif read and isinstance(read[0], Table):
        checked, findings = check_form(ClustersDocument, read[0])
        documents.findings.extend(findings)
        if checked is not None:
            documents.clusters, documents.table = checked, read[0]
    documents.complete = len(documents.findings) == before


def _read_topics(value: Value, documents: _Documents) -> None:
    """Read one document of a topic file, in whichever form it is written."""
    if not isinstance(value, Table):
        documents.findings.append(_refuse_document(value, "topic: orders.events"))
        return
    topics = read_resource(value, documents.entries) if is_resource(value) else [(value, [])]
    for table, found in topics:
        documents.findings.extend(found)
        if table is None:
            continue
        checked, findings = check_form(TopicDocument, table)
        documents.findings.extend(findings)
        if checked is not None:
            partial = any(finding.severity is Severity.ERROR for finding in (*found, *findings))
            documents.topics.append(pair_topic(checked, table, partial=partial))


def _refuse_document(value: Value, example: str) -> Finding:
    what = f"the document is {describe(value)}, not a map"
    way_out = f"write keys, one a line, without dashes in front: {example}"
    return Finding("document-form", what, way_out, value.where)
