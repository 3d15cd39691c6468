"""From documents to specs: a topic and its layers become one TopicSpec per cluster.

The layers are defaults, cluster defaults, profile, topic and override; later ones win. `config`
and `labels` merge key by key; null removes an inherited value. Every resolved value keeps the
location where it was written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple

from reconciler.errors import Finding, Location
from reconciler.model.cluster import Assignment, TopicSpec
from reconciler.model.configs import Origin
from reconciler.policy.baseline import settle
from reconciler.policy.breaches import Breach
from reconciler.policy.quotas import check_quotas
from reconciler.spec.acknowledgements import Acknowledged
from reconciler.spec.assignment import list_row_places
from reconciler.spec.catalogue import LINES, lines_that_know, spell_line
from reconciler.spec.configs import Catalogue, Clash, choose_catalogue
from reconciler.spec.documents import Documents, Written, WrittenTopic
from reconciler.spec.entry import SANDBOX, ClusterEntry
from reconciler.spec.fields import WrittenConfig
from reconciler.spec.forms import Layer, TopicDocument
from reconciler.spec.names import check_declared
from reconciler.spec.rules import (
    PolicyEngine,
    check_cluster_topics,
    check_counts,
    check_owned,
    check_spec,
)
from reconciler.spec.values import YamlMap, YamlText, quote

MOST_NAMED = 3
"""The number of clusters of one Kafka version to name."""

_COUNTS = ("partitions", "replication_factor")
_FLAT = (
    *(*_COUNTS, "rack_aware", "gradual", "state", "acknowledge", "assignment"),
    *("expires", "idle_after"),
)


class Resolved(NamedTuple):
    """The topics of one cluster, sorted by name, their findings, and what the baseline exempts."""

    specs: tuple[TopicSpec, ...]
    findings: tuple[Finding, ...]
    exempt: tuple[Breach, ...]


class Resolver:
    """Resolves the topics of an estate on one cluster after another.

    Clusters share profiles and the configs of each Kafka version, so these are read once.
    """

    def __init__(
        self, documents: Documents, entries: Mapping[str, ClusterEntry], *, is_draft: bool = False
    ) -> None:
        self._is_draft = is_draft
        self._topics = documents.topics
        self._clusters = documents.clusters.document
        self._table = documents.clusters.table
        self._entries = entries
        self._profiles = {
            name: Written(model, self._table["profiles"][name])
            for name, model in self._clusters.profiles.items()
        }
        self._readers: dict[tuple[str | None, frozenset[str]], ConfigReader] = {}
        offered = (entry.known_configs or () for entry in entries.values())
        self._offered = frozenset[str]().union(*offered)

    def resolve(self, cluster: str) -> Resolved:
        """Resolve the topics of a cluster, and check them by its Kafka version."""
        inherited = self._list_inherited(cluster)
        entry = self._entries[cluster]
        configs = self._choose_reader(entry)
        engine = PolicyEngine(entry, configs.catalogue)
        specs, findings, exempt = [], list(engine.findings), list[Breach]()
        read = [*inherited]
        for topic in self._list_topics(cluster):
            own = self._list_own(topic, cluster)
            spec = resolve_topic(topic, [*inherited, *own], configs, entry)
            specs.append(spec)
            read += own
            if not topic.partial:
                findings += [*check_spec(spec, cluster), *configs.check_together(spec, cluster)]
                found, spared = engine.check(spec)
                findings += found
                exempt += spared
                findings += () if self._table or self._is_draft else check_counts(spec)
        specs.sort(key=lambda spec: spec.name)
        findings += configs.check(read)
        findings += check_cluster_topics(specs, entry.ignore, cluster)
        every = {spec.name: spec for spec in specs}.values()
        found, spared = settle(check_quotas(every, entry.policy, cluster), entry.policy)
        findings += found
        findings += check_owned(specs, entry.owns, cluster)
        named = (topic.document.owner for topic in self._list_topics(cluster))
        findings += check_declared((owner for owner in named if owner is not None), entry.owners)
        return Resolved(tuple(specs), tuple(findings), (*exempt, *spared))

    def resolve_specs(self, cluster: str) -> Iterator[TopicSpec]:
        """Resolve the topics of a cluster without any check."""
        inherited = self._list_inherited(cluster)
        entry = self._entries[cluster]
        configs = self._choose_reader(entry)
        for topic in self._list_topics(cluster):
            layers = [*inherited, *self._list_own(topic, cluster)]
            yield resolve_topic(topic, layers, configs, entry)

    def check_unused(self, checked: Collection[str]) -> list[Finding]:
        """Check the configs that none of the checked clusters has, by the newest catalogue."""
        used = {
            str(topic.document.profile) for name in checked for topic in self._list_topics(name)
        }
        unused = [layer for name, layer in self._profiles.items() if name not in used]
        for topic in self._topics:
            if not any(topic.targets(cluster) for cluster in checked):
                unused.append(topic.layer)
            for cluster, override in topic.overrides.items():
                if cluster not in checked or not topic.targets(cluster):
                    unused.append(override)
        newest = choose_catalogue(None)
        anywhere = replace(newest, offered=self._offered.union(newest.keys))
        return ConfigReader(anywhere, offered=self._offered).check(unused)

    def list_layers(self, cluster: str, profile: str | None) -> list[Written]:
        """List the layers below a topic: defaults, its cluster's defaults, its profile."""
        own = [self._profiles[profile]] if profile in self._profiles else []
        return [*self._list_inherited(cluster), *own]

    def name_origins(self, cluster: str) -> Mapping[Location, Origin]:
        """Return the layer of every config that topics of a cluster may have, by its place."""
        layers: list[tuple[Origin, Layer]] = [(Origin.ESTATE_DEFAULTS, self._clusters.defaults)]
        if (form := self._clusters.clusters.get(cluster)) is not None:
            layers.append((Origin.CLUSTER_DEFAULTS, form.defaults))
        layers += [(Origin.PROFILE, layer.model) for layer in self._profiles.values()]
        for topic in self._list_topics(cluster):
            layers.append((Origin.SPEC, topic.layer.model))
            if (override := topic.overrides.get(cluster)) is not None:
                layers.append((Origin.OVERRIDE, override.model))
        found = {item.where: origin for origin, layer in layers for item in layer.config.items}
        return {self._entries[cluster].where("service"): Origin.CLUSTER_DEFAULTS} | found

    def resolve_base(self, topic: WrittenTopic, cluster: str, release: Catalogue) -> TopicSpec:
        """Resolve a topic without its override, by the configs of any Kafka version."""
        profile = topic.document.profile
        layers = self.list_layers(cluster, None if profile is None else str(profile))
        entry = self._entries[cluster]
        return resolve_topic(topic, [*layers, topic.layer], ConfigReader(release), entry)

    def resolve_empty(self, cluster: str, profile: str | None, release: Catalogue) -> TopicSpec:
        """Resolve a topic that sets no values, so that it only has inherited ones."""
        name = YamlText("any")
        name.file, name.line, name.column, name.tag, name.quoted = "", 1, 1, "str", False
        document = TopicDocument(topic=name)
        empty = WrittenTopic(document, Written(document, YamlMap()), {})
        layers, entry = self.list_layers(cluster, profile), self._entries[cluster]
        return resolve_topic(empty, layers, ConfigReader(release), entry)

    def _list_topics(self, cluster: str) -> Iterator[WrittenTopic]:
        return (topic for topic in self._topics if topic.targets(cluster))

    def _list_own(self, topic: WrittenTopic, cluster: str) -> list[Written]:
        """List the layers of one topic: its profile, itself, its override; later ones win."""
        profile = self._profiles.get(str(topic.document.profile))
        layers = (profile, topic.layer, topic.overrides.get(cluster))
        return [layer for layer in layers if layer is not None]

    def _list_inherited(self, cluster: str) -> list[Written]:
        """List the layers that all topics of a cluster inherit; later ones win."""
        layers = []
        if "defaults" in self._table:
            layers.append(Written(self._clusters.defaults, self._table["defaults"]))
        form = self._clusters.clusters.get(cluster)
        if form is not None and "defaults" in (written := self._table["clusters"][cluster]):
            layers.append(Written(form.defaults, written["defaults"]))
        return layers

    def _choose_reader(self, entry: ClusterEntry) -> ConfigReader:
        """Return the reader of a cluster's Kafka version, and of the service that runs it."""
        # A config of Kafka that a service does not offer is an error of the topic that sets it.
        catalogue = choose_catalogue(entry.kafka_version)
        foreign = frozenset(entry.known_configs or ()).difference(catalogue.keys)
        known = (entry.kafka_version, foreign)
        if known not in self._readers:
            # Findings that only this version has name the first clusters that run it.
            running = [
                name
                for name in sorted(self._clusters.clusters)
                if self._entries[name].kafka_version == entry.kafka_version
            ]
            if (more := len(running) - MOST_NAMED) > 0:
                running = [*running[:MOST_NAMED], f"{more:,} more clusters"]
            offered = foreign.union(catalogue.keys) if foreign else None
            catalogue = choose_catalogue(entry.kafka_version, offered)
            self._readers[known] = ConfigReader(catalogue, running or [SANDBOX], self._offered)
        return self._readers[known]


