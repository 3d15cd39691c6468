"""One cluster as it was read, with the specs that name its topics, and the choice of topics."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from enum import StrEnum
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Literal

from reconciler.errors import Finding, Location, UsageError
from reconciler.model.cluster import ClusterState, TopicSpec, TopicState
from reconciler.model.configs import Origin
from reconciler.model.health import Fault, judge_topic, read_min_insync
from reconciler.spec.entry import ClusterEntry

Kind = Literal["topics", "brokers", "partitions", "groups", "configs"]
"""A kind of rows."""


class Standing(StrEnum):
    """How the estate treats a live topic. `ignored`: clusters.yaml excludes it (`ignore`,
    `owns`)."""

    MANAGED = "managed"
    UNMANAGED = "unmanaged"
    IGNORED = "ignored"
    INTERNAL = "internal"


@dataclass(frozen=True, slots=True)
class Choice:
    """The topics that are asked for; every filter that is set must hold.

    `topics` holds globs, `owners` names; none of either means all. `labels` holds keys, each with
    the values that it may have, or with none for any value. `idle_since_ms`: nothing was written
    since then, and no active group reads it. Internal topics are listed with `internal`
    only, or if a name without a wildcard or `unhealthy` asks for them.
    """

    topics: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    labels: Mapping[str, frozenset[str]] = field(default_factory=lambda: MappingProxyType({}))
    unmanaged: bool = False
    internal: bool = False
    unhealthy: bool = False
    idle_since_ms: int | None = None

    @property
    def is_open(self) -> bool:
        """Whether nothing but the names of topics limits it."""
        return self == Choice(self.topics)


@dataclass(frozen=True, slots=True)
class Inventory:
    """A cluster as it was read. `entry` is None without an estate: then nobody owns a topic.

    `layers` names the layer of each value of the specs, by the place where it is written.
    """

    cluster: str
    state: ClusterState
    entry: ClusterEntry | None = None
    specs: Mapping[str, TopicSpec] = field(default_factory=lambda: MappingProxyType({}))
    layers: Mapping[Location, Origin] = field(default_factory=lambda: MappingProxyType({}))

    def note(self, notes: Iterable[Finding]) -> Inventory:
        """Return it with more notes on what could not be seen."""
        return replace(self, state=replace(self.state, notes=(*self.state.notes, *notes)))

    def stand(self, name: str) -> Standing | None:
        """Return how the estate treats a topic; None without an estate."""
        if self.state.topics[name].internal:
            return Standing.INTERNAL
        if self.entry is None:
            return None
        if name in self.specs:
            return Standing.MANAGED
        return Standing.UNMANAGED if self.entry.manages(name) else Standing.IGNORED

    def find_faults(self, topic: TopicState) -> tuple[tuple[Fault, ...], ...]:
        """Return what is wrong with each partition of a topic, worst first.

        Of a topic whose configs were not read, only the default of min.insync.replicas is known.
        """
        alive = {broker.id for broker in self.state.brokers if broker.alive}
        needed = read_min_insync(topic.config, self.state.config_defaults) or 1
        return tuple(judge_topic(topic, needed, alive))

    def is_same(self, key: str, live: str | None, wished: str | None) -> bool:
        """Return whether a live value is what a spec asks for, however it is spelled."""
        if live is None or wished is None or self.entry is None:
            return False
        return self.entry.catalogue.same(key, live, wished)

    def choose(self, choice: Choice) -> Iterator[TopicState]:
        """Yield the topics of a choice, by name."""
        for _, topic in sorted(self.state.topics.items()):
            if self._is_chosen(topic, choice):
                yield topic

    def _is_chosen(self, topic: TopicState, choice: Choice) -> bool:
        name = topic.name
        spec = self.specs.get(name)
        asked = choice.internal or choice.unhealthy or name in choice.topics
        if topic.internal != choice.internal and not (topic.internal and asked):
            return False
        if choice.topics and not any(fnmatchcase(name, glob) for glob in choice.topics):
            return False
        if choice.owners and (spec is None or spec.owner not in choice.owners):
            return False
        if choice.labels and (spec is None or not _has_labels(spec, choice.labels)):
            return False
        if choice.unmanaged and self.stand(name) is not Standing.UNMANAGED:
            return False
        if choice.unhealthy and not any(self.find_faults(topic)):
            return False
        return choice.idle_since_ms is None or self._is_idle(name, choice.idle_since_ms)

    def _is_idle(self, name: str, since_ms: int) -> bool:
        """Whether nothing was written since a time and nobody reads; false if that is unknown."""
        usage = self.state.usage.get(name)
        if usage is None or not usage.ends or usage.groups:
            return False
        return usage.newest_ms is None or usage.newest_ms < since_ms

    def check(self, choice: Choice) -> None:
        """Refuse names that nothing has: an empty answer would look like a healthy cluster.

        Errors: UsageError for a glob that no live topic matches, an owner or a label that no spec
        has, and filters that need an estate.
        """
        for glob in choice.topics:
            if not any(fnmatchcase(name, glob) for name in self.state.topics):
                near = suggest(glob, self.state.topics)
                raise UsageError(f"no topic of {self.cluster} matches --topic {glob!r}{near}")
        of_specs = (
            ("--owner", choice.owners),
            ("--label", choice.labels),
            ("--unmanaged", choice.unmanaged),
        )
        option = next((option for option, value in of_specs if value), None)
        if self.entry is None and option is not None:
            raise UsageError(f"{option} needs the specs: name the cluster with --cluster NAME")
        owners = {spec.owner for spec in self.specs.values() if spec.owner is not None}
        for owner in choice.owners:
            if owner not in owners:
                near = suggest(owner, owners)
                raise UsageError(f"no topic that goes to {self.cluster} has owner {owner!r}{near}")
        labels = {
            text
            for spec in self.specs.values()
            for key, value in spec.labels.items()
            for text in (key, f"{key}={value}")
        }
        for label in _name_labels(choice.labels):
            if label not in labels:
                near = suggest(label, labels)
                raise UsageError(f"no topic that goes to {self.cluster} has label {label!r}{near}")


def read_labels(texts: Iterable[str]) -> Mapping[str, frozenset[str]]:
    """Read `key` or `key=value`; several values of a key are alternatives, the key alone is any."""
    read: dict[str, set[str] | None] = {}
    for text in texts:
        key, has_value, value = text.partition("=")
        values = read.setdefault(key, set())
        if not has_value:
            read[key] = None
        elif values is not None:
            values.add(value)
    return MappingProxyType({key: frozenset(values or ()) for key, values in read.items()})


def _name_labels(labels: Mapping[str, frozenset[str]]) -> Iterator[str]:
    for key, values in labels.items():
        yield from (f"{key}={value}" for value in sorted(values)) if values else (key,)


def _has_labels(spec: TopicSpec, labels: Mapping[str, frozenset[str]]) -> bool:
    return all(
        key in spec.labels and (not values or spec.labels[key] in values)
        for key, values in labels.items()
    )


def find_topic(inventory: Inventory, name: str) -> TopicState | None:
    """Return a live topic; None if only a spec names it. Errors: UsageError if nothing does."""
    if name in inventory.state.topics:
        return inventory.state.topics[name]
    if name in inventory.specs:
        return None
    near = suggest(name, {*inventory.state.topics, *inventory.specs})
    known = ", and no spec names it" if inventory.entry else ""
    raise UsageError(f"{inventory.cluster} has no topic {name!r}{known}{near}")


def suggest(name: str, known: Collection[str]) -> str:
    """Return the end of a message that names the nearest known name; nothing if none is near."""
    near = get_close_matches(name, sorted(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""
