"""The clusters at the base of a request, and the guards that the request loosens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple

from reconciler.errors import Finding, Severity
from reconciler.model.cluster import SHORT
from reconciler.policy.loosening import (
    compare_policies,
    name_some,
    narrow_patterns,
    widen_patterns,
    widen_words,
)
from reconciler.policy.policy import Policy, lay_policy
from reconciler.spec.entry import ClusterEntry
from reconciler.units import format_duration, format_size

Restore = Callable[[ClusterEntry], ClusterEntry]


@dataclass(frozen=True, slots=True)
class Base:
    """The clusters of an estate at the commit that a request changes, by name."""

    commit: str
    entries: Mapping[str, ClusterEntry]

    @property
    def short(self) -> str:
        """The commit, for messages."""
        return self.commit[:SHORT]


class Loosened(NamedTuple):
    """A guard that is looser now: its path, how, and how an entry gets back what it was."""

    path: str
    how: str
    restore: Restore


def hold_guards(base: Base, now: ClusterEntry) -> tuple[ClusterEntry, tuple[Finding, ...]]:
    """Compare the guards of a cluster with those of the base. A new cluster has none to loosen.

    Returns the entry, in which a looser guard is that of the base if the base asks for this, and a
    warning for each looser guard.
    """
    then = base.entries.get(now.name)
    if then is None:
        return now, ()
    way_out = "the new value applies once this is merged; review it first"
    if then.guards.from_base:
        way_out = (
            f"this plan uses the guard of {base.short}, because of guards: {{from: base}} there; "
            "merge the new guard first, then the changes that need it"
        )
    held, findings = now, []
    for path, how, restore in list_loosened(then, now):
        held = restore(held) if then.guards.from_base else held
        what = f"the request loosens {path} of {now.name}: {how}"
        findings.append(Finding("guard-loosened", what, way_out, now.where(path), Severity.WARNING))
    return held, tuple(findings)


def list_loosened(then: ClusterEntry, now: ClusterEntry) -> Iterator[Loosened]:
    """Yield each guard that is looser now. docs/reference/clusters.md defines looser."""
    yield from _list_numbers("guards", then, now)
    held = then.guards.from_base
    if held and not now.guards.from_base:
        yield Loosened("guards.from", "base → request", _put("guards", held, "from_base"))
    for name in ("cluster_id", "audit_topic"):
        before, after = getattr(then, name), getattr(now, name)
        if before is not None and before != after:
            yield Loosened(name, f"{before} → {after or 'not set'}", _put(name, before))
    for name, how in (
        ("owns", widen_patterns(then.owns or None, now.owns or None)),
        ("owners", widen_words(then.owners or None, now.owners or None)),
        ("ignore", narrow_patterns(then.ignore, now.ignore)),
        ("known_configs", widen_words(then.known_configs, now.known_configs)),
    ):
        if how:
            yield Loosened(name, how, _put(name, getattr(then, name)))
    for path, how, part in compare_policies(then.policy, now.policy):
        yield Loosened(f"policy.{path}", how, _lay(part))
    if no_longer := [name for name in then.waits_for if name not in now.waits_for]:
        how = f"no longer after {name_some(no_longer)}"
        yield Loosened("stages", how, _put("stages", then.stages))
    if now.moves is None:
        return
    if then.moves is None:
        yield Loosened("moves", f"none → {name_some(now.moves.allow)}", _put("moves", None))
        return
    kept = now.move_hours and set(now.move_hours).issubset(then.move_hours)
    if then.move_hours and not kept:
        how = name_some([window.name for window in now.move_hours]) or "at any time"
        yield Loosened("moves.windows", f"other hours: {how}", _put("move_hours", then.move_hours))
    if how := widen_words(then.moves.allow, now.moves.allow):
        yield Loosened("moves.allow", how, _put("moves", then.moves.allow, "allow"))
    yield from _list_numbers("moves", then, now)


def _list_numbers(name: str, then: ClusterEntry, now: ClusterEntry) -> Iterator[Loosened]:
    """Yield each number below a key of a cluster that is looser now."""
    for path, inner, is_looser, show in _NUMBERS[name]:
        before, after = getattr(getattr(then, name), inner), getattr(getattr(now, name), inner)
        if is_looser(before, after):
            shown = ("no limit" if value is None else show(value) for value in (before, after))
            yield Loosened(f"{name}.{path}", " → ".join(shown), _put(name, before, inner))


def _is_more(then: int | None, now: int | None) -> bool:
    """Return whether a maximum is higher now; None is no maximum."""
    return then is not None and (now is None or now > then)


def _is_less(then: int, now: int) -> bool:
    return now < then


_Number = tuple[str, str, "Callable[[Any, Any], bool]", "Callable[[Any], str]"]
_NUMBERS: Mapping[str, tuple[_Number, ...]] = MappingProxyType(
    {
        "guards": (
            ("max_changed", "max_changed_percent", _is_more, "{}%".format),
            ("max_deletes", "max_deletes", _is_more, "{:,}".format),
            ("unused_for", "unused_for_ms", _is_less, format_duration),
        ),
        "moves": (
            ("rate", "rate_bytes_per_s", _is_more, format_size),
            ("at_once.cluster", "at_once_cluster", _is_more, str),
            ("at_once.broker", "at_once_broker", _is_more, str),
            ("max_bytes", "max_bytes", _is_more, format_size),
            ("keep_free", "keep_free_percent", _is_less, "{}%".format),
        ),
    }
)
"""The numbers that limit, below the key of each: path, field, what is looser, how it is shown."""


def _put(name: str, value: object, inner: str = "") -> Restore:
    """Return what puts a value back: a setting of the entry, or one within that setting."""

    def put(entry: ClusterEntry) -> ClusterEntry:
        whole: Any = replace(getattr(entry, name), **{inner: value}) if inner else value
        return replace(entry, **{name: whole})

    return put


def _lay(part: Policy) -> Restore:
    return lambda entry: replace(entry, policy=lay_policy(entry.policy, part))
