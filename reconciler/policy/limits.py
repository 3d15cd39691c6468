"""The limits of a policy, checked for one spec: each finding names the limit and the way out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import chain
from typing import TYPE_CHECKING

from reconciler.errors import Finding, Location
from reconciler.policy.breaches import Breach
from reconciler.policy.policy import BASELINED, Bounds, BrokenLimit, Limit, Policy
from reconciler.units import describe_value

if TYPE_CHECKING:
    from reconciler.model.cluster import TopicSpec

_MIN_INSYNC = "min.insync.replicas"
_COUNTS = {"partitions": "policy-partitions", "replication_factor": "policy-replication"}
_ALREADY = {
    ("policy-partitions", "at most"): "; exempt a topic that has more already",
    ("policy-replication", "at most"): "; reassign a topic that has more already, or exempt it",
    ("policy-replication", "at least"): "; reassign a topic that has fewer already, or exempt it",
}
"""Ways out for live topics: no plan removes partitions or moves replicas, so an edit of the spec
does not help them."""
_Broken = tuple[Finding, str, str, Bounds | None]
"""A finding, the limit of its rule, and the value and the range that it is about."""
_WORDS = {"owner": "the team that is responsible for it", "description": "what a record contains"}


def check_limits(spec: TopicSpec, policy: Policy, cluster: str) -> Iterator[Breach]:
    """Yield every broken limit of the topic, but for rules that it is exempt from.

    Rules on names and owners say who may write what, so a topic to be deleted must follow them. It
    has no values to limit.
    """
    checks = [_check_identity(spec, policy)]
    if not spec.absent:
        checks += [_check_counts(spec, policy, cluster), _check_written(spec, policy, cluster)]
        checks += [_check_values(spec, policy, cluster)]
    for finding, limit, value, bounds in chain.from_iterable(checks):
        if not policy.spares(finding.rule, spec.name):
            weighed = replace(finding, severity=policy.weigh(finding.rule, limit))
            broken = BrokenLimit(finding.rule, spec.name, limit)
            yield Breach(weighed, broken if finding.rule in BASELINED else None, value, bounds)


def _check_identity(spec: TopicSpec, policy: Policy) -> Iterator[_Broken]:
    """Check name, owner, description and labels, which a topic to be deleted has as well."""
    wanted = policy.name
    if wanted is not None and not wanted.matches(spec.name):
        means = wanted.means or f"what the pattern {wanted.pattern} asks for"
        what = f"the name '{spec.name}' is not {means}"
        way_out = f"choose a name that {wanted.pattern} matches from start to end"
        if spec.absent:  # another name would ask to delete another topic
            way_out = "exempt it from policy-name in clusters.yaml if it may be deleted from here"
        yield Finding("policy-name", what, way_out, spec.location), "", "", None
    for key, example in _WORDS.items():
        if getattr(policy, key) and getattr(spec, key) is None:
            what = f"the topic '{spec.name}' has no {key}, and the policy requires one"
            way_out = f"write {key}: {example}"
            yield Finding(f"policy-{key}", what, way_out, spec.location), "", "", None
    for key in policy.require_labels or ():
        if key not in spec.labels:
            what = f"the topic '{spec.name}' has no label {key}, and the policy requires it"
            allowed = policy.label_values.get(key, ("some text",))
            shown = " or ".join(f"{{{key}: {_spell_label(value)}}}" for value in allowed)
            way_out = f"write labels: {shown}"
            yield Finding("policy-label-missing", what, way_out, spec.location), "", "", None
    for key, allowed in policy.label_values.items():
        value = spec.labels.get(key)
        if value is not None and value not in allowed:
            where, named = _place(spec, f"labels.{key}")
            what = f"the label {key}: '{value}'{named} is not a value that the policy allows"
            way_out = f"use {' or '.join(map(_spell_label, allowed))}"
            yield Finding("policy-label-value", what, way_out, where), "", "", None


def _spell_label(value: str) -> str:
    """Spell a value of a label with the quotes that YAML needs for numbers, flags and no text."""
    return value if value[:1].isalpha() and value not in ("true", "false", "null") else f'"{value}"'


def _check_counts(spec: TopicSpec, policy: Policy, cluster: str) -> Iterator[_Broken]:
    for key, rule in _COUNTS.items():
        count, bounds = getattr(spec, key), getattr(policy, key)
        if count is not None and bounds is not None:
            found = (count, f"{key} {count}")
            for finding in _check_bounds(rule, spec, key, found, bounds, cluster):
                yield finding, "", str(count), bounds


def _check_written(spec: TopicSpec, policy: Policy, cluster: str) -> Iterator[_Broken]:
    """Check the keys of configs: those that may not be set, and those that must be set."""
    for key in spec.config:
        where = spec.where(f"config.{key}")
        # The authors of the policy also write clusters.yaml: only the topic's own file is limited.
        if where.file != spec.location.file:
            continue
        denied = _find_match(key, policy.deny or ())
        if denied is not None:
            what = f"topics may not set {key} on {cluster}: the policy denies {denied}"
            way_out = "remove it from the topic"
            yield Finding("policy-config", what, way_out, where), key, spec.config[key], None
        elif policy.allow is not None and not _matches(key, policy.allow):
            what = f"{key} is not among the configs that topics may set on {cluster}"
            way_out = f"remove it from the topic; allowed are {', '.join(policy.allow)}"
            yield Finding("policy-config", what, way_out, where), key, spec.config[key], None
    for key in policy.require or ():
        if key not in spec.config:
            what = f"the topic '{spec.name}' has no {key} on {cluster}, and the policy requires it"
            own = _find_match(key, policy.deny or ()) is None and (
                policy.allow is None or _matches(key, policy.allow)
            )
            way_out = f"write {key} in {'its config, ' if own else ''}its profile or the defaults"
            yield Finding("policy-config-missing", what, way_out, spec.location), key, "", None


def _check_values(spec: TopicSpec, policy: Policy, cluster: str) -> Iterator[_Broken]:
    rule = "policy-config-value"
    for key, value in spec.config.items():
        if key not in policy.ranges and key not in policy.values:
            continue
        path, shown = f"config.{key}", f"{key} {describe_value(key, value)}"
        where, named = _place(spec, path)
        if key in policy.ranges:
            number = read_limit(key, value)
            if number is None:  # only a config of a service: its values are sent as they are
                what = f"{shown}{named} is not a number, and the policy of {cluster} limits it"
                finding = Finding(rule, what, "write a number, without a unit", where)
                yield finding, key, value, None
            else:
                bounds = policy.ranges[key]
                for finding in _check_bounds(rule, spec, path, (number, shown), bounds, cluster):
                    yield finding, key, value, bounds
        allowed = policy.values.get(key)
        if allowed is not None and value not in allowed and not set(value.split(",")) <= {*allowed}:
            what = f"{shown}{named} is not a value that the policy of {cluster} allows"
            yield Finding(rule, what, f"use {' or '.join(allowed)}", where), key, value, None


def _check_bounds(
    rule: str,
    spec: TopicSpec,
    path: str,
    found: tuple[float, str],
    bounds: Bounds,
    cluster: str,
) -> Iterator[Finding]:
    """Compare a number with its limits. In: the number, and its text for messages."""
    number, shown = found
    where, named = _place(spec, path)
    if bounds.most is not None and number > bounds.most.number:
        most = f"{bounds.most.shown}, the most that the policy of {cluster} allows"
        way_out = _use(rule, spec, path, "at most", bounds.most)
        yield Finding(rule, f"{shown}{named} exceeds {most}", way_out, where)
    if bounds.least is not None and number < bounds.least.number:
        least = f"{bounds.least.shown}, the least that the policy of {cluster} allows"
        way_out = _use(rule, spec, path, "at least", bounds.least)
        yield Finding(rule, f"{shown}{named} is below {least}", way_out, where)


def _use(rule: str, spec: TopicSpec, path: str, bound: str, limit: Limit) -> str:
    """Name the edit that meets a limit, with any second edit that it requires."""
    least, factor, along = int(spec.config.get(_MIN_INSYNC, 0)), spec.replication_factor, ""
    match path, bound:
        case "replication_factor", "at most" if least > limit.number:
            along = f", for {_MIN_INSYNC} as well"
        case "config.min.insync.replicas", "at least" if factor and factor < limit.number:
            along = ", and as many replicas"
    return f"use {bound} {limit.shown}{along}{_ALREADY.get((rule, bound), '')}"


def _place(spec: TopicSpec, path: str) -> tuple[Location, str]:
    """Return the location of a value, and the words that mark an inherited value."""
    where = spec.where(path)
    # The words name no topic: an inherited value is reported once for all of its topics.
    own = where.file == spec.location.file
    return where, "" if own else ", which topics inherit,"


def read_limit(key: str, value: str) -> float | None:
    """Read a number as Kafka does: a negative duration or size means no limit. None: no number."""
    try:
        number = float(value)
    except ValueError:
        return None
    return float("inf") if number < 0 and key.endswith((".ms", ".bytes")) else number


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return _find_match(name, patterns) is not None


def _find_match(name: str, patterns: Iterable[str]) -> str | None:
    return next((pattern for pattern in patterns if fnmatchcase(name, pattern)), None)
