"""The quotas of owners: what all topics of one owner on a cluster may ask for together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from reconciler.errors import Finding, Location
from reconciler.policy.breaches import Breach
from reconciler.policy.policy import BrokenLimit, Policy

if TYPE_CHECKING:
    from reconciler.model.cluster import TopicSpec

RULE = "quota-per-owner"
TOPICS_NAMED = 5

# A count that no spec manages is not known without the cluster: it does not count.
_ASKED: Mapping[str, Callable[[TopicSpec], int]] = MappingProxyType(
    {
        "topics": lambda _: 1,
        "partitions": lambda spec: spec.partitions or 0,
        "replicas": lambda spec: (spec.partitions or 0) * (spec.replication_factor or 0),
    }
)


def check_quotas(specs: Iterable[TopicSpec], policy: Policy, cluster: str) -> Iterator[Breach]:
    """Yield every quota that an owner exceeds. In: all specs of the cluster.

    Topics without an owner have one quota together, so that no topic avoids it by naming none.
    Topics to be deleted and exempt topics do not count.
    """
    if not policy.per_owner:
        return
    owned: dict[str | None, list[TopicSpec]] = defaultdict(list)
    for spec in specs:
        if not spec.absent and not policy.spares(RULE, spec.name):
            owned[spec.owner].append(spec)
    for owner, topics in sorted(owned.items(), key=lambda item: (item[0] is None, item[0])):
        for noun, most in policy.per_owner.items():
            asked = sum(map(_ASKED[noun], topics))
            if asked > most:
                finding = _refuse(owner, topics, noun, (asked, most), cluster)
                broken = BrokenLimit(RULE, owner, noun)
                yield Breach(
                    replace(finding, severity=policy.weigh(RULE, noun)),
                    broken,
                    str(asked),
                    policy.bound(broken),
                )


def _refuse(
    owner: str | None,
    topics: Sequence[TopicSpec],
    noun: str,
    numbers: tuple[int, int],
    cluster: str,
) -> Finding:
    """Return the finding for an exceeded quota, at the topic that it names first."""
    asked, most = numbers
    ordered = sorted(topics, key=lambda spec: (spec.location, spec.name), reverse=noun == "topics")
    if noun != "topics":
        ordered = sorted(filter(_ASKED[noun], ordered), key=_ASKED[noun], reverse=True)
    named = [_name(spec, noun) for spec in ordered[:TOPICS_NAMED]]
    if beyond := len(ordered) - len(named):
        named.append(f"{beyond:,} more")
    whose = "without an owner" if owner is None else f"of '{owner}'"
    first = "the last in the files are" if noun == "topics" else "most of them for"
    what = (
        f"the topics {whose} ask for {asked:,} {noun} on {cluster}, {asked - most:,} more than "
        f"the {most:,} of the quota per owner, {first} {', '.join(named)}"
    )
    way_out = (
        f"ask for {asked - most:,} fewer in new topics, or write policy: {{per_owner: "
        f"{{{noun}: {asked}}}}} for {cluster} in clusters.yaml, or exempt topics from {RULE}"
    )
    if owner is None:
        way_out = f"write the owner of each, or {way_out}"
    return Finding(RULE, what, way_out, _place(ordered[0], noun))


def _name(spec: TopicSpec, noun: str) -> str:
    place = _place(spec, noun)
    at = f"{place.file}:{place.line}"
    much = "" if noun == "topics" else f"{_ASKED[noun](spec):,}, "
    return f"{spec.name} ({much}{at})"


def _place(spec: TopicSpec, noun: str) -> Location:
    """Return where the topic's own file asks for the number, or the topic if it is inherited."""
    where = spec.where("" if noun == "topics" else "partitions")
    return where if where.file == spec.location.file else spec.location
