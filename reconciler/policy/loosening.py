"""What a policy allows and another one does not, limit by limit."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import NamedTuple

from reconciler.errors import Severity
from reconciler.policy.baseline import is_worse
from reconciler.policy.policy import (
    Baseline,
    Bounds,
    BrokenLimit,
    Limit,
    Policy,
    PolicyRule,
)
from reconciler.units import count, describe_value

NAMED = 5
"""The number of words of a list to name; the others are counted."""


class LoosePart(NamedTuple):
    """One limit that is looser now: its path in a policy, how, and the part that restores it."""

    path: str
    how: str
    part: Policy


def compare_policies(then: Policy, now: Policy) -> Iterator[LoosePart]:
    """Yield each limit of `then` that `now` loosens. `lay_policy(now, part)` restores a limit.

    A pattern of names and a rule in CEL count as looser if they differ: it cannot be decided.
    """
    if then.name and then.name.pattern != (now.name.pattern if now.name else None):
        how = f"{then.name.pattern} → {now.name.pattern if now.name else 'removed'}"
        yield LoosePart("name.pattern", how, Policy(name=then.name))
    for key, required in (
        ("owner", Policy(owner=True)),
        ("description", Policy(description=True)),
    ):
        if getattr(then, key) and not getattr(now, key):
            yield LoosePart(key, "required → optional", required)
    for end, how, bounds in _compare_bounds(then.partitions, now.partitions):
        yield LoosePart(f"partitions.{end}", how, Policy(partitions=bounds))
    for end, how, bounds in _compare_bounds(then.replication_factor, now.replication_factor):
        yield LoosePart(f"replication_factor.{end}", how, Policy(replication_factor=bounds))
    for key, before in then.ranges.items():
        for end, how, bounds in _compare_bounds(before, now.ranges.get(key)):
            yield LoosePart(
                f"config.ranges.{key}.{end}", how, Policy(ranges=MappingProxyType({key: bounds}))
            )
    yield from _compare_lists(then, now)
    yield from _compare_severities(then, now)
    yield from _compare_baselines(then, now)
    yield from _compare_all_quotas(then, now)
    for name, rule in then.rules.items():
        if how := _compare_rules(rule, now.rules.get(name)):
            yield LoosePart(f"rules.{name}", how, Policy(rules=MappingProxyType({name: rule})))


def _compare_lists(then: Policy, now: Policy) -> Iterator[LoosePart]:
    if how := widen_patterns(then.allow, now.allow):
        yield LoosePart("config.allow", how, Policy(allow=then.allow))
    if how := narrow_patterns(then.deny or (), now.deny or ()):
        yield LoosePart("config.deny", how, Policy(deny=then.deny))
    if missing := set(then.require or ()) - set(now.require or ()):
        yield LoosePart(
            "config.require", f"without {name_some(missing)}", Policy(require=then.require)
        )
    for key, values in then.values.items():
        if how := widen_words(values, now.values.get(key)):
            yield LoosePart(
                f"config.values.{key}", how, Policy(values=MappingProxyType({key: values}))
            )
    if missing := set(then.require_labels or ()) - set(now.require_labels or ()):
        how = f"without {name_some(missing)}"
        yield LoosePart("labels.require", how, Policy(require_labels=then.require_labels))
    for key, values in then.label_values.items():
        if how := widen_words(values, now.label_values.get(key)):
            part = Policy(label_values=MappingProxyType({key: values}))
            yield LoosePart(f"labels.values.{key}", how, part)
    for rule, patterns in now.exempt.items():
        spared = then.exempt.get(rule, ())
        if how := widen_patterns(spared, patterns):
            yield LoosePart(f"exempt.{rule}", how, Policy(exempt=MappingProxyType({rule: spared})))


def _compare_severities(then: Policy, now: Policy) -> Iterator[LoosePart]:
    """Yield each severity that is lower for a limit that `then` has."""
    order = list(Severity)
    for rule, limit in sorted({*then.severity, *now.severity}):
        before, after = then.weigh(rule, limit), now.weigh(rule, limit)
        if then.limits(rule, limit) and order.index(after) > order.index(before):
            path = f"severity.{rule}.{limit}" if limit else f"severity.{rule}"
            part = Policy(severity=MappingProxyType({(rule, limit): before}))
            yield LoosePart(path, f"{before} → {after}", part)


def _compare_baselines(then: Policy, now: Policy) -> Iterator[LoosePart]:
    """Yield once what only the baseline of `now` exempts from limits that `then` has."""
    before = then.baseline.values if then.baseline else {}
    after = now.baseline.values if now.baseline else {}
    looser = [
        broken
        for broken, value in after.items()
        if then.limits(broken.rule, broken.limit)
        and (
            broken not in before
            or is_worse(broken.limit, value, before[broken], then.bound(broken))
        )
    ]
    if looser:
        held = {broken: value for broken, value in after.items() if broken not in looser}
        held |= {broken: before[broken] for broken in looser if broken in before}
        named = (_name_exemption(broken, after[broken]) for broken in looser)
        how = f"{count(len(looser), 'new or wider exemption')}: {name_some(named)}"
        part = Policy(baseline=Baseline(MappingProxyType(held)))
        yield LoosePart("baseline", how, part)


def _name_exemption(broken: BrokenLimit, value: str) -> str:
    who = broken.who or "the topics without an owner"
    shown = describe_value(broken.limit, value) if value else ""
    return f"{who} ({' '.join(filter(None, [broken.rule, broken.limit, shown]))})"


def _compare_all_quotas(then: Policy, now: Policy) -> Iterator[LoosePart]:
    for noun, how, quota in _compare_quotas(then.per_owner, now.per_owner):
        yield LoosePart(f"per_owner.{noun}", how, Policy(per_owner=quota))
    # The quotas of one value replace those of every value, so they are compared as they hold.
    for label in sorted(then.per_label.keys() | now.per_label.keys()):
        key = label.partition("=")[0]
        before, after = (
            {**policy.per_label.get(key, {}), **policy.per_label.get(label, {})}
            for policy in (then, now)
        )
        for noun, how, quota in _compare_quotas(before, after):
            part = Policy(per_label=MappingProxyType({label: quota}))
            yield LoosePart(f"per_label.{label}.{noun}", how, part)


def _compare_quotas(
    then: Mapping[str, int], now: Mapping[str, int]
) -> Iterator[tuple[str, str, Mapping[str, int]]]:
    """Yield each quota that is larger: its noun, how, and the quota that restores it."""
    for noun, most in then.items():
        if (allowed := now.get(noun)) is None or allowed > most:
            how = f"{most:,} → {'no limit' if allowed is None else f'{allowed:,}'}"
            yield noun, how, MappingProxyType({noun: most})


def _compare_bounds(then: Bounds | None, now: Bounds | None) -> Iterator[tuple[str, str, Bounds]]:
    """Yield each end of a range that is looser: its key, how, and the range that restores it."""
    then, now = then or Bounds(), now or Bounds()
    if then.least and (now.least is None or now.least.number < then.least.number):
        yield "min", f"{then.least.shown} → {_show(now.least)}", Bounds(least=then.least)
    if then.most and (now.most is None or now.most.number > then.most.number):
        yield "max", f"{then.most.shown} → {_show(now.most)}", Bounds(most=then.most)


def _show(limit: Limit | None) -> str:
    return limit.shown if limit else "no limit"


def _compare_rules(then: PolicyRule, now: PolicyRule | None) -> str:
    """Say how a rule in CEL may allow more; empty if it does not."""
    order = list(Severity)
    if now is None:
        return "removed"
    if order.index(now.severity) > order.index(then.severity):
        return f"{then.severity} → {now.severity}"
    same = (then.check, then.when, then.subject) == (now.check, now.when, now.subject)
    return "" if same else "another expression, which may allow more"


def widen_patterns(then: Collection[str] | None, now: Collection[str] | None) -> str:
    """Say what patterns match that earlier ones do not; None matches everything."""
    if then is None:
        return ""
    if now is None:
        return f"{name_some(then) or 'nothing'} → everything"
    more = [pattern for pattern in now if not any(_covers(known, pattern) for known in then)]
    return f"also {name_some(more)}" if more else ""


def narrow_patterns(then: Iterable[str], now: Collection[str]) -> str:
    """Say which earlier patterns the new ones do not cover."""
    gone = [pattern for pattern in then if not any(_covers(known, pattern) for known in now)]
    return f"without {name_some(gone)}" if gone else ""


def widen_words(then: Collection[str] | None, now: Collection[str] | None) -> str:
    """Say which words are allowed that were not; None allows every word."""
    if then is None:
        return ""
    if now is None:
        return f"{name_some(then)} → everything"
    more = set(now) - set(then)
    return f"also {name_some(more)}" if more else ""


def name_some(words: Iterable[str]) -> str:
    """Name some words of a list, in order, and count the others."""
    ordered = sorted(words)
    more = len(ordered) - NAMED
    return ", ".join(ordered[:NAMED]) + (f" and {more:,} more" if more > 0 else "")


def _covers(wide: str, narrow: str) -> bool:
    """Return whether every name that `narrow` matches is one that `wide` matches.

    It is decided only for patterns whose one wildcard is `*`; any other covers only itself.
    """
    # A star that matches the text of a pattern also matches all that the pattern stands for.
    simple = not set("?[]") & set(wide + narrow)
    return wide == narrow or (simple and fnmatchcase(narrow, wide))
