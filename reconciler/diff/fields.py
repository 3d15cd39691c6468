"""The managed fields of a topic: desired, actual, and their differences.

A field that the spec leaves out is left out on both sides: it is not managed.
"""

from __future__ import annotations

import sys
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache
from importlib.abc import MetaPathFinder
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from reconciler.errors import Finding, Location
    from reconciler.model import ClusterState, TopicSpec, TopicState

NOT_MANAGED_KEYS = frozenset(
    {"leader.replication.throttled.replicas", "follower.replication.throttled.replicas"}
)
"""Set and cleared by reassignment tools; a spec does not manage them."""


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field that differs: its dotted path, what is there (None: nothing), what is desired."""

    path: str
    found: object
    desired: object


class ConfigEquality(Protocol):
    """The broker's semantics of configs: equal values, and contradictions."""

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

    A key that is not overridden and whose default says what the spec says is no difference; one
    on which the brokers disagree is left as it is.
    """
    desired = {}
    for key, value in sorted(spec.config.items()):
        if key in disputed:
            continue
        live = overrides.get(key, defaults.get(key))
        if live is None or not equality.same(key, live, value):
            desired[key] = value
        elif key in overrides:
            desired[key] = live
    return desired


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
    """Return the same fields as found; manual rows are compared if both sides have them."""
    found: dict[str, object] = {"config": dict(overrides)}
    if desired_partitions(spec) is not None:
        found["partitions"] = len(state.assignment)
    if (desired := desired_replication(spec)) is not None:
        factors = state.replication_factors
        odd = next(iter(sorted(factors - {desired})), desired)
        found["replication_factor"] = odd
    if spec.assignment is not None:
        rows = dict(enumerate(map(list, state.assignment[: len(spec.assignment)])))
        rows |= {row: list(spec.assignment[row]) for row in range(len(rows), len(spec.assignment))}
        found["assignment"] = rows
    return found


def compare_fields(found: dict[str, object], desired: dict[str, object]) -> Iterator[FieldChange]:
    """Name every field that differs, by its path."""
    if found == desired:
        return
    # A threshold of 0: configs with few keys in common are compared key by key all the same.
    tree = _load_deepdiff()(found, desired, view="tree", max_passes=1, threshold_to_diff_deeper=0)
    leaves = {
        tuple(leaf.path(output_format="list")): leaf for kind in tree.values() for leaf in kind
    }
    by_field = {path[:2]: leaf for path, leaf in leaves.items()}
    for path in sorted(by_field):
        yield FieldChange(".".join(map(str, path)), _at(found, path), _at(desired, path))


@cache
def _load_deepdiff() -> Any:
    """Import DeepDiff, when something differs: it costs 0.1 s, and 0.8 s with numpy and pandas.

    It loads these two to compare arrays, and works without them. Only this thread's import misses
    them: others may import them meanwhile.
    """
    hidden = _Hidden(("numpy", "pandas"))
    sys.meta_path.insert(0, hidden)
    try:
        from deepdiff import DeepDiff
    finally:
        sys.meta_path.remove(hidden)
    return DeepDiff


class _Hidden(MetaPathFinder):
    """Hides modules from the imports of the thread that made it."""

    def __init__(self, names: Collection[str]) -> None:
        self._names: ContextVar[Collection[str]] = ContextVar("names", default=())
        self._names.set(names)

    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname in self._names.get():
            raise ModuleNotFoundError(f"{fullname} is not needed here", name=fullname)


def _at(fields: dict[str, object], path: tuple[object, ...]) -> object:
    """Return what is at `path`, None if nothing is."""
    value: Any = fields
    for key in path:
        value = value.get(key)
    return value


def leave_unoffered(state: ClusterState, offered: Collection[str] | None) -> ClusterState:
    """Take the overrides out of a state that are not among the configs on offer; None: all are.

    A topic that is to be deleted keeps them: its retention shows how old lost records were.
    """
    if offered is None:
        return state
    topics = {
        name: topic if name in state.usage else _leave(topic, offered)
        for name, topic in state.topics.items()
    }
    return replace(state, topics=topics)


def _leave(topic: TopicState, offered: Collection[str]) -> TopicState:
    if all(key in offered for key in (*topic.config, *topic.disputed)):
        return topic
    kept = {key: value for key, value in topic.config.items() if key in offered}
    disputed = {key: told for key, told in topic.disputed.items() if key in offered}
    return replace(topic, config=kept, disputed=disputed)


class Doubts(NamedTuple):
    """The facts behind a plan, by topic names, to be read again before it is made.

    `longer` have more replicas than desired, of `overridden` overrides are to change; `planned`
    are all that a plan will have something to say about.
    """

    longer: tuple[str, ...]
    overridden: tuple[str, ...]
    planned: tuple[str, ...]


def list_doubts(
    specs: Iterable[TopicSpec],
    cluster: ClusterState,
    equality: ConfigEquality,
    offered: Collection[str] | None,
) -> Doubts:
    """List the live topics that differ from their specs, without the differences."""
    managed = leave_unoffered(cluster, offered)
    longer, overridden, planned = [], [], []
    for spec in specs:
        state = managed.topics.get(spec.name)
        if state is None:
            continue
        overrides = managed_overrides(state)
        desired = desired_config(spec, overrides, state.disputed, cluster.config_defaults, equality)
        other = spec.absent or desired != overrides
        most = max(state.replication_factors, default=0)
        if most > (desired_replication(spec) or most):
            longer.append(spec.name)
        if other and state.config:
            overridden.append(spec.name)
        unmanaged = cluster.topics[spec.name].config.keys() != overrides.keys()
        differs = other or current_fields(spec, state, overrides) != desired_fields(spec, desired)
        if differs or unmanaged or state.disputed:
            planned.append(spec.name)
    return Doubts(tuple(longer), tuple(overridden), tuple(planned))
