"""From texts to documents: the files of an estate as `forms`, with the location of each value.

A topic document has our own form or the form of a KafkaTopic. An error in one document does not
hide findings of another document.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import itemgetter

from reconciler.errors import Finding, Location, Severity, SpecError, show_path
from reconciler.spec.baseline import BASELINE_FILE, WrittenExemption, read_baseline
from reconciler.spec.clusters import check_ranges, list_entries
from reconciler.spec.declarations import check_form
from reconciler.spec.entry import ClusterEntry
from reconciler.spec.forms import ClustersDocument, Layer, TopicDocument
from reconciler.spec.resources import is_resource, read_resource
from reconciler.spec.services import SERVICES
from reconciler.spec.syntax import load_text
from reconciler.spec.values import YamlList, YamlMap, YamlText, YamlValue, describe_yaml

MOST_FINDINGS = 200
"""The number of form errors shown per file."""

CLUSTERS_FILES = ("clusters.yaml", "clusters.yml")
"""The names of the file with the clusters. Case does not matter, so that none is overlooked."""


@dataclass(frozen=True, slots=True)
class Written:
    """One layer of values: its model, and the YAML map behind it."""

    model: Layer
    table: YamlMap

    def where(self, key: str) -> Location:
        """The location of the value of a key."""
        value: YamlValue = self.table[key]
        return value.where


@dataclass(frozen=True, slots=True)
class WrittenTopic:
    """A topic document, with a layer for each of its overrides.

    `clusters` names its clusters; None means every cluster. `partial`: values of the wrong form are
    missing, so checks across its values are skipped.
    """

    document: TopicDocument
    layer: Written
    overrides: Mapping[str, Written]
    clusters: frozenset[str] | None = None
    partial: bool = False

    @property
    def name(self) -> str:
        """The topic's name."""
        return str(self.document.topic)

    @property
    def where(self) -> Location:
        """The location of its name."""
        return self.document.topic.where

    def targets(self, cluster: str) -> bool:
        """Return whether the topic belongs on a cluster."""
        return self.clusters is None or cluster in self.clusters