class _Configs(NamedTuple):
    """The normalised configs of one layer, and the errors in the others."""

    values: Mapping[str, tuple[str | None, Location]]
    findings: tuple[Finding, ...]


class ConfigReader:
    """Normalises the configs of layers for one Kafka version: each layer and each value once.

    In: the clusters of that version, to name them in findings that other versions do not have, and
    the configs `offered` by the services of all clusters.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        clusters: Collection[str] = (),
        offered: Collection[str] = (),
    ) -> None:
        self.catalogue = catalogue
        self._clusters = clusters
        self._offered = offered
        self._layers: dict[int, tuple[WrittenConfig, _Configs]] = {}
        self._sound: set[frozenset[tuple[str, str]]] = set()
        self._values: dict[tuple[str, str | tuple[str, ...]], str] = {}

    def read(self, settings: WrittenConfig) -> _Configs:
        """Return the normalised configs of a layer, and the errors in the others."""
        known = self._layers.get(id(settings))
        if known is None:
            # The layer is stored too: if it were freed, another object could get its id.
            known = (settings, self._normalise(settings))
            self._layers[id(settings)] = known
        return known[1]

    def check(self, layers: Iterable[Written]) -> list[Finding]:
        """Return the errors in the configs of layers, once per layer."""
        every = {id(layer): layer for layer in layers}.values()
        return [finding for layer in every for finding in self.read(layer.model.config).findings]

    def check_together(self, spec: TopicSpec, cluster: str) -> list[Finding]:
        """Check the entire config of a spec. Equal configs without a clash are checked once."""
        config = frozenset(spec.config.items())
        if spec.absent or config in self._sound:
            return []
        clashes = self.catalogue.find_clashes(spec.config)
        if not clashes:
            self._sound.add(config)
        return [self._blame(clash, spec, cluster) for clash in clashes]

    def _blame(self, clash: Clash, spec: TopicSpec, cluster: str) -> Finding:
        """Return the contradictions, located at the topic's own value if it has one."""
        places = {key: spec.fields.get(f"config.{key}") for key in clash.keys}
        written = [place for place in places.values() if place]
        own = [place for place in written if place.file == spec.location.file]
        where = (own or written or [spec.location])[0]
        version = f"Kafka {self.catalogue.version}"
        others = [
            f"{key} is {f'at {place}' if place else f'the default of {version}'}"
            for key, place in places.items()
            if place not in (where, *own)
        ]
        shown = f" ({', '.join(others)})" if others else ""
        what = f"the topic {quote(spec.name)} on {cluster}, {version}: {clash.what}{shown}"
        return Finding(clash.rule, what, clash.way_out, where)

    def _normalise(self, settings: WrittenConfig) -> _Configs:
        configs: dict[str, tuple[str | None, Location]] = {}
        findings: list[Finding] = []
        for item in settings.items:
            normal = None
            if item.value is None:
                refused = self.catalogue.refuse_key(item.key, item.where)
                # A config that only other clusters have is not set here: null is true of it.
                elsewhere = item.key in self._offered or lines_that_know(item.key)
                findings += [f for f in refused if f.rule != "config-unknown" or not elsewhere]
            else:
                normal = self._values.get((item.key, item.value))
                if normal is None:
                    value = item.value if isinstance(item.value, str) else list(item.value)
                    answer = self.catalogue.normalise(item.key, value, item.where)
                    if not isinstance(answer, str):
                        findings += self._name_version(item.key, value, answer)
                        continue
                    normal = self._values[item.key, item.value] = answer
            configs[item.key] = (normal, item.where)
        return _Configs(configs, tuple(findings))

    def _name_version(self, key: str, value: object, findings: list[Finding]) -> Iterator[Finding]:
        """Add version and clusters to an error in a value that another version accepts."""
        lines = map(choose_catalogue, map(spell_line, reversed(LINES)))
        accepting = (line for line in lines if isinstance(line.normalise(key, value, None), str))
        if (other := next(accepting, None)) is not None:
            names = "".join(f"{name}, " for name in self._clusters)
            version = f" (checked for {names}Kafka {self.catalogue.version})"
            for finding in findings:
                way_out = finding.way_out
                if finding.rule != "config-unknown":  # which names the version itself
                    way_out += f', or write kafka_version: "{other.version}" if the cluster runs it'
                yield replace(finding, what=finding.what + version, way_out=way_out)
        else:
            yield from findings


