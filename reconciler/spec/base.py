"""The clusters at the base of a request, and the guards that the request loosens."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from reconciler.errors import Finding, Severity
from reconciler.model.cluster import SHORT
from reconciler.policy.loosening import (
    compare_policies,
    name_some,
    narrow_patterns,
    widen_patterns,
    widen_words,
)
from reconciler.policy.policy import lay_policy
from reconciler.units import format_duration, format_size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from reconciler.model.cluster import Guards
    from reconciler.model.moves import MovePolicy
    from reconciler.policy.policy import Policy
    from reconciler.spec.clusters import ClusterEntry

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
    way_out = "it holds once this is merged; review it before everything else"
    if then.guards.from_base:
        way_out = (
            f"this plan uses the guard of {base.short}, because of guards: {{from: base}} there; "
            "merge the new guard first, then what needs it"
        )
    held, findings = now, []
    for path, how, restore in list_loosened(then, now):
        held = restore(held) if then.guards.from_base else held
        what = f"the request loosens {path} of {now.name}: {how}"
        findings.append(Finding("guard-loosened", what, way_out, now.where(path), Severity.WARNING))
    return held, tuple(findings)


def list_loosened(then: ClusterEntry, now: ClusterEntry) -> Iterator[Loosened]:
    """Yield each guard that is looser now. docs/estate.md defines looser for each of them."""
    yield from _list_limits(then.guards, now.guards)
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
    if then.moves is not None and now.moves is not None:
        yield from _list_moves(then.moves, now.moves)
    elif now.moves is not None:
        yield Loosened("moves", f"none → {name_some(now.moves.allow)}", _put("moves", None))


def _list_limits(then: Guards, now: Guards) -> Iterator[Loosened]:
    most, allowed = then.max_changed_percent, now.max_changed_percent
    if _is_more(most, allowed):
        restore = _put("guards", most, "max_changed_percent")
        yield Loosened("guards.max_changed", _shift(most, allowed, "{}%".format), restore)
    if now.max_deletes > then.max_deletes:
        how = _shift(then.max_deletes, now.max_deletes, "{:,}".format)
        yield Loosened("guards.max_deletes", how, _put("guards", then.max_deletes, "max_deletes"))
    if now.unused_for_ms < then.unused_for_ms:
        how = _shift(then.unused_for_ms, now.unused_for_ms, format_duration)
        restore = _put("guards", then.unused_for_ms, "unused_for_ms")
        yield Loosened("guards.unused_for", how, restore)
    if then.from_base and not now.from_base:
        yield Loosened("guards.from", "base → request", _put("guards", then.from_base, "from_base"))


def _list_moves(then: MovePolicy, now: MovePolicy) -> Iterator[Loosened]:
    if how := widen_words(then.allow, now.allow):
        yield Loosened("moves.allow", how, _put("moves", then.allow, "allow"))
    for path, name, show in (
        ("rate", "rate_bytes_per_s", format_size),
        ("at_once.cluster", "at_once_cluster", str),
        ("at_once.broker", "at_once_broker", str),
        ("max_bytes", "max_bytes", format_size),
    ):
        most, allowed = getattr(then, name), getattr(now, name)
        if _is_more(most, allowed):
            how = _shift(most, allowed, show)
            yield Loosened(f"moves.{path}", how, _put("moves", most, name))
    if now.keep_free_percent < then.keep_free_percent:
        how = _shift(then.keep_free_percent, now.keep_free_percent, "{}%".format)
        restore = _put("moves", then.keep_free_percent, "keep_free_percent")
        yield Loosened("moves.keep_free", how, restore)


def _is_more(then: int | None, now: int | None) -> bool:
    """Return whether a maximum is higher now; None is no maximum."""
    return then is not None and (now is None or now > then)


def _shift(then: int | None, now: int | None, show: Callable[[int], str]) -> str:
    shown = ["no limit" if value is None else show(value) for value in (then, now)]
    return " → ".join(shown)


def _put(name: str, value: object, inner: str = "") -> Restore:
    """Return what puts a value back: a setting of the entry, or one within that setting."""

    def put(entry: ClusterEntry) -> ClusterEntry:
        whole: Any = replace(getattr(entry, name), **{inner: value}) if inner else value
        return replace(entry, **{name: whole})

    return put


def _lay(part: Policy) -> Restore:
    return lambda entry: replace(entry, policy=lay_policy(entry.policy, part))
