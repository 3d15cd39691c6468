"""Shared values of topics as defaults and profiles, and the remaining values of each topic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from types import MappingProxyType

from reconciler.adopt.desired import DesiredTopic
from reconciler.adopt.spelling import humanise
from reconciler.model.cluster import EMPTY, TopicSpec
from reconciler.spec.configs import Catalogue
from reconciler.units import format_duration, format_size

Items = frozenset[tuple[str, str]]

MOST_PROFILES = 6
FEWEST_SHARING = 3
_CANDIDATE_SETS = 60


@dataclass(frozen=True, slots=True)
class Shared:
    """The values that clusters.yaml gives to all topics, and its profiles by name."""

    replication_factor: int | None = None
    config: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    profiles: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: MappingProxyType({}))


def extract_shared(desired: Sequence[DesiredTopic]) -> Shared:
    """Find the values that topics share, so that specs are short."""
    if len(desired) < 2:
        return Shared()
    factors = Counter(w.replication_factor for w in desired if w.replication_factor is not None)
    # The most frequent factor, the lower one of two, if more than half of the topics have it.
    common = min(factors, key=lambda factor: (-factors[factor], factor), default=None)
    if common is not None and factors[common] * 2 <= len(desired):
        common = None
    # A topic without a shared config writes null, which is a line: so two thirds must have it.
    counts = Counter(item for wanted in desired for item in wanted.config.items())
    config = {
        key: value
        for (key, value), topics in sorted(counts.items())
        if topics >= FEWEST_SHARING and topics * 3 > len(desired) * 2
    }
    rest = Counter(frozenset(wanted.config.items() - config.items()) for wanted in desired)
    return Shared(common, config, _find_profiles(rest))


def _find_profiles(shared: Counter[Items]) -> dict[str, dict[str, str]]:
    """Choose profiles greedily: each time the set of configs that saves most lines."""
    left = Counter({items: topics for items, topics in shared.items() if items})
    profiles: dict[str, dict[str, str]] = {}
    while len(profiles) < MOST_PROFILES:
        # Candidates are the frequent sets, and what two of them share. All subsets are too many.
        frequent = sorted(left, key=lambda items: (-left[items], sorted(items)))[:_CANDIDATE_SETS]
        both = {a & b for a, b in combinations(frequent, 2)}
        candidates = {items for items in {*frequent, *both} if items}
        best = max(candidates, key=lambda c: (_saving(c, left), sorted(c)), default=None)
        if best is None or _saving(best, left) <= 0:
            break
        profiles[_name_profile(dict(best), profiles)] = dict(sorted(best))
        left = Counter({items: n for items, n in left.items() if not best <= items})
    return profiles


def _saving(candidate: Items, left: Counter[Items]) -> int:
    """Count the lines that a profile saves in topics, minus its own lines in clusters.yaml.

    A topic writes `profile:` instead, and no `config:` if the profile has all of its configs.
    """
    fitting = {items: count for items, count in left.items() if candidate <= items}
    if len(candidate) < 2 or sum(fitting.values()) < FEWEST_SHARING:
        return 0
    saved = sum(count * (len(candidate) - (items != candidate)) for items, count in fitting.items())
    return saved - len(candidate) - 2


def _name_profile(config: Mapping[str, str], taken: Iterable[str]) -> str:
    """Name a profile after its effect: compacted, keep-7d-zstd."""
    words = [word for key, value in sorted(config.items()) if (word := _describe(key, value))]
    name = "-".join(dict.fromkeys(words[:3]))
    if not name:  # no config has a word: the first one names the profile
        first = "-".join(min(config.items()))
        name = "".join(c if c.isascii() and c.isalnum() else "-" for c in first).strip("-")[:60]
    names, number = {*taken}, 2
    unique = name
    while unique in names:
        unique, number = f"{name}-{number}", number + 1
    return unique


def _describe(key: str, value: str) -> str:
    match key:
        case "cleanup.policy":
            known = {"compact": "compacted", "delete": "", "": "kept"}
            return known.get(value, "compacted-deleted" if "compact" in value else "")
        case "compression.type":
            return "" if value == "producer" else value
        case "retention.ms":
            return "forever" if value == "-1" else f"keep-{format_duration(int(value))}"
        case "retention.bytes":
            return "" if value == "-1" else f"keep-{format_size(int(value))}"
        case "max.message.bytes":
            return f"up-to-{format_size(int(value))}"
        case "remote.storage.enable":
            return "tiered" if value == "true" else ""
        case "message.timestamp.type":
            return "log-append-time" if value == "LogAppendTime" else ""
        case _:
            return ""


def list_own_keys(
    wanted: DesiredTopic, below: TopicSpec, catalogue: Catalogue
) -> dict[str, object]:
    """List the keys of a topic's document, except its name, that differ from inherited values."""
    document: dict[str, object] = {}
    if wanted.assignment is None and wanted.partitions != below.partitions:
        document["partitions"] = wanted.partitions
    if wanted.assignment is None and wanted.replication_factor != below.replication_factor:
        document["replication_factor"] = wanted.replication_factor
    config = list_own_configs(wanted.config, below.config, catalogue)
    if config:
        document["config"] = config
    if wanted.assignment is not None:
        document["assignment"] = [list(row) for row in wanted.assignment]
    return document


def list_own_configs(
    config: Mapping[str, str], below: Mapping[str, str], catalogue: Catalogue
) -> dict[str, object]:
    """Return the configs that differ from inherited ones; null removes an inherited config."""
    own: dict[str, object] = {
        key: humanise(catalogue, key, value)
        for key, value in sorted(config.items())
        if below.get(key) != value
    }
    return own | {key: None for key in sorted(below) if key not in config}


def choose_profile(
    wanted: DesiredTopic, bases: Mapping[str | None, TopicSpec], catalogue: Catalogue
) -> tuple[str | None, dict[str, object]]:
    """Choose the profile with which a document is shortest; none if that saves no line.

    In: `bases`, the inherited values by profile, None for no profile.
    """
    said = {
        profile: list_own_keys(wanted, below, catalogue)
        for profile, below in bases.items()
        if profile is None or _fits(wanted, below, bases[None])
    }
    best = min(said, key=lambda p: (_count_lines(said[p]) + (p is not None), p or ""))
    return best, said[best]


def _fits(wanted: DesiredTopic, below: TopicSpec, plain: TopicSpec) -> bool:
    """Return whether a profile adds configs, and only such that the topic has."""
    added = below.config.items() - plain.config.items()
    return bool(added) and added <= wanted.config.items() and below.rack_aware == plain.rack_aware


def _count_lines(document: Mapping[str, object]) -> int:
    config = document.get("config")
    return len(document) + (len(config) if isinstance(config, dict) else 0)
