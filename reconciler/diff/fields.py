"""The managed fields of a topic: desired, actual, and their differences.

If a spec omits a field, the field is not managed: both sides omit it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache
from importlib.abc import MetaPathFinder
from typing import Any, NamedTuple, Protocol

from reconciler.errors import Finding, Location
from reconciler.model.cluster import ClusterState, TopicSpec, TopicState

NOT_MANAGED_KEYS = frozenset(
    {"leader.replication.throttled.replicas", "follower.replication.throttled.replicas"}
)
"""Configs that reassignment tools set and clear; a spec does not manage them."""


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field that differs: its dotted path, its live value, and the desired value.

    None means no value.
    """

    path: str
    found: object
    desired: object


class ConfigEquality(Protocol):
    """The configs of a cluster, as its brokers see them: equal values, and contradictions."""

    @property
    def keeps_defaults(self) -> bool:
        """Return whether a topic keeps an override that equals the brokers' default."""
        ...

    @property
    def keys(self) -> Collection[str]:
        """The topic configs of the cluster's Kafka release."""
        ...

    def offers(self, key: str) -> bool:
        """Return whether a spec can set a config on the cluster."""
        ...

    def same(self, key: str, a: str, b: str) -> bool:
        """Compare two values in the broker's spelling; lists have no order."""
        ...

    def check_together(
        self, config: Mapping[str, str], where: Callable[[str], Location | None]
    ) -> list[Finding]:
        """Check a topic's entire config for keys that contradict each other."""
        ...


def managed_overrides(state: TopicState) -> Mapping[str, str]:
    """Return the overrides that a spec can manage: known to the broker, not a throttle list."""
    return {
        key: value
        for key, value in state.config.items()
        if value is not None and key not in NOT_MANAGED_KEYS
    }


def desired_partitions(spec: TopicSpec) -> int | None:
    """Return the partition count a spec asks for: manual rows win over a count."""
    return len(spec.assignment) if spec.assignment is not None else spec.partitions


def desired_replication(spec: TopicSpec) -> int | None:
    """Return the replication factor a spec asks for: manual rows win over a count."""
    return len(spec.assignment[0]) if spec.assignment else spec.replication_factor


def desired_config(
    spec: TopicSpec,
    overrides: Mapping[str, str],
    disputed: Collection[str],
    defaults: Mapping[str, str],
    equality: ConfigEquality,
) -> dict[str, str]:
    """Return the desired overrides, in the live spelling if that is equivalent.

    `disputed` holds the keys on which the brokers disagree; they are omitted.
    """
    desired = {}
    for key, value in sorted(spec.config.items()):
        if key in disputed:
            continue
        live = overrides.get(key)
        if live is not None and equality.same(key, live, value):
            desired[key] = live
        # A default that equals the spec is no override: it can change, and the spec must hold then.
        elif (
            live is not None
            or equality.keeps_defaults
            or not _is_default(key, value, defaults, equality)
        ):
            desired[key] = value
    return desired


def list_explicit(
    config: Mapping[str, str],
    overrides: Mapping[str, str],
    defaults: Mapping[str, str],
    equality: ConfigEquality,
) -> tuple[str, ...]:
    """List the overrides to set that change nothing yet: they equal the brokers' defaults."""
    new = sorted(config.keys() - overrides.keys())
    return tuple(key for key in new if _is_default(key, config[key], defaults, equality))


def _is_default(
    key: str, value: str, defaults: Mapping[str, str], equality: ConfigEquality
) -> bool:
    return key in defaults and equality.same(key, defaults[key], value)


def desired_fields(spec: TopicSpec, config: Mapping[str, str]) -> dict[str, object]:
    """Return the desired values of the managed fields."""
    desired: dict[str, object] = {"config": dict(config)}
    if (partitions := desired_partitions(spec)) is not None:
        desired["partitions"] = partitions
    if (replication := desired_replication(spec)) is not None:
        desired["replication_factor"] = replication
    if spec.assignment is not None:
        desired["assignment"] = {row: list(ids) for row, ids in enumerate(spec.assignment)}
    return desired


def current_fields(
    spec: TopicSpec, state: TopicState, overrides: Mapping[str, str]
) -> dict[str, object]:
    """Return the live values of the same fields."""
    found: dict[str, object] = {"config": dict(overrides)}
    if desired_partitions(spec) is not None:
        found["partitions"] = len(state.assignment)
    if (desired := desired_replication(spec)) is not None:
        # Partitions can differ in their replicas: one wrong partition makes the field differ.
        factors = state.replication_factors
        found["replication_factor"] = next(iter(sorted(factors - {desired})), desired)
    if spec.assignment is not None:
        # New partitions have no live rows. The partition count reports them, so their rows count as
        # equal here.
        rows = dict(enumerate(map(list, state.assignment[: len(spec.assignment)])))
        rows |= {row: list(spec.assignment[row]) for row in range(len(rows), len(spec.assignment))}
        found["assignment"] = rows
    return found


