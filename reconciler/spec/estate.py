"""An estate: the texts of a directory become the topic specs of each cluster.

    texts → documents → clusters → specs

`documents` reads YAML (`syntax`) into `forms`. `clusters` lists the settings of each cluster.
`resolve` merges the layers of each topic and checks the result. Every stage returns its result and
its findings. Only this module raises errors, all of them at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from reconciler.errors import Finding, Location, Severity, SpecError, show_path, sort_findings
from reconciler.model.cluster import TopicSpec
from reconciler.model.configs import Origin
from reconciler.policy.breaches import Breach
from reconciler.policy.policy import Baseline, BrokenLimit
from reconciler.spec.base import Base, hold_guards
from reconciler.spec.baseline import WrittenExemption, check_baseline
from reconciler.spec.clusters import list_entries
from reconciler.spec.configs import Catalogue
from reconciler.spec.documents import Documents, WrittenTopic, read_documents
from reconciler.spec.entry import SANDBOX, ClusterEntry
from reconciler.spec.forms import AuditForm
from reconciler.spec.names import check_spellings
from reconciler.spec.resolve import Resolver
from reconciler.spec.rules import (
    check_environments,
    check_moving,
    check_placing,
    check_stages,
    check_written_topics,
    refuse_cluster,
)
from reconciler.spec.services import check_cluster
from reconciler.spec.values import RENDER, find_expression


def parse_estate(
    files: Mapping[str, bytes | Finding],
    root: str = "",
    base: Base | None = None,
    *,
    is_draft: bool = False,
    exempts_all: bool = False,
) -> Estate:
    """Read, check and resolve an estate: its YAML files by their path in it.

    `root` is the path of the estate in locations. A finding instead of bytes says why a file could
    not be read. `base` is what the estate is a request to: its guards hold if it asks for this.
    `is_draft`: it is still being written, and a topic may lack its counts. `exempts_all`: nothing
    that breaks the policy is an error, and all of it is in `exempt`, as if a baseline had it.
    Errors: SpecError, with all errors of the estate.
    """
    # 1. Texts become documents.
    documents = read_documents(files, root)
    clusters = documents.clusters
    findings, resolved = [*documents.findings], {}
    exempt: dict[str, tuple[Breach, ...]] = {}
    # 2. clusters.yaml becomes one entry per cluster.
    written = documents.exemptions
    entries = list_entries(clusters.document, clusters.table, clusters.file, written)
    loosened: dict[str, tuple[Finding, ...]] = {}
    if base is not None:
        for name, entry in entries.items():
            entries[name], loosened[name] = hold_guards(base, entry)
    if exempts_all:
        everything = Baseline(MappingProxyType({}), everything=True)
        for name, entry in entries.items():
            policy = replace(entry.policy, baseline=everything)
            entries[name] = replace(entry, policy=policy)
    checked = _list_checked(documents)
    # 3. Topics become one spec per cluster. With errors in clusters.yaml, clusters and profiles may
    # be missing from the entries, and topics would get findings for that.
    resolver = Resolver(documents, entries, is_draft=is_draft)
    if clusters.readable:
        resolved = {cluster: resolver.resolve(cluster) for cluster in checked}
        findings += check_environments(entries)
        findings += check_stages(clusters.document.stages, entries)
        findings += check_written_topics(documents.topics, entries, clusters.document.profiles)
        if not clusters.document.owners:  # otherwise each owner is spelled as there
            named = (topic.document.owner for topic in documents.topics)
            findings += check_spellings([owner for owner in named if owner is not None])
        each = ((*entries[name].notes, *resolved[name].findings) for name in checked)
        findings += _say_once(each, clusters.file)
        for name in checked:
            entry = entries[name]
            findings += check_moving(entry)
            findings += check_placing(entry)
            findings += check_cluster(entry.service, name, entry.where)
        findings += resolver.check_unused(frozenset(checked))
        on = (cluster for each in written for cluster in each.clusters or ())
        findings += (refuse_cluster(n, entries, n.where) for n in on if n not in entries)
        exempt = {name: resolved[name].exempt for name in checked}
        if not exempts_all:
            findings += check_baseline(
                written, exempt, {n: _list_held(entries[n]) for n in checked}
            )
    if not documents.topics and not findings:
        what, way_out = "the estate has no topics", "write one, or import those of a cluster"
        where = Location(show_path(root), 1)
        findings.append(Finding("estate-empty", what, way_out, where, Severity.NOTE))
    # 4. Any error ends here; warnings and notes go into the estate.
    by_path = {show_path(root, path): content for path, content in files.items()}
    findings = list(_recognise_templates(findings, by_path))
    about = documents.name_topics(findings)
    _raise_errors(findings, [found for name in loosened for found in loosened[name]], about)
    specs = {cluster: found.specs for cluster, found in resolved.items()}
    return Estate(documents, entries, resolver, specs, findings, loosened, exempt, about)


class Estate:
    """The checked files of a team. `findings` holds warnings and notes, never errors.

    `files` counts the files with topics. `declared` names the clusters of clusters.yaml without the
    sandbox, because "all clusters" never includes it. `stages` holds these
    in the order in which a merge reaches them; without `stages` in clusters.yaml, all are one
    stage, and `staged` is false. `audit` holds the limits of an audit of the fleet.
    `owns` is the default for clusters that do not set their own `owns`. `loosened` holds a
    warning for each guard of a cluster that is looser than at the base. `exempt` holds what the
    baseline exempts of the policy by cluster, and `exemptions` its entries. `about` names the
    topics of findings, as far as these are about one topic.
    """

    def __init__(
        self,
        documents: Documents,
        entries: Mapping[str, ClusterEntry],
        resolver: Resolver,
        specs: dict[str, tuple[TopicSpec, ...]],
        findings: Collection[Finding],
        loosened: Mapping[str, tuple[Finding, ...]] = MappingProxyType({}),
        exempt: Mapping[str, tuple[Breach, ...]] = MappingProxyType({}),
        about: Mapping[Finding, str] = MappingProxyType({}),
    ) -> None:
        document = documents.clusters.document
        self.clusters: Mapping[str, ClusterEntry] = MappingProxyType(dict(entries))
        self.declared: tuple[str, ...] = tuple(sorted(document.clusters.keys() - {SANDBOX}))
        self.stages: tuple[tuple[str, ...], ...] = tuple(
            tuple(map(str, stage)) for stage in document.stages
        ) or (self.declared,)
        self.topics: tuple[str, ...] = tuple(sorted(topic.name for topic in documents.topics))
        self.files = len({topic.where.file for topic in documents.topics})
        self.staged = bool(document.stages)
        self.audit: AuditForm = document.audit
        self.owns: tuple[str, ...] = document.owns
        self.profiles: tuple[str, ...] = tuple(sorted(document.profiles))
        self.written: tuple[WrittenTopic, ...] = documents.topics
        self.findings = sort_findings(findings)
        self.loosened = MappingProxyType(dict(loosened))
        self.about = MappingProxyType(dict(about))
        self.exempt = MappingProxyType(dict(exempt))
        self.exemptions: tuple[WrittenExemption, ...] = documents.exemptions
        self._clusters_file = documents.clusters.file
        self._resolver = resolver
        self._specs = specs

    def has_layers(self, cluster: str) -> bool:
        """Return whether topics of a cluster inherit any layer other than a profile."""
        return bool(self._resolver.list_layers(cluster, None))

    def inherit(self, cluster: str, profile: str | None, release: Catalogue) -> TopicSpec:
        """Return the values that a topic of a cluster inherits."""
        return self._resolver.resolve_empty(cluster, profile, release)

    def name_origins(self, cluster: str) -> Mapping[Location, Origin]:
        """Return the layer of every config that topics of a cluster may have, by its place."""
        return self._resolver.name_origins(cluster)

    def resolve_base(self, topic: WrittenTopic, cluster: str, release: Catalogue) -> TopicSpec:
        """Return a topic's spec on a cluster without its override for this cluster."""
        return self._resolver.resolve_base(topic, cluster, release)

    def topics_for(self, cluster: str) -> tuple[TopicSpec, ...]:
        """Return the topics of a cluster, resolved and sorted by name.

        Errors: SpecError for a cluster that the estate does not have, and for errors that only
        occur on the sandbox.
        """
        if cluster not in self.clusters:
            where = Location(self._clusters_file, 1)
            raise SpecError([refuse_cluster(cluster, self.clusters, where)])
        if cluster not in self._specs:  # the sandbox, if no document names it
            specs, findings, _ = self._resolver.resolve(cluster)
            _raise_errors(findings)
            self._specs[cluster] = specs
        return self._specs[cluster]


