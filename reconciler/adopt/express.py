"""A topic as a document of few lines: what it inherits is left out, what it lacks is null."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.adopt.spelling import humanise
from reconciler.spec.resolve import ConfigReader, Written, WrittenTopic, resolve_topic
from reconciler.spec.shape import TopicDocument
from reconciler.spec.values import Table, Text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconciler.adopt.adoption import Wish
    from reconciler.model import TopicSpec
    from reconciler.spec import Estate
    from reconciler.spec.configs import Catalogue


def inherit(estate: Estate, cluster: str, profile: str | None, catalogue: Catalogue) -> TopicSpec:
    """Return what a topic would be that writes nothing itself."""
    name = Text("any")
    name.file, name.line, name.column, name.tag, name.quoted = "", 1, 1, "str", False
    document = TopicDocument.model_construct(_fields_set={"topic"}, topic=name)
    layers = estate.list_layers(cluster, profile)
    empty = WrittenTopic(document, Written(document, Table()), {})
    return resolve_topic(empty, layers, cluster, ConfigReader(catalogue))


def express(wish: Wish, below: TopicSpec, catalogue: Catalogue) -> dict[str, object]:
    """Say a wish in the keys of a topic document, given what it inherits; without its name."""
    document: dict[str, object] = {}
    if wish.assignment is None and wish.partitions != below.partitions:
        document["partitions"] = wish.partitions
    if wish.assignment is None and wish.replication_factor != below.replication_factor:
        document["replication_factor"] = wish.replication_factor
    config = express_config(wish.config, below.config, catalogue)
    if config:
        document["config"] = config
    if wish.assignment is not None:
        document["assignment"] = [list(row) for row in wish.assignment]
    return document


def express_config(
    config: Mapping[str, str], below: Mapping[str, str], catalogue: Catalogue
) -> dict[str, object]:
    """Say what differs from what is inherited."""
    own: dict[str, object] = {
        key: humanise(catalogue, key, value)
        for key, value in sorted(config.items())
        if below.get(key) != value
    }
    return own | {key: None for key in sorted(below) if key not in config}


def choose_profile(
    wish: Wish, bases: Mapping[str | None, TopicSpec], catalogue: Catalogue
) -> tuple[str | None, dict[str, object]]:
    """Express a wish on the profile that leaves fewest lines; on none where that is no more.

    In: `bases`, what a topic inherits by profile, None for no profile.
    """
    said = {
        profile: express(wish, below, catalogue)
        for profile, below in bases.items()
        if profile is None or _fits(wish, below, bases[None])
    }
    best = min(said, key=lambda p: (_count_lines(said[p]) + (p is not None), p or ""))
    return best, said[best]


def _fits(wish: Wish, below: TopicSpec, plain: TopicSpec) -> bool:
    """Tell whether a profile says nothing of configs but what the topic has too."""
    added = below.config.items() - plain.config.items()
    return bool(added) and added <= wish.config.items() and below.rack_aware == plain.rack_aware


def _count_lines(document: Mapping[str, object]) -> int:
    config = document.get("config")
    return len(document) + (len(config) if isinstance(config, dict) else 0)
