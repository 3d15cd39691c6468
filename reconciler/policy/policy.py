"""A policy as a value, and the merge of a cluster's policy over that of the estate."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from reconciler.errors import Location, Severity

if TYPE_CHECKING:
    from reconciler.policy.patterns import NamePattern


@dataclass(frozen=True, slots=True)
class Limit:
    """One end of a range, and its text as written. Units: those of the limited value."""

    number: float
    shown: str


@dataclass(frozen=True, slots=True)
class Bounds:
    """An inclusive range. An end that is None is open."""

    least: Limit | None = None
    most: Limit | None = None


class Subject(StrEnum):
    """The subject of a rule."""

    SPEC = "spec"
    CHANGE = "change"


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """A rule that a team writes: if `when` is true, `check` must be true. Both are CEL.

    `where` and `when_where` are the locations of the expressions.
    """

    name: str
    check: str
    message: str
    where: Location
    when: str | None = None
    when_where: Location | None = None
    severity: Severity = Severity.ERROR
    subject: Subject = Subject.SPEC


class BrokenLimit(NamedTuple):
    """A limit that a topic breaks: the id of the rule, the topic, and which limit of this rule.

    `limit` is a config, a count of a quota, or the name of a rule in CEL; empty if the rule has
    only one. For a quota, `who` is the owner; None for the topics without an owner.
    """

    rule: str
    who: str | None
    limit: str = ""


@dataclass(frozen=True, slots=True)
class Baseline:
    """The limits that were broken before, each with the value at that time.

    `everything`: it exempts every breach, so that all of them can be listed.
    """

    values: Mapping[BrokenLimit, str]
    everything: bool = False


def _nothing() -> Mapping[Any, Any]:
    return MappingProxyType({})


_SINGLE: Mapping[str, str] = MappingProxyType(
    {
        "policy-name": "name",
        "policy-owner": "owner",
        "policy-description": "description",
        "policy-partitions": "partitions",
        "policy-replication": "replication_factor",
    }
)
"""The rules with one limit, and the field of each."""

BASELINED = (
    *_SINGLE,
    *("policy-config", "policy-config-missing", "policy-config-value", "quota-per-owner"),
)
"""The rules of limits that a baseline can exempt from, besides those in CEL."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The requirements for topics. None, or a missing key, means no requirement.

    `allow` and `deny` hold patterns of config keys; they apply only to topic files. `ranges` and
    `values` limit the values of configs in all files. A negative limit means no limit, as in Kafka.
    `per_owner` limits what all topics of an owner ask for together: topics, partitions, replicas.
    `per_label` limits the same for all topics with one label: `domain` holds the limits for each
    value of this label, `tier=gold` those for one value.
    `exempt` holds patterns of topic names, by the id of the rule that does not apply to them.
    `severity` holds severities by the id of a rule and one of its limits: a config, a count of a
    quota, or "" for the others of the rule. `baseline` exempts what broke a limit before.
    """

    name: NamePattern | None = None
    owner: bool | None = None
    description: bool | None = None
    partitions: Bounds | None = None
    replication_factor: Bounds | None = None
    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] | None = None
    require: tuple[str, ...] | None = None
    require_labels: tuple[str, ...] | None = None
    ranges: Mapping[str, Bounds] = field(default_factory=_nothing)
    values: Mapping[str, tuple[str, ...]] = field(default_factory=_nothing)
    label_values: Mapping[str, tuple[str, ...]] = field(default_factory=_nothing)
    per_owner: Mapping[str, int] = field(default_factory=_nothing)
    per_label: Mapping[str, Mapping[str, int]] = field(default_factory=_nothing)
    exempt: Mapping[str, tuple[str, ...]] = field(default_factory=_nothing)
    severity: Mapping[tuple[str, str], Severity] = field(default_factory=_nothing)
    baseline: Baseline | None = None
    rules: Mapping[str, PolicyRule] = field(default_factory=_nothing)

    def spares(self, rule: str, topic: str) -> bool:
        """Return whether a topic is exempt from a rule."""
        return any(fnmatchcase(topic, pattern) for pattern in self.exempt.get(rule, ()))

    def weigh(self, rule: str, limit: str = "") -> Severity:
        """Return the severity of a limit: its own, that of its rule, or error."""
        own = self.severity.get((rule, limit))
        return own or self.severity.get((rule, ""), Severity.ERROR)

    def bound(self, broken: BrokenLimit) -> Bounds | None:
        """Return the range that a limit is; None if it is another kind of limit."""
        match broken.rule:
            case "policy-partitions":
                return self.partitions
            case "policy-replication":
                return self.replication_factor
            case "policy-config-value":
                return self.ranges.get(broken.limit)
            case "quota-per-owner" if broken.limit in self.per_owner:
                most = self.per_owner[broken.limit]
                return Bounds(most=Limit(most, str(most)))
            case _:
                return None

    def limits(self, rule: str, limit: str = "") -> bool:
        """Return whether a rule has a limit: a config, a count or a rule in CEL, or "" for any."""
        match rule:
            case "policy-config-missing":
                held: Collection[str] = self.require or ()
            case "policy-config-value":
                held = {*self.ranges, *self.values}
            case "quota-per-owner":
                held = self.per_owner
            case "policy-label-missing":
                held = self.require_labels or ()
            case "policy-label-value":
                held = self.label_values
            case "quota-per-label":
                return bool(self.per_label)
            case "policy-rule":
                held = self.rules
            case "policy-config":  # patterns: every config can be one that they limit
                return bool(self.deny) or self.allow is not None
            case _:
                return bool(getattr(self, _SINGLE[rule]))
        return limit in held if limit else bool(held)


def lay_policy(below: Policy, above: Policy) -> Policy:
    """Merge a cluster's policy over the estate's: key by key, also within maps."""
    laid = {
        key.name: _lay(getattr(below, key.name), getattr(above, key.name)) for key in fields(Policy)
    }
    return replace(below, **laid)


def _lay(below: Any, above: Any) -> Any:
    if above is None or below is None:
        return below if above is None else above
    if isinstance(above, Bounds):
        return Bounds(above.least or below.least, above.most or below.most)
    if isinstance(above, MappingProxyType):
        laid = {key: _lay(below.get(key), value) for key, value in above.items()}
        return MappingProxyType({**below, **laid})
    return above
