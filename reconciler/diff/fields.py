"""The fields of a topic that a spec speaks of: as wished, as found, and where they differ.

A field that the spec leaves out is left out on both sides: it is not managed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from reconciler.model import TopicSpec, TopicState

NOT_MANAGED_KEYS = frozenset(
    {"leader.replication.throttled.replicas", "follower.replication.throttled.replicas"}
)
"""Set and cleared by whoever moves replicas; a spec has no business with them."""


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field that differs: its dotted path, what is there (None: nothing), what is wished."""

    path: str
    found: object
    wished: object


def managed_overrides(state: TopicState) -> Mapping[str, str]:
    """Return the overrides that a spec can speak of: known to the broker, not a throttle list."""
    return {
        key: value
        for key, value in state.config.items()
        if value is not None and key not in NOT_MANAGED_KEYS
    }


def wished_partitions(spec: TopicSpec) -> int | None:
    """Return the partition count a spec asks for: manual rows win over a count."""
    return len(spec.assignment) if spec.assignment is not None else spec.partitions


def wished_replication(spec: TopicSpec) -> int | None:
    """Return the replication factor a spec asks for: manual rows win over a count."""
    return len(spec.assignment[0]) if spec.assignment else spec.replication_factor


def list_wished(spec: TopicSpec, config: Mapping[str, str]) -> dict[str, object]:
    """Return the managed fields as wished; what the spec leaves out is left out here."""
    wished: dict[str, object] = {"config": dict(config)}
    if (partitions := wished_partitions(spec)) is not None:
        wished["partitions"] = partitions
    if (replication := wished_replication(spec)) is not None:
        wished["replication_factor"] = replication
    if spec.assignment is not None:
        wished["assignment"] = {row: list(ids) for row, ids in enumerate(spec.assignment)}
    return wished


def list_found(
    spec: TopicSpec, state: TopicState, overrides: Mapping[str, str]
) -> dict[str, object]:
    """Return the same fields as found; manual rows are compared where both sides have them."""
    found: dict[str, object] = {"config": dict(overrides)}
    if wished_partitions(spec) is not None:
        found["partitions"] = len(state.assignment)
    if (wished := wished_replication(spec)) is not None:
        factors = state.replication_factors
        odd = next(iter(sorted(factors - {wished})), wished)
        found["replication_factor"] = odd
    if spec.assignment is not None:
        rows = dict(enumerate(map(list, state.assignment[: len(spec.assignment)])))
        rows |= {row: list(spec.assignment[row]) for row in range(len(rows), len(spec.assignment))}
        found["assignment"] = rows
    return found


def compare_fields(found: dict[str, object], wished: dict[str, object]) -> Iterator[FieldChange]:
    """Name every field that differs, by its path."""
    if found == wished:
        return
    from deepdiff import DeepDiff  # 0.1 s to import, and most topics do not differ

    # A threshold of 0: configs with few keys in common are compared key by key all the same.
    tree: Any = DeepDiff(found, wished, view="tree", max_passes=1, threshold_to_diff_deeper=0)
    leaves = {
        tuple(leaf.path(output_format="list")): leaf for kind in tree.values() for leaf in kind
    }
    by_field = {path[:2]: leaf for path, leaf in leaves.items()}
    for path in sorted(by_field):
        yield FieldChange(".".join(map(str, path)), _at(found, path), _at(wished, path))


def _at(fields: dict[str, object], path: tuple[object, ...]) -> object:
    """Return what stands at `path`, None where nothing does."""
    value: Any = fields
    for key in path:
        value = value.get(key)
    return value
