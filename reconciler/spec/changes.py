"""What changed in an estate since an earlier commit: each topic is compared as it is resolved.

A topic changed if its own file or clusters.yaml asks for something else now. Comments, the order of
keys, and settings that do not reach a topic are no changes of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from reconciler.errors import Location, escape_unprintable
from reconciler.model.cluster import SHORT, TopicSpec
from reconciler.spec.clusters import list_entries
from reconciler.spec.documents import read_documents
from reconciler.spec.entry import ClusterEntry
from reconciler.spec.resolve import Resolver


@dataclass(frozen=True, slots=True)
class ClusterThen:
    """A cluster of an estate at an earlier commit: its settings, and its topics by name."""

    entry: ClusterEntry
    specs: Mapping[str, TopicSpec]


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes of an estate since the commit `base`, its last commit in common with `ref`.

    `then` holds the clusters at the base by name. `everything` says why every topic counts as
    changed, and is empty if topics are compared.
    """

    ref: str
    base: str
    then: Mapping[str, ClusterThen] = field(default_factory=lambda: MappingProxyType({}))
    everything: str = ""

    @property
    def since(self) -> str:
        """Return the base of the comparison, for messages."""
        short = self.base[:SHORT]
        if self.base == self.ref:
            return short
        return f"{escape_unprintable(self.ref.removeprefix('refs/remotes/'))} ({short})"

    def touch(self, spec: TopicSpec, entry: ClusterEntry) -> bool:
        """Return whether a topic of a cluster is not what it was at the base."""
        then = self.then.get(entry.name)
        if self.everything or then is None or spec.name not in then.specs:
            return True
        # Configs that were not on offer are compared with every topic of the cluster from now on.
        if entry.known_configs != then.entry.known_configs:
            return True
        if entry.keeps_defaults != then.entry.keeps_defaults:
            return True
        was = then.specs[spec.name]
        return (_strip(spec), spec.entries) != (_strip(was), was.entries)

    def alter(self, entry: ClusterEntry, read: Callable[[ClusterEntry], object]) -> bool:
        """Return whether a setting of a cluster, which `read` returns, is not as it was."""
        then = self.then.get(entry.name)
        return bool(self.everything) or then is None or read(entry) != read(then.entry)

    def list_left(self, cluster: str, specs: Iterable[TopicSpec]) -> frozenset[str]:
        """Name the topics that a cluster had at the base. In: all specs that it has now."""
        then = self.then.get(cluster)
        return frozenset(then.specs.keys() - {spec.name for spec in specs} if then else ())

    def list_owner_changes(
        self, cluster: str, specs: Iterable[TopicSpec]
    ) -> Iterator[tuple[TopicSpec, str | None]]:
        """Yield the specs whose owner is not what it was at the base, with that owner."""
        then = self.then.get(cluster)
        for spec in specs:
            was = then.specs.get(spec.name) if then else None
            if was is not None and was.owner != spec.owner:
                yield spec, was.owner

    def recall(self, spec: TopicSpec, cluster: str) -> TopicSpec:
        """Return a spec with the entries of acknowledge that the base has as well."""
        then = self.then.get(cluster)
        if not spec.entries or then is None or spec.name not in then.specs:
            return spec
        return replace(spec, standing=spec.entries & then.specs[spec.name].entries)


def _strip(spec: TopicSpec) -> TopicSpec:
    """Return a spec without places, and without texts for people, on which no plan acts."""
    return replace(
        spec,
        location=Location("", 1),
        fields={},
        accepts=(),
        standing=frozenset(),
        owner=None,
        description=None,
        profile=None,
        labels={},
        expires=None,
        idle_after_ms=None,
    )


def recall_clusters(
    files: Mapping[str, bytes], clusters: Iterable[str]
) -> Mapping[str, ClusterThen] | None:
    """Resolve some clusters of an earlier version of an estate: its YAML files by their path in it.

    Findings are ignored: a value that cannot be read is left out, and so counts as changed.
    Returns None if clusters.yaml has errors, because every topic depends on it.
    """
    documents = read_documents(files, "")
    if not documents.clusters.readable:
        return None
    written = documents.clusters
    entries = list_entries(written.document, written.table, written.file, documents.exemptions)
    resolver = Resolver(documents, entries)
    return {
        name: ClusterThen(entries[name], {s.name: s for s in resolver.resolve_specs(name)})
        for name in clusters
        if name in entries
    }
