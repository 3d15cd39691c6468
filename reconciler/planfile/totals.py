"""The totals of a plan: what it adds and removes, per topic and per owner."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType

from reconciler.model.plan import PlannedTopic
from reconciler.model.steps import steps_of
from reconciler.units import count


@dataclass(frozen=True, slots=True)
class Totals:
    """The numbers of topics, partitions and replicas that a plan adds and removes.

    `topics_changed` counts every topic with steps, also the added and the removed ones.
    """

    topics_added: int = 0
    topics_removed: int = 0
    partitions_added: int = 0
    partitions_removed: int = 0
    replicas_added: int = 0
    replicas_removed: int = 0
    topics_changed: int = 0

    def __add__(self, other: Totals) -> Totals:
        """Add the totals of two topics, or of two plans."""
        names = [field.name for field in fields(self)]
        return Totals(*(getattr(self, name) + getattr(other, name) for name in names))

    @property
    def words(self) -> str:
        """Return the numbers that are added and removed as text; empty if all are zero."""
        said = []
        for way in ("added", "removed"):
            numbers = {noun: getattr(self, f"{noun}s_{way}") for noun in _NOUNS}
            if listed := ", ".join(count(n, noun) for noun, n in numbers.items() if n):
                said.append(f"{listed} {way}")
        return "; ".join(said)

    def show(self, noun: str) -> str:
        """Return the numbers of one noun with their signs; empty if both are zero."""
        signed = (("+", getattr(self, f"{noun}s_added")), ("−", getattr(self, f"{noun}s_removed")))
        return " ".join(f"{sign}{number:,}" for sign, number in signed if number)


_NOUNS = ("topic", "partition", "replica")


def count_by_owner(topics: Iterable[PlannedTopic]) -> Mapping[str | None, Totals]:
    """Add up what the plan does to the topics of each owner; the topics without one are last."""
    owned: dict[str | None, Totals] = {}
    for topic in topics:
        if (totals := count_topic(topic)).topics_changed:
            owned[topic.owner] = owned.get(topic.owner, Totals()) + totals
    ordered = sorted(owned.items(), key=lambda item: (item[0] is None, item[0]))
    return MappingProxyType(dict(ordered))


def count_topic(topic: PlannedTopic) -> Totals:
    """Count what the steps of a topic add and remove."""
    if not steps_of(topic):
        return Totals()
    sizes = []
    for image in (topic.before, topic.after):
        rows = image.assignment if image else ()
        sizes.append((int(image is not None), len(rows), sum(map(len, rows))))
    pairs = zip(*sizes, strict=True)
    moves = (n for was, is_ in pairs for n in (max(is_ - was, 0), max(was - is_, 0)))
    return replace(Totals(*moves), topics_changed=1)
