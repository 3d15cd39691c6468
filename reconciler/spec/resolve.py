"""Inheritance: defaults, cluster defaults, profile, topic and override become one TopicSpec.

Later layers win. `config` merges key by key; null takes an inherited value away. Every resolved
value remembers where it was written.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from reconciler.errors import Finding
from reconciler.model import TopicSpec
from reconciler.spec.assignment import list_row_places
from reconciler.spec.catalogue import LINES, spell
from reconciler.spec.configs import catalogue as choose_catalogue
from reconciler.spec.values import quote

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from reconciler.errors import Location
    from reconciler.model import Assignment
    from reconciler.spec.configs import Catalogue
    from reconciler.spec.settings import Settings
    from reconciler.spec.shape import Layer, TopicDocument
    from reconciler.spec.together import Clash
    from reconciler.spec.values import Table, Text, Value

_COUNTS = ("partitions", "replication_factor")
_FLAT = (*_COUNTS, "rack_aware", "gradual", "state", "acknowledge", "assignment")


@dataclass(frozen=True, slots=True)
class Written:
    """One layer of values: its model, and the map it was read from."""

    model: Layer
    table: Table

    def where(self, key: str) -> Location:
        """Where a key of this layer has its value."""
        value: Value = self.table[key]
        return value.where


@dataclass(frozen=True, slots=True)
class WrittenTopic:
    """A topic document, with a layer for each of its overrides.

    `clusters` are those it belongs on, None for every one. `partial`: values whose form was wrong
    are left out, so nothing can be said of the whole.
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
        """Where its name is written."""
        return self.document.topic.where

    def targets(self, cluster: str) -> bool:
        """Tell whether the topic belongs on a cluster."""
        return self.clusters is None or cluster in self.clusters


def pair_topic(document: TopicDocument, table: Table, *, partial: bool = False) -> WrittenTopic:
    """Pair a topic's models with the maps they were read from."""
    overrides = {
        name: Written(model, table["overrides"][name]) for name, model in document.overrides.items()
    }
    clusters = None if document.clusters is None else frozenset(document.clusters)
    return WrittenTopic(document, Written(document, table), overrides, clusters, partial)


class ConfigReader:
    """Normalises the configs of layers for one Kafka version: each layer and each value once.

    In: the names of the clusters of that version, for findings that other versions do not have.
    """

    def __init__(self, catalogue: Catalogue, clusters: Collection[str] = ()) -> None:
        self.catalogue = catalogue
        self._clusters = clusters
        self.findings: list[Finding] = []
        self._layers: dict[int, tuple[Settings, dict[str, tuple[str | None, Location]]]] = {}
        self._sound: set[frozenset[tuple[str, str]]] = set()
        self._values: dict[tuple[str, str | tuple[str, ...]], str] = {}

    def read(self, settings: Settings) -> Mapping[str, tuple[str | None, Location]]:
        """Return the normalised values of a layer; what is wrong goes to `findings`."""
        known = self._layers.get(id(settings))
        if known is None:
            known = (settings, dict(self._normalise(settings)))
            self._layers[id(settings)] = known
        return known[1]

    def check_together(self, spec: TopicSpec, cluster: str) -> list[Finding]:
        """Check a resolved config as a whole; configs that are equal are checked once."""
        config = frozenset(spec.config.items())
        if spec.absent or config in self._sound:
            return []
        clashes = self.catalogue.find_clashes(spec.config)
        if not clashes:
            self._sound.add(config)
        return [self._blame(clash, spec, cluster) for clash in clashes]

    def _blame(self, clash: Clash, spec: TopicSpec, cluster: str) -> Finding:
        """Say who contradicts whom, at what the topic wrote itself where it wrote any of it."""
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

    def _name_version(self, key: str, value: object, findings: list[Finding]) -> Iterator[Finding]:
        """Name version and clusters in what is wrong with a value that another version takes."""
        lines = (choose_catalogue(spell(line)) for line in LINES)
        if any(isinstance(line.normalise(key, value, None), str) for line in lines):
            names = "".join(f"{name}, " for name in self._clusters)
            version = f" (checked for {names}Kafka {self.catalogue.version})"
            findings = [replace(finding, what=finding.what + version) for finding in findings]
        yield from findings

    def _normalise(self, settings: Settings) -> Iterator[tuple[str, tuple[str | None, Location]]]:
        for item in settings.items:
            if item.value is None:
                yield item.key, (None, item.where)
                continue
            normal = self._values.get((item.key, item.value))
            if normal is None:
                value = item.value if isinstance(item.value, str) else list(item.value)
                answer = self.catalogue.normalise(item.key, value, item.where)
                if not isinstance(answer, str):
                    self.findings.extend(self._name_version(item.key, value, answer))
                    continue
                normal = self._values[item.key, item.value] = answer
            yield item.key, (normal, item.where)


