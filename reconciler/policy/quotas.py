"""Quotas: what all topics of one owner, or with one label, may ask for together on a cluster."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from reconciler.errors import Finding, Location
from reconciler.policy.breaches import Breach
from reconciler.policy.policy import BrokenLimit, Policy

if TYPE_CHECKING:
    from reconciler.model.cluster import TopicSpec

OWNER_RULE, LABEL_RULE = "quota-per-owner", "quota-per-label"
TOPICS_NAMED = 5

# A count that no spec manages is not known without the cluster: it does not count.
_ASKED: Mapping[str, Callable[[TopicSpec], int]] = MappingProxyType(
    {
        "topics": lambda _: 1,
        "partitions": lambda spec: spec.partitions or 0,
        "replicas": lambda spec: (spec.partitions or 0) * (spec.replication_factor or 0),
    }
)


class _Group(NamedTuple):
    """The topics that share a quota. `whose` and `key` say which, in words and in the policy."""

    rule: str
    per: str
    whose: str
    key: str
    quotas: Mapping[str, int]
    topics: Sequence[TopicSpec]
    first_way_out: str = ""


def check_quotas(specs: Iterable[TopicSpec], policy: Policy, cluster: str) -> Iterator[Breach]:
    """Yield every quota that is exceeded. In: all specs of the cluster.

    Topics without an owner have one quota together, so that no topic avoids it by naming none.
    Topics to be deleted and exempt topics do not count.
    """
    if not policy.per_owner and not policy.per_label:
        return
    asking = [spec for spec in specs if not spec.absent]
    for group in chain(_group_by_owner(asking, policy), _group_by_label(asking, policy)):
        for noun, most in group.quotas.items():
            asked = sum(map(_ASKED[noun], group.topics))
            if asked > most:
                finding = _refuse(group, noun, (asked, most), cluster)
                weighed = replace(finding, severity=policy.weigh(group.rule, noun))
                broken = None  # no baseline exempts a label: its topics come and go
                if group.rule == OWNER_RULE:
                    broken = BrokenLimit(OWNER_RULE, group.topics[0].owner, noun)
                bounds = None if broken is None else policy.bound(broken)
                yield Breach(weighed, broken, str(asked), bounds)


def _group_by_owner(specs: Iterable[TopicSpec], policy: Policy) -> Iterator[_Group]:
    owned: dict[str | None, list[TopicSpec]] = defaultdict(list)
    for spec in specs if policy.per_owner else ():
        if not policy.spares(OWNER_RULE, spec.name):
            owned[spec.owner].append(spec)
    for owner, topics in sorted(owned.items(), key=lambda item: (item[0] is None, item[0])):
        whose = "without an owner" if owner is None else f"of '{owner}'"
        way_out = "write the owner of each, or " if owner is None else ""
        yield _Group(OWNER_RULE, "owner", whose, "", policy.per_owner, topics, way_out)


def _group_by_label(specs: Iterable[TopicSpec], policy: Policy) -> Iterator[_Group]:
    """Yield the topics of each label with a quota. A quota of one value replaces that of any."""
    limited = {choice.partition("=")[0] for choice in policy.per_label}
    labelled: dict[tuple[str, str], list[TopicSpec]] = defaultdict(list)
    for spec in specs if limited else ():
        if not policy.spares(LABEL_RULE, spec.name):
            for label in limited & spec.labels.keys():
                labelled[label, spec.labels[label]].append(spec)
    for (label, value), topics in sorted(labelled.items()):
        key, per_label = f"{label}={value}", policy.per_label
        quotas = {**per_label.get(label, {}), **per_label.get(key, {})}
        yield _Group(LABEL_RULE, "label", f"with {label}: '{value}'", key, quotas, topics)


def _refuse(group: _Group, noun: str, numbers: tuple[int, int], cluster: str) -> Finding:
    """Return the finding for an exceeded quota, at the topic that it names first."""
    asked, most = numbers
    ordered = sorted(
        group.topics, key=lambda spec: (spec.location, spec.name), reverse=noun == "topics"
    )
    if noun != "topics":
        ordered = sorted(filter(_ASKED[noun], ordered), key=_ASKED[noun], reverse=True)
    named = [_name(spec, noun) for spec in ordered[:TOPICS_NAMED]]
    if beyond := len(ordered) - len(named):
        named.append(f"{beyond:,} more")
    first = "the last in the files are" if noun == "topics" else "most of them for"
    what = (
        f"the topics {group.whose} ask for {asked:,} {noun} on {cluster}, {asked - most:,} more "
        f"than the {most:,} of the quota per {group.per}, {first} {', '.join(named)}"
    )
    more = f"{{{noun}: {asked}}}"
    if group.key:
        more = f"{{{group.key}: {more}}}"
    way_out = (
        f"{group.first_way_out}ask for {asked - most:,} fewer in new topics, or write policy: "
        f"{{per_{group.per}: {more}}} for {cluster} in clusters.yaml, or exempt topics from "
        f"{group.rule}"
    )
    return Finding(group.rule, what, way_out, _place(ordered[0], noun))


def _name(spec: TopicSpec, noun: str) -> str:
    place = _place(spec, noun)
    at = f"{place.file}:{place.line}"
    much = "" if noun == "topics" else f"{_ASKED[noun](spec):,}, "
    return f"{spec.name} ({much}{at})"


def _place(spec: TopicSpec, noun: str) -> Location:
    """Return where the topic's own file asks for the number, or the topic if it is inherited."""
    where = spec.where("" if noun == "topics" else "partitions")
    return where if where.file == spec.location.file else spec.location