@dataclass(slots=True)
class _Draft:
    """A topic during the merge of its layers; `depth` is the layer that wrote a field."""

    partitions: int | None = None
    replication_factor: int | None = None
    rack_aware: bool = True
    gradual: int = 0
    state: str = "present"
    acknowledge: tuple[Acknowledged, ...] = ()
    assignment: Assignment | None = None
    expires: str | None = None
    idle_after: int | None = None
    config: dict[str, tuple[str | None, Location]] = field(default_factory=dict)
    labels: dict[str, tuple[str | None, Location]] = field(default_factory=dict)
    sources: dict[str, tuple[int, Written]] = field(default_factory=dict)

    def lay(self, depth: int, layer: Written, configs: ConfigReader) -> None:
        """Merge one more layer."""
        for key in _FLAT:
            if key in layer.table:
                setattr(self, key, getattr(layer.model, key))
                self.sources[key] = (depth, layer)
        if "config" in layer.table:
            self.config.update(configs.read(layer.model.config).values)
        if "labels" in layer.table:
            written = layer.table["labels"]
            self.labels.update({k: (v, written[k].where) for k, v in layer.model.labels.items()})

    def derive_counts(self) -> None:
        """Derive the counts from manual rows, and replace the counts of lower layers.

        A count of the same layer or a higher one stays, so a check can report the contradiction.
        """
        if self.assignment is None:
            return
        depth, _ = self.sources["assignment"]
        derived = dict(zip(_COUNTS, (len(self.assignment), len(self.assignment[0])), strict=True))
        for key, count in derived.items():
            if getattr(self, key) is None or self.sources[key][0] < depth:
                setattr(self, key, count)
                self.sources.pop(key, None)

    def places(self) -> dict[str, Location]:
        """Return where each value was written, and each null that removes an inherited value."""
        places = {key: layer.where(key) for key, (_, layer) in self.sources.items()}
        if self.assignment is not None:
            for key in _COUNTS:
                places.setdefault(key, places["assignment"])
            rows = self.sources["assignment"][1].table["assignment"]
            for partition, where in list_row_places(rows).items():
                places[f"assignment.{partition}"] = where
        for key, (_, where) in self.config.items():
            places[f"config.{key}"] = where
        for key, (_, where) in self.labels.items():
            places[f"labels.{key}"] = where
        return places | {f"acknowledge.{entry.risk}": entry.where for entry in self.acknowledge}