@dataclass(slots=True)
class _Draft:
    """A topic while layers are laid over each other; `depth` tells which layer wrote a field."""

    partitions: int | None = None
    replication_factor: int | None = None
    rack_aware: bool = True
    gradual: int = 0
    state: str = "present"
    acknowledge: tuple[str, ...] = ()
    assignment: Assignment | None = None
    config: dict[str, tuple[str | None, Location]] = field(default_factory=dict)
    sources: dict[str, tuple[int, Written]] = field(default_factory=dict)

    def lay(self, depth: int, layer: Written, configs: ConfigReader) -> None:
        """Lay one more layer over what is there."""
        written = layer.model.model_fields_set
        for key in _FLAT:
            if key in written:
                setattr(self, key, getattr(layer.model, key))
                self.sources[key] = (depth, layer)
        if "config" in written:
            self.config.update(configs.read(layer.model.config))

    def derive_counts(self) -> None:
        """Let rows stand for the counts of layers below them: only counts beside them can clash."""
        if self.assignment is None:
            return
        depth, _ = self.sources["assignment"]
        derived = dict(zip(_COUNTS, (len(self.assignment), len(self.assignment[0])), strict=True))
        for key, count in derived.items():
            if getattr(self, key) is None or self.sources[key][0] < depth:
                setattr(self, key, count)
                self.sources.pop(key, None)

    def places(self) -> dict[str, Location]:
        """Tell where each value was written, and each null that takes an inherited one away."""
        places = {key: layer.where(key) for key, (_, layer) in self.sources.items()}
        if self.assignment is not None:
            for key in _COUNTS:
                places.setdefault(key, places["assignment"])
            rows = self.sources["assignment"][1].table["assignment"]
            for partition, where in list_row_places(rows).items():
                places[f"assignment.{partition}"] = where
        for key, (_, where) in self.config.items():
            places[f"config.{key}"] = where
        return places


def resolve_topic(
    topic: WrittenTopic, inherited: Sequence[Written], cluster: str, configs: ConfigReader
) -> TopicSpec:
    """Merge all layers of a topic for one cluster. In: inherited layers, the farthest first."""
    layers = [*inherited, topic.layer]
    if cluster in topic.overrides:
        layers.append(topic.overrides[cluster])
    draft = _Draft()
    for depth, layer in enumerate(layers):
        draft.lay(depth, layer, configs)
    draft.derive_counts()
    config = {key: value for key, (value, _) in sorted(draft.config.items()) if value is not None}
    document = topic.document
    return TopicSpec(
        name=topic.name,
        location=topic.where,
        partitions=draft.partitions,
        replication_factor=draft.replication_factor,
        config=MappingProxyType(config),
        assignment=draft.assignment,
        rack_aware=draft.rack_aware,
        gradual=draft.gradual,
        absent=draft.state == "absent",
        acknowledge=frozenset(map(str, draft.acknowledge)),
        owner=_plain(document.owner),
        description=_plain(document.description),
        profile=_plain(document.profile),
        fields=MappingProxyType(draft.places()),
    )


def _plain(text: Text | None) -> str | None:
    return None if text is None else str(text)