def compare_fields(found: dict[str, object], desired: dict[str, object]) -> Iterator[FieldChange]:
    """Yield every field that differs, by its path."""
    if found == desired:  # the usual case; it does not load DeepDiff
        return
    # With a threshold of 0, DeepDiff compares configs key by key even if they share few keys.
    tree = _load_deepdiff()(found, desired, view="tree", max_passes=1, threshold_to_diff_deeper=0)
    leaves = {
        tuple(leaf.path(output_format="list")): leaf for kind in tree.values() for leaf in kind
    }
    # A list of replicas is one field: `assignment.3`, and not each of its items.
    by_field = {path[:2]: leaf for path, leaf in leaves.items()}
    for path in sorted(by_field):
        yield FieldChange(".".join(map(str, path)), _at(found, path), _at(desired, path))


@cache
def _load_deepdiff() -> Any:
    """Import DeepDiff without numpy and pandas, which it only needs to compare arrays.

    Cost: 0.1 s; 0.8 s with numpy and pandas.
    """
    hidden = _Hidden(("numpy", "pandas"))
    sys.meta_path.insert(0, hidden)
    try:
        from deepdiff import DeepDiff
    finally:
        sys.meta_path.remove(hidden)
    return DeepDiff


class _Hidden(MetaPathFinder):
    """Hides modules from the imports of one thread: the thread that creates it."""

    def __init__(self, names: Collection[str]) -> None:
        # `sys.meta_path` serves all threads, and another thread may import numpy at the same time.
        self._names: ContextVar[Collection[str]] = ContextVar("names", default=())
        self._names.set(names)

    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname in self._names.get():
            raise ModuleNotFoundError(f"{fullname} is not needed here", name=fullname)


def _at(fields: dict[str, object], path: tuple[object, ...]) -> object:
    """Return the value at `path`; None if there is none."""
    value: Any = fields
    for key in path:
        value = value.get(key)
    return value


def leave_foreign(state: TopicState, equality: ConfigEquality, spec: TopicSpec) -> TopicState:
    """Remove the overrides from a topic that its spec does not manage.

    That a config can be set does not mean that this tool may unset it: a config outside Kafka's
    catalogue belongs to whoever set it, unless the spec itself names it.
    """

    def is_foreign(key: str) -> bool:
        managed = key in equality.keys or key in spec.config or key in spec.unset
        return not (managed and equality.offers(key))

    return drop_overrides(state, is_foreign)


def drop_overrides(state: TopicState, drop: Callable[[str], bool]) -> TopicState:
    """Remove the overrides from a topic that a test names.

    Throttle lists and keys that the brokers do not know stay: they have their own notes.
    """
    dropped = {key for key in (*managed_overrides(state), *state.disputed) if drop(key)}
    if not dropped:
        return state
    kept = {key: value for key, value in state.config.items() if key not in dropped}
    disputed = {key: values for key, values in state.disputed.items() if key not in dropped}
    return replace(state, config=kept, disputed=disputed)


class Doubts(NamedTuple):
    """The topics whose facts are read again before the plan is made, by name.

    `longer` have more replicas than desired. `overridden` have overrides that are to change.
    `planned` have changes, refusals or notes in the plan.
    """

    longer: tuple[str, ...]
    overridden: tuple[str, ...]
    planned: tuple[str, ...]


def list_doubts(
    specs: Iterable[TopicSpec], cluster: ClusterState, equality: ConfigEquality
) -> Doubts:
    """List the live topics that differ from their specs. It does not compute the differences."""
    longer, overridden, planned = [], [], []
    for spec in specs:
        live = cluster.topics.get(spec.name)
        if live is None:
            continue
        state = live if spec.absent else leave_foreign(live, equality, spec)
        overrides = managed_overrides(state)
        desired = desired_config(spec, overrides, state.disputed, cluster.config_defaults, equality)
        other = spec.absent or desired != overrides
        most = max(state.replication_factors, default=0)
        if most > (desired_replication(spec) or most):
            longer.append(spec.name)
        if other and state.config:
            overridden.append(spec.name)
        unmanaged = state.config.keys() != overrides.keys()
        differs = other or current_fields(spec, state, overrides) != desired_fields(spec, desired)
        # An acknowledgement that nothing needs is a note.
        if differs or unmanaged or state.disputed or spec.acknowledge or spec.accepts:
            planned.append(spec.name)
    return Doubts(tuple(longer), tuple(overridden), tuple(planned))