def resolve_topic(
    topic: WrittenTopic, layers: Sequence[Written], configs: ConfigReader, entry: ClusterEntry
) -> TopicSpec:
    """Merge the layers of a topic. In: all layers, its own too; later ones win."""
    draft = _Draft()
    for depth, layer in enumerate(layers):
        draft.lay(depth, layer, configs)
    draft.derive_counts()
    # A service sets its own value on a topic that has none, and on one whose spec removes it.
    for key, value in entry.fixed.items():
        if draft.config.get(key, (None, None))[0] is None:
            draft.config[key] = value, entry.where("service")
    config = {key: value for key, (value, _) in sorted(draft.config.items()) if value is not None}
    # An own config of Kafka is unset if no layer has it. Others are left alone unless a spec says
    # that they are not to be set.
    unset = draft.config.keys() - config.keys() - configs.catalogue.keys.keys()
    document = topic.document
    return TopicSpec(
        name=topic.name,
        location=topic.where,
        partitions=draft.partitions,
        replication_factor=draft.replication_factor,
        config=MappingProxyType(config),
        unset=frozenset(unset),
        assignment=draft.assignment,
        rack_aware=draft.rack_aware,
        gradual=draft.gradual,
        absent=draft.state == "absent",
        acknowledge=frozenset(e.risk for e in draft.acknowledge if e.change is None),
        accepts=tuple(e.change for e in draft.acknowledge if e.change is not None),
        owner=_plain(document.owner),
        description=_plain(document.description),
        profile=_plain(document.profile),
        labels=MappingProxyType(
            {key: value for key, (value, _) in sorted(draft.labels.items()) if value is not None}
        ),
        expires=draft.expires,
        idle_after_ms=draft.idle_after,
        fields=MappingProxyType(draft.places()),
    )


def _plain(text: YamlText | None) -> str | None:
    return None if text is None else str(text)