@dataclass(frozen=True, slots=True)
class ClustersFile:
    """clusters.yaml: its form, and the YAML map behind it. Both are empty if there is no such file.

    `readable` is false if it has errors; then topics are not checked against it.
    """

    file: str
    document: ClustersDocument = field(default_factory=lambda: ClustersDocument(version=1))
    table: YamlMap = field(default_factory=YamlMap)
    readable: bool = True


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents of an estate by kind, and every error in their form.

    `starts` holds the place of each document of a topic, with the topic's name if it has one.
    """

    clusters: ClustersFile
    topics: tuple[WrittenTopic, ...]
    findings: tuple[Finding, ...]
    exemptions: tuple[WrittenExemption, ...] = ()
    starts: tuple[tuple[Location, str], ...] = ()

    def name_topics(self, findings: Iterable[Finding]) -> dict[Finding, str]:
        """Return the topic in whose document each finding is, if it is in one and about it."""
        starts = sorted(self.starts)
        about = {}
        for finding in findings:
            # It is about all topics of an owner, and only shown at one of them.
            if finding.where is None or finding.rule == "quota-per-owner":
                continue
            last = bisect_right(starts, finding.where, key=itemgetter(0)) - 1
            if last >= 0 and starts[last][0].file == finding.where.file and starts[last][1]:
                about[finding] = starts[last][1]
        return about


def read_documents(files: Mapping[str, bytes | Finding], root: str) -> Documents:
    """Read every file of an estate, by its path in the estate.

    `root` is the path of the estate in locations. A finding instead of bytes says why a file could
    not be read.
    """
    paths = sorted(files, key=lambda path: path.split("/"))
    named = [path for path in paths if path.rpartition("/")[2].lower() in CLUSTERS_FILES]
    chosen = next((path for path in named if "/" not in path), None)
    findings = [found for found in files.values() if isinstance(found, Finding)]
    for path in named:
        if path == chosen or isinstance(files[path], Finding):
            continue
        if chosen is None:
            what = "clusters.yaml is not at the top of the estate"
            way_out = f"move it to {show_path(root, 'clusters.yaml')}"
        else:
            what = "this is a second clusters.yaml"
            way_out = f"move its content into {show_path(root, chosen)}"
        findings.append(Finding("clusters-file", what, way_out, Location(show_path(root, path), 1)))
    # Without a file there are no settings; those of a file elsewhere are unknown.
    clusters = ClustersFile(show_path(root, chosen or "clusters.yaml"), readable=not named)
    if chosen is not None:
        clusters, found = _read_clusters(files[chosen], clusters.file)
        findings += found
    topics: list[WrittenTopic] = []
    exemptions: tuple[WrittenExemption, ...] = ()
    starts: list[tuple[Location, str]] = []
    for path in paths:
        content = files[path]
        if isinstance(content, bytes) and path == BASELINE_FILE:
            exemptions, found = read_baseline(content, show_path(root, path))
            findings += found
        elif isinstance(content, bytes) and _is_baseline(path):
            what = (
                f"{path.rpartition('/')[2]} is not at the top of the estate, or spelled otherwise"
            )
            way_out = f"move its content into {show_path(root, BASELINE_FILE)}"
            where = Location(show_path(root, path), 1)
            findings.append(Finding("policy-baseline-form", what, way_out, where))
        elif isinstance(content, bytes) and path not in named:
            written, found, begun = _read_topics(content, show_path(root, path))
            topics += written
            findings += found
            starts += begun
    return Documents(clusters, tuple(topics), tuple(findings), exemptions, tuple(starts))


def _is_baseline(path: str) -> bool:
    """Return whether a path ends in the name of a baseline; case and suffix do not matter."""
    name = path.rpartition("/")[2].lower()
    return name.rpartition(".")[0] == BASELINE_FILE.rpartition(".")[0]


def load_clusters(
    content: bytes | None, file: str, baseline: bytes = b"", baseline_file: str = ""
) -> dict[str, ClusterEntry]:
    """Read a clusters.yaml from outside the estate, such as the one of another commit.

    None is that of an estate without one. `baseline` is the file next to it.
    Errors: SpecError with every error in them.
    """
    clusters, findings = ClustersFile(file), list[Finding]()
    if content is not None:
        clusters, findings = _read_clusters(content, file)
    exemptions, found = read_baseline(baseline, baseline_file)
    if findings or found:
        raise SpecError([*findings, *found])
    return list_entries(clusters.document, clusters.table, clusters.file, exemptions)


def _read_clusters(content: bytes | Finding, file: str) -> tuple[ClustersFile, list[Finding]]:
    """Read clusters.yaml. It counts as unreadable if it has any error."""
    if isinstance(content, Finding):  # already among the findings
        return ClustersFile(file, readable=False), []
    loaded = load_text(content, file)
    findings = list(loaded.findings)
    if not loaded.documents and not findings:
        what, way_out = "clusters.yaml is empty", "write version: 1, or remove the file"
        findings.append(Finding("key-missing", what, way_out, Location(file, 1)))
    for extra in loaded.documents[1:]:
        what, way_out = (
            "clusters.yaml holds more than one document",
            "put all keys into one document",
        )
        findings.append(Finding("clusters-file", what, way_out, extra.where))
    first = loaded.documents[0] if loaded.documents else YamlMap()
    if not isinstance(first, YamlMap):
        findings.append(_refuse_document(first, "version: 1"))
    elif loaded.documents:
        document, found = check_form(ClustersDocument, first, _list_offered(first))
        findings += found
        if document is not None:
            findings += check_ranges(document, first)
            return ClustersFile(file, document, first, readable=not findings), findings
    return ClustersFile(file, readable=not findings), findings


def _list_offered(document: YamlMap) -> frozenset[str]:
    """List the configs of the services of clusters, as far as the document has the right form."""
    clusters = document.get("clusters")
    values = clusters.values() if isinstance(clusters, YamlMap) else ()
    entries = [entry for entry in values if isinstance(entry, YamlMap)]
    lists = (entry.get("known_configs") for entry in entries)
    words = (word for listed in lists if isinstance(listed, YamlList) for word in listed)
    services = {str(entry.get("service")) for entry in entries} & SERVICES.keys()
    own = (SERVICES[name].more | (SERVICES[name].configs or frozenset()) for name in services)
    return frozenset(str(word) for word in words if isinstance(word, YamlText)).union(*own)


def _read_topics(
    content: bytes, file: str
) -> tuple[list[WrittenTopic], list[Finding], list[tuple[Location, str]]]:
    """Read the topics of a file, and where each begins; its number of findings is limited."""
    loaded = load_text(content, file)
    topics: list[WrittenTopic] = []
    starts: list[tuple[Location, str]] = []
    findings = list(loaded.findings)
    for document in loaded.documents:
        for table, topic, found in _read_document(document):
            starts.append((table.where, _find_name(table, topic)))
            findings += found
            if topic is not None:
                topics.append(topic)
    more = len(findings) - MOST_FINDINGS
    if more > 0:
        what, way_out = f"{more:,} more mistakes of this file are not shown", "fix these first"
        last = Finding("document-form", what, way_out, findings[MOST_FINDINGS - 1].where)
        findings = [*findings[:MOST_FINDINGS], last]
    return topics, findings, starts


def _find_name(table: YamlValue, topic: WrittenTopic | None) -> str:
    """Return the name of a topic, also of a document with errors; empty if it has none."""
    name = table.get("topic") if isinstance(table, YamlMap) else None
    return topic.name if topic else str(name) if isinstance(name, YamlText) else ""


def _read_document(
    value: YamlValue,
) -> Iterator[tuple[YamlValue, WrittenTopic | None, list[Finding]]]:
    """Yield the topics of one document: one in our own form, any number in a KafkaTopicList.

    With each, the value that it was read from.
    """
    if not isinstance(value, YamlMap):
        yield value, None, [_refuse_document(value, "topic: orders.events")]
        return
    tables = read_resource(value) if is_resource(value) else [(value, [])]
    for table, translated in tables:
        if table is None:
            yield value, None, translated
            continue
        document, found = check_form(TopicDocument, table)
        findings = [*translated, *found]
        if document is None:
            yield table, None, findings
            continue
        overrides = {
            name: Written(model, table["overrides"][name])
            for name, model in document.overrides.items()
        }
        clusters_of = None if document.clusters is None else frozenset(document.clusters)
        partial = any(finding.severity is Severity.ERROR for finding in findings)
        layer = Written(document, table)
        yield table, WrittenTopic(document, layer, overrides, clusters_of, partial), findings


def _refuse_document(value: YamlValue, example: str) -> Finding:
    what = f"the document is {describe_yaml(value)}, not a map"
    way_out = f"write keys, one a line, without dashes in front: {example}"
    return Finding("document-form", what, way_out, value.where)