def _list_held(entry: ClusterEntry) -> Mapping[BrokenLimit, str]:
    """Return the values of a baseline that hold on a cluster."""
    return {} if entry.policy.baseline is None else entry.policy.baseline.values


_TEXT_COUNTS = (
    *("policy-rule", "policy-rule-open", "quota-per-owner", "quota-per-label"),
    *("service-config", "service-replication", "service-value"),
)
"""The rules of which one place can have several different findings."""


def _list_checked(documents: Documents) -> list[str]:
    """Name the clusters to check: all declared ones.

    The sandbox is checked if a document names it, or if it is the only cluster.
    """
    declared = set(documents.clusters.document.clusters)
    named = any(
        SANDBOX in topic.overrides or SANDBOX in (topic.document.clusters or ())
        for topic in documents.topics
    )
    return sorted(declared | {SANDBOX} if named or not declared else declared)


def _say_once(clusters: Iterable[Iterable[Finding]], clusters_file: str) -> Iterator[Finding]:
    """Yield each finding once, although it occurs on several clusters.

    Within one cluster, equal places and rules can be different errors, except at a value of
    clusters.yaml: there, every topic that inherits the value would repeat the finding.
    """
    said: set[tuple[Location | None, str, str]] = set()
    gist: tuple[Location | None, str, str]
    for findings in clusters:
        fresh: set[tuple[Location | None, str, str]] = set()
        for finding in findings:
            # Texts can name the cluster, so place and rule identify a finding. There are two
            # exceptions: rules of a team share one id, as do quotas and services, and each cluster
            # has its own place for the note on its version.
            if finding.rule.startswith("kafka-version-"):
                gist = (None, finding.rule, finding.what)
            else:
                named = finding.rule in _TEXT_COUNTS
                gist = (finding.where, finding.rule, finding.what if named else "")
            inherited = finding.where is not None and finding.where.file == clusters_file
            if gist not in said and not (inherited and gist in fresh):
                yield finding
            fresh.add(gist)
        said |= fresh


def _recognise_templates(
    findings: Iterable[Finding], files: Mapping[str, bytes | Finding]
) -> Iterator[Finding]:
    """Say of errors in expressions of a template that the file is to be rendered first.

    A template is YAML if its expressions are in quotes, and each is a wrong value of some rule.
    """
    lines: dict[str, list[str]] = {}
    for finding in findings:
        where, content = finding.where, files.get(finding.where.file) if finding.where else None
        if (
            where is None
            or finding.severity is not Severity.ERROR
            or not isinstance(content, bytes)
        ):
            yield finding
            continue
        if where.file not in lines:
            lines[where.file] = content.decode("utf-8-sig", "replace").split("\n")
        here = "".join(lines[where.file][where.line - 1 : where.line])[where.column - 1 :]
        yield replace(finding, way_out=RENDER) if find_expression(here) else finding


def _raise_errors(
    findings: Collection[Finding],
    loosened: Iterable[Finding] = (),
    about: Mapping[Finding, str] = MappingProxyType({}),
) -> None:
    """Raise the errors, with the loosened guards: an error may be about the guard of the base."""
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    if errors:
        raise SpecError([*errors, *loosened], about)
